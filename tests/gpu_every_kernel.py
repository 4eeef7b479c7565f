"""Every kind of kernel once, small, for NVIDIA's checker of memory and races:

compute-sanitizer --tool memcheck python tests/gpu_every_kernel.py
compute-sanitizer --tool racecheck python tests/gpu_every_kernel.py
"""

import chainscout as cs
from chainscout import engine
from trials import paths

OPTIONS = [
    ("ba-mc", {}),
    ("scout:block=0.1", {}),
    ("certifier", {}),
    ("gafs-max", {"batch": 4}),
    ("certifier:block=0.1", {"batch": 4}),
    ("scout", {"restless": True}),
    ("scout", {"row_weights": "ones"}),
]


def main() -> None:
    problem = cs.problems.get("unlike")
    for rule, options in OPTIONS:
        engine.run(problem, rule, [5, 60], range(70), engine.Options(seed=0, engine="gpu", **options))
    for shape in ("chains=50,states=10", "chains=5,states=50", "chains=500,states=3"):
        engine.run(
            cs.problems.get(f"dirichlet:{shape},seed=0"),
            "ba-mc",
            [300],
            range(70),
            engine.Options(seed=0, engine="gpu"),
        )
    paths.followed(problem, 60, 70, 0.05, 0, "gpu")
    cs.compare(problem, ["ba-mc", "oracle"], [50], 200, engine="gpu:float32").summary()
    print("done")


if __name__ == "__main__":
    main()
