"""``learn`` on a study whose path was broken: what was counted before is not counted again, wherever it is kept."""

import itertools
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from study_checks import replayed_counts
from study_places import set_clock

import chainscout as cs
from chainscout.engine import Walk
from chainscout.errors import InputError, SourceEnded, SourceError
from chainscout.sources import Program, Recorded, Source, convert
from chainscout.study import Study, simulated
from chainscout.study.learning import run

CHAIN = cs.MarkovChain([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]], initial=[0, 0, 1])
RECORDED = np.random.default_rng(5).integers(0, 3, 200).tolist()
#: Observations before the path is broken, and in all.
BROKEN, BUDGET = 25, 90


def recorded():
    return {"a": Recorded([RECORDED[:70], RECORDED[70:]])}


def simulated_chain():
    return simulated({"a": CHAIN}, seed=3)


def expected(sources, anew):
    """The states that belong to the study, and where its segments begin. ``anew``: from the initial law."""
    if sources is recorded:
        return RECORDED[:BUDGET], [0, BROKEN, 70]
    walk = Walk(CHAIN, seed=3)
    first = list(itertools.islice(walk, BROKEN))
    if anew:
        walk.restart()
    return first + list(itertools.islice(walk, BUDGET - BROKEN)), [0, BROKEN]


def check(study, sources, anew=True):
    """The log is what the sources have, each state once, and no transition leads from one segment to the next."""
    states, starts = expected(sources, anew)
    lines = list(study.log("a"))
    assert [line.state for line in lines] == states
    assert [k for k, line in enumerate(lines) if k == 0 or line.segment != lines[k - 1].segment] == starts
    counts = cs.Counts(3)
    for k, state in enumerate(states):
        if k in starts:
            counts.restart()
        counts.record(state)
    assert (study.counts("a").transitions == counts.transitions).all()
    replayed_counts(study, {"a": 3})


def threads(executor):
    return ThreadPoolExecutor(2) if executor else nullcontext()


@pytest.fixture(params=[recorded, simulated_chain], ids=["recorded", "simulated"])
def sources(request):
    return request.param


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
def test_a_lost_lease_does_not_repeat_what_was_told(place, sources, executor):
    study = place.create({"a": 3}, BUDGET)
    (source,) = sources().values()
    now = time.time()
    set_clock(study, now)
    for _ in range(BROKEN):
        study.lease("worker", 30).tell(source.advance()[0])
    study.lease("worker", 30)  # and its worker is never heard of again
    study = place.reopen(study)
    set_clock(study, now + 31)
    with threads(executor) as pool:
        run(study, sources(), executor=pool, progress=False)
    assert study.progress().lost == 1
    # Alone, nobody looks for lost leases before the next state is told: the study breaks the path, the source does not.
    check(study, sources, anew=executor)


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


def test_learning_with_a_larger_budget_after_a_restart(folder, sources):
    where, options = folder / "study.db", {"states": {"a": 3}, "progress": False}
    with cs.learn(sources(), BROKEN, where=where, **options) as study:
        study.restart("a")
    with cs.learn(sources(), BUDGET, where=where, **options) as study:
        check(study, sources)


