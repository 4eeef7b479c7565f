"""``learn`` beside other programs on the same study: nothing is counted twice, and nobody is blamed."""

import itertools
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from learning_sources import CHAIN, RECORDED, recorded
from study_checks import replayed_counts
from study_places import set_clock

import chainscout as cs
from chainscout.errors import InputError, NothingFree, SourceError
from chainscout.journal.opening import exists
from chainscout.random import Walk
from chainscout.sources import Environment, Place, Program, Source
from chainscout.study import Study


class Cycle:
    """0, 1, 2, 0, … from its start: any other transition was never seen. ``meanwhile`` happens in its sixth step."""

    def __init__(self, meanwhile=None):
        self.state, self.calls, self.meanwhile = -1, 0, meanwhile

    def __call__(self):
        self.calls += 1
        if self.calls == 6 and self.meanwhile is not None:
            self.meanwhile()
        self.state = (self.state + 1) % 3
        return self.state

    def restart(self):
        self.state = -1


def is_cyclic(counts):
    return (counts.transitions == counts.transitions * np.roll(np.eye(3, dtype=int), 1, axis=1)).all()


def told_by_another(where, states, continuing=False):
    def tell():
        with Study.open(where, continuing=continuing) as other:
            other.tell_many([("a", state) for state in states])

    return tell


@pytest.mark.parametrize("continuing", [False, True])
def test_another_process_on_the_same_chain_leaves_no_false_transition(folder, continuing):
    """While a source is at work, the chain is advanced elsewhere, on another path or (as is said there) on the same."""
    where = folder / "study.db"
    Study.create(where, {"a": 3}, 40).close()
    source = Cycle(told_by_another(where, [2, 0, 1, 2], continuing))
    with cs.learn({"a": source}, where=where, progress=False) as study:
        assert is_cyclic(study.counts("a"))
        assert study.progress().observations == 40
        assert study.chain("a").paths == 2
        assert source.calls == 40 - 4  # what it saw is the beginning of another path, and is not lost
        assert study.progress().lost == 0
        replayed_counts(study, {"a": 3})


def test_a_worker_that_is_promised_the_rest_is_no_reason_to_fail(folder):
    """While a source is at work, another worker leases all that is left: the source's own observation is not part."""
    where = folder / "study.db"
    Study.create(where, {"a": 3, "b": 3, "c": 3}, 40, "uniform").close()

    def lease_the_rest():
        with Study.open(where) as other:
            rest = other.worker("other", renews=False).lease(0.3, steps=100)  # the worker dies
            assert other.progress().observations + rest.steps == 40 - 1

    sources = {"a": Cycle(), "b": Cycle(lease_the_rest), "c": Cycle()}
    with cs.learn(sources, where=where, progress=False) as study:
        assert study.progress().used == 40
        assert all(is_cyclic(study.counts(name)) for name in "abc")
        assert sum(source.calls for source in sources.values()) == 40
        assert study.progress().lost == 1  # what the other worker may have seen
        assert "1 observation was lost" in " ".join(study.certificate().notes)
        replayed_counts(study, {"a": 3, "b": 3, "c": 3})


def test_another_process_cannot_spend_what_a_source_at_work_costs(folder):
    """While a source is at work, a cheaper chain is told elsewhere, as far as the rest of the budget goes."""
    where = folder / "study.db"
    Study.create(where, {"a": 3, "b": 3}, 30, "uniform", costs={"a": 5, "b": 1}).close()

    def spend():
        with Study.open(where) as other:
            rest = int(30 - other.progress().used - 5)
            with pytest.raises(NothingFree, match="costs 1 more than is left of the budget, less what is promised"):
                other.tell_many([("b", 0)] * (rest + 1))
            other.tell_many([("b", 0)] * rest)

    source = Cycle()
    source.calls, source.meanwhile = 4, spend  # in its second step
    with cs.learn({"a": source, "b": lambda: 0}, where=where, progress=False) as study:
        assert study.progress().used == 30
        assert study.progress().lost == 0
        replayed_counts(study, {"a": 3, "b": 3})


def test_another_process_between_two_leases_leaves_no_false_transition(folder):
    """While one chain's source is at work, the other chain is advanced elsewhere."""
    where = folder / "study.db"
    Study.create(where, {"a": 3, "b": 3}, 60, "uniform").close()
    sources = {"a": Cycle(), "b": Cycle(told_by_another(where, [0, 1, 2, 0]))}
    with ThreadPoolExecutor(1) as pool:
        study = cs.learn(sources, where=where, executor=pool, progress=False)
    assert (study.progress().observations, study.progress().lost) == (60, 0)
    assert is_cyclic(study.counts("a"))
    assert study.chain("a").paths == 2
    replayed_counts(study, {"a": 3, "b": 3})
    study.close()


