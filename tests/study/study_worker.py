"""A worker for the fault tests: it has simulators of its own, tells a study what they do, and writes down what it told.

Each worker has a seed of its own, and so walks paths that no other worker walks. It writes an observation down before
it tells it, and says when it was acknowledged. A simulator stays where it is or goes to the next state: the study would
hold impossible transitions if it ever joined two paths. Workers are real processes, forked from a clean server that has
imported everything once.
"""

import itertools
import multiprocessing
import random
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from study_checks import check
from study_rules import RULE

from chainscout.errors import ChainscoutError
from chainscout.study import Study, keeper

SIZES = {f"chain{k}": 2 + k % 4 for k in range(12)}


class Simulators:
    """One process a chain, which nobody else advances."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(seed)
        self._states = {name: self._rng.randrange(size) for name, size in SIZES.items()}

    def advance(self, chain: str) -> int:
        self._states[chain] = (self._states[chain] + self._rng.randrange(2)) % SIZES[chain]
        return self._states[chain]


#: How a worker advances chains: by asking, and telling with path and step or without; by one lease after the other,
#: each taken by itself, or with the tell before it.
WAYS = ("ask", "plain", "lease", "walk")


def moves(study: Study, name: str, way: str, number: int) -> Iterator[tuple[tuple[str, int, int], Callable[..., Any]]]:
    """Chain, path and step of each observation that is to be made, and what tells it."""
    if way in ("ask", "plain"):
        for _ in range(number):
            if study.finished:
                break
            chain = study.ask()
            stands = study.chain(chain)
            place = chain, stands.path, stands.step
            yield place, partial(study.tell, chain) if way == "plain" else partial(named, study, place)
        return
    with study.worker(name) as worker:
        leases = worker if way == "walk" else iter(lambda: worker.lease(5.0), None)
        for lease in itertools.islice(leases, number):
            yield (lease.chain, lease.path, lease.step), lease.tell


def named(study: Study, place: tuple[str, int, int], state: int) -> None:
    chain, path, step = place
    study.tell(chain, state, path, step)


def work(pipe: Any, where: Any, name: str, way: str, number: int, room: int | None) -> None:
    """The worker's process. ``room``: the size beyond which its files cannot grow, as on a full disk."""
    keeper.TAIL = keeper.OBJECTS = 1  # a snapshot after every change
    try:
        if room is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        study, simulators = Study.open(where, RULE), Simulators(name)
        pipe.send("ready")
        for place, tell in moves(study, name, way, number):
            state = simulators.advance(place[0])
            pipe.send((*place, state))
            tell(state)
            pipe.send("told")
        study.close()
        pipe.send("done")
    except ChainscoutError as error:
        pipe.send(f"{type(error).__name__}: {error}")
    except BaseException:
        pipe.send(traceback.format_exc())
        raise


@dataclass
class Written:
    """What one worker wrote down."""

    #: (chain, path) → its states in order, as they were acknowledged.
    told: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    #: An observation (chain, path, step, state) whose acknowledgement was not heard.
    open: tuple[str, int, int, int] | None = None
    words: str = ""

    def hear(self, said: Any) -> None:
        """Notes one message of the worker."""
        if said == "told":
            assert self.open is not None
            chain, path, step, state = self.open
            states = self.told.setdefault((chain, path), [])
            assert step == len(states) + 1, "a worker that walks its own path is told its steps without a gap"
            states.append(state)
            self.open = None
        elif isinstance(said, tuple):
            self.open = said
        else:
            self.words = said

    def __len__(self) -> int:
        return sum(map(len, self.told.values()))


class Worker:
    """The other end: starts a worker, kills it, hears what it says."""

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chainscout.study", "psycopg"])

    def __init__(
        self, where: Any, name: str = "worker", way: str = "ask", number: int = 10**9, room: int | None = None
    ) -> None:
        self.pipe, other = self.context.Pipe(duplex=False)
        self.process = self.context.Process(target=work, args=(other, where, name, way, number, room))
        self.process.start()
        other.close()
        first = self.pipe.recv()
        assert first == "ready", first
        self.written = Written()

    def hear(self, number: int) -> None:
        """Waits until so many observations were acknowledged."""
        while len(self.written) < number:
            self.written.hear(self.pipe.recv())

    def kill(self) -> Written:
        """kill -9, and what was written down by then."""
        self.process.kill()
        return self.finish()

    def finish(self) -> Written:
        """What was written down, with the worker's last words."""
        while True:
            try:
                self.written.hear(self.pipe.recv())
            except (EOFError, ConnectionResetError):
                break
        self.process.join(timeout=60)
        self.pipe.close()
        return self.written


def is_sound(where: Any, written: list[Written]) -> Study:
    """Each path is what its worker wrote down, with all that was acknowledged; all else follows from the log."""
    study = Study.open(where, RULE)
    paths: dict[tuple[str, int], list[int]] = {}
    for line in study.log():
        paths.setdefault((line.chain, line.path), []).append(line.state)
    for worker in reversed(written):
        if worker.open is not None:  # it was killed between the commit and the acknowledgement, or before the commit
            chain, path, step, state = worker.open
            # Before the commit, the number of a path that it would have begun is the next worker's.
            taken = any((chain, path) in other.told for other in written if other is not worker)
            if not taken and len(paths.get((chain, path), [])) == step:
                worker.told.setdefault((chain, path), []).append(state)
    told = [place for worker in written for place in worker.told]
    assert len(set(told)) == len(told), "two workers walked one path"
    assert paths == {place: states for worker in written for place, states in worker.told.items()}
    for name, size in SIZES.items():
        for x, row in study.counts(name, everything=True).rows().items():
            assert {(y - x) % size for y in row} <= {0, 1}, "a transition was counted that no simulator can make"
    study.audit()
    check(study, SIZES, RULE)
    return study


def goes_on(study: Study) -> None:
    """The study takes another observation."""
    before = study.progress().observations
    with study.worker("later", renews=False) as worker:
        lease = worker.lease(wait=0)
        assert lease is not None
        lease.tell(0)
    assert study.progress().observations == before + 1
