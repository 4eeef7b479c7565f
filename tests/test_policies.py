"""Policies: their catalogue, the literal reference, and laws that hold for every one of them."""

import itertools
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import reference as paper
import reference_policies as rules
from count_strategies import count_tables
from engine_problems import PROBLEMS, UNLIKE
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis.strategies import booleans
from playing import Player, play

import chainscout as cs
from chainscout import policies, predictions
from chainscout.counts import MOST_STATES, MOST_TRANSITIONS
from chainscout.engine import Options, run, trace
from chainscout.errors import InputError
from chainscout.guarantees import beta, beta_unknown_horizon
from chainscout.policies import Policy, settings
from chainscout.random import Walk

ALL = [name for name in policies.names() if name != "static"] + ["static"]
POWERS = [f"scout:power={power}" for power in (1, 0.5, 0.6)]
LOSSES = ("ones", "stationary", "total-variation", "kullback-leibler", "chi-squared", "squared-hellinger")


def get(name, problem):
    """A policy for a problem; static shares need one weight a chain."""
    if name == "static":
        return policies.get("static", weights=tuple(range(1, len(problem) + 1)))
    return policies.get(name)


def paths(problem, replication=0):
    return [Walk(chain, k, replication=replication) for k, chain in enumerate(problem.chains.values())]


# -- the catalogue


def test_names():
    assert policies.names() == (
        "uniform", "oracle", "oracle-max", "static", "ba-mc", "ba-mc-tight", "gafs-max", "ch-as", "b-as", "bayes",
        "scout", "gini-ucb", "certifier",
    )  # fmt: skip
    assert policies.DEFAULT == "scout"


def test_a_policy_is_given_back_as_it_is():
    policy = policies.get("scout")
    assert policies.get(policy) is policy


def test_parameters_in_a_specification_and_by_name_are_the_same():
    one, other = policies.get("ba-mc:delta=0.01"), policies.get("ba-mc", delta=0.01)
    assert one.name == other.name == "ba-mc:delta=0.01"
    assert one.parameters == other.parameters == {"delta": 0.01}
    (first, *_) = settings((3, 3), 1000)
    assert one.prepare(first) == other.prepare(first) != policies.get("ba-mc").prepare(first)


def test_blocks_can_be_asked_of_every_policy():
    for name in ALL:
        extra = {"weights": (1, 2)} if name == "static" else {}
        assert policies.get(name, block=0.02, **extra).block == 0.02
        assert policies.get(name, block=0.02, **extra).facing(None).block == 0.02
    assert policies.get("gini-ucb").block == policies.get("certifier").block == 0.01
    assert policies.get("scout").block == 0.0


@pytest.mark.parametrize(
    ("specification", "words"),
    [
        ("scoot", "did you mean scout"),
        ("scout:pover=1", r"'pover' \(did you mean power\?\): it takes power, exploration, alpha, loss, block"),
        ("scout:power=0", "power"),
        ("scout:power=2000", "power .* must be a finite number > 0 and ≤ 10, not 2000"),
        ("scout:exploration=-1", "exploration"),
        ("scout:loss=l3", "loss"),
        ("scout:loss=ones,power=0.5", "power is for the loss 'squared' only"),
        ("scout:block=1", "block"),
        ("ba-mc:delta=2", "delta"),
        ("ba-mc:alpha=-1", "alpha"),
        ("bayes:alpha=0", "alpha"),
        ("gini-ucb:delta=0", "delta"),
        ("static:weights=0/1", "weights"),
        ("", "name"),
        (3, "string"),
    ],
)
def test_bad_specifications(specification, words):
    with pytest.raises(InputError, match=words):
        policies.get(specification)


def test_a_parameter_given_twice():
    with pytest.raises(InputError, match="delta is given twice"):
        policies.get("ba-mc:delta=0.1", delta=0.2)


def test_a_policy_object_takes_no_parameters():
    made = policies.get("ba-mc", delta=0.1)
    assert policies.get(made) is made
    with pytest.raises(InputError, match=r"'ba-mc:delta=0\.1' is a Policy already: it cannot be given delta, block"):
        policies.get(made, delta=0.01, block=0.1)


