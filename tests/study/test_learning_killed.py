"""A call of ``learn`` that was killed is made again at once: nothing crashes, and the checks go on behind the kill."""

import itertools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext

import pytest

import chainscout as cs
from chainscout.errors import LeaseLost
from chainscout.journal.entry import Kind
from chainscout.study import Study, process
from chainscout.study.worker import Worker

MATRIX = [[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.5, 0.25, 0.25]]
STATES = dict.fromkeys("ab", 3)
#: Kills happen at each of the first observations. A few resumed studies go on to the end, the others for some steps.
KILLS, END, STEPS, WHOLE = 1_100, 1_400, 4, 550


class Killed(BaseException):
    """Nobody catches it."""


def walk(seed, meanwhile=lambda: None):
    """States of the chain. ``meanwhile`` happens while each of them is drawn."""
    rng, state = random.Random(seed), 0
    while True:
        meanwhile()
        state = rng.choices(range(3), MATRIX[state])[0]
        yield state


def sources(seed, meanwhile=lambda: None):
    return {name: walk(f"{seed} {name}", meanwhile) for name in STATES}


def learned(where, budget, seed, executor=None, meanwhile=lambda: None):
    arguments = {"states": STATES, "deadline": 1e10, "executor": executor, "progress": False}
    return cs.learn(sources(seed, meanwhile), budget, where=where, certificate="mixture", **arguments)


def threads(number):
    return ThreadPoolExecutor(number) if number else nullcontext()


def killed(folder, workers, every):
    """The database as a kill leaves it, by the number of observations told: at one in ``every`` of them.

    A process that is killed leaves what it has committed, and no more. So the database is copied while a source is at
    work, where the program knows nothing of the copy and can give nothing back. When the copies are used, the call of
    ``learn`` that wrote them has ended: its leases are a dead program's.
    """
    where, told, found = folder / "study.db", itertools.count(), {}

    def copy():
        number = next(told)
        if number == KILLS:
            raise Killed
        if number % every == every - 1:
            found[number] = folder / f"killed {number}.db"
            with closing(sqlite3.connect(where)) as now, closing(sqlite3.connect(found[number])) as then:
                now.backup(then)

    with threads(workers) as pool, pytest.raises(Killed):
        learned(where, None, 0, pool, copy)
    return found


@pytest.mark.parametrize(("workers", "every"), [(0, 1), (1, 10)], ids=["one at a time", "executor"])
def test_the_checks_go_on_behind_a_kill_at_any_observation(folder, workers, every):
    for told, where in killed(folder, workers, every).items():
        end = END if told % WHOLE == WHOLE - 1 else told + STEPS
        with threads(workers) as pool, learned(where, end, told + 1, pool) as study:
            progress, checks = study.progress(), study.checks()
            assert (progress.observations, progress.leases, progress.lost) == (end, 0, 1)
            assert checks.waiting <= 0.01 * (progress.observations - progress.paths)
            assert checks.waiting < STEPS - len(STATES)  # a study of a few steps goes on behind the kill too
            if end == END:
                study.audit()
        where.unlink()


def test_a_source_that_repeats_itself_loses_nothing(folder):
    """The draw that was under way when the program was killed is made again."""
    matrix = cs.MarkovChain(MATRIX)
    where, copy = folder / "study.db", folder / "copy.db"
    cs.learn({"a": matrix}, 40, where=where, progress=False).close()
    with Study.open(where) as study, process.running() as mark:
        study.extend(budget=60)
        Worker(study._keeper, "learn", renews=False, program=mark).lease(continuing=True)
    with (
        cs.learn({"a": matrix}, 60, where=where, progress=False) as study,
        cs.learn({"a": matrix}, 60, where=copy, progress=False) as again,
    ):
        assert study.progress().lost == 0
        assert study.counts("a") == again.counts("a")


def test_a_resumed_call_advances_the_chains_that_the_rule_names(folder):
    files = [folder / "study.db", folder / "copy.db"]
    learned(files[0], 60, 1).close()
    shutil.copy(*files)
    drawn = sources(2)
    with learned(files[0], 160, 2) as study, Study.open(files[1]) as copy:
        copy.extend(budget=160)
        while not copy.finished:
            name = copy.ask()
            copy.tell(name, next(drawn[name]))
        assert [(line.chain, line.state) for line in study.log()] == [(line.chain, line.state) for line in copy.log()]


def test_a_program_that_runs_keeps_its_leases(folder):
    where = folder / "study.db"
    with learned(where, 30, 1) as study, process.running() as mark:
        study.extend(budget=60)
        alive = Worker(study._keeper, "learn", renews=False, program=mark).lease()
        unmarked = study.worker("rig").lease()
        with threads(1) as pool:
            beside = pool.submit(learned, where, 60, 2)
            while study.progress().observations < 58:
                time.sleep(0.01)
            alive.tell(0)
            unmarked.tell(0)
            beside.result().close()
        assert study.progress().lost == 0
    with Study.open(where) as study, process.running() as mark:
        study.extend(budget=80)
        dead = Worker(study._keeper, "learn", renews=False, program=mark).lease()
    with learned(where, 80, 3) as study:
        assert [event.kind for event in study.events()].count("lease abandoned") == 1
        dead._keeper = study._keeper
        with pytest.raises(LeaseLost):
            dead.tell(0)


WAITING = """
import sys
from chainscout.study import process
with process.running() as mark:
    print(mark, flush=True)
    sys.stdin.read()
"""


