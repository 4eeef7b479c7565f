"""Certificates beside two that are known from the literature: observations for a certified loss, and coverage.

``python benchmarks/bench_baselines.py`` writes one table, here and to docs/_generated/baselines.md. All bounds are for
the same loss and hold at all times at once with probability ≥ 1 − δ.

*Weissman*: a set in L1 for each row, from T. Weissman, E. Ordentlich, G. Seroussi, S. Verdú and M. Weinberger,
"Inequalities for the L1 deviation of the empirical distribution", Hewlett-Packard Labs, HPL-2003-97 (2003), with a
union over rows, chains and numbers of exits.

*Bernstein*: an interval for each entry of a row, from A. Maurer and M. Pontil, "Empirical Bernstein bounds and sample
variance penalization", COLT 2009, theorem 4, with a union over entries, chains and numbers of exits.

Both unions give n exits the share 1/(n(n + 1)), and both pay for smoothing as ``mixture`` does.
"""

import math
from pathlib import Path

import numpy as np
from recording import record

import chainscout as cs
from chainscout.certificates import entrywise, planning

DELTA, TARGET = 0.05, 0.01
PROBLEMS = ("two-state", "gilbert-elliott", "unlike", "birth-death", "equal", "cpg-islands", "cd4", "dirichlet")
PATHS, LENGTH = 100, 500
COMMAND = "python benchmarks/bench_baselines.py"
DOCS = Path(__file__).resolve().parents[1] / "docs" / "_generated" / "baselines.md"


def smoothed(excess: float, exits: np.ndarray, size: int) -> float:
    """b from the largest Σ_x N_x‖P̃ − P‖²: step 6 of ``mixture``."""
    moved = (1 - 1 / size) / 9 * (exits / (exits + 1 / 3) ** 2).sum()
    return (math.sqrt(excess) + math.sqrt(moved)) ** 2 / exits.sum()


def weissman(table: np.ndarray, chains: int) -> float:
    """P(‖P̃ − P‖₁ ≥ ε) ≤ (2^S − 2)·e^{−nε²/2}; a vector that sums to zero has ‖d‖² ≤ ‖d‖₁²/2."""
    size, exits = len(table), table.sum(axis=1)
    exits = exits[exits > 0]
    share = np.log(chains * size * exits * (exits + 1) / DELTA)
    square = 2 / exits * (math.log(2**size - 2) + share)
    return smoothed(float((exits * np.minimum(2, square / 2)).sum()), exits, size)


def bernstein(table: np.ndarray, chains: int) -> float:
    """|P̃ − P| ≤ √(2V·log(4/δ')/n) + 7·log(4/δ')/(3(n − 1)), V the sample variance, both sides."""
    size, whole = len(table), table.sum(axis=1)
    table, exits = table[whole > 0], whole[whole > 0]
    n = np.maximum(exits, 1 + 1e-9)[:, None]
    level = np.log(4 * chains * size**2 * n * (n + 1) / DELTA)
    share = table / n
    error = np.sqrt(2 * share * (1 - share) * level / (n - 1)) + 7 * level / (3 * (n - 1))
    square = (np.minimum(1, error) ** 2).sum(axis=1)
    return smoothed(float((exits * np.minimum(2, square)).sum()), exits, size)


def by_entries(table: np.ndarray, entries: int) -> float:
    """``entrywise`` of counts that need not be whole."""
    size, exits = len(table), table.sum(axis=1)
    table, exits = table[exits > 0], exits[exits > 0]
    low, high = entrywise.intervals(table, exits[:, None], math.log(entries / DELTA))
    estimate = (table + 1 / (3 * size)) / (exits[:, None] + 1 / 3)
    square = (np.maximum(high - estimate, estimate - low) ** 2).sum(axis=1)
    return float((exits * np.minimum(2, square)).sum() / exits.sum())


