"""What certificates cost, and what they ask for: times beside the mixture's, and budgets for a certified loss.

``python benchmarks/bench_certificates.py`` does all of it, and a word behind it does one part: ``times``, ``budgets``,
``open``, ``holes``, ``many``. Budgets go also to docs/_generated/budgets.md.
"""

import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from recording import record

import chainscout as cs
from chainscout import predictions
from chainscout.certificates import mixture, planning, sharp

#: Numbers of states, and how many random tables of each are measured.
SIZES = {2: 20, 5: 30, 20: 10, 100: 3}
DELTA, TARGETS = 0.05, (0.1, 0.01, 0.001)
DOCS = Path(__file__).resolve().parents[1] / "docs" / "_generated" / "budgets.md"
COMMAND = "python benchmarks/bench_certificates.py"
#: A program that certifies three chains of five states, and how long it takes from the start of the process.
FIRST = """
import chainscout as cs
rows = [[9, 1, 2, 0, 3], [1, 8, 0, 4, 2], [2, 2, 30, 1, 1], [0, 5, 1, 9, 1], [4, 1, 1, 1, 20]]
print(cs.certify({name: cs.Counts.from_transitions(rows) for name in "abc"}).max)
"""


def table_of(size: int, number: int) -> np.ndarray:
    """Random counts: up to 5,000 exits a row, Dirichlet rows."""
    rng = np.random.default_rng([size, number])
    laws = rng.dirichlet(np.ones(size), size)
    return np.array([rng.multinomial(n, p) for n, p in zip(rng.integers(1, 5_000, size), laws, strict=True)])


def times() -> None:
    """Processor time of one chain, in the mean over random tables; of three chains at once; and of a new process."""
    rows = []
    log_inverse = math.log(5 / 0.05)
    for size, tables in SIZES.items():
        counts = [cs.Counts.from_transitions(table_of(size, number)) for number in range(tables)]
        spent = []
        for bounds in (mixture.bound_of, lambda chain, level: sharp.bounds([chain], level)):
            start = time.process_time()
            for chain in counts:
                bounds(chain, log_inverse)
            spent.append((time.process_time() - start) / tables)
        start = time.process_time()
        sharp.bounds(counts[:3], log_inverse)
        three = time.process_time() - start
        rows.append((size, tables, *(f"{1e3 * value:.2f}" for value in (*spent, three))))
    columns = ("states", "random tables", "`mixture`, ms", "`sharp`, ms", "`sharp`, three chains at once, ms")
    record("Cost of a certificate", f"{COMMAND} times", columns, rows, ("numpy",))
    seconds = []
    for program in ("import numpy", "import chainscout.certificates", FIRST):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
        seconds.append(f"{time.perf_counter() - begun:.2f}")
    columns = ("`import numpy`", "`import chainscout.certificates`", "three chains of 5 states certified")
    record("Seconds of a process to its first certificate", f"{COMMAND} times", columns, [seconds], ("numpy",))


def many(number: int = 1_000) -> None:
    """``certify`` of so many chains of five states."""
    rng = np.random.default_rng(0)
    counts = {}
    for k in range(number):
        exits = rng.integers(1, 200, 5)
        counts[str(k)] = cs.Counts.from_transitions(
            np.array([rng.multinomial(n, p) for n, p in zip(exits, rng.dirichlet(np.ones(5), 5), strict=True)])
        )
    start = time.process_time()
    cs.certify(counts, method="sharp")
    columns = ("chains of 5 states", "milliseconds of processor time a chain")
    row = (f"{number:,}", f"{1e3 * (time.process_time() - start) / number:.1f}")
    record("Certifying many chains", f"{COMMAND} many", columns, [row], ("numpy",))


def laws() -> dict[str, np.ndarray]:
    """Chains whose states are declared or not: dense, sparse, with rare successors, nearly deterministic."""
    rng = np.random.default_rng(17)
    found = {f"S = {size}, dense": rng.dirichlet(np.ones(size), size) for size in (2, 5, 10)}
    sparse, rare, cycle = np.zeros((20, 20)), np.full((30, 30), 0.02 / 30), np.full((20, 20), 0.03 / 20)
    for x in range(20):
        sparse[x, rng.choice(20, 3, replace=False)] = rng.dirichlet(np.ones(3))
        cycle[x, (x + 1) % 20] += 0.97
    for x in range(30):
        rare[x, rng.choice(30, 3, replace=False)] += 0.98 * rng.dirichlet(np.ones(3))
    return found | {"S = 20, 3 successors": sparse, "S = 30, 3 + 2 % rare": rare, "S = 20, cycle": cycle}