def test_which_programs_are_gone():
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", WAITING], stdin=pipe, stdout=pipe, text=True) as other:
        token = "5eed" + other.stdout.readline().strip()
        assert not process.is_gone(token)
        other.kill()
        other.wait()
        assert process.is_gone(token)
    with process.running() as mark:
        assert not process.is_gone("5eed" + mark)
        _, machine, number, begun, name = mark.split("-")
        if begun != "0":  # the same number was another process's before
            assert process.is_gone(f"5eed-{machine}-{number}-{int(begun) - 1}-{name}")
        assert not process.is_gone(f"5eed-elsewhere-{other.pid}-{begun}-{name}")
    assert process.is_gone("5eed" + mark)
    assert not process.is_gone("5eed")


def test_a_later_path_without_an_observation_leaves_no_earlier_one():
    """Two calls of ``learn`` side by side on a chain: the checks wait for the first one's draw, whoever looks."""
    study = Study.create(None, {"a": 3})
    first, second = Worker(study._keeper, "learn", renews=False), Worker(study._keeper, "learn", renews=False)
    with first, second:
        lease = first.lease(steps=100)
        for step in range(20):
            lease.tell(step % 3)
        second.lease()
        assert study.checks()[1].cards == 19
        assert (study.paths("a").pending, study.paths("a").lost) == (2, 0)
        lease.tell(1)
        assert study.checks()[1].cards == 20


KILLED = """
import sys
sys.path[:0] = [{tests!r}]
from test_learning_killed import learned, threads
if __name__ == "__main__":
    with threads({workers}) as pool:
        learned({where!r}, {budget}, {seed}, pool, {meanwhile}).close()
"""


@pytest.mark.parametrize("workers", [0, 3], ids=["one at a time", "three workers"])
def test_old_slots_are_given_up_before_the_first_new_one(folder, request, workers):
    """A program that is killed while all of its sources are at work leaves a hole for each of them."""
    where = folder / "study.db"
    given = {"tests": str(request.path.parent), "where": str(where), "workers": workers, "budget": None, "seed": 1}
    script = KILLED.format(**given, meanwhile="__import__('functools').partial(__import__('time').sleep, 0.01)")
    program = subprocess.Popen([sys.executable, "-c", script])
    while not told(where) >= 30:
        time.sleep(0.001)
    program.kill()
    program.wait()
    with Study.open(where, read_only=True) as study:
        held, last = set(study._keeper.state().leases), study._keeper.state().head.number
    assert len(held) == (2 if workers else 1)  # there are two chains
    with threads(workers) as pool, learned(where, told(where) + 20, 2, pool) as study:
        assert (study.progress().lost, study.progress().leases) == (len(held), 0)
        kinds = [(entry.kind, entry.by) for page in study._keeper.pages() for entry in page if entry.number > last]
        begun = [kind for kind, _ in kinds].index(Kind.LEASE)
        assert {by for kind, by in kinds[:begun] if kind is Kind.ABANDONED} == held
        study.audit()


def test_three_kills_cost_little(folder, request):
    """The certificate is within 10 % of what all transitions would give without a hole, and checks read nearly all."""
    where = folder / "study.db"
    for kill in range(3):
        given = {"tests": str(request.path.parent), "where": str(where), "workers": 0, "budget": None, "seed": kill}
        script = KILLED.format(**given, meanwhile="lambda: None")
        program = subprocess.Popen([sys.executable, "-c", script])
        while not told(where) >= 400 * (kill + 1):
            time.sleep(0.001)
        program.kill()
        program.wait()
    with learned(where, told(where) + 400, 3) as study:
        assert (study.progress().lost, study.progress().leases) == (3, 0)
        whole = cs.certify({name: study.counts(name, everything=True) for name in STATES}, method="mixture")
        assert whole.max <= study.certificate().max <= 1.1 * whole.max
        assert study.checks().waiting <= 0.01 * study.progress().observations
        study.audit()


@pytest.mark.soak
@pytest.mark.parametrize("workers", [0, 1, 3], ids=["one at a time", "one worker", "three workers"])
def test_real_kills(folder, request, workers):
    """Programs that are killed at a random moment. With several workers a later draw may have been known then."""
    rng, whole = random.Random(workers), 0
    for kill in range(40):
        where = folder / f"{kill}.db"
        given = {"tests": str(request.path.parent), "where": str(where), "workers": workers, "budget": None}
        script = KILLED.format(**given, seed=repr(f"first {kill}"), meanwhile="lambda: None")
        process = subprocess.Popen([sys.executable, "-c", script])
        at = rng.randrange(1, 1_100)
        while not told(where) >= at:
            time.sleep(0.001)
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with threads(workers) as pool, learned(where, told(where) + 300, f"second {kill}", pool) as study:
            progress, checks = study.progress(), study.checks()
            study.audit()
            whole += checks.waiting <= 0.01 * (progress.observations - progress.paths)
            if workers < 2:
                assert whole == kill + 1
            elif checks.waiting:
                assert "was given up after a later one was known" in checks.remarks[0]
    print(f"{whole} of 40")


def told(where):
    """How many observations a study has, if there is a study."""
    try:
        with closing(sqlite3.connect(f"file:{where}?mode=ro", uri=True)) as study:
            return study.execute("SELECT COUNT(*) FROM journal WHERE kind = ?", (int(Kind.TOLD),)).fetchone()[0]
    except sqlite3.Error:
        return 0
