"""A state as bytes, and back. It is a cache: whoever deletes it loses nothing, because the entries are all there."""

import json
import zlib
from typing import Any

from .._version import __version__
from ..journal.entry import FORMAT, Head
from ..policies import Policy
from .chain import Chain, Lease, Owner, Path, Row
from .draws import Card, Draws, Hole, Status
from .questions import Asked, Registered
from .state import Keyed, State, Twins
from .views import AnswerLine, EventKind, EventLine, HistoryLine

__all__ = ["packed_state", "snapshot_key", "unpacked_state"]

_TOTALS = (
    "shared", "delta", "pairs", "budget", "deadline", "observations", "paths", "used", "first_cost",
    "reserved", "grants", "lost", "aside", "version", "over", "doubts", "checked", "checked_at",
    "check_due",
)  # fmt: skip
_FACTS = (
    "number", "name", "size", "is_open", "weight", "cost", "target", "prior", "constants", "sums", "look",
    "transitions", "observations", "discovered", "paths", "leases", "pending", "barren", "aside", "ended", "looked",
    "at_cut", "bound", "error", "variability", "ratio", "enough", "due", "wanted_at", "done",
)  # fmt: skip
_EVENT = ("number", "time", "kind", "chain", "detail")
_HOLE = ("number", "source", "path", "by", "since", "steps")
_PATH = (
    "number",
    "owner",
    "is_plain",
    "follows",
    "steps",
    "last",
    "before",
    "told",
    "by",
    "told_slot",
    "ended",
    "digest",
)
_ASKED = (
    "lower", "upper", "estimate", "episodes", "notes", "cut", "transitions", "waits", "cards", "since", "met",
)  # fmt: skip
_LEASE = ("number", "worker", "chain", "path", "expires", "lasts", "steps", "at_once")


def snapshot_key(policy: Policy) -> str:
    """What folded the state. A reader with another version or rule folds the entries again."""
    return json.dumps([FORMAT, __version__, policy.name, dict(policy.parameters), policy.version], sort_keys=True)


def packed_state(state: State) -> bytes:
    """Everything that the state knows, but for errors of its rule: such a state is not worth keeping."""
    content = {
        "head": state.head,
        "settings": state.settings,
        "totals": [getattr(state, name) for name in _TOTALS],
        "costs": state.costs,
        "walkers": list(state.walkers.values()),
        "keys": list(state.keys.items()),
        "aim": [
            state.aim.targets,
            state.aim.number,
            state.aim.behind,
            state.aim.missed,
            state.aim.verified,
            sorted(state.aim.looks),
        ],
        "twins": [list(state.twins), state.repeated],
        "past": [
            state.past.happened,
            state.past.due,
            list(state.past.times),
            list(state.past.history.items()),
            list(state.past.answers.items()),
            [[getattr(one, name) for name in _EVENT] for one in state.past.events],
        ],
        "questions": [[getattr(asked, name) for name in _ASKED] for asked in state.questions],
        "leases": [[getattr(lease, name) for name in _LEASE] for lease in state.leases.values()],
        "chains": [_packed(chain) for chain in state.chains],
    }
    # Python's JSON has infinite numbers too. The text is for nobody but this program.
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)


