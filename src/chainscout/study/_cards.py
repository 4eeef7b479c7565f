"""The cards of a chain, kept up to date as the study grows, so that a replay need not read the log again.

``_paths.chain_paths`` gives the same cards from the whole log; a test compares the two. These cards are in memory while
a study is open. Nothing of them is stored: opening a study rebuilds them by one pass over the log. With several
writers, every open study catches up from the log.
"""

import heapq
from collections import deque
from collections.abc import Container, Iterable, Iterator

from ..answers.replay import AWAITED, BLOCKED, DRAWN, Decks
from ..paths import LOST, START
from ..store import ChainRecord, Event, Observation, Transaction
from ._paths import CONTINUED_PLAINLY, PLAIN_SIDE_BY_SIDE, source_key
from ._transitions import MAIN


class _Row:
    """The cards of one row that wait for an earlier card: (number of issue, target, when it was known)."""

    __slots__ = ("blocked", "known")

    def __init__(self) -> None:
        self.known: list[tuple[int, int, int]] = []
        self.blocked = False


class ChainCards:
    """The decks of one chain, and how far the study was read to make them."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.decks = Decks.empty(1, self._key)
        #: Why the order of issue is not known; None where it is.
        self.unordered: str | None = None
        #: Draws that were lost.
        self.lost = 0
        #: The last log line that was read.
        self._line: Observation | None = None
        #: Path → its last state, whether it is a path of plain tells, and its rank in the order of beginning.
        self._paths: dict[int, tuple[int, bool, int]] = {}
        #: The rank of the latest path, and of the latest plain one with its number.
        self._begun = self._plain_begun = 0
        self._plain: int | None = None
        #: The open draws of plain paths that were left.
        self._left: set[int] = set()
        #: State, or START → its cards that wait.
        self._rows: dict[int, _Row] = {}

    def catch_up(self, transaction: Transaction, chain: ChainRecord, events: Iterable[Event] | None) -> None:
        """Reads the observations since the last call, and deals the cards that can be read now.

        ``events``: the chain's events since then; None: events that were already read may have been undone.
        """
        if events is None or not self._follow(transaction, chain, events):
            self._begin_anew()
            self._follow(transaction, chain, lost_draws(transaction.events(0), {chain.number}))
        if self.unordered is None:
            self._deal(transaction, chain)

    def _follow(self, transaction: Transaction, chain: ChainRecord, events: Iterable[Event]) -> bool:
        """Reads new lines and events in the order in which they were written. Returns False if it must start again.

        The last line that was read is read once more: it is gone if its transaction failed.
        """
        after = self._line
        if after is None:
            lines = transaction.log(chain, 0)
        else:
            lines = transaction.log(chain, after.number - 1)
            if next(lines, None) != after:
                return False
        if self.unordered is not None:
            return True
        given_up = deque(events)
        for line in lines:
            while given_up and given_up[0].detail["told"] < line.number:
                if not self._lose(given_up.popleft()):
                    return False
            self._tell(transaction, chain, line)
            self._line = line
            if self.unordered is not None:
                return True
        return all(map(self._lose, given_up))

    def _row(self, source: int) -> _Row:
        row = self._rows.get(source)
        if row is None:
            row = self._rows[source] = _Row()
        return row

    def _tell(self, transaction: Transaction, chain: ChainRecord, line: Observation) -> None:
        """Adds one observation: its card, and whether the order of issue is still known."""
        known = self._paths.get(line.path)
        if known is None:
            source = START
            self._begun += 1
            rank = self._begun
            plain = not transaction.study.shared and self._is_plain(transaction, chain, line.path)
            if plain:
                self._leave(transaction, chain, line.number - 1)
                self._plain, self._plain_begun = line.path, rank
        else:
            source, plain, rank = known
            if rank < (self._begun if plain else self._plain_begun):
                self.unordered = PLAIN_SIDE_BY_SIDE
        self._paths[line.path] = line.state, plain, rank
        if line.issued == 0:
            self.unordered = CONTINUED_PLAINLY
        heapq.heappush(self._row(source).known, (line.issued, line.state, line.number))

    def _is_plain(self, transaction: Transaction, chain: ChainRecord, path: int) -> bool:
        record = transaction.path(chain, path)
        return record is not None and record.worker == MAIN

    def _leave(self, transaction: Transaction, chain: ChainRecord, moment: int) -> None:
        """The previous plain path is left: its next draw is lost, unless an event says otherwise."""
        if self._plain is None:
            return
        record = transaction.path(chain, self._plain)
        if record is not None and record.issued and record.token is None:
            self._left.add(record.issued)
            self._add_lost(self._paths[self._plain][0], record.issued, moment)

    def _lose(self, event: Event) -> bool:
        """Adds a draw that was given up. Returns False if it was already counted as lost at another moment."""
        detail = event.detail
        if detail["issued"] in self._left:
            return False
        known = self._paths.get(detail["path"])
        self._add_lost(START if known is None or detail["step"] == 1 else known[0], detail["issued"], detail["told"])
        return True

    def _add_lost(self, source: int, issued: int, moment: int) -> None:
        heapq.heappush(self._row(source).known, (issued, LOST, moment))
        self.lost += 1

    def _deal(self, transaction: Transaction, chain: ChainRecord) -> None:
        """Puts the cards of each row into the decks, up to the row's first pending card."""
        size = max(1, chain.size)
        if size > self.decks.size:
            self.decks.grow(size)
        pending: dict[int, int] = {}
        waiting = [path for path in transaction.held() if path.chain == chain.number]
        if self._plain is not None:
            plain = transaction.path(chain, self._plain)
            waiting += [plain] if plain is not None and plain.token is None else []
        for path in waiting:
            if path.issued:
                source = START if path.last is None else path.last
                pending[source] = min(path.issued, pending.get(source, path.issued))
        for source in self._rows.keys() | pending.keys():
            row, place = self._row(source), size if source == START else source
            if row.blocked:
                continue
            end = pending.get(source)
            found = []
            while row.known and (end is None or row.known[0][0] < end):
                _, target, moment = heapq.heappop(row.known)
                if target >= 0:
                    found.append(target)
                elif any(other >= 0 and told <= moment for _, other, told in row.known):
                    row.blocked = True
                    break
            if found:
                self.decks.add(place, found)
            self.decks.ends[place] = BLOCKED if row.blocked else DRAWN if end is None else AWAITED


