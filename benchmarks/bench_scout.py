"""scout beside taking turns and beside the oracle: 40 named problems and 24 random ones, all fixed beforehand.

``python benchmarks/bench_scout.py`` writes both tables. Every policy sees the same paths. So the interval of a ratio
comes from paired replications (the delta method of ``chainscout.experiment.statistics``). A cell has the ratio of
version 1 of scout, an arrow, the ratio of the present version, and the upper end of its 95 % interval in brackets.

*Named problems.* E[max L] of scout over uniform's. The upper end of the 95 % interval should be at most 1.10. Twelve
problems are a deterministic cycle beside fair coins. A rule that gives every row seen for the first time a full bonus
spends its budget on the cycle. The others are near to it: uneven coins, cycles with noise, stars with leaves that are
seen rarely, long lines that seldom fall back, random walks, sparse and dense chains, two cycles, two of the catalogue.

*Random problems.* Sixteen of chains that differ in size and variability: E[max L] over the oracle's, as a geometric
mean, should be at most 0.90 at n/K ≥ 100. Eight of chains that are alike, in the shapes of the other benchmarks: there
the oracle, uniform and scout give nearly the same shares, and the ratio should be one. Two of large dense chains were
added while the rule was made. They show its price: a dense chain that does not repeat a state soon looks like a cycle.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from recording import record

import chainscout as cs
from chainscout.engine import Options, run
from chainscout.experiment.statistics import Statistic, mean_largest
from chainscout.policies import Policy, Setting
from chainscout.rows import smoothed_gini

COMMAND = "python benchmarks/bench_scout.py"
PER_CHAIN = (20, 100, 1_000)
REPLICATIONS = 2_000
SEED = 2_511


# -- version 1, for comparison: every state has a bonus of its own


def terms_before(row, exits, squares, c):
    """min(1 − 1/S, Ĝ + 2/N)."""
    return (min(c[0], smoothed_gini(exits, squares, c[1], 1 / 3) + 2 / exits),)


def index_before(sums, transitions, c):
    """μ̃^{3/4}/T."""
    root = math.sqrt(sums[0])
    return root * math.sqrt(root) / transitions


def constants_before(setting: Setting) -> tuple[float, ...]:
    return 1 - 1 / setting.size, 1 / (3 * setting.size)


BEFORE = Policy("version 1", index_before, terms_before, constants_before)


# -- chains


def cycle(states: int, noise: float = 0.0) -> cs.MarkovChain:
    """0 → 1 → … → 0. With probability ``noise`` the next state is uniform."""
    return cs.MarkovChain((1 - noise) * np.roll(np.eye(states), 1, axis=1) + noise / states)


def coin(bias: float = 0.5) -> cs.MarkovChain:
    """Independent draws: 1 with probability ``bias``."""
    return cs.MarkovChain([[1 - bias, bias], [1 - bias, bias]])


def star(leaves: int) -> cs.MarkovChain:
    """From the hub to leaf j with probability ∝ 1/j, and back to the hub with certainty."""
    weights = 1 / np.arange(1, leaves + 1)
    matrix = np.zeros((leaves + 1, leaves + 1))
    matrix[0, 1:], matrix[1:, 0] = weights / weights.sum(), 1
    return cs.MarkovChain(matrix)


def line(states: int, fall: float) -> cs.MarkovChain:
    """One step forward, and back to 0 with probability ``fall``, from the end with certainty."""
    matrix = (1 - fall) * np.eye(states, k=1)
    matrix[:, 0] += fall
    matrix[-1] = np.eye(states)[0]
    return cs.MarkovChain(matrix)


def walk(states: int) -> cs.MarkovChain:
    """A random walk: 0.3 up, 0.3 down, otherwise it stays."""
    matrix = 0.3 * (np.eye(states, k=1) + np.eye(states, k=-1))
    return cs.MarkovChain(matrix + np.diag(1 - matrix.sum(axis=1)))


def drawn(family: str, states: int, seed: int) -> cs.MarkovChain:
    """One chain of a random family of the catalogue."""
    return cs.problems.get(family, chains=1, states=states, seed=seed)["chain-1"]


# -- problems


def beside(chain: cs.MarkovChain, *biases: float) -> cs.Problem:
    """A chain beside coins."""
    return cs.Problem({"chain": chain} | {f"coin-{k}": coin(bias) for k, bias in enumerate(biases, 1)})


def named() -> dict[str, cs.Problem]:
    """The 40 problems."""
    found = {
        f"cycle of {states}, {coins} fair": beside(cycle(states), *[0.5] * coins)
        for states in (8, 30, 100, 300)
        for coins in (1, 2, 3)
    }
    for states in (8, 30, 100, 300):
        found[f"cycle of {states}, coins 0.3 and 0.1"] = beside(cycle(states), 0.3, 0.1)
        found[f"cycle of {states}, coin 0.1"] = beside(cycle(states), 0.1)
    for states in (30, 100):
        for noise in (0.01, 0.1):
            found[f"cycle of {states}, noise {noise}, 2 fair"] = beside(cycle(states, noise), 0.5, 0.5)
    for leaves in (20, 100, 300):
        found[f"star of {leaves}, 2 fair"] = beside(star(leaves), 0.5, 0.5)
    for states in (30, 100, 300):
        found[f"line of {states}, 2 fair"] = beside(line(states, 0.02), 0.5, 0.5)
    for states in (20, 100):
        found[f"walk of {states}, 2 fair"] = beside(walk(states), 0.5, 0.5)
    for states in (30, 100):
        found[f"sparse of {states}, 2 fair"] = beside(drawn("sparse", states, seed=25), 0.5, 0.5)
    for states in (10, 50):
        found[f"dirichlet of {states}, 2 fair"] = beside(drawn("dirichlet", states, seed=25), 0.5, 0.5)
    found["cycles of 30 and 100, 1 fair"] = cs.Problem({"a": cycle(30), "b": cycle(100), "coin": coin()})
    found["cycle of 100 and dirichlet of 10"] = cs.Problem({"a": cycle(100), "b": drawn("dirichlet", 10, seed=26)})
    return found | {name: cs.problems.get(name) for name in ("gilbert-elliott", "unlike")}


def unlike(chains: int, seed: int) -> cs.Problem:
    """Chains of 2 to 10 states with Dirichlet rows, from nearly deterministic ones to even ones."""
    generator = np.random.default_rng([seed, chains])
    found = {}
    for k in range(chains):
        size = int(generator.integers(2, 11))
        concentration = math.exp(generator.uniform(math.log(0.1), math.log(2)))
        found[f"chain-{k + 1}"] = cs.MarkovChain(generator.dirichlet(np.full(size, concentration), size))
    return cs.Problem(found)


def drawn_unlike() -> dict[str, cs.Problem]:
    """The 16 random problems of chains that differ in size and variability."""
    return {f"{chains} unlike chains, seed {seed}": unlike(chains, seed) for chains in (10, 20) for seed in range(8)}


#: Random problems of other benchmarks. Their chains are alike, so nearly all rules are alike.
ALIKE = (
    *(f"dirichlet:chains=5,states=5,concentration={shape},seed={seed}" for shape in (1, 0.2) for seed in (0, 1)),
    "reversible:chains=5,states=5,concentration=0.5,seed=0",
    "sparse:chains=5,states=20,seed=0",
    "dirichlet:chains=50,states=10,seed=0",
    "dirichlet:chains=5,states=50,seed=0",
)

LARGE = ("dirichlet:chains=5,states=100,seed=0", "dirichlet:chains=3,states=200,seed=0")

#: Other bonuses, on problems of the same kinds with other sizes and seeds. The last column is E[max L] over uniform's.
TRIED = (
    ("Σ1/N times surprises ΣN·Ĝ over T", "the hub of a star lends its surprises to all leaves", "star, 3.3"),
    ("c·(1 + …)·mean(1/N) alone, no d", "no second pass through a long cycle", "cycle, n/K = 1,000, 2.0"),
    ("d in full for states left once", "a cycle longer than the budget takes too much", "cycle, n/K = 20, 1.2 to 1.5"),
    ("nothing in d for states left once", "no end of a cycle a little shorter than n/K", "cycle, dense chain, 3.2"),
    ("bonus 8/S₊ of the mean and no more", "the same", "cycle, dense chain, 1.5"),
    ("neither g nor c/2 below T = 20", "dense chains stop before a state comes again", "5 dense chains of 50, 1.6"),
    ("c/2 below T = 24", "a cycle takes more than its share of n/K = 20", "two cycles and a coin, 1.4"),
    ("3/4 in d for states left once until T = 4√S", "mends 3 dense chains of 200, costs at n/K = 20", "cycle, 1.2"),
)  # fmt: skip


# -- measurement


def mean_losses(
    problem: cs.Problem, policy: str | cs.Policy, replications: int = REPLICATIONS, seed: int = SEED
) -> list[Statistic]:
    """E[max L] at each n/K."""
    budgets = [each * len(problem) for each in PER_CHAIN]
    loss, _ = run(problem, policy, budgets, range(replications), Options(seed=seed))
    return [mean_largest(values) for values in loss]


def ratios(
    problem: cs.Problem,
    policies: Sequence[str | cs.Policy],
    yardstick: str,
    replications: int = REPLICATIONS,
    seed: int = SEED,
) -> list[list[Statistic]]:
    """E[max L] of each policy over the yardstick's, at each n/K."""
    theirs = mean_losses(problem, yardstick, replications, seed)
    return [
        [one.over(other) for one, other in zip(mean_losses(problem, policy, replications, seed), theirs, strict=True)]
        for policy in policies
    ]


