"""Any order of asking, telling, leasing, expiring and reopening, against a model that keeps only paths and leases."""

import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from study_checks import check, naive_index, walked_paths
from study_places import set_clock
from study_rules import BLOCKS, FLOOR, RULE

from chainscout.counts import Counts
from chainscout.errors import Held, InputError, LeaseLost, NothingFree, StudyFinished
from chainscout.policies import Setting
from chainscout.study import Study

pytestmark = pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")

STATES = {"a": 2, "b": 3, "c": 1}
BUDGET = 60
#: Workers and their names: two of them, in different processes, have the same one.
WORKERS = {"w0": "w0", "w1": "w1", "w2": "w2", "another w0": "w0"}
names = st.sampled_from(sorted(STATES))
workers = st.sampled_from(list(WORKERS))


@dataclass
class Walk:
    """A path of the model."""

    chain: str
    number: int
    worker: str
    states: list[int] = field(default_factory=list)
    ended: bool = False
    held: bool = False


@dataclass
class Hold:
    """A lease of the model."""

    lease: object
    worker: str
    walk: Walk
    until: float


class Model(RuleBasedStateMachine):
    """The model: each chain's paths, where each walker stands, who holds what until when, and the time."""

    def place(self) -> object:
        raise NotImplementedError

    @initialize(policy=st.sampled_from([RULE, BLOCKS, FLOOR]), paths=st.sampled_from(["own", "own", "shared"]))
    def begin(self, policy, paths):
        self.policy, self.shared = policy, paths == "shared"
        self.where = self.place()
        self.study = Study.create(self.where, STATES, budget=BUDGET, policy=policy, paths=paths)
        self.walks: dict[str, list[Walk]] = {name: [] for name in STATES}
        self.barren = dict.fromkeys(STATES, 0)
        self.aside: set[str] = set()
        #: Walker → chain → the path that it walks, and how long it was then.
        self.known: dict[str, dict[str, tuple[Walk, int]]] = {name: {} for name in ("main", *WORKERS)}
        #: The length of each path when the study was opened to continue; None: it was not.
        self.opened: dict[tuple[str, int], int] | None = None
        self.hands = {key: self.study.worker(name, renews=False) for key, name in WORKERS.items()}
        self.holds: list[Hold] = []
        self.gone: list[Hold] = []
        self.now = 1000.0
        self.lost = 0
        self.stopped = False
        self.tick(0.0)

    # -- the model's own steps

    def tick(self, seconds):
        self.now += seconds
        set_clock(self.study, self.now)

    def new_walk(self, name, worker):
        if self.shared and self.walks[name]:
            self.walks[name][-1].ended = True
        walk = Walk(name, len(self.walks[name]) + 1, worker)
        self.walks[name].append(walk)
        return walk

    def latest(self, name, worker):
        """The latest path of this name, unless it has ended."""
        walk = next((walk for walk in reversed(self.walks[name]) if walk.worker == worker), None)
        return None if walk is None or walk.ended else walk

    def standing(self, walker, name):
        """The path that a walker knows, if it is still where the walker left it."""
        walk, length = self.known[walker].get(name, (None, 0))
        return walk if walk is not None and not walk.ended and len(walk.states) == length else None

    def main_walk(self, name):
        if self.shared:
            walk = self.walks[name][-1] if self.walks[name] else None
            return None if walk is None or walk.ended else walk
        if name in self.known["main"] or self.opened is None:
            return self.standing("main", name)
        walk = self.latest(name, "main")
        return walk if walk and len(walk.states) == self.opened.get((name, walk.number)) else None

    def add(self, walk, state, walker):
        if walk.states:
            self.barren[walk.chain] = 0
        walk.states.append(state)
        if walker is not None:
            self.known[walker][walk.chain] = walk, len(walk.states)

    def end_walk(self, walk):
        walk.ended, walk.held = True, False
        if len(walk.states) <= 1:
            self.barren[walk.chain] += 1
            if self.barren[walk.chain] >= 10:
                self.aside.add(walk.chain)

    def lose(self, hold):
        self.holds.remove(hold)
        self.gone.append(hold)
        self.lost += 1
        self.end_walk(hold.walk)

    def sweep(self):
        """What somebody who changes the study does with leases that ran out."""
        for hold in sorted(self.holds, key=lambda h: (h.until, list(STATES).index(h.walk.chain), h.walk.number)):
            if hold.until <= self.now:
                self.lose(hold)

    def live(self, name=None):
        return [h for h in self.holds if h.until > self.now and name in (None, h.walk.chain)]

    def is_blocked(self, name):
        return self.shared and bool(self.live(name))

    def free(self, worker):
        """The chains that a worker can be given."""
        own = [hold.walk.chain for hold in self.live() if hold.worker == worker]
        return [name for name in STATES if name not in self.aside and name not in own and not self.is_blocked(name)]

    def is_behind(self, worker):
        """Whether another chain comes so far before those that the worker can be given that it waits."""
        indices = {name: index for name, index in self.study.indices().items() if name not in self.aside}
        best = max(indices[name] for name in self.free(worker))
        return any(best < 0.95 * index for index in indices.values() if math.isfinite(index))

    def number(self):
        return sum(len(walk.states) for walks in self.walks.values() for walk in walks)

    def left(self):
        return BUDGET - self.number() - sum(hold.lease.steps for hold in self.live())

    def full(self):
        return self.number() >= BUDGET

    def is_over(self):
        """Whether the study has stopped; it stays so until it is taken up or extended."""
        self.stopped = self.stopped or self.full() or len(self.aside) == len(STATES)
        return self.stopped

    def counts(self, name):
        counts = Counts(STATES[name])
        for walk in self.walks[name]:
            counts.restart()
            for state in walk.states:
                counts.record(state)
        return counts

    # -- what users do

    @rule(data=st.data())
    def ask_and_tell(self, data):
        free = [name for name in STATES if name not in self.aside and not self.is_blocked(name)]
        try:
            name = self.study.ask()
        except StudyFinished:
            assert self.is_over()
            return
        except NothingFree:
            assert not free or self.left() < 1
            return
        assert name in free
        assert self.study.ask() == name
        if self.policy is RULE:
            sizes = list(STATES.values())
            pairs = sum(s * s for s in sizes)
            indices = {}
            for k, chain in enumerate(STATES):
                # Where paths are one's own, a lease that ran out counts until somebody ends it.
                holds = self.live(chain) if self.shared else [h for h in self.holds if h.walk.chain == chain]
                pending = sum(hold.lease.steps for hold in holds)
                indices[chain] = naive_index(RULE, Setting(k, sizes[k], 3, pairs, BUDGET), self.counts(chain), pending)
            best = max(indices[chain] for chain in free)
            assert indices[name] == best or indices[name] >= best * (1 - 1e-9)
        self.tell(name, data.draw(st.integers(0, STATES[name] - 1)))

    @rule(name=names, data=st.data())
    def tell_any(self, name, data):
        self.tell(name, data.draw(st.integers(0, STATES[name] - 1)))

    def tell(self, name, state):
        if self.shared:  # who advances the one process must hold it
            with pytest.raises(Held, match="only the holder of a lease"):
                self.study.tell(name, state)
        elif self.is_over():
            with pytest.raises(StudyFinished):
                self.study.tell(name, state)
        elif self.left() < 1:
            with pytest.raises(NothingFree, match="less what is promised to leases"):
                self.study.tell(name, state)
        else:
            self.study.tell(name, state)
            self.sweep()
            self.add(self.main_walk(name) or self.new_walk(name, "main"), state, "main")

    @rule(number=st.integers(1, 6), data=st.data())
    def batch(self, number, data):
        try:
            chosen = self.study.ask(number)
        except (StudyFinished, NothingFree):
            return
        assert len(chosen) <= number
        pairs = [(name, data.draw(st.integers(0, STATES[name] - 1))) for name in chosen]
        if self.shared:
            with pytest.raises(Held, match="only the holder of a lease"):
                self.study.tell_many(pairs)
            return
        self.study.tell_many(pairs)
        self.sweep()
        found = {name: self.main_walk(name) or self.new_walk(name, "main") for name in dict.fromkeys(chosen)}
        for name, state in pairs:
            self.add(found[name], state, "main")

    @rule(name=names, data=st.data())
    def repeat(self, name, data):
        """A retry after a lost acknowledgement, by somebody who may be elsewhere by now."""
        walks = [walk for walk in self.walks[name] if walk.states and walk.worker == "main"]
        if walks:
            walk = data.draw(st.sampled_from(walks))
            step = data.draw(st.integers(1, len(walk.states)))
            self.study.tell(name, walk.states[step - 1], path=walk.number, step=step)
            if STATES[name] > 1:
                other = (walk.states[step - 1] + 1) % STATES[name]
                with pytest.raises(InputError, match="another state"):
                    self.study.tell(name, other, path=walk.number, step=step)

    @rule(name=names)
    def restart(self, name):
        if self.is_blocked(name):
            with pytest.raises(Held, match="held by"):
                self.study.restart(name)
            return
        self.study.restart(name)
        self.sweep()
        walk = self.main_walk(name) or (None if self.shared else self.latest(name, "main"))
        if walk is not None:
            self.end_walk(walk)

    @precondition(lambda self: self.aside)
    @rule(data=st.data())
    def take_up(self, data):
        name = data.draw(st.sampled_from(sorted(self.aside)))
        self.study.take_up(name)
        self.aside.discard(name)
        self.barren[name] = 0
        self.stopped = self.full()

    @rule(worker=workers, seconds=st.sampled_from([1.0, 5.0]), steps=st.integers(1, 3), continuing=st.booleans())
    def lease(self, worker, seconds, steps, continuing):
        try:
            lease = self.hands[worker].lease(seconds, steps=steps, wait=0, continuing=continuing)
        except NothingFree:
            self.sweep()
            assert not self.free(worker) or self.left() < 1 or self.is_behind(worker)
            return
        except Held:  # a worker has one process a chain, and must tell first of the chains that come first
            self.sweep()
            assert not self.free(worker) or self.is_behind(worker)
            return
        self.sweep()
        if lease is None:
            assert self.is_over()
            return
        name = lease.chain
        assert name not in self.aside
        assert not self.is_blocked(name)
        assert all(hold.worker != worker for hold in self.live(name))
        assert lease.steps == min(steps, self.left())
        if self.shared:
            walk = self.walks[name][-1] if self.walks[name] and not self.walks[name][-1].ended else None
        else:
            walk = self.standing(worker, name)
            if continuing and name not in self.known[worker]:
                walk = self.latest(name, WORKERS[worker])
        if walk is None or walk.held:
            walk = self.new_walk(name, WORKERS[worker])
        walk.worker, walk.held = WORKERS[worker], True
        assert (lease.path, lease.step) == (walk.number, len(walk.states) + 1)
        assert lease.state == (walk.states[-1] if walk.states else None)
        self.holds.append(Hold(lease, worker, walk, self.now + seconds))

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def tell_under_lease(self, data):
        hold = data.draw(st.sampled_from(self.holds))
        state = data.draw(st.integers(0, STATES[hold.walk.chain] - 1))
        if hold.until <= self.now:
            with pytest.raises(LeaseLost, match="ran out"):
                hold.lease.tell(state)
            return
        hold.lease.tell(state)
        self.add(hold.walk, state, hold.worker)
        token = {"path": hold.walk.number, "step": len(hold.walk.states), "token": hold.lease.token}
        self.study.tell(hold.walk.chain, state, **token)  # the acknowledgement was lost
        if hold.lease.steps == 0:
            hold.walk.held = False
            self.holds.remove(hold)

    @precondition(lambda self: self.holds)
    @rule(data=st.data(), lost=st.booleans())
    def restart_under_lease(self, data, lost):
        hold = data.draw(st.sampled_from(self.holds))
        if hold.until <= self.now:
            with pytest.raises(LeaseLost, match="ran out"):
                hold.lease.restart(lost)
            return
        hold.lease.restart(lost)
        self.lost += lost
        self.end_walk(hold.walk)
        hold.walk = self.new_walk(hold.walk.chain, hold.walk.worker)
        hold.walk.held = True
        assert (hold.lease.path, hold.lease.step, hold.lease.state) == (hold.walk.number, 1, None)

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def tell_too_late(self, data):
        hold = data.draw(st.sampled_from(self.gone))
        for state in range(STATES[hold.walk.chain]):  # whatever the state is, it was not told
            with pytest.raises(LeaseLost):
                hold.lease.tell(state)

    @precondition(lambda self: self.holds)
    @rule(data=st.data(), lost=st.booleans())
    def end_lease(self, data, lost):
        hold = data.draw(st.sampled_from(self.holds))
        if hold.until <= self.now:
            with pytest.raises(LeaseLost):
                hold.lease.give_back()
            return
        if lost:
            hold.lease.abandon()
            self.lose(hold)
        else:
            hold.lease.give_back()
            hold.walk.held = False
            self.holds.remove(hold)

    @rule(seconds=st.sampled_from([0.5, 2.0, 10.0]))
    def wait(self, seconds):
        self.tick(seconds)

    @rule(worker=workers)
    def replace_worker(self, worker):
        """Another process with the same name."""
        self.hands[worker] = self.study.worker(WORKERS[worker], renews=False)
        self.known[worker] = {}
        for hold in self.holds:
            if hold.worker == worker:
                hold.worker = None  # the leases of the old process are not the new one's

    @rule(continuing=st.booleans())
    def reopen(self, continuing):
        if self.where is None:
            return
        self.study.close()
        self.study = Study.open(self.where, self.policy, continuing=continuing)
        self.tick(0.0)
        self.known["main"] = {}
        lengths = {(w.chain, w.number): len(w.states) for walks in self.walks.values() for w in walks}
        self.opened = lengths if continuing else None
        for hold in self.holds + self.gone:
            hold.lease._study = self.study
        for hand in self.hands.values():
            hand._study = self.study

    @invariant()
    def totals(self):
        if hasattr(self, "walks"):
            progress = self.study.progress()
            assert progress.observations == self.number() <= BUDGET
            assert progress.leases == len(self.holds)
            assert progress.lost == self.lost
            assert progress.aside == len(self.aside)
            assert progress.finished == self.is_over()
            for name in STATES:
                found, walk = self.study.chain(name), self.main_walk(name)
                place = (len(self.walks[name]) + 1, 1, None)
                if walk is not None:
                    place = walk.number, len(walk.states) + 1, walk.states[-1] if walk.states else None
                assert (found.path, found.step, found.last) == place

    def teardown(self):
        if not hasattr(self, "walks"):
            return
        found = {(w.chain, w.number): w.states for walks in self.walks.values() for w in walks if w.states}
        assert walked_paths(self.study) == found
        check(self.study, STATES, self.policy)
        self.study.audit()
        self.study.close()


class InMemory(Model):
    def place(self):
        return None


class InSqlite(Model):
    def place(self):
        memory = Path("/dev/shm")
        self.folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        return Path(self.folder.name) / "study.db"

    def teardown(self):
        super().teardown()
        self.folder.cleanup()


quiet = {"deadline": None, "suppress_health_check": list(HealthCheck)}
TestInMemory = InMemory.TestCase
TestInMemory.settings = settings(max_examples=250, stateful_step_count=50, **quiet)
TestInSqlite = InSqlite.TestCase
TestInSqlite.settings = settings(max_examples=25, stateful_step_count=40, **quiet)


def test_any_order_in_postgres(server):
    class InPostgres(Model):
        def place(self):
            return server.address()

    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(InPostgres, settings=settings(max_examples=5, stateful_step_count=30, **quiet))