def test_a_lease_that_was_lost_is_no_reason_to_fail(folder):
    """The study's clock has passed the end of the lease while the source was at work."""
    where = folder / "study.db"
    Study.create(where, {"a": 3}, 40).close()

    def expire():
        with Study.open(where) as other:
            (line,) = other.look().leases
            set_clock(other, line.expires + 1)
            with other.worker("other") as worker:
                worker.lease()

    with ThreadPoolExecutor(1) as pool:
        study = cs.learn({"a": Cycle(expire)}, where=where, executor=pool, progress=False)
    assert (study.progress().observations, study.progress().lost, study.progress().leases) == (40, 1, 0)
    assert is_cyclic(study.counts("a"))
    assert study.chain("a").paths == 2
    replayed_counts(study, {"a": 3})
    study.close()


def test_a_program_whose_chain_was_advanced_elsewhere_is_not_to_blame(folder):
    where, script, flag = folder / "study.db", folder / "cycle.py", folder / "told"
    script.write_text(
        "import os, sys, time\nstate = -1\nfor number, line in enumerate(sys.stdin):\n"
        f"    if number == 5:\n        open({str(flag)!r} + '.wanted', 'w').close()\n"
        f"        while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"
        "    state = 0 if line.strip() == 'restart' else (state + 1) % 3\n    print(state, flush=True)\n"
    )
    Study.create(where, {"a": 3}, 30).close()

    def meanwhile():
        while not flag.with_suffix(".wanted").exists():
            time.sleep(0.01)
        told_by_another(where, [0, 1, 2, 0])()
        flag.touch()

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(meanwhile)
        source = Program([sys.executable, "-S", str(script)], timeout=30.0)
        study = cs.learn({"a": source}, where=where, progress=False)
        other.result()
    assert study.progress().lost == 0
    assert study.chain("a").paths == 2
    assert is_cyclic(study.counts("a"))
    assert study.progress().observations == 30
    study.close()


# -- one process a chain: a worker that holds it keeps the others away


def watched(where, source, *calls):
    """The source; while it is at work at its calls of these numbers, somebody else tries to take the chain."""

    class Watched(type(source)):
        calls = 0

        def advance(self):
            self.calls += 1
            if self.calls in numbers:
                with Study.open(where) as other, pytest.raises(NothingFree, match="1 lease is held"):
                    other.worker("other", renews=False).lease(wait=0)
            return super().advance()

    numbers = calls
    source.__class__ = Watched
    return source


class Failing(Source):
    """Gives 0, 1, 0, … and fails at its third state."""

    def __init__(self, error):
        self.error, self.given = error, 0

    def advance(self):
        self.given += 1
        if self.given == 3:
            raise self.error
        return self.given % 2, self.given == 1

    def restart(self):
        pass


@pytest.mark.parametrize("steps", [(1,), (4, 9)])
def test_nobody_else_holds_a_chain_while_its_source_is_at_work(folder, sources, steps):
    where = folder / "study.db"
    Study.create(where, {"a": 3}, 30, paths="shared").close()
    (source,) = sources().values()
    with cs.learn({"a": watched(where, source, *steps)}, where=where, progress=False) as study:
        (again,) = sources().values()
        lines = list(study.log("a"))
        again.resume(Place(lines[0].path, 1, None, 0))
        assert [line.state for line in lines] == [again.advance()[0] for _ in range(30)]
        assert study.chain("a").paths == 1
        assert study.progress().lost == 0
        replayed_counts(study, {"a": 3})


def test_nobody_else_holds_a_chain_while_its_program_is_at_work(folder):
    where, script = folder / "study.db", folder / "cycle.py"
    script.write_text(
        "import sys\nstate = -1\nfor line in sys.stdin:\n"
        "    state = 0 if line.strip() == 'restart' else (state + 1) % 3\n    print(state, flush=True)\n"
    )

    Study.create(where, {"a": 3}, 30, paths="shared").close()
    source = watched(where, Program([sys.executable, "-S", str(script)], timeout=30.0), 5)
    with cs.learn({"a": source}, where=where, progress=False) as study:
        assert is_cyclic(study.counts("a"))
        assert study.progress().observations == 30
        assert source.calls == 30
        assert study.progress().lost == 0


def test_a_source_of_a_shared_chain_that_fails_ends_the_path(folder):
    where = folder / "study.db"
    Study.create(where, {"a": 2}, 20, paths="shared").close()
    with cs.learn({"a": watched(where, Failing(SourceError("it died")), 3)}, where=where, progress=False) as study:
        assert (study.progress().observations, study.progress().aside, study.progress().lost) == (20, 0, 1)
        assert study.chain("a").paths == 2
        replayed_counts(study, {"a": 2})


@pytest.mark.parametrize("beside", ["learn", "worker"])
def test_learning_holds_a_process_from_before_it_moves_until_it_is_told(folder, beside):
    """Two programs at one physical process, which takes a while: no transition is counted that it did not make."""
    where, rig = folder / "study.db", Cycle()
    Study.create(where, {"a": 3}, 60, paths="shared").close()

    def move():
        state = rig()
        time.sleep(0.002)  # time for the other one to come between
        return state

    def learn():
        cs.learn({"a": move}, where=where, progress=False).close()

    def work():
        with Study.open(where) as study, study.worker("w") as worker:
            while lease := worker.lease():
                lease.tell(move())

    with ThreadPoolExecutor(2) as pair:
        for done in [pair.submit(learn), pair.submit(learn if beside == "learn" else work)]:
            done.result()
    with Study.open(where) as study:
        assert (study.progress().observations, study.progress().lost) == (60, 0)
        assert study.chain("a").paths <= 2  # a program's source begins once
        assert is_cyclic(study.counts("a"))