KILLED = """
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor
import chainscout as cs
import chainscout.study.crew as crew

crew.SECONDS = 0.3
sys.path.insert(0, {tests!r})
from test_learning_again import BROKEN, BUDGET, {sources} as sources
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
    time.sleep(0.4)  # the lease runs out
    with ThreadPoolExecutor(1) as pool:
        study = cs.learn(sources(), BUDGET, where=where, executor=pool, states={"a": 3}, progress=False)
    assert study.progress().lost == 1
    check(study, sources)
    study.close()


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
    study.tell_many([("a", 0), ("a", 1), ("a", 1)])
    study = place.reopen(study)
    for _ in range(2):  # the second time too: it was not the first that broke the path
        with (
            threads(executor) as pool,
            pytest.raises(InputError, match=f"the source of the chain 'a' cannot go on where the study is: {words}"),
        ):
            run(study, {"a": Recorded(path)}, executor=pool, progress=False)
    progress = study.progress()
    assert (progress.observations, progress.leases, progress.lost) == (3, 0, 0)
    assert study.chain("a").last == 1


def test_a_recording_that_has_grown_goes_on_behind_what_was_taken(folder):
    where, options = folder / "study.db", {"states": {"a": 3}, "progress": False}
    cs.learn({"a": Recorded(RECORDED[:40])}, 30, where=where, **options).close()
    with cs.learn({"a": Recorded(RECORDED)}, 120, where=where, **options) as study:
        assert [line.state for line in study.log("a")] == RECORDED[:120]
        assert study.chain("a").segments == 1


def test_a_callable_that_begins_anew_is_new_randomness(place):
    """It cannot go on: after a break its next state is the first of a segment, as it always was."""
    study = place.create({"a": 3}, 10)
    run(study, {"a": convert(iter([0, 1, 2, 0, 1, 2, 0, 1, 2, 0]).__next__)}, progress=False)
    study.restart("a")
    study = place.reopen(study)
    study.extend(budget=14)
    run(study, {"a": convert(iter([2, 2, 1, 1]).__next__)}, progress=False)
    assert [line.segment for line in study.log("a")] == [1] * 10 + [2] * 4
    assert study.counts("a").transitions[0].tolist() == [0, 3, 0]


# -- somebody else at the same study


class Cycle:
    """0, 1, 2, 0, … from its start: any other transition was never seen. ``meanwhile`` happens in its sixth step."""

    def __init__(self, meanwhile=None):
        self.state, self.calls, self.meanwhile = -1, 0, meanwhile

    def __call__(self):
        self.calls += 1
        if self.calls == 6 and self.meanwhile is not None:
            self.meanwhile()
        self.state = (self.state + 1) % 3
        return self.state

    def restart(self):
        self.state = -1


def is_cyclic(counts):
    return (counts.transitions == counts.transitions * np.roll(np.eye(3, dtype=int), 1, axis=1)).all()


def told_by_another(where, states):
    def tell():
        with Study.open(where) as other:
            other.restart("a")
            other.tell_many([("a", state) for state in states])

    return tell


def test_another_worker_that_is_faster_leaves_no_false_transition(folder):
    """While a source is at work, the chain is advanced elsewhere: the observation that comes second is not counted."""
    where = folder / "study.db"
    Study.create(where, {"a": 3}, 40).close()
    source = Cycle(told_by_another(where, [0, 1, 2, 0]))
    with cs.learn({"a": source}, where=where, progress=False) as study:
        assert is_cyclic(study.counts("a"))
        assert study.progress().observations == 40
        assert study.chain("a").segments == 3
        assert source.calls == 40 - 4 + 1  # one of its states came too late
        assert study.progress().lost == 1
        assert "1 observation was lost" in " ".join(study.certificate().notes)
        replayed_counts(study, {"a": 3})


def test_a_worker_that_is_promised_the_rest_is_no_reason_to_fail(folder):
    """While a source is at work, another worker leases all that is left: the observation is lost, nothing else is."""
    where = folder / "study.db"
    Study.create(where, {"a": 3, "b": 3, "c": 3}, 40, "uniform").close()

    def lease_the_rest():
        with Study.open(where) as other:
            with other.lease("other") as best:
                assert best.chain == "b"
                rest = other.lease("other", 0.3, steps=100)  # it dies, and what it was promised is free again
            (last,) = {"a", "c"} - {rest.chain}
            other.restart(last)
            other.tell(last, 0)
            assert other.progress().observations + rest.steps == 40

    sources = {"a": Cycle(), "b": Cycle(lease_the_rest), "c": Cycle()}
    with cs.learn(sources, where=where, progress=False) as study:
        assert study.progress().used == 40
        assert all(is_cyclic(study.counts(name)) for name in "abc")
        # A state of b found the budget promised, and one of the chain that was told elsewhere came too late.
        assert sum(source.calls for source in sources.values()) == 40 - 1 + 2
        # That one was the state that had been told in its place: it is taken for the same observation.
        lost = [
            (event.kind, event.chain) for event in study.events() if event.kind in ("observation lost", "lease expired")
        ]
        assert lost == [("observation lost", "b"), ("lease expired", "c")]
        assert study.progress().lost == 2
        replayed_counts(study, {"a": 3, "b": 3, "c": 3})


def test_another_worker_between_two_leases_leaves_no_false_transition(folder):
    """While one chain's source is at work, the other chain is advanced elsewhere."""
    where = folder / "study.db"
    Study.create(where, {"a": 3, "b": 3}, 60, "uniform").close()
    sources = {"a": Cycle(), "b": Cycle(told_by_another(where, [0, 1, 2, 0]))}
    with ThreadPoolExecutor(1) as pool:
        study = cs.learn(sources, where=where, executor=pool, progress=False)
    assert study.progress().observations == 60
    assert is_cyclic(study.counts("a"))
    assert study.chain("a").segments == 3
    replayed_counts(study, {"a": 3, "b": 3})
    study.close()


