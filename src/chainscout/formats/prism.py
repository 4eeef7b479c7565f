"""The PRISM language: one module with one variable, the number of the state. PRISM and Storm read it.

Only this form is read. A program with several modules, constants or formulas describes a model whose states must be
built first. Storm and PRISM do that, and write one of the explicit formats.
"""

import re
from collections.abc import Iterator

from ..chains import MarkovChain
from ..counts import DENSE_LIMIT
from .model import INITIAL, Model, chain_of, refused
from .numbers import probability, written

__all__ = ["read", "text"]

_COMMAND = re.compile(r"\[\s*\]\s*(\w+)\s*=\s*(\d{1,18})\s*->\s*(.+)", re.DOTALL)
_UPDATE = re.compile(r"(.+?)\s*:\s*\(\s*(\w+)'\s*=\s*(\d{1,18})\s*\)", re.DOTALL)
_VARIABLE = re.compile(r"(\w+)\s*:\s*\[\s*0\s*\.\.\s*(\d{1,18})\s*\](?:\s*init\s+(\d{1,18}))?")
_LABEL = re.compile(r'label\s+"(\w+)"\s*=\s*(.+)', re.DOTALL)


def text(model: Model) -> str:
    """The model as a program."""
    lines = ["dtmc", "", "module chain", f"  s : [0..{model.size - 1}];"]
    if model.note:
        lines.insert(0, f"// {model.note}")
    for x in range(model.size):
        updates = (f"{written(low, high, exact=model.exact)}:(s'={y})" for y, low, high in model.row(x))
        lines.append(f"  [] s={x} -> {' + '.join(updates)};")
    start = "|".join(f"s={x}" for x in model.initial) if len(model.initial) < model.size else "true"
    lines += ["endmodule", "", f"init {start} endinit", ""]
    lines += [f'label "{label}" = s={x};' for x, label in enumerate(model.labels)]
    return "\n".join(lines) + "\n"


def read(file: str, content: str) -> MarkovChain:
    """The chain of a program of the form that ``text`` writes."""
    size = -1
    entries: dict[tuple[int, int], float] = {}
    labels: dict[str, set[int]] = {}
    initial: set[int] = set()
    commanded: set[int] = set()
    variable = ""

    def states(condition: str, place: str) -> set[int]:
        """The states of a condition: true, or s=1|s=2."""
        if condition.strip() == "true":
            return set(range(size))
        found = [
            re.fullmatch(rf"\(?\s*{variable}\s*=\s*(\d{{1,18}})\s*\)?", part.strip()) for part in condition.split("|")
        ]
        if not all(found):
            raise refused(file, place, f"a condition must be like {variable or 's'}=1|{variable or 's'}=2: {_SMALL}")
        return {number(one[1], place) for one in found if one}

    def number(digits: str, place: str) -> int:
        if int(digits) >= size:
            raise refused(file, place, f"the states are numbered from 0 to {size - 1}, and this is {digits}")
        return int(digits)

    for line, statement in _statements(content):
        place = f"line {line}"
        if statement in ("dtmc", "probabilistic", "endmodule") or re.fullmatch(r"module\s+\w+", statement):
            continue
        if found := _VARIABLE.fullmatch(statement):
            if variable:
                raise refused(file, place, f"there is a second variable, {found[1]!r}: {_SMALL}")
            variable, size = found[1], int(found[2]) + 1
            if size > DENSE_LIMIT:
                raise refused(
                    file, place, f"a chain is read with 1 to {DENSE_LIMIT:,} states, and this file says {size:,}"
                )
            initial |= {number(found[3], place)} if found[3] else set()
        elif (found := _COMMAND.fullmatch(statement)) and found[1] == variable:
            x = number(found[2], place)
            if x in commanded:
                raise refused(file, place, f"the state {x} has a second command: {_SMALL}")
            commanded.add(x)
            for part in re.split(r"(?<=\))\s*\+", found[3]):
                update = _UPDATE.fullmatch(part.strip())
                if update is None or update[2] != variable:
                    raise refused(file, place, f"an update must be like 0.5:({variable}'=1), not {part.strip()!r}")
                y = number(update[3], place)
                entries[x, y] = entries.get((x, y), 0.0) + probability(update[1], file, place)
        elif re.match(r"init\s", statement) and re.search(r"\sendinit\Z", statement):
            initial |= states(statement[4:-7], place)
        elif found := _LABEL.fullmatch(statement):
            labels[found[1]] = states(found[2], place)
        else:
            begins = statement.splitlines()[0][:60]
            raise refused(file, place, f"{begins!r} is not of the form that is read: {_SMALL}")
    if size < 0:
        raise refused(file, "", f"there is no variable for the state: {_SMALL}")
    return chain_of(file, size, entries, labels | {INITIAL: initial}, initial)


_SMALL = (
    "of the PRISM language, a dtmc of one module with one variable from 0 is read; Storm and PRISM write larger models"
    " as .drn or .tra"
)


def _statements(content: str) -> Iterator[tuple[int, str]]:
    """Each statement with the line that it begins on."""
    plain = re.sub(r"//[^\n]*", "", content)
    ends = re.compile(r";|\bendinit\b|\bendmodule\b|^\s*(?:dtmc|probabilistic)\b|\bmodule\s+\w+", re.MULTILINE)
    start = 0
    for end in [*(found.end() for found in ends.finditer(plain)), len(plain)]:
        piece = plain[start:end]
        statement = piece.strip().removesuffix(";").strip()
        if statement:
            before = len(piece) - len(piece.lstrip())
            yield plain.count("\n", 0, start + before) + 1, statement
        start = end
