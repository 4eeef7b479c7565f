"""What certificates cost, and what they ask for: times beside the compiled mixture's, and budgets for a certified loss.

``python benchmarks/bench_certificates.py`` does all of it, and a word behind it does one part: ``times``, ``budgets``,
``many``, ``order``. Budgets go also to docs/_generated/budgets.md.
"""

import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from recording import record

import chainscout as cs
from chainscout import predictions
from chainscout.certificates import planning, sharp
from chainscout.certificates.mixture import largest_excess
from chainscout.compile import compiled

#: Numbers of states, and how many random tables of each are measured.
SIZES = {2: 20, 5: 30, 10: 20, 50: 10}
DELTA, TARGETS = 0.05, (0.1, 0.01, 0.001)
DOCS = Path(__file__).resolve().parents[1] / "docs" / "_generated" / "budgets.md"
COMMAND = "python benchmarks/bench_certificates.py"


def seconds(call, repetitions: int) -> float:
    """The best of five averages, of CPU time: one thread works, and other programs may run beside it."""
    best = math.inf
    for _ in range(5):
        start = time.process_time()
        for _ in range(repetitions):
            call()
        best = min(best, (time.process_time() - start) / repetitions)
    return best


def times() -> None:
    """Means over random tables of each size: single tables take from half to three times the mean."""
    fast_mixture = compiled(largest_excess, {}, cache=False)
    rows = []
    for size, tables in SIZES.items():
        spent = np.zeros(4)
        for number in range(tables):
            rng = np.random.default_rng([size, number])
            exits = rng.integers(1, 5_000, size)
            laws = rng.dirichlet(np.ones(size), size)
            table = np.array([rng.multinomial(n, p) for n, p in zip(exits, laws, strict=True)])
            spent += one_table(table, exits, fast_mixture)
        fast, slow, full, warm = spent / tables
        ratios = (slow / fast, full / fast, warm / fast)
        rows.append((size, tables, f"{fast * 1e6:.1f}", *(f"{ratio:.0f}" for ratio in ratios)))
    columns = (
        "states", "random tables", "`mixture`, compiled, µs", "`mixture` interpreted, ×", "`sharp`, a full search, ×",
        "`sharp`, only one row moved, ×",
    )  # fmt: skip
    record("Cost of a certificate", f"{COMMAND} times", columns, rows, ("numba", "numpy"))


def one_table(table: np.ndarray, exits: np.ndarray, fast_mixture) -> np.ndarray:
    """Seconds of one table: mixture compiled and interpreted, sharp with a full search and after one row moved."""
    size, log_inverse = len(table), math.log(5 / 0.05)
    counts = cs.Counts.from_transitions(table)
    known = (size, size - 1.0, log_inverse)
    arrays = (np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.int64))
    numbers = exits.astype(float)
    values = numbers.tolist()
    scratch = ([0] * size, [0.0] * size, [0] * size)
    assert fast_mixture(numbers, *known, *arrays) == largest_excess(values, *known, *scratch)
    fast = seconds(lambda: fast_mixture(numbers, *known, *arrays), 200)
    slow = seconds(lambda: largest_excess(values, *known, *scratch), 1)
    packed = sharp.table_of([counts.rows()[x] for x in sorted(counts.rows())], size)
    space = sharp.space_for(len(packed.count), len(packed.exits))
    full = seconds(lambda: sharp.largest_loss(packed, size, log_inverse, space), 2)
    running = sharp.Running(size, log_inverse)
    running.full(counts)
    state = int(np.argmax(exits))
    return np.array([fast, slow, full, seconds(lambda: running.moved(counts, state), 10)])


def many(number: int = 100_000) -> None:
    """``certify`` of so many chains of five states."""
    rng = np.random.default_rng(0)
    counts = {}
    for k in range(number):
        exits = rng.integers(1, 200, 5)
        counts[str(k)] = cs.Counts.from_transitions(
            np.array([rng.multinomial(n, p) for n, p in zip(exits, rng.dirichlet(np.ones(5), 5), strict=True)])
        )
    cs.certify({"0": counts["0"]}, method="sharp")  # compiled, or loaded
    start, used = time.perf_counter(), time.process_time()
    cs.certify(counts, method="sharp")
    spent, used = time.perf_counter() - start, time.process_time() - used
    columns = ("chains of 5 states", "seconds by the clock", "seconds of processor time, all threads")
    record("Certifying many chains", f"{COMMAND} many", columns, [(f"{number:,}", f"{spent:.0f}", f"{used:.0f}")])


