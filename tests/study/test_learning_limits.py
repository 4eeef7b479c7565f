"""``step_limit``: a step that takes too long is given up; its slot is a hole, and the source begins anew."""

import asyncio
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from learning_sources import CHAIN
from study_checks import replayed_counts

import chainscout as cs
from chainscout.errors import InputError, SetAsideWarning
from chainscout.sources import Factory, simulated

#: A step may take so many seconds, and the slow ones take SLOW.
LIMIT, SLOW = 0.2, 0.6


class Cycle:
    """0, 1, 2, 0, … from its start: any other transition was never seen. Its steps of these numbers are slow."""

    def __init__(self, *slow, seconds=0.0):
        self.state, self.calls, self.slow, self.begun, self.seconds = -1, 0, slow, 0, seconds

    def __call__(self):
        time.sleep(SLOW if self.is_slow() else self.seconds)
        return self.move()

    def is_slow(self):
        self.calls += 1
        return self.calls in self.slow

    def move(self):
        self.state = (self.state + 1) % 3
        return self.state

    def restart(self):
        self.state, self.begun = -1, self.begun + 1


class Agent(Cycle):
    cancelled = 0

    async def __call__(self):
        if self.is_slow():
            try:
                await asyncio.sleep(SLOW)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return self.move()


def is_cyclic(counts):
    return (counts.transitions == counts.transitions * np.roll(np.eye(3, dtype=int), 1, axis=1)).all()


def learned(sources, budget, **options):
    options = {"states": dict.fromkeys(sources, 3), "policy": "uniform", "progress": False, **options}
    return cs.learn(sources, budget, step_limit=LIMIT, **options)


def threads():
    return ThreadPoolExecutor(4)


@pytest.mark.parametrize("pool", [nullcontext, threads], ids=["alone", "threads"])
def test_a_step_that_takes_too_long_is_a_hole_and_the_others_go_on(folder, pool):
    """The step that was given up still moves the process. So no other step is made before it has ended."""
    sources = {"a": Cycle(4, 9), "b": Cycle(seconds=0.05)}
    with pool() as executor, learned(sources, 60, executor=executor, where=folder / "study.db") as study:
        progress = study.progress()
        assert (progress.observations, progress.lost, progress.leases, progress.aside) == (60, 2, 0, 0)
        assert (study.paths("a").lost, study.chain("a").paths) == (2, 3)
        assert sources["a"].begun == 2
        assert study.chain("b").paths == 1
        assert all(is_cyclic(study.counts(name)) for name in "ab")
        replayed_counts(study, {"a": 3, "b": 3})
        study.audit()


def test_an_agent_that_takes_too_long_is_cancelled():
    sources = {"a": Agent(4, 9), "b": Agent()}
    begun = time.monotonic()
    with learned(sources, 40) as study:
        assert time.monotonic() - begun < 2 * SLOW
        assert (study.progress().observations, study.progress().lost) == (40, 2)
        assert (sources["a"].cancelled, sources["a"].begun, study.chain("a").paths) == (2, 2, 3)
        assert all(is_cyclic(study.counts(name)) for name in "ab")


class Sleeper(Cycle):
    """Its process sleeps once: a mark in a folder says that it did."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def is_slow(self):
        if self.state != 1:
            return False
        try:
            os.mkdir(self.folder)
        except FileExistsError:
            return False
        return True


def test_a_step_in_another_process_that_takes_too_long_is_left_there(tmp_path):
    with ProcessPoolExecutor(2) as executor:
        executor.submit(int).result()  # its processes are there
        study = learned({"a": Sleeper(str(tmp_path / "slept")), "b": Cycle()}, 40, executor=executor, workers=2)
    assert (study.progress().observations, study.progress().lost) == (40, 1)
    assert study.chain("a").paths == 2
    assert is_cyclic(study.counts("a"))


def test_a_factory_puts_another_source_in_the_place_of_a_slow_one():
    made = []

    def make():
        made.append(Cycle(*([3] if len(made) < 2 else [])))
        return made[-1]

    with threads() as executor, learned({"a": Factory(make)}, 60, executor=executor, workers=2) as study:
        assert (study.progress().observations, study.progress().lost) == (60, 2)
        assert (len(made), study.chain("a").paths) == (4, 4)
        assert is_cyclic(study.counts("a"))


def test_a_step_that_never_ends_sets_its_chain_aside():
    def stuck():
        time.sleep(100 * SLOW)

    words = r"'a': a step of its source took longer than 0\.2 seconds"
    with pytest.warns(SetAsideWarning, match=words):
        study = learned({"a": stuck}, 20)
    assert study.stop_reason == "every chain was set aside"
    assert (study.progress().lost, study.progress().leases) == (1, 0)


def test_a_source_that_repeats_itself_is_as_it_would_be_without_a_limit():
    options = {"seed": 3, "progress": False}
    with (
        cs.learn({"a": CHAIN}, 50, step_limit="10s", **options) as study,
        cs.learn({"a": CHAIN}, 50, **options) as other,
    ):
        assert [line.state for line in study.log()] == [line.state for line in other.log()]
    assert not simulated({"a": CHAIN})["a"].is_awaited


@pytest.mark.parametrize("limit", [0, -1, "soon", float("nan")])
def test_no_limit_is_refused_before_anything_is_made(folder, limit):
    with pytest.raises(InputError, match="step_limit"):
        cs.learn({"a": CHAIN}, 50, where=folder / "study.db", step_limit=limit, progress=False)
    assert not list(folder.iterdir())