def test_a_program_whose_chain_was_advanced_elsewhere_is_not_to_blame(folder):
    where, script, flag = folder / "study.db", folder / "cycle.py", folder / "told"
    script.write_text(
        "import os, sys, time\nstate = -1\nfor number, line in enumerate(sys.stdin):\n"
        f"    if number == 5:\n        open({str(flag)!r} + '.wanted', 'w').close()\n"
        f"        while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"
        "    state = 0 if line.strip() == 'restart' else (state + 1) % 3\n    print(state, flush=True)\n"
    )
    Study.create(where, {"a": 3}, 30).close()

    def meanwhile():
        while not flag.with_suffix(".wanted").exists():
            time.sleep(0.01)
        told_by_another(where, [0, 1, 2, 0])()
        flag.touch()

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(meanwhile)
        source = Program([sys.executable, "-S", str(script)], timeout=30.0)
        study = cs.learn({"a": source}, where=where, progress=False)
        other.result()
    # Its state came too late and is lost, but not as that of a program that failed.
    assert not any(event.detail["lost"] for event in study.events() if event.kind == "restarted")
    assert study.progress().lost == 1
    assert is_cyclic(study.counts("a"))
    assert study.progress().observations == 30
    study.close()


def lease_for_a_while(where):
    """Somebody else takes the chain that would be asked for, and gives it back a moment later."""
    with Study.open(where) as other:
        lease = other.lease("other")

    def give_back():
        with Study.open(where) as other:
            other.give_back(lease.chain, lease.token)

    threading.Timer(0.1, give_back).start()


def overtaken(where, source, *calls):
    """The source; while it is at work at its calls of these numbers, somebody else leases the chain for a while."""

    class Overtaken(type(source)):
        calls = 0

        def advance(self):
            self.calls += 1
            if self.calls in numbers:
                lease_for_a_while(where)
            return super().advance()

    numbers = calls
    source.__class__ = Overtaken
    return source


class Failing(Source):
    """Gives 0, 1, 0, … and fails at its third state."""

    def __init__(self, error):
        self.error, self.given = error, 0

    def advance(self):
        self.given += 1
        if self.given == 3:
            raise self.error
        return self.given % 2, self.given == 1

    def restart(self):
        pass


@pytest.mark.parametrize("steps", [(1,), (4, 9)])
def test_a_lease_taken_while_a_repeatable_source_is_at_work_costs_no_state(folder, sources, steps):
    where = folder / "study.db"
    Study.create(where, {"a": 3}, 30).close()
    (source,) = sources().values()
    with cs.learn({"a": overtaken(where, source, *steps)}, where=where, progress=False) as study:
        (again,) = sources().values()
        assert [line.state for line in study.log("a")] == [again.advance()[0] for _ in range(30)]
        assert study.chain("a").segments == 1
        assert study.progress().lost == 0  # the state was given again
        replayed_counts(study, {"a": 3})


def test_a_lease_taken_while_a_program_is_at_work_is_not_its_fault(folder):
    where, script = folder / "study.db", folder / "cycle.py"
    script.write_text(
        "import sys\nstate = -1\nfor line in sys.stdin:\n"
        "    state = 0 if line.strip() == 'restart' else (state + 1) % 3\n    print(state, flush=True)\n"
    )

    Study.create(where, {"a": 3}, 30).close()
    source = overtaken(where, Program([sys.executable, "-S", str(script)], timeout=30.0), 5)
    with cs.learn({"a": source}, where=where, progress=False) as study:
        assert is_cyclic(study.counts("a"))
        assert study.progress().observations == 30
        assert source.calls == 31
        assert not any(event.detail["lost"] for event in study.events() if event.kind == "restarted")
        assert study.progress().lost == 1


@pytest.mark.parametrize("error", [SourceEnded("that was all"), SourceError("it died")], ids=["ended", "failed"])
def test_a_lease_taken_while_a_source_ends_or_fails_is_no_reason_to_fail(folder, error):
    """Who holds the chain goes on with it; the source is asked again when it is free."""
    where = folder / "study.db"
    Study.create(where, {"a": 2}, 20).close()
    with cs.learn({"a": overtaken(where, Failing(error), 3)}, where=where, progress=False) as study:
        assert (study.progress().observations, study.progress().aside) == (20, 0)
        assert study.progress().lost == isinstance(error, SourceError)  # one that ends has made no observation
        assert study.chain("a").segments == 1  # the other's path was not broken
        replayed_counts(study, {"a": 2})


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
def test_two_at_once_on_the_same_simulated_chains_are_one(folder, executor):
    """Each has the same paths: together they tell every state of them once."""
    where, chains = folder / "study.db", {"a": CHAIN, "b": CHAIN, "c": CHAIN}
    Study.create(where, dict.fromkeys(chains, 3), 300).close()

    def learn():
        with threads(executor) as pool:
            cs.learn(chains, where=where, seed=3, executor=pool, progress=False).close()

    with ThreadPoolExecutor(2) as pair:
        for done in [pair.submit(learn) for _ in range(2)]:
            done.result()
    with Study.open(where) as study:
        assert (study.progress().observations, study.progress().lost) == (300, 0)
        for number, name in enumerate(chains):
            path = [line.state for line in study.log(name)]
            assert path == list(itertools.islice(Walk(CHAIN, number, seed=3), len(path)))
            assert study.chain(name).segments == 1
