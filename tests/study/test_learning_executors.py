"""``learn`` on threads, on processes and on a Dask cluster, whose workers are really lost."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster
from study_checks import replayed_counts

import chainscout as cs
from chainscout.errors import ChainscoutError, SourceError
from chainscout.problems import get
from chainscout.sources import simulated
from chainscout.study import Study


def learn_and_check(executor) -> None:
    """Each path is what its chain would have shown alone."""
    problem = get("unlike")
    study = cs.learn(problem, 60, executor=executor, workers=2, seed=1, progress=False)
    assert study.stop_reason == "budget"
    assert study.progress().observations == 60
    assert study.progress().leases == 0
    assert study.progress().lost == 0
    sources = simulated(problem, seed=1)
    for name in problem.names:
        path = [line.state for line in study.log(name)]
        assert path == [sources[name].advance()[0] for _ in path]


@pytest.mark.parametrize("executor", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_learning_on_an_executor(executor):
    with executor(2) as pool:
        learn_and_check(pool)


def test_failing_sources_on_an_executor_give_their_chains_up():
    def broken():
        raise SourceError("out of order")

    with ThreadPoolExecutor(3) as pool:
        study = cs.learn(
            {"a": broken, "b": lambda: 0, "c": iter("zz")}, 20, states={"a": 1, "b": 1}, executor=pool, progress=False
        )
    assert sorted(study.certificate().aside) == ["a", "c"]
    assert study.progress().lost == 10
    assert study.progress().leases == 0
    with ThreadPoolExecutor(3) as pool, pytest.raises(ZeroDivisionError):
        cs.learn({"a": lambda: 1 // 0}, 20, states={"a": 1}, executor=pool, progress=False)


def test_workers_are_really_at_work_at_once():
    def slow():
        time.sleep(0.05)
        return 0

    begun = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        cs.learn(
            {f"c{k}": slow for k in range(8)}, 64, states={f"c{k}": 1 for k in range(8)}, executor=pool, progress=False
        )
    assert time.monotonic() - begun < 64 * 0.05


# -- workers that are lost


class Deadly:
    """A source that counts 0, 1, 2, 0, … and whose process is killed in the first ``deaths`` of its steps."""

    def __init__(self, marks: Path, deaths: int) -> None:
        self.marks, self.deaths, self.state = marks, deaths, -1

    def __call__(self) -> int:
        done = len(list(self.marks.iterdir()))
        if done < self.deaths:
            (self.marks / str(done)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self.state = (self.state + 1) % 3
        return self.state

    def restart(self) -> None:
        self.state = -1


def counting() -> int:
    return 0


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A scheduler here and two worker processes; a task is tried again after so many lost workers."""
    options = {"dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": request.param}),
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("client", [3], indirect=True)
def test_learning_on_a_cluster_that_loses_a_worker(client, tmp_path):
    """Dask sends the source elsewhere as it was: nothing is lost."""
    learn_and_check(client.get_executor())
    sources = {"a": Deadly(tmp_path, 1), "b": counting}
    study = cs.learn(sources, 40, states={"a": 3, "b": 1}, executor=client.get_executor(), workers=2, progress=False)
    assert len(list(tmp_path.iterdir())) == 1
    assert study.progress().observations == 40
    assert study.progress().lost == 0
    path = [line.state for line in study.log("a")]
    assert path == [step % 3 for step in range(len(path))]


def coin() -> int:
    return int.from_bytes(os.urandom(1)) % 2


@pytest.mark.parametrize("client", [3], indirect=True)
def test_equal_sources_are_asked_each_time(client):
    """A function without a state looks the same whenever it is sent: its first answer must not be taken for all."""
    sources, states = {"a": coin, "b": coin}, {"a": 2, "b": 2}
    study = cs.learn(sources, 60, states=states, executor=client.get_executor(), progress=False)
    for name in ("a", "b"):
        assert {line.state for line in study.log(name)} == {0, 1}  # fails by chance once in 2**29 runs


@pytest.mark.parametrize("client", [0], indirect=True)
@pytest.mark.parametrize("on_lost_lease", ["restart", "continue"])
def test_a_lost_worker_loses_its_lease_and_the_study_goes_on(client, tmp_path, on_lost_lease):
    marks, states = tmp_path / "marks", {"a": 3, "b": 1}
    marks.mkdir()
    with Study.create(tmp_path / "study.db", states, 40, on_lost_lease=on_lost_lease) as study:
        for state in (0, 1):
            study.tell("a", state)
    study = cs.learn(
        {"a": Deadly(marks, 2), "b": counting},
        where=tmp_path / "study.db",
        executor=client.get_executor(),
        workers=2,
        progress=False,
    )
    assert study.stop_reason == "budget"
    assert study.progress().observations == 40
    assert study.progress().leases == 0
    assert len(list(marks.iterdir())) == 2
    lost = [event.kind for event in study.events()].count("lease abandoned")
    assert lost >= 2  # what waited for a worker that died is lost with it
    assert study.progress().lost == lost
    assert any(f"{lost} observations were lost" in note for note in study.certificate().notes)
    counts = replayed_counts(study, states)
    # The source cannot go on from where the study was: a transition from there to its fresh start was never seen.
    assert set(counts["a"].rows().get(1, {})) <= {2}
    assert len({line.path for line in study.log("a")}) >= 2
    study.close()


def die() -> None:
    os._exit(1)


def test_a_pool_that_is_broken_already_is_one_sentence(tmp_path):
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(BrokenExecutor):
            pool.submit(die).result()
        where = tmp_path / "study.db"
        with pytest.raises(ChainscoutError, match="the executor broke while a study ran on it"):
            cs.learn({"a": counting}, 30, states={"a": 1}, where=where, executor=pool, progress=False)
    with Study.open(where) as study:
        assert study.progress().leases == 0


def test_a_pool_that_breaks_is_one_sentence_and_the_study_goes_on(tmp_path):
    marks, where, states = tmp_path / "marks", tmp_path / "study.db", {"a": 3, "b": 1}
    marks.mkdir()
    sources = {"a": Deadly(marks, 1), "b": counting}
    for _ in range(2):
        with ProcessPoolExecutor(2) as pool:
            if not list(marks.iterdir()):
                with pytest.raises(ChainscoutError, match="the executor broke while a study ran on it"):
                    cs.learn(sources, 30, states=states, where=where, executor=pool, progress=False)
                with Study.open(where) as study:
                    assert study.progress().leases == 0
                    assert study.progress().lost >= 1
            else:
                study = cs.learn(sources, where=where, executor=pool, progress=False)
                assert study.progress().observations == 30
                replayed_counts(study, states)
                study.close()
