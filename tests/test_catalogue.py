"""The catalogue: values solved by hand, totals of published tables, parameters, specifications, and its page."""

import inspect
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainscout import specs
from chainscout.errors import InputError, MissingExtraError
from chainscout.problems import Problem, describe, get, names
from chainscout.problems.catalogue import _ENTRIES, published
from chainscout.problems.catalogue.environments import CLIFF_WALKING_ACTIONS, FROZEN_LAKE_ACTIONS

PAGE = (Path(__file__).parent.parent / "docs" / "catalogue.md").read_text()

# ---------------------------------------------------------------- every entry


def test_the_names():
    assert names() == (
        *("two-state", "gilbert-elliott", "unlike", "birth-death", "nearly-decomposable", "equal"),
        *("cpg-islands", "alofi-rainfall", "cd4", "sp-ratings", "frozen-lake", "cliff-walking"),
        *("dirichlet", "reversible", "sparse"),
    )


@pytest.mark.parametrize("name", names())
def test_every_entry_is_a_described_problem_with_a_source(name):
    problem = get(name)
    assert isinstance(problem, Problem)
    assert problem.name == name
    assert problem.description == describe(name)
    assert problem.description.endswith(".")
    assert problem.source.rstrip(")").endswith(".")
    assert get(problem.name) == problem
    assert problem.variability > 0


@pytest.mark.parametrize("name", names())
def test_every_entry_but_the_absorbing_one_is_ergodic(name):
    assert all(chain.is_ergodic for chain in get(name).chains.values()) == (name != "sp-ratings")


@pytest.mark.parametrize("name", names())
def test_the_page_tells_of_every_entry(name):
    section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    problem = get(name)
    # Five digits: with four, that of cliff-walking, 66.185, would be rounded as its last bit happens to be.
    assert f"Λ = {problem.variability:.5g}, " in section
    parameters = inspect.signature(_ENTRIES[name].build).parameters
    assert all(f"`{parameter}` (" in section for parameter in parameters)
    assert ("No parameters." in section) == (not parameters)
    assert len(re.findall(r"^## ", PAGE, re.MULTILINE)) == len(names())


# ---------------------------------------------------------------- constructed


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 1e-9])
def test_two_state_by_hand(epsilon):
    chain = get("two-state", epsilons=epsilon)[f"epsilon={epsilon}"]
    assert chain.matrix.tolist() == [[0.5, 0.5], [epsilon, 1 - epsilon]]
    assert chain.stationary == pytest.approx([2 * epsilon / (1 + 2 * epsilon), 1 / (1 + 2 * epsilon)], rel=1e-12)
    assert chain.variability == pytest.approx(0.5 + 2 * epsilon * (1 - epsilon), rel=1e-12)
    assert not math.isclose(chain.stationary[0], epsilon / (2 + epsilon), rel_tol=0.1)  # what the paper prints


def test_gilbert_elliott_by_hand():
    problem = get("gilbert-elliott", failure=[0.1, 0.2], recovery=[0.3, 0.2])
    chain = problem["failure=0.1 recovery=0.3"]
    assert chain.states == ("good", "bad")
    assert chain.stationary == pytest.approx([0.75, 0.25])
    assert chain.spectral_gap == pytest.approx(0.4)  # 1 − |1 − p − q|
    assert problem.variability == pytest.approx(2 * (0.09 + 0.21 + 0.16 + 0.16))


def test_unlike_by_hand():
    problem = get("unlike", states=3, noise=0.1)
    assert problem["sticky"].matrix[0] == pytest.approx([0.9, 0.05, 0.05])
    assert problem["cyclic"].matrix == pytest.approx(
        np.array([[0.05, 0.9, 0.05], [0.05, 0.05, 0.9], [0.9, 0.05, 0.05]])
    )
    assert problem["uniform"].variability == pytest.approx(2)
    assert problem["sticky"].variability == problem["cyclic"].variability == pytest.approx(3 * (1 - 0.81 - 0.005))


def test_uniform_allocation_is_bad_on_unlike_and_optimal_on_equal():
    # n·max_k ΣG_k/T_k over Λ with T_k = n/K.
    ratios = {name: len(p) * p.allocation.max() for name in ("unlike", "equal") for p in [get(name)]}
    assert ratios["unlike"] > 2.7
    assert ratios["equal"] == pytest.approx(1, rel=1e-12)


