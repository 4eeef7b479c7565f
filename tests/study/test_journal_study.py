"""A study on a journal in memory, in a file and on a server: what the public class does over the fold."""

import asyncio
import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from chainscout.counts import Counts
from chainscout.errors import BarePathsWarning, InputError, LeaseLost, NothingFree, OutOfStep, OverBudget, StudyFinished
from chainscout.journal.entry import Kind
from chainscout.study import keeper as _keeper
from chainscout.study.settings import StudySettings
from chainscout.study.snapshot import packed_state
from chainscout.study.study import Study
from chainscout.study.views import StopReason
from chainscout.study.worker import LeaseStatus

CHAINS = {"north": ["idle", "busy", "down"], "south": 4}
SETTINGS = StudySettings(budget=60, policy="scout")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def where(request, folder):
    if request.param == "postgres":
        return request.getfixturevalue("server").address()
    return None if request.param == "memory" else folder / "study.db"


def step(name, rng):
    return rng.choice(["idle", "busy", "down"]) if name == "north" else rng.randrange(4)


def test_ask_and_tell_until_the_budget_is_spent(where):
    rng = random.Random(0)
    with Study.from_settings(where, CHAINS, SETTINGS) as study:
        told = {name: [] for name in CHAINS}
        while not study.finished:
            name = study.ask()
            told[name].append(step(name, rng))
            study.tell(name, told[name][-1])
        assert study.stop_reason is StopReason.BUDGET
        assert sum(study.allocation().values()) == 60
        for name, states in told.items():
            assert study.counts(name).rows() == Counts.from_path(states, CHAINS[name]).rows()
            assert [line.state for line in study.log(name)] == states
        with pytest.raises(StudyFinished):
            study.tell("north", "idle")
        study.extend(budget=70)
        study.tell("north", "idle")
        study.audit()


def test_an_opened_study_begins_new_paths_unless_its_processes_stand_where_it_was_left(folder):
    where = folder / "study.db"
    with Study.from_settings(where, CHAINS, SETTINGS) as study:
        study.tell("south", 0)
        study.tell("south", 1)
    with Study.open(where) as study:
        assert study.tell("south", 2).path == 2
    with Study.open(where, continuing=True) as study:
        assert study.tell("south", 3) == (2, 3)
        assert study.counts("south").rows() == {0: {1: 1}, 2: {3: 1}}


def test_what_another_program_told_meanwhile_is_not_taken_for_a_retry(folder):
    where = folder / "study.db"
    with Study.from_settings(where, CHAINS, SETTINGS) as one:
        one.tell("south", 0, path=1, step=1)
        with Study.open(where) as other:
            assert other.tell("south", 0, path=1, step=1) == (1, 2)
            with pytest.raises(InputError, match="name the path of 'south' too"):
                other.tell("south", 0, step=1)
            one.tell("south", 1, path=1, step=2)
            with pytest.raises(OutOfStep, match="was told by somebody else meanwhile: nothing was changed"):
                other.tell("south", 1, path=1, step=2)
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(one.tell, "south", 1, path=1, step=2).result() == (1, 3)


def test_a_study_that_is_opened_for_every_observation_is_warned(folder):
    where = folder / "study.db"
    with Study.from_settings(where, CHAINS, SETTINGS) as study:
        study.tell("south", 0)
    with Study.open(where) as study, pytest.warns(BarePathsWarning, match="continuing=True") as caught:
        study.tell("south", 1)
    assert caught[0].filename == __file__
    with Study.open(where) as study, pytest.warns(BarePathsWarning):
        study.tell_many([("south", 1), ("north", "idle")])
    with Study.open(where) as study:
        study.worker("rig", renews=False).lease(chain="north").tell("idle")
        with pytest.warns(BarePathsWarning, match="keep one for all leases"):
            study.worker("rig", renews=False).lease(chain="north")


def test_two_threads_walk_paths_of_their_own(where):
    with Study.from_settings(where, CHAINS, SETTINGS) as study:
        study.tell("south", 0)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(study.tell, "south", 1).result() == (2, 2)
            assert pool.submit(study.tell, "south", 2).result() == (2, 3)
        study.tell("south", 3)
        assert study.counts("south", everything=True).rows() == {0: {3: 1}, 1: {2: 1}}


