"""``learn`` beside another worker on the same study: nothing is counted twice, and nobody is blamed."""

import itertools
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from learning_sources import CHAIN, threads
from study_checks import replayed_counts

import chainscout as cs
from chainscout.errors import SourceEnded, SourceError
from chainscout.random import Walk
from chainscout.sources import Program, Source
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


def told_by_another(where, states):
    def tell():
        with Study.open(where) as other:
            other.restart("a")
            other.tell_many([("a", state) for state in states])

    return tell


def test_another_worker_that_is_faster_leaves_no_false_transition(folder):
    """While a source is at work, the chain is advanced elsewhere: the observation that comes second is not counted."""
    where = folder / "study.db"
    Study.create(where, {"a": 3}, 40).close()
    source = Cycle(told_by_another(where, [0, 1, 2, 0]))
    with cs.learn({"a": source}, where=where, progress=False) as study:
        assert is_cyclic(study.counts("a"))
        assert study.progress().observations == 40
        assert study.chain("a").paths == 3
        assert source.calls == 40 - 4 + 1  # one of its states came too late
        assert study.progress().lost == 1
        assert "1 observation was lost" in " ".join(study.certificate().notes)
        replayed_counts(study, {"a": 3})


def test_a_worker_that_is_promised_the_rest_is_no_reason_to_fail(folder):
    """While a source is at work, another worker leases all that is left: the observation is lost, nothing else is."""
    where = folder / "study.db"
    Study.create(where, {"a": 3, "b": 3, "c": 3}, 40, "uniform").close()

    def lease_the_rest():
        with Study.open(where) as other:
            with other.lease("other") as best:
                assert best.chain == "b"
                rest = other.lease("other", 0.3, steps=100)  # it dies, and what it was promised is free again
            (last,) = {"a", "c"} - {rest.chain}
            other.restart(last)
            other.tell(last, 0)
            assert other.progress().observations + rest.steps == 40

    sources = {"a": Cycle(), "b": Cycle(lease_the_rest), "c": Cycle()}
    with cs.learn(sources, where=where, progress=False) as study:
        assert study.progress().used == 40
        assert all(is_cyclic(study.counts(name)) for name in "abc")
        # A state of b found the budget promised, and one of the chain that was told elsewhere came too late.
        assert sum(source.calls for source in sources.values()) == 40 - 1 + 2
        # That one was the state that had been told in its place: it is taken for the same observation.
        lost = [
            (event.kind, event.chain) for event in study.events() if event.kind in ("observation lost", "lease expired")
        ]
        assert lost == [("observation lost", "b"), ("lease expired", "c")]
        assert study.progress().lost == 2
        replayed_counts(study, {"a": 3, "b": 3, "c": 3})


def test_another_worker_between_two_leases_leaves_no_false_transition(folder):
    """While one chain's source is at work, the other chain is advanced elsewhere."""
    where = folder / "study.db"
    Study.create(where, {"a": 3, "b": 3}, 60, "uniform").close()
    sources = {"a": Cycle(), "b": Cycle(told_by_another(where, [0, 1, 2, 0]))}
    with ThreadPoolExecutor(1) as pool:
        study = cs.learn(sources, where=where, executor=pool, progress=False)
    assert study.progress().observations == 60
    assert is_cyclic(study.counts("a"))
    assert study.chain("a").paths == 3
    replayed_counts(study, {"a": 3, "b": 3})
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
    # Its state came too late and is lost, but not as that of a program that failed.
    assert not any(event.detail["lost"] for event in study.events() if event.kind == "restarted")
    assert study.progress().lost == 1
    assert is_cyclic(study.counts("a"))
    assert study.progress().observations == 30
    study.close()


def lease_for_a_while(where):
    """Somebody else takes the chain that would be asked for, and gives it back a moment later."""
    with Study.open(where) as other:
        lease = other.lease("other")

    def give_back():
        with Study.open(where) as other:
            other.give_back(lease.chain, lease.token)

    threading.Timer(0.1, give_back).start()


def overtaken(where, source, *calls):
    """The source; while it is at work at its calls of these numbers, somebody else leases the chain for a while."""

    class Overtaken(type(source)):
        calls = 0

        def advance(self):
            self.calls += 1
            if self.calls in numbers:
                lease_for_a_while(where)
            return super().advance()

    numbers = calls
    source.__class__ = Overtaken
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
def test_a_lease_taken_while_a_repeatable_source_is_at_work_costs_no_state(folder, sources, steps):
    where = folder / "study.db"
    Study.create(where, {"a": 3}, 30).close()
    (source,) = sources().values()
    with cs.learn({"a": overtaken(where, source, *steps)}, where=where, progress=False) as study:
        (again,) = sources().values()
        assert [line.state for line in study.log("a")] == [again.advance()[0] for _ in range(30)]
        assert study.chain("a").paths == 1
        assert study.progress().lost == 0  # the state was given again
        replayed_counts(study, {"a": 3})


def test_a_lease_taken_while_a_program_is_at_work_is_not_its_fault(folder):
    where, script = folder / "study.db", folder / "cycle.py"
    script.write_text(
        "import sys\nstate = -1\nfor line in sys.stdin:\n"
        "    state = 0 if line.strip() == 'restart' else (state + 1) % 3\n    print(state, flush=True)\n"
    )

    Study.create(where, {"a": 3}, 30).close()
    source = overtaken(where, Program([sys.executable, "-S", str(script)], timeout=30.0), 5)
    with cs.learn({"a": source}, where=where, progress=False) as study:
        assert is_cyclic(study.counts("a"))
        assert study.progress().observations == 30
        assert source.calls == 31
        assert not any(event.detail["lost"] for event in study.events() if event.kind == "restarted")
        assert study.progress().lost == 1


@pytest.mark.parametrize("error", [SourceEnded("that was all"), SourceError("it died")], ids=["ended", "failed"])
def test_a_lease_taken_while_a_source_ends_or_fails_is_no_reason_to_fail(folder, error):
    """Who holds the chain goes on with it; the source is asked again when it is free."""
    where = folder / "study.db"
    Study.create(where, {"a": 2}, 20).close()
    with cs.learn({"a": overtaken(where, Failing(error), 3)}, where=where, progress=False) as study:
        assert (study.progress().observations, study.progress().aside) == (20, 0)
        assert study.progress().lost == isinstance(error, SourceError)  # one that ends has made no observation
        assert study.chain("a").paths == 1  # the other's path was not broken
        replayed_counts(study, {"a": 2})


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
def test_two_at_once_on_the_same_simulated_chains_are_one(folder, executor):
    """Each has the same paths: together they tell every state of them once."""
    where, chains = folder / "study.db", {"a": CHAIN, "b": CHAIN, "c": CHAIN}
    Study.create(where, dict.fromkeys(chains, 3), 300).close()

    def learn():
        with threads(executor) as pool:
            cs.learn(chains, where=where, seed=3, executor=pool, progress=False).close()

    with ThreadPoolExecutor(2) as pair:
        for done in [pair.submit(learn) for _ in range(2)]:
            done.result()
    with Study.open(where) as study:
        assert (study.progress().observations, study.progress().lost) == (300, 0)
        for number, name in enumerate(chains):
            path = [line.state for line in study.log(name)]
            assert path == list(itertools.islice(Walk(CHAIN, number, seed=3), len(path)))
            assert study.chain(name).paths == 1
