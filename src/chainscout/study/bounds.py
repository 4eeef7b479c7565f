"""The bound of a chain's loss from the counts of one cut, as a study promises it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..certificates import EXITS, mixture, sharp
from ..counts import Counts
from ..logarithm import log
from .aim import CALM, LONG
from .chain import Chain
from .draws import Cut
from .labels import states
from .state import State

__all__ = ["Due", "Found", "costs_of_holes", "counts_of", "due", "found"]


class Due(NamedTuple):
    """A look at a chain's bound that is due: everything that it needs, so that it can be computed outside of locks."""

    name: str
    cut: Cut
    #: The counts of the cut.
    counts: dict[int, dict[int, int]]
    size: int
    is_open: bool
    #: log(K/δ), and the certificate that the study promises.
    log_inverse: float
    method: str
    weight: float
    #: ω·L is to be at most this; 0: the chain has no target loss. And the entry that said so, or 0.
    target: float
    aim: int
    #: Whether the chain's answers are due too, and whether its bound is.
    asks: bool
    bounds: bool


class Found(NamedTuple):
    """A bound on L; the transitions of its counts; how far it is from the target (None: there is none); its method."""

    bound: float
    transitions: int
    ratio: float | None
    method: str
    #: The bounds of rows and entries on the same event; None: the method has none.
    sharper: sharp.Bounds | None = None

    @property
    def error(self) -> float:
        """The largest error of a probability out of a state that was left `EXITS` times; infinite if none is known."""
        entries = () if self.sharper is None else self.sharper.entries
        return max((error for exits, error in entries if exits >= EXITS), default=math.inf)


def due(state: State, chain: Chain, cut: Cut | None = None) -> Due:
    """The look that is due at a chain. ``cut``: another one than the cut that the state keeps for the look."""
    if cut is None:
        draws, end = chain.draws, chain.wanted
        cut = state.chosen_cut(chain) if end is None else draws.cut(draws.holes.index(end), end.number)
    counts = {x: dict(row) for x, row in cut.counts(chain.rows).items()}
    log_inverse = log(len(state.chains) / state.delta)
    return Due(
        chain.name, cut, counts, chain.size, chain.is_open, log_inverse, state.settings["method"], chain.weight,
        chain.target, state.aim.number, bool(chain.questions), state.over or _is_bounded(state, chain),
    )  # fmt: skip


def _is_bounded(state: State, chain: Chain) -> bool:
    """Whether a look computes the bound. Where answers are the aim, it is for the history only."""
    return not state.aim.is_answered(chain) or chain.transitions >= max(LONG, CALM * chain.at_cut[1])


def found(asked: Sequence[Due]) -> list[Found]:
    """The bounds of some cuts of one study, each with its holes. Many at once take much less time than one by one."""
    counts = [Counts.over(one.counts, max(1, one.size), one.is_open, dict(one.cut.holes)) for one in asked]
    if asked and asked[0].method == "sharp":
        sharper: dict[int, sharp.Bounds] = {}
        for kind in (False, True):  # where one has holes, others beside it would have slightly different bounds
            places = [place for place, one in enumerate(counts) if bool(one.holes) is kind]
            if places:
                bounds = sharp.bounds([counts[place] for place in places], asked[0].log_inverse)
                sharper.update(zip(places, bounds, strict=True))
        return [_found(*every, sharper[k].loss, sharper[k]) for k, every in enumerate(zip(asked, counts, strict=True))]
    return [_found(one, of, mixture.bound_of(of, one.log_inverse)) for one, of in zip(asked, counts, strict=True)]


def costs_of_holes(asked: Sequence[Due], bounds: Sequence[Found]) -> dict[str, tuple[int, float]]:
    """Chain → how many steps without a value its cut has, and which share of its bound they cost."""
    chosen = [place for place, one in enumerate(asked) if one.cut.holes and bounds[place].bound < math.inf]
    without = found([asked[place]._replace(cut=asked[place].cut._replace(holes={})) for place in chosen])
    return {
        asked[place].name: (sum(asked[place].cut.holes.values()), 1.0 - other.bound / bounds[place].bound)
        for place, other in zip(chosen, without, strict=True)
    }


def _found(asked: Due, counts: Counts, bound: float, sharper: sharp.Bounds | None = None) -> Found:
    ratio = asked.weight * bound / asked.target if asked.target else None
    return Found(bound, counts.total, ratio, asked.method, sharper)


def counts_of(chain: Chain, cut: Cut | None) -> Counts:
    """The transitions of a cut, with the chain's labels; None: all that were told."""
    rows = {x: row.counts for x, row in chain.rows.items()} if cut is None else cut.counts(chain.rows)
    return Counts.from_rows(
        {x: dict(row) for x, row in rows.items()}, states(chain), observations=chain.observations, paths=chain.begun,
        last=None, open_states=chain.is_open, holes=None if cut is None else cut.holes,
    )  # fmt: skip
