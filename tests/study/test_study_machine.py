"""The laws of a study, whatever several walkers do with two open studies of one journal, in any order."""

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from study_checks import check, walked_paths
from study_places import set_clock
from study_rules import BLOCKS, FLOOR, RULE

from chainscout.errors import Held, LeaseLost, NothingFree, OutOfStep, OverBudget, StudyFinished
from chainscout.study import Lease, Step, Study, Worker
from chainscout.study.keeper import Keeper
from chainscout.study.snapshot import packed_state

pytestmark = pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")

STATES = {"a": 2, "b": 3, "c": 1}
BUDGET = 60
names = st.sampled_from(sorted(STATES))
#: Which of the two open studies; and whether another thread than the first one calls it.
studies = st.integers(0, 1)
threads = st.booleans()
#: Two of the workers, one of each open study, have the same name.
WORKERS = (("w0", 0), ("w1", 0), ("w2", 1), ("w0", 1))
workers = st.sampled_from(range(len(WORKERS)))


@dataclass(eq=False)
class Hold:
    """A lease, as its worker knows it."""

    lease: Lease
    until: float


class Machine(RuleBasedStateMachine):
    """Keeps what was acknowledged: nothing else may be in the study, and nothing of it may be missing."""

    def place(self) -> Any:
        raise NotImplementedError

    @initialize(policy=st.sampled_from([RULE, BLOCKS, FLOOR]), paths=st.sampled_from(["own", "own", "shared"]))
    def begin(self, policy: Any, paths: str) -> None:
        self.policy, self.shared, self.where = policy, paths == "shared", self.place()
        self.budget = BUDGET
        first = Study.create(self.where, STATES, budget=BUDGET, policy=policy, paths=paths)
        self.studies = [first, first]
        self.now = 0.0
        self.studies[1] = self.opened(1, continuing=False)
        self.pools = [ThreadPoolExecutor(1) for _ in self.studies]
        self.hands = [self.worker(number) for number in range(len(WORKERS))]
        self.holds: list[Hold] = []
        self.gone: list[Hold] = []
        #: (chain, path) → step → state; and key → where its observation is.
        self.told: dict[tuple[str, int], dict[int, int]] = {}
        self.keys: dict[str, tuple[str, int, int]] = {}
        self.wait(0.0)

    def opened(self, number: int, *, continuing: bool) -> Study:
        """The study opened again; in memory by another object that shares the journal."""
        if self.where is None:
            return Study(Keeper(self.studies[1 - number]._keeper.journal, self.policy), continuing=continuing)
        found = Study.open(self.where, self.policy, continuing=continuing)
        set_clock(found, self.now)
        return found

    def worker(self, number: int) -> Worker:
        name, study = WORKERS[number]
        return self.studies[study].worker(name, renews=False)

    def call(self, number: int, thread: bool, call: Callable[[Study], Any]) -> Any:
        study = self.studies[number]
        return self.pools[number].submit(call, study).result() if thread else call(study)

    def changes_nothing(self, number: int, thread: bool, call: Callable[[Study], Any], *refusals: type) -> Any:
        """What the call returns; None if it is refused. Then the state is what it was."""
        before = packed_state(self.studies[number]._keeper.state())
        try:
            return self.call(number, thread, call)
        except refusals:
            assert packed_state(self.studies[number]._keeper.state()) == before
            return None

    def acknowledge(self, name: str, state: int, path: int, step: int) -> None:
        assert self.told.setdefault((name, path), {}).setdefault(step, state) == state

    # -- plain tells

    @rule(number=studies, thread=threads, data=st.data(), asks=st.booleans(), times=st.integers(1, 4))
    def tell(self, number: int, thread: bool, data: Any, asks: bool, times: int) -> None:
        for _ in range(times):
            self.tell_once(number, thread, data, asks)

    def tell_once(self, number: int, thread: bool, data: Any, asks: bool) -> None:
        name = data.draw(names)
        if asks:
            try:
                name = self.studies[number].ask()
            except (StudyFinished, NothingFree):
                return
            assert self.studies[1 - number].ask() == name
        state = data.draw(st.integers(0, STATES[name] - 1))
        how = data.draw(st.sampled_from([{}, {}, {}, {"begin": True}, {"ends": True}, {"key": f"k{len(self.keys)}"}]))
        refusals = Held, StudyFinished, NothingFree, OverBudget, OutOfStep
        found = self.changes_nothing(number, thread, lambda study: study.tell(name, state, **how), *refusals)
        if found is None:
            return
        assert not self.shared
        place = Step(found.path, found.step - 1)
        assert place.step not in self.told.get((name, place.path), {})
        self.acknowledge(name, state, *place)
        if "key" in how:
            self.keys[how["key"]] = name, state, place.path

    @rule(number=studies, thread=threads, batch=st.lists(names, min_size=1, max_size=5), data=st.data())
    def tell_many(self, number: int, thread: bool, batch: list[str], data: Any) -> None:
        pairs = [(name, data.draw(st.integers(0, STATES[name] - 1))) for name in batch]
        before = {name: sum(len(steps) for (chain, _), steps in self.told.items() if chain == name) for name in STATES}
        refusals = Held, StudyFinished, NothingFree, OverBudget
        self.changes_nothing(number, thread, lambda study: study.tell_many(pairs), *refusals)
        after = self.studies[number].allocation()
        if after == before:
            return
        for name in dict.fromkeys(batch):
            own = [state for chain, state in pairs if chain == name]
            place = self.call(number, thread, lambda study, name=name: study.chain(name))
            for step, state in enumerate(own, place.step - len(own)):
                self.acknowledge(name, state, place.path, step)

    @precondition(lambda self: self.told)
    @rule(number=studies, thread=threads, data=st.data())
    def tell_again(self, number: int, thread: bool, data: Any) -> None:
        """A retry after a lost acknowledgement, of any step, by somebody who may be elsewhere by now."""
        name, path = data.draw(st.sampled_from(sorted(self.told)))
        step = data.draw(st.sampled_from(sorted(self.told[name, path])))
        state = self.told[name, path][step]
        before = self.studies[number].progress().observations
        retry = lambda study: study.tell(name, state, path=path, step=step)  # noqa: E731
        self.changes_nothing(number, thread, retry, OutOfStep, Held)
        other, after = ((state + 1) % STATES[name], step) if STATES[name] > 1 else (state, step + 10**6)
        with pytest.raises((OutOfStep, Held)):
            self.call(number, thread, lambda study: study.tell(name, other, path=path, step=after))
        assert self.studies[number].progress().observations == before

    @precondition(lambda self: self.keys)
    @rule(number=studies, thread=threads, data=st.data())
    def tell_key_again(self, number: int, thread: bool, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(self.keys)))
        name, state, path = self.keys[key]
        assert self.call(number, thread, lambda study: study.tell(name, state, key=key)).path == path

    @rule(number=studies, thread=threads, name=names)
    def restart(self, number: int, thread: bool, name: str) -> None:
        self.changes_nothing(number, thread, lambda study: study.restart(name), Held)

    # -- leases

    @rule(
        number=workers, seconds=st.sampled_from([1.0, 5.0]), steps=st.integers(1, 3), continuing=st.booleans(),
        chain=st.one_of(st.none(), names),
    )  # fmt: skip
    def lease(self, number: int, seconds: float, steps: int, continuing: bool, chain: str | None) -> None:
        hand = self.hands[number]
        try:
            lease = hand.lease(seconds, steps=steps, wait=0, continuing=continuing, chain=chain)
        except (NothingFree, Held):
            return
        if lease is None:
            return
        assert chain in (None, lease.chain)
        states = self.told.get((lease.chain, lease.path), {})
        assert lease.step == len(states) + 1
        assert lease.state == states.get(len(states))
        self.holds.append(Hold(lease, self.now + seconds))

    def held(self, data: Any) -> Hold:
        found: Hold = data.draw(st.sampled_from(self.holds))
        return found

    def drop(self, hold: Hold) -> None:
        self.holds.remove(hold)
        self.gone.append(hold)

    @precondition(lambda self: self.holds)
    @rule(data=st.data(), number=studies, follows=st.booleans(), times=st.integers(1, 4))
    def tell_leased(self, data: Any, number: int, follows: bool, times: int) -> None:
        for _ in range(times):
            if self.holds:
                self.tell_leased_once(self.held(data), data, number, follows)

    def tell_leased_once(self, hold: Hold, data: Any, number: int, follows: bool) -> None:
        lease, until = hold.lease, hold.until
        state = data.draw(st.integers(0, STATES[lease.chain] - 1))
        path, step, token = lease.path, lease.step, lease.token
        if until <= self.now:
            with pytest.raises(LeaseLost):
                lease.tell(state)
            self.drop(hold)
            return
        following = lease.tell_and_lease(state) if follows else lease.tell(state)
        self.acknowledge(lease.chain, state, path, step)
        self.studies[number].tell(lease.chain, state, path=path, step=step, token=token)  # a retry, from anywhere
        if isinstance(following, Lease):
            self.holds.append(Hold(following, self.now + lease.seconds))
        if lease.steps == 0:
            self.holds.remove(hold)

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def tell_late(self, data: Any) -> None:
        hold = data.draw(st.sampled_from(self.gone))
        lease = hold.lease
        state = data.draw(st.integers(0, STATES[lease.chain] - 1))
        path, step = lease.path, lease.step
        try:
            lease.tell(state, late=True)
        except LeaseLost:
            return
        self.acknowledge(lease.chain, state, path, step)

    @precondition(lambda self: self.holds)
    @rule(data=st.data(), lost=st.booleans(), how=st.sampled_from(["restart", "give back", "abandon"]))
    def end(self, data: Any, lost: bool, how: str) -> None:
        hold = self.held(data)
        calls = {"restart": lambda: hold.lease.restart(lost=lost), "give back": hold.lease.give_back}
        call = calls.get(how, hold.lease.abandon)
        if hold.until <= self.now:
            with pytest.raises(LeaseLost):
                call()
            self.drop(hold)
            return
        call()
        if how != "restart":
            self.holds.remove(hold)

    # -- time, processes and chains

    @rule(seconds=st.sampled_from([0.5, 2.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for study in self.studies:
            set_clock(study, self.now)

    @rule(number=workers)
    def another_worker(self, number: int) -> None:
        """Another process with the same name. The leases of the one before it go on until they run out."""
        self.hands[number] = self.worker(number)

    @rule(number=workers)
    def close_worker(self, number: int) -> None:
        hand = self.hands[number]
        self.holds = [hold for hold in self.holds if hold.lease not in hand._leases]
        hand.close()
        self.hands[number] = self.worker(number)

    @rule(number=studies, continuing=st.booleans(), orderly=st.booleans())
    def reopen(self, number: int, continuing: bool, orderly: bool) -> None:
        """A process ends, in good order or not, and another one takes its place. Its leases are heard no more."""
        self.holds = [hold for hold in self.holds if hold.lease._keeper is not self.studies[number]._keeper]
        self.gone = [hold for hold in self.gone if hold.lease._keeper is not self.studies[number]._keeper]
        if self.where is not None:
            (self.studies[number].close if orderly else self.studies[number]._keeper.close)()
        self.studies[number] = self.opened(number, continuing=continuing)
        self.hands = [
            self.worker(one) if study == number else self.hands[one] for one, (_, study) in enumerate(WORKERS)
        ]

    @rule(number=studies, name=names, aside=st.sampled_from([True, False, False, False]))
    def set_aside(self, number: int, name: str, aside: bool) -> None:
        change = (lambda study: study.set_aside(name, "it broke")) if aside else lambda study: study.take_up(name)
        self.changes_nothing(number, False, change, Held)

    @precondition(lambda self: self.studies[0].finished)
    @rule(number=studies)
    def extend(self, number: int) -> None:
        self.budget += 5
        self.studies[number].extend(budget=self.budget)

    # -- the laws

    @invariant()
    def each_open_study_knows_what_the_journal_says(self) -> None:
        if hasattr(self, "told"):
            states = [study._keeper.state() for study in self.studies]
            assert packed_state(states[0]) == packed_state(states[1])
            assert states[0].observations == sum(map(len, self.told.values()))
            assert states[0].used + states[0].reserved <= self.budget
            self.studies[0].audit()

    def teardown(self) -> None:
        if hasattr(self, "told"):
            found = {place: [steps[step] for step in sorted(steps)] for place, steps in self.told.items()}
            for study in self.studies:
                assert walked_paths(study) == found
                study.audit()
            check(self.studies[1], STATES, self.policy)
            for pool in self.pools:
                pool.shutdown()
            for study in self.studies:
                study.close()


class InMemory(Machine):
    def place(self) -> Any:
        return None


class InSqlite(Machine):
    def place(self) -> Any:
        memory = Path("/dev/shm")
        self.folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        return Path(self.folder.name) / "study.db"

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


def run(machine: type[Machine], examples: int, steps: int) -> None:
    quiet: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=steps, **quiet))


def in_postgres(server: Any) -> type[Machine]:
    class InPostgres(Machine):
        def place(self) -> Any:
            return server.address()

    return InPostgres


def test_any_order_in_memory():
    run(InMemory, 100, 40)


def test_any_order_in_sqlite():
    run(InSqlite, 15, 30)


def test_any_order_in_postgres(server):
    run(in_postgres(server), 4, 25)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_any_order_at_full_size(kind, request):
    machine = {"memory": InMemory, "sqlite": InSqlite}.get(kind) or in_postgres(request.getfixturevalue("server"))
    run(machine, 400 if kind == "memory" else 60, 80)