def test_two_programs_take_turns_on_one_process(folder):
    """Shared paths: the chain's one process goes on, whoever asks it for its next state."""
    where, rig = folder / "study.db", Cycle()
    Study.create(where, {"a": 3}, 60, paths="shared").close()

    def learn():
        with ThreadPoolExecutor(1) as pool:
            cs.learn({"a": lambda: rig()}, where=where, executor=pool, progress=False).close()

    with ThreadPoolExecutor(2) as pair:
        for done in [pair.submit(learn) for _ in range(2)]:
            done.result()
    with Study.open(where) as study:
        assert (study.progress().observations, study.progress().lost, study.progress().aside) == (60, 0, 0)
        assert study.chain("a").paths <= 2  # each program's source begins once
        assert is_cyclic(study.counts("a"))


# -- the same sources in two programs at once


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
def test_two_at_once_on_the_same_simulated_chains_never_repeat_each_other(folder, executor):
    """Each path has a stream of its own: together they tell every draw of it once."""
    where, chains = folder / "study.db", {"a": CHAIN, "b": CHAIN, "c": CHAIN}
    Study.create(where, dict.fromkeys(chains, 3), 300).close()
    _at_once(2, lambda: cs.learn(chains, where=where, seed=3, **options(executor)).close())
    with Study.open(where) as study:
        assert (study.progress().observations, study.progress().lost) == (300, 0)
        for number, name in enumerate(chains):
            paths = {}
            for line in study.log(name):
                paths.setdefault(line.path, []).append(line.state)
            assert len(paths) == study.chain(name).paths
            for path, states in paths.items():
                walk = Walk(CHAIN, number, seed=3)
                walk.take(path)
                assert states == list(itertools.islice(walk, len(states)))
        replayed_counts(study, dict.fromkeys(chains, 3))


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
def test_two_at_once_on_the_same_recording_tell_each_state_once(folder, executor):
    where = folder / "study.db"
    Study.create(where, {"a": 3}, 150).close()
    _at_once(2, lambda: cs.learn(recorded(), where=where, **options(executor)).close())
    with Study.open(where) as study:
        assert [line.state for line in study.log("a")] == RECORDED[:150]
        assert (study.progress().observations, study.progress().lost, study.progress().aside) == (150, 0, 0)
        replayed_counts(study, {"a": 3})


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
def test_two_at_once_on_the_same_seeded_environment_see_other_episodes(folder, executor):
    where = folder / "study.db"
    Study.create(where, {"a": 16}, 400).close()
    _at_once(2, lambda: cs.learn({"a": Environment("FrozenLake-v1", seed=3)}, where=where, **options(executor)).close())
    with Study.open(where) as study:
        assert (study.progress().observations, study.progress().lost) == (400, 0)
        assert not any("repeat" in note for note in study.certificate().notes)
        replayed_counts(study, {"a": 16})


def options(executor):
    return {"progress": False, "executor": ThreadPoolExecutor(2) if executor else None}


def _at_once(number, learn):
    with ThreadPoolExecutor(number) as pool:
        for done in [pool.submit(learn) for _ in range(number)]:
            done.result()


# -- a study that does not exist yet


def _learn_when_told(where, flag):
    while not flag.exists():
        time.sleep(0.001)
    with cs.learn({"a": CHAIN, "b": CHAIN}, 200, where=where, seed=3, progress=False) as study:
        return study.progress().budget


def test_programs_that_make_one_study_at_once_join_it(where, folder):
    flag = folder / "go"
    with ProcessPoolExecutor(4, multiprocessing.get_context("forkserver")) as pool:
        done = [pool.submit(_learn_when_told, where, flag) for _ in range(4)]
        time.sleep(1)
        flag.touch()
        assert [each.result() for each in done] == [200] * 4
    with Study.open(where) as study:
        assert study.progress().observations == 200
        replayed_counts(study, {"a": 3, "b": 3})
        study.audit()


def test_who_loses_the_race_of_creation_goes_on_with_the_study(where, monkeypatch):
    cs.learn({"a": CHAIN}, 50, where=where, progress=False).close()
    looks = itertools.count()
    monkeypatch.setattr(
        sys.modules["chainscout.learning.learn"], "exists", lambda place: next(looks) > 0 and exists(place)
    )
    with cs.learn({"a": CHAIN}, 80, where=where, progress=False) as study:
        assert study.progress().observations == 80
        assert study.chain("a").paths == 1
    looks = itertools.count()
    with pytest.raises(InputError, match="created with the policy scout"):
        cs.learn({"a": CHAIN}, 80, where=where, policy="uniform", progress=False)
