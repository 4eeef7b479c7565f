"""Certificates and intervals of chains whose states are not all known beforehand (MATH §6, §7)."""

import math

import numpy as np
import pytest
import reference_policies
from count_strategies import DELTAS, count_tables
from hypothesis import given, settings
from hypothesis import strategies as st

import chainscout as cs
from chainscout.certificates.mixture import bound_from_exits
from chainscout.certificates.open_states import OpenEstimate

#: The roundings of both writings: tests/test_mixture.py counts them. cost(u) = u/2 is log1p(u/10³⁰⁰)·10³⁰⁰/2 here.
CLOSE = {"rel": 400 * 2**-53, "abs": 0}


# ---------------------------------------------------------------- the certificate


@settings(max_examples=200)
@given(count_tables(most=8), DELTAS, st.integers(1, 50))
def test_the_certificate_of_an_open_chain_is_the_reference(table, delta, chains):
    exits = [int(n) for n in table.sum(axis=1) if n]
    found = bound_from_exits(exits, len(table), math.log(chains / delta), open_states=True)
    assert found == pytest.approx(reference_policies.mixture_certificate(table, chains, delta, True), **CLOSE)
    if chains == 1:
        rows = {x: {y: int(n) for y, n in enumerate(row) if n} for x, row in enumerate(table)}
        pairs = [(x, y, n) for x, row in rows.items() for y, n in row.items()]
        counts = cs.Counts.from_pairs(pairs, len(table), open_states=True)
        assert cs.certify({"a": counts}, delta, "mixture").loss["a"] == found


def test_open_chains_have_the_sharp_certificate_too():
    """Every chain has δ/K, whichever states it has; what open states cost falls as there is more to know."""
    pairs = {"declared": (40, 41), "open": (40, 41), "more": (4000, 4100)}
    counts = {
        name: cs.Counts.from_pairs(
            [("a", "b", n), ("b", "a", m), ("a", "a", n), ("b", "b", n)], ["a", "b"], open_states=name != "declared"
        )
        for name, (n, m) in pairs.items()
    }
    found = cs.certify(counts, 0.15)
    assert found.method == "sharp"
    assert found.guaranteed
    for name, chain in counts.items():
        assert found.loss[name] == pytest.approx(cs.certify({name: chain}, 0.05).max, rel=1e-9)
        assert found.loss[name] < cs.certify({name: chain}, 0.05, "mixture").max
    pairs_of_more = [("a", "b", 4000), ("b", "a", 4100), ("a", "a", 4000), ("b", "b", 4000)]
    declared = cs.Counts.from_pairs(pairs_of_more, ["a", "b"])
    dearer = found.loss["open"] / found.loss["declared"], found.loss["more"] / cs.certify({"d": declared}, 0.05).max
    assert 1 < dearer[1] < dearer[0]
    assert 0 < found.largest_error(1) < 1


def test_one_known_state_proves_nothing():
    """A chain that has shown one state may have others; with declared states there is nothing left to know."""
    opened, declared = (cs.Counts.from_pairs([("a", "a", 30)], ["a"], open_states=kind) for kind in (True, False))
    assert cs.certify({"a": declared}).max == 0
    assert 0 < cs.certify({"a": opened}).max < cs.certify({"a": opened}, method="mixture").max


def test_smoothing_over_the_states_seen_moves_a_row_by_at_most_one_and_one_over_their_number():
    """u is uniform on S′ states, P a law on these and on others: ‖u − P‖² ≤ 1 + 1/S′, and a P elsewhere attains it."""
    generator = np.random.default_rng(4)
    for seen in (1, 2, 5):
        u = np.array([1 / seen] * seen + [0.0] * 3)
        elsewhere = np.eye(seen + 3)[seen]
        assert ((u - elsewhere) ** 2).sum() == pytest.approx(1 + 1 / seen, rel=1e-15)
        laws = generator.dirichlet([0.1] * (seen + 3), 2_000)
        assert ((u - laws) ** 2).sum(axis=1).max() <= 1 + 1 / seen
        # 1 − 1/S′, which is enough where no other states are, is not enough here; nor is 1.
        assert ((u - laws) ** 2).sum(axis=1).max() > 1 > 1 - 1 / seen


