"""A worker for the fault tests: leases or asks, makes up states, tells, and sends what was acknowledged.

Its states are a function of the chain and the step alone, so that a test can tell what every line must be. Workers are
real processes, forked from a clean server that has imported everything once.
"""

import hashlib
import multiprocessing
import resource
import signal
import traceback
from typing import Any

from study_checks import check
from study_rules import RULE

from chainscout.errors import ChainscoutError, StudyFinished
from chainscout.study import Study

SIZES = {f"chain{k}": 2 + k % 4 for k in range(12)}


def nth_state(chain: str, step: int) -> int:
    return hashlib.sha256(f"{chain} {step}".encode()).digest()[0] % SIZES[chain]


def work(pipe: Any, where: Any, name: str, way: str, number: int, room: int | None) -> None:
    """The worker's process. ``room``: the size beyond which its files cannot grow, as on a full disk."""
    try:
        if room is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        study = Study.open(where, RULE)
        pipe.send("ready")
        for _ in range(number):
            try:
                if way == "lease":
                    with study.lease(name, seconds=5.0) as lease:
                        chain, step = lease.chain, lease.step
                        lease.tell(nth_state(chain, step))
                else:
                    chain = study.ask()
                    step = study.next_step(chain)
                    study.tell(chain, nth_state(chain, step), step=step)
            except StudyFinished:
                break
            pipe.send((chain, step))  # acknowledged
        study.close()
        pipe.send("done")
    except ChainscoutError as error:
        pipe.send(f"{type(error).__name__}: {error}")
    except BaseException:
        pipe.send(traceback.format_exc())
        raise


class Worker:
    """The other end: starts a worker, kills it, hears what it says."""

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chainscout.study", "psycopg", "sqlalchemy.dialects.postgresql.psycopg"])

    def __init__(
        self, where: Any, name: str = "worker", way: str = "ask", number: int = 10**9, room: int | None = None
    ) -> None:
        self.pipe, other = self.context.Pipe(duplex=False)
        self.process = self.context.Process(target=work, args=(other, where, name, way, number, room))
        self.process.start()
        other.close()
        first = self.pipe.recv()
        assert first == "ready", first

    def kill(self) -> list[tuple[str, int]]:
        """kill -9, and what had been acknowledged by then."""
        self.process.kill()
        return self.finish()[0]

    def finish(self) -> tuple[list[tuple[str, int]], str]:
        """What was acknowledged, and the worker's last words."""
        told: list[tuple[str, int]] = []
        words = ""
        while True:
            try:
                said = self.pipe.recv()
            except (EOFError, ConnectionResetError):
                break
            if isinstance(said, str):
                words = said
            else:
                told.append(said)
        self.process.join(timeout=60)
        self.pipe.close()
        return told, words


def is_sound(where, told: list[tuple[str, int]]) -> Study:
    """Every acknowledged observation is there exactly once, with its state, and all else follows from the log."""
    study = Study.open(where, RULE)
    log = {(line.chain, line.step): line.state for line in study.log()}
    assert len(log) == study.progress().observations
    for chain, step in told:
        assert log[chain, step] == nth_state(chain, step)
    assert len(set(told)) == len(told)
    check(study, SIZES, RULE)
    return study
