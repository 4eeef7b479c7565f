"""The certificates against their slow reference, their limits, and the laws they obey (MATH §7)."""

import math
import tracemalloc

import numpy as np
import pytest
import reference
import reference_policies
import simulation
from count_strategies import DELTAS, count_tables
from hypothesis import given
from hypothesis import strategies as st

from chainscout.certificates import ASSUMPTION, METHODS, Certificate, Estimate, asymptotic, certify, paper
from chainscout.chains import MarkovChain
from chainscout.counts import Counts
from chainscout.errors import ChainscoutError
from chainscout.guarantees import beta, beta_unknown_horizon
from chainscout.losses import loss

EXACT = {"rel": 1e-12, "abs": 1e-14}
#: Sums of a dozen logarithms, then a quotient.
CLOSE = {"rel": 1e-11, "abs": 0}


# ---------------------------------------------------------------- paper


@given(count_tables(least=2), DELTAS, st.integers(0, 10**7))
def test_the_paper_certificate_is_the_index(table, delta, spare):
    counts = {"a": Counts.from_transitions(table), "b": Counts.from_transitions([[1]])}
    pairs, budget = len(table) ** 2 + 1, int(table.sum()) + 1 + spare
    expected = reference.index(table, reference.beta(max(2, budget), delta, pairs))
    found = certify(counts, delta, "paper", budget=max(2, budget)).loss
    assert found["a"] == pytest.approx(expected, **EXACT)
    assert found["b"] == 0
    level = beta_unknown_horizon(int(table.sum()), delta, pairs)
    assert certify(counts, delta, "paper").loss["a"] == pytest.approx(reference.index(table, level), **EXACT)


def test_the_tight_index_is_the_reference_with_tight_constants():
    table = np.array([[5, 2, 0], [0, 0, 9], [0, 0, 0]])
    expected = reference.index(table, 9.0, reference.TIGHT_CONSTANTS)
    assert paper.bound(Counts.from_transitions(table), 9.0, paper.TIGHT) == pytest.approx(expected, **EXACT)


def test_compiled_index_agrees_with_the_interpreted_one():
    row, size, alpha = [3.0, 0.0, 5.0], 3, 1 / 9
    found = []
    for module in (paper, simulation):
        deviations = 0.0
        for n in row:
            deviations += module.entry(n, 8.0, size, alpha)
        terms = module.row_terms(deviations, 8.0, 34.0, size, alpha)
        found.append((terms, module.index(terms, 8.0, module.factors(size, 7.0, paper.STATED))))
    assert found[0] == found[1]


# ---------------------------------------------------------------- asymptotic


@given(count_tables(), st.floats(1e-6, 0.5))  # the reference's 1 − δT/t keeps ten digits of the least δ
def test_the_asymptotic_certificate_is_the_reference(table, delta):
    other = np.array([[30, 1], [2, 8]])
    counts = {"a": Counts.from_transitions(table), "b": Counts.from_transitions(other)}
    total = int(table.sum() + other.sum())
    found = certify(counts, delta, "asymptotic")
    for name, N in (("a", table), ("b", other)):
        expected = reference_policies.asymptotic_certificate(N, total, delta)
        # The reference's variance s₂ − 2s₃ + s₂² loses digits where rows are nearly deterministic.
        assert found.loss[name] == pytest.approx(expected, rel=1e-5, abs=1e-8 / N.sum())


def test_a_nearly_deterministic_row_keeps_its_variance():
    # 10⁹ stays and one move: λ = 2p(1−p) is the only eigenvalue of a row of two, v = 2λ² (a sum of terms near one that
    # cancel would leave nothing of it).
    counts = Counts.from_transitions([[10**9, 1], [0, 0]])
    p = (1 + 1 / 6) / (10**9 + 1 + 1 / 3)
    mean, variance = asymptotic.plug_in_moments(counts)
    assert variance == pytest.approx(2 * (2 * p * (1 - p)) ** 2, rel=1e-6)
    assert mean == pytest.approx(2 * p * (1 - p) + 1 / (10**9 + 1), rel=1e-6)


