"""The paper's claims on trial: the problems made for it, trials at a size for tests, and the documented table."""

import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from simulation import COMPILED
from trial_samples import CHAINS, ENGINE, rows, tiny

from chainscout import problems
from chainscout.chains import MarkovChain
from chainscout.counts import Counts
from chainscout.guarantees import beta, theorem_1
from chainscout.losses import loss
from chainscout.problems import Problem
from trials import DELTA, bounds, instances, limits
from trials.findings import FAILS, HOLDS, LARGEST_LOSS, NOT_REACHED, VACUOUS
from trials.suite import NAMES

DOCS = Path(__file__).resolve().parent.parent / "docs"


# ---------------------------------------------------------------- problems made for a trial


def test_slow_and_fast_walks_differ_in_mixing_only():
    slow, fast = instances.slow_and_fast(31)
    for problem in (slow, fast):
        for chain in problem.chains.values():
            assert chain.stationary == pytest.approx(np.full(31, 1 / 31))
            assert chain.gini == pytest.approx(np.full(31, 0.5))
    assert slow["walk-1"].pseudo_spectral_gap < fast["walk-1"].pseudo_spectral_gap / 10


def test_coins_reach_the_cutoff():
    problem = instances.coins(0.5, 0.5)
    assert len(problem) == 2
    assert 1.6e7 < problem.cutoff_budget(0.05) < 1.62e7
    assert instances.coins(0.5, 0.1).names == ("leaves-0.5", "leaves-0.1")


# ---------------------------------------------------------------- trials


@pytest.fixture(scope="module")
def found():
    return list(tiny())


def test_the_trials_of_a_tiny_run(found):
    verdicts = {f.claim: [] for f in found}
    for f in found:
        assert f.verdict in (HOLDS, FAILS, VACUOUS, NOT_REACHED)
        assert math.isnan(f.measured.value) or f.measured.low <= f.measured.value <= f.measured.high
        assert not f.surprising(thorough=False), f
        verdicts[f.claim].append(f.verdict)
    # What refutes a claim does so on any path.
    assert verdicts["the index's third term does not grow"] == [FAILS]
    assert verdicts["smoothing makes the loss no smaller: L ≥ L̃"] == [FAILS]
    assert verdicts["on C, P̂(1−P̂) ≥ P(1−P) − √(8βN·P̂(1−P̂))/(N+αS) − 12/(N+αS)"] == [FAILS, NOT_REACHED]
    assert verdicts["on C, the index is at least 2β/T·ΣG at all times"] == [HOLDS]
    # At every budget that a test has, and at every one of a full run, Theorem 1's bound is above all losses.
    assert verdicts["L_n ≤ KS²β²(304/(n−2K) + 564K/(n−2K)²) with probability ≥ 1 − δ"] == [VACUOUS]


def test_the_constructed_path_of_lemma_8(found):
    constructed = next(f for f in found if "constructed" in f.setting)
    level = beta(1_000, 0.05, 4)
    assert constructed.measured.exact
    assert 12 < constructed.measured.value < 12 * level


def test_the_law_of_the_loss_has_its_variance():
    number = 2_000 if COMPILED else 60
    (law,) = limits.law_of_the_loss(problems.get("cd4"), [(500, number)], 0, ENGINE)
    assert law.measured.low < 1 < law.measured.high
    assert law.setting.startswith("cd4")


def test_no_loss_is_above_two():
    """A chain that always leaves to the other state, counted as one that never does: P̂ is as far as it can be."""
    counts = Counts.from_pairs([(0, 0, 10**9), (1, 1, 10**9)], 2)
    farthest = loss(MarkovChain([[0.0, 1.0], [1.0, 0.0]]), counts)
    assert farthest < LARGEST_LOSS
    assert farthest == pytest.approx(LARGEST_LOSS, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_theorem_1_is_vacuous_wherever_a_full_run_tries_it(name):
    problem = problems.get(name)
    smallest = min(theorem_1(problem, n, DELTA) for n in (4 * len(problem), 1_000, 10_000, 100_000))
    assert smallest >= 6.4
    assert theorem_1(problem, 10**8, DELTA) < LARGEST_LOSS  # it says something at budgets that are far larger


def test_a_bound_that_is_broken_is_told():
    """Theorem 1 has room for a factor 10⁵; a problem with a line of zero variability shows the other verdicts."""
    problem = Problem({"nearly": MarkovChain([[0.9999, 0.0001], [0.5, 0.5]]), "coin": MarkovChain(CHAINS["fair coin"])})
    losses = np.array([[1.0, 1.0, 1.0, 1.0] * 10])
    told = bounds.pseudo_excess(problem, [100_000], losses, 0.05, "made up")
    assert (told.verdict, told.expected) == (HOLDS, VACUOUS)
    assert told.surprising(thorough=False)


# ---------------------------------------------------------------- the documentation


def test_the_documentation_has_the_table_of_a_full_run(found):
    text = (DOCS / "_generated" / "verification.md").read_text(encoding="utf-8")
    expected = {}
    for f in found:
        expected.setdefault(f.claim, set()).add(f.expected)
    shown = rows(text)
    assert {row[0] for row in shown} == set(expected)
    for claim, place, setting, measured, interval, verdict, _ in shown:
        assert verdict in expected[claim]
        assert place
        assert setting
        assert re.search(r": \S+$", measured)
        assert interval == "computed" or " … " in interval
    command = shlex.split(re.search(r"^\*Made by `(.*?)` on \d{4}-\d\d-\d\d; chainscout", text, re.M)[1])
    assert command[:4] == ["python", "-m", "trials", "--full"]
    assert "every verdict is the expected one" in text
    page = (DOCS / "verification.md").read_text(encoding="utf-8")
    assert "```{include} _generated/verification.md\n```" in page
