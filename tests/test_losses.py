"""Losses: against the reference, by hand, and inequalities between distances."""

import math

import numpy as np
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import POSITIVE, SIZES, as_rows, tables

from chainscout.chains import MarkovChain
from chainscout.counts import SMOOTHING, Counts
from chainscout.errors import InputError, NotErgodicError
from chainscout.losses import DISTANCES, WEIGHTS, loss

IN_THE_REFERENCE = {"kullback-leibler": "kl", "squared-hellinger": "hellinger", "ones": "one"}


@st.composite
def observed_chains(draw, least=1):
    """A matrix and the transitions that some of its runs might have shown (or any others)."""
    matrix = draw(POSITIVE)
    table = draw(tables(len(matrix), least))
    assume(table.sum() > 0)
    return matrix, table


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("distance", DISTANCES)
@given(drawn=observed_chains(least=0), alpha=st.sampled_from([None, *SMOOTHING, 0.2]))
def test_agrees_with_the_reference(distance, weights, drawn, alpha):
    """L, L′ and L″ with each of the five distances."""
    matrix, table = drawn
    found = loss(MarkovChain(matrix), Counts.from_transitions(table), distance=distance, weights=weights, alpha=alpha)
    number = SMOOTHING[alpha](len(matrix)) if isinstance(alpha, str) else alpha
    names = (IN_THE_REFERENCE.get(name, name) for name in (weights, distance))
    assert found == pytest.approx(reference.loss(matrix, table, number, *names), rel=1e-9, abs=1e-12)
    assert found >= 0


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        ("squared", 2 * 0.25**2),
        ("total-variation", 0.25),
        ("kullback-leibler", 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)),
        ("chi-squared", 2 * 0.25**2 / 0.5),
        ("squared-hellinger", 1 - math.sqrt(0.5) * (math.sqrt(0.75) + math.sqrt(0.25))),
    ],
)
def test_one_row_by_hand(distance, expected):
    """P(0,·) = (¾, ¼) was seen as (½, ½), P(1,·) as it is; half of the exits were from either."""
    chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]])
    counts = Counts.from_transitions([[2, 2], [1, 3]])
    for weights, weight in (("empirical", 0.5), ("ones", 1), ("stationary", 0.5)):
        assert loss(chain, counts, distance=distance, weights=weights, alpha=0) == pytest.approx(weight * expected)


@given(SIZES.flatmap(lambda size: st.tuples(tables(size, least=1), tables(size, least=1))))
def test_zero_if_and_only_if_equal(drawn):
    """Without smoothing, frequencies that are the probabilities lose exactly nothing."""
    table, other = drawn
    chain, counts = MarkovChain(as_rows(table)), Counts.from_transitions(other)
    same = np.array_equal(chain.matrix, as_rows(other))
    for distance in DISTANCES:
        for weights in WEIGHTS:
            assert loss(chain, Counts.from_transitions(table), distance=distance, weights=weights, alpha=0) == 0
            found = loss(chain, counts, distance=distance, weights=weights, alpha=0)
            assert found == 0 if same else found > 1e-9


@given(SIZES.flatmap(lambda size: st.tuples(tables(size), tables(size))))
def test_relations_between_distances(drawn):
    p, q = map(as_rows, drawn)
    d = {name: distance(p, q) for name, distance in DISTANCES.items()}
    variation, hellinger = d["total-variation"], d["squared-hellinger"]
    slack = 1e-12
    assert all((values >= 0).all() for values in d.values())
    assert (d["squared"] <= 2 * variation**2 + slack).all()
    assert (variation <= 1 + slack).all()
    assert (hellinger <= variation + slack).all()
    assert (variation <= np.sqrt(hellinger * (2 - hellinger)) + slack).all()  # sharper than √2·H
    assert (variation**2 <= d["kullback-leibler"] / 2 + slack).all()  # Pinsker
    assert (d["kullback-leibler"] <= np.log1p(d["chi-squared"]) + slack).all()  # Jensen: so KL ≤ χ²
    for symmetric in ("squared", "total-variation", "squared-hellinger"):
        assert d[symmetric] == pytest.approx(DISTANCES[symmetric](q, p))


@given(observed_chains(), st.randoms(use_true_random=False))
def test_relabelling_changes_no_loss(drawn, random):
    matrix, table = drawn
    order = np.array(random.sample(range(len(matrix)), len(matrix)))
    moved = np.ix_(order, order)
    for distance in DISTANCES:
        for weights in WEIGHTS:
            arguments = {"distance": distance, "weights": weights}
            before = loss(MarkovChain(matrix), Counts.from_transitions(table), **arguments)
            after = loss(MarkovChain(matrix[moved]), Counts.from_transitions(table[moved]), **arguments)
            assert after == pytest.approx(before, rel=1e-9)


def test_what_was_never_seen_is_infinitely_far_without_smoothing():
    chain, counts = MarkovChain([[0.5, 0.5], [0.5, 0.5]]), Counts.from_transitions([[4, 0], [0, 0]])
    assert loss(chain, counts, distance="kullback-leibler", alpha=0) == math.inf
    assert loss(chain, counts, distance="chi-squared", alpha=0) == math.inf
    assert loss(chain, counts, distance="chi-squared", alpha=5e-324) == math.inf
    assert loss(chain, counts, distance="squared", alpha=0) == 0.5
    # A state that is left for ever has no weight in L″, whatever is estimated there.
    absorbing, counts = MarkovChain([[1, 0], [0.5, 0.5]]), Counts.from_transitions([[4, 0], [3, 0]])
    assert loss(absorbing, counts, distance="kullback-leibler", weights="stationary", alpha=0) == 0


def test_impossible_transitions_are_no_distance():
    chain, counts = MarkovChain([[1, 0], [0, 1]]), Counts.from_transitions([[5, 0], [0, 2]])
    for distance in DISTANCES:
        assert loss(chain, counts, distance=distance, weights="ones", alpha=0) == 0


@pytest.mark.parametrize(
    ("states", "observed"),
    [(None, ["a", "b"]), (["a", "b"], 2), (["a", "b"], ["a", "b"]), ([0, 1], 2), (["a", "b"], [0, 1])],
)
def test_numbers_stand_for_any_labels(states, observed):
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=states)
    assert loss(chain, Counts.from_transitions([[1, 1], [1, 1]], observed)) == 0


@pytest.mark.parametrize("observed", [["b", "a"], ["a", "c"], 3, 10**9], ids=str)
def test_other_states_are_refused(observed):
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["a", "b"])
    with pytest.raises(InputError, match=r"the counts must be over the chain's states \['a', 'b'\], not over"):
        loss(chain, Counts(observed))


def test_weights_that_do_not_exist():
    chain = MarkovChain(np.eye(2))
    with pytest.raises(InputError, match="no transition has been seen yet"):
        loss(chain, Counts(2))
    assert loss(chain, Counts(2), weights="ones") == pytest.approx(1)  # the estimate is uniform
    with pytest.raises(NotErgodicError, match="no single stationary law"):
        loss(chain, Counts(2), weights="stationary")
