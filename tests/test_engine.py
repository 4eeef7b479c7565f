"""The engine: interpreted and compiled agree to the bit, and what a run gives does not depend on how it is cut."""

import itertools
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from engine_problems import PROBLEMS, UNLIKE, scaled, unlike
from test_policies import ALL, LOSSES, get

import chainscout as cs
from chainscout import Policy, policies
from chainscout.engine import Options, run, trace
from chainscout.engine.cpu import prepare, state
from chainscout.engine.cpu.state import CHUNK_BYTES
from chainscout.engine.options import RESTLESS_BLOCK
from chainscout.errors import InputError
from chainscout.random import Walk


def same(one, other):
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


# -- decision by decision


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_interpreted_and_compiled_agree_at_every_step(name, problem):
    problem = PROBLEMS[problem]
    policy = get(name, problem)
    budget = 600 if policy.summary else 1700
    same(*(trace(problem, policy, budget, options=Options(seed=3, engine=engine)) for engine in ("python", "cpu")))


@pytest.mark.soak
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_interpreted_and_compiled_agree_at_every_step_of_twenty_thousand(name, problem):
    problem = PROBLEMS[problem]
    same(
        *(
            trace(problem, get(name, problem), 20_000, options=Options(seed=4, engine=engine))
            for engine in ("python", "cpu")
        )
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("scout:block=0.05", {}),
        ("ba-mc:block=0.05", {}),
        ("ba-mc", {"horizon": False}),
        ("scout", {"batch": 7}),
        ("gafs-max", {"batch": 7}),
        ("certifier", {"batch": 7}),
        ("certifier:block=0.1", {"batch": 7}),
        ("scout:block=0.1", {"batch": 7}),
        ("uniform", {"batch": 50}),
        ("scout", {"restless": True}),
        ("scout", {"weights": (1, 5, 2, 3, 4)}),
        ("scout:power=0.6", {}),
        *((f"scout:loss={loss}", {}) for loss in LOSSES),
    ],
)
def test_every_mode_agrees_too(name, options):
    same(*(trace(UNLIKE, name, 900, options=Options(engine=engine, **options)) for engine in ("python", "cpu")))
    results = [
        run(UNLIKE, name, [900, 7, 300], range(2, 5), Options(engine=engine, **options)) for engine in ("python", "cpu")
    ]
    same(*results)
    assert (results[0][1].sum(axis=2) == np.array([[900], [7], [300]])).all()


def test_a_tree_makes_the_choices_of_a_scan(monkeypatch):
    problem = unlike([2, 3] * 45, seed=1)
    assert prepare(problem, policies.get("scout"), 9, Options()).loop.tree
    for name in ("scout", "uniform", "gafs-max", "scout:block=0.1"):
        with_tree = trace(problem, name, 3000)
        same(with_tree, trace(problem, name, 3000, options=Options(engine="python")))
        with monkeypatch.context() as patch:
            patch.setattr(state, "TREE_FROM", 10**9)
            assert not prepare(problem, policies.get(name), 9, Options()).loop.tree
            same(with_tree, trace(problem, name, 3000, options=Options(engine="python")))


def test_plans_of_one_observation_are_single_steps():
    """The loop for plans, with blocks that never get longer than one, against the loop for steps."""
    for name in ("scout", "ba-mc", "uniform"):
        assert not prepare(UNLIKE, policies.get(name), 9, Options()).loop.planned
        same(trace(UNLIKE, name, 1500), trace(UNLIKE, policies.get(name, block=1e-9), 1500))


# -- pure: however it is cut


