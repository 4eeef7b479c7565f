"""PRISM's explicit files: transitions in a ``.tra`` file, labels in a ``.lab`` file in the same folder."""

import re

from ..chains import MarkovChain
from .model import INITIAL, Model, chain_of, is_whole, refused
from .numbers import probability, written

__all__ = ["labels_text", "read", "transitions_text"]


def transitions_text(model: Model) -> str:
    """The .tra file: the numbers of states and transitions, then one line for each transition."""
    lines = [
        f"{x} {y} {written(low, high, exact=model.exact)}" for x in range(model.size) for y, low, high in model.row(x)
    ]
    return "\n".join([f"{model.size} {len(lines)}", *lines]) + "\n"


def labels_text(model: Model) -> str:
    """The .lab file: numbered labels, then one line for each state."""
    names = [INITIAL, "deadlock", *model.labels]
    lines = [" ".join(f'{number}="{name}"' for number, name in enumerate(names))]
    lines += [f"{x}: {'0 ' if x in model.initial else ''}{x + 2}" for x in range(model.size)]
    return "\n".join(lines) + "\n"


def read(file: str, transitions: str, labels_file: str, labels: str | None) -> MarkovChain:
    """The chain of a .tra file, with the labels of its .lab file if there is one."""
    numbered = enumerate(transitions.splitlines(), 1)
    lines = [(number, line.split(maxsplit=2)) for number, line in numbered if line.strip()]
    if not lines or len(lines[0][1]) != 2 or not all(is_whole(part) for part in lines[0][1]):
        raise refused(
            file,
            "line 1",
            "a .tra file of a Markov chain begins with two numbers, of states and of transitions"
            " (a decision process has three)",
        )
    size, number = map(int, lines[0][1])
    if number != len(lines) - 1:
        raise refused(file, "line 1", f"it says {number} transitions, and {len(lines) - 1} follow")
    entries: dict[tuple[int, int], float] = {}
    for line, parts in lines[1:]:
        place = f"line {line}"
        if len(parts) != 3 or not all(is_whole(part) and int(part) < size for part in parts[:2]):
            raise refused(file, place, f"a transition is two states from 0 to {size - 1} and a probability")
        pair = int(parts[0]), int(parts[1])
        if pair in entries:
            raise refused(file, place, f"the transition {pair[0]} to {pair[1]} is there twice")
        entries[pair] = probability(parts[2], file, place)
    holders = _holders(labels_file, labels, size) if labels is not None else {}
    return chain_of(file, size, entries, holders, holders.get(INITIAL, set()))


def _holders(file: str, content: str, size: int) -> dict[str, set[int]]:
    """The states that have each label."""
    lines = content.splitlines()
    names = dict(re.findall(r'(\d+)="([^"]*)"', lines[0] if lines else ""))
    if not names:
        raise refused(file, "line 1", 'a .lab file begins with its labels, like 0="init" 1="idle"')
    holders: dict[str, set[int]] = {name: set() for name in names.values()}
    for line, text in enumerate(lines[1:], 2):
        if not text.strip():
            continue
        state, _, numbers = text.partition(":")
        known = is_whole(state.strip()) and int(state) < size
        if not known or not all(one in names for one in numbers.split()):
            raise refused(file, f"line {line}", "a line is a state, a colon and the numbers of its labels")
        for one in numbers.split():
            holders[names[one]].add(int(state))
    return holders