def table(problems: dict[str, cs.Problem], yardstick: str) -> tuple[list[tuple[str, ...]], list[list[Statistic]]]:
    """Rows of cells, and the ratios of version 1 at each n/K, then of the present version (problem, ratio)."""
    rows, found = [], []
    for name, problem in problems.items():
        old, new = ratios(problem, (BEFORE, "scout"), yardstick)
        cells = (f"{a.value:.2f} → {b.value:.2f} ({b.interval[1]:.2f})" for a, b in zip(old, new, strict=True))
        rows.append((name, *cells))
        found.append(old + new)
        print(*rows[-1], sep=" | ", flush=True)
    return rows, found


def summary(name: str, of_columns: Callable[[list[Statistic]], float], found: list[list[Statistic]]) -> tuple[str, ...]:
    """A last row: one figure of each column of ratios, version 1 → the present one."""
    figures = [of_columns(list(column)) for column in zip(*found, strict=True)]
    pairs = zip(figures[: len(PER_CHAIN)], figures[len(PER_CHAIN) :], strict=True)
    return f"**{name}**", *(f"**{a:.3f} → {b:.3f}**" for a, b in pairs)


def largest(column: list[Statistic]) -> float:
    return max(ratio.interval[1] for ratio in column)


def geometric(column: list[Statistic]) -> float:
    return math.exp(float(np.mean([math.log(ratio.value) for ratio in column])))


def main() -> None:
    columns = ("problem", *(f"n/K = {each:,}" for each in PER_CHAIN))
    rows, found = table(named(), "uniform")
    rows += [summary("largest upper end", largest, found), summary("geometric mean", geometric, found)]
    record("scout beside taking turns: E[max L] over uniform's", COMMAND, columns, rows, ("numpy", "numba"))
    rows = []
    groups = ({name: cs.problems.get(name) for name in some} for some in (ALIKE, LARGE))
    for problems in (drawn_unlike(), *groups):
        some, found = table(problems, "oracle")
        rows += [*some, summary(f"geometric mean of these {len(some)}", geometric, found)]
    record("scout on random problems: E[max L] over the oracle's", COMMAND, columns, rows, ("numpy", "numba"))
    columns = ("instead", "what went wrong", "where, and E[max L] over uniform's")
    record("scout: bonuses that were tried", COMMAND, columns, TRIED)


if __name__ == "__main__":
    main()
