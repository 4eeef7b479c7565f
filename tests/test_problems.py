"""A problem's quantities: solved by hand, against the reference, and as laws; and what is refused."""

import copy
import math
import pickle

import numpy as np
import pytest
import reference as paper
from hypothesis import given, settings
from hypothesis import strategies as st

from chainscout import MarkovChain
from chainscout.errors import InputError, NotErgodicError
from chainscout.problems import Problem, get
from chainscout.problems.cutoff import suffices

CHANNEL = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["good", "bad"])  # π = (.8, .2), second eigenvalue 1/2
COIN = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
WHEEL = MarkovChain([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])  # not reversible, π uniform
POINT = MarkovChain([[1.0]])
FLIP = MarkovChain([[0.0, 1.0], [1.0, 0.0]])
PAIR = Problem({"channel": CHANNEL, "coin": COIN}, "pair", "two chains", "this file")


def matrices(problem):
    return [chain.matrix for chain in problem.chains.values()]


# ---------------------------------------------------------------- what was given


def test_a_problem_is_an_ordered_mapping_of_its_chains():
    assert PAIR.names == tuple(PAIR) == ("channel", "coin")
    assert (len(PAIR), PAIR.sizes, PAIR["coin"]) == (2, (2, 2), COIN)
    assert "coin" in PAIR
    assert "north" not in PAIR
    assert (PAIR.name, PAIR.description, PAIR.source) == ("pair", "two chains", "this file")
    assert repr(PAIR) == "Problem('pair', 2 chains: ['channel', 'coin'])"


def test_a_problem_does_not_change():
    given_chains = {"channel": CHANNEL}
    problem = Problem(given_chains)
    given_chains["coin"] = COIN
    assert problem.names == ("channel",)
    with pytest.raises(TypeError):
        problem.chains["coin"] = COIN
    with pytest.raises(AttributeError, match="does not change"):
        problem.name = "x"
    with pytest.raises(AttributeError, match="does not change"):
        del problem.name
    with pytest.raises(ValueError, match="read-only"):
        problem.allocation[0] = 1.0


def test_equality_covers_everything_and_the_order():
    assert Problem({"channel": CHANNEL, "coin": COIN}, "pair", "two chains", "this file") == PAIR
    assert hash(pickle.loads(pickle.dumps(PAIR))) == hash(copy.deepcopy(PAIR)) == hash(PAIR)
    assert pickle.loads(pickle.dumps(PAIR)) == PAIR
    plain = Problem({"channel": CHANNEL, "coin": COIN})
    others = [PAIR, Problem({"coin": COIN, "channel": CHANNEL}), Problem({"channel": CHANNEL}), {"channel": CHANNEL}]
    assert all(plain != other for other in others)


BAD = {
    "no mapping": (([CHANNEL],), r"chains must be a mapping .* not \[MarkovChain"),
    "none": (({},), "at least one chain, and none was given"),
    "empty name": (({"": COIN},), "name must be a non-empty string, not ''"),
    "number as name": (({1: COIN},), "name must be a non-empty string, not 1"),
    "matrix for chain": (({"a": [[1.0]]},), r"chain 'a' is \[\[1.0\]\]"),
    "name": (({"a": COIN}, 3), "name of a problem must be a string, not 3"),
    "description": (({"a": COIN}, "", None), "description of a problem must be a string, not None"),
    "source": (({"a": COIN}, "", "", b"x"), "source of a problem must be a string, not b'x'"),
}


