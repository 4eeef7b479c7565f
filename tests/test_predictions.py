"""The limit law of the loss (MATH §6, §8) against the weighted χ² sums that it stands for.

W_k = Σ λ_i χ²₁, λ the eigenvalues of diag(p) − ppᵀ over all rows p of chain k. Monte Carlo: 100,000 draws with fixed
seeds; a tolerance is four standard errors and, where it says so, what the Wilson–Hilferty approximation is off by.
"""

import functools
import math

import numpy as np
import pytest
import reference
import reference_policies
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import chi2

from chainscout import predictions
from chainscout.chains import MarkovChain
from chainscout.errors import ChainscoutError
from chainscout.problems import Problem

EXACT = {"rel": 1e-12, "abs": 1e-14}
DRAWS = 100_000
LEVELS = (0.5, 0.9, 0.95, 0.99)
#: How far the probability of a Wilson–Hilferty quantile is from what it should be. One χ²₁ is the most skewed of all
#: these laws; `test_wilson_hilferty_of_one_chi_squared` shows that even there it is within this.
WILSON_HILFERTY = 0.01

FAIR = MarkovChain(np.full((2, 2), 0.5))
STICKY = MarkovChain([[0.95, 0.05, 0.0], [0.02, 0.95, 0.03], [0.0, 0.05, 0.95]])
CYCLE = MarkovChain(np.roll(np.eye(3), 1, axis=1))


def dirichlet(size, concentration, seed):
    return MarkovChain(np.random.default_rng(seed).dirichlet(np.full(size, concentration), size))


CHAINS = {
    "fair": FAIR,
    "two states": MarkovChain([[0.9, 0.1], [0.4, 0.6]]),
    "one random row": MarkovChain([[0.7, 0.3], [1.0, 0.0]]),
    "sticky": STICKY,
    "five states": dirichlet(5, 1.0, 1),
    "sparse rows": dirichlet(8, 0.1, 2),
    "uniform rows": MarkovChain(np.full((6, 6), 1 / 6)),
}
PROBLEMS = {
    "two alike": Problem({"a": FAIR, "b": FAIR}),
    "two unlike": Problem({"fair": FAIR, "sticky": STICKY}),
    "three sizes": Problem({"fair": FAIR, "five": CHAINS["five states"], "sparse": CHAINS["sparse rows"]}),
    "four": Problem({str(k): dirichlet(3, c, k) for k, c in enumerate([0.2, 0.5, 1.0, 5.0])}),
    "with a deterministic chain": Problem({"cycle": CYCLE, "fair": FAIR, "sticky": STICKY}),
}


def eigenvalues(chain):
    return np.concatenate([np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)) for p in chain.matrix]).clip(0)


@functools.cache
def draws(chain, seed):
    return np.random.default_rng(seed).chisquare(1, (DRAWS, chain.size**2)) @ eigenvalues(chain)


def all_draws(problem, seed=100):
    return np.column_stack([draws(chain, seed + k) for k, chain in enumerate(problem.chains.values())])


def largest(samples, share):
    """max_k W_k/share_k; a chain without variability is never the worst."""
    used = samples.any(axis=0)
    return (samples[:, used] / np.asarray(share)[used]).max(axis=1)


def four_errors(probability):
    return 4 * math.sqrt(probability * (1 - probability) / DRAWS)


# ---------------------------------------------------------------- one chain


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_moments_are_those_of_the_eigenvalues(chain):
    values = eigenvalues(chain)
    assert chain.variability == pytest.approx(values.sum(), rel=1e-9)
    assert chain.loss_variance == pytest.approx(2 * (values**2).sum(), rel=1e-9)
    assert chain.loss_variance == pytest.approx(reference.loss_variance(chain.matrix), **EXACT)
    # And of the draws: the variance of a sample variance is (κ₄ + 2v²)/n, κ₄ = 48Σλ⁴.
    sample, v = draws(chain, 0), chain.loss_variance
    assert abs(sample.mean() - chain.variability) <= 4 * math.sqrt(v / DRAWS)
    assert abs(sample.var() - v) <= 4 * math.sqrt((48 * (values**4).sum() + 2 * v**2) / DRAWS)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-6, 1e-9, 1e-12, 1e-16, 1e-20, 1e-100])