@pytest.mark.parametrize("engine", ["python", "cpu"])
def test_the_largest_power_is_finite_on_every_engine(engine):
    """Once 2,000 was too: Python overflowed, and compiled code went on with infinities."""
    loss, _ = run(UNLIKE, "scout:power=10", [200], range(4), Options(engine=engine))
    again, _ = run(UNLIKE, "scout:power=10", [200], range(4), Options(engine="python"))
    assert np.isfinite(loss).all()
    assert np.array_equal(loss, again)
    _, values = trace(UNLIKE, "scout:power=10", 200, options=Options(engine=engine))
    assert np.isfinite(values[2 * len(UNLIKE) :]).all()
    largest = policies.get("scout:power=10")
    assert math.isfinite(largest.index((float(MOST_STATES),) * 6, 1.0, (1.0, 2.0, 0.0, 0.0, 10.0, 1.0)))


def test_a_weight_too_large_for_the_power():
    with pytest.raises(InputError, match=r"a weight of 1e\+300 is too large for the policy 'scout:power=10'"):
        run(UNLIKE, "scout:power=10", [100], range(1), Options(engine="python", weights=[1e300] * len(UNLIKE)))


def test_what_cannot_be_a_policy():
    with pytest.raises(InputError, match="name"):
        Policy("", lambda s, t, c: 0.0, lambda r, n, q, c: ())
    with pytest.raises(InputError, match="either terms or summary"):
        Policy("mine", lambda s, t, c: 0.0)
    with pytest.raises(InputError, match=r"'mine': index takes \(sums, transitions, constants\), and .* has \(s, t\)"):
        Policy("mine", lambda s, t: 0.0, lambda r, n, q, c: ())
    with pytest.raises(InputError, match="finite"):
        Policy("mine", lambda s, t, c: 0.0, lambda r, n, q, c: (), lambda s: (math.inf,)).prepare(
            next(settings((2,), 10))
        )


def test_what_needs_a_budget_or_the_truth_says_so():
    for name in ("ch-as", "b-as", "ba-mc:alpha=1"):
        with pytest.raises(InputError, match="budget"):
            policies.get(name).facing(None).prepare(next(settings((2, 2), None)))
    for name in ("oracle", "oracle-max"):
        with pytest.raises(InputError, match="true matrices"):
            policies.get(name).prepare(next(settings((2, 2), 10)))
    with pytest.raises(InputError, match="one weight a chain"):
        policies.get("static:weights=1/2").prepare(next(settings((2, 2, 2), 10)))
    for name in ("ba-mc", "ba-mc-tight", "gafs-max", "bayes", "scout", "gini-ucb", "certifier", "uniform"):
        assert policies.get(name).facing(None).prepare(next(settings((2, 2), None))) is not None


# -- the literal reference (MATH §6): at every step the chosen chain has, to rounding, the reference's largest index


SUPPORT_FACTORS = {
    "scout:loss=kullback-leibler": 0.5,
    "scout:loss=chi-squared": 1.0,
    "scout:loss=squared-hellinger": 0.125,
}


def support(factor, k, N):
    return rules.scout_support(N, factor)


def reference_indices(name, problem, budget):
    """f(tables, t) → all chains' indices by the slow writing, for a problem of chains with at least two states."""
    matrices = [chain.matrix for chain in problem.chains.values()]
    chains, pairs = len(matrices), sum(len(P) ** 2 for P in matrices)
    level = beta(budget, 0.05, pairs)
    shares = predictions.shares(problem, "oracle-max")  # tests/test_predictions.py compares these with the reference
    each = {
        "uniform": lambda k, N: rules.uniform(N),
        "oracle": lambda k, N: rules.oracle(N, matrices[k]),
        "oracle-max": lambda k, N: rules.static(N, shares[k]),
        "static": lambda k, N: rules.static(N, k + 1.0),
        "ba-mc": lambda k, N: paper.index(N, level),
        "ba-mc-tight": lambda k, N: paper.index(N, level, paper.TIGHT_CONSTANTS),
        "ch-as": lambda k, N: rules.ch_as(N, budget),
        "b-as": lambda k, N: rules.b_as(N, budget),
        "bayes": lambda k, N: rules.bayes(N),
        "scout": lambda k, N: rules.scout(N),
        "gini-ucb": lambda k, N: rules.gini_ucb(N, chains, 0.05),
        "certifier": lambda k, N: rules.certifier(N, chains, 0.05),
        "scout:power=1": lambda k, N: rules.scout(N, 1.0),
        "scout:power=0.5": lambda k, N: rules.scout(N, 0.5),
        "scout:power=0.6": lambda k, N: rules.scout(N, 0.6),
        "ba-mc endless": lambda k, N: paper.index(N, beta_unknown_horizon(int(N.sum()), 0.05, pairs)),
        "scout:loss=stationary": lambda k, N: rules.scout(N, 1.0),
        "scout:loss=ones": lambda k, N: rules.scout_ones(N),
        "scout:loss=total-variation": lambda k, N: rules.scout_variation(N),
        **{name: partial(support, factor) for name, factor in SUPPORT_FACTORS.items()},
    }
    if name == "gafs-max":
        return rules.gafs_max
    return lambda tables, t: [each[name](k, N) for k, N in enumerate(tables)]


