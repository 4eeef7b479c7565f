"""`Study.checks`: where the checks stand is kept with the study, and is what one pass over the log says."""

import random

import numpy as np
import pytest
from study_places import Place, set_clock

import chainscout as cs
from chainscout.diagnostics._diagnose import _common_end, _cut
from chainscout.errors import FileError, Held, LeaseLost, NothingFree
from chainscout.study import _evidence

MATRIX = np.array([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.5, 0.25, 0.25]])


@pytest.fixture
def pace(monkeypatch):
    """The statistics are kept after every seventh observation."""
    monkeypatch.setattr(_evidence, "PACE", 7)
    monkeypatch.setattr(_evidence, "PACE_OF_CHAIN", 1)
    monkeypatch.setattr(_evidence, "LEAST", 7)
    monkeypatch.setattr(_evidence, "BYTES_A_STEP", 2**30)
    monkeypatch.setattr(cs.study.settings, "first_look", lambda chains: 7)


def one_pass(study):
    """The checks of all chains together in one pass over the log, up to the first draw that is pending."""
    shared = study._store.study.shared if hasattr(study._store, "study") else False
    paths = {name: study.paths(name) for name in study.names}
    if shared:
        paths = {name: each.by_one_worker() for name, each in paths.items()}
    if any(each.unordered for each in paths.values()):
        return None
    end, _ = _common_end({name: _cut(name, each) for name, each in paths.items()})
    found = cs.diagnose({name: each._chosen(each.issued < end) for name, each in paths.items()}, delta=0.05)
    return [check for check in found if check.chain is None or len(paths) == 1]


def hold_equal(study):
    """Whether what is kept, and the log after it, say what one pass says. Gives how many cards were judged."""
    expected, found = one_pass(study), study.checks()
    if expected is None:
        assert found.against == ()
        assert all(check.level == 1 for check in found)
        assert "are not guaranteed, because the order of issue is not known" in found.remarks[0]
        return -1
    assert [(check.chain, check.kind, check.by) for check in found] == [
        (check.chain, check.kind, check.by) for check in expected
    ]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.e_value == pytest.approx(theirs.e_value, rel=1e-9)
        assert mine.largest == pytest.approx(theirs.largest, rel=1e-9)
        assert mine.level == pytest.approx(theirs.level, rel=1e-9)
        assert (mine.cards, mine.left_out) == (theirs.cards, theirs.left_out)
        assert np.array(mine.history) == pytest.approx(np.array(theirs.history), rel=1e-9)
    known = sum(study.paths(name).transitions for name in study.names)
    assert found.waiting == known - expected[1].cards
    return expected[1].cards


def kept_draws(study):
    with study._store.reading() as transaction:
        content = transaction.kept(None)
        return 0 if content is None else _evidence._Study(transaction.study, content).end


class Crowd:
    """Workers that lease, tell, restart, give back and die as a generator says, and plain tells where they may be."""

    def __init__(self, place, study, seed, plain):
        self.place, self.study, self.plain = place, study, plain
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
    crowd = Crowd(place, place.create(chains), seed, plain=False)
    judged = set()
    for turn in range(160):
        crowd.act()
        if turn % 32 == 31:
            judged.add(hold_equal(crowd.study))
    assert len(judged) > 2
    assert kept_draws(crowd.study) > 30
    crowd.study.audit()