def lost_draws(events: Iterable[Event], chains: Container[int | None]) -> Iterator[Event]:
    """The events of these chains about draws that were issued but not told."""
    return (event for event in events if event.chain in chains and event.detail.get("issued"))


class Readings:
    """The cards of every chain with questions, while this process has the study open."""

    def __init__(self) -> None:
        self._known: dict[int, ChainCards] = {}
        #: The last event that was read, and the events of each chain that its cards have not seen yet.
        self._event: Event | None = None
        self._events: dict[int, list[Event]] = {}

    def of(self, transaction: Transaction, chain: ChainRecord) -> ChainCards:
        """The chain's cards, up to date."""
        self._read_events(transaction)
        cards = self._known.pop(chain.number, None)  # an error leaves nothing behind
        events = None if cards is None else self._events.pop(chain.number, [])
        cards = cards or ChainCards(source_key(transaction, chain))
        cards.catch_up(transaction, chain, events)
        self._known[chain.number] = cards
        return cards

    def _read_events(self, transaction: Transaction) -> None:
        """Reads the new events once for all chains. If the last one is gone, its transaction failed: start again."""
        last = self._event
        if last is None:
            found = transaction.events(0)
        else:
            found = transaction.events(last.number - 1)
            if next(found, None) != last:
                self._known.clear()
                self._events.clear()
                found = transaction.events(0)
        for event in found:
            self._event = event
            if event.chain in self._known and event.detail.get("issued"):
                self._events.setdefault(event.chain, []).append(event)