def test_plug_in_moments_are_those_of_the_smoothed_rows():
    table = np.random.default_rng(3).poisson(np.random.default_rng(4).gamma(0.5, 8.0, (6, 6)))
    mean, variance = asymptotic.plug_in_moments(Counts.from_transitions(table))
    rows = [reference.smoothed(table)[x] for x, _ in reference_policies.seen_rows(table)]
    assert mean == pytest.approx(reference_policies.optimistic_variability(table, 1.0), **EXACT)
    eigenvalues = np.concatenate([np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)) for p in rows])
    assert variance == pytest.approx(2 * (eigenvalues**2).sum(), **EXACT)


# ---------------------------------------------------------------- the Certificate object


def two_chains():
    return {"north": Counts.from_transitions([[40, 7], [6, 11]]), "south": Counts.from_transitions(np.diag([9, 9, 3]))}


@pytest.mark.parametrize("method", METHODS)
def test_a_certificate(method):
    found = certify(two_chains(), 0.1, method)
    assert isinstance(found, Certificate)
    assert list(found.loss) == ["north", "south"]
    assert isinstance(found.loss, dict)
    assert all(isinstance(bound, float) and bound > 0 for bound in found.loss.values())
    assert found.max == max(found.loss.values())
    assert (found.delta, found.method) == (0.1, method)
    assert found.guaranteed == (method != "asymptotic") == ("not guaranteed" not in METHODS[method])
    with pytest.raises(AttributeError):
        found.delta = 0.5


def test_the_assumption_is_said():
    assert "drawn afresh by the process itself from the state before it" in ASSUMPTION
    assert "lost" in ASSUMPTION


@pytest.mark.parametrize("method", METHODS)
def test_no_transition_no_bound(method):
    counts = {**two_chains(), "new": Counts(4), "seen once": Counts.from_path([2], 4)}
    found = certify(counts, method=method)
    assert found.loss["new"] == found.loss["seen once"] == found.max == math.inf
    assert found.loss["north"] < math.inf


@pytest.mark.parametrize("method", METHODS)
def test_one_state_is_known(method):
    found = certify({"trap": Counts.from_transitions([[7]]), "unseen": Counts(1)}, method=method).loss
    assert found == {"trap": 0.0, "unseen": 0.0 if method in ("sharp", "mixture") else math.inf}


@pytest.mark.parametrize("method", ["paper", "entrywise"])
def test_unequal_sizes_share_delta_by_their_entries(method):
    counts = two_chains()
    alone = certify({"north": counts["north"]}, 0.1 * 4 / (4 + 9), method)
    assert certify(counts, 0.1, method).loss["north"] == pytest.approx(alone.max, **CLOSE)


def test_the_mixture_shares_delta_by_the_chains():
    alone = certify({"south": two_chains()["south"]}, 0.1 / 2)
    assert certify(two_chains(), 0.1).loss["south"] == pytest.approx(alone.max, **CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_a_million_states(method):
    """Ten thousand observations of a chain of a million states, in little memory."""
    counts = Counts(1_000_000)
    for state in np.random.default_rng(5).zipf(1.5, 10_000) % 1_000_000:
        counts.record(int(state))
    tracemalloc.start()
    bound = certify({"large": counts}, method=method).max
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < bound < math.inf
    if method in ("mixture", "entrywise"):
        assert bound <= 3  # ‖P − P̂‖² ≤ 2, and the mixture adds what smoothing did: (√2 + 1/4)² at most
    assert peak < 20_000_000


# ---------------------------------------------------------------- laws


@given(count_tables(least=2), st.randoms(use_true_random=False), st.sampled_from(sorted(METHODS)))
def test_relabelling_states_changes_nothing(table, random, method):
    order = list(range(len(table)))
    random.shuffle(order)
    relabelled = table[np.ix_(order, order)]
    bounds = [certify({"a": Counts.from_transitions(N)}, 0.1, method).max for N in (table, relabelled)]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)


