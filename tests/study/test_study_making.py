"""What a study is made of, and what it estimates: states, weights, a warm start, in every place."""

import math
import random

import pytest
from study_checks import check, replayed_counts
from study_driving import STATES, drive
from study_rules import RULE, TWO_TERMS

from chainscout.certificates import Estimate, certify
from chainscout.certificates.entrywise import intervals
from chainscout.counts import Counts
from chainscout.errors import InputError
from chainscout.study import Study


def test_weights_multiply_index_and_certificate(place):
    weights = {"a": 4.0}
    study = place.create({"a": 2, "b": 2}, policy=RULE, weights=weights)
    plain = Study.create(None, {"a": 2, "b": 2}, policy=RULE)
    for s in (study, plain):
        for name in ("a", "b"):
            for state in (0, 1, 1, 0):
                s.tell(name, state)
    assert study.indices()["a"] == pytest.approx(4.0**0.75 * plain.indices()["a"])
    assert study.indices()["b"] == plain.indices()["b"]
    assert study.certificate().loss == plain.certificate().loss
    assert study.certificate().weighted["a"] == 4.0 * plain.certificate().loss["a"]
    check(study, {"a": 2, "b": 2}, RULE, weights)


def test_warm_start(place):
    counts = Counts.from_path([0, 1, 1, 0, 1], 2)
    study = place.create({"a": 2, "b": 2}, budget=10, policy=RULE, warm_start={"a": counts})
    assert study.ask() == "b"
    assert study.counts("a").transitions.tolist() == counts.transitions.tolist()
    assert study.progress().observations == 0
    study.tell("a", 0)  # a new path
    study.tell("a", 0)
    study = place.reopen(study, RULE)
    assert study.counts("a").transitions.tolist() == [[1, 2], [1, 1]]
    with pytest.raises(InputError, match="warm-started from Counts over"):
        place.create({"a": 3}, policy=RULE, warm_start={"a": counts})


