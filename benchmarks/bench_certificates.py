"""What a certificate costs: the mixture's bound, interpreted and compiled."""

import math
import time

import numba
import numpy as np
from recording import record

from chainscout.certificates.mixture import largest_excess

SIZES = (2, 5, 10, 50, 200)


def seconds(call, repetitions: int) -> float:
    """The best of five averages."""
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repetitions):
            call()
        best = min(best, (time.perf_counter() - start) / repetitions)
    return best


def main() -> None:
    compiled = numba.njit(largest_excess)
    rows = []
    for size in SIZES:
        exits = np.random.default_rng(size).integers(1, 5_000, size).astype(float)
        known = (size, size - 1.0, math.log(5 / 0.05))
        arrays = (np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.int64))
        lists = ([0] * size, [0.0] * size, [0] * size)
        values = exits.tolist()
        assert compiled(exits, *known, *arrays) == largest_excess(values, *known, *lists)
        fast = seconds(lambda e=exits, k=known, a=arrays: compiled(e, *k, *a), 500)
        slow = seconds(lambda e=values, k=known, a=lists: largest_excess(e, *k, *a), 3)
        rows.append((size, f"{fast * 1e6:.1f}", f"{slow * 1e6:.0f}", f"{slow / fast:.0f}"))
    columns = ("states", "compiled, µs", "interpreted, µs", "ratio")
    record("Cost of a certificate", "make bench", columns, rows, ("numba", "numpy"))


if __name__ == "__main__":
    main()
