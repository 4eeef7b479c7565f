"""An experiment's tasks on threads, or on any ``concurrent.futures.Executor``."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle

from .. import engine
from ..errors import ChainscoutError
from ..policies import Policy
from .checkpoint import Checkpoint, Outcome

if TYPE_CHECKING:
    from .results import Results


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: ``results`` has the replications that every policy had finished."""

    def __init__(self, results: "Results") -> None:
        super().__init__("interrupted")
        self.results = results


@dataclass(frozen=True)
class Task:
    """Replications ``start`` … ``stop`` − 1 of the policy at ``place``."""

    place: int
    policy: Policy
    start: int
    stop: int


def run_task(task: Task, common: Mapping[str, Any]) -> Outcome:
    """One task, in this process."""
    return engine.run(policy=task.policy, replications=range(task.start, task.stop), **common)


def run_pickled(payload: bytes) -> Outcome:
    """One task, in another process. Rules travel by cloudpickle, which also takes those typed at a prompt."""
    task, common = cloudpickle.loads(payload)
    return run_task(task, common)


def run_all(
    tasks: Sequence[Task], common: Mapping[str, Any], executor: Executor | None, kept: Checkpoint | None, progress: bool
) -> Iterator[tuple[Task, Outcome]]:
    """Every task with its outcome, as they are finished."""
    waiting = []
    for task in tasks:
        outcome = kept.load(task) if kept else None
        if outcome is None:
            waiting.append(task)
        else:
            yield task, outcome
    steps = common["budgets"][-1]
    with _bar(progress, sum(task.stop - task.start for task in waiting) * steps) as advance:
        for task, outcome in _outcomes(waiting, common, executor):
            if kept:
                kept.store(task, outcome)
            advance((task.stop - task.start) * steps)
            yield task, outcome


def _outcomes(
    tasks: Sequence[Task], common: Mapping[str, Any], executor: Executor | None
) -> Iterator[tuple[Task, Outcome]]:
    if common["engine"] == "python" and executor is None:
        for task in tasks:
            yield task, run_task(task, common)
        return
    own = executor is None
    pool = executor or ThreadPoolExecutor(os.cpu_count())
    running: dict[Future[Outcome], Task] = {}
    left = iter(tasks)
    # A few more than there are workers: enough to keep them busy, few enough to stop at once.
    ahead = 4 * (os.cpu_count() or 1) + getattr(pool, "_max_workers", 16)
    try:
        while True:
            while len(running) < ahead and (task := next(left, None)) is not None:
                if own:
                    running[pool.submit(run_task, task, common)] = task
                else:
                    running[pool.submit(run_pickled, cloudpickle.dumps((task, dict(common))))] = task
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                task = running.pop(future)
                try:
                    yield task, future.result()
                except BrokenExecutor as error:
                    raise ChainscoutError(f"the executor broke while an experiment ran on it: {error}") from None
    finally:
        for future in running:
            future.cancel()
        if own:
            pool.shutdown(wait=False, cancel_futures=True)


def _bar(progress: bool, total: int) -> Any:
    """A context that gives a function which advances the bar by a number of steps."""
    if not progress:
        return nullcontext(lambda steps: None)
    from .progress import bar

    return bar(total)
