"""``learn`` on threads, on processes and on a Dask cluster, whose workers are really lost."""

import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from study_checks import replayed_counts

import chainscout as cs
from chainscout.errors import ChainscoutError, InputError, SetAsideWarning, SourceError
from chainscout.problems import get
from chainscout.sources import Factory, Place, simulated
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

    with ThreadPoolExecutor(3) as pool, pytest.warns(SetAsideWarning, match="2 chains were set aside"):
        study = cs.learn(
            {"a": broken, "b": lambda: 0, "c": iter("zz")}, 20, states={"a": 1, "b": 1}, executor=pool, progress=False
        )
    assert sorted(study.certificate().aside) == ["a", "c"]
    assert study.progress().lost == 0  # the source never gave a state
    assert study.progress().leases == 0


@pytest.mark.parametrize("executor", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_exception_of_a_source_ends_the_work_of_the_others_in_order(folder, executor):
    """What the others bring is told, and what has not begun is given back: only the state of the broken one is lost."""
    where = folder / "lab.db"
    sources = {"broken": itertools.chain([0], map(int, "x")), "slow": map(slowly, itertools.count())}
    with executor(2) as pool, pytest.raises(ValueError, match="invalid literal") as caught:
        cs.learn(sources, 30, where=where, states={"broken": 1, "slow": 1}, executor=pool, workers=2, progress=False)
    with Study.open(where) as study:
        study.audit()
        told = study.progress()
        assert (told.lost, told.leases) == (1, 0)
        assert study.allocation()["slow"] >= 1
        assert study.allocation()["broken"] == 1
    kept = "1 observation" if told.observations == 1 else f"{told.observations} observations"
    assert caught.value.__notes__ == [
        "The source of the chain 'broken' raised this.",
        f"The study has kept {kept}: the same call of learn continues it.",
    ]


def slowly(number: int) -> int:
    time.sleep(0.1)
    return 0


def ups_and_downs():
    yield from itertools.cycle(("up", "down"))


@pytest.mark.parametrize(("source", "lost"), [(ups_and_downs, 1), (ups_and_downs(), 0)])
def test_a_source_that_no_process_can_get_is_one_sentence(folder, source, lost):
    """A generator function can be sent, and comes back as a generator: its first state is lost."""
    with ProcessPoolExecutor(1) as pool, pytest.raises(InputError, match="of the chain 'a' cannot be sent to another"):
        cs.learn({"a": source}, 20, where=folder / "lab.db", executor=pool, progress=False)
    with Study.open(folder / "lab.db") as study:
        study.audit()
        assert (study.progress().observations, study.progress().lost, study.progress().leases) == (0, lost, 0)


def test_every_source_that_raised_is_named():
    def broken():
        time.sleep(0.05)
        raise ZeroDivisionError

    with ThreadPoolExecutor(2) as pool, pytest.raises(ZeroDivisionError) as caught:
        cs.learn(dict.fromkeys("ab", broken), 20, states={"a": 1, "b": 1}, executor=pool, workers=2, progress=False)
    text = "".join(caught.value.__notes__)
    first, second = ("a", "b") if "chain 'a' raised" in text else ("b", "a")
    assert f"The source of the chain {first!r} raised this." in text
    assert f"The chain {second!r} ended with an error too: ZeroDivisionError()" in text
    assert "The study was in memory and is gone" in text


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


# -- more workers than chains


class Cycle:
    """0, 1, 2, 0, … from a state of its own: any other transition was never seen."""

    at_work = most = 0
    lock = threading.Lock()

    def __init__(self, state):
        self.state = state

    def __call__(self):
        with Cycle.lock:
            Cycle.at_work += 1
            Cycle.most = max(Cycle.most, Cycle.at_work)
        time.sleep(0.01)
        with Cycle.lock:
            Cycle.at_work -= 1
        self.state = (self.state + 1) % 3
        return self.state


def is_cyclic(counts):
    return (counts.transitions == counts.transitions * np.roll(np.eye(3, dtype=int), 1, axis=1)).all()


@pytest.mark.parametrize("others", [{}, {"b": lambda: 0}], ids=["alone", "beside another"])
def test_a_factory_keeps_more_workers_than_chains_busy(folder, others):
    made = itertools.count()
    sources = {"a": Factory(lambda: Cycle(next(made))), **others}
    Cycle.most = 0
    where, states = folder / "study.db", {"a": 3, **dict.fromkeys(others, 1)}
    for budget in (60, 120):
        with ThreadPoolExecutor(6) as pool:
            study = cs.learn(sources, budget, where=where, states=states, executor=pool, progress=False)
        progress = study.progress()
        assert (progress.observations, progress.leases, progress.lost) == (budget, 0, 0)
        assert is_cyclic(study.counts("a"))
        replayed_counts(study, states)
        study.audit()
        # A copy keeps its path: there are no more paths than copies, in each of two programs.
        assert study.chain("a").paths <= 6 * budget // 60
        assert study.chain("a").leases == 0
        study.close()
    assert Cycle.most == 6 if not others else Cycle.most >= 5
    assert next(made) <= 12


def test_copies_of_a_simulated_chain_have_streams_of_their_own():
    problem = get("unlike")
    sources = {name: Factory(lambda name=name: simulated(problem, seed=1)[name]) for name in problem.names}
    with ThreadPoolExecutor(9) as pool:
        study = cs.learn(sources, 300, executor=pool, workers=9, progress=False)
    paths = {}
    for line in study.log():
        paths.setdefault((line.chain, line.path), []).append(line.state)
    assert len(paths) > len(problem.names)
    for (name, number), path in paths.items():
        source = simulated(problem, seed=1)[name]
        source.resume(Place(number, 1, None, 0))
        assert path == [source.advance()[0] for _ in path]


def test_a_factory_without_an_executor_is_one_source():
    made = itertools.count()
    study = cs.learn({"a": Factory(lambda: Cycle(next(made)))}, 10, states={"a": 3}, progress=False)
    assert is_cyclic(study.counts("a"))
    assert (study.chain("a").paths, next(made)) == (1, 1)


def test_one_source_is_at_work_once_at_a_time():
    Cycle.most = 0
    with ThreadPoolExecutor(4) as pool:
        study = cs.learn({"a": Cycle(0)}, 20, states={"a": 3}, executor=pool, progress=False)
    assert (Cycle.most, study.chain("a").paths) == (1, 1)
    assert is_cyclic(study.counts("a"))


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
@pytest.mark.parametrize("paths", ["own", "shared"])
def test_a_lost_worker_loses_its_lease_and_the_study_goes_on(client, tmp_path, paths):
    marks, states = tmp_path / "marks", {"a": 3, "b": 1}
    marks.mkdir()
    with Study.create(tmp_path / "study.db", states, 40, paths=paths) as study, study.worker("before") as worker:
        lease = worker.lease(steps=2, without={"b"})
        for state in (0, 1):
            lease.tell(state)
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