def test_birth_death_by_hand():
    problem = get("birth-death", birth=(0.2, 0.4), death=0.1, states=4)
    chain = problem["birth=0.2"]
    assert chain.matrix[1] == pytest.approx([0.1, 0.7, 0.2, 0])
    assert chain.matrix[3] == pytest.approx([0, 0, 0.1, 0.9])
    assert chain.stationary == pytest.approx(np.array([1, 2, 4, 8]) / 15)
    assert all(chain.is_reversible for chain in problem.chains.values())


def test_nearly_decomposable_by_hand():
    chain = get("nearly-decomposable", coupling=0.1, blocks=3, size=2)["coupling=0.1"]
    assert chain.matrix[0] == pytest.approx([0.45, 0.45, 0.025, 0.025, 0.025, 0.025])
    assert chain.stationary == pytest.approx([1 / 6] * 6)
    # Between blocks the chain is that of three states left with probability .1: second eigenvalue 1 − .1·3/2.
    assert chain.spectral_gap == pytest.approx(0.15)


def test_equal_by_hand():
    problem = get("equal", chains=2, states=2)
    assert problem["chain-1"] == problem["chain-2"]
    assert problem["chain-1"].matrix == pytest.approx(np.array([[2, 1], [1, 2]]) / 3)


# ---------------------------------------------------------------- published tables, against their printed totals


def test_the_totals_of_the_published_counts():
    # Days by class (548, 295, 253; the last day, of class 1-5, has no successor) and days in all, 1,096.
    rain = np.array(published.ALOFI_RAINFALL)
    assert rain.sum(axis=1).tolist() == [548, 295 - 1, 253]
    assert rain.sum() == 1_096 - 1
    cd4 = np.array(published.CD4_COUNTS)
    assert cd4.sum(axis=1).tolist() == [740, 265, 81]
    assert cd4.sum() == 1_086


def test_the_published_estimates_from_the_counts():
    # The estimates printed in the R package markovchain's vignette, to seven digits.
    alofi = get("alofi-rainfall")["alofi"]
    printed = [[0.6605839, 0.2299270, 0.1094891], [0.4625850, 0.3061224, 0.2312925], [0.1976285, 0.3122530, 0.4901186]]
    assert alofi.matrix == pytest.approx(np.array(printed), abs=5e-8)
    assert alofi.stationary == pytest.approx([0.5008871, 0.2693656, 0.2297473], abs=5e-8)
    assert get("cd4")["cd4"].matrix[0] == pytest.approx([682 / 740, 33 / 740, 25 / 740])


def test_the_row_sums_of_the_published_rates():
    # Tables rounded in the d-th place: a row of m entries is off by at most m/2 units of that place; here by one.
    for table in (published.CPG_ISLAND, published.CPG_BACKGROUND):
        assert np.array(table).sum(axis=1) == pytest.approx(1, abs=0.0011)
    ratings = np.array(published.SP_RATINGS)
    assert ratings.shape == (8, 8)
    assert ratings.sum(axis=1) == pytest.approx(100, abs=0.011)


def test_published_chains_are_labelled():
    assert get("cpg-islands")["island"].states == ("A", "C", "G", "T")
    # CpG: after C comes G far more often inside an island than outside.
    island, background = get("cpg-islands").chains.values()
    assert island.matrix[1, 2] > 3 * background.matrix[1, 2]


def test_default_is_absorbing_and_nothing_starts_there():
    chain = get("sp-ratings")["ratings"]
    assert chain.states[-1] == "D"
    assert chain.matrix[-1].tolist() == [0] * 7 + [1]
    assert chain.initial == pytest.approx([1 / 7] * 7 + [0])
    assert chain.stationary.tolist() == [0] * 7 + [1]


# ---------------------------------------------------------------- environments


def test_frozen_lake_by_hand():
    problem = get("frozen-lake", epsilon=0.2)
    assert problem.names == ("random", "left", "down", "right", "up")
    random, left = problem["random"], problem["left"]
    assert random.states == tuple(range(16))
    # From the start, cell 0, three of the four actions' three outcomes each: left, down, right, up slip sideways.
    # left: 0, 0 (up), 4; down: 4, 0, 1; right: 1, 4, 0; up: 0, 1, 0.
    assert random.matrix[0][[0, 1, 4]] == pytest.approx([6 / 12, 3 / 12, 3 / 12])
    assert left.matrix[0][[0, 1, 4]] == pytest.approx(np.array([2, 0, 1]) / 3 * 0.8 + np.array([6, 3, 3]) / 12 * 0.2)
    for end in (5, 7, 11, 12, 15):  # four holes and the goal: the episode starts again
        assert random.matrix[end].tolist() == [1] + [0] * 15
    assert random.initial.tolist() == [1] + [0] * 15


