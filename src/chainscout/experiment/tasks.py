"""An experiment's tasks on threads, or on any ``concurrent.futures.Executor``."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cloudpickle

from .. import engine
from .._version import __version__
from ..errors import ChainscoutError, InputError
from ..policies import Policy
from .checkpoint import Checkpoint, Outcome

#: The largest number of bytes of tasks that wait on a given executor, and the largest number of such tasks.
WAITING_BYTES, MOST_WAITING = 1 << 28, 1_000


@dataclass(frozen=True)
class Task:
    """Replications ``start`` … ``stop`` − 1 of the policy at ``place``."""

    place: int
    policy: Policy
    start: int
    stop: int
    #: The observations of one replication.
    length: int

    @property
    def steps(self) -> int:
        """The observations of all replications of the task."""
        return (self.stop - self.start) * self.length


def run_all(
    tasks: Sequence[Task], common: Mapping[str, Any], executor: Executor | None, kept: Checkpoint | None, progress: bool
) -> Iterator[tuple[Task, Outcome]]:
    """Every task with its outcome, in the order of completion."""
    waiting = []
    for task in tasks:
        outcome = kept.load(task) if kept else None
        if outcome is None:
            waiting.append(task)
        else:
            yield task, outcome
    with _bar(progress, sum(task.steps for task in waiting)) as advance:
        for task, outcome in _outcomes(waiting, common, executor):
            if kept:
                kept.store(task, outcome)
            advance(task.steps)
            yield task, outcome


def _outcomes(
    tasks: Sequence[Task], common: Mapping[str, Any], executor: Executor | None
) -> Iterator[tuple[Task, Outcome]]:
    if executor is not None:
        send, most = _by_pickle(tasks, common, executor)
        yield from _collected(tasks, send, most)
    elif common["options"].engine == "python":  # it holds the interpreter's lock, so threads would only take turns
        for task in tasks:
            yield task, _run(task.policy, task.start, task.stop, common)
    else:
        threads, begin = engine.workers(common["options"].engine)
        pool = ThreadPoolExecutor(threads, initializer=begin)
        try:
            # A few more tasks than threads: enough to keep threads busy, and few are left over after an interrupt.
            yield from _collected(tasks, lambda t: pool.submit(_run, t.policy, t.start, t.stop, common), 2 * threads)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _collected(
    tasks: Sequence[Task], send: "Callable[[Task], Future[Outcome]]", most: int
) -> Iterator[tuple[Task, Outcome]]:
    """Outcomes in the order of completion, with at most ``most`` unfinished tasks at a time."""
    running: dict[Future[Outcome], Task] = {}
    left = iter(tasks)
    try:
        while True:
            while len(running) < most and (task := next(left, None)) is not None:
                running[send(task)] = task
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
    except (BrokenExecutor, CancelledError) as error:
        what = str(error) or "it dropped a task"
        raise ChainscoutError(f"the executor broke while an experiment ran on it: {what}") from None
    finally:
        for future in running:
            future.cancel()


def _run(policy: Policy, start: int, stop: int, common: Mapping[str, Any]) -> Outcome:
    try:
        return engine.run(policy=policy, replications=range(start, stop), **common)
    except MemoryError:
        raise ChainscoutError(
            f"there is not enough memory for {stop - start:,} replications of this problem at a time"
        ) from None
    except Exception as error:
        module = type(error).__module__
        if module.startswith("numba.cuda.cudadrv"):
            raise ChainscoutError(f"the GPU failed: {str(error).splitlines()[0]}") from None
        if not module.startswith("numba."):
            raise
        # numba's message has the way to the error first, then the error, then its place.
        why = next((line for line in str(error).splitlines() if line and not line.startswith("Failed in")), "")
        raise InputError(
            f"the policy {policy.name!r} cannot be compiled ({why}): rules use arithmetic, comparisons, loops and math"
            " on numbers; engine='python' shows the place"
        ) from None


# --- in other processes: rules are sent by cloudpickle, which also takes rules typed at a prompt -----------------


def _by_pickle(
    tasks: Sequence[Task], common: Mapping[str, Any], executor: Executor
) -> "tuple[Callable[[Task], Future[Outcome]], int]":
    """A function that sends a task, and how many may wait: enough for a large cluster, unless the problem is large."""
    shared = cloudpickle.dumps(dict(common))
    policies = {task.place: cloudpickle.dumps(task.policy) for task in tasks}

    def send(task: Task) -> "Future[Outcome]":
        return executor.submit(run_pickled, __version__, shared, policies[task.place], task.start, task.stop)

    return send, max(4 * (os.cpu_count() or 1), min(MOST_WAITING, WAITING_BYTES // len(shared)))


def run_pickled(version: str, common: bytes, policy: bytes, start: int, stop: int) -> Outcome:
    """One task, in another process."""
    if version != __version__:
        raise ChainscoutError(f"this worker has chainscout {__version__}, and the experiment was begun by {version}")
    return _run(_policy(policy), start, stop, _common(common))


# A rule that is unpickled twice would be compiled twice. So every task must get the same object.
@lru_cache(maxsize=64)
def _policy(pickled: bytes) -> Policy:
    policy: Policy = cloudpickle.loads(pickled)
    return policy


@lru_cache(maxsize=2)
def _common(pickled: bytes) -> dict[str, Any]:
    common: dict[str, Any] = cloudpickle.loads(pickled)
    return common


def _bar(progress: bool, total: int) -> Any:
    """A context that yields a function which advances the bar by a number of steps."""
    if not progress:
        return nullcontext(lambda steps: None)
    from .progress import bar

    return bar(total)
