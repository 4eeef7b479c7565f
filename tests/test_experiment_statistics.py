"""Standard errors by influence values, against distributions whose answers are known."""

import math

import numpy as np
import pytest
from scipy import stats

from chainscout.experiment.statistics import (
    STATISTICS,
    Statistic,
    largest_mean,
    mean_largest,
    most_bias,
    quantile_largest,
)

#: Simulated experiments, each of this many replications of two chains.
EXPERIMENTS, REPLICATIONS = 800, 400

#: The variance of a nearly normal estimate, estimated from EXPERIMENTS of them, is off by √(2/EXPERIMENTS) = 5 %
#: (one standard deviation). Four of those:
TOLERANCE = 4 * math.sqrt(2 / EXPERIMENTS)


@pytest.fixture(scope="module")
def experiments() -> np.ndarray:
    """Losses (experiment, policy, replication, chain): exponential, with means 1 and 2 under the first policy; the
    second policy's are 1.2 times a mixture of the same draws and its own, so that the two are correlated."""
    generator = np.random.default_rng(2024)
    draws = generator.exponential(size=(3, EXPERIMENTS, REPLICATIONS, 2)) * [1.0, 2.0]
    second = np.where(generator.random(draws[1].shape) < 0.7, draws[0], draws[1])
    return np.stack([draws[0], 1.2 * second], axis=1)


def both(experiments: np.ndarray, statistic: str) -> list[tuple[Statistic, Statistic]]:
    of = STATISTICS[statistic]
    return [(of(first, 0.1), of(second, 0.1)) for first, second in experiments]


def ratio_of_variances(found: list[Statistic]) -> float:
    """Mean squared standard error over the variance of the values: one if errors are right."""
    return float(np.mean([s.error**2 for s in found]) / np.var([s.value for s in found], ddof=1))


@pytest.mark.parametrize("statistic", ["max E[L]", "E[max L]"])
@pytest.mark.parametrize("combination", ["value", "over", "minus"])
def test_errors_of_means_are_those_of_repeated_experiments(
    experiments: np.ndarray, statistic: str, combination: str
) -> None:
    pairs = both(experiments, statistic)
    found = [a if combination == "value" else getattr(a, combination)(b) for a, b in pairs]
    assert ratio_of_variances(found) == pytest.approx(1, abs=TOLERANCE)


@pytest.mark.parametrize("combination", ["value", "over", "minus"])
def test_errors_of_quantiles_are_those_of_repeated_experiments(experiments: np.ndarray, combination: str) -> None:
    pairs = both(experiments, "quantile(L)")
    found = [a if combination == "value" else getattr(a, combination)(b) for a, b in pairs]
    # The slope of the quantile function is itself estimated: between levels .9 ± w, w = 0.0566 at 400 replications. Of
    # an exponential tail that difference quotient is log((1 + w/.1)/(1 − w/.1))/(2w) = 11.3 instead of 10, and its
    # square 1.29 times too large; its own noise adds its relative variance, about 1/(2w·400) = .02. The tail here is
    # nearly exponential, and the two policies share it.
    assert 1 - TOLERANCE <= ratio_of_variances(found) <= 1.31 + TOLERANCE


def test_pairing_is_used(experiments: np.ndarray) -> None:
    pairs = both(experiments, "E[max L]")
    unpaired = np.mean([a.error**2 + b.error**2 for a, b in pairs])
    paired = np.mean([a.minus(b).error ** 2 for a, b in pairs])
    assert paired < 0.7 * unpaired


