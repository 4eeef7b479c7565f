"""The checks of a study: they go on behind holes that they may skip, and what they say is an input of the fold."""

import itertools
import math
import os
import random
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from study_places import Place, set_clock

import chainscout as cs
from chainscout.errors import Held, LeaseLost, NothingFree
from chainscout.journal.entry import Kind
from chainscout.study import StopReason, aim, state

MATRIX = np.array([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.5, 0.25, 0.25]])


@pytest.fixture
def pace(monkeypatch):
    """The checks are made after every seventh observation."""
    monkeypatch.setattr(state, "next_check", lambda observations, chains: observations + 7)


def entries(study, kind=Kind.CHECKED):
    return [entry for page in study._keeper.pages() for entry in page if entry.kind is kind]


def hold_equal(study):
    """Whether the checks that went on say what one pass over all draws says. Gives how many draws were judged."""
    found = study.checks()
    expected = [check for check in study.diagnose() if check.chain is None or len(study.names) == 1]
    assert [(check.chain, check.kind, check.by) for check in found] == [
        (check.chain, check.kind, check.by) for check in expected
    ]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.e_value == pytest.approx(theirs.e_value, rel=1e-9)
        assert mine.largest == pytest.approx(theirs.largest, rel=1e-9)
        assert mine.level == pytest.approx(theirs.level, rel=1e-9)
        assert (mine.cards, mine.left_out, mine.since) == (theirs.cards, theirs.left_out, theirs.since)
        assert np.array(mine.history) == pytest.approx(np.array(theirs.history), rel=1e-9)
    assert found.waiting == sum(study.paths(name).transitions for name in study.names) - expected[1].cards
    return expected[1].cards


class Crowd:
    """Workers that lease, tell, restart, give back and die as a generator says, and plain tells where they may be."""

    def __init__(self, study, seed, plain):
        self.study, self.plain = study, plain
        self.rng = np.random.default_rng(seed)
        self.workers = {}
        self.leases = []
        self.time = 1000.0

    def draw(self, state):
        return int(self.rng.integers(3)) if state is None else int(self.rng.choice(3, p=MATRIX[state]))

    def act(self):
        rng, study = self.rng, self.study
        self.time += float(rng.random())
        set_clock(study, self.time)
        kind = rng.random()
        if self.plain and kind < 0.5:
            name = str(rng.choice(study.names))
            study.tell(name, self.draw(study.chain(name).last))
            if rng.random() < 0.05:
                study.restart(name)
        elif kind < 0.25 and len(self.leases) < 4:
            name = f"worker {rng.integers(4)}"
            worker = self.workers.setdefault(name, study.worker(name, renews=False))
            try:
                self.leases.append(worker.lease(seconds=50.0, steps=int(rng.integers(1, 6)), wait=0))
            except (Held, NothingFree):
                return
        elif self.leases:
            self.use(self.leases[int(rng.integers(len(self.leases)))])

    def use(self, lease):
        kind = self.rng.random()
        try:
            if kind < 0.997 or self.leases[1:]:  # with another lease, what is given up now is given up late
                lease.tell(self.draw(lease.state))
            elif kind < 0.998:
                lease.restart(lost=kind < 0.9975)
            else:
                lease.give_back() if kind < 0.999 else lease.abandon()
        except LeaseLost:
            self.leases.remove(lease)
            return
        if lease.status.value != "held":
            self.leases.remove(lease)


def hold_whatever_workers_do(place, chains, seed):
    crowd = Crowd(place.create(chains), seed, plain=False)
    judged = set()
    for turn in range(160):
        crowd.act()
        if turn % 32 == 31:
            judged.add(hold_equal(crowd.study))
    assert len(judged) > 2
    assert len(entries(crowd.study)) > 3
    crowd.study.audit()


# -- they go on


