"""A study in one process: its journal, the state that follows from it, and the lock around both."""

import gc
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

from ..errors import Busy, Cancelled, ConnectionLost, FileError
from ..journal.entry import START, Draft, Entry, Head, Kind
from ..journal.journal import Journal, Snapshot
from ..policies import Policy
from . import bounds, checks, commands
from .chain import Chain
from .repetition import surprise
from .replays import Replays, Reply
from .snapshot import packed_state, snapshot_key, unpacked_state
from .state import State, Twins
from .views import EventLine

__all__ = ["OBJECTS", "TAIL", "Command", "Given", "Keeper", "Result", "no_garbage"]

Result = TypeVar("Result")
Given = ParamSpec("Given")
#: A command, as `commands` has them: (state, now, …) → drafts and a result.
Command = Callable[Concatenate[State, int, Given], tuple[list[Draft], Result]]

#: What a journal says when it refuses what only follows from a change that is stored already.
_REFUSALS = (Busy, Cancelled, ConnectionLost, FileError)

#: A snapshot is kept when so many entries have been written since the last one, and OBJECTS times the objects of the
#: state. So all snapshots together cost a fifth of folding.
TAIL, OBJECTS = 20_000, 5
#: So many entries are folded without the garbage collector.
_MANY = 1_000
#: So many bounds are computed at once.
_AT_ONCE = 1_000

#: All keepers of this process.
_KEEPERS: "weakref.WeakSet[Keeper]" = weakref.WeakSet()


