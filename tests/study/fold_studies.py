"""A study that is nothing but a list of entries and the state that follows from them, for tests of the fold."""

from collections.abc import Callable
from typing import Any

from chainscout import policies
from chainscout.journal.entry import Draft, Entry, sealed
from chainscout.study import commands
from chainscout.study.settings import StudySettings
from chainscout.study.snapshot import packed_state
from chainscout.study.state import State
from chainscout.study.walker import Walker


class Kept:
    """Commands on a state, with a clock that stands still. Each runs twice and must ask for the same entries."""

    def __init__(self, chains: dict[str, Any], *, recording: bool = True, checks: bool = True, **settings: Any) -> None:
        given = StudySettings(**settings).checked()
        self.policy = given.policy
        self.checks = checks
        self.now = 1_000_000
        self.state = State(self.policy, recording=recording)
        self.entries: list[Entry] = []
        self.main = Walker()
        self.main.is_first = True
        self.append(commands.create(given, chains, "a study"))

    def append(self, drafts: list[Draft]) -> None:
        """Stores entries and folds them."""
        new = sealed(self.state.head, self.now, drafts)
        self.entries += new
        self.state.apply(new)

    def do(self, command: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """The result of a command, once its entries are stored."""
        if not self.checks:
            drafts, result = command(self.state, self.now, *given, **options)
            self.append(drafts)
            return result
        before = packed_state(self.state)
        try:
            drafts, result = command(self.state, self.now, *given, **options)
            assert command(self.state, self.now, *given, **options)[0] == drafts, "a command runs more than once"
        finally:
            assert packed_state(self.state) == before, "a command changes nothing"
        self.append(drafts)
        return result

    def folded(self, until: int | None = None, *, policy: Any = "same") -> State:
        """The fold of the entries, or of the first ones."""
        state = State(self.policy if policy == "same" else policy, recording=self.state.order is not None)
        state.apply(self.entries if until is None else self.entries[:until])
        return state

    # -- the calls of a study

    def ask(self) -> str:
        return commands.ask(self.state, self.now)

    def tell(self, name: str, given: Any, walker: Walker | None = None, **options: Any) -> commands.Told:
        walker = self.main if walker is None else walker
        told = self.do(commands.tell, walker, name, given, **options)
        self._remember(walker, told)
        return told

    def tell_many(self, pairs: list[tuple[str, Any]], walker: Walker | None = None) -> None:
        walker = self.main if walker is None else walker
        for told in self.do(commands.tell_many, walker, pairs):
            self._remember(walker, told)

    def lease(self, worker: Walker, seconds: float = 60.0, **options: Any) -> commands.Granted:
        granted = self.do(commands.lease, worker, int(seconds * 1000), **options)
        worker.number = granted.worker
        return granted

    def tell_leased(self, worker: Walker, lease: commands.Granted, given: Any, **options: Any) -> commands.Told:
        name = self.state.chains[lease.chain].name
        told = self.do(commands.tell_leased, lease.token, name, given, path=lease.path, **options)
        if told.own:
            worker.remember(worker.number, told.chain, told.path, told.steps)
        return told

    @staticmethod
    def _remember(walker: Walker, told: commands.Told) -> None:
        walker.number = told.walker
        if told.own:
            walker.remember(told.walker, told.chain, told.path, told.steps)

    def sweep(self) -> None:
        """Ends the leases whose time is over."""
        self.append(commands.tells.expiries(self.state, self.now))


def worker(name: str, **options: Any) -> Walker:
    return Walker(name, is_worker=True, **options)


def kept(chains: dict[str, Any] | None = None, **settings: Any) -> Kept:
    """A study of two chains, with the rule 'uniform'."""
    given = {"policy": policies.get("uniform")} | settings
    return Kept({"a": 2, "b": 3} if chains is None else chains, **given)