@pytest.mark.parametrize("name", ["scout", "scout:block=0.1", "gini-ucb", "gafs-max"])
def test_results_do_not_depend_on_the_split(name):
    budgets = [50, 333, 1000]
    whole = run(UNLIKE, name, budgets, range(23), Options(seed=9))
    for cuts in ([0, 23], [0, 1, 2, 23], [0, 4, 8, 12, 23], [0, 10, 13, 23]):
        parts = [run(UNLIKE, name, budgets, range(a, b), Options(seed=9)) for a, b in itertools.pairwise(cuts)]
        same(whole, [np.concatenate(part, axis=1) for part in zip(*parts, strict=True)])
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda r: run(UNLIKE, name, budgets, range(r, r + 1), Options(seed=9)), range(23)))
    same(whole, [np.concatenate(part, axis=1) for part in zip(*parts, strict=True)])
    # More budgets, read on the way, change nothing; one alone does not either, as long as the horizon is the same.
    finer = run(UNLIKE, name, sorted({*budgets, *range(1, 1000, 37)}), range(23), Options(seed=9))
    kept = [sorted({*budgets, *range(1, 1000, 37)}).index(b) for b in budgets]
    same(whole, [array[kept] for array in finer])
    same([a[2:] for a in whole], run(UNLIKE, name, [1000], range(23), Options(seed=9)))


def test_chunks_are_cut_where_nobody_sees_it(monkeypatch):
    whole = run(UNLIKE, "scout", [500], range(40))
    monkeypatch.setattr("chainscout.engine.cpu.state.CHUNK_BYTES", CHUNK_BYTES >> 6)
    same(whole, run(UNLIKE, "scout", [500], range(40)))


def test_budgets_in_any_order_and_repeated():
    loss, pulls = run(UNLIKE, "scout", [300, 20, 300, 100], range(2))
    assert pulls.sum(axis=2).tolist() == [[300, 300], [20, 20], [300, 300], [100, 100]]
    assert (loss[0] == loss[2]).all()
    same([a[[1, 3, 0]] for a in (loss, pulls)], run(UNLIKE, "scout", [20, 100, 300], range(2)))


def test_every_policy_sees_the_same_paths():
    """With equal pulls of a chain, two policies have the same counts of it, hence the same loss."""
    losses, pulls = zip(*(run(UNLIKE, name, [40], range(30)) for name in ("uniform", "oracle", "scout")), strict=True)
    shared = 0
    for a, b in ((0, 1), (0, 2), (1, 2)):
        equal = pulls[a] == pulls[b]
        shared += equal.sum()
        assert (losses[a][equal] == losses[b][equal]).all()
    assert shared > 10


# -- what is read


@pytest.mark.parametrize("distance", ["squared", "total-variation", "kullback-leibler", "chi-squared"])
@pytest.mark.parametrize("weights", ["empirical", "ones", "stationary"])
def test_losses_are_those_of_the_counts(distance, weights):
    loss, pulls = run(UNLIKE, "scout", [300], range(5, 7), Options(seed=2, distance=distance, row_weights=weights))
    for r in range(2):
        for k, chain in enumerate(UNLIKE.chains.values()):
            path = Walk(chain, k, replication=5 + r, seed=2)
            counts = cs.Counts.from_path((next(path) for _ in range(pulls[0, r, k])), chain.size)
            assert loss[0, r, k] == pytest.approx(cs.loss(chain, counts, distance=distance, weights=weights), rel=1e-12)


def test_a_loss_is_not_a_number_before_the_first_transition():
    loss, pulls = run(UNLIKE, "scout", [1, 2, 5, 10], range(1))
    assert np.isnan(loss[:, 0]).tolist() == [
        [True] * 5,
        [False] + [True] * 4,
        [False, False, True, True, True],
        [False] * 5,
    ]
    assert pulls[:, 0].tolist() == [[1, 0, 0, 0, 0], [2, 0, 0, 0, 0], [2, 2, 1, 0, 0], [2, 2, 2, 2, 2]]


def test_odd_problems():
    one = cs.problems.get("dirichlet", chains=1, states=3)
    assert run(one, "scout", [40], range(2))[1].tolist() == [[[40], [40]]]
    dull = cs.Problem({"a": cs.MarkovChain([[1.0]]), "cycle": PROBLEMS["a cycle among others"]["cycle"]})
    for name in ALL:
        loss, pulls = run(dull, get(name, dull), [60], range(2))
        assert (loss[0, :, 0] == 0).all()
        assert (pulls.sum(axis=2) == 60).all()
    assert run(one, "scout", [40], range(0))[0].shape == (1, 0, 1)


