"""The e-processes: equal to their literal form card by card, and sensitive to every constant."""

import math

import numpy as np
import pytest
import reference_diagnostics as literal
from simulation import COMPILED

from chainscout.diagnostics import _bets, _decks, _known, _processes

LENGTH = 240 if COMPILED else 120


def chain_cards(size, length, seed, *, sticky=0.0, labels=3, paths=3):
    """Cards of several interleaved paths of a random chain, and random labels."""
    rng = np.random.default_rng(seed)
    matrix = (1 - sticky) * rng.dirichlet(np.full(size, 0.7), size) + sticky * np.eye(size)
    stand = rng.integers(0, size, paths)
    path, step = rng.integers(0, paths, length), np.zeros(length, int)
    source, target = np.zeros(length, int), np.zeros(length, int)
    steps = np.zeros(paths, int)
    for j, p in enumerate(path):
        steps[p] += 1
        step[j], source[j] = steps[p], stand[p]
        target[j] = stand[p] = rng.choice(size, p=matrix[stand[p]])
    return _processes.Cards(path, step, source, target), rng.integers(0, labels, length), matrix


def triples(cards, label):
    return [
        (int(x), int(c), int(y)) for x, c, y in zip(cards.source, label, cards.target, strict=True) if c >= 0
    ]  # fmt: skip


KINDS = [(2, 0.0), (3, 0.9), (6, 0.0), (12, 0.5)]


@pytest.mark.parametrize(("size", "sticky"), KINDS)
def test_fair_bets_are_the_literal_ones(size, sticky):
    cards, _, _ = chain_cards(size, LENGTH, size, sticky=sticky)
    label = cards.predecessors()
    found = _processes.order(cards)
    expected = literal.fair_bets(triples(cards, label))
    assert np.exp(found.log_values) == pytest.approx(expected, rel=1e-8)
    assert (found.places == np.flatnonzero(label >= 0)).all()
    assert found.log_rows.sum() == pytest.approx(found.log_value, abs=1e-9)


def test_fair_bets_against_a_process_with_memory_are_the_literal_ones():
    rng = np.random.default_rng(1)
    walk = [0, 0]
    for _ in range(LENGTH):
        walk.append(walk[-2] if rng.random() < 0.7 else int(rng.integers(3)))
    cards = _processes.Cards(
        np.zeros(LENGTH + 1, int), np.arange(1, LENGTH + 2), np.array(walk[:-1]), np.array(walk[1:])
    )  # fmt: skip
    found = _processes.order(cards)
    expected = literal.fair_bets(triples(cards, cards.predecessors()))
    assert found.log_values == pytest.approx(np.log(expected), rel=1e-8, abs=1e-8)
    assert found.log_value > 20  # W and R leave the range in which nothing has to be scaled


