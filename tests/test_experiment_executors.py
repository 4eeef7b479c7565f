"""The same bits from threads, from spawned processes and from a Dask cluster that loses a worker on the way."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from distributed import Client, LocalCluster

import chainscout as cs
from chainscout.errors import ChainscoutError
from chainscout.experiment import comparison, tasks

RUN: dict[str, Any] = {"policies": ["uniform", "ba-mc", "scout"], "budgets": [100, 700], "replications": 50, "seed": 4}


@pytest.fixture(scope="module")
def problem() -> cs.Problem:
    """Chains of unequal sizes."""
    unlike = cs.problems.get("unlike")
    return cs.Problem({"rain": cs.MarkovChain([[0.9, 0.1], [0.3, 0.7]]), **unlike.chains})


@pytest.fixture(scope="module")
def expected(problem: cs.Problem) -> cs.Results:
    return cs.compare(problem, **RUN)


def check(results: cs.Results, expected: cs.Results) -> None:
    assert results.loss.tobytes() == expected.loss.tobytes()
    assert results.pulls.tobytes() == expected.pulls.tobytes()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads(problem: cs.Problem, expected: cs.Results, threads: int) -> None:
    with ThreadPoolExecutor(threads) as executor:
        check(cs.compare(problem, **RUN, executor=executor), expected)


@pytest.mark.parametrize("size", [1, 3, 7, 49, 50])
def test_any_cut_into_tasks(
    problem: cs.Problem, expected: cs.Results, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    cuts = [(start, min(start + size, 50)) for start in range(0, 50, size)]
    monkeypatch.setattr(comparison, "_cuts", lambda *arguments: cuts)
    check(cs.compare(problem, **RUN), expected)


@pytest.mark.parametrize("longest", [1, 999, 10**5, 10**9])
@pytest.mark.parametrize("replications", [1, 3, 4, 50, 1001])
def test_cuts_cover_every_replication_once_and_fill_the_engine_s_lanes(longest: int, replications: int) -> None:
    for engine in ("python", "cpu", "gpu"):
        cuts = comparison._cuts(replications, longest, engine)
        assert [r for start, stop in cuts for r in range(start, stop)] == list(range(replications))
        assert all((stop - start) % comparison.SIDE_BY_SIDE[engine] == 0 for start, stop in cuts[:-1])


@pytest.fixture(scope="module")
def own() -> cs.Policy:
    """A rule that no other process can import: cloudpickle has to carry it, as from a script or a notebook."""
    source = "def terms(row, exits, squares, constants):\n    return (1.0 - squares / (exits * exits) + 1.5 / exits,)\n"
    source += "def index(sums, transitions, constants):\n    return sums[0] / transitions\n"
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(source, names)
    return cs.Policy("own", names["index"], names["terms"])


@pytest.fixture(scope="module")
def expected_own(problem: cs.Problem, own: cs.Policy) -> cs.Results:
    return cs.compare(problem, [own], [700], 40)


def loops_compiled() -> int:
    """How many rules this process has made a loop for."""
    from chainscout.engine.cpu import state

    return int(state._specialised.cache_info().misses)


def test_spawned_processes_and_a_rule_that_is_compiled_once(
    problem: cs.Problem, expected: cs.Results, own: cs.Policy, expected_own: cs.Results
) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        check(cs.compare(problem, [own], [700], 40, executor=executor), expected_own)
        assert executor.submit(loops_compiled).result() == 1
        check(cs.compare(problem, **RUN, executor=executor), expected)
        assert executor.submit(loops_compiled).result() == 1 + len(RUN["policies"])


# ---------------------------------------------------------------- Dask


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A scheduler here and four worker processes."""
    options = {"dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with LocalCluster(n_workers=4, threads_per_worker=1, **options) as cluster, Client(cluster) as client:
        yield client


class Watched(Executor):
    """Another executor, with a call after each finished task."""

    def __init__(self, executor: Executor, after: Any) -> None:
        self.executor, self.after = executor, after

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> "Future[Any]":
        future = self.executor.submit(function, *arguments, **options)
        future.add_done_callback(self.after)
        return future


def test_a_cluster_that_loses_a_worker(problem: cs.Problem, expected: cs.Results, client: Client) -> None:
    processes = {address: int(number) for address, number in client.run(os.getpid).items()}
    assert len(set(processes.values())) == 4
    finished: list[Any] = []
    number = len(RUN["policies"]) * len(comparison._cuts(50, 700, "cpu"))
    killed: list[int] = []

    def after(future: "Future[Any]") -> None:
        finished.append(future)
        if len(finished) == number // 3:  # in the middle: a worker that has tasks to do
            busy = [address for address, worker in client.cluster.scheduler.workers.items() if worker.processing]
            killed.append(processes[busy[0]])
            os.kill(killed[0], signal.SIGKILL)

    check(cs.compare(problem, **RUN, executor=Watched(client.get_executor(), after)), expected)
    limit = time.monotonic() + 10  # the last future's callback runs in a thread of its own
    while len(finished) < number and time.monotonic() < limit:
        time.sleep(0.01)
    assert len(finished) == number > 20
    client.wait_for_workers(4)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()


def test_a_rule_of_one_s_own_on_a_cluster(
    problem: cs.Problem, client: Client, own: cs.Policy, expected_own: cs.Results
) -> None:
    before = client.run(loops_compiled)
    check(cs.compare(problem, [own], [700], 40, executor=client.get_executor()), expected_own)
    after = client.run(loops_compiled)
    # A worker may have come in place of one that was lost: it had compiled nothing before.
    assert all(compiled - before.get(worker, 0) <= 1 for worker, compiled in after.items())


# ---------------------------------------------------------------- what goes wrong


class Broken(Executor):
    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("a child process terminated abruptly"))
        return future


def test_an_executor_that_breaks_is_one_sentence(problem: cs.Problem) -> None:
    with pytest.raises(ChainscoutError, match="the executor broke while an experiment ran on it: a child process"):
        cs.compare(problem, ["uniform"], [100], 4, executor=Broken())


def test_a_worker_of_another_version_is_refused(problem: cs.Problem) -> None:
    payload = [cloudpickle.dumps(thing) for thing in ({}, cs.policies.get("uniform"))]
    with pytest.raises(ChainscoutError, match=r"this worker has chainscout .* was begun by 0\.0\.0"):
        tasks.run_pickled("0.0.0", *payload, 0, 4)


def test_errors_of_workers_arrive_as_they_are(problem: cs.Problem) -> None:
    strange = cs.Policy("strange", lambda sums, t, constants: float("nan"), lambda row, n, q, c: (0.0,))
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(ChainscoutError, match="'strange' gave an index that is not a number"),
    ):
        cs.compare(problem, [strange], [100], 4, engine="python", executor=executor)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("compare_policies.py", "scout is better"),
        ("own_policy.py", "the same on processes and on threads: True"),
        ("cluster.py", "uniform − scout"),
    ],
)
def test_examples_run(script: str, words: str, tmp_path: Path) -> None:
    path = Path(__file__).resolve().parent.parent / "examples" / script
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
    assert "Traceback" not in done.stderr