# -- modes


def test_batches():
    chosen, _ = trace(UNLIKE, "uniform", 130, options=Options(batch=10))
    # The warm-up's ten observations, then every batch is what round robin would do.
    assert sorted(chosen[:10].tolist()) == sorted([*range(5), *range(5)])
    assert (np.bincount(chosen) == 26).all()
    # A first batch that would go on past the warm-up ends there: nothing is known yet.
    chosen, _ = trace(UNLIKE, "scout", 60, options=Options(batch=25))
    assert sorted(chosen[:10].tolist()) == sorted([*range(5), *range(5)])
    assert len(set(chosen[10:35].tolist())) == 5
    # Within a batch nothing is learnt, so that the choices differ from those of single steps, but not by much.
    single, batched = (
        run(UNLIKE, "scout", [4000], range(scaled(200, 20)), Options(batch=b))[0].max(axis=2).mean() for b in (1, 50)
    )
    assert batched == pytest.approx(single, rel=0.1 if scaled(200, 20) == 200 else 0.3)


def test_restless_chains_are_observed_in_blocks():
    chosen, _ = trace(UNLIKE, "scout", 2000, options=Options(restless=True))
    switches = np.flatnonzero(np.diff(chosen)) + 1
    assert (switches % RESTLESS_BLOCK == 0).all()
    _, pulls = run(UNLIKE, "scout", [2000], range(3), Options(restless=True))
    assert (pulls.sum(axis=2) == 2000).all()


def test_restless_chains_move_while_nobody_looks():
    """A chain that alternates between two states shows, when it is looked at again, where it has got to meanwhile."""
    flip = cs.MarkovChain([[0.0, 1.0], [1.0, 0.0]], initial=[1.0, 0.0])
    problem = cs.Problem({"a": flip, "b": flip})
    loss, _ = run(problem, "uniform", [400], range(2), Options(restless=True))
    # All pairs that were counted are transitions of the chain: rows are deterministic, only smoothing is left.
    assert loss.max() < 1e-4
    with pytest.raises(InputError, match="batch must be 1"):
        run(problem, "uniform", [400], range(2), Options(restless=True, batch=2))


def test_weights_shift_the_allocation():
    twins = PROBLEMS["twins"]
    _, pulls = run(twins, "scout:power=1", [30_000], range(scaled(20)), Options(weights=(1, 2, 4)))
    assert pulls.mean(axis=(0, 1)) / 30_000 == pytest.approx([1 / 7, 2 / 7, 4 / 7], rel=0.01)


# -- limits (MATH §3): fixed seeds, tolerances from the sample's own standard error


@pytest.mark.parametrize("name", ["uniform", "oracle", "oracle-max"])
def test_known_shares_reach_their_limits(name):
    """n·E[L_k] → ΣG_k/share_k. The next order is below 1 % at N_x ≈ 10³."""
    problem, budget = cs.problems.get("dirichlet"), 40_000
    loss, pulls = run(problem, name, [budget], range(scaled(400, 8)), Options(seed=1))
    share = policies.get(name).aim(problem)
    assert pulls.mean(axis=(0, 1)) / budget == pytest.approx(share, abs=1e-3)
    limit = np.array([chain.variability for chain in problem.chains.values()]) / share
    times = budget * loss[0]
    error = times.std(axis=0) / np.sqrt(len(times))
    assert (np.abs(times.mean(axis=0) - limit) < 4.5 * error + 0.01 * limit).all()


def test_the_ordering_of_the_policies():
    """scout < uniform < ba-mc in E[max_k L_k] at n/K = 1,000 (MATH §6), on problems drawn here."""
    better, worse = [], []
    for seed in range(scaled(8)):
        generator = np.random.default_rng(seed)
        chains = {
            str(k): cs.MarkovChain(generator.dirichlet(np.full(5, 10 ** generator.uniform(-1, 0.5)), 5))
            for k in range(6)
        }
        problem = cs.Problem(chains)
        mean = {
            n: run(problem, n, [6000], range(scaled(300)))[0].max(axis=2).mean() for n in ("scout", "uniform", "ba-mc")
        }
        better.append(np.log(mean["scout"] / mean["uniform"]))
        worse.append(np.log(mean["ba-mc"] / mean["uniform"]))
    for logs, sign in ((better, -1), (worse, 1)):
        mean, error = np.mean(logs), np.std(logs, ddof=1) / np.sqrt(len(logs))
        assert sign * mean > scaled(2, 0) * error, f"log ratio to uniform {mean:.3f} ± {error:.3f}"


