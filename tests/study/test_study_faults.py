"""Real processes that are killed, crowded and starved; what was acknowledged is there, once, and the study goes on."""

import random
import subprocess
import sys
import time

import pytest
from study_rules import RULE
from study_worker import SIZES, WAYS, Worker, Written, goes_on, is_sound

from chainscout.errors import LeaseLost
from chainscout.study import Study


def killed_at_random(where, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    written: list[Written] = []
    for n in range(kills):
        worker = Worker(where, f"worker {n}", rng.choice(WAYS))
        time.sleep(rng.uniform(0.0, 0.25))
        written.append(worker.kill())
    study = is_sound(where, written)
    goes_on(study)
    study.close()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, folder):
    place = folder / "study.db" if request.param == "sqlite" else request.getfixturevalue("server").address()
    Study.create(place, SIZES, policy=RULE).close()
    return place


def test_a_writer_is_killed_at_any_moment(where):
    killed_at_random(where, 20, seed=1)


@pytest.mark.soak
def test_a_writer_is_killed_at_a_thousand_moments(where):
    killed_at_random(where, 1000, seed=2)


def gather(workers: list[Worker]) -> list[Written]:
    """What they all wrote down, once they are done."""
    written = [worker.finish() for worker in workers]
    assert [one.words for one in written] == ["done"] * len(workers)
    return written


def crowd(where, workers: int, number: int) -> None:
    written = gather([Worker(where, f"worker {n}", "lease", number) for n in range(workers)])
    assert [len(one) for one in written] == [number] * workers
    study = is_sound(where, written)
    assert study.progress().observations == workers * number
    assert study.progress().leases == 0
    assert study.progress().lost == 0
    study.close()


def test_eight_workers_at_once(where):
    crowd(where, 8, 25)


@pytest.mark.soak
def test_eight_workers_for_a_long_time(where):
    crowd(where, 8, 2000)


def test_workers_are_killed_while_others_work(where):
    """More workers than the machine has cores, killed and replaced; the others hear nothing of it."""
    rng = random.Random(3)
    running = [Worker(where, f"worker {n}", "lease", 60) for n in range(4)]
    written = []
    for n in range(6):
        victim = Worker(where, f"victim {n}", "lease")
        time.sleep(rng.uniform(0.0, 0.1))
        written.append(victim.kill())
    is_sound(where, written + gather(running)).close()


def test_the_budget_is_exact_under_a_crowd(where):
    with Study.open(where, RULE) as study:
        study.extend(budget=60)
    written = gather([Worker(where, f"worker {n}", "lease") for n in range(4)])
    assert sum(map(len, written)) == 60
    study = is_sound(where, written)
    assert study.stop_reason == "budget"
    study.close()


def test_workers_die_and_their_chains_go_on(where):
    """Leases of the dead end after their time, and their paths with them; others walk paths of their own."""
    with Study.open(where, RULE) as study:
        dead = [study.worker(f"dead {n}", renews=False).lease(0.5, wait=0) for n in range(len(SIZES))]
        assert study.progress().leases == len(SIZES)
    time.sleep(0.6)
    written = gather([Worker(where, f"worker {n}", "lease", 10) for n in range(3)])
    assert [len(one) for one in written] == [10] * 3
    study = is_sound(where, written)
    assert study.progress().lost == len(SIZES)
    for lease in dead:
        with pytest.raises(LeaseLost):
            study.tell(lease.chain, 0, token=lease.token)
    study.audit()
    study.close()


def restart_under_load(server, times: int, number: int) -> None:
    where = server.address()
    Study.create(where, SIZES, policy=RULE).close()
    running = [Worker(where, f"worker {n}", "lease", number) for n in range(3)]
    for _ in range(times):
        time.sleep(0.3)
        server.restart()
    written = gather(running)
    assert [len(one) for one in written] == [number] * 3
    is_sound(where, written).close()


def test_postgres_is_restarted_under_load(own_server):
    restart_under_load(own_server, 2, 150)


def test_a_server_that_was_restarted_between_two_tells(own_server):
    """The journal settles by itself what was stored: each observation is there once."""
    with Study.create(own_server.address(), SIZES, policy=RULE) as study:
        name, size = next(iter(SIZES.items()))
        for step in range(3 * size):
            study.tell(name, step % size)
        own_server.restart()
        study.tell(name, 0)
        study.tell(name, 1)
        own_server.restart()
        assert study.ask() in SIZES
        study.tell(name, 0)
        assert study.progress().observations == 3 * size + 3
        study.audit()


@pytest.mark.soak
def test_postgres_is_restarted_many_times_under_load(own_server):
    restart_under_load(own_server, 30, 3000)


# -- a study that is open more than once

ANOTHER = """
import sys
from chainscout.study import Study
with Study.open(sys.argv[1], continuing=True) as study:
    study.tell("a", 0)
"""


def test_a_process_that_opens_a_study_again_loses_nothing(tmp_path):
    """POSIX takes all locks on a file from a process that closes it once, whoever opened it.

    Without them the next process that closes the study believes that it is the last, and removes the write-ahead log:
    what this process tells from then on would go to a file that has no name any more.
    """
    where = tmp_path / "study.db"
    with Study.create(where, {"a": 2, "b": 2}, budget=1000) as study, Study.open(where, read_only=True) as reader:
        told = 0
        for _ in range(3):
            subprocess.run([sys.executable, "-c", ANOTHER, str(where)], check=True)
            study.tell("b", 1)
            told += 2
            assert study.progress().observations == told
            assert reader.progress().observations == told
            Study.open(where, read_only=True).close()
    with Study.open(where) as study:
        assert study.progress().observations == told
        study.audit()
