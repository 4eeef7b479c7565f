"""The GPU engine: steps a second of the kernel and of a whole comparison, compared with the CPU engine."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from recording import record

import chainscout as cs
from chainscout import engine, policies
from chainscout.engine import Options, gpu
from chainscout.engine.gpu import kernel
from chainscout.engine.gpu.launch import specialised

SHAPES = (
    ("K = S = 5", "dirichlet:chains=5,states=5,seed=0", 4_000, 540_672),
    ("K = 50, S = 10", "dirichlet:chains=50,states=10,seed=0", 4_000, 135_168),
    ("K = 5, S = 50", "dirichlet:chains=5,states=50,seed=0", 4_000, 135_168),
)
PRECISIONS = {"float32": "gpu:float32", "float64": "gpu"}


def kernel_rate(problem, policy, budget, replications, precision):
    """Billions of steps a second by the device's clock: the best of three, compiled before."""
    arguments, options = (problem, policies.get(policy), [budget]), Options(engine=PRECISIONS[precision])
    gpu.run(*arguments, range(64), options)
    best = 0.0
    for _ in range(3):
        times = []
        gpu.run(*arguments, range(replications), options, kernel_times=times)
        best = max(best, budget * replications / sum(times) / 1e9)
    return best


def run_rate(problem, policy, budget, replications, precision):
    """The same for ``compare`` with its summary, in wall time: tables, launches, statistics."""
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        cs.compare(problem, [policy], [budget], replications, engine=PRECISIONS[precision]).summary()
        best = max(best, budget * replications / (time.perf_counter() - start) / 1e9)
    return best


def cpu_rate(problem, policy, budget, replications, workers):
    """The same for the CPU engine on this number of threads."""
    engine.run(problem, policy, [budget], range(8), engine.Options(seed=0, engine="cpu"))
    each = [range(i * replications, (i + 1) * replications) for i in range(workers)]
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        list(
            pool.map(
                lambda part: engine.run(problem, policy, [budget], part, engine.Options(seed=0, engine="cpu")), each
            )
        )
    return budget * replications * workers / (time.perf_counter() - start) / 1e9


def unmixed(position):
    """Replaces the generator's mixing of a counter, so that a draw costs almost nothing."""
    return position


def without_generator(problem, policy, budget, replications, precision):
    """The kernel's rate with a counter as the generator. The drawn numbers are useless."""
    specialised.cache_clear()
    mix, kernel.mix = kernel.mix, unmixed
    try:
        return kernel_rate(problem, policy, budget, replications, precision)
    finally:
        kernel.mix = mix
        specialised.cache_clear()


def main() -> None:
    if not gpu.is_available():
        sys.exit("bench_gpu.py: there is no GPU here, so that there is nothing to measure")
    rows = []
    for name, shape, budget, replications in SHAPES:
        problem = cs.problems.get(shape)
        for policy in ("ba-mc", "scout"):
            one = cpu_rate(problem, policy, budget, 400, 1)
            every = cpu_rate(problem, policy, budget, 400, os.cpu_count() or 1)
            for precision in PRECISIONS:
                kernel = kernel_rate(problem, policy, budget, replications, precision)
                whole = run_rate(problem, policy, budget, replications, precision)
                ratios = (f"{rate / cpu:,.0f}" for rate in (kernel, whole) for cpu in (one, every))
                rows.append((name, policy, precision, f"{kernel:.1f}", f"{whole:.1f}", *ratios))
                print(rows[-1], flush=True)
    columns = ("problem", "policy", "precision", "kernel, 10⁹ steps/s", "run, 10⁹ steps/s")
    columns += tuple(f"{what} / {cores}" for what in ("kernel", "run") for cores in ("one core", "all cores"))
    device = gpu.arrays().cuda.runtime.getDeviceProperties(0)["name"].decode()
    packages = ("numba", "numba-cuda", "numpy")
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    about = f"GPU engine ({device}, driver {driver})"
    record(about, "make bench-gpu", columns, rows, packages)
    problem = cs.problems.get(SHAPES[0][1])
    rows = []
    for precision in PRECISIONS:
        arguments = (problem, "ba-mc", *SHAPES[0][2:], precision)
        bare, full = without_generator(*arguments), kernel_rate(*arguments)
        rows.append((precision, f"{full:.1f}", f"{bare:.1f}", f"{100 * (1 - full / bare):.0f} %"))
        print(rows[-1], flush=True)
    columns = ("precision", "kernel, 10⁹ steps/s", "with a counter for a generator", "what the generator costs")
    record(f"GPU engine: the generator ({device})", "make bench-gpu", columns, rows, packages)


if __name__ == "__main__":
    main()