def test_frozen_lake_without_slipping_and_larger():
    dry = get("frozen-lake:slippery=false,epsilon=0.4")["right"]
    assert dry.matrix[0][[0, 1, 4]] == pytest.approx([0.2, 0.7, 0.1])
    assert get("frozen-lake:size=8").sizes == (64,) * 5


def test_cliff_walking_by_hand():
    problem = get("cliff-walking", epsilon=0.2)
    up = problem["up"]
    assert up.size == 38  # 48 cells less the ten of the cliff
    start = up.index_of(36)
    # From the start: up to 24; right is the cliff, down and left are walls: all three lead back.
    assert up.matrix[start, up.index_of(24)] == pytest.approx(0.85)
    assert up.matrix[start, start] == pytest.approx(0.15)
    goal = up.index_of(47)
    assert up.matrix[goal, start] == 1
    assert up.initial[start] == 1
    # Above the goal, down ends the episode.
    assert problem["down"].matrix[up.index_of(35), goal] == pytest.approx(0.85)


def test_the_actions_are_named_as_they_move():
    lake, cliff = get("frozen-lake:slippery=false,epsilon=0.01"), get("cliff-walking:epsilon=0.01")
    for problem, cell, width, actions in ((lake, 9, 4, FROZEN_LAKE_ACTIONS), (cliff, 17, 12, CLIFF_WALKING_ACTIONS)):
        moves = {"left": -1, "right": 1, "up": -width, "down": width}
        assert set(actions) == set(moves)
        for action in actions:
            chain = problem[action]
            assert chain.states[chain.matrix[chain.index_of(cell)].argmax()] == cell + moves[action]


@pytest.mark.parametrize("name", ["frozen-lake", "cliff-walking"])
def test_a_missing_extra_is_told(name, monkeypatch):
    for module in [module for module in sys.modules if module.partition(".")[0] == "gymnasium"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingExtraError, match=rf"problem {name} needs an optional dependency: .*gym"):
        get(name)


# ---------------------------------------------------------------- random families


@pytest.mark.parametrize("name", ["dirichlet", "reversible", "sparse"])
def test_families_are_functions_of_their_seed(name):
    assert get(name, seed=1) == get(name, seed=1)
    assert get(name, seed=1)["chain-1"] != get(name, seed=2)["chain-1"]
    few, many = get(name, chains=2, seed=3), get(name, chains=4, seed=3)
    assert few["chain-2"] == many["chain-2"]
    assert len(set(many.chains.values())) == 4


def test_families_are_what_they_say():
    assert all(chain.is_reversible for chain in get("reversible", states=7, seed=4).chains.values())
    assert not any(chain.is_reversible for chain in get("dirichlet").chains.values())
    for chain in get("sparse", states=30, exits_per_state=2, chains=10).chains.values():
        assert ((chain.matrix > 0).sum(axis=1) == 2).all()
        assert chain.is_irreducible
    peaked, flat = get("dirichlet", concentration=0.05), get("dirichlet", concentration=100.0)
    assert peaked.variability < 0.3 * flat.variability
    assert get("reversible", states=1).sizes == (1,) * 5


# ---------------------------------------------------------------- parameters and specifications


def test_parameters_can_be_given_in_either_way():
    problem = get("dirichlet:chains=2,states=3", concentration=0.5)
    assert problem == get("dirichlet", chains=2, states=3, concentration=0.5)
    assert problem.name == "dirichlet:chains=2,states=3,concentration=0.5"
    assert get(problem.name) == problem
    assert get("two-state:epsilons=0.5/0.25") == get("two-state", epsilons=(0.5, 0.25))
    assert get("two-state", epsilons=[0.5, 0.25]).name == "two-state:epsilons=0.5/0.25"
    assert get("frozen-lake", slippery=False).name == "frozen-lake:slippery=false"


