"""Random programs on the fold alone: several sessions and workers, and everything that can happen to a path."""

import random
from typing import Any

from fold_studies import Kept, worker

from chainscout.errors import ChainscoutError
from chainscout.journal.entry import End
from chainscout.study import commands, labels
from chainscout.study.chain import Lease
from chainscout.study.walker import Walker


class Program:
    """Three sessions and three workers on one study. ``seed``: of everything that happens."""

    def __init__(
        self, seed: int, chains: dict[str, Any] | None = None, *, checks: bool = True, **settings: Any
    ) -> None:
        self.random = random.Random(seed)
        chains = {"a": 2, "b": 3} if chains is None else chains
        self.kept = Kept(chains, checks=checks, **settings)
        self.state = self.kept.state
        self.names = list(chains)
        self.sessions = [Walker(), Walker(), Walker()]
        self.workers = [worker("w0"), worker("w1"), worker("w1")]
        #: Leases that this program knows, ended ones too: (worker, token, name, path).
        self.leases: list[tuple[Walker, int, str, int]] = []
        self.refused = 0
        #: Paths that had a lease whose steps are told at once. Such slots share a number: a correction is not exact.
        self.rough: set[tuple[int, int]] = set()

    def run(self, steps: int) -> "Program":
        calls = {
            self.tell: 8, self.tell_many: 2, self.lease: 6, self.tell_leased: 10, self.tell_walk: 4,
            self.tell_and_lease: 3, self.give_back: 3, self.abandon: 1, self.end: 2, self.end_leased: 2, self.close: 1,
            self.reopen: 1, self.correct: 1, self.set_aside: 1, self.take_up: 2, self.renew: 1, self.wait: 1,
            self.extend: 1, self.sweep: 1,
        }  # fmt: skip
        for _ in range(steps):
            (call,) = self.random.choices(list(calls), list(calls.values()))
            try:
                call()
            except ChainscoutError:
                self.refused += 1
        return self

    def given(self, name: str) -> Any:
        chain = self.state.names[name]
        if chain.is_open and self.random.random() < 0.2:
            return f"new {chain.size}"
        return labels.label(chain, self.random.randrange(max(1, chain.size))) if chain.size else "first"

    def tell(self) -> None:
        name = self.random.choice(self.names)
        options = self.random.choice([{}, {}, {}, {}, {"ends": True}, {"begin": True}])
        self.kept.tell(name, self.given(name), self.random.choice(self.sessions), **options)

    def tell_many(self) -> None:
        names = self.random.choices(self.names, k=3)
        self.kept.tell_many([(name, self.given(name)) for name in names], self.random.choice(self.sessions))

    def lease(self) -> None:
        who = self.random.choice(self.workers)
        options: dict[str, Any] = {"steps": self.random.choice([1, 1, 2, 4])}
        options["at_once"] = options["steps"] > 1 and self.random.random() < 0.5
        options["chain"] = self.random.choice([None, *self.names])
        options["continuing"] = self.random.random() < 0.3
        granted = self.kept.lease(who, self.random.choice([5.0, 60.0]), **options)
        if options["at_once"]:
            self.rough.add((granted.chain, granted.path))
        self.leases.append((who, granted.token, self.state.chains[granted.chain].name, granted.path))

    def known(self) -> tuple[Walker, int, str, int]:
        return self.random.choice(self.leases or [(self.workers[0], 0, self.names[0], 1)])

    def held(self) -> tuple[Walker, Lease, str]:
        live = [
            (who, self.state.leases[token], name) for who, token, name, _ in self.leases if token in self.state.leases
        ]
        if not live:
            self.lease()
            return self.held()
        return self.random.choice(live)

    def tell_leased(self) -> None:
        if self.random.random() < 0.15:
            who, token, name, path = self.known()  # perhaps late
        else:
            who, lease, name = self.held()
            token, path = lease.number, lease.path
            if lease.at_once:
                return
        told = self.kept.do(commands.tell_leased, token, name, self.given(name), path=path, late=True)
        if told.own:
            who.remember(who.number, told.chain, told.path, told.steps)

    def tell_walk(self) -> None:
        who, lease, name = self.held()
        number = lease.steps if lease.at_once else self.random.randint(1, lease.steps)
        states = [self.given(name) for _ in range(number)]
        told = self.kept.do(commands.tell_walk, lease.number, name, states, path=lease.path)
        who.remember(who.number, told.chain, told.path, told.steps)

    def tell_and_lease(self) -> None:
        who, lease, name = self.held()
        path = self.state.chains[lease.chain].walks[lease.path]
        told, granted = self.kept.do(
            commands.tell_and_lease, who, lease.number, name, self.given(name), 60_000, path=lease.path,
            step=path.steps + 1,
        )  # fmt: skip
        who.remember(who.number, told.chain, told.path, told.steps)
        if isinstance(granted, commands.Granted):
            self.leases.append((who, granted.token, self.state.chains[granted.chain].name, granted.path))

    def give_back(self, lost: bool = False) -> None:
        _, lease, name = self.held()
        self.kept.do(commands.give_back, lease.number, name, lost=lost)

    def abandon(self) -> None:
        self.give_back(lost=True)

    def end(self) -> None:
        name, who = self.random.choice(self.names), self.random.choice(self.sessions)
        who.number = self.kept.do(commands.end_path, who, name, self.random.choice(list(End))).walker

    def end_leased(self) -> None:
        who, lease, name = self.held()
        end = self.random.choice(list(End))
        following = self.kept.do(commands.end_path, self.sessions[0], name, end, token=lease.number)
        self.leases.append((who, following.token, name, following.path))
        if lease.at_once:
            self.rough.add((lease.chain, following.path))

    def close(self) -> None:
        who = self.random.choice(self.sessions + self.workers)
        if who.is_worker:
            self.kept.do(commands.give_back_all, who.number)
        else:
            self.kept.do(commands.close, {who.number: set(who.known)})
        self.replace(who, continuing=self.random.random() < 0.5)

    def reopen(self) -> None:
        """A process dies, and another one takes its place."""
        self.replace(self.random.choice(self.sessions), continuing=self.random.random() < 0.5)

    def replace(self, who: Walker, continuing: bool) -> None:
        kind = self.workers if who.is_worker else self.sessions
        place = kind.index(who)
        opened = self.state.head.number
        after = kind[place] = Walker(who.name, is_worker=who.is_worker, opened=opened, continuing=continuing)
        if continuing and not who.is_worker:
            after.number = self.kept.do(commands.go_on, after)

    def correct(self) -> None:
        chain = self.state.names[self.random.choice(self.names)]
        paths = [path for path in chain.walks.values() if path.steps and not path.ended]
        paths = [path for path in paths if (chain.number, path.number) not in self.rough]
        if paths and self.random.random() < 0.5:
            path = self.random.choice(paths)
            self.kept.do(commands.correct, self.sessions[0], chain.name, path=path.number, step=path.steps)

    def set_aside(self) -> None:
        if self.random.random() < 0.3:
            self.kept.do(commands.set_aside, self.random.choice(self.names), "it broke")

    def take_up(self) -> None:
        self.kept.do(commands.take_up, self.random.choice(self.names))

    def renew(self) -> None:
        _, lease, name = self.held()
        self.kept.do(commands.renew, lease.number, name, 30_000)

    def wait(self) -> None:
        self.kept.now += self.random.choice([1_000, 10_000, 40_000])

    def extend(self) -> None:
        if self.state.budget is not None:
            self.kept.do(commands.extend, limit=self.state.budget + 20)

    def sweep(self) -> None:
        self.kept.sweep()
