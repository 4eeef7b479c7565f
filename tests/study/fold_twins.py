"""A random program that drives today's study and the fold side by side, and compares what they know after each step."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from fold_studies import Kept, worker
from study_places import set_clock

from chainscout.errors import Held, NothingFree, OverBudget, StudyFinished
from chainscout.journal.entry import Draft, End, Kind, packed
from chainscout.study import Study, budget, commands, labels
from chainscout.study.chain import Chain
from chainscout.study.walker import Walker
from chainscout.study.walks import walked_paths

REFUSALS = (StudyFinished, NothingFree, Held, OverBudget)


class Twins:
    """Two studies that get the same calls.

    ``seed``: of the program and of the states. ``where``: a file for today's study, which is then opened again too.
    """

    def __init__(self, seed: int, chains: dict[str, Any], where: Any = None, **settings: Any) -> None:
        self.where = where
        self.random = random.Random(seed)
        self.sizes = {name: states if isinstance(states, int) else len(states) or 4 for name, states in chains.items()}
        self.chains = chains
        self.opened = settings.get("open_states") is not None
        self.study = Study.create(where, chains, **settings)
        self.kept = Kept(chains, checks=False, **settings)
        self.names = list(chains)
        self.seconds = 1000.0
        #: Name → today's worker, the fold's, and their leases.
        self.workers: dict[str, tuple[Any, Walker, list[tuple[Any, commands.Granted]]]] = {}
        self.looked = dict.fromkeys(self.names, (0, float("inf")))
        #: Chains in which a lease was given back while later slots had been issued: today they get another number.
        self.reordered: set[str] = set()
        #: Workers that gave back a path before its first observation: today another one of that name can have it.
        self.unused: set[str] = set()
        self.tick(0.0)

    def tick(self, seconds: float) -> None:
        self.seconds += seconds
        set_clock(self.study, self.seconds)
        self.kept.now = int(self.seconds * 1000)

    def state_of(self, name: str) -> Any:
        states = self.chains[name]
        place = self.random.randrange(self.sizes[name])
        if isinstance(states, int):
            return place
        return states[place] if place < len(states) else f"new {place}"

    # -- one step of the program

    def step(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (8, self.tell), (1, self.tell_any), (1, self.tell_batch), (5, self.lease), (9, self.tell_leased),
            (2, self.tell_and_lease), (2, self.give_back), (1, self.abandon), (1, self.restart),
            (1, self.restart_leased), (1, self.lose), (1, self.set_aside), (1, self.take_up), (1, self.wait),
            (1, self.renew), (1, self.reopen),
        ]  # fmt: skip
        weights, calls = zip(*actions, strict=True)
        self.random.choices(calls, weights)[0]()

    def both(self, today: Callable[[], Any], fold: Callable[[], Any], *, sweeps: bool = True) -> tuple[Any, Any] | None:
        """Both results; None if both refuse with the same kind of error."""
        (one, refused), (other, too) = (_outcome(call) for call in (today, fold))
        assert type(refused) is type(too), (refused, too)
        if isinstance(refused, NothingFree | Held) and sweeps:
            self.kept.sweep()  # today a lease that is refused ends those whose time is over
        return None if refused is not None else (one, other)

    def indices(self) -> dict[str, float]:
        """The indices as they follow from T and what is pending.

        In a block, today's study keeps the index of an earlier T + pending when plain tells come beside leases.
        """
        assert self.kept.state.order is not None
        return {name: self.kept.state.order.index(chain) for name, chain in self.kept.state.names.items()}

    def tell(self) -> None:
        if self.indices() != self.study.indices():
            assert self.kept.policy.block
            return
        if budget.expired(self.kept.state, self.kept.now) and not self.kept.state.shared:
            return  # today 'ask' counts what expired leases promised, until somebody changes the study
        found = self.both(self.study.ask, self.kept.ask, sweeps=False)
        if found is not None:
            assert found[0] == found[1]
            number = self.random.randrange(2, 30)
            assert self.study.ask(number) == commands.ask_many(self.kept.state, self.kept.now, number)
            self.tell_one(found[0])

    def tell_any(self) -> None:
        if self.kept.state.aim.is_about_bounds:
            return  # today a chain that is done may be done no more when somebody tells it all the same
        self.tell_one(self.random.choice(self.names), begin=self.random.random() < 0.3)

    def tell_one(self, name: str, **options: Any) -> None:
        given = self.state_of(name)
        found = self.both(
            lambda: self.study.tell(name, given, **options),
            lambda: self.kept.tell(name, given, **options),
            sweeps=False,
        )
        if found is not None:
            assert found[0] == (found[1].path, found[1].steps + 1)

    def tell_batch(self) -> None:
        if self.kept.state.aim.is_about_bounds:
            return
        pairs = [(name, self.state_of(name)) for name in self.random.choices(self.names, k=self.random.randrange(1, 6))]
        self.both(lambda: self.study.tell_many(pairs), lambda: self.kept.tell_many(pairs), sweeps=False)

    # -- leases

    def someone(self) -> tuple[Any, Walker, list[tuple[Any, commands.Granted]]]:
        name = f"w{self.random.randrange(3)}"
        if name not in self.workers or self.random.random() < 0.05:  # a new process with the same name
            self.workers[name] = self.study.worker(name, renews=False), worker(name), []
        return self.workers[name]

    def lease(self) -> None:
        today, fold, leases = self.someone()
        continuing = self.random.random() < 0.2 and fold.name not in self.unused
        options = {"steps": self.random.choice([1, 1, 1, 2, 5]), "continuing": continuing}
        seconds = self.random.choice([5.0, 60.0])
        behind = self.is_behind(today)
        granted: list[Any] = []

        def lease() -> Any:
            granted.append(today.lease(seconds, wait=0.0, **options))
            return granted[0] or self.finished()

        def also_lease() -> commands.Granted:
            named = {"chain": granted[0].chain} if behind and granted and granted[0] is not None else {}
            return self.kept.lease(fold, seconds, **options, **named)

        found = self.both(lease, also_lease)
        if found is not None:
            self.got(fold, leases, *found)

    def is_behind(self, today: Any) -> bool:
        """Whether today's worker knows other than the true indices, or takes chains for its own that it only leased.

        Its choice is then another one. The fold prefers a chain that the worker walks by the indices of this moment.
        """
        indices = self.indices()
        if indices != self.study.indices():
            return True
        known = {self.names[number]: index for number, index in today._walker._indices.items()}
        return known.keys() != today._walker._known.keys() or any(indices[name] != known[name] for name in known)

    def finished(self) -> None:
        raise StudyFinished("the study is finished", self.study.stop_reason or "")

    def got(self, fold: Walker, leases: list[Any], one: Any, other: commands.Granted) -> None:
        fold.number = other.worker
        chain = self.kept.state.chains[other.chain]
        last = None if other.last < 0 else labels.label(chain, other.last)
        assert (one.chain, one.path, one.step, one.state, one.steps) == (
            chain.name, other.path, other.steps + 1, last, other.number,
        )  # fmt: skip
        leases.append((one, other))

    def held(self) -> tuple[Walker, list[Any], Any, commands.Granted] | None:
        """A lease that has not ended."""
        now = self.kept.now
        found = [
            (fold, leases, one, other)
            for _, fold, leases in self.workers.values()
            for one, other in leases
            if other.token in self.kept.state.leases and self.kept.state.leases[other.token].expires > now
        ]
        return self.random.choice(found) if found else None

    def tell_leased(self) -> None:
        if (held := self.held()) is not None:
            fold, _, one, other = held
            given = self.state_of(one.chain)
            one.tell(given)
            self.kept.tell_leased(fold, other, given)

    def tell_and_lease(self) -> None:
        if (held := self.held()) is None:
            return
        fold, leases, one, other = held
        given, path = self.state_of(one.chain), self.kept.state.chains[other.chain].walks[other.path]
        behind, chain = self.is_behind(one._worker), self.kept.state.chains[other.chain]
        granted = one.tell_and_lease(given)
        if behind or chain.transitions + 1 >= chain.due:  # today the look comes before the lease
            self.kept.tell_leased(fold, other, given)
            self.give_bounds()
            named = {"chain": granted.chain} if behind and not isinstance(granted, Exception) else {}
            next_one, refused = _outcome(lambda: self.kept.lease(fold, one.seconds, **named))
            if refused is not None:
                self.kept.sweep()
        else:
            told, next_one = self.kept.do(
                commands.tell_and_lease, fold, other.token, one.chain, given, int(one.seconds * 1000), path=other.path,
                step=path.steps + 1,
            )  # fmt: skip
            fold.remember(fold.number, told.chain, told.path, told.steps)
            refused = next_one if isinstance(next_one, Exception) else None
        assert type(refused) is type(granted if isinstance(granted, Exception) else None), (granted, refused)
        if refused is None:
            self.got(fold, leases, granted, next_one)

    def give_back(self, lost: bool = False) -> None:
        if (held := self.held()) is not None:
            fold, leases, one, other = held
            if not self.kept.state.chains[other.chain].walks[other.path].steps:
                self.unused.add(fold.name)
            slot = self.kept.state.chains[other.chain].walks[other.path].slot
            if slot is not None and not self.kept.state.chains[other.chain].draws.is_last(slot):
                self.reordered.add(one.chain)
            (one.abandon if lost else one.give_back)()
            self.kept.do(commands.give_back, other.token, one.chain, lost=lost)
            leases.remove((one, other))

    def abandon(self) -> None:
        self.give_back(lost=True)

    def renew(self) -> None:
        if (held := self.held()) is not None:
            _, _, one, other = held
            one.renew(30.0)
            self.kept.do(commands.renew, other.token, one.chain, 30_000)

    def restart_leased(self) -> None:
        if (held := self.held()) is not None:
            _, leases, one, other = held
            end = self.random.choice([End.LOST, End.UNKNOWN])
            one.restart(lost=end is End.LOST)
            following = self.kept.do(commands.end_path, self.kept.main, one.chain, end, token=other.token)
            leases[leases.index((one, other))] = one, other._replace(token=following.token, path=following.path)

    # -- the rest

    def restart(self) -> None:
        name, end = self.random.choice(self.names), self.random.choice([End.LOST, End.UNKNOWN])
        lost = end is End.LOST
        found = self.both(lambda: self.study.restart(name, lost=lost),
                          lambda: self.kept.do(commands.end_path, self.kept.main, name, end), sweeps=False)  # fmt: skip
        if found is not None:
            self.kept.main.number = found[1].walker

    def reopen(self) -> None:
        """The process dies, and another one takes its place. Its leases last until their time is over."""
        if self.where is not None and self.random.random() < 0.5:
            continuing = self.random.random() < 0.5
            self.study.close()
            self.study = Study.open(self.where, self.kept.policy, continuing=continuing)
            self.kept.main = Walker(opened=self.kept.state.head.number, continuing=continuing)
            self.workers.clear()
            self.tick(0.0)

    def lose(self) -> None:
        name = self.random.choice(self.names)
        self.study.lose(name)
        self.kept.do(commands.lose, self.kept.main, name)

    def set_aside(self) -> None:
        if self.random.random() < 0.3:
            name = self.random.choice(self.names)
            self.both(lambda: self.study.set_aside(name, "it broke"),
                      lambda: self.kept.do(commands.set_aside, name, "it broke"), sweeps=False)  # fmt: skip

    def take_up(self) -> None:
        name = self.random.choice(self.names)
        self.study.take_up(name)
        self.kept.do(commands.take_up, name)

    def wait(self) -> None:
        self.tick(self.random.choice([1.0, 10.0, 40.0]))

    # -- what both know

    def give_bounds(self) -> None:
        """Gives the fold the bounds that today's study computed by itself."""
        with self.study._store.reading() as transaction:
            for record in transaction.every():
                chain = self.kept.state.chains[record.number]
                if record.looked and self.looked[record.name] != (record.looked, record.ratio):
                    self.looked[record.name] = record.looked, record.ratio
                    cut = self.kept.state.chosen_cut(chain)
                    number = chain.wanted.number if chain.wanted is not None else cut.number
                    ratio = record.ratio if record.ratio < float("inf") else None
                    more = packed(transitions=record.looked, bound=None, ratio=ratio)
                    self.kept.append(
                        [Draft(Kind.BOUND, record.number, value=number, by=self.kept.state.aim.number, more=more)]
                    )

    def compare(self) -> None:
        state, order = self.kept.state, self.kept.state.order
        assert order is not None
        with self.study._store.reading() as transaction:
            study = transaction.study
            totals = study.observations, study.paths, study.used, study.first_cost, study.lost, study.leases
            assert totals == (
                state.observations, state.paths, state.used, state.first_cost, state.lost, len(state.leases),
            )  # fmt: skip
            assert (study.aside, study.pairs) == (state.aside, state.pairs)
            assert math.isclose(study.reserved, state.reserved, abs_tol=1e-9)
            for record in transaction.every():
                chain = state.names[record.name]
                for name in ("size", "transitions", "observations", "paths", "pending", "leases", "barren", "sums",
                             "constants", "discovered", "begun", "look"):  # fmt: skip
                    assert getattr(record, name) == getattr(chain, name), name
                assert (record.ratio, record.enough, record.done) == (chain.ratio, chain.enough, chain.done)
                assert chain.done or record.due == chain.due
                assert record.aside is (chain.aside is not None)
                assert order.index(chain) == self.study._live(study).expected_index(record, record.pending)
                rows = transaction.rows(record)
                assert rows.keys() == chain.rows.keys()
                for x, row in rows.items():
                    other = chain.rows[x]
                    assert (row.exits, row.squares, row.counts, row.terms) == (
                        other.exits, other.squares, other.counts, other.terms,
                    )  # fmt: skip
                    assert row.discoveries == other.discoveries
                known = {path.number: path for path in transaction.paths(record)}
                for path in chain.walks.values():
                    other_path = known[path.number]
                    assert (path.steps, None if path.last < 0 else path.last) == (other_path.steps, other_path.last)
                    assert path.digest == other_path.digest
                    assert path.ended is other_path.ended
                    assert (path.lease is None) is (other_path.token is None)

    def compare_order(self) -> None:
        """The told draws are in the order in which today's study has them, where it knows the order."""
        for name, chain in self.kept.state.names.items():
            paths = self.study.paths(name)
            told = [card for card in chain.draws.ordered() if card.told]
            assert len(told) == chain.observations
            if paths.unordered is None and name not in self.reordered:
                assert drawn(chain) == today_drawn(paths)
            found = walked_paths(self.kept.state, chain)
            assert [card[1:] for card in today_drawn(found)] == [card[1:] for card in drawn(chain)]
            assert (found.target < 0).sum() == len(chain.draws.holes) - sum(
                not h.is_slot for h in chain.draws.holes
            ) - (chain.draws.released + sum(hole.is_row_void for hole in chain.draws.holes))


def drawn(chain: Chain) -> list[tuple[int, int, int, int]]:
    cards = [card for card in chain.draws.ordered() if card.told]
    return [(card.path, card.step, card.source, card.target) for card in cards]


def today_drawn(paths: Any) -> list[tuple[int, int, int, int]]:
    known = np.flatnonzero(paths.target >= 0)
    columns = (paths.path[known] + 1, paths.step[known] + 1, paths.source[known], paths.target[known])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except REFUSALS as error:
        return None, error
