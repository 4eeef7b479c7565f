"""The certificate that a study promises: one method for good, the numbers of the counts, and a bounded memory."""

import itertools
import random
import re

import pytest
from study_places import set_clock

import chainscout as cs
from chainscout.errors import InputError

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
    assert found.loss == {name: cs.certify({name: counts[name]}, 0.05, "sharp").max for name in study.names}
    assert found.loss["open"] < cs.certify({"open": counts["open"]}, 0.05, "mixture").max


def steps_to(target, method, seed=5, where=None, every=10**6):
    """Observations until the study stops; it is opened again after each ``every`` of them."""
    study = cs.Study.create(where, {"a": 3, "b": 3}, target_loss=target, certificate=method)
    sources = {name: walk(f"{name}{seed}") for name in "ab"}
    while not study.finished:
        name = study.ask()
        study.tell(name, next(sources[name]))
        if study.progress().observations % every == 0:
            study.close()
            study = cs.Study.open(where, continuing=True)
    assert study.certificate().max <= target
    return study.progress().observations


def test_the_study_stops_by_the_method_it_promises():
    assert steps_to(0.1, "sharp") < 0.8 * steps_to(0.1, "mixture")


def test_a_study_that_was_opened_again_stops_at_the_same_observation(tmp_path):
    """A bound is a function of the counts alone, and so is the next look: memory decides nothing."""
    for seed in (5, 6):
        assert len({steps_to(0.1, "sharp", seed, tmp_path / f"{seed}-{n}", n) for n in (10**6, 7, 100)}) == 1


# -- steps without a state


def leased(study, number, losing=0):
    """A worker's observations in equal pieces; after each piece but the last, a step is lost with its path."""
    states, worker = walk(1), study.worker("rig 7", renews=False)
    for piece in range(losing + 1):
        lease = worker.lease(chain="a", steps=number // (losing + 1) + 1)
        lease.tell_walk(list(itertools.islice(states, lease.steps - 1)))
        lease.abandon() if piece < losing else lease.give_back()


def test_it_says_what_lost_steps_cost():
    study = cs.Study.create(None, {"a": 3, "b": 3}, certificate="mixture")
    leased(study, 1_000, losing=12)
    found = study.certificate()
    number, share = found.holes["a"]
    assert number == 12
    counts = study.counts("a")
    assert sum(counts.holes.values()) == 12
    assert found.loss["a"] == cs.certify({"a": counts}, 0.025, "mixture").loss["a"]
    without = cs.certify({"a": cs.Counts.from_transitions(counts.transitions)}, 0.025, "mixture").loss["a"]
    assert share == pytest.approx(1 - without / found.loss["a"])
    assert 0.05 < share < 0.5
    assert f"12 steps without a state cost about {share:.0%} of the bound of a" in found.notes
    assert "12 observations were lost: a step whose state is not known counts as one to any state" in found.notes
    assert found.open_steps == ()


def test_three_kills_cost_at_most_a_tenth_of_the_bound():
    for method in ("sharp", "mixture"):
        study = cs.Study.create(None, {"a": 3}, certificate=method)
        leased(study, 3_000, losing=3)
        number, share = study.certificate().holes["a"]
        assert (number, share <= 0.1) == (3, True)


def test_it_says_which_steps_are_under_way_whose_they_are_and_since_when():
    study = cs.Study.create(None, {"a": 3}, certificate="mixture")
    set_clock(study, 100.0)
    slow = study.worker("slow rig", renews=False).lease(3_600.0, steps=5)
    slow.tell(0)
    assert study.certificate().open_steps == (), "nothing waits for it yet"
    set_clock(study, 160.0)
    leased(study, 40)
    (step,) = study.certificate().open_steps
    assert (step.chain, step.path, step.walker, step.later) == ("a", 1, "slow rig", 39)
    (note,) = [note for note in study.certificate().notes if note.startswith("asked for and not told yet: ")]
    assert re.search(r"path 1 of a \(slow rig, since \d{4}-\d\d-\d\d \d\d:\d\d UTC\)$", note)
    slow.tell(1)
    assert study.certificate().open_steps == ()


def test_with_one_walker_and_nothing_lost_there_is_nothing_to_say():
    study = cs.Study.create(None, {"a": 3})
    study.tell_many([("a", state) for state in itertools.islice(walk(3), 300)])
    found = study.certificate()
    assert (found.open_steps, dict(found.holes), found.lost) == ((), {}, 0)
    assert len(found.notes) == 1
    assert not study.counts("a").holes


def test_entry_intervals_hold_whatever_lost_steps_were():
    study = cs.Study.create(None, {"a": 3}, certificate="mixture")
    leased(study, 600, losing=5)
    counts, found = study.counts("a"), study.estimate("a")
    dense, holes = counts.transitions, counts.holes
    for x, number in holes.items():
        for y in range(3):
            filled = dense.copy()
            filled[x, y] += number
            whole = cs.Estimate(cs.Counts.from_transitions(filled), 0.05)
            assert found.upper[x, y] >= whole.upper[x, y] - 1e-12
            others = cs.Estimate(cs.Counts.from_transitions(filled), 0.05).lower[x, [z for z in range(3) if z != y]]
            assert (found.lower[x, [z for z in range(3) if z != y]] <= others + 1e-12).all()
