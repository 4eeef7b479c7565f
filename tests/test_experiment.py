"""``compare``: what it gives, what it refuses, and that its numbers are those of the theory."""

import math
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainscout as cs
from chainscout import engine
from chainscout.errors import ChainscoutError, FileError, InputError
from chainscout.experiment import Interrupted, comparison, forget
from chainscout.report import experiments as report
from chainscout.report.cells import cell


@pytest.fixture(scope="module")
def unlike() -> cs.Problem:
    return cs.problems.get("unlike")


def same(first: cs.Results, second: cs.Results) -> bool:
    """To the bit."""
    return first.loss.tobytes() == second.loss.tobytes() and first.pulls.tobytes() == second.pulls.tobytes()


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
    results.save(tmp_path / "run.nc")
    assert cs.Results.load(tmp_path / "run.nc").settings == results.settings


def test_it_is_what_the_engine_gives(unlike: cs.Problem) -> None:
    options: dict[str, Any] = {"seed": 5, "weights": (1.0, 2.0, 3.0), "batch": 3}
    results = cs.compare(unlike, ["scout", "uniform"], [100, 300], 10, **options)
    for p, policy in enumerate(results.policies):
        loss, pulls = engine.run(unlike, policy, [100, 300], range(10), **options)
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
    plain = cs.compare(unlike, ["scout"], [400], 4)
    assert same(plain, cs.compare(unlike, ["scout"], [400], 4, **options)) is not differs


def test_policies_may_not_know_the_horizon(unlike: cs.Problem) -> None:
    known, unknown = (cs.compare(unlike, ["ba-mc"], [4_000], 4, horizon=known) for known in (True, False))
    assert not same(known, unknown)
    with pytest.raises(InputError, match="ch-as"):
        cs.compare(unlike, ["ch-as"], [400], 4, horizon=False)


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
        ({"problem": "unlike"}, "compare needs a Problem, not 'unlike'"),
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
        ({"delta": 1e-17}, "delta .* must be a finite number ≥ 1e-12 and < 1, not 1e-17"),
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


# ---------------------------------------------------------------- interruption and checkpoints


class Interrupting(Executor):
    """Runs tasks when they are submitted, until somebody presses Ctrl-C."""

    def __init__(self, tasks: int) -> None:
        self.left = tasks

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> "Future[Any]":
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **options))
        return future