@pytest.mark.parametrize("problem", ["alike", "unlike", "nearly deterministic"])
@pytest.mark.parametrize("name", [*ALL, "ba-mc endless", *POWERS, *(f"scout:loss={loss}" for loss in LOSSES)])
def test_every_choice_is_the_references(name, problem):
    problem, budget = PROBLEMS[problem], 160
    policy = get(name.removesuffix(" endless"), problem)
    # Blocks off: the reference looks at its indices before every observation.
    policy = policies.get(policy.name.partition(":")[0], block=0, **policy.parameters)
    choices, values = trace(
        problem, policy, budget, options=Options(engine="python", horizon=not name.endswith("endless"))
    )
    indices = reference_indices(name, problem, budget)
    tables = [np.zeros((size, size), dtype=int) for size in problem.sizes]
    sources, last = paths(problem), [None] * len(problem)
    for t, chosen in enumerate(choices):
        empty = [k for k, N in enumerate(tables) if N.sum() == 0]
        if empty:
            assert chosen == empty[0]
            assert values[t] == math.inf
        else:
            expected = indices(tables, t)
            assert expected[chosen] >= max(expected) * (1 - 1e-9)
            if max(expected) < math.inf:
                assert values[t] == pytest.approx(expected[chosen], rel=1e-9)
        state = next(sources[chosen])
        if last[chosen] is not None:
            tables[chosen][last[chosen], state] += 1
        last[chosen] = state


# -- laws over every policy


@pytest.mark.parametrize(
    "name", [*ALL, "scout:block=0.1", "ba-mc:block=0.1", *(f"scout:loss={loss}" for loss in LOSSES)]
)
def test_the_engine_plays_by_the_contract(name):
    """The same choices, with indices equal to the last bit, as from the policy's functions alone."""
    policy = get(name, UNLIKE)
    weights = (1.0, 2.0, 0.5, 1.5, 3.0)
    played = play(policy, paths(UNLIKE), UNLIKE.sizes, 700, UNLIKE, weights)
    traced = trace(UNLIKE, policy, 700, options=Options(engine="python", weights=weights))
    assert played[0] == traced[0].tolist()
    assert played[1] == traced[1].tolist()


@pytest.mark.parametrize("name", ALL)
def test_relabelling_the_chains_permutes_the_choices(name):
    order = [3, 0, 4, 2, 1]
    names = UNLIKE.names
    relabelled = cs.Problem({names[k]: UNLIKE[names[k]] for k in order})
    policy, other = get(name, UNLIKE), get(name, relabelled)
    if name == "static":
        other = policies.get("static", weights=tuple(k + 1 for k in order))
    fixed = [list(itertools.islice(path, 1000)) for path in paths(UNLIKE)]
    # Ties go to the smallest number, so that equal indices are told apart by weights that no two chains share.
    weights = [math.sqrt(w) for w in (2, 3, 5, 7, 11)]
    one = play(policy, fixed, UNLIKE.sizes, 400, UNLIKE, weights)[0]
    two = play(other, [fixed[k] for k in order], relabelled.sizes, 400, relabelled, [weights[k] for k in order])[0]
    warm = 2 * len(UNLIKE)
    if name == "gafs-max":  # among equally sampled chains the smallest number is forced first
        assert np.abs(np.bincount(one) - np.bincount([order[k] for k in two])).max() <= 3
    else:
        assert one[warm:] == [order[k] for k in two][warm:]
    assert one[:warm] == two[:warm] == sorted([*range(5), *range(5)])


@pytest.mark.parametrize("name", ALL)
def test_asking_is_pure(name):
    policy = get(name, UNLIKE)
    player = Player(policy, next(settings(UNLIKE.sizes, 100, UNLIKE)))
    for state in itertools.islice(Walk(UNLIKE["chain-0"]), 30):
        player.observe(state)
        player.learn()
        before = player.index, player.sums
        assert player.transitions == 0 or player.value() == player.value() == player.index
        assert (player.index, player.sums) == before


