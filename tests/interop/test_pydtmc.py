"""The same chains in PyDTMC, which pins an old matplotlib: it runs in an environment of its own (make test-interop)."""

import json
import math
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.testing import assert_allclose

import chainscout as cs
from chainscout import problems
from chainscout.chains import MarkovChain
from chainscout.errors import NotErgodicError

pytestmark = pytest.mark.interop

HERE = Path(__file__).resolve().parent


def reversible(size: int, seed: int) -> np.ndarray:
    weights = np.random.default_rng(seed).gamma(0.5, size=(size, size))
    weights += weights.T
    return weights / weights.sum(axis=1, keepdims=True)


CHAINS = {
    "two states": [[0.9, 0.1], [0.4, 0.6]],
    "sticky": [[0.999, 0.001], [0.002, 0.998]],
    "one step": [[0.2, 0.8], [0.2, 0.8]],
    "birth-death": [[0.5, 0.5, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25], [0, 0, 0.5, 0.5]],
    "drifting circle": [[0, 0.9, 0.1], [0.1, 0, 0.9], [0.9, 0.1, 0]],
    "period 3": [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
    "period 2": [[0, 0.3, 0, 0.7], [0.5, 0, 0.5, 0], [0, 0.6, 0, 0.4], [0.8, 0, 0.2, 0]],
    "nearly decomposable": [[0.5, 0.5 - 1e-7, 1e-7], [0.3, 0.7, 0], [1e-7, 0, 1 - 1e-7]],
    "transient start": [[0.5, 0.25, 0.25], [0, 0.3, 0.7], [0, 0.6, 0.4]],
    "two traps": [[1, 0, 0], [0.2, 0.5, 0.3], [0, 0, 1]],
    "random": np.random.default_rng(1).dirichlet(np.full(8, 0.5), size=8),
    "random, larger": np.random.default_rng(2).dirichlet(np.full(30, 0.2), size=30),
    "random reversible": reversible(12, seed=3),
}


def labelled(matrix: npt.ArrayLike) -> MarkovChain:
    """A chain whose states have names that PyDTMC takes."""
    return MarkovChain(matrix, states=[f"s{x}" for x in range(len(np.asarray(matrix)))])


OURS = {name: labelled(matrix) for name, matrix in CHAINS.items()}

IRREDUCIBLE = [name for name in CHAINS if name not in ("transient start", "two traps")]
PERIODIC = ["period 3", "period 2"]
ERGODIC = [name for name in IRREDUCIBLE if name not in PERIODIC]
SLOW = ["sticky", "nearly decomposable"]


def ask(chains: Iterable[MarkovChain]) -> list[dict[str, Any]]:
    """What the peer answers for each chain."""
    python = os.environ.get("CHAINSCOUT_INTEROP_PYTHON")
    if python is None:
        pytest.fail(
            "CHAINSCOUT_INTEROP_PYTHON must name the interpreter of PyDTMC's environment: use make test-interop"
        )
    done = subprocess.run(
        [python, str(HERE / "pydtmc_peer.py")],
        input=json.dumps([{"matrix": chain.matrix.tolist(), "states": list(chain.states)} for chain in chains]),
        env={**os.environ, "PYTHONPATH": str(HERE.parent.parent / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    return dict(zip(OURS, ask(OURS.values()), strict=True))


@pytest.fixture
def theirs(name: str, answers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The quantities that PyDTMC computes for the chain called ``name``."""
    return answers[name]["quantities"]


@pytest.mark.parametrize("name", CHAINS)
def test_irreducible_and_ergodic(name, theirs):
    assert OURS[name].is_irreducible == theirs["is_irreducible"] == (name in IRREDUCIBLE)
    assert OURS[name].is_ergodic == theirs["is_ergodic"] == (name in ERGODIC)


@pytest.mark.parametrize("name", IRREDUCIBLE)  # PyDTMC calls a reducible chain of aperiodic classes aperiodic
def test_period_and_reversibility(name, theirs):
    assert OURS[name].is_aperiodic == theirs["is_aperiodic"] == (name not in PERIODIC)
    assert OURS[name].period == theirs["period"]
    assert OURS[name].is_reversible == theirs["is_reversible"]


@pytest.mark.parametrize("name", [name for name in CHAINS if name != "two traps"])
def test_stationary_law(name, theirs):
    # Both eliminate without subtracting (GTH): each entry is right to a few units in its last place per state.
    assert_allclose(OURS[name].stationary, theirs["pi"][0], rtol=4 * len(OURS[name]) * np.finfo(float).eps, atol=0)


@pytest.mark.parametrize("name", ["two traps"])
def test_no_single_stationary_law(name, theirs):
    assert len(theirs["pi"]) == 2
    with pytest.raises(NotErgodicError):
        OURS[name].stationary  # noqa: B018


@pytest.mark.parametrize("name", IRREDUCIBLE)
def test_time_reversal_from_their_stationary_law(name, theirs):
    law = np.array(theirs["pi"][0])
    assert_allclose(OURS[name].reversal.matrix, OURS[name].matrix.T * law / law[:, None], rtol=1e-12)


@pytest.mark.parametrize("name", ERGODIC)
def test_inverse_stationary_sum_is_that_of_their_recurrence_times(name, theirs):
    assert OURS[name].inverse_stationary_sum == pytest.approx(sum(theirs["mean_recurrence_times"]), rel=1e-12)


@pytest.mark.parametrize("name", ["two states", "sticky", "birth-death", "random reversible"])
def test_spectral_gap(name, theirs):
    assert OURS[name].spectral_gap == pytest.approx(theirs["spectral_gap"], abs=1e-12)


@pytest.mark.parametrize("name", ["one step"])
def test_a_gap_of_one_is_none_to_them(name, theirs):
    assert theirs["spectral_gap"] is None
    assert OURS[name].spectral_gap == pytest.approx(1)


@pytest.mark.parametrize("name", ["nearly decomposable"])
def test_they_pass_over_an_eigenvalue_near_one(name, theirs):
    # PyDTMC takes every eigenvalue within 1e-5 of one for the leading one, so its gap is that of the third; the
    # second is what the trace leaves.
    third = 1 - theirs["spectral_gap"]
    assert OURS[name].spectral_gap == pytest.approx(1 - (np.trace(OURS[name].matrix) - 1 - third), abs=1e-12)


@pytest.mark.parametrize("name", [name for name in ERGODIC if name not in SLOW])
def test_mixing_time_lies_within_our_bounds(name, theirs):
    # They measure ‖·‖₁ = 2·TV and look from t = 1 on; the chain has mixed when it has from its worst start.
    lower, upper = OURS[name].mixing_time_bounds(epsilon=0.125)
    assert lower <= max(theirs["mixing_times"]) <= max(1, math.ceil(upper))


@pytest.mark.parametrize("name", SLOW)
def test_their_mixing_time_gives_up_before_our_lower_bound(name, theirs):
    assert None in theirs["mixing_times"]
    assert OURS[name].mixing_time_bounds(epsilon=0.125)[0] > 99


def check_conversions(chain: MarkovChain, answer: dict[str, Any]) -> None:
    same = {"matrix": chain.matrix.tolist(), "states": list(chain.states)}
    assert answer["converted"] == same
    assert answer["exported"] == {"class": "pydtmc.markov_chain.MarkovChain", **same}
    assert answer["there and back"] == same
    assert answer["numbered"] == [str(x) for x in range(len(chain))]


@pytest.mark.parametrize("name", CHAINS)
def test_conversions(name, answers):
    check_conversions(OURS[name], answers[name])


@pytest.mark.parametrize("problem", problems.names())
def test_catalogue(problem):
    chains = [labelled(chain.matrix) for chain in problems.get(problem).chains.values()]
    for chain, answer in zip(chains, ask(chains), strict=True):
        theirs = answer["quantities"]
        assert chain.is_irreducible == theirs["is_irreducible"]
        assert chain.is_ergodic == theirs["is_ergodic"]
        (law,) = theirs["pi"]
        assert_allclose(chain.stationary, law, rtol=4 * len(law) * np.finfo(float).eps, atol=0)
        check_conversions(chain, answer)


# -- exact answers


def asked(name, question):
    """Our exact answers from each state."""
    return [cs.answer(OURS[name], question(state)).estimate for state in OURS[name].states]


@pytest.mark.parametrize("name", CHAINS)
def test_probabilities_to_reach_a_state(name, theirs):
    target = OURS[name].states[-1]
    assert_allclose(asked(name, lambda state: cs.Reach(target, state)), theirs["hitting_probabilities"], atol=1e-7)
    within = cs.answer(OURS[name], cs.Reach(target, OURS[name].states[0], within=5)).estimate
    assert within == pytest.approx(sum(theirs["first_passages"]), abs=1e-12)


@pytest.mark.parametrize("name", IRREDUCIBLE)  # PyDTMC gives a number too where a state may never be reached
def test_times_to_reach_a_state(name, theirs):
    target = OURS[name].states[-1]
    assert_allclose(asked(name, lambda state: cs.PassageTime(target, state)), theirs["hitting_times"], rtol=1e-6)


@pytest.mark.parametrize("name", CHAINS)
def test_costs_over_steps(name, theirs):
    costs = {state: float(place) for place, state in enumerate(OURS[name].states)}
    found = asked(name, lambda state: cs.Cost(costs, state, steps=4))
    assert_allclose(found, theirs["expected_rewards"], rtol=1e-12, atol=1e-12)