@pytest.mark.parametrize(("arguments", "sentence"), BAD.values(), ids=BAD)
def test_bad_arguments_are_refused(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        Problem(*arguments)


@pytest.mark.parametrize("name", ["north", 3, []])
def test_an_unknown_chain_is_told_with_the_known_ones(name):
    with pytest.raises(InputError, match=r"unknown chain .*: the chains are \['channel', 'coin'\]"):
        PAIR[name]


# ---------------------------------------------------------------- Λ, η, Λ/n, C₀


def test_quantities_by_hand():
    # G of the channel: 2·.9·.1 + 2·.4·.6 = .66; of the coin 1/2 + 1/2. H: 1/.8 + 1/.2 = 6.25, and 4.
    assert PAIR.variability == pytest.approx(1.66, rel=1e-14)
    assert PAIR.allocation == pytest.approx([0.66 / 1.66, 1 / 1.66], rel=1e-14)
    assert PAIR.optimal_loss(1_000) == pytest.approx(1.66e-3, rel=1e-14)
    second = max(2.4 * math.sqrt(2 * 6.25 * 1.66) * 1.66 / 0.66, 2.4 * math.sqrt(2 * 4 * 1.66) * 1.66)
    assert PAIR.excess_constant == pytest.approx(150 * 2 * math.sqrt(2 * 1.66 * 6.25) + second, rel=1e-13)


@pytest.mark.parametrize("name", ["dirichlet", "reversible", "cpg-islands", "unlike"])
def test_quantities_against_the_reference(name):
    problem = get(name)
    assert problem.variability == pytest.approx(paper.total_variability(matrices(problem)), rel=1e-12)
    assert problem.allocation == pytest.approx(paper.allocation(matrices(problem)), rel=1e-12)
    assert problem.excess_constant == pytest.approx(paper.excess_constant_appendix(matrices(problem)), rel=1e-9)
    assert problem.cutoff_budget(0.05) == pytest.approx(paper.cutoff_budget(matrices(problem), 0.05), rel=1e-7)


def test_a_deterministic_chain_has_no_share():
    problem = Problem({"coin": COIN, "point": POINT})
    assert problem.allocation == pytest.approx([1.0, 0.0])
    assert problem.excess_constant == math.inf
    assert problem.cutoff_budget(0.1) < problem.cutoff_budget(0.1, corrected=True) < math.inf


def test_deterministic_chains_alone_have_no_allocation():
    problem = Problem({"flip": FLIP, "point": POINT})
    assert problem.variability == problem.optimal_loss(10) == 0
    for quantity in ("allocation", "excess_constant"):
        with pytest.raises(InputError, match="all deterministic has no optimal allocation"):
            getattr(problem, quantity)


@pytest.mark.parametrize("budget", [0, -1, 2.5, "many", None, math.nan, math.inf, True])
def test_a_bad_budget_is_refused(budget):
    with pytest.raises(InputError, match=r"budget \(the number of observations\) must be a whole number ≥ 1, not"):
        PAIR.optimal_loss(budget)


def test_what_a_chain_does_not_have_is_told_with_its_name():
    problem = Problem({"coin": COIN, "stuck": MarkovChain([[1.0, 0.0], [0.5, 0.5]])})
    with pytest.raises(NotErgodicError, match="chain 'stuck': only an irreducible chain"):
        _ = problem.excess_constant
    with pytest.raises(NotErgodicError, match="chain 'stuck' is not ergodic"):
        problem.cutoff_budget(0.1)


def rows(size):
    weights = st.lists(st.floats(0.01, 1), min_size=size, max_size=size)
    return weights.map(lambda row: np.array(row) / sum(row))


@st.composite
def problems(draw):
    chains = {}
    for name in draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)):
        size = draw(st.integers(2, 4))
        chains[name] = MarkovChain([draw(rows(size)) for _ in range(size)])
    return Problem(chains)


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_permuting_chains_permutes_the_allocation(problem, random):
    order = list(problem)
    random.shuffle(order)
    shuffled = Problem({name: problem[name] for name in order})
    shares = dict(zip(problem, problem.allocation, strict=True))
    assert dict(zip(shuffled, shuffled.allocation, strict=True)) == shares
    assert shuffled.variability == problem.variability
    assert sum(shares.values()) == pytest.approx(1, rel=1e-12)
    assert shuffled.excess_constant == pytest.approx(problem.excess_constant, rel=1e-12)
    assert shuffled.cutoff_budget(0.1) == problem.cutoff_budget(0.1)


@given(problems(), st.integers(1, 10**6))
@settings(max_examples=30, deadline=None)
def test_relabelling_states_changes_nothing(problem, budget):
    back = Problem({name: MarkovChain(chain.matrix[::-1, ::-1]) for name, chain in problem.chains.items()})
    assert back.optimal_loss(budget) == pytest.approx(problem.optimal_loss(budget), rel=1e-12)
    assert back.excess_constant == pytest.approx(problem.excess_constant, rel=1e-9)


# ---------------------------------------------------------------- the cut-off budget


def test_the_stated_cutoff_by_hand():
    # γ_ps = 1 − (1/2)² = .75, π_min = .2: 300/.15 = 2000, and log((2/.1)·√5).
    problem = Problem({"channel": CHANNEL})
    assert problem.cutoff_budget(0.1) == pytest.approx((2000 * math.log(20 * math.sqrt(5))) ** 2, rel=1e-12)


