"""The paper's claims on trial: paths are looked at rightly, verdicts follow from figures, the table is made."""

import json
import math
import re
import shlex
from pathlib import Path

import numba
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest

from chainscout import engine, problems, verification
from chainscout.certificates import mixture, paper
from chainscout.chains import MarkovChain
from chainscout.cli import main
from chainscout.counts import Counts
from chainscout.errors import InputError
from chainscout.guarantees import beta, lemma_8, on_event_c
from chainscout.losses import loss
from chainscout.problems import Problem
from chainscout.report import verification as report
from chainscout.verification import bounds, events, findings, instances, limits, paths, suite
from chainscout.verification.findings import FAILS, HOLDS, NOT_REACHED, VACUOUS, Finding, Measured

#: With compilation off, the loops are interpreted and sizes are tiny.
COMPILED = not numba.config.DISABLE_JIT
ENGINE = "cpu" if COMPILED else "python"
DOCS = Path(__file__).resolve().parent.parent / "docs"

CHAINS = {
    "fair coin": np.full((2, 2), 0.5),
    "skewed": np.array([[0.7, 0.295, 0.005], [0.295, 0.7, 0.005], [0.5, 0.5, 0.0]]),
    "dense": np.random.default_rng(3).dirichlet(np.ones(4), 4),
}

# ---------------------------------------------------------------- whole paths


def simulated(matrix, observations, seed):
    rng = np.random.default_rng(seed)
    path = [0]
    for _ in range(observations - 1):
        path.append(int(rng.choice(len(matrix), p=matrix[path[-1]])))
    return np.array(path, np.int64)


def prefixes(path, size):
    counts = Counts(size)
    counts.record(int(path[0]))
    for state in path[1:]:
        counts.record(int(state))
        yield counts


def shortfall(matrix, counts, level):
    """What the proof of Lemma 8 says is ≤ 12, largest over the entries of the states left."""
    n, estimate = counts.exits[:, None], counts.matrix()
    variance, weight = estimate * (1 - estimate), 1 / 3
    values = (n + weight) * (matrix * (1 - matrix) - variance) - np.sqrt(8 * level * n * variance)
    return values[counts.exits > 0].max()


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("level", "log_inverse"), [(0.2, 0.01), (3.0, math.log(2)), (9.0, math.log(20))])
def test_a_path_is_looked_at_as_the_package_would_after_every_transition(name, level, log_inverse):
    """Levels far too small are among them, so that events fail and certificates are missed."""
    chain = MarkovChain(CHAINS[name])
    path = simulated(chain.matrix, 80, seed=len(name))
    found = paths.follow_path(path, chain.matrix, level, log_inverse, ENGINE)
    on_event, ratios, missed, lower, below, rises, short, third = True, [], [], [], 0, 0, [], None
    for counts in prefixes(path, chain.size):
        on_event &= on_event_c(chain, counts, level)
        now, bound = loss(chain, counts), paper.bound(counts, level)
        ratios.append(now / bound)
        missed.append(now / mixture.bound_from_exits(counts.visited_exits(), chain.size, log_inverse))
        lower.append(lemma_8(chain, counts.exits, level)[0] / bound)
        plain = loss(chain, counts, alpha=0)
        below += now < plain * (1 - 1e-9)
        short.append(shortfall(chain.matrix, counts, level))
        before, third = third, sum(1 / (n + 1 / 3) for n in counts.visited_exits()) / counts.total
        rises += before is not None and third > before * (1 + 1e-9)
    close = {"rel": 1e-9, "abs": 1e-9}
    assert (found[paths.EVENT] <= 1) == on_event
    assert found[paths.PAPER] == pytest.approx(max(ratios), **close)
    assert found[paths.LOWER] == pytest.approx(max(lower), **close)
    assert (found[paths.RISES], found[paths.BELOW]) == (rises, below)
    assert found[paths.SHORTFALL] == pytest.approx(max(short), **close)
    assert found[paths.LOSS] == pytest.approx(79 * now, **close)
    assert found[paths.PLAIN] == pytest.approx(79 * plain, **close)
    assert found[paths.END_PAPER] == pytest.approx(ratios[-1], **close)
    assert found[paths.END_MIXTURE] == pytest.approx(missed[-1], **close)
    # Where a miss is impossible the mixture certificate is not evaluated, and no miss is left out.
    if max(missed) > 1:
        assert found[paths.MIXTURE] == pytest.approx(max(missed), **close)
    else:
        assert found[paths.MIXTURE] <= 1


