"""What an entry of a study's journal is: its kinds, its columns, its line and its digest.

A study is a list of entries, numbered 1, 2, … without gaps. The order of entries is the only order that a study has.
Everything else (counts, paths, leases, budget, what people see) follows from the entries. An entry is never changed
and never removed.

**The line** of an entry is ``[number,time,kind,chain,path,value,by,more]``. The digest reads it, and the export writes
it with the digest as a ninth element.

**The digest** of an entry is BLAKE2b with 64 bits over the digest before it (0 before the first entry) and the entry's
line. So it stands for the whole journal up to this entry. It finds accidents: an entry that was edited, moved, removed
or added. It is no signature. It also says after a lost connection whether the entry that now has a number is one's
own. For this no two walkers may write the same entry: sessions and workers have random marks (``"id"``), and what adds
up names in ``by`` who wrote it.
"""

import json
from collections.abc import Sequence
from enum import IntEnum, unique
from hashlib import blake2b
from typing import Any, NamedTuple

__all__ = [
    "FORMAT", "KINDS", "METHODS", "START", "Draft", "End", "Entry", "Head", "Kind", "digest_of", "line_of", "packed",
    "sealed", "unpacked",
]  # fmt: skip

#: The version of the kinds below and of what they do to the state. The first entry of a journal has it. A new kind or
#: another meaning is a new format.
FORMAT = 15
#: The version of how bounds, answers and checks are computed. Their entries say it.
METHODS = 1


@unique
class Kind(IntEnum):
    """What happened. The list is closed: a reader that meets another number stops with a sentence.

    After each name: what ``value``, ``by`` and ``more`` mean. ``more`` is empty or one JSON object with the keys that
    are named here; a key with ``?`` may be absent. Numbers that a kind does not use are 0. Where a kind concerns a
    chain or a path, ``chain`` and ``path`` have it. 'Session' is the number of an entry ``SESSION``; 'worker', 'lease'
    and 'aim' alike. The rules about slots and holes are those of MATH §15.
    """

    #: The study: always entry 1, and only there. more: ``format`` (`FORMAT`), ``id`` (random), and everything else
    #: that the study fixes: chains, labels, settings, warm starts, the rule's name and parameters.
    CREATED = 1
    #: A program begins to tell without a lease. Written in the append of its first tell. value: 1 if the processes
    #: stand where the study left them (``continuing=True``). more: ``id`` (random), ``program``, ``host``.
    SESSION = 2
    #: A worker begins to lease. Written in the append of its first lease. more: ``id`` (random), ``name``. A worker's
    #: paths are its own: another entry, also with the same name, begins new paths.
    WORKER = 3
    #: The session's next tell of this chain continues this path. by: session.
    CONTINUED = 4
    #: A worker may advance this path until time + value. Its own number is the lease's token. Issues a slot (at_once:
    #: one for each step). value: milliseconds. by: worker. more: ``steps``? (how many; 1), ``at_once``? (true: the
    #: steps are told in one go, so all have their slots here).
    LEASE = 5
    #: A state was observed: the path's first one, or its next one. Fills the path's oldest open slot. Issues the next
    #: slot of the path, unless its lease has no more steps or has its slots already. value: the state's position.
    #: by: session or lease. more: ``key``? (the caller's name for a retry).
    TOLD = 6
    #: An open chain has one more state. value: its position (the number of states before). more: ``label``.
    LABEL = 7
    #: The lease lasts until time + value. value: milliseconds. by: lease.
    RENEWED = 8
    #: The lease's time is over, or somebody gave up its steps, which may have been made. The path ends; its open slots
    #: are holes. by: lease.
    EXPIRED = 9
    ABANDONED = 10
    #: The walker gives up the rest of its lease and says that no step was made. The path stays. The open slot is void
    #: if no later slot of the chain had been issued, else a hole. by: lease.
    GIVEN_BACK = 11
    #: The path ends, and its lease if it has one. value: an `End`, which says what becomes of the open slot.
    #: by: session or lease.
    PATH_ENDED = 12
    #: An observation was made and can never be told; nobody says on which path. by: session.
    LOST = 13
    #: The chain is not advanced any more, or again. value (set aside): 1 if the source has no more states. by: session,
    #: lease or 0. more (set aside): ``reason``.
    SET_ASIDE = 14
    TAKEN_UP = 15
    #: New ends: those that are given replace the old ones. A study that had ended goes on. by: session or 0.
    #: more: ``budget``?, ``deadline``? (null: none).
    EXTENDED = 16
    #: A bound that somebody computed. It is an *input* of the fold: ratio, done and who is furthest follow from these
    #: entries. The first one for a (chain, value, by) counts. value: the cut, as the number
    #: of slots that were issued before this entry. by: aim, or 0 for the aims that the study was made with.
    #: more: ``transitions``, ``bound``, ``ratio``, ``error`` (of single probabilities; null: infinite), ``method``,
    #: ``version``.
    BOUND = 17
    #: What a question's answer was. An *input* of the fold, as a bound is. The answers to all questions of a chain come
    #: in one append, and the last one says how far the chain is from the aim. value: the cut. by: aim, or 0.
    #: more: ``question`` (its number), ``transitions``, ``lower``, ``upper`` and ``estimate``? (null: infinite),
    #: ``episodes``, ``waits`` and ``cards`` (what its replay waits for), ``notes``, ``version``.
    ANSWERED = 18
    #: What the checks of all chains said: an *input* of the fold, because no study stops on bounds that do not hold.
    #: more: ``observations`` (how many were read), ``results`` (numbers, by check), ``blamed`` (by check), ``waiting``,
    #: ``remarks``, ``doubts`` (chain, code and sentence), ``version``.
    CHECKED = 19
    #: This path repeats another one, so no bound holds from here on. value: the other path. more: ``states`` (how many
    #: are alike), ``chain``? (of the other path).
    REPEATED = 20
    #: A writer has another version of the study's rule: from here on choices are its own. value: version. more:
    #: ``name``.
    RULE = 21
    #: What the study is for from here on: a target, or a question (then the entry's number is the moment of its
    #: registration). by: session or 0. more: ``of`` (which kind of aim), and what this kind needs, in JSON.
    AIM = 22
    #: The session or the worker has ended in good order: no step of its open slots was made. Each is void if no later
    #: slot of its chain had been issued, else a hole; a next tell begins a new path. by: session or worker.
    CLOSED = 23
    #: The path's latest observation was mistold. The path ends, and the slot is a hole. value: the step (from 1). by:
    #: session, lease or 0. more: ``reason``?.
    CORRECTED = 24