def test_two_tasks_walk_paths_of_their_own():
    async def walk(study, states):
        for state in states:
            study.tell("south", state)
            await asyncio.sleep(0)

    async def both(study):
        await asyncio.gather(walk(study, [0, 0, 0]), walk(study, [1, 1, 1]))

    with Study.from_settings(None, CHAINS, SETTINGS) as study:
        asyncio.run(both(study))
        assert study.counts("south", everything=True).rows() == {0: {0: 2}, 1: {1: 2}}


def test_workers_take_one_lease_after_the_other_in_one_append_each(where):
    rng = random.Random(1)
    with Study.from_settings(where, CHAINS, SETTINGS) as study:
        with study.worker("rig 7", renews=False) as worker:
            for lease in worker:
                lease.tell(step(lease.chain, rng))
        assert sum(study.allocation().values()) == 60
        kinds = [entry.kind for page in study._keeper.journal.pages() for entry in page]
        assert kinds.count(Kind.LEASE) == kinds.count(Kind.TOLD) == 60
        assert study.finished


def test_many_threads_with_workers_share_a_study(where):
    with Study.create(where, {"a": 2, "b": 3}, 200, "uniform") as study:

        def work(seed):
            rng = random.Random(seed)
            with study.worker(f"w{seed}", renews=False) as worker:
                for lease in worker:
                    lease.tell(rng.randrange(2))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(study.allocation().values()) == 200
        study.audit()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_open_studies_that_work_side_by_side_know_the_same_at_the_end(kind, request, folder):
    where = folder / "study.db" if kind == "sqlite" else request.getfixturevalue("server").address()
    Study.create(where, {"a": 2, "b": 3, "c": 2}, 300, "scout").close()
    opened = [Study.open(where) for _ in range(3)]

    def work(number):
        study, rng = opened[number], random.Random(number)
        if number == 0:
            with suppress(StudyFinished, NothingFree, OverBudget):  # the rest is promised to the others
                for _ in range(300):
                    study.tell(study.ask(), rng.randrange(2))
            return
        with study.worker(f"w{number}", renews=False) as worker:
            for lease in worker:
                if rng.random() < 0.05:
                    lease.abandon()
                    continue
                lease.tell(rng.randrange(2))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    states = [study._keeper.state() for study in opened]
    assert states[0].used <= 300
    assert len({packed_state(state) for state in states}) == 1
    for study in opened:
        study.audit()
        study.close()


def test_two_processes_know_the_same(folder):
    where = folder / "study.db"
    rng = random.Random(2)
    with Study.from_settings(where, CHAINS, SETTINGS) as one, Study.open(where) as other:
        for _ in range(20):
            study = rng.choice([one, other])
            name = study.ask()
            study.tell(name, step(name, rng))
            assert one.ask() == other.ask()
        assert packed_state(one._keeper.state()) == packed_state(other._keeper.state())


def test_a_study_with_a_target_ends_when_its_bounds_have_reached_it(where):
    rng = random.Random(3)
    with Study.create(where, {"a": 2, "b": 2}, target_loss=0.2) as study:
        while not study.finished:
            study.tell(study.ask(), rng.randrange(2))
            assert sum(study.allocation().values()) < 1_000
        assert study.stop_reason is StopReason.TARGET_LOSS
        assert all(found.bound <= 0.2 for found in study.bounds().values())
        for chain in study._keeper.state().chains:
            assert chain.done
        study.extend(target_loss=0.1)
        assert not study.finished