def test_a_nearly_deterministic_chain(epsilon):
    """Each row has the one eigenvalue 2ε(1−ε), which s₂ − 2s₃ + s₂² would lose below ε ≈ 1e-8."""
    chain = MarkovChain([[1 - epsilon, epsilon], [epsilon, 1 - epsilon]])
    assert chain.loss_variance == pytest.approx(4 * (2 * epsilon * (1 - epsilon)) ** 2, rel=1e-14, abs=0)
    # Two rows alike: W/ΣG is exponential, as it is for the fair coin.
    both = Problem({"nearly deterministic": chain}), Problem({"fair": FAIR})
    means = [predictions.mean_of_maximum(p, np.ones(1)) / p.variability for p in both]
    quantiles = [predictions.quantile_of_maximum(p, np.ones(1), 0.95) / p.variability for p in both]
    assert means[0] == pytest.approx(means[1], rel=1e-3)
    assert quantiles[0] == pytest.approx(quantiles[1], rel=1e-3)


def test_wilson_hilferty_of_one_chi_squared():
    for q in LEVELS:
        assert abs(chi2.cdf(predictions.quantile(1.0, 2.0, q), 1) - q) <= WILSON_HILFERTY
        # With more degrees of freedom (equal λ) it is better.
        for freedom in (2, 5, 30):
            error = abs(chi2.cdf(predictions.quantile(freedom, 2 * freedom, q), freedom) - q)
            assert error <= WILSON_HILFERTY / freedom


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("q", LEVELS)
def test_quantiles_against_draws(chain, q):
    quantile = predictions.quantile(chain.variability, chain.loss_variance, q)
    assert quantile == pytest.approx(
        reference_policies.wilson_hilferty(chain.variability, chain.loss_variance, q), **EXACT
    )
    below = (draws(chain, 0) <= quantile).mean()
    assert abs(below - q) <= four_errors(q) + WILSON_HILFERTY


def test_quantiles_at_the_edges():
    assert predictions.quantile(0.0, 0.0, 0.95) == 0
    assert predictions.quantile(1.0, 2.0, 1e-9) == 0  # below zero there is nothing
    assert predictions.quantile(1.0, 0.0, 0.3) == 1  # no variance: the mean
    assert predictions.quantile_at(1.0, 2.0, 1.6448536269514722) == pytest.approx(
        predictions.quantile(1.0, 2.0, 0.95), **EXACT
    )


# ---------------------------------------------------------------- the share rule

MOMENTS = st.lists(st.tuples(st.floats(1e-6, 1e3), st.floats(0.02, 2.0)), min_size=1, max_size=8)


def split(moments):
    """Means, and variances between those of many equal λ and of a single one (v ≤ 2μ²)."""
    means = np.array([mean for mean, _ in moments])
    return means, means**2 * np.array([spread for _, spread in moments])


@given(MOMENTS)
def test_shares_are_a_fixed_point(moments):
    means, variances = split(moments)
    share = predictions.share_rule(means, variances)
    assert share.sum() == pytest.approx(1, **EXACT)
    assert (share > 0).all()
    if len(share) > 1:
        ratios = [
            predictions.quantile_at(m, v, -ndtri(s / 2)) / s for m, v, s in zip(means, variances, share, strict=True)
        ]
        assert ratios == pytest.approx(np.full(len(ratios), ratios[0]), rel=1e-7)


@given(MOMENTS, st.floats(1e-3, 1e3))
def test_shares_do_not_depend_on_units_or_order(moments, unit):
    means, variances = split(moments)
    share = predictions.share_rule(means, variances)
    assert predictions.share_rule(unit * means, unit**2 * variances) == pytest.approx(share, rel=1e-7)
    assert predictions.share_rule(means[::-1], variances[::-1]) == pytest.approx(share[::-1], rel=1e-7)


