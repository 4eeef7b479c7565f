"""The GPU engine on a real GPU, at full size, against the CPU engine (make test-gpu)."""

import math
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from numba import cuda

import chainscout as cs
from chainscout import engine, policies
from chainscout.engine import gpu
from trials import paths

pytestmark = pytest.mark.gpu

BUDGETS, REPLICATIONS = [7, 500, 3_000, 20_000], range(100, 100 + 2_048)
NAMES = [name for name in policies.names() if name != "static"] + ["static:weights=1/2/3"]


def terms(row, exits, squares, constants):
    return (1.0 - squares / (exits * exits) + constants[0] * abs(row[0] - row[1]) / exits,)


def index(sums, transitions, constants):
    return sums[0] / transitions


MINE = cs.Policy("mine", index, terms, constants=lambda setting: (0.5,))


def differing(problem, rule, budgets=BUDGETS, replications=REPLICATIONS, **options):
    """How many replications went another way than on the CPU: other pulls, or losses that the order of sums does not
    explain."""
    found = engine.run(problem, rule, budgets, replications, engine.Options(seed=3, engine="gpu", **options))
    expected = engine.run(problem, rule, budgets, replications, engine.Options(seed=3, engine="cpu", **options))
    same = (found[1] == expected[1]) & np.isclose(found[0], expected[0], rtol=1e-11, atol=1e-14, equal_nan=True)
    return int((~same.all(axis=(0, 2))).sum())


def contractible(out, a, b, c):
    """Contracted to one rounding, (1 + 2⁻³⁰)(1 − 2⁻³⁰) − 1 is −2⁻⁶⁰; rounded twice, it is nothing."""
    lane = cuda.grid(1)
    if lane < len(out):
        out[lane] = a[lane] * b[lane] + c[lane]


def test_products_are_rounded_by_themselves_as_on_the_cpu():
    """With another version of numba-cuda or of CUDA contraction may come back: this is where it shows."""
    device, near = gpu.arrays(), 2.0**-30
    arguments = [device.full(64, value) for value in (1.0 + near, 1.0 - near, -1.0)]
    out = device.ones(64)
    gpu.specialised_kernel(contractible, {}, np.float64).launch(2, 32, [out, *arguments])
    assert (gpu.at_home(out) == 0.0).all()
    # The same function as numba-cuda compiles it by itself: so the test can tell.
    cuda.jit(contractible)[2, 32](out, *arguments)
    assert (gpu.at_home(out) == -(near**2)).all()


def test_thousands_of_near_ties_are_broken_as_on_the_cpu():
    """Two thousand chains with a few observations each: most indices are equal but for rounding."""
    problem = cs.problems.get("dirichlet:chains=2000,states=3,seed=1")
    assert differing(problem, "ba-mc", list(range(4_000, 5_001, 50)), range(64)) == 0


@pytest.mark.parametrize("rule", [*NAMES, "scout:block=0.02", "certifier:block=0.02", MINE], ids=str)
def test_paths_are_those_of_the_cpu(rule):
    assert differing(cs.problems.get("unlike"), rule) == 0


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("ba-mc", {"batch": 8}),
        ("gafs-max", {"batch": 8}),
        ("certifier:block=0.1", {"batch": 8}),
        ("scout", {"restless": True}),
        ("certifier", {"restless": True}),
        ("scout", {"distance": "kullback-leibler", "row_weights": "stationary"}),
        ("ba-mc", {"horizon": False}),
        ("ba-mc", {"weights": [1.0, 2.0, 0.5]}),
    ],
)
def test_options(rule, options):
    assert differing(cs.problems.get("unlike"), rule, [50, 2_000], **options) == 0


@pytest.mark.parametrize("shape", ["chains=50,states=10", "chains=5,states=50", "chains=2000,states=3"])
@pytest.mark.parametrize("rule", ["ba-mc", "scout"])
def test_problems_in_device_memory(shape, rule):
    assert differing(cs.problems.get(f"dirichlet:{shape},seed=1"), rule, [5_000]) == 0


def test_counters_wider_than_sixteen_bits():
    assert differing(cs.problems.get("two-state"), "ba-mc", [70_000]) == 0