@pytest.mark.parametrize("name", ALL)
def test_more_pending_means_less_urgent(name):
    policy = get(name, UNLIKE)
    player = Player(policy, next(settings(UNLIKE.sizes, 100, UNLIKE)))
    for state in itertools.islice(Walk(UNLIKE["chain-0"]), 30):
        player.observe(state)
    player.learn()
    values = [player.value(pending) for pending in range(5)]
    assert all(a > b for a, b in itertools.pairwise(values))


def test_one_state_and_deterministic_chains():
    problem = PROBLEMS["one state among others"]
    for name in ALL:
        choices, values = trace(problem, get(name, problem), 300, options=Options(engine="python"))
        assert not np.isnan(values).any()
        if name in ("scout", "oracle", "certifier", "gini-ucb"):  # there is nothing to learn about a chain of one state
            assert (choices == 0).sum() == 2


@pytest.mark.parametrize("name", ALL)
def test_aims(name):
    aim = get(name, UNLIKE).aim(UNLIKE)
    if name == "certifier":
        assert aim is None
        return
    assert aim.sum() == pytest.approx(1)
    weighted = get(name, UNLIKE).aim(UNLIKE, (1.0, 2.0, 1.0, 1.0, 1.0))
    power = 0.75 if name == "scout" else 1.0
    assert weighted[1] / weighted[0] == pytest.approx(2.0**power * aim[1] / aim[0])
    assert get(name, UNLIKE).aim(cs.Problem({"cycle": PROBLEMS["a cycle among others"]["cycle"]})) is None


def test_no_chain_starves():
    """Every chain that is not deterministic is looked at again and again, whatever its first observations were."""
    for name in ("scout", *(f"scout:loss={loss}" for loss in LOSSES), "bayes", "ba-mc", "gafs-max"):
        for seed in range(3):
            choices, _ = trace(PROBLEMS["two states"], name, 1200, options=Options(seed=seed, engine="python"))
            assert np.bincount(choices, minlength=6).min() >= 10, name


# -- open states


def index_of(policy, table, open_states, chains=2, budget=1_000):
    """A chain's index after these counts: the contract of policies/policy.py, and nothing else."""
    size = len(table)
    constants = policy.prepare(policies.Setting(0, size, chains, size * size, budget, open=open_states))
    exits, squares = [float(sum(row)) for row in table], [float(sum(int(n) ** 2 for n in row)) for row in table]
    if policy.summary is not None:
        sums = policy.summary(exits, squares, size, constants, [0.0] * (2 * size), [0] * (2 * size))
    else:
        left = [x for x in range(size) if exits[x] > 0]
        rows = [[float(n) for n in table[x]] for x in left]
        terms = [
            policy.row_terms(row, size, exits[x], squares[x], constants) for x, row in zip(left, rows, strict=True)
        ]
        sums = tuple(map(sum, zip(*terms, strict=True)))
    return policy.index(sums, float(sum(exits)), constants)


open_index, closed_index = partial(index_of, open_states=True), partial(index_of, open_states=False)


#: Every built-in rule that takes open states, and every loss of scout.
OPEN_RULES = [name for name in ALL if name not in ("oracle", "oracle-max", "ba-mc", "ba-mc-tight")]
OPEN_RULES += [*POWERS, *(f"scout:loss={loss}" for loss in LOSSES)]

#: One successor a state, as long as counts can be counted: the chains that α = 0 would starve.
DETERMINISTIC = [[[1]], [[MOST_TRANSITIONS]], [[0, 1], [0, 0]], [[0, 40], [39, 0]], [[0, 7, 0], [0, 0, 7], [6, 0, 0]]]


def assert_positive(name, table):
    policy = policies.get("static", weights=(1, 2)) if name == "static" else policies.get(name)
    value = open_index(policy, table)
    # A rule with forced selection may have an index of 0: √t + 1 passes every T, and the chain is observed again.
    assert value > 0 or (policy.floor is not None and value == 0), (name, table)
    assert math.isfinite(value)


@pytest.mark.parametrize("name", OPEN_RULES)
def test_no_index_of_an_open_chain_is_ever_zero(name):
    for table in DETERMINISTIC:
        assert_positive(name, table)


@pytest.mark.parametrize("name", OPEN_RULES)
@settings_of_hypothesis(max_examples=50, deadline=None)
@given(table=count_tables(largest=10**6))
def test_no_counts_of_an_open_chain_give_an_index_of_zero(name, table):
    assert_positive(name, table.tolist())


