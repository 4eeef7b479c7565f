"""How often a study with a target looks at its certificate: when T has grown by 1 %, and never later."""

import functools
import itertools

import pytest

import chainscout as cs

#: A path of two states that alternate: N_x is ⌈T/2⌉ and ⌊T/2⌋, and the counts depend on nothing else.
PATH = (0, 1)


@functools.cache
def bound(transitions, method):
    """The certificate after so many transitions of the path, from the counts and not from a study."""
    counts = cs.Counts.from_path(list(itertools.islice(itertools.cycle(PATH), transitions + 1)), 2)
    return cs.certify({"a": counts}, 0.05, method).max


def transitions_at_the_end(target, method):
    """How many transitions a study with this target takes on the path."""
    with cs.Study.create(None, {"a": 2}, target_loss=target, delta=0.05, certificate=method) as study:
        for state in itertools.islice(itertools.cycle(PATH), 2_000):
            study.tell("a", state)
            if study.finished:
                break
        assert study.stop_reason == "target_loss"
        assert study.certificate().max <= target
        return study.progress().observations - 1


@pytest.fixture(scope="module", params=["sharp", "mixture"])
def stops(request):
    """First T at which the certificate is at most the target → T at which the study ended, for T around 100 and 450."""
    found = {}
    for first in (*range(80, 120), *range(410, 490)):
        target = bound(first, request.param)
        before = (bound(t, request.param) for t in range(1, first))
        after = (bound(t, request.param) for t in range(first, first + first // 100 + 1))
        # Else an earlier T meets the target too, or a later one does not: 'sharp' is found by a search.
        if target < min(before) and target >= max(after):
            found[first] = transitions_at_the_end(target, request.param)
    return found


def test_a_met_target_is_seen_before_t_has_grown_by_one_per_cent(stops):
    assert len(stops) >= 60
    for first, end in stops.items():
        assert first <= end <= first + max(1, first // 100), (first, end)


def test_below_two_hundred_transitions_every_one_is_looked_at(stops):
    """1 % of fewer than 200 is one: there a target is seen the moment that it is met."""
    assert {first: end for first, end in stops.items() if first < 200} == {t: t for t in stops if t < 200}


def test_beyond_that_not_every_one_is_looked_at(stops):
    """Steps of 4 around 450: targets that are first met at 80 different T end at about a quarter as many."""
    late = [(first, end) for first, end in stops.items() if first > 400]
    assert len({end for _, end in late}) <= len(late) / 3
    assert all(b - a == 4 for a, b in itertools.pairwise(sorted({end for _, end in late})))