def order(tables: int = 6_000) -> None:
    """How often a smaller δ has a smaller bound: random tables with two δ each, near and far apart."""
    rng = np.random.default_rng(1)
    wrong = []
    for _ in range(tables):
        size = int(rng.integers(2, 6))
        laws = rng.dirichlet(np.full(size, rng.choice([0.1, 0.5, 2.0])), size)
        exits = 1 + np.exp(rng.uniform(0, math.log(3000), size)).astype(int)
        counts = {
            "a": cs.Counts.from_transitions(np.array([rng.multinomial(n, p) for n, p in zip(exits, laws, strict=True)]))
        }
        delta = math.exp(rng.uniform(math.log(1e-8), math.log(0.5)))
        smaller = delta * math.exp(-rng.exponential() * rng.choice([0.1, 1.0, 5.0]) - 0.01)
        ratio = cs.certify(counts, delta, method="sharp").max / cs.certify(counts, smaller, method="sharp").max
        if ratio > 1 + 1e-9:
            wrong.append(ratio)
    columns = ("random tables, two δ each", "the smaller δ has the smaller bound", "largest ratio of the two bounds")
    row = (f"{tables:,}", len(wrong), f"{max(wrong, default=1.0):.3f}")
    record("Order of certificates in δ", f"{COMMAND} order", columns, [row], ("numba", "numpy"))


def floor(problem: cs.Problem, target: float) -> float:
    """Observations below which an entry never seen cannot be excluded: T ≥ log(K/δ)·√(2/(π_x·target)), all chains."""
    level = math.log(len(problem) / DELTA)
    least = 0.0
    for chain in problem.chains.values():
        seen = chain.stationary[chain.stationary > 0]
        # A row whose whole loss, 2·π_x, is below the target can be given up.
        rare = [level * math.sqrt(2 / (p * target)) for p in seen if 2 * p > target]
        least += 1 + max(rare, default=1.0)
    return least


def needed(problem: cs.Problem, target: float) -> dict[str, float]:
    """method → observations at which expected counts certify the target; and what is predicted to be needed."""
    shares = predictions.shares(problem, "oracle-max")
    found = {
        "predicted": float(predictions.quantile_of_maximum(problem, shares, 1 - DELTA)) / target + len(problem),
        "floor": floor(problem, target),
    }
    mixture = planning.mixture_bound(problem, DELTA)
    found["mixture"] = planning.certified_budget(problem, target, lambda _: mixture)
    found["paper"] = planning.certified_budget(
        problem, target, lambda budget: planning.paper_bound(problem, DELTA, budget)
    )
    bound = planning.sharp_bound(problem, DELTA)
    start = found["mixture"] / len(problem) / 2
    found["sharp"] = sum(
        1 + planning.least_transitions(chain, target, bound, start) for chain in problem.chains.values()
    )
    return found


def budgets() -> None:
    names = cs.problems.names()
    rows, quotients = [], {(method, target): [] for method in ("sharp", "mixture", "paper") for target in TARGETS}
    with ThreadPoolExecutor(1) as pool:
        for name in names:
            problem = cs.problems.get(name)
            # A chain with an absorbing state is not compared with the limit law, which needs every row again and again.
            returns = all(chain.is_irreducible for chain in problem.chains.values())
            row = [
                f"`{name}`" if returns else f"`{name}` (absorbed; not in the mean)",
                len(problem),
                max(problem.sizes),
            ]
            for target, found in zip(TARGETS, pool.map(lambda t, p=problem: needed(p, t), TARGETS), strict=True):
                truth = found["predicted"]
                if returns:
                    for method in ("sharp", "mixture", "paper"):
                        quotients[method, target].append(found[method] / truth)
                row += [f"{truth:,.0f}", *(f"{found[m] / truth:.2f}" for m in ("sharp", "mixture", "paper"))]
                row.append(f"{found['sharp'] / max(truth, found['floor']):.2f}")
            rows.append(tuple(row))
            print(rows[-1], flush=True)
    means = ["**geometric mean**", "", ""]
    for target in TARGETS:
        means.append("")
        means += [f"**{math.exp(np.mean(np.log(quotients[m, target]))):.2f}**" for m in ("sharp", "mixture", "paper")]
        means.append("")
    rows.append(tuple(means))
    columns = ["problem", "K", "S"]
    for target in TARGETS:
        columns += [
            f"predicted for {target:g}",
            "`sharp`, ×",
            "`mixture`, ×",
            "`paper`, ×",
            "`sharp` over the larger of prediction and floor",
        ]
    record("Observations for a certified loss", f"{COMMAND} budgets", columns, rows, ("numba", "numpy"))
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    DOCS.write_text("\n".join(lines) + f"\n\n*Made by `{COMMAND} budgets`.*\n", encoding="utf-8")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["times", "budgets", "many", "order"]
    for part in wanted:
        {"times": times, "budgets": budgets, "many": many, "order": order}[part]()