def walk(law: np.ndarray, rng: np.random.Generator, length: int) -> np.ndarray:
    """A path of the chain."""
    uniforms, sums, path = rng.random(length), law.cumsum(axis=1), [0]
    for u in uniforms:
        path.append(min(len(law) - 1, int(np.searchsorted(sums[path[-1]], u))))
    return np.array(path)


def counts_of(path: np.ndarray, size: int, is_open: bool) -> cs.Counts:
    """The counts of a path; if open, over the states that it shows, in the order in which it shows them."""
    if not is_open:
        return cs.Counts.from_path(path.tolist(), size)
    numbers = {state: number for number, state in enumerate(dict.fromkeys(path.tolist()))}
    closed = cs.Counts.from_path([numbers[state] for state in path.tolist()], len(numbers))
    return cs.Counts.over({x: dict(row) for x, row in closed.rows().items()}, len(numbers), open_states=True)


def until(path: np.ndarray, size: int, target: float, bound) -> int:
    """About the first length at which the bound of the path so far is at most the target: to 1 %, by bisection."""
    high = 100
    while bound(path[: high + 1]) > target:
        high = high * 3 // 2
    low = high * 2 // 3
    while high - low > high // 100:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(path[: middle + 1]) <= target else (middle, high)
    return high


def opened(target: float = 0.01, seeds: int = 3) -> None:
    """Observations to a certified loss with states that nobody declared, over those with declared states."""
    level, rows = math.log(1 / DELTA), []
    for name, law in laws().items():
        size, quotients = len(law), []
        for seed in range(seeds):
            path = walk(law, np.random.default_rng([5, seed]), 40_000)

            def sharp_of(part: np.ndarray, is_open: bool, size: int = size) -> float:
                return sharp.bounds([counts_of(part, size, is_open)], level)[0].loss

            def mixture_of(part: np.ndarray, size: int = size) -> float:
                return mixture.bound_of(counts_of(part, size, True), level)

            declared = until(path, size, target, lambda part: sharp_of(part, False))
            open_ = until(path, size, target, lambda part: sharp_of(part, True))
            quotients.append((declared, open_ / declared, until(path, size, target, mixture_of) / declared))
        rows.append((name, *(f"{value:,.2f}".removesuffix(".00") for value in np.mean(quotients, axis=0).round(2))))
    columns = ("chain", f"declared: observations to {target:g}", "not declared, ×", "`mixture`, not declared, ×")
    record("States that are not declared", f"{COMMAND} open", columns, rows, ("numpy",))


def holes(seeds: int = 5) -> None:
    """What holes cost: b with so many of them in the row that was left most often, over b without."""
    level, rows = math.log(1 / DELTA), []
    for length, number in ((1_000, 1), (10_000, 1), (10_000, 10)):
        found = []
        for law in list(laws().values())[:4]:
            for seed in range(seeds):
                path = walk(law, np.random.default_rng([6, seed]), length)
                known = counts_of(path, len(law), False)
                most = int(known.exits.argmax())
                lost = cs.Counts.over(dict(known.rows()), len(law), holes={most: number})
                found.append(
                    (
                        sharp.bounds([lost], level)[0].loss / sharp.bounds([known], level)[0].loss,
                        mixture.bound_of(lost, level) / mixture.bound_of(known, level),
                    )
                )
        mean, largest = np.mean(found, axis=0), np.max(found, axis=0)
        rows.append((number, f"{length:,}", *(f"{m:.3f} ({x:.3f})" for m, x in zip(mean, largest, strict=True))))
    columns = ("holes", "T", "`sharp`: mean (largest)", "`mixture`: mean (largest)")
    record("What holes cost: b over b without them", f"{COMMAND} holes", columns, rows, ("numpy",))


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
    record("Observations for a certified loss", f"{COMMAND} budgets", columns, rows, ("numpy",))
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    DOCS.write_text("\n".join(lines) + f"\n\n*Made by `{COMMAND} budgets`.*\n", encoding="utf-8")


PARTS = {"times": times, "budgets": budgets, "open": opened, "holes": holes, "many": many}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
