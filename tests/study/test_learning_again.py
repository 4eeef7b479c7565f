"""``learn`` on a study whose path was broken: what was counted before is not counted again, wherever it is kept."""

import itertools
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from learning_sources import CHAIN, RECORDED, recorded, threads
from study_checks import replayed_counts
from study_places import set_clock

import chainscout as cs
from chainscout.errors import InputError
from chainscout.learning.learn import run
from chainscout.random import Walk
from chainscout.sources import Recorded, convert
from chainscout.study import Study

#: Observations before the path is broken, and in all.
BROKEN, BUDGET = 25, 90


def expected(sources):
    """The states that belong to the study, and where its paths begin. Every simulated path has a stream of its own."""
    if sources is recorded:
        return RECORDED[:BUDGET], [0, BROKEN, 70]
    walk = Walk(CHAIN, seed=3)
    first = list(itertools.islice(walk, BROKEN))
    walk.take(2)
    return first + list(itertools.islice(walk, BUDGET - BROKEN)), [0, BROKEN]


def check(study, sources):
    """The log is what the sources have, each state once, and no transition leads from one path to the next."""
    states, starts = expected(sources)
    lines = list(study.log("a"))
    assert [line.state for line in lines] == states
    assert [k for k, line in enumerate(lines) if k == 0 or line.path != lines[k - 1].path] == starts
    counts = cs.Counts(3)
    for k, state in enumerate(states):
        if k in starts:
            counts.restart()
        counts.record(state)
    assert (study.counts("a").transitions == counts.transitions).all()
    replayed_counts(study, {"a": 3})


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
def test_a_lost_lease_does_not_repeat_what_was_told(place, sources, executor):
    study = place.create({"a": 3}, BUDGET)
    (source,) = sources().values()
    now = time.time()
    set_clock(study, now)
    worker = study.worker("worker", renews=False)
    for _ in range(BROKEN):
        worker.lease(30).tell(source.advance()[0])
    worker.lease(30)  # and the worker is never heard of again
    study = place.reopen(study)
    set_clock(study, now + 31)
    with threads(executor) as pool:
        run(study, sources(), executor=pool, progress=False)
    assert study.progress().lost == 1
    check(study, sources)


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
def test_a_restart_and_a_larger_budget_do_not_repeat_what_was_told(place, sources, executor):
    study = place.create({"a": 3}, BROKEN)
    run(study, sources(), progress=False)
    study.restart("a")
    study = place.reopen(study)
    study.extend(budget=BUDGET)
    with threads(executor) as pool:
        run(study, sources(), executor=pool, progress=False)
    check(study, sources)


@pytest.mark.parametrize("ways", list(itertools.product([False, True], repeat=3)), ids=str)
def test_interrupted_and_gone_on_with_is_uninterrupted(where, sources, ways):
    """With an executor or without one, in any order, and whatever breaks off while a source is at work."""
    study = Study.create(where, {"a": 3}, BUDGET)
    for number, executor in enumerate(ways):
        (source,) = sources().values()
        stopping = _stopping(source, 20) if number < 2 else source
        with threads(executor) as pool, nullcontext() if number == 2 else pytest.raises(KeyboardInterrupt):
            run(study, {"a": stopping}, executor=pool, progress=False)
        assert study.progress().observations == (20, 40, BUDGET)[number]
        if number < 2:
            study.close()
            study = Study.open(where)
    (source,) = sources().values()
    lines = list(study.log("a"))
    assert [line.state for line in lines] == [source.advance()[0] for _ in range(BUDGET)]
    assert [line.path for line in lines] == ([1] * 70 + [2] * 20 if sources is recorded else [1] * BUDGET)
    assert (study.progress().lost, study.progress().leases) == (0, 0)
    study.close()


def _stopping(source, number):
    """The source, which is interrupted after so many states, when it has already drawn the next one."""

    class Stopping(type(source)):
        taken = 0

        def advance(self):
            self.taken += 1
            state = super().advance()
            if self.taken > number:
                raise KeyboardInterrupt
            return state

    source.__class__ = Stopping
    return source