def margin(problem, delta, n, chain, factor, gap, smallest):
    """T_k's lower bound less A·ε/π_min, written out."""
    K, S = len(problem), max(problem.sizes)
    pulls = math.sqrt(28 * chain.size * (n - 2 * K) / (44 * K * S**2)) - 1 / 3
    epsilon = math.log(sum(problem.sizes) * n * math.sqrt(2 / smallest) / delta) / gap
    return pulls - factor * epsilon / smallest


def test_the_corrected_cutoff_satisfies_its_inequality_and_nothing_less_does():
    problem = Problem({"channel": CHANNEL, "wheel": WHEEL})
    assert CHANNEL.is_reversible
    assert not WHEEL.is_reversible
    cutoff = problem.cutoff_budget(0.1, corrected=True)
    assert cutoff == int(cutoff) > problem.cutoff_budget(0.1)

    def least(n):
        of_channel = margin(problem, 0.1, n, CHANNEL, 96, 0.5, 0.2)
        of_wheel = margin(problem, 0.1, n, WHEEL, 192, WHEEL.pseudo_spectral_gap, 1 / 3)
        return min(of_channel, of_wheel)

    # The bound grows by about 1e-6 a step here, the two writings agree to 1e-9.
    assert least(int(cutoff) + 1) >= 0 > least(int(cutoff) - 1)
    assert suffices(problem, 0.1, int(cutoff))
    assert not suffices(problem, 0.1, int(cutoff) - 1)


def test_a_chain_that_is_not_reversible_sets_the_corrected_cutoff_with_192():
    """The wheel alone, and beside a coin that asks for less: 191 would allow a smaller budget, 193 none so small."""
    gap = WHEEL.pseudo_spectral_gap
    for problem in (Problem({"wheel": WHEEL}), Problem({"wheel": WHEEL, "coin": COIN})):
        cutoff = int(problem.cutoff_budget(0.1, corrected=True))
        of_wheel = [margin(problem, 0.1, cutoff, WHEEL, factor, gap, 1 / 3) for factor in (191, 192, 193)]
        assert of_wheel[0] > 1 > of_wheel[1] >= 0 > of_wheel[2]
        assert margin(problem, 0.1, cutoff - 1, WHEEL, 192, gap, 1 / 3) < 0
        assert margin(problem, 0.1, cutoff, COIN, 96, 1.0, 1 / 2) > 1 or len(problem) == 1
    # 192 is what Paulin's second inequality needs: half of π is left, and with 190 it is not (docs/errata.md).
    slack = 1 + 1 / (192 * math.log(2) / 0.5)
    assert math.sqrt(16 * slack / 192) + 40 / 192 < 0.5 < math.sqrt(16 / 190) + 40 / 190


@given(problems(), st.sampled_from([0.001, 0.05, 0.5]))
@settings(max_examples=20, deadline=None)
def test_the_corrected_cutoff_is_larger_and_minimal(problem, delta):
    cutoff = problem.cutoff_budget(delta, corrected=True)
    assert cutoff > problem.cutoff_budget(delta)
    # Beyond 2⁵³ neighbouring budgets are equal as doubles.
    step = max(1, int(cutoff * 1e-12))
    assert suffices(problem, delta, int(cutoff) + step)
    assert not suffices(problem, delta, int(cutoff) - step)
    assert suffices(problem, delta, 10 * int(cutoff))


def test_a_smaller_delta_and_slower_mixing_need_more():
    slow = Problem({"channel": MarkovChain([[0.99, 0.01], [0.04, 0.96]])})
    fast = Problem({"channel": CHANNEL})
    for corrected in (False, True):
        assert fast.cutoff_budget(0.1, corrected) < fast.cutoff_budget(0.01, corrected)
        assert fast.cutoff_budget(0.1, corrected) < slow.cutoff_budget(0.1, corrected)


def test_a_gap_too_small_for_a_double_makes_the_cutoff_infinite():
    # 1 − ε rounds to 1 when ε = 1e-17: the chain is ergodic, its computed gap is zero.
    stuck = Problem({"stuck": MarkovChain([[1 - 1e-17, 1e-17], [1e-17, 1 - 1e-17]])})
    assert stuck["stuck"].is_ergodic
    assert stuck.cutoff_budget(0.1) == stuck.cutoff_budget(0.1, corrected=True) == math.inf


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan, math.inf, "small", None])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match=r"delta .* must be a finite number > 0 and ≤ 0.5, not"):
        PAIR.cutoff_budget(delta)


def test_a_periodic_chain_has_no_cutoff():
    for corrected in (False, True):
        with pytest.raises(NotErgodicError, match="chain 'flip' is not ergodic"):
            Problem({"coin": COIN, "flip": FLIP}).cutoff_budget(0.1, corrected)