def test_single_precision_gives_the_same_three_losses():
    problem = cs.problems.get("unlike")
    single, double = (
        cs.compare(problem, ["ba-mc", "scout"], [1_000, 10_000], 200_000, engine=name, seed=seed)
        for name, seed in (("gpu:float32", 1), ("gpu", 2))  # other paths: errors are independent
    )
    for place, statistics in double.statistics.items():
        for name, statistic in statistics.items():
            other = single.statistics[place][name]
            error = math.hypot(statistic.error, other.error)
            assert abs(statistic.value - other.value) < 4.5 * error, (place, name)


def test_summaries_are_those_of_the_arrays_brought_home():
    problem = cs.problems.get("unlike")
    results = cs.compare(problem, ["ba-mc", "oracle"], [100, 2_000], 30_000, engine="gpu")
    assert not isinstance(results.held_loss, np.ndarray)
    there = results.summary(), results.differences(), results.allocation()
    assert "loss" not in results.__dict__  # nothing was fetched
    fields = (results.problem, results.policies, results.budgets, results.loss, results.pulls)
    here = cs.Results(*fields, results.targets, results.settings)
    for rows, expected in zip(there, (here.summary(), here.differences(), here.allocation()), strict=True):
        for row, other in zip(rows, expected, strict=True):
            assert row.keys() == other.keys()
            for name, value in row.items():
                same = isinstance(value, str | None) and value == other[name]
                assert same or value == pytest.approx(other[name], rel=1e-9, nan_ok=True), name


def test_other_losses_of_a_comparison_stay_there_too():
    options = {"distance": "kullback-leibler", "row_weights": "ones"}
    found, expected = (
        cs.compare(cs.problems.get("unlike"), ["scout"], [500], 1_000, engine=name, **options)
        for name in ("gpu", "cpu")
    )
    assert not isinstance(found.held_loss, np.ndarray)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-11)


def test_several_launches_and_several_threads_give_the_same(monkeypatch):
    problem = cs.problems.get("unlike")
    whole = engine.run(problem, "scout", [2_000], range(5_000), engine.Options(seed=1, engine="gpu"))
    monkeypatch.setattr(gpu.launch, "LAUNCH_LANES", 1_024)
    monkeypatch.setattr(gpu.launch, "LAUNCH_STEPS", 1)
    outcomes = {}

    def part(number):
        gpu.use(0)
        outcomes[number] = engine.run(
            problem, "scout", [2_000], range(1_000 * number, 1_000 * (number + 1)), engine.Options(seed=1, engine="gpu")
        )

    threads = [threading.Thread(target=part, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place in (0, 1):
        joined = np.concatenate([outcomes[number][place] for number in range(5)], axis=1)
        assert (joined == whole[place]).all()


def test_two_processes_share_a_device_and_give_the_same():
    """As workers of a cluster do, each with the device of its index."""
    arguments = (cs.problems.get("unlike"), ["ba-mc", "scout"], [500, 2_000], 140_000)
    one = cs.compare(*arguments, engine="gpu")
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        two = cs.compare(*arguments, engine="gpu", executor=executor)
        used = set(executor.map(device_of_this_process, range(8)))
    assert len({process for process, _ in used}) == 2
    assert {device for _, device in used} == {0}
    assert two.loss.tobytes() == one.loss.tobytes()
    assert two.pulls.tobytes() == one.pulls.tobytes()


def device_of_this_process(number):
    """Slow enough for both processes to answer."""
    time.sleep(0.2)
    return os.getpid(), cuda.get_current_device().id


def test_a_rule_that_gives_no_number_is_refused():
    rule = cs.Policy("bad", lambda sums, transitions, constants: math.nan, lambda row, n, q, c: (0.0,))
    with pytest.raises(cs.ChainscoutError, match="not a number"):
        engine.run(cs.problems.get("two-state"), rule, [50], range(64), engine.Options(seed=0, engine="gpu"))


def test_whole_paths():
    problem = cs.problems.get("unlike")
    found = paths.followed(problem, 1_000, 300, 0.05, 5, "gpu")
    expected = paths.followed(problem, 1_000, 300, 0.05, 5, "cpu")
    # How often something happened can differ by one where two sides are equal but for rounding.
    counted = [paths.RISES, paths.BELOW]
    assert np.abs(found[..., counted] - expected[..., counted]).max() <= 1
    others = [place for place in range(paths.RECORDED) if place not in counted]
    np.testing.assert_allclose(found[..., others], expected[..., others], rtol=1e-8)