def test_checks_that_go_on_are_one_pass_whatever_workers_do(place, pace):
    hold_whatever_workers_do(place, {"a": 3, "b": 3, "c": 3}, 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("chains", [{"a": 3}, {"a": 3, "b": 3}], ids=["one", "two"])
def test_the_same_in_memory_with_other_workers(pace, chains, seed):
    hold_whatever_workers_do(Place("memory", lambda: None), chains, seed)


def test_plain_tells_of_several_openings(place, pace):
    study = place.create({"a": 3, "b": 3})
    found = []
    for opening in range(4):
        crowd = Crowd(study, opening, plain=True)
        for _ in range(30):
            crowd.act()
        found.append(hold_equal(study))
        study = place.reopen(study, continuing=opening % 2 == 0)
    assert found == sorted(found)
    assert found[-1] > 20
    study.audit()


def test_shared_paths_and_open_states(place, pace):
    study = place.create({"a": 3}, paths="shared")
    rng = np.random.default_rng(1)
    for number in range(30):
        with study.worker(f"worker {number % 3}", renews=False) as worker:
            lease = worker.lease(steps=3)
            for _ in range(2):
                lease.tell(int(rng.integers(3)))
    assert not any(check.by == "worker" for check in study.checks())
    assert study.checks()[1].cards == 59
    study.audit()
    study = place.create({"a": []}, open_states=True)
    study.tell_many([("a", f"state {state}") for state in rng.integers(0, 6, 100)])
    for state_number in rng.integers(0, 12, 50):
        study.tell("a", f"state {state_number}")
    assert hold_equal(study) == 149


def test_paths_beyond_those_told_apart_are_left_out_and_counted(pace):
    study = cs.Study.create(None, {"a": 2})
    for _ in range(70):
        study.tell_many([("a", 0), ("a", 1)])
        study.restart("a")
    assert hold_equal(study) == 70
    found = study.checks()
    assert next(check.left_out for check in found if check.by == "path") == 6
    assert "6 transitions were left out of a check: more than 64 labels occur in a state." in found.remarks


def test_a_slow_step_keeps_its_place_and_holds_up_those_behind_it(pace):
    study = cs.Study.create(None, {"a": 3})
    slow, quick = (
        study.worker("slow", renews=False).lease(steps=60),
        study.worker("quick", renews=False).lease(steps=60),
    )
    slow.tell(0)
    for step in range(4):
        quick.tell(step % 3)
    quick.restart()
    for step in range(2):
        quick.tell(step % 3)
    assert hold_equal(study) == 0
    assert study.checks().waiting == 4
    (remark,) = study.checks().remarks
    assert remark.startswith("4 transitions of a wait: draw ")
    assert remark.endswith(" is pending.")
    for _ in range(10):
        slow.tell(1)
    assert hold_equal(study) > 3


def test_a_draw_given_up_after_a_later_one_ends_the_checks_until_it_is_told(place, pace):
    study = place.create({"a": 3})
    set_clock(study, 1000.0)
    with study.worker("one", renews=False) as one, study.worker("two", renews=False) as two:
        first, second = one.lease(30.0, steps=200), two.lease(600.0, steps=200)
        for step in range(20):
            first.tell(step % 3)
            second.tell(step % 3)
        second.tell(0)
        set_clock(study, 1040.0)  # the first lease runs out
        study.worker("three", renews=False).lease().give_back()
        for step in range(40):
            second.tell(step % 3)
        cards = hold_equal(study)
        assert cards < 41
        assert "was given up after a later one was known" in study.checks().remarks[0]
        first.tell(1, late=True)
        assert hold_equal(study) > 70


def test_several_that_are_given_up_together_are_skipped(place, pace):
    """None of them is told, so nothing that is known says which of them was given up."""
    study = place.create({"a": 3})
    workers = [study.worker(f"worker {number}", renews=False) for number in range(5)]
    for turn in range(4):
        leases = [worker.lease(steps=50) for worker in workers]
        for step in range(10):
            for lease in leases:
                lease.tell((step + turn) % 3)
        for lease in random.Random(turn).sample(leases, 5):
            lease.abandon()
    assert hold_equal(study) == 4 * 5 * 9
    found = study.checks()
    assert found.waiting == 0
    (remark,) = found.remarks
    assert remark == (
        "20 draws without values were skipped: the levels assume that no interruption depended on the value that it"
        " cost."
    )
    assert len(study.diagnose().losses) > 0


def test_a_step_that_answers_leave_out_holds_up_the_checks(pace):
    """Nothing of its row had been asked for, so answers skip it. But the checks multiply rows."""
    study = cs.Study.create(None, {"a": 3})
    first, second = (study.worker(name, renews=False).lease(steps=60) for name in ("first", "second"))
    first.tell(0)
    second.tell(1)
    first.restart()
    for step in range(10):
        second.tell(step % 3)
    assert hold_equal(study) == 0
    assert study.checks().waiting == 10
    assert study.diagnose().waiting == 10
    assert study.answer("a", "reach 2 from 1 within 2").lower > 0


def test_a_correction_does_not_end_the_checks(pace):
    study = cs.Study.create(None, {"a": 3})
    told = 0
    for _ in range(5):
        for step in range(8):
            study.tell("a", step % 3)
        path, step = study.chain("a").path, study.chain("a").step
        study.correct("a", path, step - 1)
        told += 6
    assert study.checks().waiting == 0
    assert told - 5 <= study.checks()[1].cards <= told + 5  # one that was judged at once is not taken back


# -- kills


PROGRAM = """
    import random, sys
    import chainscout as cs
    where, seed, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    study = cs.Study.open(where)
    rng, states = random.Random(seed), {}
    laws = [[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.5, 0.25, 0.25]]
    for turn in range(number):
        name = study.ask()
        states[name] = rng.choices(range(3), laws[states.get(name, 0)])[0]
        study.tell(name, states[name])
    print("told", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("chains", ["a", "abc"])
def test_after_three_kills_the_checks_cover_99_per_cent(where, chains):
    """A program of plain tells is killed and begun again, without a word of what became of its steps."""
    cs.Study.create(where, dict.fromkeys(chains, 3)).close()
    for seed in range(4):
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(where), str(seed), "600"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as process:
            assert process.stdout.readline() == b"told\n"
            process.send_signal(signal.SIGKILL)
    with cs.Study.open(where) as study:
        hold_equal(study)
        found, transitions = study.checks(), sum(study.paths(name).transitions for name in chains)
        assert transitions == 4 * (600 - len(chains))
        assert found[1].cards >= 0.99 * transitions
        stored = study.look().checks
        assert stored[1].cards >= 1_024 - 20


def test_workers_that_die_with_their_leases_one_at_a_time(place, pace):
    """The next worker begins when the lease of the last one has expired."""
    study, rng, now = place.create({"a": 3, "b": 3}), random.Random(1), 1000.0
    for number in range(4):
        set_clock(study, now)
        worker = study.worker(f"worker {number}", renews=False)
        for _ in range(150):
            lease = worker.lease(seconds=30.0)
            lease.tell(rng.randrange(3))
        worker.lease(seconds=30.0)
        now += 60.0
    set_clock(study, now)
    transitions = sum(study.paths(name).transitions for name in "ab")
    assert study.checks()[1].cards >= 0.99 * transitions


# -- what they say is stored


def remembering(seed, switch=0):
    """A coin that soon goes back to where it came from, after a fair beginning."""
    rng, states = random.Random(seed), [0, 0]
    for number in itertools.count():
        back = number >= switch and rng.random() < 0.7
        states = [states[1], states[0] if back else rng.randrange(2)]
        yield states[1]


def told(study, number, seed=0, **memory):
    sources = {name: remembering(f"{seed} {name}", memory.get(name, 10**9)) for name in study.names}
    study.tell_many([(name, next(sources[name])) for _ in range(number) for name in sources])
    return study


def test_when_they_are_made():
    assert [aim.next_check(0, chains) for chains in (1, 100, 1000, 1001)] == [1024, 12_800, 128_000, math.inf]
    study = cs.Study.create(None, {"a": 2})
    made = []
    for number in range(45):
        study.tell_many([("a", place % 2) for place in range(1024)])
        if len(entries(study)) > len(made):
            made.append(1024 * (number + 1))
    assert made == [1024, 2048, 4096, 8192, 16_384, 32_768]
    assert cs.Study.create(None, {f"chain {number}": 2 for number in range(1001)}).checks() is None


def test_the_stored_result_is_that_of_its_moment(place):
    study = told(place.create({"plain": 2, "odd": 2}), 600, odd=0)
    stored, now = study.look().checks, study.checks()
    assert stored.note == now.note is not None
    assert stored.blamed == now.blamed
    assert [(one.kind, one.by, one.cards, one.since) for one in stored] == [
        (one.kind, one.by, one.cards, one.since) for one in now
    ]
    for one, other in zip(stored, now, strict=True):
        assert (one.e_value, one.largest, one.level, one.history) == (
            other.e_value, other.largest, other.level, other.history
        )  # fmt: skip
    assert study.look().doubts.keys() == {"odd"}
    study.tell_many([("plain", 0)] * 3)
    assert study.look().checks.remarks[0] == (
        "Of 3 transitions nothing is said: they came since this was kept, or waited then."
    )
    before = study.look().checks
    study = place.reopen(study)
    assert study.look().checks == before
    study.audit()


def test_a_certificate_has_no_bound_of_a_chain_that_they_speak_against():
    study = told(cs.Study.create(None, {"plain": 2, "odd": 2}), 600, odd=0)
    found = study.certificate()
    assert found.loss["odd"] == math.inf
    assert found.loss["plain"] < 0.1
    assert found.doubts["odd"].startswith("no bound holds: the check of order (predecessor) rejects since draw ")
    assert found.doubts.keys() == {"odd"}
    assert not found.guaranteed
    assert "order (predecessor)" in found.doubt
    assert found.doubt in found.notes
    assert set(found.entries) == {"plain"}


def test_no_study_stops_on_bounds_that_do_not_hold(place):
    """The target is reached long before the first periodic checks."""
    study = place.create({"odd": 2}, target_loss=0.05)
    source = remembering(1)
    while not study.finished:
        study.tell("odd", next(source))
    assert study.progress().observations < 1_000
    assert study.stop_reason is StopReason.NO_BOUND
    assert "no bound holds" in study.look().ending
    assert study.look().aside["odd"].reason == study.look().doubts["odd"]
    kinds = [entry.kind for page in study._keeper.pages() for entry in page]
    assert kinds.index(Kind.CHECKED) < kinds.index(Kind.SET_ASIDE)
    with pytest.raises(cs.errors.StudyFinished, match="make one without a target"):
        study.ask()
    study.audit()


def test_the_others_go_on_and_reach_the_target(place):
    study = place.create({"odd": 2, "plain": 2}, target_loss=0.02)
    sources = {"odd": remembering(1), "plain": remembering(2, 10**9)}
    while not study.finished:
        name = study.ask()
        study.tell(name, next(sources[name]))
    assert study.stop_reason is StopReason.TARGET_LOSS_OF_THE_REST
    assert study.look().aside.keys() == study.look().doubts.keys() == {"odd"}
    assert study.certificate().loss["plain"] <= 0.02
    study.audit()


def test_a_target_that_comes_later_is_not_for_a_chain_that_they_speak_against():
    study = told(cs.Study.create(None, {"plain": 2, "odd": 2}), 600, odd=0)
    assert study.look().doubts.keys() == {"odd"}
    assert study.look().aside == {}, "without an aim, nothing is to be reached"
    study.extend(target_loss=0.001)
    assert study.look().aside.keys() == {"odd"}


def test_a_chain_that_is_taken_up_is_set_aside_again_only_by_new_checks():
    study = cs.Study.create(None, {"odd": 2, "plain": 2}, target_loss=0.002)
    told(study, 600, odd=0)
    assert study.look().aside.keys() == {"odd"}
    study.take_up("odd")
    source = remembering(3)
    study.tell_many([("odd", next(source)) for _ in range(100)])
    assert study.look().aside == {}
    assert not study.look().chain("odd").ratio < math.inf
    study.tell_many([("odd", next(source)) for _ in range(2_000)])
    assert study.look().aside.keys() == {"odd"}


def test_a_small_study_that_has_stopped_is_checked_at_its_last_moment():
    study = told(cs.Study.create(None, {"plain": 2, "odd": 2}, budget=1_001), 500, odd=0)
    assert study.look().checks is None
    study.tell(study.ask(), 0)
    assert study.finished
    assert study.look().doubts.keys() == {"odd"}
    assert len(entries(study)) == 1
    study.certificate()
    assert len(entries(study)) == 1


def test_two_open_studies_store_one_result(where):
    with cs.Study.create(where, {"a": 2, "b": 2}) as one, cs.Study.open(where) as two:
        for turn in range(600):
            for study, name in ((one, "a"), (two, "b")):
                study.tell(name, turn % 2)
        assert len(entries(one)) == 1
        assert one.look().checks == two.look().checks is not None
        assert two.checks()[1].cards == one.checks()[1].cards
