"""The text form of questions: one line for each question.

    reach down from idle within 100
    reach won before ruined from 3
    reach down ever
    time to empty from full
    cost busy=2, down=50 from idle over 365 steps
    cost down=1 from idle=0.5, busy=0.5 discounted 0.99
    share of good anchor bad

Facts follow after ``given``: ``broken absorbing``, ``idle -> down impossible``, ``complete``, ``starts alike``. A state
is a word, a whole number, or any text in double quotes. Without ``from``, a question starts where paths start: data
answer it only ``given starts alike``.
"""

import re
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, NoReturn

from ..errors import InputError
from ..specs import number
from ..validation import did_you_mean, label_from_text, shown
from .question import KEYWORDS, Cost, LongRunShare, PassageTime, Question, Reach

__all__ = ["parse"]

_TOKEN = re.compile(r'\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<mark>->|,|=)|(?P<word>(?:(?!->)[^\s",=])+))')
_END = "the end"


class _Token(NamedTuple):
    kind: str
    text: str
    #: The token's first character, from 1.
    place: int


def parse(text: str) -> Question:
    """The question of a line. An error names its place in the line."""
    if not isinstance(text, str):
        raise InputError(f"a question must be a line of text, not {shown(text)}")
    reader = _Reader(text)
    first = reader.take()
    if first.kind != "word" or first.text not in _FORMS:
        hint = did_you_mean(first.text, _FORMS)
        reader.fail(f"a question begins with {', '.join(_FORMS)}", first, hint)
    return _FORMS[first.text](reader)


class _Reader:
    """The tokens of a line, one after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = self._split()
        self._next = 0

    def _split(self) -> list[_Token]:
        tokens, place = [], 0
        end = len(self.text.rstrip())
        while place < end:
            found = _TOKEN.match(self.text, place)
            if found is None or found.lastgroup is None:
                where = len(self.text) - len(self.text[place:].lstrip()) + 1
                raise InputError(f"a text in quotes has no end, at character {where} of {shown(self.text)}")
            tokens.append(_Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup) + 1))
            place = found.end()
        return [*tokens, _Token("end", _END, end + 1)]

    def fail(self, wanted: str, token: _Token | None = None, hint: str = "") -> NoReturn:
        """Raises an error that says what was expected, and where."""
        token = token or self._tokens[self._next]
        given = _END if token.kind == "end" else shown(token.text)
        where = f"at character {token.place} of {shown(self.text, 200)}"
        raise InputError(f"{wanted}, not {given}{hint} {where}")

    def take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += token.kind != "end"
        return token

    def has(self, *words: str) -> bool:
        """Whether these words come next; if so, they are consumed."""
        ahead = self._tokens[self._next : self._next + len(words)]
        found = [token.text for token in ahead if token.kind in ("word", "mark")] == list(words)
        self._next += len(words) * found
        return found

    def expect(self, word: str, why: str) -> None:
        if not self.has(word):
            self.fail(f"{word!r} is expected {why}")

    def state(self, what: str) -> Hashable:
        token = self._tokens[self._next]
        if token.kind == "quoted":
            self._next += 1
            return re.sub(r"\\(.)", r"\1", token.text[1:-1])
        if token.kind != "word" or token.text in KEYWORDS:
            self.fail(f"a state is expected {what}")
        self._next += 1
        return label_from_text(token.text)

    def states(self, what: str) -> tuple[Hashable, ...]:
        found = [self.state(what)]
        while self.has(","):
            found.append(self.state("after ','"))
        return tuple(found)

    def number(self, what: str) -> int | float:
        token = self.take()
        value = number(token.text) if token.kind == "word" else None
        if value is None:
            self.fail(f"a number is expected {what}", token)
        return value

    def values(self, what: str) -> list[tuple[Hashable, float]]:
        """``state=number, state=number``."""
        found: list[tuple[Hashable, float]] = []
        while not found or self.has(","):
            state = self.state(what)
            self.expect("=", f"after the state {shown(state)}")
            found.append((state, self.number(f"for the state {shown(state)}")))
        return found

    def start(self) -> Any:
        """A state, or a law ``state=probability, …``."""
        after = self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        return dict(self.values("after 'from'")) if after.text == "=" else self.state("after 'from'")

    def clauses(self, readers: "dict[str, Callable[[], tuple[str, Any]]]") -> dict[str, Any]:
        """The rest of the line: the parts in any order, each at most once, and then the facts."""
        found: dict[str, Any] = {}
        readers = {**readers, "given": lambda: ("facts", self.facts())}
        while self._tokens[self._next].kind != "end":
            token = self.take()
            if token.kind != "word" or token.text not in readers or "facts" in found:
                left = [] if "facts" in found else [repr(word) for word in readers]
                hint = did_you_mean(token.text, readers) if left else ""
                self.fail(f"{', '.join([*left, 'or the end'] if left else ['the end'])} is expected", token, hint)
            name, value = readers[token.text]()
            if name in found:
                self.fail("each part of a question can be given once", token)
            found[name] = value
        facts = found.pop("facts", {})
        return {**found, **facts}

    def facts(self) -> dict[str, Any]:
        """The facts after ``given``."""
        facts: dict[str, Any] = {"absorbing": [], "impossible": []}
        while True:
            if self.has("complete"):
                facts["complete"] = True
            elif self.has("starts", "alike"):
                facts["starts_alike"] = True
            else:
                state = self.state("or 'complete' or 'starts alike' after 'given' or ','")
                if self.has("->"):
                    facts["impossible"].append((state, self.state("after '->'")))
                    self.expect("impossible", "after a transition")
                else:
                    self.expect("absorbing", f"or '->' after the state {shown(state)}")
                    facts["absorbing"].append(state)
            if not self.has(","):
                return facts


def _reach(reader: _Reader) -> Question:
    target = reader.states("after 'reach'")
    found = reader.clauses(
        {
            "before": lambda: ("before", reader.states("after 'before'")),
            "from": lambda: ("start", reader.start()),
            "within": lambda: ("within", reader.number("of steps after 'within'")),
            "ever": lambda: ("within", None),
        }
    )
    return Reach(target, **found)


def _time(reader: _Reader) -> Question:
    reader.expect("to", "after 'time'")
    target = reader.states("after 'to'")
    return PassageTime(target, **reader.clauses({"from": lambda: ("start", reader.start())}))


def _cost(reader: _Reader) -> Question:
    costs = reader.values("after 'cost'")

    def steps() -> tuple[str, Any]:
        number = reader.number("of steps after 'over'")
        reader.expect("steps", "after a number")
        return "steps", number

    found = reader.clauses(
        {
            "from": lambda: ("start", reader.start()),
            "over": steps,
            "discounted": lambda: ("discount", reader.number("after 'discounted'")),
        }
    )
    return Cost(costs, **found)


def _share(reader: _Reader) -> Question:
    reader.expect("of", "after 'share'")
    states = reader.states("after 'of'")
    return LongRunShare(states, **reader.clauses({"anchor": lambda: ("anchor", reader.state("after 'anchor'"))}))


_FORMS: dict[str, Callable[[_Reader], Question]] = {"reach": _reach, "time": _time, "cost": _cost, "share": _share}
