"""The GPU engine: steps a second of the kernel and of a whole run, against the CPU engine on the same machine."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from numba import cuda
from recording import record

import chainscout as cs
from chainscout import engine, policies
from chainscout.engine import gpu


def rate(problem, policy, budget, replications, precision, clock):
    """Billions of steps a second: the best of three, compiled before."""
    rule, weights = policies.get(policy), [1.0] * len(problem)
    gpu.run(problem, rule, [budget], range(64), 0, budget, weights, precision)
    best = 0.0
    for _ in range(3):
        times = []
        start = time.perf_counter()
        gpu.run(problem, rule, [budget], range(replications), 0, budget, weights, precision, kernel_times=times)
        elapsed = time.perf_counter() - start if clock == "run" else sum(times)
        best = max(best, budget * replications / elapsed / 1e9)
    return best


def cpu_rate(problem, policy, budget, replications, workers):
    """The same of the CPU engine on so many threads."""
    engine.run(problem, policy, [budget], range(8), 0, "cpu")
    each = [range(i * replications, (i + 1) * replications) for i in range(workers)]
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda part: engine.run(problem, policy, [budget], part, 0, "cpu"), each))
    return budget * replications * workers / (time.perf_counter() - start) / 1e9


def main() -> None:
    if not gpu.is_available():
        sys.exit("bench_gpu.py: there is no GPU here, so that there is nothing to measure")
    rows = []
    for name, shape, budget, replications in (
        ("K = S = 5", "dirichlet:chains=5,states=5,seed=0", 4_000, 540_672),
        ("K = 50, S = 10", "dirichlet:chains=50,states=10,seed=0", 4_000, 135_168),
        ("K = 5, S = 50", "dirichlet:chains=5,states=50,seed=0", 4_000, 67_584),
    ):
        problem = cs.problems.get(shape)
        for policy in ("ba-mc", "scout"):
            one = cpu_rate(problem, policy, budget, 400, 1)
            every = cpu_rate(problem, policy, budget, 400, os.cpu_count() or 1)
            for precision in ("float32", "float64"):
                kernel = rate(problem, policy, budget, replications, precision, "kernel")
                whole = rate(problem, policy, budget, replications, precision, "run")
                rows.append(
                    (
                        name,
                        policy,
                        precision,
                        f"{kernel:.1f}",
                        f"{whole:.1f}",
                        f"{whole / one:.0f}",
                        f"{whole / every:.0f}",
                    )
                )
                print(rows[-1], flush=True)
    columns = (
        "problem",
        "policy",
        "precision",
        "kernel, 10⁹ steps/s",
        "run, 10⁹ steps/s",
        "run / one core",
        "run / all cores",
    )
    device = cuda.get_current_device().name
    name = device.decode() if isinstance(device, bytes) else device
    record(f"GPU engine ({name})", "make bench-gpu", columns, rows, ("numba", "numba-cuda"))


if __name__ == "__main__":
    main()
