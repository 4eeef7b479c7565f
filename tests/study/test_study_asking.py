"""Asking: every place makes the same choices, and they are those of the indices."""

import math
import random

import pytest
from study_checks import check, naive_index, replayed_counts
from study_driving import STATES, drive, next_state
from study_rules import BLOCKS, FLOOR, RULE, RULES, TWO_TERMS

from chainscout.policies import Setting
from chainscout.study import Study


@pytest.mark.parametrize("policy", RULES, ids=lambda policy: policy.name)
def test_every_place_makes_the_same_choices_with_stops_in_between(place, policy):
    study = place.create(STATES, budget=150, policy=policy)
    alone = Study.create(None, STATES, budget=150, policy=policy)
    expected = drive(alone, 150)
    found = []
    for _ in range(3):
        found += drive(study, 50)
        study = place.reopen(study, policy)
    assert found == expected
    assert study.finished
    assert study.stop_reason == "budget"
    assert study.indices() == alone.indices()
    check(study, STATES, policy)


@pytest.mark.parametrize("policy", [RULE, TWO_TERMS], ids=lambda policy: policy.name)
def test_indices_are_those_of_the_counts(place, policy):
    study = place.create(STATES, budget=200, policy=policy)
    drive(study, 90)
    counts = replayed_counts(study, STATES)
    for number, (name, index) in enumerate(study.indices().items()):
        setting = Setting(number, counts[name].size, 3, 29, 200)
        assert index == pytest.approx(naive_index(policy, setting, counts[name]), rel=1e-9)


def test_the_chosen_chain_has_the_largest_index_and_the_smallest_number(place):
    study = place.create(STATES, policy=RULE)
    for _ in range(60):
        name = study.ask()
        indices = study.indices()
        best = max(indices.values())
        assert name == next(chain for chain, index in indices.items() if index == best)
        study.tell(name, next_state(study, name))


def test_asking_is_pure(place):
    study = place.create(STATES, budget=40, policy=RULE)
    drive(study, 20)
    before = study.progress(), study.indices(), list(study.log())
    assert study.ask() == study.ask()
    assert study.ask(5) == study.ask(5)
    assert study.ask(1) == [study.ask()]
    assert (study.progress(), study.indices(), list(study.log())) == before


def test_warm_up_is_two_observations_of_each_chain(place):
    study = place.create(STATES, policy=RULE)
    assert drive(study, 6) == ["north", "north", "south", "south", "east", "east"]


def test_blocks_are_kept_over_a_reopening(place):
    study = place.create({"a": 2, "b": 2}, policy=BLOCKS)
    rng = random.Random(1)
    previous, runs = None, {}
    for _ in range(400):
        name = study.ask()
        if name != previous:
            runs = {name: (study.counts(name).total, 0)}
        start, done = runs[name]
        runs[name] = start, done + 1
        previous = name
        study.tell(name, rng.randrange(2))
        if done == 0 and start >= 60:  # the block lasts ⌊0.05·T⌋ ≥ 3 observations
            study = place.reopen(study, BLOCKS)
            assert study.ask() == name
    assert study.counts("a").total > 100


def test_the_least_sampled_chain_goes_first(place):
    study = place.create(STATES, policy=FLOOR)
    for _ in range(80):
        name = study.ask()
        totals = {chain: study.counts(chain).total for chain in STATES}
        if min(totals.values()) < math.sqrt(study.progress().observations) + 1:
            assert totals[name] == min(totals.values())
        study.tell(name, next_state(study, name))


def test_a_batch_follows_the_pending_rule(place):
    study = place.create(STATES, policy=RULE)
    drive(study, 30)
    sums = {name: index * study.counts(name).total for name, index in study.indices().items()}
    pending = dict.fromkeys(STATES, 0)
    expected = []
    for _ in range(12):
        index = {name: sums[name] / (study.counts(name).total + pending[name]) for name in STATES}
        expected.append(max(STATES, key=index.get))
        pending[expected[-1]] += 1
    assert study.ask(12) == expected
