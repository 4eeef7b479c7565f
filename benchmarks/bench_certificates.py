"""What certificates cost, and what they ask for: times beside the compiled mixture's, and budgets for a certified loss.

``python benchmarks/bench_certificates.py`` does both; ``… budgets`` and ``… times`` one of them. Budgets go also to
docs/_generated/budgets.md.
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

SIZES = (2, 5, 10, 50)
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
    fast_mixture = compiled(largest_excess, {}, cache=False)
    rows = []
    for size in SIZES:
        rng = np.random.default_rng(size)
        exits = rng.integers(1, 5_000, size)
        table = np.array(
            [rng.multinomial(n, p) for n, p in zip(exits, rng.dirichlet(np.ones(size), size), strict=True)]
        )
        counts = cs.Counts.from_transitions(table)
        log_inverse = math.log(5 / 0.05)
        known = (size, size - 1.0, log_inverse)
        arrays = (np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.int64))
        numbers = exits.astype(float)
        values = numbers.tolist()
        assert fast_mixture(numbers, *known, *arrays) == largest_excess(
            values, *known, [0] * size, [0.0] * size, [0] * size
        )
        fast = seconds(lambda e=numbers, k=known, a=arrays: fast_mixture(e, *k, *a), 500)
        slow = seconds(lambda e=values, k=known: largest_excess(e, *k, [0] * k[0], [0.0] * k[0], [0] * k[0]), 3)
        packed = sharp.table_of([counts.rows()[x] for x in sorted(counts.rows())], size)
        space = sharp.space_for(len(packed.count), len(packed.exits))
        full = seconds(lambda p=packed, s=space, k=size, v=log_inverse: sharp.largest_loss(p, k, v, s), 5)
        running = sharp.Running(size, log_inverse)
        running.full(counts)
        state = int(np.argmax(exits))
        warm = seconds(lambda r=running, c=counts, s=state: r.moved(c, s), 20)
        figures = (fast, slow / fast, full / fast, warm / fast)
        rows.append((size, f"{figures[0] * 1e6:.1f}", *(f"{figure:.0f}" for figure in figures[1:])))
    columns = (
        "states", "`mixture`, compiled, µs", "`mixture` interpreted, ×", "`sharp`, a full search, ×",
        "`sharp`, only one row moved, ×",
    )  # fmt: skip
    record("Cost of a certificate", COMMAND, columns, rows, ("numba", "numpy"))


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
    names = [name for name in cs.problems.names() if name != "sp-ratings"]  # its default state is absorbing
    rows, quotients = [], {(method, target): [] for method in ("sharp", "mixture", "paper") for target in TARGETS}
    with ThreadPoolExecutor(1) as pool:
        for name in names:
            problem = cs.problems.get(name)
            row = [f"`{name}`", len(problem), max(problem.sizes)]
            for target, found in zip(TARGETS, pool.map(lambda t, p=problem: needed(p, t), TARGETS), strict=True):
                truth = found["predicted"]
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
    wanted = sys.argv[1:] or ["times", "budgets"]
    for part in wanted:
        {"times": times, "budgets": budgets, "many": many}[part]()