def test_every_rule_says_whether_it_takes_open_states():
    for name in ("ba-mc", "ba-mc-tight"):
        with pytest.raises(InputError, match="cannot have open states"):
            policies.get(name).prepare(policies.Setting(0, 2, 2, 8, 100, open=True))
    assert {name.partition(":")[0] for name in OPEN_RULES} | {"oracle", "oracle-max", "ba-mc", "ba-mc-tight"} == set(
        policies.names()
    )


@settings_of_hypothesis(max_examples=50, deadline=None)
@given(table=count_tables(largest=10**6))
def test_indices_of_open_chains_are_the_references(table):
    expected = {
        "bayes": rules.bayes(table, open_states=True),
        "scout": rules.scout(table, open_states=True),
        "scout:loss=stationary": rules.scout(table, 1.0, open_states=True),
        "scout:loss=ones": rules.scout_ones(table, open_states=True),
        "scout:loss=total-variation": rules.scout_variation(table, open_states=True),
        **{name: rules.scout_support(table, factor, open_states=True) for name, factor in SUPPORT_FACTORS.items()},
    }
    for name, value in expected.items():
        assert open_index(policies.get(name), table.tolist()) == pytest.approx(value, rel=1e-9, abs=1e-15), name


@pytest.mark.parametrize("name", [name for name in OPEN_RULES if name != "static"])
def test_no_open_chain_starves(name):
    """The chains stay where they are nine times in ten: a first transition shows one successor, and G is not 0."""
    chains = {f"sticky-{k}": cs.MarkovChain([[0.9, 0.1], [0.1, 0.9]]) for k in range(3)}
    chains["fair"] = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    with cs.learn(chains, 600, open_states=True, policy=policies.get(name), progress=False) as study:
        observations = list(study.allocation().values())
    assert min(observations) >= 10
    assert sum(observations) == 600


def test_scout_explores_as_the_documentation_says():
    """The printed bounds, on runs: on the index of the most sampled chain, and on T_k of all others."""
    text = (Path(__file__).resolve().parent.parent / "docs" / "policies.md").read_text(encoding="utf-8")
    assert r"was at most $((S-1)^p + (S-1)/12)K/(n-2K)$, because" in " ".join(text.split())
    assert r"$\min(\text{cap}, 4c/T_k)^p/T_k$, with $T_k$ at the end" in " ".join(text.split())
    for power in (0.5, 0.75, 1.0):
        for budget in (60, 400, 3_000):
            choices, values = trace(UNLIKE, f"scout:power={power}", budget, options=Options(engine="python"))
            pulls = np.bincount(choices)
            most = int(pulls.argmax())
            index = values[np.flatnonzero(choices == most)[-1]]
            number = len(UNLIKE)
            assert pulls[most] - 1 >= (budget - number) / number
            room = max(UNLIKE.sizes) - 1
            ceiling = (room**power + room / 12) * number / (budget - 2 * number)
            assert index <= ceiling
            for size, transitions in zip(UNLIKE.sizes, pulls - 1, strict=True):
                assert min(1 - 1 / size, 8.0 / transitions) ** power / transitions <= ceiling


def test_the_bound_on_scouts_largest_index_needs_both_first_observations():
    """Chains that alternate have left both states at T = 2. There μ̃ = S − 1 = 1 and d = 2·(1/2)·(1/3)/16.

    So the index is (1 + 1/48)/2 = (1 + 1/48)·K/(n − 2K) at n = 4K. With K/(n − K) the bound (1 + 1/12)/3 would be
    below the index.
    """
    alternating = cs.Problem({f"chain-{k}": cs.MarkovChain([[0.0, 1.0], [1.0, 0.0]]) for k in range(3)})
    choices, values = trace(alternating, "scout", 12, options=Options(engine="python"))
    assert np.bincount(choices).tolist() == [4, 4, 4]
    for k in range(3):
        last = values[np.flatnonzero(choices == k)[-1]]
        assert last == pytest.approx((1 + 1 / 48) * 3 / (12 - 2 * 3), rel=1e-12)
        assert last > (1 + 1 / 12) * 3 / (12 - 3)