BAD = {
    "unknown": ("gilbert-eliot", {}, r"unknown problem 'gilbert-eliot' \(did you mean gilbert-elliott\?\).*two-state"),
    "nothing near": ("zzz", {}, "unknown problem 'zzz': the catalogue has two-state, gilbert-elliott"),
    "no string": (3, {}, "a specification must be a string of the form .* not 3"),
    "empty": (" :seed=1", {}, "must begin with a name"),
    "no value": ("dirichlet:seed", {}, "must be given as key=value, separated by commas, not as 'seed' in"),
    "empty value": ("dirichlet:seed=", {}, "must be given as key=value"),
    "nothing": ("dirichlet:", {}, "must be given as key=value"),
    "twice": ("dirichlet:seed=1,seed=2", {}, "only once, but .* gives seed twice"),
    "in both ways": ("dirichlet:seed=1", {"seed": 1}, "only once, but seed is given twice"),
    "unknown parameter": (
        "dirichlet",
        {"size": 3},
        "no parameter 'size': it takes chains, states, concentration, seed",
    ),
    "no parameters": ("cd4:seed=1", {}, "problem cd4 has no parameter 'seed': it takes none"),
    "no chains": ("dirichlet:chains=0", {}, "chains .* must be a whole number ≥ 1, not 0"),
    "states": ("reversible:states=2.5", {}, "states .* must be a whole number ≥ 1, not 2.5"),
    "one state": ("unlike:states=1", {}, "states .* must be a whole number ≥ 2, not 1"),
    "too large": ("equal:chains=1000,states=1000", {}, "1000000000 probabilities, more than the 50000000"),
    "seed": ("sparse:seed=-1", {}, "seed .* must be a whole number ≥ 0, not -1"),
    "concentration": ("dirichlet:concentration=nan", {}, "concentration .* must be a finite number ≥ 0.05, not nan"),
    "exits": (
        "sparse:states=3,exits_per_state=4",
        {},
        "exits_per_state must be at most the number of states, 3, not 4",
    ),
    "one exit": ("sparse:exits_per_state=1", {}, "exits_per_state .* must be a whole number ≥ 2, not 1"),
    "epsilon": ("two-state:epsilons=0.5/1.5", {}, "epsilons .* must be a finite number > 0 and < 1, not 1.5"),
    "no epsilon": ("two-state", {"epsilons": []}, "epsilons .* at least one number, and it is empty"),
    "word": ("two-state:epsilons=small", {}, "epsilons .* must be a finite number .* not 'small'"),
    "alike": ("two-state:epsilons=0.5/0.5", {}, "epsilons must be unlike, one a chain, but 0.5 is given twice"),
    "pairs": ("gilbert-elliott:failure=0.1/0.2,recovery=0.3", {}, "as many, one of each a channel, not 2 and 1"),
    "noise": ("unlike:noise=1", {}, "noise .* > 0 and < 1, not 1"),
    "birth": ("birth-death:birth=0.8", {}, "0.8 and 0.3 sum to more than one"),
    "blocks": ("nearly-decomposable:blocks=1", {}, "blocks .* must be a whole number ≥ 2, not 1"),
    "size": ("frozen-lake:size=5", {}, r"size \(the lake's width\) must be 4 or 8, not 5"),
    "slippery": ("frozen-lake:slippery=1", {}, "slippery .* must be true or false, not 1"),
    "stray": ("cliff-walking:epsilon=0", {}, "epsilon .* > 0 and < 1, not 0"),
}


@pytest.mark.parametrize(("name", "parameters", "sentence"), BAD.values(), ids=BAD)
def test_bad_parameters_are_refused(name, parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        get(name, **parameters)


def test_specifications():
    text = " scout : power = 0.75 , block=1,on=true,off=false,weights=1/0.5, where=a/b,name=x=y "
    name, parameters = specs.parse(text)
    assert name == "scout"
    assert parameters == {
        "power": 0.75,
        "block": 1,
        "on": True,
        "off": False,
        "weights": (1, 0.5),
        "where": "a/b",
        "name": "x=y",
    }
    assert [type(value) for value in parameters.values()] == [float, int, bool, bool, tuple, str, str]
    assert specs.parse("uniform") == ("uniform", {})


WORDS = st.text("abcdefgh_-.", min_size=1, max_size=6)
NUMBERS = st.integers() | st.floats(allow_nan=False)
VALUES = st.one_of(NUMBERS, st.booleans(), WORDS, st.lists(NUMBERS, min_size=2, max_size=3).map(tuple))


@given(WORDS, st.dictionaries(WORDS, VALUES, max_size=3))
def test_a_composed_specification_parses_back(name, parameters):
    assert specs.parse(specs.compose(name, parameters)) == (name, parameters)