def test_small_levels_do_fail():
    """The test above sees both sides of every inequality."""
    fair = CHAINS["fair coin"]
    found = np.array([paths.follow_path(simulated(fair, 80, s), fair, 0.2, 0.01, ENGINE) for s in range(10)])
    assert (found[:, paths.EVENT] > 1).any()
    assert (found[:, paths.MIXTURE] > 1).any()
    assert (found[:, paths.RISES] > 0).any()


def test_the_paths_are_those_of_the_engine():
    problem, observations = problems.get("unlike"), 40
    found = paths.followed(problem, observations, 6, 0.05, seed=5, engine=ENGINE)
    losses, pulls = engine.run(problem, "uniform", [3 * observations], range(6), seed=5, engine=ENGINE)
    assert (pulls == observations).all()
    assert found[:, :, paths.LOSS] / (observations - 1) == pytest.approx(losses[0], rel=1e-9)


def test_interpreted_and_compiled_agree_to_the_bit_and_no_split_matters():
    problem = problems.get("two-state")
    first = paths.followed(problem, 50, 5, 0.05, seed=1, engine=ENGINE)
    assert (first == paths.followed(problem, 50, 5, 0.05, seed=1, engine="python")).all()
    assert (first[:2] == paths.followed(problem, 50, 2, 0.05, seed=1, engine=ENGINE)).all()
    cut = paths.in_parallel(lambda some: list(some), 7, 3)
    assert cut == [[0, 1, 2], [3, 4, 5], [6]]


def test_without_the_mixture_the_rest_is_the_same():
    problem = problems.get("two-state")
    full, bare = (paths.followed(problem, 50, 3, 0.05, engine=ENGINE, mixture=m) for m in (True, False))
    others = [c for c in range(paths.RECORDED) if c not in (paths.MIXTURE, paths.END_MIXTURE)]
    assert (full[:, :, others] == bare[:, :, others]).all()
    assert (bare[:, :, [paths.MIXTURE, paths.END_MIXTURE]] == 0).all()


# ---------------------------------------------------------------- figures and verdicts


@pytest.mark.parametrize(("successes", "trials"), [(0, 8), (3, 10), (10, 10), (1, 4_000)])
def test_proportions_have_clopper_pearson_intervals(successes, trials):
    measured = findings.proportion(successes, trials)
    exact = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert measured.value == successes / trials
    assert (measured.low, measured.high) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_means_and_what_is_made_of_them():
    rng = np.random.default_rng(0)
    values = rng.normal([1.0, 3.0], 1.0, size=(400, 2))
    one = findings.mean(values[:, 1])
    assert one.high - one.value == pytest.approx(1.959964 * values[:, 1].std(ddof=1) / 20)
    largest = findings.largest_mean(values)
    assert largest.value == pytest.approx(one.value)
    assert largest.low < one.low < one.high < largest.high  # two means at once
    quotient = findings.ratio(values[:, 1], values[:, 0])
    assert quotient.low < 3 < quotient.high
    spread = findings.variance(values[:, 1])
    assert spread.value == pytest.approx(values[:, 1].var(ddof=1))
    assert spread.low < 1 < spread.high
    assert findings.mean(values[:1, 0]).high == math.inf


def test_exponents():
    budgets = [1_000, 4_000, 16_000, 64_000]
    exact = findings.exponent(budgets, [n**-0.5 for n in budgets], [0.01 * n**-0.5 for n in budgets])
    assert exact.value == pytest.approx(-0.5)
    # Relative errors of 1 % at four points log 4 apart: 0.01/√(Σ(x − x̄)²), Σ(x − x̄)² = 5·log²4.
    assert exact.high - exact.value == pytest.approx(1.959964 * 0.01 / (math.sqrt(5) * math.log(4)), rel=1e-6)
    bent = findings.exponent(budgets, [1.0, 0.9, 0.5, 0.1], [1e-3] * 4)
    assert bent.high - bent.low > 0.3  # what scatters more than its errors is less certain
    none = findings.exponent(budgets, [1.0, -1.0, 0.0, -2.0], [1.0] * 4)
    assert math.isnan(none.value)
    assert (none.low, none.high) == (-math.inf, math.inf)


def test_exponents_cover_their_truth():
    """600 fits of noisy powers: 95 % of the intervals, less 3 standard errors, have the exponent inside."""
    rng, budgets, inside = np.random.default_rng(1), np.array([1e3, 4e3, 1.6e4, 6.4e4]), 0
    for _ in range(600):
        truth = 3 * budgets**-0.4
        measured = findings.exponent(
            budgets.tolist(), (truth * rng.normal(1, 0.05, 4)).tolist(), (0.05 * truth).tolist()
        )
        inside += measured.low <= -0.4 <= measured.high
    assert inside >= 600 * (0.95 - 3 * math.sqrt(0.05 * 0.95 / 600))