def test_shares_in_simple_cases():
    assert predictions.share_rule([3.0], [2.0]).tolist() == [1.0]
    assert predictions.share_rule([3.0] * 7, [2.0] * 7) == pytest.approx(np.full(7, 1 / 7), rel=1e-9)
    # Among very many, each has to be ready for a far quantile of its own.
    assert predictions.share_rule([1.0] * 500, [2.0] * 500) == pytest.approx(np.full(500, 1 / 500), rel=1e-9)
    assert predictions.share_rule([3.0, 0.0, 3.0], [2.0, 0.0, 2.0]) == pytest.approx([0.5, 0, 0.5], rel=1e-9)
    # A chain that hardly varies keeps a share of its own, and the rule its equation.
    share = predictions.share_rule([1.0, 1e-18], [1.0, 1e-36])
    ratio = [predictions.quantile_at(m, m * m, -ndtri(share[k] / 2)) / share[k] for k, m in enumerate((1.0, 1e-18))]
    assert ratio[1] == pytest.approx(ratio[0], rel=1e-6)


@pytest.mark.parametrize("name", ["two alike", "two unlike", "four", "with a deterministic chain"])
def test_shares_of_a_problem(name):
    problem = PROBLEMS[name]
    matrices = [chain.matrix for chain in problem.chains.values()]
    best = predictions.shares(problem, "oracle-max")
    assert best == pytest.approx(reference_policies.oracle_max_shares(matrices), rel=1e-6, abs=1e-9)
    assert predictions.shares(problem, "oracle") == pytest.approx(reference.allocation(matrices), **EXACT)
    assert predictions.shares(problem, "uniform").tolist() == [1 / len(problem)] * len(problem)
    for name, share in zip(problem, best, strict=True):
        assert (share == 0) == (problem[name].variability == 0)


def test_random_chains_that_are_nearly_deterministic_have_shares():
    random = np.random.default_rng(0)
    for _ in range(50):
        chain = MarkovChain(random.dirichlet(np.full(3, 0.02), size=3))
        problem = Problem({"sparse": chain, "fair": FAIR})
        share = predictions.shares(problem, "oracle-max")
        assert share.sum() == pytest.approx(1, **EXACT)
        ratios = [
            predictions.quantile_at(c.variability, c.loss_variance, -ndtri(s / 2)) / s
            for c, s in zip(problem.chains.values(), share, strict=True)
        ]
        assert ratios[0] == pytest.approx(ratios[1], rel=1e-6)


@pytest.mark.parametrize("problem", [PROBLEMS[name] for name in ("two unlike", "three sizes", "four")])
def test_the_share_rule_is_nearly_optimal(problem):
    """On the same draws, so that no Monte Carlo error remains: within 0.5 % of the least E[max], and better than η."""
    samples = all_draws(problem)

    def objective(logits):
        weights = np.exp(logits - logits.max())
        return largest(samples, weights / weights.sum()).mean()

    best, eta = (predictions.shares(problem, name) for name in ("oracle-max", "oracle"))
    options = {"xatol": 1e-5, "fatol": 1e-7, "maxiter": 400}
    least = minimize(objective, np.log(best), method="Nelder-Mead", options=options).fun
    assert least <= largest(samples, best).mean() <= 1.005 * least
    assert largest(samples, best).mean() < 0.99 * largest(samples, eta).mean()


# ---------------------------------------------------------------- the maximum


@pytest.mark.parametrize("allocation", predictions.ALLOCATIONS)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_the_maximum_against_draws(problem, allocation):
    share = predictions.shares(problem, allocation)
    worst = largest(all_draws(problem), share)
    mean = predictions.mean_of_maximum(problem, share)
    # Four standard errors, and 1 % for Wilson–Hilferty (0.14 % for one χ²₁).
    assert abs(mean - worst.mean()) <= 4 * worst.std() / math.sqrt(DRAWS) + 0.01 * worst.mean()
    for q in LEVELS:
        below = (worst <= predictions.quantile_of_maximum(problem, share, q)).mean()
        assert abs(below - q) <= four_errors(q) + WILSON_HILFERTY


def test_the_maximum_of_one_chain_is_that_chain():
    problem = Problem({"fair": FAIR})
    one = np.ones(1)
    for q in (1e-6, 0.01, 0.05, *LEVELS, 1 - 1e-9):
        quantile = predictions.quantile(FAIR.variability, FAIR.loss_variance, q)
        assert predictions.quantile_of_maximum(problem, one, q) == pytest.approx(quantile, rel=1e-9, abs=1e-12)
    # Two fair rows: W is exponential with mean one.
    assert predictions.mean_of_maximum(problem, one) == pytest.approx(1, rel=0.005)