def test_the_smoothing_of_an_open_chain_by_hand():
    """One exit of the one state seen, δ = 1/e: W̄ is its ceiling 2N = 2, and smoothing adds r√(2·1/(1 + r)²)."""
    shift = math.sqrt(2) / 3 / (4 / 3)
    assert bound_from_exits([1], 1, 1.0, open_states=True) == pytest.approx((math.sqrt(2) + shift) ** 2, rel=1e-14)
    # Of four states seen: 1 + 1/4.
    shift = math.sqrt(5 / 4) / 3 / (4 / 3)
    assert bound_from_exits([1], 4, 1.0, open_states=True) == pytest.approx((math.sqrt(2) + shift) ** 2, rel=1e-14)


# ---------------------------------------------------------------- intervals


def interval(count, exits, chains, j, delta):
    return reference_policies.entry_interval(count, exits, delta / (chains * j * (j + 1)))


def test_a_pair_counts_from_the_exit_after_its_discovery():
    """0 0 1 0 1 1 0: row 0 leads to 0, 1 and 1, row 1 to 0, 1 and 0. The discoveries are 00, 01, 10 and 11 in turn."""
    with cs.Study.create(None, {"a": []}, open_states=True, delta=0.1) as study:
        for state in (0, 0, 1, 0, 1, 1, 0):
            study.tell("a", state)
        estimate = study.estimate("a")
    assert estimate.transitions.tolist() == [[1, 2], [2, 1]]
    after = {  # (x, y): what was counted after the exit that revealed the pair, and the pair's number
        (0, 0): (0, 2, 1),  # revealed by row 0's first exit; the other two led elsewhere
        (0, 1): (1, 1, 2),  # by its second
        (1, 0): (1, 2, 3),
        (1, 1): (0, 1, 4),
    }
    for (x, y), (count, exits, j) in after.items():
        expected = interval(count, exits, 1, j, 0.1)
        assert (estimate.lower[x, y], estimate.upper[x, y]) == pytest.approx(expected, abs=1e-12), (x, y)


def test_what_revealed_a_pair_is_no_evidence():
    found = OpenEstimate(["a", "b"], {0: {0: 50, 1: 30}}, {0: {0: (1, 1, 1), 1: (2, 31, 1)}}, 0.05, 3)
    for y, (count, exits, j) in {0: (49, 79, 1), 1: (29, 49, 2)}.items():
        expected = interval(count, exits, 3, j, 0.05)
        assert (found.lower[0, y], found.upper[0, y]) == pytest.approx(expected, abs=1e-12)
    assert (found.lower[1], found.upper[1]) == (pytest.approx([0, 0]), pytest.approx([1, 1]))  # nothing was seen of b


def test_warm_counts_of_an_open_chain_are_no_evidence_in_its_intervals():
    """They chose which pairs have an interval, and in which order: the coins are counted from the study's own exits."""
    warm = cs.Counts.from_pairs([(0, 0, 400), (0, 1, 100), (1, 0, 100)], 2, open_states=True)
    create = {"open_states": True, "warm_start": {"a": warm}, "delta": 0.1}
    with cs.Study.create(None, {"a": [0, 1]}, **create) as study:
        before = study.estimate("a")
        assert before.transitions.tolist() == [[400, 100], [100, 0]]
        assert (before.lower == 0).all()
        assert (before.upper == 1).all()
        for state in (0, 0, 0, 1, 1, 0, 0):  # row 0: to 0, 0, 1, 0; row 1: to 1, 0
            study.tell("a", state)
        after = study.estimate("a")
    assert after.transitions.tolist() == [[403, 101], [101, 1]]
    # Discovered by the warm counts in their order: 00, 01, 10; by the study, at row 1's first exit: 11.
    expected = {(0, 0): (3, 4, 1), (0, 1): (1, 4, 2), (1, 0): (1, 2, 3), (1, 1): (0, 1, 4)}
    for (x, y), (count, exits, j) in expected.items():
        ends = interval(count, exits, 1, j, 0.1)
        assert (after.lower[x, y], after.upper[x, y]) == pytest.approx(ends, abs=1e-12), (x, y)


def test_all_intervals_of_an_open_chain_share_its_delta():
    assert sum(1 / (j * (j + 1)) for j in range(1, 10_000)) == pytest.approx(1 - 1e-4)
