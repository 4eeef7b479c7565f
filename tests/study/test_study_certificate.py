"""The certificate that a study promises: one method for good, the numbers of the counts, and a bounded memory."""

import itertools
import math
import random

import pytest
from chainscout.study._solutions import Solutions

import chainscout as cs
from chainscout.certificates import sharp
from chainscout.errors import InputError
from chainscout.study import _certificate, _solutions

STICKY = {0: [0.97, 0.02, 0.01], 1: [0.01, 0.97, 0.02], 2: [0.02, 0.01, 0.97]}


def walk(seed, law=STICKY):
    rng = random.Random(seed)
    state = 0
    while True:
        yield state
        state = rng.choices(range(len(law)), law[state])[0]


def test_a_study_promises_sharp_unless_it_is_told_otherwise(tmp_path):
    for method, given in (("sharp", {}), ("sharp", {"certificate": "sharp"}), ("mixture", {"certificate": "mixture"})):
        where = tmp_path / f"{method}{len(given)}.db"
        with cs.Study.create(where, {"a": 3, "b": 3}, **given) as study:
            study.tell_many([(name, s) for name in "ab" for s in itertools.islice(walk(name), 150)])
        with cs.Study.open(where, read_only=True) as study:
            found = study.certificate()
            assert study.progress().method == found.method == method
            expected = cs.certify({name: study.counts(name) for name in "ab"}, 0.05, method)
            assert found.loss == expected.loss
            assert found.in_words() == expected.in_words()
            assert found.total_variation == expected.total_variation


def test_a_method_that_no_study_can_promise_is_refused(tmp_path):
    with pytest.raises(InputError, match="certificate must be one of sharp, mixture, not 'paper'"):
        cs.Study.create(None, {"a": 2}, certificate="paper")
    where = tmp_path / "lab.db"
    cs.learn({"a": walk(1)}, 10, where=where, states={"a": 3}, progress=False).close()
    with pytest.raises(InputError, match="created with the certificate 'sharp': it cannot go on with 'mixture'"):
        cs.learn({"a": walk(1)}, 20, where=where, certificate="mixture", progress=False)


def test_open_and_closed_chains_spend_delta_once():
    """Each chain has one certificate at δ/K, so that together they fail with probability δ at most."""
    study = cs.Study.create(None, {"open": [], "closed": 3}, open_states=["open"], target_loss=1e-6, delta=0.1)
    study.tell_many([(name, s) for name in ("open", "closed") for s in itertools.islice(walk(3), 400)])
    found = study.certificate()
    counts = {name: study.counts(name) for name in study.names}
    assert found.loss["closed"] == study.progress().certificate or found.loss["open"] == study.progress().certificate
    assert found.loss["open"] == cs.certify({"open": counts["open"]}, 0.05, "mixture").max
    assert found.loss["closed"] == pytest.approx(cs.certify({"closed": counts["closed"]}, 0.05, "sharp").max, rel=0.15)
    assert [found.method_of(name) for name in study.names] == ["mixture", "sharp"]
    assert "'mixture' for 1 with open states" in str(found)
    assert "Of the other chains" in found.in_words()
    with pytest.raises(InputError, match=r"has no chain 'opn' .did you mean open"):
        found.method_of("opn")


def steps_to(target, method, seed=5, break_at=()):
    """Observations until the study stops; it is opened again, as after a crash, at these observations."""
    study = cs.Study.create(None, {"a": 3, "b": 3}, target_loss=target, certificate=method)
    sources = {name: walk(f"{name}{seed}") for name in "ab"}
    while not study.finished:
        name = study.ask()
        study.tell(name, next(sources[name]))
        if study.progress().observations in break_at:
            study._solutions = Solutions()
    assert study.certificate().max <= target
    return study.progress().observations


def test_the_study_stops_by_the_method_it_promises():
    assert steps_to(0.1, "sharp") < 0.8 * steps_to(0.1, "mixture")


def test_a_study_that_was_opened_again_stops_at_the_same_observation():
    """Near the target every certificate is that of a full search, so solutions in memory decide nothing."""
    for seed in (5, 6):
        assert len({steps_to(0.1, "sharp", seed, at) for at in ((), range(3, 10**6, 7), (100, 200, 300))}) == 1


