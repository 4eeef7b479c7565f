"""An entry of the catalogue, and the checks of parameters that several entries share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...chains import MarkovChain
from ...errors import InputError
from ...validation import real_number, shown, whole_number

Chains = dict[str, MarkovChain]

#: The most matrix entries that a built problem may have: 50 million doubles are 400 MB.
MOST_ENTRIES = 50_000_000


@dataclass(frozen=True)
class Entry:
    """A named problem. ``build`` makes its chains; its arguments, which all have defaults, are the parameters."""

    name: str
    build: Callable[..., Chains]
    description: str
    source: str


def numbers(values: Any, name: str, meaning: str) -> tuple[float, ...]:
    """``values``, one number or a sequence of different ones, as floats in (0, 1)."""
    items = tuple(values) if isinstance(values, Sequence) and not isinstance(values, str) else (values,)
    if not items:
        raise InputError(f"{name} ({meaning}) must hold at least one number, and it is empty")
    return tuple(real_number(item, name, above=0.0, below=1.0, meaning=meaning) for item in items)


def unlike(items: Sequence[object], name: str) -> None:
    """Raises ``InputError`` for equal items, because two chains would have the same name."""
    for position, item in enumerate(items):
        if item in items[:position]:
            raise InputError(f"{name} must be unlike, one a chain, but {shown(item)} is given twice")


def sizes(chains: Any, states: Any, least_states: int = 1) -> tuple[int, int]:
    """``chains`` and ``states`` as whole numbers whose matrices fit into memory."""
    number = whole_number(chains, "chains", meaning="the number of chains")
    size = whole_number(states, "states", least=least_states, meaning="the number of states of each chain")
    if number * size * size > MOST_ENTRIES:
        raise InputError(
            f"{number} chains of {size} states are {number * size * size} probabilities,"
            f" more than the {MOST_ENTRIES} that a catalogue problem may have"
        )
    return number, size