def test_what_is_kept_is_one_pass_over_the_log_whatever_workers_do(place, pace):
    hold_whatever_workers_do(place, {"a": 3, "b": 3, "c": 3}, 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("chains", [{"a": 3}, {"a": 3, "b": 3}], ids=["one", "two"])
def test_the_same_in_memory_with_other_workers(pace, chains, seed):
    hold_whatever_workers_do(Place("memory", lambda: None), chains, seed)


def test_plain_tells_of_several_openings(place, pace):
    study = place.create({"a": 3, "b": 3})
    found = []
    for opening in range(4):
        crowd = Crowd(place, study, opening, plain=True)
        for _ in range(30):
            crowd.act()
        found.append(hold_equal(study))
        study = place.reopen(study, continuing=opening % 2 == 0)
    assert found == sorted(found)
    assert kept_draws(study) > 20
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
    for state in rng.integers(0, 12, 50):
        study.tell("a", f"state {state}")
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


def test_order_that_is_not_known_ends_the_checks(place, pace):
    study = place.create({"a": 3, "b": 3})
    study.tell_many([("a", 0)] * 30 + [("b", 1)] * 10)
    assert hold_equal(study) == 29
    study.tell("a", 1, path=2, step=1)
    study.tell("a", 1, path=1, step=31)
    assert hold_equal(study) == -1
    for _ in range(20):
        study.tell("b", 1)
    with study._store.reading() as transaction:
        assert transaction.study.judge_at is None
    assert hold_equal(study) == -1


def test_a_lease_that_goes_on_after_plain_tells_is_noticed_long_after(pace):
    study = cs.Study.create(None, {"a": 3})
    with study.worker("one", renews=False) as one:
        lease = one.lease(steps=20)
        for step in range(10):
            lease.tell(step % 3)
        lease.give_back()
        study.tell_many([("a", step % 3) for step in range(40)])
        assert hold_equal(study) == 9 + 39
        study.restart("a")
        lease = one.lease(steps=20, continuing=True)
        assert lease.path == 1
        lease.tell(0)
        assert hold_equal(study) == -1


def test_a_path_that_was_left_is_not_waited_for(pace):
    study = cs.Study.create(None, {"a": 3, "b": 3})
    study.tell_many([("a", step % 3) for step in range(20)])
    cards = hold_equal(study)
    study.tell("a", 0, path=2, step=1)
    for step in range(20):
        study.tell("a", step % 3, path=2, step=step + 2)
    assert hold_equal(study) == cards + 20


def test_a_first_state_that_was_given_up_late_ends_nothing(pace):
    study = cs.Study.create(None, {"a": 3})
    with study.worker("one", renews=False) as one, study.worker("two", renews=False) as two:
        other = two.lease(steps=60)
        other.tell(0)  # its next draw is pending, so that nothing later is judged
        never = one.lease(steps=5)
        with study.worker("three", renews=False) as three:
            third = three.lease(steps=60)
            for step in range(20):
                third.tell(step % 3)
            never.give_back()
            assert hold_equal(study) == 0
            for step in range(20):
                other.tell(step % 3)
            third.tell(0)
            assert hold_equal(study) > 35


def test_a_path_that_has_ended_while_its_draws_wait(pace):
    study = cs.Study.create(None, {"a": 3})
    with study.worker("one", renews=False) as one, study.worker("two", renews=False) as two:
        slow, quick = one.lease(steps=60), two.lease(steps=60)
        slow.tell(0)
        for step in range(4):
            quick.tell(step % 3)
        quick.restart()
        for step in range(2):
            quick.tell(step % 3)
        assert kept_draws(study) > 1
        assert hold_equal(study) == 0  # all wait for the second draw of the slow one
        for _ in range(10):
            slow.tell(1)
        assert hold_equal(study) > 3


def test_a_draw_given_up_late_ends_the_checks_for_good(place, pace):
    study = place.create({"a": 3})
    with study.worker("one", renews=False) as one, study.worker("two", renews=False) as two:
        first, second = one.lease(steps=200), two.lease(steps=200)
        for step in range(20):
            first.tell(step % 3)
            second.tell(step % 3)
        second.tell(0)
        first.give_back()
        for step in range(40):
            second.tell(step % 3)
        cards = hold_equal(study)
        assert cards < 41
        assert "was given up after a later one was known" in study.checks().remarks[0]
        with study._store.reading() as transaction:
            assert transaction.study.judge_at is None
        second.tell(1)
        assert hold_equal(study) == cards


def test_a_transaction_that_fails_keeps_nothing(place, pace, monkeypatch):
    study = place.create({"a": 3})
    study.tell_many([("a", state % 3) for state in range(20)])
    before = kept_draws(study)

    def fails(*_):
        raise RuntimeError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(_evidence, "_record", fails)
        with pytest.raises(RuntimeError, match="power cut"):
            study.tell_many([("a", state % 3) for state in range(20)])
    assert kept_draws(study) == before
    study.tell_many([("a", state % 3) for state in range(20)])
    assert kept_draws(study) > before
    assert hold_equal(study) == 39


def test_memory_rolls_back_what_was_kept(pace, monkeypatch):
    study = cs.Study.create(None, {"a": 3})
    study.tell_many([("a", state % 3) for state in range(20)])
    content = study._store.kept(None), study._store.kept(0)
    undo = study._store.writing()
    transaction = undo.__enter__()
    transaction.keep(0, b"other")
    transaction.keep(None, b"other")
    transaction.keep(5, b"new")
    undo.__exit__(RuntimeError, None, None)
    assert (study._store.kept(None), study._store.kept(0), study._store.kept(5)) == (*content, None)


def test_a_study_that_was_tampered_with_is_noticed(place, pace):
    study = place.create({"a": 3})
    study.tell_many([("a", state % 3) for state in range(40)])
    with study._store.writing() as transaction:
        found = _evidence._Study(transaction.study, transaction.kept(None))
        found.standing.log_mean[0] += 0.1
        transaction.keep(None, found.content())
    with pytest.raises(FileError, match="where its checks stand is not what its log says"):
        study.audit()
    with study._store.writing() as transaction:
        transaction.keep(None, b"nothing")
    with pytest.raises(FileError, match="where its checks stand cannot be read"):
        study.checks()


def test_it_is_kept_when_a_small_study_stops(place):
    study = place.create({"a": 3, "b": 3}, budget=30)
    study.tell_many([("ab"[number % 2], number % 3) for number in range(29)])
    assert kept_draws(study) == 0
    study.tell("a", 0)
    assert kept_draws(study) > 25
    assert hold_equal(study) == 27  # the last one waits for a draw of b
    study.extend(budget=60)
    study.tell_many([("ab"[number % 2], number % 3) for number in range(30)])
    assert hold_equal(study) >= 55
    study.audit()


def test_how_often_it_is_kept():
    assert [_evidence.first_look(chains) for chains in (1, 100, 1000, 1001)] == [1024, 12_800, 128_000, None]
    study = cs.Study.create(None, {"a": 2})
    kept = []
    for number in range(45):
        study.tell_many([("a", place % 2) for place in range(1024)])
        if study._store.study.judge_at != (kept[-1][1] if kept else 1024):
            kept.append((1024 * (number + 1), study._store.study.judge_at))
    # Twice as many each time, and later after 16,384.
    first = [(1024, 2048), (2048, 4096), (4096, 8192), (8192, 16_384)]
    assert kept == [*first, (16_384, 32_768), (32_768, 49_152)]
    many = cs.Study.create(None, {f"chain {number}": 2 for number in range(1001)})
    assert many.checks() is None


def test_a_look_reads_the_end_of_the_log(pace):
    """Whoever looks reads no line that was judged when the checks were last kept."""
    study = cs.Study.create(None, {"a": 3, "b": 3})
    rng = np.random.default_rng(1)
    study.tell_many([("ab"[number % 2], int(rng.integers(3))) for number in range(600)])
    study.tell_many([("ab"[number % 2], int(rng.integers(3))) for number in range(6)])
    read = []
    draws = study._store.draws
    study._store.draws = lambda chain, after: read.append(after) or draws(chain, after)
    assert study.checks()[1].cards == 606 - 2
    assert len(read) == 1
    assert 590 < read[0] <= 600
    study.tell_many([("b", 0)] * 10)  # it is kept again, and waits for a draw of a
    read.clear()
    assert study.checks().waiting == 10
    assert read == []  # while that draw is pending, nothing can be judged


def test_an_order_that_is_lost_later_is_no_damage():
    """The checks were kept while the order of issue was known; the audit must not replay it without."""
    rng = random.Random(1)
    study = cs.Study.create(None, {"k": 3}, budget=100_000)
    for _ in range(1_100):
        study.tell("k", rng.randrange(3))
    study.audit()
    study.tell("k", 1, begin=True)
    lease = study.worker("w", renews=False).lease(steps=3)
    lease.tell(0)
    study.tell("k", 2)
    lease.tell(1)
    assert study.paths("k").unordered is not None
    study.audit()
