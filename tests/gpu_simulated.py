"""Every policy and a user's own on the GPU engine, under numba's CUDA simulator, against the CPU engine: run by a test.

It is a program of its own because the simulator must be chosen before numba is imported.
"""

import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import threading
import time

import numpy as np

import chainscout as cs
from chainscout import engine, policies
from chainscout.engine import gpu
from trials import paths


def terms(row, exits, squares, constants):
    return (1.0 - squares / (exits * exits) + constants[0] * abs(row[0] - row[1]) / exits,)


def index(sums, transitions, constants):
    return sums[0] / transitions


MINE = cs.Policy("mine", index, terms, constants=lambda setting: (0.5,))


#: What a block may take of shared memory, and without the rows; and what then stands there.
PLACES = {
    (48 * 1024, 0): {"rows", "chains", "streams", "indices"},
    (4096, 48 * 1024): {"chains", "streams", "indices"},
    (4096, 3000): {"chains", "indices"},
    (1024, 0): {"indices"},
    (0, 0): set(),
}
#: What the engine does besides the plain loop; each with a rule that has a floor, a summary, blocks or entries.
OPTIONS = [
    ("ba-mc", {"batch": 3}),
    ("certifier", {"batch": 3}),
    ("certifier:block=0.2", {"batch": 3}),
    ("scout:block=0.1", {"batch": 5}),
    ("gafs-max:block=0.1", {"batch": 3}),
    ("gafs-max", {"batch": 4}),
    ("scout", {"restless": True}),
    ("certifier:block=0.2", {"restless": True}),
    ("scout", {"distance": "kullback-leibler", "row_weights": "stationary"}),
    ("ba-mc", {"horizon": False}),
]


def agree(problem, rule, budgets, replications, weights, options):
    """The same pulls, and losses but for rounding."""
    found = engine.run(
        problem, rule, budgets, replications, engine.Options(seed=7, engine="gpu", weights=weights, **options)
    )
    expected = engine.run(
        problem, rule, budgets, replications, engine.Options(seed=7, engine="cpu", weights=weights, **options)
    )
    assert (found[1] == expected[1]).all(), (rule, options)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-14, err_msg=f"{rule} {options}")


def several_devices(problem) -> None:
    """Two devices, each with a thread of its own: both work, and the results have the bits of one."""
    one = cs.compare(problem, ["scout", "oracle"], [5, 20], 400, engine="gpu")
    used, launched = {}, []
    number, use, launch = gpu.number, gpu.use, gpu.GpuKernel.launch

    def watched(self, *arguments):
        launched.append(used[threading.get_ident()])
        time.sleep(0.01)  # long enough for the other device to take the next task
        launch(self, *arguments)

    gpu.number = lambda: 2
    gpu.use = lambda device: used.setdefault(threading.get_ident(), device)
    gpu.GpuKernel.launch = watched
    two = cs.compare(problem, ["scout", "oracle"], [5, 20], 400, engine="gpu")
    gpu.number, gpu.use, gpu.GpuKernel.launch = number, use, launch
    assert sorted(used.values()) == [0, 1]
    assert set(launched) == {0, 1}, launched
    assert two.loss.tobytes() == one.loss.tobytes()
    assert two.pulls.tobytes() == one.pulls.tobytes()


def main() -> None:
    chains = dict(cs.problems.get("dirichlet:chains=2,states=3,seed=1").chains)
    problem = cs.Problem({**chains, "wide": cs.problems.get("unlike")["cyclic"]})
    alike = cs.Problem(chains)
    budgets, replications, weights = [4, 30, 80], range(2, 4), [1.0, 2.0, 0.5]
    specifications = ["static:weights=1/2/3" if name == "static" else name for name in policies.names()]
    # Blocks of several observations begin at T = 1/block.
    rules = [*specifications, MINE, "scout:block=0.2", "certifier:block=0.2", "scout:loss=total-variation"]
    for rule in rules:
        agree(problem, rule, budgets, replications, weights, {})
    for rule in ("ba-mc", "scout:block=0.2", MINE):
        agree(alike, rule, budgets, replications, None, {})
    for rule, options in OPTIONS:
        agree(problem, rule, [5, 160], replications, weights, options)
    for sizes, place in PLACES.items():
        gpu.layout.SHARED_BYTES, gpu.layout.CROWDED_BYTES = sizes
        assert gpu.layout.Layout(3, 4, 1, np.uint16, np.float64, False).shared == place
        for rule in ("ba-mc", "gini-ucb:block=0.2", "certifier"):
            agree(problem, rule, budgets, replications, weights, {})
    gpu.layout.SHARED_BYTES, gpu.layout.CROWDED_BYTES = 48 * 1024, 23 * 1024
    for kind in (np.uint32, np.uint64):
        gpu.launch.count_type = lambda budget, states, kind=kind: kind
        agree(problem, "ba-mc", budgets, replications, weights, {})
    gpu.launch.LAUNCH_LANES, gpu.launch.LAUNCH_STEPS = 32, 1
    agree(alike, "scout", [20], range(70), None, {})
    for options in ({}, {"row_weights": "ones"}):
        found, expected = (
            cs.compare(alike, ["scout", "oracle"], [5, 20], 40, engine=name, **options) for name in ("gpu", "cpu")
        )
        assert (found.pulls == expected.pulls).all()
        assert found.summary()[0].keys() == expected.summary()[0].keys()
    several_devices(alike)
    found = paths.followed(problem, 30, 3, 0.05, 5, "gpu")
    np.testing.assert_allclose(found, paths.followed(problem, 30, 3, 0.05, 5, "cpu"), rtol=1e-12)
    print("all agree")


if __name__ == "__main__":
    main()
