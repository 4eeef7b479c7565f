"""The state of a study: what follows from the entries of its journal, and nothing else.

`State.apply` is the only code that changes counts, paths, slots, leases, budget, labels and stops. It is total and
deterministic: it reads no clock and no file, and it never raises, because commands checked everything before they
appended. An error of a user's own rule is kept and raised by the next choice, and no observation is lost by it.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..journal.entry import START as NOTHING
from ..journal.entry import End, Entry, Head, Kind, unpacked
from ..logarithm import log
from ..policies import Policy
from . import stop
from .aim import FEW, Aim, next_check
from .chain import Chain, Lease, Owner, Path, Row
from .draws import START, UNKNOWN, Card, Cut, Status
from .order import Order
from .past import Past
from .questions import Asked, Registered
from .repetition import CHECKPOINTS, MOST_NAMED, digested, most_surprise, needed_surprise
from .views import EventKind

__all__ = ["LEARNER", "MAIN", "MOST_BARREN", "Keyed", "State", "Twins"]

#: A chain is set aside after this many consecutive paths that ended without a transition (MATH §1).
MOST_BARREN = 10
#: The ends that do not depend on a step that was not told.
_DUE = (End.TERMINATED, End.TRUNCATED, End.DUE)
_TOLD = Kind.TOLD
#: The kinds of entries that may end a study, besides observations. The aims of an extension come before it.
_ENDING = frozenset({
    Kind.EXPIRED, Kind.ABANDONED, Kind.PATH_ENDED, Kind.SET_ASIDE, Kind.TAKEN_UP, Kind.BOUND,
    Kind.ANSWERED, Kind.CHECKED, Kind.REPEATED, Kind.EXTENDED, Kind.CREATED,
})  # fmt: skip
#: Who tells compares the paths that began alike at once. So only the latest of them are waiting.
_MOST_TWINS = 1000
#: The name of a walker that has no other; and of the first worker of `learn`. Its others have a number behind it.
MAIN, LEARNER = "main", "learn"


class Twins(NamedTuple):
    """Two paths of a chain that began alike. Who can read the journal finds out whether that is unlikely."""

    chain: int
    first: int
    second: int
    #: How many states they have in common, or more.
    length: int
    #: How unlikely these states must be, in nats.
    needed: float


class Keyed(NamedTuple):
    """An observation that has a key."""

    #: Its entry, its chain, its path, its number in the path, and the position of its state.
    number: int
    chain: int
    path: int
    step: int
    state: int


class State:
    """What follows from the entries of a journal.

    ``policy``: the study's rule; None: nobody asks this state for a choice, so there is no order of the chains.
    ``recording``: whether every draw is kept in its order, for questions and checks.
    """

    def __init__(self, policy: Policy | None = None, *, recording: bool = False) -> None:
        self.order = None if policy is None else Order(policy)
        self.recording = recording
        #: The last entry.
        self.head = NOTHING
        #: What the first entry says.
        self.settings: dict[str, Any] = {}
        self.chains: list[Chain] = []
        self.names: dict[str, Chain] = {}
        self.shared = False
        self.delta = 0.05
        #: Σ_k S_k² over the states that are known now.
        self.pairs = 0
        self.budget: float | None = None
        self.deadline: float | None = None
        #: The cheapest and the dearest observation.
        self.costs = (1.0, 1.0)
        #: What the study is for, and how far its chains are from it.
        self.aim = Aim()
        #: How many observations and paths there are, what was spent, on first observations too, and what is promised.
        self.observations = self.paths = 0
        self.used = self.first_cost = self.reserved = 0.0
        #: How many leases there were.
        self.grants = 0
        self.lost = 0
        self.leases: dict[int, Lease] = {}
        self.walkers: dict[int, Owner] = {}
        #: The callers' keys → what has them.
        self.keys: dict[str, Keyed] = {}
        #: How many chains are set aside.
        self.aside = 0
        #: The latest paths that began as another one did; and those of which that is unlikely: no bound holds then.
        self.twins: deque[Twins] = deque(maxlen=_MOST_TWINS)
        self.repeated: list[Twins] = []
        self.version = 0
        #: Whether an event says that the study is over; and what else happened.
        self.over = False
        self.past = Past()
        #: The registered questions with their answers.
        self.questions: list[Asked] = []
        #: Chain → why no bound of it holds; and what the last entry `CHECKED` says.
        self.doubts: dict[str, str] = {}
        self.checked: dict[str, Any] | None = None
        #: How many observations there were when the checks were last made, and how many there will be the next time.
        self.checked_at = 0
        self.check_due = math.inf
        self._effects = self._dispatch()

    def _dispatch(self) -> dict[Kind, Callable[[Entry], None]]:
        return {
            Kind.CREATED: self._created, Kind.SESSION: self._walker, Kind.WORKER: self._walker,
            Kind.CONTINUED: self._continued, Kind.LEASE: self._leased, Kind.TOLD: self._told,
            Kind.LABEL: self._labelled, Kind.RENEWED: self._renewed, Kind.EXPIRED: self._given_up,
            Kind.ABANDONED: self._given_up, Kind.GIVEN_BACK: self._given_back, Kind.PATH_ENDED: self._path_ended,
            Kind.LOST: self._lost, Kind.SET_ASIDE: self._set_aside, Kind.TAKEN_UP: self._taken_up,
            Kind.EXTENDED: self._extended, Kind.BOUND: self._bound,
            Kind.ANSWERED: self._answered, Kind.CHECKED: self._checked, Kind.REPEATED: self._repeated,
            Kind.RULE: self._ruled, Kind.AIM: self._aimed, Kind.CLOSED: self._closed, Kind.CORRECTED: self._corrected,
        }  # fmt: skip

    def apply(self, entries: Iterable[Entry]) -> None:
        """Folds the entries that follow the head."""
        effects, past = self._effects, self.past
        entry = None
        for entry in entries:
            kind, past.entry = entry[2], entry
            effects[kind](entry)
            if kind is _TOLD:
                if self.aside or (self.budget is not None and self.budget - self.used < self.costs[1]):
                    self._note_end()
            elif kind in _ENDING:
                self._note_end()
        if entry is not None:
            self.head = Head(entry[0], entry[1], entry[8])

    def _note_end(self) -> None:
        """Notes that the study is over, once. A deadline that passes without an entry is no event."""
        if self.over:
            return
        why = stop.reason(self)
        if why is None:
            return
        self.over = True
        self.past.happen(EventKind.FINISHED, reason=why.value)
        self.past.draw_all(self)
        if len(self.chains) <= FEW:  # a small study that has stopped shows the bounds of its last moment
            for chain in self.chains:
                if chain.transitions > chain.at_cut[1] and chain.wanted is None and not chain.done:
                    self.aim.want(self, chain, self.past.entry.number)

    # -- creation

    def _created(self, entry: Entry) -> None:
        given = self.settings = unpacked(entry.more)
        self.shared = given.get("paths") == "shared"
        self.delta, self.budget, self.deadline = given["delta"], given.get("budget"), given.get("deadline")
        self.version = given["policy"]["version"]
        weights, costs, warm = given.get("weights", {}), given.get("costs", {}), given.get("warm", {})
        known = self.known_states()
        for position, (name, place) in enumerate(given["chains"].items()):
            size, labels, positions, is_open = known[place]
            made = Chain(position, name, size)
            made.is_open = is_open
            if labels is not None:  # lists that never change are shared
                made.labels, made.positions = (labels.copy(), positions.copy()) if is_open else (labels, positions)
            made.weight, made.cost = weights.get(name, 1.0), costs.get(name, 1.0)
            made.shared = self.shared
            if self.recording:
                made.draws.cards = []
            for x, counts in warm.get(name, ()):
                self._warm(made, x, dict(counts))
            made.variability = made.weight * made.plug_in()
            self.pairs += made.size * made.size
            self.chains.append(made)
        self.names = {chain.name: chain for chain in self.chains}
        self.questions = [Asked(number, Registered(*one)) for number, one in enumerate(given.get("questions", ()), 1)]
        for question in self.questions:
            self.chains[question.chain].questions.append(question)
        prices = [chain.cost for chain in self.chains]
        self.costs = min(prices), max(prices)
        if self.order is not None:
            self._keep_error(lambda order: order.begin(self.chains, self.pairs, self.horizon))
        self.check_due = next_check(0, len(self.chains))
        self.aim.renew(self, 0, dict(given.get("aims", {})))
        self.past.happen(EventKind.CREATED, policy=given["policy"]["name"])

    def known_states(self) -> list[tuple[int, list[Any] | None, dict[Any, int], bool]]:
        """The sets of states that the first entry names: how many, their labels, positions, and whether it is open."""
        return [_states_of(states) for states in self.settings["states"]]

    def _warm(self, chain: Chain, x: int, counts: dict[int, int]) -> None:
        row = chain.rows[x] = Row()
        row.counts, chain.warm = counts, {**chain.warm, x: dict(counts)}
        row.exits = sum(counts.values())
        row.squares = sum(n * n for n in counts.values())
        chain.transitions += row.exits
        chain.prior += row.exits
        if chain.is_open:
            row.discoveries = {}
            for y, n in counts.items():
                chain.discovered += 1
                row.discoveries[y] = chain.discovered, row.exits, n

    @property
    def horizon(self) -> int | None:
        """The largest number of observations that the budget allows; None if there is no budget."""
        return None if self.budget is None else max(1, math.floor(self.budget / self.costs[0]))

    def _keep_error(self, change: Callable[[Order], None]) -> None:
        """Changes the order of the chains. What the rule raises is kept for who asks."""
        if self.order is not None:
            try:
                change(self.order)
            except Exception as error:
                self.order.errors[-1, -1] = error

    # -- walkers

    def _walker(self, entry: Entry) -> None:
        is_worker, given = entry.kind is Kind.WORKER, unpacked(entry.more)
        facts = given.get("name", MAIN), is_worker, entry.value == 1, given.get("program", ""), given["id"]
        self.walkers[entry.number] = Owner(entry.number, *facts)

    def _continued(self, entry: Entry) -> None:
        chain = self.chains[entry.chain]
        path = chain.walks.get(entry.path)
        if path is not None:
            path.owner = path.by = entry.by
            if path.slot is not None and path.slot.status is Status.RELEASED:
                chain.draws.ask_again(path.slot, path.last, entry.by, entry.time)

    def _closed(self, entry: Entry) -> None:
        for number, numbers in unpacked(entry.more)["paths"]:
            chain = self.chains[number]
            own = [path for one in numbers if (path := chain.walks.get(one)) is not None and not path.ended]
            for path in sorted(own, key=lambda path: path.slot.number if path.slot else 0, reverse=True):
                self._hand_back(chain, path)

    # -- observations

    def _told(self, entry: Entry) -> None:
        number, time, _, chain, path, value, by, more, _ = entry
        c = self.chains[chain]
        p = c.walks.get(path) or self._begin_path(c, path, by, True)
        x, lease, slot, draws = p.last, p.lease, p.slot, c.draws
        if lease is None:
            follows = p.is_plain and not p.ended
        else:
            lease.steps -= 1
            c.pending -= 1
            self.reserved -= c.cost
            follows = lease.steps > 0 and not lease.at_once
        if x == START:
            p.told_slot = number if lease is None else lease.number
            self.paths += 1
            self.first_cost += c.cost
            if follows:
                p.slot = draws.ask(number, value, path, by, time)
            elif slot is not None and slot.steps == 1:
                slot.source = value
        else:
            assert slot is not None  # the commands see to it that a step is told only if it was asked for
            p.told_slot = slot.number
            if follows:
                draws.follow(slot, x, value, number, time)
            elif slot.steps == 1:
                draws.fill(slot, x, value)
                p.slot = None
            else:
                draws.fill(slot, x, value)
                slot.source = value if slot.steps == 1 else UNKNOWN
            self._count(c, x, value)
        p.before, p.last, p.told, p.by = x, value, number, by
        p.steps += 1
        p.digest = digested(p.digest, value)
        c.observations += 1
        self.observations += 1
        self.past.times.append(time)
        self.used += c.cost
        if draws.cards is not None:
            draws.cards.append(Card(p.told_slot, path, p.steps, x, value, number, p.owner))
        if self.order is not None:
            self.order.moved.add(chain)
        if lease is not None and not lease.steps:
            self._free(c, p)
        if p.ended and p.slot is None:
            del c.walks[path]
        if p.steps in CHECKPOINTS:
            self._keep_prefix(c, p)
        if c.transitions >= c.due and c.wanted is None:
            self.aim.want(self, c, number)
        if more:
            self._keep_key(entry, p.steps)

    def _begin_path(self, chain: Chain, path: int, owner: int, is_plain: bool) -> Path:
        """A new path. If the chain is one process, the path before it ends."""
        if self.shared:
            for before in list(chain.walks.values()):
                if not before.ended:
                    self._leave(chain, before, End.UNKNOWN, lost=False)
        elif is_plain and chain.draws.holes:
            chain.draws.leave(lambda hole: hole.path in chain.walks and chain.walks[hole.path].is_plain)
        chain.paths = max(chain.paths, path)
        name = self.walkers[owner].name
        latest = chain.newest.get(name, 0)
        self._forget(chain, chain.walks.get(latest))
        found = chain.walks[path] = Path(path, owner, is_plain, latest)
        chain.newest[name] = path
        return found

    @staticmethod
    def _forget(chain: Chain, latest: Path | None) -> None:
        """Forgets the path before the latest one of a name, if it was closed: nobody goes on with it any more."""
        older = None if latest is None else chain.walks.get(latest.follows)
        if older is not None and older.is_plain and (older.slot is None or older.slot.status is Status.VOID):
            del chain.walks[older.number]

    def _count(self, chain: Chain, x: int, y: int) -> None:
        """Counts a transition."""
        row = chain.rows.get(x)
        if row is None:
            row = chain.rows[x] = Row()
            if chain.is_open:
                row.discoveries = {}
        counts = row.counts
        seen = counts.get(y, 0)
        counts[y] = seen + 1
        row.exits += 1
        row.squares += 2 * seen + 1
        chain.transitions += 1
        chain.barren = 0
        if not seen and chain.is_open:
            chain.discovered += 1
            row.discoveries[y] = chain.discovered, row.exits, 1
        if self.order is not None:
            self.order.count(chain, x, row)

    def _uncount(self, chain: Chain, x: int, y: int) -> None:
        """Takes back a transition."""
        row = chain.rows[x]
        row.squares -= 2 * row.counts[y] - 1
        row.counts[y] -= 1
        row.exits -= 1
        chain.transitions -= 1
        if not row.counts[y]:
            del row.counts[y]
        if not row.exits:
            del chain.rows[x]
        if self.order is not None:
            (self.order.count if row.exits else self.order.forget)(chain, x, row)

    def _keep_prefix(self, chain: Chain, path: Path) -> None:
        """Notes how the path began, and that another one began alike."""
        if not chain.prefixes:
            chain.prefixes = {}
        alike = chain.prefixes.setdefault((path.steps, path.digest), [])
        if alike:
            first, second = sorted((min(alike), path.number))
            needed = needed_surprise(len(self.chains), second)
            known = [place for place, pair in enumerate(self.repeated) if pair[:3] == (chain.number, first, second)]
            if known:  # the common beginning is longer than was known
                self.repeated[known[0]] = self.repeated[known[0]]._replace(length=path.steps)
            elif most_surprise(path.steps) >= needed and self.names_more(chain.number, second):
                self.twins.append(Twins(chain.number, first, second, path.steps, needed))
        alike.append(path.number)

    def names_more(self, chain: int, path: int) -> bool:
        """Whether it is news that this path repeats another one: not if that is known, or if many others do."""
        known = [pair.second for pair in self.repeated if pair.chain == chain]
        return path not in known and len(known) < MOST_NAMED

    def _keep_key(self, entry: Entry, steps: int) -> None:
        key = unpacked(entry.more).get("key")
        if key is not None:
            self.keys[key] = Keyed(entry.number, entry.chain, entry.path, steps, entry.value)

    def _labelled(self, entry: Entry) -> None:
        chain, label = self.chains[entry.chain], unpacked(entry.more)["label"]
        if chain.positions is not None and chain.labels is not None:
            chain.positions[label] = entry.value
            chain.labels.append(label)
            self.pairs += 2 * chain.size + 1  # S² → (S+1)²
            chain.size += 1

    def _corrected(self, entry: Entry) -> None:
        chain = self.chains[entry.chain]
        path = chain.walks.get(entry.path)
        if path is None or path.steps != entry.value:
            return
        x, y = path.before, path.last
        self.keys = {key: told for key, told in self.keys.items() if told.number != path.told}
        self._free(chain, path)
        if path.slot is not None:  # the step after the mistold one leaves a state that nobody knows
            path.slot.source = UNKNOWN
        if x != START:
            self._uncount(chain, x, y)
            chain.draws.recall(path.told_slot, x, y, self._settled(chain, (x, y)))
        else:
            self.paths -= 1
            self.first_cost -= chain.cost
        if chain.draws.cards is not None:
            if x == START:
                chain.draws.gone.append(Card(path.told_slot, path.number, 1, START, UNKNOWN, 0, 0, Status.LOST))
            chain.draws.cards = [card for card in chain.draws.cards if card.told != path.told]
        chain.observations -= 1
        self.observations -= 1
        self.lost += 1
        self._leave(chain, path, End.UNKNOWN, EventKind.CORRECTED, lost=True, **unpacked(entry.more))
        chain.draws.note_early()
        if chain.done:  # the cut where it was done may have other counts now
            self.aim.reopen(self, chain, entry.number)
        chain.walks.pop(path.number, None)  # nobody can say where its next step began, so no value closes its hole

    @staticmethod
    def _settled(chain: Chain, recalled: tuple[int, int]) -> dict[tuple[int, int], int]:
        """What was told before the first hole, with a draw that was just taken back."""
        found = {(x, y): n for x, row in chain.rows.items() for y, n in row.counts.items()}
        found[recalled] = found.get(recalled, 0) + 1
        for x, counts in chain.warm.items():
            for y, times in counts.items():
                found[x, y] -= times
        for hole in chain.draws.holes:
            for pair, times in hole.after.items():
                found[pair] -= times
        return {pair: times for pair, times in found.items() if times}

    # -- leases and the ends of paths

    def _leased(self, entry: Entry) -> None:
        number, time, _, chain, path, value, by, more, _ = entry
        c = self.chains[chain]
        given = unpacked(more)
        steps, at_once = given.get("steps", 1), given.get("at_once", False)
        p = c.walks.get(path)
        if p is None:
            p = self._begin_path(c, path, by, False)
        p.owner, p.is_plain = by, False
        lease = p.lease = self.leases[number] = Lease(number, by, chain, path, time + value, value, steps, at_once)
        c.leases += 1
        c.pending += steps
        self.reserved += steps * c.cost
        self.grants += 1
        slots = steps if at_once else 1
        if p.last == START:
            slots -= 1  # the first state is no draw of a row
        if slots:
            source = p.last if slots == 1 and p.last != START else UNKNOWN
            if p.slot is None or p.slot.status is Status.VOID:
                p.slot = c.draws.ask(number, source, path, lease.number, time, slots)
            else:
                c.draws.ask_again(p.slot, source, lease.number, time, slots)
        if self.order is not None:
            self.order.moved.add(chain)

    def _free(self, chain: Chain, path: Path, end: End = End.UNKNOWN) -> None:
        """Ends the path's lease. Its unused part goes back to the budget. ``end``: of a path without a state."""
        lease, path.lease = path.lease, None
        if lease is None:
            return
        if path.steps == 0 and self.recording and end not in _DUE:
            pending = (other.lease.number for other in chain.walks.values() if other.lease and other.steps == 0)
            chain.draws.lose_start(lease.number, path.number, max(pending, default=0), made=end is End.LOST)
        del self.leases[lease.number]
        self.reserved -= lease.steps * chain.cost
        if not self.leases:
            self.reserved = 0.0  # removes the rounding errors of sums of costs
        chain.leases -= 1
        chain.pending -= lease.steps
        if self.order is not None:
            self.order.moved.add(chain.number)

    def _renewed(self, entry: Entry) -> None:
        lease = self.leases.get(entry.by)
        if lease is not None:
            lease.expires, lease.lasts = entry.time + entry.value, entry.value

    def _given_up(self, entry: Entry) -> None:
        lease = self.leases.get(entry.by)
        if lease is not None:
            chain = self.chains[lease.chain]
            kind = EventKind.LEASE_EXPIRED if entry.kind is Kind.EXPIRED else EventKind.LEASE_ABANDONED
            self._leave(chain, chain.walks[lease.path], End.LOST, kind)

    def _given_back(self, entry: Entry) -> None:
        lease = self.leases.get(entry.by)
        if lease is not None:
            chain = self.chains[lease.chain]
            self._hand_back(chain, chain.walks[lease.path])

    def _hand_back(self, chain: Chain, path: Path) -> None:
        """The walker says that no step of its open slot was made."""
        if path.lease is not None:
            self.past.happen_on(self, path, EventKind.LEASE_GIVEN_BACK, chain)
        self._free(chain, path)
        if path.steps == 0:
            path.ended = not self.shared  # nobody goes on with a path that did not begin
            name = self.walkers[path.owner].name
            if chain.newest.get(name) == path.number:
                chain.newest[name] = path.follows
            self._close_slot(chain, path, End.UNKNOWN, unmade=True)
        elif path.slot is not None and path.slot.status is Status.PENDING:
            path.slot.source = path.last
            chain.draws.release(path.slot)
        if path.ended and path.slot is None:
            del chain.walks[path.number]

    def _path_ended(self, entry: Entry) -> None:
        chain = self.chains[entry.chain]
        path = chain.walks.get(entry.path)
        if path is not None and not path.ended:
            self._leave(chain, path, End(entry.value), lost=entry.value == End.LOST)

    def _leave(self, chain: Chain, path: Path, end: End, kind: EventKind = EventKind.PATH_ENDED, **detail: Any) -> None:
        """Ends a path, and its lease. A chain whose last paths brought no transition is set aside."""
        self.past.happen_on(self, path, kind, chain, **detail)
        self._free(chain, path, end)
        self._close_slot(chain, path, end)
        self.lost += end is End.LOST
        path.ended = True
        if path.steps <= 1 and kind is not EventKind.CORRECTED:
            chain.barren += 1
            if chain.barren >= MOST_BARREN:
                self._put_aside(chain, f"its last {chain.barren} paths brought no transition")
        if path.slot is None:
            chain.walks.pop(path.number, None)

    def _close_slot(self, chain: Chain, path: Path, end: End, *, unmade: bool = False) -> None:
        """What becomes of the open slot of a path that nobody goes on with (MATH §15, rule 1).

        ``unmade``: its walker says that no step was made.
        """
        slot = path.slot
        if slot is None or slot.status is Status.VOID:
            path.slot = None
            return
        if end in _DUE or (unmade and chain.draws.is_last(slot)):
            chain.draws.void(slot)
            path.slot = None
        else:
            chain.draws.give_up(slot)

    def _lost(self, entry: Entry) -> None:
        self.lost += 1
        self.past.happen(EventKind.OBSERVATION_LOST, self.chains[entry.chain])

    # -- which chains are advanced, and until when

    def _set_aside(self, entry: Entry) -> None:
        self._put_aside(self.chains[entry.chain], unpacked(entry.more).get("reason", ""), entry.value == 1)

    def _put_aside(self, chain: Chain, reason: str, ended: bool = False) -> None:
        if chain.aside is None:
            self.aim.tally(chain, -1)
            chain.aside, chain.ended = reason, ended
            self.aside += 1
            self.aim.tally(chain, 1)
            self.moved(chain)
            self.past.happen(EventKind.SET_ASIDE, chain, reason=reason, ended=ended)

    def _taken_up(self, entry: Entry) -> None:
        chain = self.chains[entry.chain]
        if chain.aside is not None:
            self.aim.tally(chain, -1)
            chain.aside, chain.ended, chain.barren = None, False, 0
            self.aside -= 1
            self.aim.tally(chain, 1)
            self.moved(chain)
            self.past.happen(EventKind.TAKEN_UP, chain)
        self.over = False

    def moved(self, chain: Chain) -> None:
        """The chain's index may be another one now."""
        if self.order is not None:
            self.order.moved.add(chain.number)

    def _extended(self, entry: Entry) -> None:
        given = unpacked(entry.more)
        self.deadline = given.get("deadline", self.deadline)
        if "budget" in given:
            endless, self.budget = (self.budget is None) != (given["budget"] is None), given["budget"]
            self._keep_error(lambda order: order.renew(self.pairs, self.horizon, always=endless))
        self.over = False
        loss = self.aim.targets.get("loss")
        self.past.happen(
            EventKind.EXTENDED, budget=self.budget, target_loss=min(loss.values()) if isinstance(loss, dict) else loss,
            deadline=self.deadline, target_width=self.aim.targets.get("width"),
        )  # fmt: skip

    def _ruled(self, entry: Entry) -> None:
        self.past.happen(EventKind.RECOMPUTED, policy=unpacked(entry.more)["name"], old=self.version, new=entry.value)
        self.version = entry.value

    def _checked(self, entry: Entry) -> None:
        """The checks of all chains. With an aim, no bound of a chain counts that they speak against."""
        given = self.checked = unpacked(entry.more)
        self.checked_at = given["observations"]
        self.check_due = next_check(self.observations, len(self.chains))
        self.doubts = {self.chains[number].name: sentence for number, _, sentence in given["doubts"]}
        self.aim.doubt(self, [self.chains[number] for number, _, _ in given["doubts"]])

    def _repeated(self, entry: Entry) -> None:
        chain, pair = self.chains[entry.chain], {entry.value, entry.path}
        lengths = [length for (length, _), paths in chain.prefixes.items() if pair <= set(paths)]
        longest = max(lengths, default=unpacked(entry.more)["states"])
        self.repeated.append(Twins(entry.chain, entry.value, entry.path, longest, 0.0))
        news = [one for one in self.twins if self.names_more(one.chain, one.second)]
        self.twins.clear()
        self.twins.extend(news)
        more = {"path": entry.path, "repeats": entry.value, "states": unpacked(entry.more)["states"]}
        self.past.happen(EventKind.REPEATED, self.chains[entry.chain], **more)

    @property
    def spoilt(self) -> bool:
        """Whether paths repeat each other, so that no bound holds."""
        return bool(self.repeated)

    # -- the aim, and what bounds are made of

    def _aimed(self, entry: Entry) -> None:
        given = unpacked(entry.more)
        self.aim.renew(self, entry.number, {given["of"]: given["target"]})
        if self.doubts:  # chains that cannot reach it are set aside at once
            self.check_due = self.observations

    def _bound(self, entry: Entry) -> None:
        chain = self.chains[entry.chain]
        before = chain.at_cut
        self.aim.bound(self, entry)
        if chain.at_cut != before:
            self.past.draw(self, chain)

    def _answered(self, entry: Entry) -> None:
        chain, given = self.chains[entry.chain], unpacked(entry.more)
        asked = self.questions[given["question"] - 1]
        if entry.value <= asked.cut:
            return
        asked.hear(entry.value, given)
        self.past.answer(self, asked)
        if all(other.cut == entry.value for other in chain.questions):
            self.aim.answered(self, chain, entry.number)

    def chosen_cut(self, chain: Chain, everything: int | None = None) -> Cut:
        """The cut whose counts are the chain's: that of a chain that is done, or else the one of the best bound."""
        everything = self.head[0] + 1 if everything is None else everything
        if chain.done and chain.latched is not None:
            place = chain.draws.holes.index(chain.latched)
            return chain.draws.cut(place, everything)
        return chain.draws.chosen(
            chain.rows, chain.size, log(len(self.chains) / self.delta), everything, open_states=chain.is_open,
            latched=chain.latched,
        )  # fmt: skip


def _states_of(states: Any) -> tuple[int, list[Any] | None, dict[Any, int], bool]:
    """How many states there are, their labels, their positions, and whether new ones may appear."""
    if isinstance(states, int):
        return states, None, {}, False
    is_open = "open" in states
    labels = list(states["open" if is_open else "labels"])
    return len(labels), labels, {label: x for x, label in enumerate(labels)}, is_open