@pytest.fixture
def grown():
    """A study of one chain with some history, and its records."""
    study = cs.Study.create(None, {"a": 3}, target_loss=1e-6)
    study.tell_many([("a", s) for s in itertools.islice(walk(1), 301)])
    with study._store.writing() as transaction:
        yield transaction, transaction.chain("a")


class Watched(sharp.Running):
    """Notes which counts it was given last, row by row."""

    def full(self, counts):
        self.placed = {x: dict(row) for x, row in counts.rows().items()}
        self.searches = getattr(self, "searches", 0) + 1
        return super().full(counts)

    def moved(self, counts, state):
        self.placed[state] = dict(counts.rows()[state])
        return super().moved(counts, state)


def test_solutions_follow_whatever_became_of_the_counts(grown, monkeypatch):
    """One more transition, another in its place, some at once, a row that is gone: always a bound of these counts."""
    monkeypatch.setattr(sharp, "Running", Watched)
    transaction, chain = grown
    log_inverse = math.log(1 / 0.05)
    solutions = Solutions()
    rows = dict(transaction.rows(chain))

    def check(searches):
        found, _ = solutions.bound(transaction.study, chain, rows)
        counts = {x: dict(row.counts) for x, row in rows.items()}
        assert found == pytest.approx(Watched(3, log_inverse).full(cs.Counts.over(counts, 3)), rel=0.15)
        assert solutions._known[0].running.placed == counts
        assert solutions._known[0].running.searches == searches

    check(1)
    rows[0].counts[1] += 1
    check(1)
    rows[0].counts[1] -= 1  # the transaction failed, and then the chain went elsewhere
    rows[0].counts[2] += 1
    check(1)
    for x in rows:
        rows[x].counts[x] += 2
    check(1)
    rows[1].counts[0] += 200  # too many for an old solution
    check(2)
    del rows[2]  # the row's first transition was taken back
    check(3)


def test_solutions_are_bounded_in_memory(monkeypatch):
    monkeypatch.setattr(_solutions, "MOST_BYTES", 20_000)
    study = cs.Study.create(None, {f"{k}": 3 for k in range(40)}, target_loss=1e-6)
    for turn in range(2):
        study.tell_many([(f"{k}", s) for k in range(40) for s in itertools.islice(walk(k + turn), 20)])
        known = study._solutions._known
        assert 1 < len(known) <= 20_000 / _solutions.ROW_BYTES
        assert study._solutions._bytes == sum(solution.bytes for solution in known.values()) <= 20_000
        assert list(known)[-1] == 39


def test_what_raises_leaves_no_solution_behind(grown, monkeypatch):
    transaction, chain = grown
    solutions = Solutions()
    assert math.isfinite(solutions.bound(transaction.study, chain, transaction.rows(chain))[0])
    assert len(solutions._known) == 1
    monkeypatch.setattr(sharp.Running, "full", lambda *_: 1 / 0)
    monkeypatch.setattr(sharp.Running, "moved", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        solutions.bound(transaction.study, chain, transaction.rows(chain))
    assert (dict(solutions._known), solutions._bytes) == ({}, 0)


def test_most_certificates_of_a_growing_chain_come_from_the_last_solution(monkeypatch):
    full, searched = sharp.Running.full, []
    monkeypatch.setattr(sharp.Running, "full", lambda self, counts: searched.append(counts.total) or full(self, counts))
    study = cs.Study.create(None, {"a": 3}, target_loss=1e-6)
    for state in itertools.islice(walk(2), 2_001):
        study.tell("a", state)
    # Certificates: 200 up to T = 200, and then about 230, one per cent apart. Searches: at T a quarter larger, which
    # are about 30, or when T·b has become a tenth larger.
    assert 25 <= len(searched) < 90


def test_a_target_that_is_far_away_ends_the_look_at_the_first_chain_above_it():
    """At the end of a study every chain is looked at; while one is above the target, the rest can wait."""
    study = cs.Study.create(None, {f"{k}": 2 for k in range(101)})
    study.tell_many([(f"{k}", t % 2) for k in range(10) for t in range(30)])
    with study._store.writing() as transaction:
        _certificate.refresh_all(transaction, until=0.0)
        assert [chain.certified for chain in transaction.every()] == [29] + [0] * 100
