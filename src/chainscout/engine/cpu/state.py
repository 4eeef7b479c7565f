"""Validate → prepare → kernel: a problem and a policy as flat arrays, and the state of some replications in them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...compile import bound, call, compiled, has_file, is_off
from ...policies import Policy, settings
from ...problems import Problem
from ...random import alias
from ..options import Options
from ..rule import FIRST, RuleParts, of_length
from . import layout, loop, planned_loop
from .layout import BASE, FOUR, SEEN, SIZE, START, SUMS, TERMS, TRANSITIONS, WORDS
from .planned_loop import BATCH, LATEST

Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

#: Replications are run in chunks. The state of a chunk has about this size, so that it stays in the processor's cache.
CHUNK_BYTES = 1 << 20
MOST_LANES = 256

#: From this many chains on, a tournament tree is faster than a scan. Measured with scout at S = 5, scan and tree, in
#: nanoseconds per step: K = 16: 15, 27; 32: 22, 31; 64: 37, 34; 128: 74, 42; 256: 149, 53.
TREE_FROM = 64

#: The number of groups that are interleaved within one loop (``loop``).
TOGETHER = 4


@dataclass(frozen=True)
class CpuLoop:
    """A policy's functions, and the form of the CPU's loop over them."""

    parts: RuleParts
    #: How many numbers ``terms`` returns.
    width: int
    #: Whether plans of more than one observation are made. Their loop looks up all constants, even if chains are alike.
    planned: bool
    #: Whether the largest index is found by a tree, not by a scan.
    tree: bool
    #: Whether chains are planned in batches.
    batched: bool

    @property
    def head(self) -> int:
        """The number of floats before the counts in a row's record: N_x, Q_x, the terms, N_x at the last evaluation."""
        return TERMS + self.width + self.planned

    @property
    def standing(self) -> int:
        """How many floats the record of a chain in four lanes has: indices, T, and the sums; a power of two."""
        return 1 << (SUMS + FOUR * self.width - 1).bit_length()

    def function(self, engine: str) -> Callable[..., None]:
        """The loop over observations, ready to be called: interpreted, or compiled."""
        return _specialised(self, engine)


@lru_cache(maxsize=256)
def _specialised(rule: CpuLoop, engine: str) -> Callable[..., None]:
    parts, sums = rule.parts, of_length(rule.width, SUMS, FOUR, TERMS)
    alike = parts.alike and not rule.planned
    names = parts.names | {
        "row_terms": loop.terms_of_row if parts.entry is None else loop.terms_of_entries,
        **{name: sums[name] for name in ("take_sums", "totals", "put", "put_sums")},
        "HEAD": rule.head,
        "STANDING": rule.standing,
        "ALIKE": alike,
        "ENTRIES": alike and parts.entry is not None,
        "TREE": rule.tree,
        "BATCHED": rule.batched,
    }
    function = planned_loop.rounds if rule.planned else loop.steps
    if engine == "python":
        return bound(function, names)
    names |= {"whole": np.uint64, "signed": np.int64}
    functions = (parts.terms, parts.index, parts.entry, parts.summary, parts.floor)
    return compiled(function, names, cache=all(has_file(function) for function in functions))


@lru_cache(maxsize=8)
def common(name: str, engine: str) -> Callable[..., None]:
    """A function that is the same for every policy: ``begin`` or ``fill``."""
    function = {"begin": layout.begin, "fill": alias.fill}[name]
    return bound(function, {}) if engine == "python" else compiled(function, {}, cache=True)


@dataclass(frozen=True)
class Block:
    """Neighbouring chains of the same size: the positions of their rows, and their matrices."""

    first: int
    number: int
    size: int
    start: int
    matrices: Array


