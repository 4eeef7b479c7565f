"""The certificate that a study promises: one method for good, the numbers of the counts, and a bounded memory."""

import itertools
import random

import pytest

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
