"""Simulated runs for answers: each chain has a question, and the run ends when every answer is narrow enough.

Here an index does not depend on counts alone: `widest` uses the state of a replay. But a chain's path in a replication
depends on (seed, replication, chain) alone, and so does its answer after T transitions. So the answers of each chain
are computed once, at the moments at which a study would compute them (`Curve`), and a policy's run is a way through the
curves. Drawing and replaying are compiled. A live study on simulated sources makes the same choices, one by one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..answers import Question
from ..answers.replay import Decks
from ..answers.running import Running, next_look
from ..chains import MarkovChain
from ..compile import bound, call, compiled, is_off
from ..policies import Policy, get
from ..policies.widest import widest_index
from ..problems import Problem
from ..random import alias
from ..random.splitmix import MASK, ONE, mix, sample, stream
from .options import Options
from .run import trace

__all__ = ["Curve", "Run", "curves", "run"]

_Words = npt.NDArray[np.uint64]


def draw(words, gamma, size, table, path):
    """Draws the next states of a chain. ``words``: the generator's position, and the place of the law to draw from."""
    position = words[0]
    row = words[1]
    for place in range(len(path)):
        position = (position + gamma) & MASK
        state = sample(mix(position), size, table, row)
        path[place] = state
        row = (state + ONE) * size
    words[0] = position
    words[1] = row


@cache
def _drawing(interpreted: bool) -> Any:
    return bound(draw, {}) if interpreted else compiled(draw, {}, cache=True)


class Curve:
    """The answer to a question about one simulated chain, as the chain grows.

    ``number``: the chain's number in its problem. ``delta``: the probability that the bounds fail.
    """

    def __init__(
        self, chain: MarkovChain, question: Question, delta: float, number: int, seed: int = 0, replication: int = 0
    ) -> None:
        self._table = alias.table(np.vstack([chain.initial[None, :], chain.matrix]))
        position, gamma = stream(seed, replication, number)
        self._words, self._gamma = np.array([position, 0], dtype=np.uint64), int(gamma)
        self._running = Running(question, chain.states, delta)
        self._decks = Decks.empty(chain.size)
        self._last = -1
        #: The T of each evaluation, and the width of the answer at that moment.
        self.transitions: list[int] = [0]
        self.widths: list[float] = [float("inf")]

    def look(self, number: int) -> tuple[int, float]:
        """T and the width at evaluation ``number``; before the first one, 0 and infinite."""
        while len(self.transitions) <= number:
            before, after = self.transitions[-1], next_look(self.transitions[-1])
            self._take(after - before + (self._last < 0))
            self.transitions.append(after)
            self.widths.append(self._running.answer(self._decks).width)
        return self.transitions[number], self.widths[number]

    def _take(self, number: int) -> None:
        """Draws ``number`` observations, and deals their cards."""
        path = np.zeros(number, dtype=np.int64)
        size, interpreted = self._decks.size, is_off()
        call(_drawing(interpreted), (self._words, self._gamma, size, self._table, path), interpreted)
        source = np.concatenate([[size if self._last < 0 else self._last], path[:-1]])
        order = np.argsort(source, kind="stable")
        rows, begin = np.unique(source[order], return_index=True)
        for row, cards in zip(rows.tolist(), np.split(path[order], begin[1:]), strict=True):
            self._decks.add(row, cards)
        self._last = int(path[-1])


def curves(
    problem: Problem, questions: Mapping[str, Question], delta: float = 0.05, seed: int = 0, replication: int = 0
) -> list[Curve]:
    """A curve for each chain of a problem, with δ/K."""
    share = delta / len(problem)
    return [
        Curve(chain, questions[name], share, number, seed, replication)
        for number, (name, chain) in enumerate(problem.chains.items())
    ]


@dataclass(frozen=True)
class Run:
    """The result of one run of a policy."""

    #: Whether all targets were met; if not, the budget was used.
    finished: bool
    observations: int
    #: The observations of each chain.
    pulls: tuple[int, ...]
    #: The order of sampling: (chain, number of consecutive observations).
    choices: tuple[tuple[int, int], ...] = ()


def run(
    problem: Problem,
    known: Sequence[Curve],
    targets: Sequence[float],
    policy: str | Policy,
    budget: int,
    *,
    seed: int = 0,
    replication: int = 0,
) -> Run:
    """Samples until every chain's answer is at most as wide as its target, or until the budget is used.

    ``known``: the curves of the same seed and replication; they are extended as far as needed.
    """
    rule = get(policy)
    if rule.answering:
        return _widest(known, targets, budget)
    size = 4096
    while True:
        size = min(budget, 2 * size)
        choices, _ = trace(problem, rule, size, replication, Options(seed=seed))
        found = _followed(known, targets, choices)
        if found.finished or size == budget:
            return found


def _followed(known: Sequence[Curve], targets: Sequence[float], choices: npt.NDArray[np.int64]) -> Run:
    """The first moment in a sequence of choices at which every chain's last answer is narrow enough."""
    events: list[tuple[int, int, float]] = []
    for number, curve in enumerate(known):
        times = np.flatnonzero(choices == number)  # observation T + 1 of a chain brings its transition T
        look = 1
        while (transitions := next_look(curve.transitions[look - 1])) < len(times):
            events.append((int(times[transitions]) + 1, number, curve.look(look)[1]))
            look += 1
    unmet = set(range(len(known)))
    for moment, number, width in sorted(events):
        (unmet.discard if width <= targets[number] else unmet.add)(number)
        if not unmet:
            return Run(True, moment, _pulls(choices[:moment], len(known)))
    return Run(False, len(choices), _pulls(choices, len(known)))


def _pulls(choices: npt.NDArray[np.int64], chains: int) -> tuple[int, ...]:
    return tuple(np.bincount(choices, minlength=chains).tolist())


def _widest(known: Sequence[Curve], targets: Sequence[float], budget: int) -> Run:
    """Widest first. Between two evaluations a chain's index is constant, unless its answer is infinitely wide."""
    chains = len(known)
    made = [0] * chains  # transitions
    looks = [0] * chains
    sums = [(0.0, 0.0, 0.0)] * chains
    unmet = set(range(chains))
    choices: list[tuple[int, int]] = []
    used = 0
    for k, number in _blocks(made, sums):
        transitions, _ = known[k].look(looks[k] + 1)
        number = min(number, transitions - made[k], budget - used)
        if number <= 0:
            break
        used += number + (made[k] == 0)
        choices.append((k, number + (made[k] == 0)))
        made[k] += number
        if made[k] == transitions:
            looks[k] += 1
            width = known[k].look(looks[k])[1]
            reached = float("inf") if width == 0 else targets[k] / width
            sums[k] = reached, float(transitions), float(next_look(transitions))
            (unmet.discard if width <= targets[k] else unmet.add)(k)
            if not unmet:
                break
    pulls = tuple(number + 1 if number else 0 for number in made)
    return Run(not unmet, used, pulls, tuple(choices))


def _blocks(made: list[int], sums: list[tuple[float, float, float]]) -> Iterator[tuple[int, int]]:
    """The next chain, and for how many transitions its index is constant. Every chain first gets one transition."""
    for k in range(len(made)):
        yield k, 1
    while True:
        index = [widest_index(sums[k], float(made[k]), ()) for k in range(len(made))]
        k = index.index(max(index))
        yield k, 1 if sums[k][0] == 0.0 else 2**62