# -- a user's own rule

RULE = """
import math

def shrink(value):
    return value / (1.0 + value)

def terms(row, exits, squares, c):
    seen = 0.0
    for y in range(len(row)):
        if row[y] > 0:
            seen += 1.0
    return (seen + c[0], shrink(exits))

def index(sums, transitions, c):
    return math.sqrt(sums[0]) * sums[1] / transitions

def constants(setting):
    return (1.0 / setting.size,)
"""


def own_policy():
    space = {}
    exec(RULE, space)
    return Policy("mine", space["index"], space["terms"], space["constants"])


def test_a_rule_typed_at_a_prompt():
    same(*(trace(UNLIKE, own_policy(), 800, options=Options(engine=engine)) for engine in ("python", "cpu")))
    assert run(UNLIKE, own_policy(), [100], range(2))[1].sum() == 200


def test_a_rule_in_a_script(tmp_path):
    """In a file the machine code is kept: the second process loads what the first has compiled."""
    script = tmp_path / "mine.py"
    script.write_text(
        RULE
        + textwrap.dedent(
            """
            import chainscout as cs
            from chainscout.engine import Options, run, trace

            policy = cs.Policy("mine", index, terms, constants)
            problem = cs.problems.get("dirichlet")
            one, other = (trace(problem, policy, 500, 0, Options(engine=engine)) for engine in ("python", "cpu"))
            assert (one[0] == other[0]).all() and (one[1] == other[1]).all()
            print(run(problem, policy, [200], range(3))[1].sum())
            """
        )
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "600\n"), done.stderr


def test_an_index_that_is_no_number():
    with pytest.raises(InputError, match="'lost' gave an index that is not a number"):
        run(UNLIKE, Policy("lost", lambda s, t, c: 0.0 * (1e308 * 10.0), lambda r, n, q, c: (n,)), [50], range(1))


# -- bad input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"problem": 3}, "needs a Problem"),
        ({"policy": "scoot"}, "did you mean scout"),
        ({"budgets": []}, "at least one budget"),
        ({"budgets": [0]}, "budget"),
        ({"budgets": [2.5]}, "budget"),
        ({"replications": 5}, "range"),
        ({"replications": range(0, 10, 2)}, "range"),
        ({"replications": range(-1, 3)}, "range"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
        ({"engine": "gpu3"}, "engine"),
        ({"weights": (1, 2)}, "one a chain"),
        ({"weights": (1, 2, 3, 4, 0)}, "weights"),
        ({"batch": 0}, "batch"),
        ({"distance": "far"}, "distance"),
        ({"row_weights": "heavy"}, "row_weights"),
    ],
)
def test_bad_input(options, words):
    given = {"problem": UNLIKE, "policy": "scout", "budgets": [10], "replications": range(2)}
    given |= {name: options[name] for name in given.keys() & options}
    with pytest.raises(InputError, match=words):
        run(**given, options=Options(**{name: value for name, value in options.items() if name not in given}))


@pytest.mark.parametrize("engine_name", ["python", "cpu"])
def test_a_batch_of_chains_whose_indices_are_all_minus_infinity(engine_name: str) -> None:
    """−∞ also marks a chain of which nothing is known until its first observations are in."""
    rule = cs.Policy("never", lambda sums, transitions, constants: -float("inf"), lambda row, n, q, c: (0.0,))
    _, pulls = run(cs.problems.get("two-state"), rule, [40], range(4), Options(seed=0, engine=engine_name, batch=3))
    assert (pulls.sum(axis=2) == 40).all()