def needed(problem: cs.Problem) -> dict[str, float]:
    """method → observations at which expected counts certify the target."""
    chains, entries = len(problem), sum(size**2 for size in problem.sizes)

    def at(bound):
        return lambda chain, transitions: bound(chain.stationary[:, None] * chain.matrix * transitions)

    mixture = planning.mixture_bound(problem, DELTA)
    bounds = {
        "sharp": planning.sharp_bound(problem, DELTA),
        "mixture": mixture,
        "entrywise": at(lambda table: by_entries(table, entries)),
        "Bernstein": at(lambda table: bernstein(table, chains)),
        "Weissman": at(lambda table: weissman(table, chains)),
    }
    start = planning.certified_budget(problem, TARGET, lambda _: mixture) / chains
    found = {
        name: sum(1 + planning.least_transitions(chain, TARGET, bound, start) for chain in problem.chains.values())
        for name, bound in bounds.items()
    }
    found["paper"] = planning.certified_budget(
        problem, TARGET, lambda budget: planning.paper_bound(problem, DELTA, budget)
    )
    return found


METHODS = ("sharp", "mixture", "entrywise", "Bernstein", "Weissman", "paper")


def misses(problem: cs.Problem, seed: int) -> dict[str, int]:
    """Of PATHS paths of the first chain: on how many the loss was above the bound at one of the steps looked at."""
    chain = next(iter(problem.chains.values()))
    rng = np.random.default_rng(seed)
    looks = sorted({round(1.15**k) for k in range(1, 60) if 1.15**k <= LENGTH})
    missed = dict.fromkeys(METHODS, 0)
    for _ in range(PATHS):
        path = [int(rng.choice(chain.size, p=chain.stationary))]
        for _ in range(LENGTH):
            path.append(int(rng.choice(chain.size, p=chain.matrix[path[-1]])))
        wrong = set()
        for length in looks:
            table = np.zeros((chain.size, chain.size))
            np.add.at(table, (path[:length], path[1 : length + 1]), 1)
            counts = {"a": cs.Counts.from_transitions(table.astype(int))}
            exits = table.sum(axis=1)
            estimate = (table + 1 / (3 * chain.size)) / (exits[:, None] + 1 / 3)
            loss = float((exits * ((estimate - chain.matrix) ** 2).sum(axis=1)).sum() / exits.sum())
            bounds = {name: cs.certify(counts, DELTA, name).max for name in ("sharp", "mixture", "entrywise", "paper")}
            bounds["Bernstein"], bounds["Weissman"] = bernstein(table, 1), weissman(table, 1)
            wrong |= {name for name, bound in bounds.items() if loss > bound}
        for name in wrong:
            missed[name] += 1
    return missed


def main() -> None:
    rows, logarithms = [], {name: [] for name in METHODS}
    for seed, name in enumerate(PROBLEMS):
        problem = cs.problems.get(name)
        found, missed = needed(problem), misses(problem, seed)
        for method in METHODS:
            logarithms[method].append(math.log(found[method] / found["sharp"]))
        rows.append((f"`{name}`", f"{found['sharp']:,.0f}",
                     *(f"{found[m] / found['sharp']:.2f}" for m in METHODS[1:]),
                     *(missed[m] for m in METHODS)))  # fmt: skip
        print(*rows[-1], flush=True)
    rows.append(("**geometric mean**", "", *(f"**{math.exp(np.mean(logarithms[m])):.2f}**" for m in METHODS[1:]),
                 *[""] * len(METHODS)))  # fmt: skip
    columns = ["problem", "`sharp`: observations for 0.01", *(f"{m}, ×" for m in METHODS[1:])]
    columns += [f"{m}: misses of {PATHS}" for m in METHODS]
    record("Certificates and baselines", COMMAND, columns, rows, ("numpy", "numba"))
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    DOCS.write_text("\n".join(lines) + f"\n\n*Made by `{COMMAND}`.*\n", encoding="utf-8")


if __name__ == "__main__":
    main()