@pytest.mark.parametrize("declared", [None, 3])
@pytest.mark.parametrize(("size", "sticky"), KINDS[:3])
def test_decks_of_labels_are_the_literal_ones(size, sticky, declared):
    cards, label, _ = chain_cards(size, 64, size, sticky=sticky)
    label[: len(label) // 3] = 0  # one label alone at first
    found = _processes.decks(cards.source, cards.target, label, declared)
    expected = literal.looks_at_sameness(triples(cards, label), declared)
    assert np.exp(found.log_values) == pytest.approx(expected, rel=1e-8)


def test_sameness_is_the_mean_of_bets_and_decks():
    cards, label, _ = chain_cards(3, 64, 5)
    found = _processes.sameness(cards.source, cards.target, label, 3)
    bets, looks = literal.fair_bets(triples(cards, label)), literal.looks_at_sameness(triples(cards, label), 3)
    assert np.exp(found.log_values) == pytest.approx((np.array(bets) + looks) / 2, rel=1e-8)


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(("size", "sticky"), KINDS[:3])
def test_change_is_the_literal_one(size, sticky, closed):
    cards, label, _ = chain_cards(size, LENGTH, size, sticky=sticky)
    found = _processes.change(cards.source, cards.target, size if closed else None)
    values, levels = literal.looks_at_change(triples(cards, label), size if closed else None)
    assert np.exp(found.process.log_values) == pytest.approx(values, rel=1e-8)
    assert found.levels == pytest.approx(levels, rel=1e-8)
    smallest = min(levels[-1], 1 / max(1.0, *values))
    assert found.level == pytest.approx(min(1.0, 2 * smallest), rel=1e-8)


def test_change_names_the_window_that_speaks_most():
    rng = np.random.default_rng(3)
    target = np.where(np.arange(600) < 400, rng.random(600) < 0.2, rng.random(600) < 0.9).astype(int)
    found = _processes.change(np.zeros(600, int), target, 2)
    assert found.level < 1e-6
    assert found.row_levels[0] == found.levels[-1]
    assert 390 <= found.first[0] < 500
    assert found.last[0] > found.first[0]


@pytest.mark.parametrize(("size", "sticky"), KINDS)
def test_a_known_matrix_is_judged_by_the_literal_rule(size, sticky):
    cards, label, matrix = chain_cards(size, LENGTH // 4, size, sticky=sticky)
    other = 0.7 * matrix + 0.3 / size
    for law in (matrix, other):
        found = _processes.reference(cards.source, cards.target, law[cards.source, cards.target])
        expected = literal.against_known(triples(cards, label), law)
        assert np.exp(found.log_values) == pytest.approx(expected, rel=1e-8)


def test_what_a_known_matrix_calls_impossible_refutes_it_for_ever():
    found = _processes.reference(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([1.0, 0.0, 0.5]))
    assert found.log_values.tolist() == [0.0, math.inf, math.inf]


def test_the_weights_of_looks_sum_to_one():
    """A look's weight is a share of one: finite sums approach it from below as 1 − 1/(number of terms + 1)."""
    number = 9
    found = sum(_decks.change_weight(i, j) for i in range(30) for j in range(5, 4 + 2**number))
    assert found == pytest.approx((1 - 1 / 31) * (1 - 1 / (number + 1)), rel=1e-12)
    found = sum(_decks.sameness_weight(2 + i, 2 + j) for i in range(200) for j in range(200))
    assert 0.97 < found < 1


def test_a_deck_s_evidence_has_mean_one_given_the_pool():
    """The mean over all ways to draw the smaller group, by hand: the Dirichlet-multinomial probability of them."""
    factorials = np.array([math.lgamma(n + 1) for n in range(30)])
    pool, drawn = np.array([3.0, 5.0, 4.0]), 5
    total, mean = 12, 0.0
    for a in range(4):
        for b in range(6):
            c = drawn - a - b
            if 0 <= c <= 4:
                chance = math.comb(3, a) * math.comb(5, b) * math.comb(4, c) / math.comb(total, drawn)
                part = np.array([a, b, c], float)
                mean += chance * _decks.evidence(factorials, part, pool, 3, float(drawn), float(total))
    feasible = [(a, b, 5 - a - b) for a in range(4) for b in range(6) if 0 <= 5 - a - b <= 4]
    shares = pool / total
    expected = np.mean(
        [sum(literal.dirichlet_multinomial(counts, m * shares) for counts in feasible) for m in (4, 16, 64)]
    )
    assert mean == pytest.approx(expected, rel=1e-12)
    assert mean < 1  # a Dirichlet-multinomial law can also draw more of an outcome than the pool has


def test_tails_are_the_hypergeometric_law_s():
    from scipy import stats

    factorials = np.array([math.lgamma(n + 1) for n in range(200)])
    for total, marked, drawn in ((40, 13, 16), (64, 1, 16), (90, 89, 32), (20, 10, 16)):
        law = stats.hypergeom(total, marked, drawn)
        for hits in range(max(0, drawn + marked - total), min(marked, drawn) + 1):
            expected = min(1.0, 2 * min(law.cdf(hits), law.sf(hits - 1)))
            found = _decks.tail(factorials, float(hits), float(marked), float(drawn), float(total))
            assert found == pytest.approx(expected, rel=1e-9)


def test_evidence_has_a_ceiling_so_that_nothing_overflows():
    first, second = np.zeros(4000, int), np.ones(4000, int)
    found = _processes.change(np.zeros(8000, int), np.concatenate([first, second]), 2)
    assert np.isfinite(found.process.log_values).all()
    assert found.process.log_value > 400


def test_predecessors_are_those_of_the_same_path():
    path, step = np.array([0, 1, 0, 1, 0, 1]), np.array([1, 1, 2, 2, 3, 4])
    cards = _processes.Cards(path, step, np.array([5, 6, 7, 8, 9, 4]), np.arange(6))
    assert cards.predecessors().tolist() == [-1, -1, 5, 6, 7, -1]  # a gap in a path has no predecessor
    assert cards.ages().tolist() == [0] * 6
    ages = cards._replace(step=np.array([16, 17, 128, 129, 1024, 1025])).ages()
    assert ages.tolist() == [0, 1, 1, 2, 2, 3]


def test_labels_beyond_the_stated_number_are_left_out():
    number = _processes.CONTEXTS + 6
    label = np.concatenate([np.arange(number), np.arange(number)])
    zeros = np.zeros(len(label), int)
    found = _processes.fair_bets(zeros, zeros, label)
    assert found.left_out == 12
    assert len(found.log_values) == 2 * _processes.CONTEXTS


def test_cards_without_a_label_change_nothing():
    cards, label, _ = chain_cards(4, 200, 9)
    some = np.where(np.arange(200) % 7 == 3, -1, label)
    kept = some >= 0
    found = _processes.fair_bets(cards.source, cards.target, some)
    alone = _processes.fair_bets(cards.source[kept], cards.target[kept], label[kept])
    assert found.log_values.tolist() == alone.log_values.tolist()


def test_the_mean_over_chains_is_the_mean_at_every_moment():
    rng = np.random.default_rng(0)
    chain, value = rng.integers(0, 5, 300), rng.normal(0, 30, 300)
    weights = np.array([0.3, 0.2, 0.2, 0.2, 0.1])
    found = _processes.mean_over_chains(chain, value, weights)
    now = np.zeros(5)
    for j in range(300):
        now[chain[j]] = value[j]
        assert found[j] == pytest.approx(np.logaddexp.reduce(np.log(weights) + now), rel=1e-12, abs=1e-12)


def test_no_cards_are_no_evidence():
    none = np.empty(0, np.int64)
    cards = _processes.Cards(none, none, none, none)
    for found in (
        _processes.order(cards),
        _processes.sameness(none, none, none),
        _processes.reference(none, none, np.empty(0)),
        _processes.change(none, none, 3).process,
    ):
        assert (found.log_value, found.log_largest) == (0.0, 0.0)
    assert _processes.change(none, none, 3).level == 1.0


def test_constants():
    """Validity or power depends on each of these: a change needs the tables of docs/diagnostics.md anew."""
    assert (_bets.STRENGTHS, _bets.SHARES, _bets.PRIOR) == ((4, 16, 64), (0.8, 0.1, 0.02), (0.5, 0.25, 0.25))
    assert (_bets.FEEDBACK, _bets.CAP, _bets.LEAST_PULL, _bets.MOST_PULL) == (0.3, 3, -3, 1)
    assert (_decks.STRENGTHS, _decks.WINDOW, _decks.SHORTEST) == ((4, 16, 64), 16, 2)
    assert _known.STRENGTHS == (1, 4, 16, 64, 256)
