"""Compare policies on a built-in problem: which one makes the largest loss smallest?

python examples/compare_policies.py [DIRECTORY]
"""

import sys
from pathlib import Path

import chainscout as cs

problem = cs.problems.get("unlike")
results = cs.compare(problem, ["uniform", "ba-mc", "scout", "oracle"], budgets=[300, 1_000, 3_000], replications=200)

for row in results.summary():
    value, error = row["n·E[max L]/Λ"], row["± n·E[max L]/Λ"]
    print(f"{row['policy']:8} n = {row['budget']:5,}: n·E[max L]/Λ = {value:.2f} ± {error:.2f}")

for row in results.differences():
    if row["budget"] == 3_000 and row["better"]:
        interval = f"{row['from']:+.2f} … {row['to']:+.2f}"
        print(f"{row['policy']} against {row['against']}: {interval}, {row['better']} is better")

out = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
results.save(out / "run.npz")
results.figure().savefig(out / "loss.svg")