class Keeper:
    """Reads, checks, appends and folds. Every method may be called from any thread.

    ``policy``: the study's rule; None: nobody asks for a choice.
    """

    def __init__(self, journal: Journal, policy: Policy | None) -> None:
        self.journal = journal
        self.policy = policy
        self._lock = threading.RLock()
        #: The state, or None if an error has interrupted the folding of some entries.
        self._state: State | None = None
        #: The last entry of the last snapshot, and the number of entries at which the next one may be due.
        self._kept, self._keep_at = 0, TAIL
        #: Another state, which records draws, if somebody has asked for their order.
        self._record: State | None = None
        self._compared: Twins | None = None
        self._checks = checks.Checks(self.pages)
        #: The replays of the study's questions. Who uses them takes this lock before the other one.
        self._replays = Replays()
        self._replaying = threading.Lock()
        _KEEPERS.add(self)
        with self._lock:
            self._catch_up()

    def lock(self) -> AbstractContextManager[Any]:
        """The lock: who holds it sees one moment."""
        return self._lock

    # -- reading

    def read(
        self, look: Callable[Concatenate[State, int, Given], Result], *given: Given.args, **options: Given.kwargs
    ) -> Result:
        """What a function says of the state of this moment. It must not change the state."""
        journal = self.journal
        with self._lock:
            state = self._state or self._catch_up()
            if tail := journal.read(state.head):
                self._fold(state, tail)
            now, latest = journal.now(), state.head[1]
            return look(state, now if now > latest else latest, *given, **options)

    def state(self) -> State:
        """The state of this moment. The caller holds the lock while it reads."""
        with self._lock:
            return self._catch_up()

    def pages(self, head: Head = START) -> Iterator[list[Entry]]:
        """The entries after the head, some thousands at a time. The lock is held only while a page is read."""
        pages = self.journal.pages(head)
        while True:
            with self._lock:
                page = next(pages, None)
            if page is None:
                return
            yield page

    def recorded(self) -> State:
        """The state of this moment with every draw in its order. The first call reads the whole journal."""
        with self._lock:
            state, self._record = self._record or State(recording=True), None
            for page in self.journal.pages(state.head):
                state.apply(page)
            self._record = state
            return state

    def replies(self, name: str, question: int | None = None) -> list[Reply]:
        """The answers to the questions of a chain at this moment, or to one. They are computed outside of the lock."""
        return self._replayed(name, lambda state, chain: self._replays.read(state, chain, question))

    def growth(self, name: str, good: Callable[[float, float], bool], width: float | None) -> list[float]:
        """The factors by which a chain must grow until its answers are good, as `Running.growth` says."""
        return self._replayed(name, lambda state, chain: self._replays.growth(state, chain, good, width))

    def _replayed(self, name: str, read: Callable[[State, Chain], Callable[[], Result]]) -> Result:
        """What a function says that reads the draws of a chain under the lock, and computes outside of it."""
        with self._replaying:
            try:
                with self._lock:
                    state = self.recorded()
                    compute = read(state, state.names[name])
                return compute()
            except BaseException:
                self._replays = Replays()  # one may have stopped half-way
                raise

    def recall(self, chain: int, path: int, step: int) -> Entry | None:
        """The entry that told a step of a path. It reads the whole journal."""
        return next(islice(self._told(chain, path), step - 1, None), None)

    # -- changing

    def do(self, command: Command[Given, Result], *given: Given.args, **options: Given.kwargs) -> Result:
        """The result of a command, whose entries are stored when this returns."""
        found: Result

        def checked(tail: Sequence[Entry]) -> list[Draft]:
            nonlocal found
            if tail:
                self._fold(state, tail)
            now, latest = journal.now(), state.head[1]
            drafts, found = command(state, now if now > latest else latest, *given, **options)
            return drafts

        journal = self.journal
        with self._lock:
            state = self._state or self._catch_up()
            new = journal.append(state.head, checked)
            if new:
                self._fold(state, new)
                if state.head.number >= self._keep_at:
                    self._keep_if_due(state)
        return found

    def settle(self) -> bool:
        """Computes bounds and checks that are due, and compares the paths that began alike, outside of the lock.

        Two processes may compute the same one. Only the first entry counts. Returns whether there was something to do.
        If the journal refuses an entry, no error denies the change that came before: the next caller does the rest.
        """
        state = self._state
        if state is not None and not state.aim.looks and not state.twins and not checks.is_due(state):
            return False
        head = None if state is None else state.head
        with suppress(*_REFUSALS):
            self._settle()
        return self._state is None or self._state.head != head

    def _settle(self) -> None:
        while asked := self._due():
            self.look(asked)
        for twins in self._alike():
            states = (entry.value for entry in islice(self._told(twins.chain, twins.first), twins.length))
            if surprise(states, twins.needed) >= twins.needed:
                self.do(commands.repeat, twins)
        while checks.is_due(self.state()):  # who is set aside may have been the last one behind
            made = self._checks.now()
            self.do(commands.check, made.observations, made.stored, made.doubts)

    def look(self, asked: Sequence[bounds.Due]) -> None:
        """Computes bounds, and answers where there are questions, outside of the lock, and notes them."""
        self.note_bounds([one for one in asked if not one.asks])
        for one in asked:
            if one.asks:
                found = bounds.found([one])[0] if one.bounds else None
                self.do(commands.look, one, found, self.replies(one.name))

    def look_at(self, names: Iterable[str]) -> None:
        """Looks at these chains whether they are due or not, because what was computed of them counts for the aim."""
        if not self.journal.read_only:
            with self._lock:
                state = self._catch_up()
                asked = [bounds.due(state, state.names[name]) for name in names]
            self.look(asked)
            self.settle()

    def note_bounds(self, asked: Sequence[bounds.Due]) -> list[bounds.Found]:
        """Computes bounds outside of the lock, and notes them."""
        found = bounds.found(asked)
        for due, one in zip(asked, found, strict=True):
            self.do(
                commands.bound, due.name, due.cut, transitions=one.transitions, value=one.bound, ratio=one.ratio,
                method=one.method, error=one.error, aim=due.aim,
            )  # fmt: skip
        return found

    def checked(self) -> checks.Results:
        """What the checks of all chains say of this moment. Nothing is stored."""
        return self._checks.now()

    def _due(self) -> list[bounds.Due]:
        with self._lock:
            state = self._catch_up(read=False)
            return [bounds.due(state, state.chains[number]) for number in sorted(state.aim.looks)[:_AT_ONCE]]

    def _alike(self) -> list[Twins]:
        """The pairs of paths that began alike since the last call."""
        with self._lock:
            twins = list(self._catch_up(read=False).twins)
            after = twins.index(self._compared) + 1 if self._compared in twins else 0
            if twins:
                self._compared = twins[-1]
            return twins[after:]

    def _told(self, chain: int, path: int) -> Iterator[Entry]:
        """The entries of a path's observations."""
        told = (entry for page in self.pages() for entry in page if entry.kind is Kind.TOLD)
        return (entry for entry in told if (entry.chain, entry.path) == (chain, path))

    def events(self, after: int) -> list[EventLine]:
        """The events, as far as ``after`` asks for them: beyond the last `EVENTS` the whole journal is folded again.

        ``after``: the number of an entry, or a negative number of events.
        """
        with self._lock:
            past = self._catch_up().past
            known = list(past.events)
            if len(known) == past.happened or (known[0].number <= after if after >= 0 else len(known) >= -after):
                return known
        again = State(self.policy)
        again.past.events = deque()
        with no_garbage():
            for page in self.pages():
                again.apply(page)
        return list(again.past.events)

    def audit(self) -> None:
        """Reads the whole journal, folds it again, and compares the result with this state and with the snapshot.

        Raises ``FileError`` with the number of the first entry that is not what was written, or if something that
        follows from the entries is not what they say.
        """
        with self._lock:
            self.journal.check_whole()
            kept = self._kept_state()
            state = self._catch_up()
            again = State(self.policy)
            for known, what in ((kept, "its snapshot"), (state, "what this process knows of it")):
                if known is None:
                    continue
                for page in self.journal.pages(again.head):
                    with no_garbage():
                        again.apply(page[: known.head.number - again.head.number])
                    if again.head.number == known.head.number:
                        break
                if packed_state(again) != packed_state(known):
                    raise FileError(f"{self.journal.where} is damaged: {what} is not what its entries say")

    def close(self) -> None:
        """Lets go of the journal."""
        with self._lock:
            self.journal.close()

    # -- folding

    def _catch_up(self, *, read: bool = True) -> State:
        """The state of this moment, or without ``read`` as it was known last."""
        if self._state is None:
            with no_garbage():
                state = self._from_snapshot() or State(self.policy)
                for page in self.journal.pages(state.head):
                    state.apply(page)
            self._state = state
        elif read and (tail := self.journal.read(self._state.head)):
            self._fold(self._state, tail)
        return self._state

    def _fold(self, state: State, entries: Sequence[Entry]) -> None:
        """Folds entries. If it is interrupted, the state is half-way: the next caller folds everything again."""
        self._state = None
        if len(entries) < _MANY:
            state.apply(entries)
        else:
            with no_garbage():
                state.apply(entries)
        self._state = state

    def _from_snapshot(self) -> State | None:
        state = self._kept_state()
        if state is not None:
            self._kept = state.head.number
            self._keep_at = self._kept + TAIL
        return state

    def _kept_state(self) -> State | None:
        """The state of the snapshot; None if there is none, or if this program cannot use it."""
        if self.policy is None:
            return None
        found = self.journal.snapshot()
        if found is None or found.key != snapshot_key(self.policy):
            return None
        return unpacked_state(found.content, self.policy)

    def _keep_if_due(self, state: State) -> None:
        """Keeps a snapshot if what was written since the last one is long, beside the state."""
        objects = sum(1 + len(chain.rows) + len(chain.walks) for chain in state.chains)
        due = self._kept + max(TAIL, OBJECTS * objects)
        if state.head.number < due:
            self._keep_at = due
            return
        self._keep_at = state.head.number + TAIL
        if not self.journal.lasts or state.order is None or state.order.errors or not self.policy:
            return
        self.journal.keep(Snapshot(snapshot_key(self.policy), state.head, packed_state(state)))
        self._kept = state.head.number


@contextmanager
def no_garbage() -> Iterator[None]:
    """Folds without the garbage collector: nothing of a state is garbage, and looking for it takes half of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _renew_locks() -> None:
    """In a forked child nobody releases a lock that a thread of the parent held: the journal refuses there instead."""
    for keeper in _KEEPERS:
        keeper._lock, keeper._replaying = threading.RLock(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
