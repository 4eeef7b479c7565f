"""Any order of asking, telling, restarting, leasing, expiring and reopening, against a model that keeps only a log."""

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from study_checks import check, naive_index
from study_places import set_clock
from study_rules import BLOCKS, FLOOR, RULE

from chainscout.counts import Counts
from chainscout.errors import InputError, LeaseLost, NothingFree, StudyFinished
from chainscout.policies import Setting
from chainscout.study import Study

STATES = {"a": 2, "b": 3, "c": 1}
BUDGET = 60


class Model(RuleBasedStateMachine):
    """The model: each chain's paths, who holds it until when, and the time."""

    def place(self) -> object:
        raise NotImplementedError

    @initialize(policy=st.sampled_from([RULE, BLOCKS, FLOOR]), fate=st.sampled_from(["restart", "continue"]))
    def begin(self, policy, fate):
        self.policy, self.fate = policy, fate
        self.where = self.place()
        self.study = Study.create(self.where, STATES, budget=BUDGET, policy=policy, on_lost_lease=fate)
        self.paths: dict[str, list[list[int]]] = {name: [] for name in STATES}
        self.broken = dict.fromkeys(STATES, True)
        self.holders: dict[str, tuple] = {}
        self.lost_leases: list = []
        self.now = 1000.0
        self.lost = 0
        self.tick(0.0)

    # -- the model's own steps

    def tick(self, seconds):
        self.now += seconds
        set_clock(self.study, self.now)

    def record(self, name, state):
        if self.broken[name]:
            self.paths[name].append([])
            self.broken[name] = False
        self.paths[name][-1].append(state)

    def is_held(self, name):
        return name in self.holders and self.holders[name][1] > self.now

    def expire(self, name):
        """What happens to a lease that ran out when somebody comes upon it."""
        lease, _ = self.holders.pop(name)
        self.lost_leases.append(lease)
        self.lost += 1
        if self.fate == "restart":
            self.broken[name] = True

    def number(self):
        return sum(len(path) for paths in self.paths.values() for path in paths)

    def full(self):
        return self.number() >= BUDGET

    def promised(self):
        return sum(lease.steps for name, (lease, _) in self.holders.items() if self.is_held(name))

    def counts(self, name):
        counts = Counts(STATES[name])
        for path in self.paths[name]:
            counts.restart()
            for state in path:
                counts.record(state)
        return counts

    # -- what users do

    @rule(data=st.data())
    def ask_and_tell(self, data):
        free = [name for name in STATES if not self.is_held(name)]
        try:
            name = self.study.ask()
        except StudyFinished:
            assert self.full()
            return
        except NothingFree:
            assert not free or self.number() + self.promised() >= BUDGET
            return
        assert name in free
        assert self.study.ask() == name
        if self.policy is RULE:
            sizes = list(STATES.values())
            pairs = sum(s * s for s in sizes)
            indices = {
                chain: naive_index(RULE, Setting(k, sizes[k], 3, pairs, BUDGET), self.counts(chain))
                for k, chain in enumerate(STATES)
            }
            best = max(indices[chain] for chain in free)
            assert indices[name] == best or indices[name] >= best * (1 - 1e-9)
        self.tell(name, data.draw(st.integers(0, STATES[name] - 1)))

    @rule(name=st.sampled_from(sorted(STATES)), data=st.data())
    def tell_any(self, name, data):
        self.tell(name, data.draw(st.integers(0, STATES[name] - 1)))

    def tell(self, name, state):
        if self.full():
            with pytest.raises(StudyFinished):
                self.study.tell(name, state)
        elif self.is_held(name):
            with pytest.raises(InputError, match="held by"):
                self.study.tell(name, state)
        elif self.number() + self.promised() >= BUDGET:
            with pytest.raises(NothingFree, match="less what is promised to leases"):
                self.study.tell(name, state)
        else:
            if name in self.holders:
                self.expire(name)
            self.study.tell(name, state)
            self.record(name, state)

    @rule(number=st.integers(1, 6), data=st.data())
    def batch(self, number, data):
        try:
            chosen = self.study.ask(number)
        except (StudyFinished, NothingFree):
            return
        assert len(chosen) <= number
        pairs = [(name, data.draw(st.integers(0, STATES[name] - 1))) for name in chosen]
        self.study.tell_many(pairs)
        for name in dict.fromkeys(chosen):
            if name in self.holders:
                self.expire(name)
        for name, state in pairs:
            self.record(name, state)

    @rule(name=st.sampled_from(sorted(STATES)))
    def repeat(self, name):
        """A retry after a lost acknowledgement."""
        path = [state for part in self.paths[name] for state in part]
        if path:
            self.study.tell(name, path[-1], step=len(path))
            if STATES[name] > 1:
                with pytest.raises(InputError, match="another state"):
                    self.study.tell(name, (path[-1] + 1) % STATES[name], step=len(path))

    @rule(name=st.sampled_from(sorted(STATES)))
    def restart(self, name):
        if self.is_held(name):
            with pytest.raises(InputError, match="held by"):
                self.study.restart(name)
            return
        if name in self.holders:
            self.expire(name)
        if sum(len(path) == 1 for path in self.paths[name][-9:]) == 9:
            return  # it would be set aside, which has its own test
        self.study.restart(name)
        self.broken[name] = True

    @rule(seconds=st.sampled_from([1.0, 5.0]), steps=st.integers(1, 3))
    def lease(self, seconds, steps):
        for name in [name for name in self.holders if not self.is_held(name)]:
            self.expire(name)
        try:
            lease = self.study.lease("worker", seconds, steps=steps, wait=0)
        except StudyFinished:
            assert self.full()
            return
        except NothingFree:
            assert len(self.holders) == len(STATES) or self.number() + self.promised() >= BUDGET
            return
        assert lease.chain not in self.holders
        assert lease.restarted == self.broken[lease.chain]
        assert lease.step == 1 + sum(map(len, self.paths[lease.chain]))
        self.holders[lease.chain] = lease, self.now + seconds

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def tell_under_lease(self, data):
        name = data.draw(st.sampled_from(sorted(self.holders)))
        lease, _ = self.holders[name]
        state = data.draw(st.integers(0, STATES[name] - 1))
        if not self.is_held(name):
            with pytest.raises(LeaseLost, match="ran out"):
                lease.tell(state)
            return
        lease.tell(state)
        self.record(name, state)
        if lease.steps == 0:
            del self.holders[name]

    @precondition(lambda self: self.lost_leases)
    @rule(data=st.data())
    def tell_too_late(self, data):
        lease = data.draw(st.sampled_from(self.lost_leases))
        number = 1 + sum(map(len, self.paths[lease.chain]))
        if lease.step == number:
            with pytest.raises(LeaseLost):
                lease.tell(0)
        else:  # the step is taken: the same state is a repetition, another one is refused
            known = [state for part in self.paths[lease.chain] for state in part][lease.step - 1]
            if known:
                with pytest.raises((InputError, LeaseLost)):
                    lease.tell(0)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), lost=st.booleans())
    def end_lease(self, data, lost):
        name = data.draw(st.sampled_from(sorted(self.holders)))
        lease, _ = self.holders[name]
        if not self.is_held(name):
            with pytest.raises(LeaseLost):
                lease.give_back()
            return
        if lost:
            lease.abandon()
            self.expire(name)
        else:
            lease.give_back()
            del self.holders[name]

    @rule(seconds=st.sampled_from([0.5, 2.0, 10.0]))
    def wait(self, seconds):
        self.tick(seconds)

    @rule()
    def reopen(self):
        if self.where is not None:
            self.study.close()
            self.study = Study.open(self.where, self.policy)
            self.tick(0.0)
            for lease, _ in self.holders.values():
                lease._study = self.study
            for lease in self.lost_leases:
                lease._study = self.study

    @invariant()
    def totals(self):
        if hasattr(self, "paths"):
            progress = self.study.progress()
            assert progress.observations == self.number() <= BUDGET
            assert progress.leases == len(self.holders)
            assert progress.lost == self.lost
            assert (progress.stop_reason == "budget") == self.full()

    def teardown(self):
        if not hasattr(self, "paths"):
            return
        for name in STATES:
            known, expected = self.study.counts(name), self.counts(name)
            assert known.rows() == expected.rows()
            assert known.paths == len(self.paths[name])
        assert math.isfinite(self.study.progress().used)
        check(self.study, STATES, self.policy)
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
TestInMemory.settings = settings(max_examples=60, stateful_step_count=50, **quiet)
TestInSqlite = InSqlite.TestCase
TestInSqlite.settings = settings(max_examples=12, stateful_step_count=40, **quiet)


def test_any_order_in_postgres(server):
    class InPostgres(Model):
        def place(self):
            return server.address()

    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(InPostgres, settings=settings(max_examples=5, stateful_step_count=30, **quiet))