def test_learning_with_a_larger_budget_after_a_restart(folder, sources):
    where, options = folder / "study.db", {"states": {"a": 3}, "progress": False}
    with cs.learn(sources(), BROKEN, where=where, **options) as study:
        study.restart("a")
    with cs.learn(sources(), BUDGET, where=where, **options) as study:
        check(study, sources)


KILLED = """
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
import chainscout as cs

sys.path[:0] = [{tests!r}, os.path.dirname({tests!r})]
from learning_sources import {sources} as sources
from test_learning_again import BROKEN, BUDGET
(source,) = sources().values()

class Deadly(type(source)):
    taken = 0
    def advance(self):
        self.taken += 1
        if self.taken > BROKEN:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().advance()

source.__class__ = Deadly
cs.learn({{"a": source}}, BUDGET, where={where!r}, states={{"a": 3}}, executor=ThreadPoolExecutor(1), progress=False)
"""


def test_a_killed_process_and_the_same_call_again(folder, sources, request):
    where = folder / "study.db"
    script = KILLED.format(tests=str(request.path.parent), where=str(where), sources=sources.__name__)
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with Study.open(where) as study:
        assert study.progress().observations == BROKEN
    with ThreadPoolExecutor(1) as pool:
        study = cs.learn(sources(), BUDGET, where=where, executor=pool, states={"a": 3}, progress=False)
    with study, cs.learn(sources(), BUDGET, states={"a": 3}, progress=False) as unbroken:
        assert study.progress().lost == 0  # the source gives the same state again
        told = ([(line.path, line.step, line.state) for line in each.log("a")] for each in (study, unbroken))
        assert next(told) == next(told)


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ([0, 1, 2, 0], "observation 3 is 2 in the recording, and the study was told 1: a recording must begin with"),
        ([0, 1], "the study was told 3 observations of it, and 2 are recorded"),
    ],
)
def test_a_recording_of_something_else_is_refused_and_nothing_is_lost(place, path, words, executor):
    study = place.create({"a": 3}, 20)
    with study._program(frozenset()) as make, make("learn") as worker:  # another call of learn
        for state in (0, 1, 1):
            worker.lease().tell(state)
    study = place.reopen(study)
    for _ in range(2):  # the second time too: it was not the first that broke the path
        with (
            threads(executor) as pool,
            pytest.raises(InputError, match=f"the source of the chain 'a' cannot go on where the study is: {words}"),
        ):
            run(study, {"a": Recorded(path)}, executor=pool, progress=False)
    progress = study.progress()
    assert (progress.observations, progress.leases, progress.lost) == (3, 0, 0)
    assert [line.state for line in study.log("a")] == [0, 1, 1]


def test_a_recording_that_has_grown_goes_on_behind_what_was_taken(folder):
    where, options = folder / "study.db", {"states": {"a": 3}, "progress": False}
    cs.learn({"a": Recorded(RECORDED[:40])}, 30, where=where, **options).close()
    with cs.learn({"a": Recorded(RECORDED)}, 120, where=where, **options) as study:
        assert [line.state for line in study.log("a")] == RECORDED[:120]
        assert study.chain("a").paths == 1


def test_a_callable_that_begins_anew_is_new_randomness(place):
    """It cannot go on: after a break its next state is the first of a path, as it always was."""
    study = place.create({"a": 3}, 10)
    run(study, {"a": convert(iter([0, 1, 2, 0, 1, 2, 0, 1, 2, 0]).__next__)}, progress=False)
    study.restart("a")
    study = place.reopen(study)
    study.extend(budget=14)
    run(study, {"a": convert(iter([2, 2, 1, 1]).__next__)}, progress=False)
    assert [line.path for line in study.log("a")] == [1] * 10 + [2] * 4
    assert study.counts("a").transitions[0].tolist() == [0, 3, 0]
