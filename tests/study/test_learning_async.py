"""``async`` sources, and waits inside a running event loop."""

import asyncio
import itertools
import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from study_checks import replayed_counts

import chainscout as cs
from chainscout.errors import Held, InputError, NothingFree, SetAsideWarning
from chainscout.sources import Factory, Source
from chainscout.study import Study


class Agent:
    """0, 1, 2, 0, … after a while; any other transition was never seen."""

    at_work = most = together = 0

    def __init__(self, seconds=0.002):
        self.state, self.seconds = -1, seconds

    async def __call__(self):
        Agent.at_work += 1
        Agent.most = max(Agent.most, Agent.at_work)
        try:
            async with asyncio.timeout(60):
                while Agent.most < Agent.together:  # so many wait side by side, however slow the machine is
                    await asyncio.sleep(0.001)
            await asyncio.sleep(self.seconds)
        finally:
            Agent.at_work -= 1
        self.state = (self.state + 1) % 3
        return self.state

    def restart(self):
        self.state = -1


@pytest.fixture(autouse=True)
def nobody_at_work():
    Agent.at_work = Agent.most = Agent.together = 0


def is_cyclic(counts):
    return (counts.transitions == counts.transitions * np.roll(np.eye(3, dtype=int), 1, axis=1)).all()


def learned(sources, budget, **options):
    options = {"states": dict.fromkeys(sources, 3), "policy": "uniform", "progress": False, **options}
    return cs.learn(sources, budget, **options)


def test_coroutine_functions_wait_side_by_side():
    names = [f"agent {number}" for number in range(12)]
    Agent.together = 12
    with learned({name: Agent(0.02) for name in names}, 120) as study:
        progress = study.progress()
        assert (progress.observations, progress.lost, progress.leases) == (120, 0, 0)
        assert Agent.most == 12
        assert all(is_cyclic(study.counts(name)) for name in names)
        assert all(study.chain(name).paths == 1 for name in names)
        replayed_counts(study, dict.fromkeys(names, 3))


def test_copies_of_an_agent_wait_side_by_side():
    Agent.together = 20
    with learned({"a": Factory(Agent)}, 100, workers=20) as study:
        assert (study.progress().observations, study.progress().lost) == (100, 0)
        assert Agent.most == 20
        assert study.chain("a").paths == 20
        assert is_cyclic(study.counts("a"))


def test_async_and_other_sources_work_in_one_call():
    numbers = itertools.cycle(range(3))
    for executor in (None, ThreadPoolExecutor(2)):
        with learned({"a": Agent(), "b": lambda: next(numbers), "c": Agent()}, 60, executor=executor) as study:
            assert study.progress().observations == 60
            assert all(is_cyclic(study.counts(name)) for name in "abc")


def test_an_async_generator_function_is_called_for_every_path():
    async def walk():
        for state in range(3):
            await asyncio.sleep(0)
            yield state

    with learned({"a": walk}, 30) as study:
        assert study.chain("a").paths == 10
        assert study.counts("a").transitions.tolist() == [[0, 10, 0], [0, 0, 10], [0, 0, 0]]
        assert study.progress().lost == 0
        assert not study.paths("a").lost


def test_an_async_iterator_that_ends_sets_its_chain_aside():
    async def states():
        for state in (0, 1, 2):
            yield state

    async def nothing():
        return
        yield

    with pytest.warns(SetAsideWarning, match="2 chains were set aside"):
        study = learned({"a": states(), "b": nothing}, 9)
    assert study.allocation() == {"a": 3, "b": 0}
    assert {why.reason for why in study.look().aside.values()} == {"the iterator has no more states"}
    assert study.progress().lost == 0


def test_an_async_source_of_ones_own():
    class Rig(Source):
        begun = 0

        async def advance(self):
            await asyncio.sleep(0.001)
            self.begun += 1
            return (self.begun - 1) % 3, self.begun % 7 == 1

        def restart(self):
            raise AssertionError("nothing went wrong")

    with learned({"a": Rig()}, 21) as study:
        assert study.chain("a").paths == 3
        assert is_cyclic(study.counts("a"))


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_exception_of_an_agent_ends_the_call_and_the_study_goes_on(folder, error):
    async def broken():
        await asyncio.sleep(0.01)
        raise error

    options = {"where": folder / "lab.db"}
    with pytest.raises(error) as caught:
        learned({"a": Agent(), "b": broken}, 60, **options)
    if error is ZeroDivisionError:
        assert caught.value.__notes__[0] == "The source of the chain 'b' raised this."
    assert Agent.at_work == 0
    with learned({"a": Agent(), "b": Agent()}, 60, **options) as study:
        study.audit()
        assert (study.progress().observations, study.progress().leases) == (60, 0)


def test_learn_in_a_running_event_loop_is_one_sentence():
    async def wrong():
        learned({"a": Agent()}, 5)

    async def right():
        return await asyncio.to_thread(learned, {"a": Agent()}, 5)

    async def called_back():
        found = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: found.set_result(_error(learned, {"a": Agent()}, 5)))
        return await found

    words = r"^learn would hold up the running event loop: write await asyncio\.to_thread\(cs\.learn, …\)$"
    with pytest.raises(InputError, match=words):
        asyncio.run(wrong())
    assert isinstance(asyncio.run(called_back()), InputError)
    assert asyncio.run(right()).progress().observations == 5


def _error(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return error


# -- leases in a running event loop


def test_a_lease_that_must_be_waited_for_in_an_event_loop_is_one_sentence():
    """Three coroutines that share one chain: who waits would keep the other from telling."""
    study = Study.create(None, {"a": 3}, 60, paths="shared")

    async def walk(name, lease):
        rng = random.Random(name)
        with study.worker(name) as worker:
            while (held := await lease(worker)) is not None:
                await asyncio.sleep(0.001)
                held.tell(rng.randrange(3))

    async def together(lease):
        await asyncio.gather(*(walk(name, lease) for name in "xyz"))

    async def wrong(worker):
        return worker.lease()

    words = r"hold up the running event loop: write await asyncio\.to_thread\(worker\.lease\)$"
    with pytest.raises(InputError, match=words):
        asyncio.run(together(wrong))
    asyncio.run(together(lambda worker: asyncio.to_thread(worker.lease)))
    assert study.progress().observations == 60


def test_a_lease_that_is_free_needs_no_thread():
    async def walk():
        with Study.create(None, {"a": 3, "b": 3}, 10) as study, study.worker("x") as worker:
            for lease in worker:
                lease.tell(0)
            return study.progress().observations

    assert asyncio.run(walk()) == 10


def test_who_has_the_only_leases_is_told_so_and_does_not_wait():
    with Study.create(None, {"a": 3}, 4, paths="shared") as study, study.worker("x") as worker:
        lease = worker.lease(steps=2)
        with pytest.raises(Held, match="the worker 'x' has the only leases of the study: it must tell them"):
            worker.lease()
        with pytest.raises(NothingFree):
            worker.lease(wait=0)
        lease.tell(0)
        lease.tell(1)
        other = study.worker("y").lease()
        with ThreadPoolExecutor(1) as pool:  # another worker's lease is worth a wait
            later = pool.submit(lambda: (time.sleep(0.05), other.tell(2)))
            assert worker.lease() is not None
            later.result()


def test_who_does_not_renew_its_leases_can_wait_for_their_end():
    with Study.create(None, {"a": 3}, 4, paths="shared") as study, study.worker("x", renews=False) as worker:
        begun = time.monotonic()
        worker.lease(0.2, steps=4)
        assert worker.lease() is not None
        assert time.monotonic() - begun > 0.15
