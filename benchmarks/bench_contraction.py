"""How often contraction alone changes the choices of a replication, measured without a GPU.

A GPU's compiler rounds a·b + c once, a CPU's compiler twice. Here the CPU's own kernels are compiled both ways. This
needs a processor with fused multiply-add (every processor with AVX2 has it). The two differ by that rounding and by
nothing else, so an effect of contraction can be distinguished from an error of the GPU engine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from recording import record

import chainscout as cs
from chainscout.compile import specialise

SHAPES = ["chains=50,states=10", "chains=5,states=50", "chains=2000,states=3"]
PROBLEMS = ["unlike", *(f"dirichlet:{shape},seed=1" for shape in SHAPES)]
POLICIES = ["ba-mc", "scout"]
BUDGET = 5_000
COLUMNS = ("problem", "policy", f"replications whose pulls differ at n = {BUDGET:,}")


def pulls(replications: int, contract: bool) -> dict[str, np.ndarray]:
    """What was sampled, for every problem and policy."""
    if contract:
        specialise.OPTIONS["fastmath"] = {"contract"}
    return {
        f"{problem} {policy}": cs.compare(
            cs.problems.get(problem), [policy], [BUDGET], replications, engine="cpu", progress=False
        ).pulls
        for problem in PROBLEMS
        for policy in POLICIES
    }


def made_apart(replications: int, contract: bool, folder: Path) -> dict[str, np.ndarray]:
    """The same in a process with its own machine code, because code on disk does not say how it was compiled."""
    out = folder / f"{contract}.npz"
    command = [sys.executable, __file__, "--replications", str(replications), "--part", str(int(contract)), str(out)]
    subprocess.run(command, check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(folder / str(contract))})
    with np.load(out) as found:
        return dict(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=2_048)
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        np.savez(given.part[1], **pulls(given.replications, given.part[0] == "1"))
        return
    with tempfile.TemporaryDirectory() as name:
        plain, contracted = (made_apart(given.replications, contract, Path(name)) for contract in (False, True))
    rows = []
    for key, expected in plain.items():
        differ = int((contracted[key] != expected).any(axis=(0, 1, 3)).sum())
        rows.append((*key.split(" "), f"{differ:,} of {given.replications:,}"))
    record("GPU engine: contraction alone", "python benchmarks/bench_contraction.py", COLUMNS, rows, ("numba",))


if __name__ == "__main__":
    main()