def test_open_states_are_discovered(place):
    study = place.create({"a": [], "b": 2}, policy=TWO_TERMS, open_states=["a"])
    for state in ("x", "y", 3, "x", "x"):
        study.tell("a", state)
    study = place.reopen(study, TWO_TERMS)
    study.tell("a", "z")
    estimate = study.estimate("a")
    assert list(estimate.states) == ["x", "y", 3, "z"]
    assert estimate.transitions.tolist() == [[1, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert (estimate.lower <= estimate.matrix).all()
    assert (estimate.matrix <= estimate.upper).all()
    assert [line.state for line in study.log("a")] == ["x", "y", 3, "x", "x", "z"]
    with pytest.raises(InputError, match="string or a whole number"):
        study.tell("a", 1.5)
    assert math.isfinite(study.certificate().loss["a"])


def test_an_open_chain_is_certified_for_any_number_of_states(place):
    study = place.create({"a": 2, "b": 2}, policy=TWO_TERMS, open_states=True)
    rng = random.Random(0)
    study.tell_many([("a", rng.randrange(2)) for _ in range(300)])
    closed = Study.create(None, {"a": 2, "b": 2}, policy=TWO_TERMS)
    for line in study.log():
        closed.tell(line.chain, line.state)
    assert study.certificate().loss["a"] > closed.certificate().loss["a"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chains": {}}, "at least one"),
        ({"chains": {"": 2}}, "not empty"),
        ({"chains": {"a": 0}}, "≥ 1"),
        ({"chains": {"a": "xyz"}}, "list of labels"),
        ({"chains": {"a": ["x", "x"]}}, "unique"),
        ({"chains": {"a": []}}, "at least one state"),
        ({"chains": {"a": [1.5]}}, "the chain 'a' must be a string or a whole number, not 1.5"),
        ({"budget": 0}, "budget"),
        ({"budget": 2.5}, "budget"),
        ({"delta": 1.0}, "delta"),
        ({"target_loss": -1}, "target_loss"),
        ({"deadline": "soon"}, "deadline"),
        ({"weights": {"b": 1}}, "weights names chains"),
        ({"weights": {"a": -1}}, "weights of chain 'a'"),
        ({"costs": [1]}, "costs must be a mapping"),
        ({"costs": {"a": 5}, "budget": 4}, "does not pay for one observation"),
        ({"paths": "shrug"}, "paths"),
        ({"open_states": "a"}, "open_states"),
        ({"open_states": ["b"]}, "open_states names chains"),
        ({"warm_start": {"a": [[1]]}}, "warm-started"),
        ({"warm_start": ["a"]}, "warm_start must be a mapping"),
    ],
)
def test_a_study_is_checked_before_it_is_made(place, change, words):
    with pytest.raises(InputError, match=words):
        place.create(**{"chains": {"a": 2}, "policy": RULE, **change})


def test_a_million_chains_share_one_list_of_labels():
    study = Study.create(None, {f"c{k}": ["on", "off"] for k in range(100)}, policy=RULE)
    assert len({id(chain.labels) for chain in study._keeper.state().chains}) == 1


def test_estimates_hold_for_all_chains_at_once(place):
    study = place.create(STATES, policy=RULE)
    drive(study, 60)
    estimate = study.estimate("south")
    assert estimate.entries == 9 + 16 + 4
    assert estimate.delta == 0.05
    assert estimate.transitions.tolist() == replayed_counts(study, STATES)["south"].transitions.tolist()


def test_a_warm_start_needs_counts_that_can_be_certified(place):
    pairs = [(x, y, 500) for x in range(2) for y in range(2)]
    correlated = Counts.from_pairs(pairs, 2, correlated=True)
    with pytest.raises(InputError) as sentence:
        certify({"a": correlated})
    with pytest.raises(InputError) as refusal:
        place.create({"a": 2}, policy=RULE, warm_start={"a": correlated})
    assert str(refusal.value) == str(sentence.value)
    seen = Counts.from_pairs(pairs, 2, open_states=True)
    with pytest.raises(InputError, match=r"'a' must be .* states were known beforehand, .* give it open states"):
        place.create({"a": 2}, policy=RULE, warm_start={"a": seen})
    study = place.create({"a": 2}, policy=RULE, open_states=True, warm_start={"a": seen})
    assert study.certificate().loss == certify({"a": seen}).loss


def test_counts_of_an_open_chain_are_of_the_states_seen(place):
    study = place.create({"a": [], "b": ["x", "y"]}, policy=TWO_TERMS, open_states=["a"])
    study.tell_many([(name, state) for state in "xyyxxyxyyx" for name in ("a", "b")])
    counts = {name: study.counts(name) for name in study.names}
    assert [(study.chain(name).open, counts[name].open_states) for name in "ab"] == [(True, True), (False, False)]
    assert certify(counts).loss == study.certificate().loss
    with pytest.raises(InputError, match="only the ones seen"):
        _ = Estimate(counts["a"]).lower
    again = Study.create(None, {name: study.states(name) for name in "ab"}, open_states=["a"], warm_start=counts)
    assert again.certificate().loss == study.certificate().loss


def test_intervals_of_closed_and_open_chains_spend_delta_and_no_more(place):
    study = place.create({"a": 2, "b": 3, "c": []}, policy=TWO_TERMS, open_states=["c"], delta=0.06)
    rng = random.Random(5)
    study.tell_many([(name, rng.randrange(2)) for _ in range(60) for name in "abc"])
    spent = 0.0
    for name in "ab":
        estimate = study.estimate(name)
        assert estimate.delta == 0.06  # what the intervals of the whole study hold with
        level = math.log(estimate.entries / estimate.delta)
        lower, upper = intervals(estimate.transitions, estimate.exits[:, None], level)
        assert (estimate.lower == lower).all()
        assert (estimate.upper == upper).all()
        spent += estimate.transitions.size * math.exp(-level)
    assert spent == pytest.approx(0.06 * 2 / 3, rel=0.1)  # 13 entries · 3/2, rounded up
    assert spent <= 0.06 * 2 / 3
    discovered = study.estimate("c")
    low, high = intervals(discovered.transitions[0, 0] - 1, discovered.exits[0] - 1, math.log(3 * 2 / 0.06))
    rows = [line.state for line in study.log("c")]
    assert rows[:2] == [rows[0]] * 2  # the first pair is (0, 0), the first of its row
    assert (discovered.lower[0, 0], discovered.upper[0, 0]) == (low, high)
    study.tell("c", "new")  # what is discovered later does not change the others' share
    assert study.estimate("a").entries == 20