def around(value, reach):
    return Measured(value, value - reach, value + reach)


FALLS, STAYS, UNKNOWN = around(-0.5, 0.05), around(0.0, 0.05), around(0.0, 1.0)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (findings.at_most(Measured(0.0, 0.0, 0.04), 0.05), HOLDS),
        (findings.at_most(Measured(0.1, 0.06, 0.2), 0.05), FAILS),
        (findings.at_most(Measured(0.0, 0.0, 0.3), 0.05), NOT_REACHED),
        (findings.never(Measured(0.0, 0.0, 0.3)), HOLDS),
        (findings.never(Measured(0.01, 0.0, 0.3)), FAILS),
        (findings.once_seen(Measured(0.0, 0.0, 0.3)), NOT_REACHED),
        (findings.once_seen(Measured(0.01, 0.0, 0.3)), FAILS),
        (findings.says_nothing(Measured(0.0, 0.0, 0.05), 0.1), VACUOUS),
        (findings.says_nothing(Measured(0.5, 0.4, 0.6), 0.1), HOLDS),
        (findings.says_nothing(Measured(0.1, 0.0, 0.2), 0.1), NOT_REACHED),
        (findings.tends(around(1.02, 0.05), 1.0, 0.1, FALLS), HOLDS),
        (findings.tends(around(1.4, 0.05), 1.0, 0.1, FALLS), NOT_REACHED),
        (findings.tends(around(1.4, 0.05), 1.0, 0.1, STAYS), FAILS),
        (findings.tends(around(0.6, 0.05), 1.0, 0.1, STAYS), FAILS),
        (findings.tends(around(1.4, 0.05), 1.0, 0.1, UNKNOWN), NOT_REACHED),
        (findings.tends(around(1.0, 0.5), 1.0, 0.1, STAYS), NOT_REACHED),
        (findings.as_fast_as(FALLS, -0.5), NOT_REACHED),
        (findings.as_fast_as(FALLS, -0.5, slack=0.1), HOLDS),
        (findings.as_fast_as(FALLS, -1 / 8), HOLDS),
        (findings.as_fast_as(around(-0.3, 0.05), -0.5), NOT_REACHED),
        (findings.as_fast_as(around(-0.5, 0.3), -0.5), NOT_REACHED),
    ],
)
def test_verdicts_follow_from_figures(verdict, expected):
    assert verdict == expected


def finding(verdict, expected, **changes):
    parts = {"claim": "c", "place": "p", "setting": "s", "figure": "f|g", "measured": around(0.5, 0.1)}
    return Finding(**{**parts, **changes}, verdict=verdict, expected=expected)


def test_what_is_surprising():
    assert not finding(FAILS, FAILS).surprising(thorough=True)
    assert finding(HOLDS, FAILS).surprising(thorough=False)
    assert finding(NOT_REACHED, HOLDS).surprising(thorough=True)
    assert not finding(NOT_REACHED, HOLDS).surprising(thorough=False)


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


class Cutoff(Problem):
    """A problem whose cut-off budget is within reach of a test."""

    def cutoff_budget(self, delta, corrected=False):
        return 60.0


def tiny():
    """Every trial at a size for tests."""
    source, coins, slow = (0, ENGINE), instances.coins(0.5, 0.1), instances.slow_and_fast(5)
    runs = [(40, 8), (160, 8)]
    yield from events.whole_paths(coins, 60, 8, 0.05, *source)
    yield from events.lemma_8_line(5, 60, 8, 0.05, *source)
    yield from limits.shares(coins, runs, *source)
    yield from limits.losses(coins, runs, *source)
    yield from limits.law_of_the_loss(coins, runs, *source)
    yield from bounds.below_the_cutoff(coins, [8, 60], 8, 0.05, *source)
    yield from bounds.at_the_cutoff(Cutoff(coins.chains, "near"), 8, 0.05, *source)
    yield from bounds.mixing(*slow, 60, 8, 0.05, *source)


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


def test_a_bound_that_is_broken_is_told():
    """Theorem 1 has room for a factor 10⁵; a problem with a line of zero variability shows the other verdicts."""
    problem = Problem({"nearly": MarkovChain([[0.9999, 0.0001], [0.5, 0.5]]), "coin": MarkovChain(CHAINS["fair coin"])})
    losses = np.array([[1.0, 1.0, 1.0, 1.0] * 10])
    told = bounds.pseudo_excess(problem, [100_000], losses, 0.05, "made up")
    assert (told.verdict, told.expected) == (HOLDS, VACUOUS)
    assert told.surprising(thorough=False)


