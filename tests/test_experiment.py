"""``compare``: what it gives, what it refuses, and what becomes of small and odd problems."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiment_bits import same

import chainscout as cs
from chainscout import engine
from chainscout.errors import InputError
from chainscout.numerals import cell
from chainscout.report import experiments as report

# ---------------------------------------------------------------- what it gives


def test_arrays_and_all_that_repeats_the_run(unlike: cs.Problem) -> None:
    results = cs.compare(unlike, ["uniform", "scout:power=1", "oracle"], [200, 50], 12, seed=3, delta=0.1)
    assert results.loss.shape == results.pulls.shape == (3, 2, 12, 3)
    assert results.budgets == (50, 200)
    assert (results.pulls.sum(axis=3) == np.array([50, 200])[None, :, None]).all()
    assert (results.loss > 0).all()
    settings = results.settings
    again = cs.compare(
        results.problem,
        [policy["name"] for policy in settings["policies"]],
        results.budgets,
        settings["replications"],
        **{key: value for key, value in settings.items() if key not in ("replications", "policies", "versions")},
    )
    assert same(results, again)
    assert set(settings["versions"]) == {"chainscout", "python", "platform", "numpy", "numba"}
    assert repr(results) == "Results(3 policies, 2 budgets, 12 replications)"


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"batch": 2.0}, {"batch": 2}),
        ({"batch": np.int64(2)}, {"batch": 2}),
        ({"horizon": np.bool_(False), "restless": np.bool_(True)}, {"horizon": False, "restless": True}),
        ({"seed": np.uint8(7), "delta": np.float32(0.5)}, {"seed": 7, "delta": 0.5}),
    ],
    ids=str,
)
def test_options_are_kept_as_plain_numbers(
    unlike: cs.Problem, tmp_path: Path, given: dict[str, Any], plain: dict[str, Any]
) -> None:
    results = cs.compare(unlike, ["uniform"], [50], 4, **given)
    assert same(results, cs.compare(unlike, ["uniform"], [50], 4, **plain))
    for option, value in plain.items():
        assert results.settings[option] == value
        assert type(results.settings[option]) is type(value)
    results.save(tmp_path / "run.npz")
    assert cs.Results.load(tmp_path / "run.npz").settings == results.settings


def test_it_is_what_the_engine_gives(unlike: cs.Problem) -> None:
    options: dict[str, Any] = {"seed": 5, "weights": (1.0, 2.0, 3.0), "batch": 3}
    results = cs.compare(unlike, ["scout", "uniform"], [100, 300], 10, **options)
    for p, policy in enumerate(results.policies):
        loss, pulls = engine.run(unlike, policy, [100, 300], range(10), engine.Options(**options))
        assert results.loss[p].tobytes() == loss.tobytes()
        assert results.pulls[p].tobytes() == pulls.tobytes()


def test_policies_see_the_same_paths(unlike: cs.Problem) -> None:
    first = cs.compare(unlike, ["uniform", "static:weights=1/1/1"], [300], 8)
    assert np.array_equal(first.loss[0], first.loss[1])
    alone = cs.compare(unlike, ["static:weights=1/1/1"], [300], 4)
    assert np.array_equal(alone.loss[0], first.loss[0, :, :4])


def test_both_engines_give_the_same_bits(unlike: cs.Problem) -> None:
    runs = [cs.compare(unlike, ["ba-mc", "scout"], [60, 500], 9, engine=name) for name in ("python", "cpu")]
    assert same(*runs)


@pytest.mark.parametrize(
    ("options", "differs"),
    [({"restless": True}, True), ({"batch": 7}, True), ({"weights": [1, 5, 9]}, True), ({}, False)],
)
def test_modes_reach_the_engine(unlike: cs.Problem, options: dict[str, Any], differs: bool) -> None:
    plain = cs.compare(unlike, ["scout"], [400], 60)  # batches change few of them
    assert same(plain, cs.compare(unlike, ["scout"], [400], 60, **options)) is not differs


def test_policies_may_not_know_the_horizon(unlike: cs.Problem) -> None:
    known, unknown = (cs.compare(unlike, ["ba-mc"], [4_000], 4, horizon=known) for known in (True, False))
    assert not same(known, unknown)
    with pytest.raises(InputError, match="ch-as"):
        cs.compare(unlike, ["ch-as"], [400], 4, horizon=False)


OWN = cs.Policy(
    "own",
    lambda sums, T, c: c[0] * sums[0] / T,
    lambda row, exits, squares, c: (1.0 - squares / (exits * exits) + c[0] / exits,),
    constants=lambda setting: (math.sqrt(setting.budget or 1),),
)


@pytest.mark.parametrize("horizon", [True, False])
@pytest.mark.parametrize("policy", [*cs.policies.names(), OWN])
def test_every_budget_gives_what_it_gives_alone(unlike: cs.Problem, policy: Any, horizon: bool) -> None:
    """A rule that knows n must know the n of the row that it is shown in, not the largest of the table."""
    if policy in ("ch-as", "b-as") and not horizon:
        return  # refused: they need n
    if policy == "static":
        policy = cs.policies.get("static", weights=(1, 2, 3))
    budgets = (3_000, 60, 400)
    together = cs.compare(unlike, [policy], budgets, 8, horizon=horizon)
    assert together.budgets == (60, 400, 3_000)
    for place, budget in enumerate(together.budgets):
        alone = cs.compare(unlike, [policy], [budget], 8, horizon=horizon)
        assert together.loss[:, place].tobytes() == alone.loss[:, 0].tobytes()
        assert together.pulls[:, place].tobytes() == alone.pulls[:, 0].tobytes()


def test_rules_that_know_n_are_compared_on_the_same_paths() -> None:
    """One chain: whatever the rule, n observations are the first n of the path, and the losses are equal."""
    alone = cs.Problem({"only": cs.problems.get("unlike")["uniform"]})
    results = cs.compare(alone, ["uniform", "ba-mc", "ch-as", "b-as", OWN], [50, 400, 900], 8)
    for place in range(1, 5):
        assert results.loss[place].tobytes() == results.loss[0].tobytes()


def test_the_table_says_how_low_ratios_to_the_oracle_can_be(unlike: cs.Problem) -> None:
    results = cs.compare(unlike, ["uniform", "oracle"], [100, 300], 50)
    found = [results.statistics["oracle", n]["max E[L]"] for n in (100, 300)]
    most = math.sqrt(2 * math.log(3)) * max(s.error / s.value for s in found)
    (note,) = [note for note in report.tables(results)[0].notes if "ratios to the oracle's" in note]
    assert f"by up to {100 * most:.2g} %" in note
    one = cs.Problem({"only": unlike["uniform"]})
    for silent in (
        cs.compare(unlike, ["uniform"], [100], 10),  # no ratio
        cs.compare(one, ["uniform", "oracle"], [100], 10),  # one mean: nothing is chosen
        cs.compare(unlike, ["uniform", "oracle"], [100], 1),  # no standard error
        cs.compare(unlike, ["uniform", "oracle"], [3], 10),  # no transition yet
    ):
        assert not any("ratios to the oracle's" in note for note in report.tables(silent)[0].notes)


def test_a_pass_reads_all_budgets_that_a_rule_cannot_tell_apart(unlike: cs.Problem) -> None:
    budgets = [60, 61, 400, 3_000]

    def groups(name: str, horizon: bool = True) -> list[list[int]]:
        policy = cs.policies.get(name).facing(budgets[-1] if horizon else None)
        return engine.passes(unlike, policy, budgets, horizon)

    assert groups("scout") == groups("oracle") == [budgets]
    assert groups("ch-as") == [[60], [61], [400], [3_000]]
    # ⌈log n/log 1.1⌉ is 43 at 60, 44 at 61, 63 at 400 and 85 at 3,000; between 61 and 66 it stays 44.
    assert groups("ba-mc") == [[60], [61], [400], [3_000]]
    policy = cs.policies.get("ba-mc")
    assert engine.passes(unlike, policy, [61, 62, 66], True) == [[61, 62, 66]]
    assert groups("ba-mc", horizon=False) == [budgets]


def test_another_loss_is_shown_as_it_is(unlike: cs.Problem) -> None:
    results = cs.compare(unlike, ["uniform", "scout:loss=total-variation"], [300], 20, distance="total-variation")
    assert not results.is_normalised
    row = results.summary()[0]
    assert row["E[max L]"] == pytest.approx(results.loss[0, 0].max(axis=1).mean())
    assert all("Λ" not in column for table in report.tables(results) for column in table.columns)
    assert len(results.figure().axes) == 3


def test_budgets_in_any_order_and_repeated(unlike: cs.Problem) -> None:
    tidy = cs.compare(unlike, ["scout"], [20, 100, 300], 6)
    untidy = cs.compare(unlike, ["scout"], [300, 20, 300, 100.0, 20], 6)
    assert untidy.budgets == (20, 100, 300)
    assert same(tidy, untidy)


def test_one_policy_may_stand_without_a_list(unlike: cs.Problem) -> None:
    assert cs.compare(unlike, "scout", [50], 4).policies == ("scout",)


# ---------------------------------------------------------------- edges

ONE_STATE = cs.MarkovChain([[1.0]])
SWAP = cs.MarkovChain([[0.0, 1.0], [1.0, 0.0]])
FAIR = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize(
    "chains",
    [
        {"one": ONE_STATE},
        {"swap": SWAP},
        {"one": ONE_STATE, "swap": SWAP},
        {"one": ONE_STATE, "fair": FAIR},
        {"k": FAIR},
    ],
    ids=["one state", "deterministic", "only deterministic", "mixed", "K = 1"],
)
def test_small_and_deterministic_problems(chains: dict[str, cs.MarkovChain]) -> None:
    problem = cs.Problem(chains)
    results = cs.compare(problem, ["uniform", "oracle", "oracle-max", "ba-mc", "scout", "gini-ucb"], [10, 200], 6)
    assert np.isfinite(results.loss).all()
    assert (results.pulls.sum(axis=3) == np.array([10, 200])[None, :, None]).all()
    assert results.is_normalised is (problem.variability > 0)
    assert "Λ" in report.tables(results)[0].columns[2] or problem.variability == 0
    assert len(results.figure().axes) == 3
    if "one" in chains:
        assert (results.loss[..., 0] == 0).all()  # a chain of one state has nothing to be learned


def test_too_few_observations_for_every_chain(unlike: cs.Problem) -> None:
    results = cs.compare(unlike, ["uniform", "oracle"], [1, 5, 6], 4)
    assert np.isnan(results.loss[:, 0]).all()  # one observation, no transition
    assert np.isnan(results.loss[:, 1, :, 2]).all()  # the third chain has shown one state
    assert np.isfinite(results.loss[:, 1, :, :2]).all()
    assert np.isfinite(results.loss[:, 2]).all()
    losses, differences, shares = report.tables(results)
    assert [[cell(value) for value in row[2:]] for row in losses.rows[:2]] == [["—"] * 6] * 2
    assert any("two observations" in note for note in losses.notes)
    assert "—" not in cell(losses.rows[2][2])
    assert len(results.figure().axes) == 3
    assert differences.rows
    assert shares.rows


def test_one_replication_has_no_errors(unlike: cs.Problem) -> None:
    results = cs.compare(unlike, ["uniform", "scout"], [100], 1)
    losses, differences, _ = report.tables(results)
    assert "±" not in "".join(str(value) for row in losses.rows for value in row)
    assert differences.records()[0]["better"] is None
    assert len(results.figure().axes) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"problem": 3}, "compare needs a Problem, or the name or file of one, not 3"),
        ({"policies": []}, "at least one policy"),
        ({"policies": ["scuot"]}, r"unknown policy 'scuot' \(did you mean scout\?\)"),
        ({"policies": ["scout", "uniform", "scout"]}, "'scout' is given twice"),
        ({"policies": [3]}, "a specification must be a string"),
        ({"policies": 3}, "policies must be names or Policy objects, in a list, not 3"),
        ({"policies": ["scout:power=x"]}, "power"),
        ({"budgets": []}, "at least one budget"),
        ({"budgets": 300}, "budgets must be numbers of observations, in a list, not 300"),
        ({"budgets": [0]}, "a budget .* must be a whole number ≥ 1, not 0"),
        ({"budgets": [10.5]}, "a budget"),
        ({"replications": 0}, "replications .* must be a whole number ≥ 1, not 0"),
        ({"replications": -3}, "replications"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"engine": "abacus"}, "engine must be one of python, cpu.*, not 'abacus'"),
        ({"delta": 0}, "delta"),
        ({"weights": [1, 2]}, "weights must be one a chain, 3 in all"),
        ({"weights": [1, 2, -3]}, "weights"),
        ({"weights": "many"}, "weights must be numbers"),
        ({"batch": 0}, "batch"),
        ({"batch": 2.5}, "batch"),
        ({"restless": "no"}, "restless .* must be True or False, not 'no'"),
        ({"horizon": 1}, "horizon .* must be True or False, not 1"),
        ({"budgets": [50, 10**20]}, "a budget .* must be at most 9007199254740992, not 100000000000000000000"),
        ({"replications": 10**20}, "there is no room for them"),
        ({"delta": 1e-17}, "delta .the quantile of .* reported. must be a finite number ≥ 1e-12, not 1e-17"),
        ({"distance": "far"}, "distance must be one of"),
        ({"row_weights": "lead"}, "row_weights must be one of"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(
    unlike: cs.Problem, tmp_path: Path, arguments: dict[str, Any], words: str
) -> None:
    given: dict[str, Any] = {"problem": unlike, "policies": ["scout"], "budgets": [50], "replications": 2} | arguments
    with pytest.raises(InputError, match=words):
        cs.compare(**given, checkpoint=tmp_path / "tasks")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (lambda sums, t, constants: constants[0] / t, "tuple index out of range"),
        (lambda sums, t, constants: {"no": sums}["no"][0], "compiled"),
    ],
)
def test_a_rule_that_cannot_be_compiled_is_one_sentence(unlike: cs.Problem, index: Any, why: str) -> None:
    rule = cs.Policy("own", index, lambda row, n, q, c: (0.0,))
    with pytest.raises(InputError, match=r"the policy 'own' cannot be compiled \(.*\)") as caught:
        cs.compare(unlike, [rule], [100], 4)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