def unpacked_state(content: bytes, policy: Policy | None, *, recording: bool = False) -> State | None:
    """The state of a snapshot; None if this program cannot read it. The same rule must have folded it."""
    try:
        given = json.loads(zlib.decompress(content))
    except (zlib.error, ValueError):
        return None
    state = State(policy, recording=recording)
    state.head, state.settings = Head(*given["head"]), given["settings"]
    for name, value in zip(_TOTALS, given["totals"], strict=True):
        setattr(state, name, value)
    state.costs = tuple(given["costs"])
    state.walkers = {one[0]: Owner(*one) for one in given["walkers"]}
    state.keys = {key: Keyed(*told) for key, told in given["keys"]}
    *aim, looks = given["aim"]
    state.aim.targets, state.aim.number, state.aim.behind, state.aim.missed, state.aim.verified = aim
    state.aim.looks = set(looks)
    waiting, state.repeated = ([Twins(*pair) for pair in pairs] for pairs in given["twins"])
    state.twins.extend(waiting)
    past = state.past
    past.happened, past.due, times, history, answers, events = given["past"]
    past.times.extend(times)
    past.history = {chain: [HistoryLine(*line) for line in lines] for chain, lines in history}
    past.answers = {question: [AnswerLine(*line) for line in lines] for question, lines in answers}
    past.events.extend(EventLine(number, time, EventKind(kind), *rest) for number, time, kind, *rest in events)
    state.leases = {one[0]: Lease(*one) for one in given["leases"]}
    registered = state.settings.get("questions", ())
    state.questions = [Asked(number, Registered(*one)) for number, one in enumerate(registered, 1)]
    for asked, values in zip(state.questions, given["questions"], strict=True):
        for name, value in zip(_ASKED, values, strict=True):
            setattr(asked, name, tuple(value) if isinstance(value, list) else value)
    fixed = state.known_states()
    for packed, (name, place) in zip(given["chains"], state.settings["chains"].items(), strict=True):
        chain = Chain(len(state.chains), name, 0)
        _unpack(chain, packed, state)
        if not chain.is_open:
            _, chain.labels, positions, _ = fixed[place]
            chain.positions = positions if chain.labels is not None else None
        state.chains.append(chain)
    for asked in state.questions:
        state.chains[asked.chain].questions.append(asked)
    state.names = {chain.name: chain for chain in state.chains}
    if state.order is not None:
        state.order.resume(state.chains, state.horizon)
    return state


def _packed(chain: Chain) -> list[Any]:
    rows = [
        (x, row.exits, row.squares, row.terms, row.stale, list(row.counts.items()), list(row.discoveries.items()))
        for x, row in chain.rows.items()
    ]
    holes = chain.draws.holes
    places = {id(hole): place for place, hole in enumerate(holes)}
    paths = [
        ([getattr(path, name) for name in _PATH], places.get(id(path.slot)), path.lease and path.lease.number)
        for path in chain.walks.values()
    ]
    return [
        [getattr(chain, name) for name in _FACTS],
        chain.labels if chain.is_open else None,
        [(x, list(counts.items())) for x, counts in chain.warm.items()],
        rows,
        paths,
        list(chain.newest.items()),
        [(*key, numbers) for key, numbers in chain.prefixes.items()],
        [
            (
                [getattr(hole, name) for name in _HOLE],
                hole.status,
                [hole.is_early, hole.is_row_void],
                list(hole.after.items()),
            )
            for hole in holes
        ],
        [chain.draws.latest, chain.draws.released, chain.draws.cards, chain.draws.gone],
        [places.get(id(chain.wanted)), places.get(id(chain.latched))],
    ]


def _unpack(chain: Chain, packed: list[Any], state: State) -> None:
    facts, labels, warm, rows, paths, newest, prefixes, holes, draws, ends = packed
    for name, value in zip(_FACTS, facts, strict=True):
        setattr(chain, name, tuple(value) if isinstance(value, list) else value)
    chain.shared = state.shared
    if chain.is_open:
        chain.labels, chain.positions = labels, {label: x for x, label in enumerate(labels)}
    chain.warm = {x: dict(counts) for x, counts in warm}
    for x, exits, squares, terms, stale, counts, discoveries in rows:
        row = chain.rows[x] = Row()
        row.exits, row.squares, row.terms, row.stale = exits, squares, tuple(terms), stale
        row.counts = dict(counts)
        row.discoveries = {y: tuple(found) for y, found in discoveries}
    chain.newest = dict(newest)
    chain.prefixes = {(length, digest): numbers for length, digest, numbers in prefixes}
    chain.draws = _draws(holes, draws)
    for values, place, lease in paths:
        known = dict(zip(_PATH, values, strict=True))
        path = chain.walks[known["number"]] = Path(known["number"], known["owner"], known["is_plain"])
        for name, value in known.items():
            setattr(path, name, value)
        path.slot = None if place is None else chain.draws.holes[place]
        path.lease = None if lease is None else state.leases[lease]
    chain.wanted, chain.latched = (None if place is None else chain.draws.holes[place] for place in ends)


def _draws(holes: list[Any], draws: list[Any]) -> Draws:
    found = Draws()
    found.latest, found.released, cards, gone = draws
    found.gone = [Card(*card) for card in gone]
    found.cards = None if cards is None else [Card(*card) for card in cards]
    for values, status, facts, after in holes:
        hole = Hole(*values)
        hole.status = Status(status)
        hole.is_early, hole.is_row_void = facts
        hole.after = {(x, y): times for (x, y), times in after}
        found.holes.append(hole)
    return found