@pytest.mark.parametrize("deaths", [0, 3])
def test_dead_workers_cost_holes_and_not_the_study(deaths):
    rng = random.Random(6)
    with Study.create(None, {"a": 2}, target_loss=0.05, certificate="mixture") as study:
        workers = [study.worker(f"w{number}", renews=False) for number in range(2)]
        for number in range(5_000):
            if study.finished:
                break
            worker = workers[number % 2]
            lease = worker.lease()
            if deaths and lease.state is not None and number % 37 == 0:
                deaths -= 1
                lease.abandon()
            elif lease is not None:
                lease.tell(rng.randrange(2))
        assert study.stop_reason is StopReason.TARGET_LOSS
        assert study._keeper.state().lost in (0, 3)
        assert number < 500
        (found,) = study.bounds().values()
        assert found.bound <= 0.05


def test_who_asks_looks_at_the_bounds_that_a_dead_process_should_have_looked_at(folder):
    where = folder / "study.db"
    rng = random.Random(7)
    with Study.create(where, {"a": 2}, target_loss=0.25) as study:
        for _ in range(20):
            study.tell(study.ask(), rng.randrange(2))
        study._keeper.settle = lambda: None  # from here on it dies between its tells and its looks
        while not study._keeper.state().chains[0].rests():
            study.tell("a", rng.randrange(2))
            assert study.allocation()["a"] < 1_000
        with Study.open(where, read_only=True) as reader, pytest.raises(NothingFree):
            reader.ask()
        with Study.open(where) as other:
            assert other.ask() == "a"


def test_a_snapshot_is_a_cache(folder, monkeypatch):
    monkeypatch.setattr(_keeper, "TAIL", 20)
    monkeypatch.setattr(_keeper, "OBJECTS", 1)
    where = folder / "study.db"
    rng = random.Random(4)
    with Study.create(where, CHAINS, 200, "scout") as study:
        for _ in range(80):
            name = study.ask()
            study.tell(name, step(name, rng))
        kept = study._keeper.journal.snapshot()
        assert kept is not None
        with Study.open(where, read_only=True) as other:
            assert 0 < kept.head.number == other._keeper._kept < study._keeper.state().head.number
            assert packed_state(other._keeper.state()) == packed_state(study._keeper.state())
            other.audit()


def test_one_seed_for_two_workers_is_found(where):
    with Study.create(where, {"a": 4}, policy="uniform") as study:
        for name in ("one", "two"):
            rng = random.Random(5)
            with study.worker(name, renews=False) as worker:
                for _ in range(64):
                    lease = worker.lease()
                    lease.tell(rng.randrange(4))
        assert study._keeper.state().spoilt
        assert not study._keeper.state().chains[0].done


def test_a_late_value_can_be_told(where):
    with Study.create(where, {"a": 2}, policy="uniform") as study:
        worker = study.worker("slow", renews=False)
        worker.lease().tell(0)
        lease = worker.lease(0.001)
        now = study._keeper.journal.now() + 1000
        study._keeper.journal.now = lambda: now
        with pytest.raises(LeaseLost, match="ran out"):
            lease.tell(1)
        lease.tell(1, late=True)
        assert lease.status is LeaseStatus.ENDED
        assert study.counts("a").rows() == {0: {1: 1}}


def test_a_policy_of_the_users_is_needed_to_go_on(folder):
    from study_rules import RULE

    where = folder / "study.db"
    Study.create(where, {"a": 2}, policy=RULE).close()
    with pytest.raises(InputError, match="the study uses the policy 'gini-rule', which is not built in"):
        Study.open(where)
    with Study.open(where, read_only=True) as study:
        assert study.names == ["a"]
    with Study.open(where, RULE) as study:
        assert study.ask() == "a"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_refuses_also_while_a_thread_of_the_parent_holds_the_lock(where):
    study = Study.create(where, CHAINS)
    study.tell("south", 1)
    here, there = threading.Event(), threading.Event()

    def hold():
        with study._keeper.lock():
            here.set()
            there.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    here.wait()
    child = os.fork()
    if not child:
        signal.alarm(10)
        calls = (study.ask, study.progress, study.look, lambda: study.tell("south", 1), lambda: study.names)
        refused = 0
        for call in calls:
            with suppress(InputError):
                call()
                refused -= 1
            refused += 1
        os._exit(refused != len(calls))
    there.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    study.tell("south", 2)
    assert study.progress().observations == 2
    study.close()