def test_an_interruption_carries_what_all_policies_have_finished(
    unlike: cs.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Eight at most are sent before one is collected, then one for one: the eleventh task is not sent any more.
    monkeypatch.setattr("chainscout.experiment.tasks.MOST_WAITING", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    whole = cs.compare(unlike, ["uniform", "scout"], [100], 40)
    assert len(comparison._cuts(40, 100, "cpu")) == 10
    with pytest.raises(Interrupted) as caught:
        cs.compare(unlike, ["uniform", "scout"], [100], 40, executor=Interrupting(11))
    part = caught.value.results
    assert part is not None
    assert 0 < part.replications < 40
    assert part.replications % 4 == 0
    assert np.array_equal(part.loss, whole.loss[:, :, : part.replications])
    assert part.summary()
    # Its settings repeat what was done.
    assert part.settings["replications"] == part.replications
    assert same(part, cs.compare(unlike, ["uniform", "scout"], [100], part.settings["replications"]))
    with pytest.raises(KeyboardInterrupt) as nothing:
        cs.compare(unlike, ["uniform"], [100], 40, executor=Interrupting(0))
    assert isinstance(nothing.value, Interrupted)
    assert nothing.value.results is None


def test_a_checkpoint_gives_the_same_bits_and_runs_nothing_twice(
    unlike: cs.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainscout.experiment.tasks.MOST_WAITING", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    tasks = tmp_path / "deep" / "tasks"
    run: dict[str, Any] = {"policies": ["uniform", "scout"], "budgets": [40, 100], "replications": 40}
    whole = cs.compare(unlike, **run)
    with pytest.raises(Interrupted):
        cs.compare(unlike, **run, checkpoint=tasks, executor=Interrupting(9))
    files = sorted(tasks.glob("*.npz"))
    assert 0 < len(files) <= 9
    executor = Interrupting(10**6)
    assert same(whole, cs.compare(unlike, **run, checkpoint=tasks, executor=executor))
    assert 10**6 - executor.left == 20 - len(files)
    # Everything is there now: nothing is run.
    assert same(whole, cs.compare(unlike, **run, checkpoint=tasks, executor=Interrupting(0)))
    forget(tasks)
    assert not tasks.exists()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty", "other shape", "a text"])
def test_damaged_tasks_are_run_again(unlike: cs.Problem, tmp_path: Path, damage: str) -> None:
    run: dict[str, Any] = {"policies": ["uniform"], "budgets": [100], "replications": 16, "checkpoint": tmp_path}
    whole = cs.compare(unlike, **run)
    file = sorted(tmp_path.glob("*.npz"))[1]
    content = bytearray(file.read_bytes())
    if damage == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        place = content.index(np.float64(whole.loss[0, 0, 4, 0]).tobytes())
        content[place] ^= 1
        file.write_bytes(content)
    elif damage == "foreign":
        np.savez(file, other=np.zeros(3))
    elif damage == "other shape":
        np.savez(file, loss=np.zeros((1, 1, 3)), pulls=np.zeros((1, 1, 3), np.int64))
    else:
        file.write_bytes(b"" if damage == "empty" else b"not a zip file")
    executor = Interrupting(1)
    assert same(whole, cs.compare(unlike, **run, executor=executor))
    assert executor.left == 0
    assert same(whole, cs.compare(unlike, **run, executor=Interrupting(0)))  # it was mended


@pytest.mark.parametrize(
    "change",
    [
        {"policies": ["scout"]},
        {"policies": ["uniform:block=0.1"]},
        {"budgets": [101]},
        {"replications": 9},
        {"seed": 1},
        {"batch": 2},
        {"delta": 0.1},
        {"problem": cs.problems.get("two-state")},
        {"policies": [cs.Policy("uniform", lambda s, t, c: 1 / t, lambda r, n, q, c: (0.0,), version=2)]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_checkpoint_of_another_experiment_is_refused(
    unlike: cs.Problem, tmp_path: Path, change: dict[str, Any]
) -> None:
    run: dict[str, Any] = {"problem": unlike, "policies": ["uniform"], "budgets": [100], "replications": 8}
    cs.compare(**run, checkpoint=tmp_path)
    with pytest.raises(InputError, match="holds another experiment"):
        cs.compare(**(run | change), checkpoint=tmp_path)


def test_a_checkpoint_that_cannot_be_read_or_written(unlike: cs.Problem, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(FileError, match=r"run\.json is damaged"):
        cs.compare(unlike, ["uniform"], [50], 4, checkpoint=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot keep an experiment"):
        cs.compare(unlike, ["uniform"], [50], 4, checkpoint=tmp_path / "file")


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


def test_an_error_in_a_task_is_told_and_finished_tasks_are_kept(unlike: cs.Problem, tmp_path: Path) -> None:
    strange = cs.Policy("strange", lambda sums, t, constants: math.nan, lambda row, n, q, c: (0.0,))
    with pytest.raises(ChainscoutError, match="'strange' gave an index that is not a number"):
        cs.compare(unlike, ["uniform", strange], [100], 8, engine="python", checkpoint=tmp_path)
    assert list(tmp_path.glob("task-0-*.npz"))


# ---------------------------------------------------------------- against the theory


@pytest.fixture(scope="module")
def fast_mixing() -> cs.Problem:
    """Chains whose rows are all alike forget everything in one step; ΣG = 1.98, 1.38 and 0.96."""
    laws = {"even": [0.4, 0.3, 0.3], "skewed": [0.7, 0.2, 0.1], "two": [0.6, 0.4]}
    return cs.Problem({name: cs.MarkovChain([law] * len(law)) for name, law in laws.items()})


def test_uniform_and_oracle_reach_their_limits(fast_mixing: cs.Problem) -> None:
    """n·max_k E[L_k]/Λ → K·max ΣG_k/Λ for uniform and → 1 for the oracle.

    Tolerance: four standard errors. The oracle's means are all equal, so that the largest estimate lies above by up to
    √(2·log 3) = 1.48 standard errors in the mean. What is left of the limit at this budget: E[T·L] = ΣG·(1 + O(S/T)),
    with (N/(N+r))² ≥ 1 − 2r/N for the smoothing, N_x ≥ 400: below 0.002.
    """
    budget = 30_000
    results = cs.compare(fast_mixing, ["uniform", "oracle"], [budget], 1_500, seed=11)
    rows = {row["policy"]: row for row in results.summary()}
    largest = max(chain.variability for chain in fast_mixing.chains.values())
    limits = {"uniform": 3 * largest / fast_mixing.variability, "oracle": 1.0}
    for policy, limit in limits.items():
        value, error = (rows[policy][f"{prefix}n·max E[L]/Λ"] for prefix in ("", "± "))
        print(f"{policy}: {value:.4f} ± {error:.4f}, limit {limit:.4f}")
        above = math.sqrt(2 * math.log(3)) if policy == "oracle" else 0.0
        assert -4 * error <= value - limit * (1 + 0.002) <= (4 + above) * error
        assert error < 0.03 * limit  # or the test would say nothing
    shares = {(row["policy"], row["chain"]): row["share"] for row in results.allocation()}
    for name, share in zip(fast_mixing, fast_mixing.allocation, strict=True):
        assert shares["oracle", name] == pytest.approx(share, abs=2 / budget * 3)
        assert shares["uniform", name] == pytest.approx(1 / 3, abs=1 / budget)


def random_problem(generator: np.random.Generator, alike: bool) -> cs.Problem:
    """Three to eight chains whose rows are Dirichlet, each chain with its own concentration, from 0.1 to 20.

    All have the same two to eight states (``alike``, the paper's setting), or each its own number of states.
    """
    size = generator.integers(2, 9)
    chains = {}
    for k in range(generator.integers(3, 9)):
        states = size if alike else generator.integers(2, 9)
        rows = generator.dirichlet([10 ** generator.uniform(-1, 1.3)] * states, states)
        chains[f"chain {k}"] = cs.MarkovChain(rows / rows.sum(axis=1, keepdims=True))
    return cs.Problem(chains)


@pytest.mark.parametrize("alike", [True, False], ids=["one state space", "each its own"])
def test_scout_beats_uniform_beats_ba_mc(alike: bool) -> None:
    """MATH §6's last table at n/K = 1,000: E[max L], geometric means over problems drawn here, paired.

    The problems are fixed by the seed, so that the noise is that of the replications; intervals of 3.3 standard errors
    (one in a thousand) of the mean logarithm of the ratios must lie on the right side of one.
    """
    generator = np.random.default_rng(2019)
    pairs = [("scout", "uniform"), ("uniform", "ba-mc")]
    logarithms: dict[tuple[str, str], list[tuple[float, float]]] = {pair: [] for pair in pairs}
    for number in range(10):
        problem = random_problem(generator, alike)
        budget = 1_000 * len(problem)
        results = cs.compare(problem, ["scout", "uniform", "ba-mc"], [budget], 160, seed=number)
        largest = {policy: results.statistics[policy, budget]["E[max L]"] for policy in results.policies}
        for first, second in pairs:
            ratio = largest[first].over(largest[second])
            logarithms[first, second].append((math.log(ratio.value), ratio.error / ratio.value))
            print(f"K = {len(problem)}, {first} / {second}: {ratio.value:.3f} ± {ratio.error:.3f}")
    for (first, second), found in logarithms.items():
        mean = sum(log for log, _ in found) / len(found)
        error = math.sqrt(sum(error**2 for _, error in found)) / len(found)
        low, high = (math.exp(mean + sign * 3.3 * error) for sign in (-1, 1))
        print(f"{first} / {second}: {math.exp(mean):.3f}, interval {low:.3f} … {high:.3f}")
        assert high < 1