def test_a_quantile_so_low_that_it_is_zero():
    # One random row: Wilson–Hilferty puts 5 % of χ²₁ at zero.
    problem = Problem({"a": CHAINS["one random row"], "b": CHAINS["one random row"]})
    assert predictions.quantile_of_maximum(problem, np.full(2, 0.5), 1e-4) == 0
    quantiles = [predictions.quantile_of_maximum(problem, np.full(2, 0.5), q) for q in (1e-4, 0.01, 0.1, 0.5, 0.999)]
    assert quantiles == sorted(quantiles)


def test_the_maximum_of_deterministic_chains_is_zero():
    problem = Problem({"a": CYCLE, "b": CYCLE})
    assert predictions.mean_of_maximum(problem, np.full(2, 0.5)) == 0
    assert predictions.quantile_of_maximum(problem, np.full(2, 0.5), 0.9) == 0


def test_shares_scale_the_maximum():
    problem, share = PROBLEMS["two unlike"], np.array([0.3, 0.7])
    for function in (predictions.mean_of_maximum, lambda p, s: predictions.quantile_of_maximum(p, s, 0.95)):
        assert function(problem, share / 10) == pytest.approx(10 * function(problem, share), rel=1e-6)


# ---------------------------------------------------------------- bad input

TWO = PROBLEMS["two unlike"]
#: The square of its ΣG is no float.
TINY = Problem({"tiny": MarkovChain([[1.0, 1e-200], [1e-200, 1.0]]), "fair": FAIR})
BAD = {
    "q = 0": lambda: predictions.quantile(1.0, 2.0, 0.0),
    "q = 1": lambda: predictions.quantile(1.0, 2.0, 1.0),
    "q nan": lambda: predictions.quantile_of_maximum(TWO, np.full(2, 0.5), math.nan),
    "q text": lambda: predictions.quantile_of_maximum(TWO, np.full(2, 0.5), "0.9"),
    "unknown allocation": lambda: predictions.shares(TWO, "best"),
    "deterministic, oracle": lambda: predictions.shares(Problem({"a": CYCLE}), "oracle"),
    "deterministic, oracle-max": lambda: predictions.shares(Problem({"a": CYCLE}), "oracle-max"),
    "no chain": lambda: predictions.share_rule([], []),
    "unequal lengths": lambda: predictions.share_rule([1.0, 2.0], [1.0]),
    "negative mean": lambda: predictions.share_rule([1.0, -2.0], [1.0, 1.0]),
    "variance nan": lambda: predictions.share_rule([1.0, 2.0], [1.0, math.nan]),
    "text": lambda: predictions.share_rule(["a"], ["b"]),
    "a variance that no chain has": lambda: predictions.share_rule([1.0, 2.0], [2.1, 1.0]),
    "a table": lambda: predictions.share_rule([[1.0]], [[1.0]]),
    "three shares for two": lambda: predictions.mean_of_maximum(TWO, [0.3, 0.3, 0.4]),
    "no share": lambda: predictions.mean_of_maximum(TWO, [0.0, 1.0]),
    "share nan": lambda: predictions.mean_of_maximum(TWO, [math.nan, 1.0]),
    "tiny, oracle-max": lambda: predictions.shares(TINY, "oracle-max"),
    "tiny, mean": lambda: predictions.mean_of_maximum(TINY, [0.5, 0.5]),
    "tiny, quantile": lambda: predictions.quantile_of_maximum(TINY, TINY.allocation, 0.9),
    "a tiny share": lambda: predictions.mean_of_maximum(TWO, [1e-310, 1.0]),
    "huge": lambda: predictions.share_rule([1e200, 1.0], [1.0, 1.0]),
    "share text": lambda: predictions.quantile_of_maximum(TWO, ["a", "b"], 0.9),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(ChainscoutError) as caught:
        call()
    assert len(str(caught.value)) > 20
    assert "\n" not in str(caught.value)