def test_intervals_hold_as_often_as_they_say(experiments: np.ndarray) -> None:
    # max of exponentials with means 1 and 2: E = 1 + 2 − 1/(1 + 1/2); the second policy has the same law times 1.2.
    largest = 3 - 2 / 3
    pairs = both(experiments, "E[max L]")
    cases = {
        "value": ([a for a, _ in pairs], largest),
        "over": ([a.over(b) for a, b in pairs], 1 / 1.2),
        "minus": ([a.minus(b) for a, b in pairs], -0.2 * largest),
    }
    # Four standard deviations of a binomial share, and 1 % for the skewness of the data at 400 replications.
    tolerance = 4 * math.sqrt(0.05 * 0.95 / EXPERIMENTS) + 0.01
    for name, (found, truth) in cases.items():
        held = np.mean([low <= truth <= high for low, high in (s.interval for s in found)])
        assert held == pytest.approx(0.95, abs=tolerance), name


def test_values_are_those_of_numpy(experiments: np.ndarray) -> None:
    loss = experiments[0, 0]
    assert largest_mean(loss).value == pytest.approx(loss[:, 1].mean(), rel=1e-14)
    assert mean_largest(loss).value == loss.max(axis=1).mean()
    assert quantile_largest(loss, 0.9).value == np.quantile(loss.max(axis=1), 0.9)
    assert mean_largest(loss).error == pytest.approx(stats.sem(loss.max(axis=1)))
    for of in STATISTICS.values():
        assert of(loss, 0.1).influence.mean() == pytest.approx(0, abs=1e-12)


def test_the_largest_of_equal_means_lies_above_them_by_a_known_amount() -> None:
    """Under the oracle all chains have the same mean; the docstring's bound √(2·log K) standard errors."""
    loss = np.random.default_rng(5).exponential(size=(300, 500, 8))
    found = [largest_mean(experiment) for experiment in loss]
    excess = np.mean([s.value - 1 for s in found]) / np.mean([s.error for s in found])
    # E[max of 8 standard normals] = 1.4236, to the standard error of 300 maxima (sd 0.61).
    assert excess == pytest.approx(1.4236, abs=4 * 0.61 / math.sqrt(300) + 0.03)
    assert most_bias(8) == math.sqrt(2 * math.log(8))
    assert excess < most_bias(8)


def test_ratios_to_the_oracle_are_low_by_no_more_than_is_said() -> None:
    """A policy with one chain far worse than the others, 1.5, over an oracle whose six chains all have the mean 1."""
    generator = np.random.default_rng(7)
    oracle = generator.exponential(size=(1_000, 200, 6))
    policy = generator.exponential(size=(1_000, 200, 6)) * [1.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    found = [(largest_mean(a), largest_mean(b)) for a, b in zip(policy, oracle, strict=True)]
    low = 1 - np.mean([a.over(b).value for a, b in found]) / 1.5
    # E[max of 6 standard normals] = 1.267, times 1/√200, over the oracle's value; the mean of 1,000 ratios with a
    # relative standard deviation of at most √(2/200), four of those, and 0.005 for the skewness of means of 200.
    shift = 1.267 / math.sqrt(200)
    assert low == pytest.approx(shift / (1 + shift), abs=4 * math.sqrt(2 / 200 / 1_000) + 0.005)
    assert 0 < low < most_bias(6) * np.mean([b.error / b.value for _, b in found])


def test_one_replication_has_values_and_no_errors() -> None:
    loss = np.array([[1.0, 3.0]])
    for of in STATISTICS.values():
        assert of(loss, 0.05).value == 3.0
        assert math.isnan(of(loss, 0.05).error)


def test_nothing_to_divide_by_is_no_number() -> None:
    zero, one = Statistic(0.0, np.zeros(3)), Statistic(1.0, np.array([-1.0, 0.0, 1.0]))
    assert math.isnan(one.over(zero).value)
    assert math.isnan(one.over(zero).error)
    assert zero.over(one).value == 0


def test_missing_losses_stay_missing() -> None:
    loss = np.array([[1.0, math.nan], [2.0, math.nan], [3.0, math.nan]])
    for of in STATISTICS.values():
        assert math.isnan(of(loss, 0.05).value)
        assert math.isnan(of(loss, 0.05).error)