@given(count_tables(least=2), DELTAS, DELTAS, st.sampled_from(sorted(METHODS)))
def test_a_larger_delta_gives_a_smaller_bound(table, one, other, method):
    counts = {"a": Counts.from_transitions(table)}
    smaller, larger = (certify(counts, delta, method).max for delta in (max(one, other), min(one, other)))
    assert smaller <= larger * (1 + 1e-9)


@given(count_tables(least=2), DELTAS, st.sampled_from(["mixture", "paper", "entrywise"]))
def test_the_truth_may_be_the_frequencies(table, delta, method):
    """A bound holds for every truth that is not refuted, first of all for the frequencies themselves."""
    counts = Counts.from_transitions(table)
    truth = MarkovChain(counts.matrix(alpha=0.0))
    assert certify({"a": counts}, delta, method).max >= loss(truth, counts) * (1 - 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_hundred_times_the_counts_shrink_the_bound(method):
    table = np.array([[6, 3, 1], [2, 7, 1], [1, 1, 8]])
    few, many = (certify({"a": Counts.from_transitions(factor * table)}, method=method).max for factor in (1, 100))
    assert many < few / 20  # like 1/T, up to logarithms


def test_more_chains_cost_only_a_logarithm():
    table = np.array([[60, 30], [20, 70]])
    one, hundred = (
        certify({str(k): Counts.from_transitions(table) for k in range(number)}).loss["0"] for number in (1, 100)
    )
    assert one < hundred < 2.5 * one


def test_the_horizon_of_the_paper_certificate():
    counts = {"a": Counts.from_transitions([[6, 3], [2, 7]])}
    near, far = (certify(counts, method="paper", budget=budget).max for budget in (18, 10**9))
    assert near < far
    level = beta(18, 0.05, 4)
    assert near == paper.bound(counts["a"], level)


# ---------------------------------------------------------------- bad input

GOOD = {"a": Counts.from_transitions([[6, 3], [2, 7]])}
BAD = {
    "no chain": lambda: certify({}),
    "a list": lambda: certify([GOOD["a"]]),
    "one Counts": lambda: certify(GOOD["a"]),
    "a matrix": lambda: certify({"a": [[1, 2], [3, 4]]}),
    "None": lambda: certify(None),
    "delta 0": lambda: certify(GOOD, 0.0),
    "delta 1": lambda: certify(GOOD, 1.0),
    "delta nan": lambda: certify(GOOD, math.nan),
    "delta inf": lambda: certify(GOOD, math.inf),
    "delta text": lambda: certify(GOOD, "0.05"),
    "unknown method": lambda: certify(GOOD, method="bayes"),
    "method None": lambda: certify(GOOD, method=None),
    "a method in a list": lambda: certify(GOOD, method=["mixture"]),
    "budget without paper": lambda: certify(GOOD, budget=100),
    "budget spent": lambda: certify(GOOD, method="paper", budget=5),
    "budget of one half": lambda: certify(GOOD, method="paper", budget=100.5),
    "estimate of a matrix": lambda: Estimate(np.eye(2)),
    "estimate delta": lambda: Estimate(GOOD["a"], 1.2),
    "too few entries": lambda: Estimate(GOOD["a"], entries=3),
    "entries nan": lambda: Estimate(GOOD["a"], entries=math.nan),
    "alpha negative": lambda: Estimate(GOOD["a"], alpha=-1.0),
    "alpha unknown": lambda: Estimate(GOOD["a"], alpha="bayes"),
    "a million states at once": lambda: Estimate(Counts(1_000_000)).matrix,
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(ChainscoutError) as caught:
        call()
    assert len(str(caught.value)) > 20
    assert "\n" not in str(caught.value)