@settings_of_hypothesis(max_examples=200, deadline=None)
@given(table=count_tables(largest=10**6), open_states=booleans())
def test_scouts_bonus_is_bounded_below_by_t_alone_and_above_by_the_number_of_states(table, open_states):
    """The two halves of the proof in docs/policies.md: T_j → ∞, and no more for many states seen once."""
    size, total = len(table), int(table.sum())
    rows = int((table.sum(axis=1) > 0).sum())
    least = 1.0 if open_states else 1 - 1 / size
    index = (open_index if open_states else closed_index)(policies.get("scout:power=1"), table.tolist())
    smoothing = sum((n - 2 / 3) * (1 / (3 * n + 1)) ** 2 for n in map(int, table.sum(axis=1)) if n)
    optimistic = index * total - least * smoothing
    gini = rules.gini_frequencies(table)
    assert optimistic >= min(least, 8 / total) * (1 - 1e-9)
    if total >= 20 and max(gini.values()) == 0.0:
        assert optimistic <= 2 * (1 / 8 + 4 / rows) + 1e-9
    assert 0 <= least * smoothing <= least * rows / 12


def test_scouts_terms_fade():
    """Far on, the index is (ΣG)^{3/4}/T: the target does not depend on bonus and smoothing."""
    counts = np.full((4, 4), 10**9)
    assert closed_index(policies.get("scout"), counts.tolist()) == pytest.approx(3**0.75 / 1.6e10, rel=1e-8)


def test_the_optimism_of_gini_ucb_in_a_line():
    """G − Ĝ = −2(p̃ − u)·d − ‖d‖², ‖p̃ − u‖² = cap − Ĝ, and Cauchy–Schwarz over rows (docs/policies.md)."""
    generator, size = np.random.default_rng(8), 4
    truth, seen = generator.dirichlet([0.3] * size, size), generator.dirichlet([0.3] * size, size)
    exits, d = generator.integers(1, 50, size), truth - seen
    gini, estimate = (1 - (rows**2).sum(axis=1) for rows in (truth, seen))
    assert gini - estimate == pytest.approx(-2 * ((seen - 1 / size) * d).sum(axis=1) - (d**2).sum(axis=1), abs=1e-14)
    assert ((seen - 1 / size) ** 2).sum(axis=1) == pytest.approx(1 - 1 / size - estimate, abs=1e-14)
    excess = (exits * (d**2).sum(axis=1)).sum()
    room = ((1 - 1 / size - estimate) / exits).sum()
    assert gini.sum() <= estimate.sum() + 2 * math.sqrt(excess * room)


def test_the_width_of_a_rule_takes_no_room():
    """A thousand million states are allowed, and rules are looked at before the first observation."""
    size = MOST_STATES
    for name in ALL:
        if name not in ("oracle", "oracle-max", "static"):
            policy = policies.get(name)
            constants = policy.prepare(policies.Setting(0, size, 1, size * size, 1_000))
            assert policy.width(size, constants) >= 1
    own = Policy("own", lambda s, t, c: s[0] / t, lambda row, n, q, c: (row[0], row[len(row) - 1]))
    assert own.width(size, ()) == 2


@pytest.mark.parametrize("given", [0.5, [0.5], None, ("half",)])
def test_terms_that_are_no_tuple_are_refused_by_name(given):
    """In a study and in an experiment, before the first observation."""
    rule = Policy("slip", index=lambda sums, t, _: sums[0] / t, terms=lambda *_: given)
    words = r"terms of the policy 'slip' must return a tuple of numbers, as \(x,\) for one, not "
    with pytest.raises(InputError, match=words):
        cs.Study.create(None, {"a": 2}, policy=rule)
    for engine in ("python", "cpu"):
        with pytest.raises(InputError, match=words):
            cs.compare(cs.problems.get("unlike"), [rule], budgets=[30], replications=2, engine=engine)


def test_a_rule_is_tried_on_as_many_states_as_there_are() -> None:
    """It may look at the last of a row, or at a second state."""
    last = Policy("last", lambda sums, T, c: sums[0] / T, lambda row, exits, squares, c: (row[-1] + exits,))
    second = Policy(
        "second",
        lambda sums, T, c: sums[0] / T,
        summary=lambda exits, squares, size, c, reals, wholes: (exits[1] / (size - 1),),
    )
    for rule in (last, second):
        _, pulls = run(cs.problems.get("unlike"), rule, [60], range(4), Options(seed=0, engine="python"))
        assert (pulls.sum(axis=2) == 60).all()


@pytest.mark.parametrize("what", ["terms", "summary"])
def test_an_exception_of_a_rule_names_the_policy(what: str) -> None:
    mine = cs.Policy("mine", lambda sums, transitions, constants: 1.0, **{what: lambda *exits: (exits[9],)})
    with pytest.raises(IndexError) as caught:
        cs.compare("unlike", [mine], budgets=[10], replications=1)
    assert caught.value.__notes__ == [f"The function {what} of the policy 'mine' raised this, for a state left once."]