@dataclass(frozen=True)
class Prepared:
    """The data that all replications share."""

    engine: str
    loop: CpuLoop
    policy: Policy
    sizes: tuple[int, ...]
    blocks: tuple[Block, ...]
    #: How many floats a lane has in ``rows``; the number of chains, padded with chains that are never chosen: a power
    #: of two for the tree, 4j + 1 for the scan.
    span: int
    leaves: int
    table: Words
    laws: Words
    law_starts: Words
    starts: Words
    constants: Array
    weights: Array
    batch: int
    shortest: int

    @property
    def chains(self) -> int:
        """K."""
        return len(self.sizes)

    def lanes(self, replications: int) -> int:
        """How many replications to run at a time: a multiple of four."""
        size = 8 * (self.span + self.chains * (WORDS + self.loop.standing // FOUR + 2))
        most = min(MOST_LANES, max(FOUR, CHUNK_BYTES // size // FOUR * FOUR))
        return min(most, -(-replications // FOUR) * FOUR)


def prepare(problem: Problem, policy: Policy, budget: int | None, options: Options) -> Prepared:
    """The arrays of a run. Its arguments must be checked. If compilation is off, the loop is interpreted."""
    engine = "python" if options.engine == "cpu" and is_off() else options.engine
    batch, restless, weights = options.batch, options.restless, options.weights_of(problem)
    sizes = problem.sizes
    constants = [policy.prepare(setting) for setting in settings(sizes, budget, problem)]
    parts = RuleParts.of(policy, sizes, constants, weights, restless)
    planned = batch > 1 or restless or policy.block > 0 or policy.summary is not None or policy.floor is not None
    rule = CpuLoop(parts, policy.width(sizes[0], constants[0]), planned, len(sizes) >= TREE_FROM, batch > 1)
    blocks = alike_neighbours(problem, rule.head)
    span = blocks[-1].start + blocks[-1].number * blocks[-1].size * (blocks[-1].size + rule.head)
    starts = [block.start + j * block.size * (block.size + rule.head) for block in blocks for j in range(block.number)]
    table, laws = np.zeros(span, np.uint64), np.zeros(sum(sizes), np.uint64)
    law_starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    chains = list(problem.chains.values())
    for block in blocks:
        stride, first = block.size + rule.head, block.first
        _fill(engine, table, block.start + rule.head, stride, block.matrices.reshape(-1, block.size))
        initial = np.array([chain.initial for chain in chains[first : first + block.number]])
        _fill(engine, laws, int(law_starts[first]), block.size, initial)
    return Prepared(
        engine=engine,
        loop=rule,
        policy=policy,
        sizes=sizes,
        blocks=blocks,
        span=span,
        leaves=1 << (len(sizes) - 1).bit_length() if rule.tree else 1 + -(-(len(sizes) - 1) // FOUR) * FOUR,
        table=table,
        laws=laws,
        law_starts=law_starts.astype(np.uint64),
        starts=np.array(starts, np.uint64),
        constants=np.array(constants, np.float64).ravel(),
        weights=np.array([policy.factor(float(weight)) for weight in weights], np.float64),
        batch=batch,
        shortest=options.shortest,
    )


def alike_neighbours(problem: Problem, head: int = 0) -> tuple[Block, ...]:
    """The chains in blocks of neighbours of the same size; ``head`` floats stand before each row's counts."""
    chains, blocks = list(problem.chains.values()), []
    first = start = 0
    while first < len(chains):
        size, last = chains[first].size, first
        while last < len(chains) and chains[last].size == size:
            last += 1
        matrices = np.array([chain.matrix for chain in chains[first:last]])
        blocks.append(Block(first, last - first, size, start, matrices))
        start += (last - first) * size * (size + head)
        first = last
    return tuple(blocks)


def _fill(engine: str, table: Words, first: int, stride: int, laws: Array) -> None:
    number, size = laws.shape
    scratch = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
    arguments = (table, first, stride, number, size, alias.parts(laws).ravel(), *scratch)
    call(common("fill", engine), arguments, interpreted=engine == "python")


class State:
    """Some replications between two observations."""

    def __init__(self, prepared: Prepared, seed: int, first: int, lanes: int) -> None:
        self.prepared, self.lanes = prepared, lanes
        chains, rule = prepared.chains, prepared.loop
        groups, leaves = lanes // FOUR, prepared.leaves
        words = np.zeros((groups, chains, FOUR, WORDS), np.uint64)
        words[..., START] = prepared.starts[:, None]
        words[..., SIZE] = np.array(prepared.sizes)[:, None]
        words[..., BASE] = (prepared.span * np.arange(lanes)).reshape(groups, 1, FOUR)
        self.words = words.ravel()
        arguments = (seed, first, lanes, chains, rule.head, prepared.laws, prepared.law_starts, self.words)
        call(common("begin", prepared.engine), arguments, interpreted=prepared.engine == "python")
        self.rows = np.zeros(lanes * prepared.span)
        standings = np.zeros((groups, leaves, rule.standing // FOUR, FOUR))
        standings[:, :chains, 0], standings[:, chains:, 0] = np.inf, -np.inf
        self.standings = standings.ravel()
        self.tree = _tree(groups, leaves) if rule.tree else np.zeros(1, np.uint64)
        self.time = 0
        # For ``planned_loop`` only: −T at the positions of the indices in ``standings``.
        least = np.where(standings < 0, standings, -0.0) if rule.parts.floor is not None else np.zeros(1)
        self.least, self.least_tree = least.ravel(), self.tree.copy()
        plans = np.zeros((lanes, BATCH + prepared.batch), np.uint64)
        plans[:, LATEST] = chains  # nobody yet
        self.plans = plans.ravel()
        self.pending = np.zeros(chains)
        in_batches = (lanes, chains) if prepared.batch > 1 else 1
        self.looks, self.held = np.zeros(in_batches).ravel(), np.full(in_batches, FIRST).ravel()
        self.scratch = np.zeros(4 * max(prepared.sizes))
        self.wholes = np.zeros(2 * max(prepared.sizes), np.int64)

    def run(self, until: int, trace: "tuple[Words, Array] | None" = None) -> None:
        """Continues every replication to ``until`` observations; ``trace`` records the choices and their indices."""
        p, rule = self.prepared, self.prepared.loop
        run: Any = self._rounds(trace) if rule.planned else self._steps(trace)
        call(rule.function(p.engine), (self.time, until, run), interpreted=p.engine == "python")
        self.time = until

    def _steps(self, trace: "tuple[Words, Array] | None") -> loop.Steps:
        p = self.prepared
        choices, values = trace or (np.zeros(1, np.uint64), np.zeros(1))
        return loop.Steps(
            groups=self.lanes // FOUR,
            together=TOGETHER,
            chains=p.chains,
            leaves=p.leaves,
            table=p.table,
            constants=p.constants,
            weights=p.weights,
            words=self.words,
            standings=self.standings,
            rows=self.rows,
            tree=self.tree,
            chosen=np.zeros(self.lanes, np.uint64),
            board=np.zeros(FOUR),
            tracing=trace is not None,
            choices=choices,
            values=values,
        )

    def _rounds(self, trace: "tuple[Words, Array] | None") -> planned_loop.Rounds:
        p = self.prepared
        choices, values = trace or (np.zeros(1, np.uint64), np.zeros(1))
        return planned_loop.Rounds(
            lanes=self.lanes,
            chains=p.chains,
            leaves=p.leaves,
            table=p.table,
            constants=p.constants,
            weights=p.weights,
            words=self.words,
            standings=self.standings,
            rows=self.rows,
            tree=self.tree,
            least=self.least,
            least_tree=self.least_tree,
            plans=self.plans,
            batch=p.batch,
            block=p.policy.block,
            shortest=p.shortest,
            pending=self.pending,
            looks=self.looks,
            held=self.held,
            scratch=self.scratch,
            wholes=self.wholes,
            tracing=trace is not None,
            choices=choices,
            values=values,
        )

    def pulls(self) -> npt.NDArray[np.int64]:
        """Observations of each chain (lane, chain)."""
        chains, rule = self.prepared.chains, self.prepared.loop
        if rule.planned:
            seen = self.words.reshape(-1, chains, FOUR, WORDS)[..., SEEN]
            return seen.swapaxes(1, 2).reshape(self.lanes, chains).astype(np.int64)
        transitions = self._standings()[:, :chains, TRANSITIONS // FOUR].swapaxes(1, 2).reshape(self.lanes, chains)
        return np.asarray(transitions.astype(np.int64) + (self.time > 2 * np.arange(chains)))

    def indices(self) -> Array:
        """Every chain's index (group, chain, lane of the group)."""
        return self._standings()[:, : self.prepared.chains, 0]

    def _standings(self) -> Array:
        return self.standings.reshape(self.lanes // FOUR, self.prepared.leaves, -1, FOUR)

    def counts(self, block: Block) -> Array:
        """N[x,y] of neighbouring chains (lane, chain, x, y): a view."""
        head = self.prepared.loop.head
        stride = block.size + head
        rows = self.rows.reshape(self.lanes, self.prepared.span)
        rows = rows[:, block.start : block.start + block.number * block.size * stride]
        return rows.reshape(self.lanes, block.number, block.size, stride)[..., head:]


def _tree(groups: int, leaves: int) -> Words:
    """A tournament that every first chain has won."""
    winners = np.zeros(2 * leaves, np.uint64)
    winners[leaves:] = np.arange(leaves)
    for node in range(leaves - 1, 0, -1):
        winners[node] = winners[2 * node]
    return np.ascontiguousarray(np.broadcast_to(winners[None, :, None], (groups, 2 * leaves, FOUR))).ravel()