# ---------------------------------------------------------------- the suite and the command


def test_the_effort():
    quick, full = verification.Effort(), verification.Effort(full=True, scale=0.5)
    assert (quick.times(400, 2_000), full.times(400, 2_000), full.times(1, 2)) == (400, 1_000, 4)
    assert full.runs({10: 1}, {20: 100, 30: 40}) == [(20, 50), (30, 20)]
    assert not quick.thorough
    assert not full.thorough
    assert verification.Effort(full=True).thorough
    with pytest.raises(InputError, match="scale \\(what numbers of replications are multiplied by\\)"):
        verification.Effort(scale=0.0)
    with pytest.raises(InputError, match="seed"):
        verification.Effort(seed=-1)


def test_a_full_suite_has_all_that_a_quick_one_has():
    quick = [about for about, _ in suite.trials(verification.Effort())]
    full = [about for about, _ in suite.trials(verification.Effort(full=True))]
    assert set(quick) < set(full)
    assert len(set(full)) == len(full)


def run(monkeypatch, given, *arguments):
    monkeypatch.setattr(verification, "verify", lambda effort, started: (started("1/1 trial"), given)[1])
    return CliRunner().invoke(main, ["verify", *arguments])


def test_the_status_says_whether_all_is_as_expected(monkeypatch):
    fine = run(monkeypatch, [finding(FAILS, FAILS)])
    assert (fine.exit_code, fine.stderr) == (0, "1/1 trial …\n")
    assert "every verdict is the expected one" in fine.stdout
    surprised = run(monkeypatch, [finding(FAILS, FAILS), finding(HOLDS, FAILS, claim="d")])
    assert surprised.exit_code == 1
    assert "surprising: 'd' (s): holds, expected was: fails" in surprised.stdout
    assert run(monkeypatch, [finding(NOT_REACHED, HOLDS)], "--full").exit_code == 1
    assert run(monkeypatch, [finding(NOT_REACHED, HOLDS)], "--full", "--scale=0.5").exit_code == 0


def test_json_has_plain_numbers(monkeypatch):
    unknown = finding(NOT_REACHED, HOLDS, measured=Measured(math.nan, -math.inf, math.inf))
    (row,) = json.loads(run(monkeypatch, [unknown], "--json").stdout)
    assert row["measured"] == {"value": None, "low": None, "high": None}
    assert (row["verdict"], row["expected"], row["surprising"]) == (NOT_REACHED, HOLDS, False)


def test_the_table_can_be_written(monkeypatch, tmp_path):
    out = tmp_path / "table.md"
    result = run(
        monkeypatch, [finding(FAILS, FAILS), finding(HOLDS, HOLDS, measured=Measured.exactly(3.0))], f"--out={out}"
    )
    assert result.exit_code == 0
    text = out.read_text(encoding="utf-8")
    assert rows(text) == [
        ["c", "p", "s", "f|g: 0.5000", "0.4000 … 0.6000", "fails", ""],
        ["c", "p", "s", "f|g: 3.000", "computed", "holds", ""],
    ]
    assert f"*Made by `chainscout verify --quick --out={out}` on " in text
    refused = run(monkeypatch, [finding(FAILS, FAILS)], f"--out={tmp_path / 'none' / 'table.md'}")
    assert refused.exit_code == 1
    assert "could not be written" in refused.stderr


def test_a_whole_run(monkeypatch):
    """The quick suite with few replications; with compilation off, the tiny trials in its place."""
    if not COMPILED:
        monkeypatch.setattr(suite, "trials", lambda effort: [("tiny", lambda: list(tiny()))])
    result = CliRunner().invoke(main, ["verify", "--scale", "0.01", "--json"])
    assert result.exit_code == 0, result.output
    assert {row["claim"] for row in json.loads(result.stdout)} == {f.claim for f in tiny()}


def test_bad_arguments():
    result = CliRunner().invoke(main, ["verify", "--scale", "-1"])
    assert result.exit_code == 2
    assert "scale (what numbers of replications are multiplied by)" in result.stderr


# ---------------------------------------------------------------- the documentation


def rows(text):
    """The cells of a Markdown table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert tuple(cells[0]) == report.COLUMNS
    return cells[2:]


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
    assert command[:3] == ["chainscout", "verify", "--full"]
    assert "every verdict is the expected one" in text
    page = (DOCS / "verification.md").read_text(encoding="utf-8")
    assert "```{include} _generated/verification.md\n```" in page