#: The kind of each number.
KINDS = {int(kind): kind for kind in Kind}


@unique
class End(IntEnum):
    """Why a path ended: the value of an entry ``PATH_ENDED``. It decides what becomes of the path's open slot."""

    #: The process has ended in its last state: no step follows, so the slot is void, and the run is whole.
    TERMINATED = 1
    #: The source cut the path by a rule that looks at this path alone, such as a limit of steps: the slot is void, and
    #: the run is not whole.
    TRUNCATED = 2
    #: The caller says that the end was due by a rule that looks at this path alone: the slot is void.
    DUE = 3
    #: A step may have been made, and its state is lost: the slot is a hole.
    LOST = 4
    #: Nobody says whether a step was made: the slot is a hole.
    UNKNOWN = 5


class Draft(NamedTuple):
    """An entry that a command asks for. The journal gives it its number, its time and its digest."""

    kind: Kind
    #: The chain's number, from 0.
    chain: int = 0
    #: The path's number in its chain, from 1.
    path: int = 0
    value: int = 0
    #: The entry that gives the right to this one, or that it is about.
    by: int = 0
    #: Empty, or a JSON object on one line (`packed`).
    more: str = ""


class Head(NamedTuple):
    """How far a reader has come: the entry that it read last."""

    number: int
    #: Milliseconds since 1970. No entry is earlier than the entry before it.
    time: int
    digest: int


#: The head of a reader that has read nothing.
START = Head(0, 0, 0)


class Entry(NamedTuple):
    """One entry, as it is stored. The fields are in the order of the columns."""

    number: int
    time: int
    kind: Kind
    chain: int
    path: int
    value: int
    by: int
    more: str
    digest: int

    @property
    def head(self) -> Head:
        """The head of a reader that has read up to this entry."""
        return Head(self.number, self.time, self.digest)


def packed(**more: Any) -> str:
    """The text of ``Entry.more`` for these keys. Raises `ValueError` for a number that is not finite."""
    return json.dumps(more, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def unpacked(more: str) -> dict[str, Any]:
    """The keys of ``Entry.more``."""
    found: dict[str, Any] = json.loads(more) if more else {}
    return found


def line_of(
    number: int, time: int, kind: int, chain: int, path: int, value: int, by: int, more: str, _digest: int = 0
) -> str:
    """The line of an entry: a JSON list of its columns except the digest."""
    return f"[{number},{time},{kind},{chain},{path},{value},{by},{'null' if more == '' else more}]"


def digest_of(before: int, columns: Sequence[Any]) -> int:
    """The digest of an entry with these columns, after an entry with the digest ``before``."""
    found = blake2b(f"{before}{line_of(*columns)}".encode(), digest_size=8)
    return int.from_bytes(found.digest(), "big", signed=True)


def sealed(head: Head, time: int, drafts: Sequence[Draft]) -> list[Entry]:
    """The entries of these drafts, as they follow this head at this time."""
    entries, digest, make = [], head.digest, tuple.__new__
    time = max(time, head.time)
    for number, draft in enumerate(drafts, head.number + 1):
        columns = (number, time, *draft)
        digest = digest_of(digest, columns)
        entries.append(make(Entry, (*columns, digest)))
    return entries
