"""What the tests of the verification share: chains, trials at a size for tests, findings, and the table read back."""

import re

import numpy as np
from simulation import COMPILED

from chainscout.problems import Problem
from trials import bounds, events, instances, limits
from trials import table as report
from trials.findings import Finding, Measured

ENGINE = "cpu" if COMPILED else "python"

CHAINS = {
    "fair coin": np.full((2, 2), 0.5),
    "skewed": np.array([[0.7, 0.295, 0.005], [0.295, 0.7, 0.005], [0.5, 0.5, 0.0]]),
    "dense": np.random.default_rng(3).dirichlet(np.ones(4), 4),
}


def around(value, reach):
    return Measured(value, value - reach, value + reach)


def finding(verdict, expected, **changes):
    parts = {"claim": "c", "place": "p", "setting": "s", "figure": "f|g", "measured": around(0.5, 0.1)}
    return Finding(**{**parts, **changes}, verdict=verdict, expected=expected)


class Cutoff(Problem):
    """A problem with a cut-off budget that a test reaches, and a bound of Theorem 2 there that a loss can exceed."""

    def cutoff_budget(self, delta, corrected=False):
        return 2_000.0


def tiny():
    """Every trial at a size for tests."""
    source, coins, slow = (0, ENGINE), instances.coins(0.5, 0.1), instances.slow_and_fast(5)
    runs = [(40, 8), (160, 8)]
    yield from events.whole_paths(coins, 60, 8, 0.05, *source)
    yield from events.sharp_on_paths(coins, 60, 8, 0.05, *source)
    yield from events.lemma_8_line(5, 60, 8, 0.05, *source)
    yield from limits.shares(coins, runs, *source)
    yield from limits.losses(coins, runs, *source)
    yield from limits.law_of_the_loss(coins, runs, *source)
    yield from bounds.below_the_cutoff(coins, [8, 60], 8, 0.05, *source)
    yield from bounds.at_the_cutoff(Cutoff(coins.chains, "near"), 8, 0.05, *source)
    yield from bounds.mixing(*slow, 60, 8, 0.05, *source)


def rows(text):
    """The cells of a Markdown table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert cells[0] == list(report.COLUMNS)
    return cells[2:]
