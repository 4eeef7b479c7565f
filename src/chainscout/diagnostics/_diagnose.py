"""Checks of the assumptions of every bound: the next state depends on the state alone, and the law does not change.

docs/diagnostics.md has the mathematics. Cards are judged in the order of issue. So nothing is judged after a draw that
is still pending, or after one that was given up when a later one was known.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..chains import MarkovChain
from ..errors import InputError
from ..paths import LOST, PENDING, Paths
from ..validation import failure_probability, shown
from . import _processes
from ._check import Check, Diagnosis, Kind, LossRate, Place, exponential, rejected_chains
from ._processes import AGES, Cards, Process
from ._sentences import NO_COMMON_ORDER, given_up, left_out, not_guaranteed, pending, sentence, why_waiting
from .standing import CHECKS, DECLARED, thinned

#: The number of checks that are always made.
ALWAYS = len(CHECKS)
#: A check names at most this many places.
PLACES = 5

#: What a chain is compared with by ``reference`` and by ``other``.
KNOWN, OTHER = "known matrix", "other data"

Wholes = npt.NDArray[np.int64]


class _Part(NamedTuple):
    """One check of one chain, before it is combined."""

    kind: Kind
    by: str
    process: Process
    level: float
    where: tuple[Place, ...]
    #: Whether there is anything to compare. The mean over chains includes the others too, because its members must not
    #: depend on the data.
    shown: bool = True


class _Chain(NamedTuple):
    """One chain, cut where its queue ends."""

    name: str | None
    paths: Paths
    #: The places of the judged cards among all cards of the paths.
    places: Wholes
    cards: Cards
    #: How many known transitions wait, and why.
    waiting: int
    remarks: tuple[str, ...]


def diagnose(
    paths: Paths | Mapping[str, Paths],
    *,
    reference: MarkovChain | Mapping[str, MarkovChain] | None = None,
    other: Paths | Mapping[str, Paths] | None = None,
    later: Sequence[str] = (),
    delta: float = 0.05,
    repeated: Sequence[str] = (),
) -> Diagnosis:
    """Checks whether the data come from a Markov chain that does not change.

    Every check may be repeated whenever there are more data, whatever rule chose the chains, the restarts and the
    moment to look. If no check rejects, that proves nothing.

    ``paths``: the data of one chain, or of several by name.
    ``reference``: a matrix that is known exactly, or one for each of some chains. An estimate is not known exactly:
    give the data behind it as ``other`` instead.
    ``other``: data of the same chain from elsewhere, or of some chains by name: do they follow the same law?
    ``later``: the names of chains that joined after the first look, in the order in which they joined.
    ``delta``: the probability that any check ever rejects wrongly; all checks share it.
    ``repeated``: sentences about paths that repeat each other, to be shown with the checks.
    """
    delta = failure_probability(delta)
    chains = {name: _cut(name, data) for name, data in _by_name(paths, Paths, "paths").items()}
    known = _by_name(reference, MarkovChain, "reference", chains)
    others = _by_name(other, Paths, "other", chains)
    weights = _weights(chains, later)
    parts = {
        name: _parts(chain, known.get(name), others.get(name), len(chains) > 1) for name, chain in chains.items()
    }  # fmt: skip
    kinds = ALWAYS + bool(known) + bool(others)
    checks: list[Check] = []
    blamed: dict[tuple[Kind, str], tuple[str, ...]] = {}
    remarks = [remark for chain in chains.values() for remark in chain.remarks]
    if len(chains) > 1:
        together, blamed, more = _together(chains, parts, weights, delta / kinds)
        checks += together
        remarks += more
    checks += [_check(chains[name], part, delta / kinds) for name, found in parts.items() for part in found
               if part.shown]  # fmt: skip
    remarks += left_out(checks)
    return Diagnosis(
        tuple(checks), delta, kinds, blamed, sum(chain.waiting for chain in chains.values()), tuple(remarks),
        tuple(repeated), tuple(rate for chain in chains.values() for rate in _losses(chain)),
    )  # fmt: skip


# -- checks of the arguments


def _by_name(
    given: Any, kind: type, what: str, chains: Mapping[str | None, Any] | None = None
) -> dict[str | None, Any]:
    """One value for each chain, by the chain's name. In data without names, the only chain has the name None."""
    if given is None:
        return {}
    found: dict[str | None, Any] = {None: given} if isinstance(given, kind) else {}
    if not found and isinstance(given, Mapping) and given:
        found = dict(given)
    wanted = f"{what} must be {kind.__name__}, or {kind.__name__} by the chain's name"
    if not found or not all(isinstance(value, kind) for value in found.values()):
        raise InputError(f"{wanted}, not {shown(given)}")
    if chains is not None and not set(found) <= set(chains):
        strange = next(name for name in found if name not in chains)
        names = "the data have no names" if None in chains else f"the chains are {', '.join(map(str, chains))}"
        raise InputError(f"{what} names the chain {shown(strange)}: {names}")
    return found


def _weights(chains: Mapping[str | None, _Chain], later: Sequence[str]) -> dict[str | None, float]:
    """Each chain's weight in the mean of all. If chains join later, half of the weight is reserved for them."""
    if isinstance(later, str) or not set(later) <= set(chains) or len(set(later)) < len(list(later)):
        raise InputError(f"later must be names of chains, each once, not {shown(later)}")
    first = [name for name in chains if name not in later]
    if not first:
        raise InputError("later names all chains: at least one must have been there from the start")
    share = 0.5 if later else 1.0
    weights = {name: share / len(first) for name in first}
    weights.update({name: 0.5 / (rank * (rank + 1)) for rank, name in enumerate(later, start=1)})
    return weights


def queue_end(paths: Paths) -> tuple[int, str | None]:
    """The end of the queue of cards, and the reason: a transition that is pending or was given up late."""
    draws = paths.source >= 0
    waiting = draws & (paths.target == PENDING)
    late = draws & paths.late_losses(by_row=False)
    stops = np.flatnonzero(waiting | late)
    if not len(stops):
        return len(paths), None
    stop = int(stops[0])
    number = int(paths.issued[stop])
    if late[stop]:
        return stop, given_up(number)
    return stop, pending(number)


def _cut(name: str | None, paths: Paths) -> _Chain:
    end, why = queue_end(paths)
    seen = (paths.source >= 0) & (paths.target >= 0)
    places = np.flatnonzero(seen[:end])
    waiting = int(seen[end:].sum())
    remarks = [why_waiting(name, waiting, str(why))] if waiting else []
    if paths.unordered is not None:
        remarks.append(not_guaranteed(name, paths.unordered))
    cards = Cards(paths.path[places], paths.step[places], paths.source[places], paths.target[places])
    return _Chain(name, paths, places, cards, waiting, tuple(remarks))


def _losses(chain: _Chain) -> Iterable[LossRate]:
    """How many draws were lost in each state that lost any."""
    paths = chain.paths
    draws = paths.source >= 0
    issued = np.bincount(paths.source[draws], minlength=paths.size)
    lost = np.bincount(paths.source[draws & (paths.target <= LOST)], minlength=paths.size)
    for x in np.flatnonzero(lost):
        yield LossRate(chain.name, paths.states[int(x)], int(lost[x]), int(issued[x]))


# -- one chain


def _parts(chain: _Chain, known: MarkovChain | None, other: Paths | None, several: bool) -> list[_Part]:
    """All checks of one chain. ``several``: there are other chains, and means over all of them."""
    paths, cards = chain.paths, chain.cards
    parts = [_order(chain), _change(chain)]
    workers = paths.worker[cards.path] if len(cards.path) else cards.path
    for by, label, names in (
        ("worker", workers, paths.workers),
        ("path", cards.path, None),
        ("age", cards.ages(), age_names()),
    ):
        compares = bool((label != label[:1]).any())
        if compares or several:
            found = _processes.sameness(cards.source, cards.target, label, DECLARED[by])
            parts.append(_part(chain, Kind.SAMENESS, by, found, names)._replace(shown=compares))
    if known is not None:
        parts.append(_reference(chain, known))
    if other is not None:
        parts.append(_other(chain, _cut(None, other)))
    return parts


def _order(chain: _Chain) -> _Part:
    found = _processes.order(chain.cards)
    return _part(chain, Kind.ORDER, "predecessor", found, chain.paths.states)


def _part(chain: _Chain, kind: Kind, by: str, found: Process, names: Sequence[Hashable] | None) -> _Part:
    """A part whose level is 1/(the largest e-value), with the rows that have evidence."""
    return _Part(kind, by, found, math.exp(-found.log_largest), _rows(chain, found, names))


def _rows(chain: _Chain, found: Process, names: Sequence[Hashable] | None) -> tuple[Place, ...]:
    """The rows with their own evidence, the strongest first."""
    order = np.argsort(-found.log_rows, kind="stable")[:PLACES]
    places = []
    for i in order:
        if found.log_rows[i] <= math.log(2):  # less than 2:1 says nothing
            break
        label = int(found.labels[i])
        named: Hashable | None = None
        if label >= 0:
            named = label + 1 if names is None else names[label]
        places.append(Place(chain.paths.states[int(found.states[i])], float(found.log_rows[i]), label=named))
    return tuple(places)


def age_names() -> tuple[str, ...]:
    """The bins of ages in words."""
    ends = [0, *AGES]
    bins = [f"steps {low + 1} to {high}" for low, high in zip(ends, AGES, strict=False)]
    return (*bins, f"steps after {AGES[-1]}")


def _change(chain: _Chain) -> _Part:
    paths = chain.paths
    found = _processes.change(chain.cards.source, chain.cards.target, None if paths.open_states else paths.size)
    issued = paths.issued[chain.places]
    places = []
    for i in np.argsort(found.row_levels, kind="stable")[:PLACES]:
        evidence = -math.log(max(1e-300, 2.0 * found.row_levels[i]))
        if evidence <= math.log(2):
            break
        state, outcome = int(found.process.states[i]), int(found.outcomes[i])
        cards = np.flatnonzero(chain.cards.source == state)
        moment, before, after = likely_change(chain.cards.target[cards] == outcome)
        places.append(
            Place(
                paths.states[state], evidence, outcome=paths.states[outcome],
                first=int(issued[found.first[i]]), last=int(issued[found.last[i]]),
                moment=int(issued[cards[moment]]), before=before, after=after,
            )
        )  # fmt: skip
    return _Part(Kind.CHANGE, "time", found.process, found.level, tuple(places))


def likely_change(hits: npt.NDArray[np.bool_]) -> tuple[int, float, float]:
    """The most likely place of a change in a row of hits and misses, and the shares of hits before and after it.

    It is the split with the largest likelihood. It describes a change that a check has found, and is not itself a
    check.
    """
    number = len(hits)
    if number < 2:
        return 0, float(hits.mean()), float(hits.mean())
    split = np.arange(1, number)
    first = np.cumsum(hits, dtype=np.int64)[:-1]
    likelihood = _binomial(first, split) + _binomial(int(hits.sum()) - first, number - split)
    best = int(split[int(np.argmax(likelihood))])
    return best, float(hits[:best].mean()), float(hits[best:].mean())


def _binomial(hits: npt.NDArray[np.int64], number: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The largest log-likelihood of this number of hits."""
    from scipy.special import xlogy  # here, because it loads slowly

    return np.asarray(xlogy(hits, hits / number) + xlogy(number - hits, 1 - hits / number))


def _reference(chain: _Chain, known: MarkovChain) -> _Part:
    """The check against a known matrix. A state that the matrix does not know has probability zero."""
    paths = chain.paths
    place = {label: position for position, label in enumerate(known.states)}
    where = np.array([place.get(label, -1) for label in paths.states], np.int64)
    source, target = where[chain.cards.source], where[chain.cards.target]
    law = np.where((source >= 0) & (target >= 0), known.matrix[source, target], 0.0)
    found = _processes.reference(chain.cards.source, chain.cards.target, law)
    return _part(chain, Kind.REFERENCE, KNOWN, found, None)


def _other(chain: _Chain, other: _Chain) -> _Part:
    """Sameness of two sets of data: only T, which does not depend on the order in which the sets were made."""
    place = {label: position for position, label in enumerate(chain.paths.states)}
    where = np.array([place.setdefault(label, len(place)) for label in other.paths.states], np.int64)
    source = np.concatenate([where[other.cards.source], chain.cards.source])
    target = np.concatenate([where[other.cards.target], chain.cards.target])
    earlier = len(other.cards.source)
    label = (np.arange(len(source)) < earlier).astype(np.int64)
    found = _processes.decks(source, target, label, 2)
    # As a process over this chain's cards: it has its first value when the other data are known.
    own = found.places >= earlier
    kept = Process(
        found.places[own] - earlier, found.log_values[own], found.states, found.log_rows, found.labels, found.left_out
    )  # fmt: skip
    everything = chain._replace(paths=_Named(tuple(place)))  # type: ignore[arg-type]
    places = _rows(everything, kept, None)
    return _Part(Kind.SAMENESS, OTHER, kept, math.exp(-kept.log_largest), places)


class _Named(NamedTuple):
    """The states of two sets of data."""

    states: tuple[Hashable, ...]


def _check(chain: _Chain, part: _Part, delta: float) -> Check:
    """The record of one check of one chain."""
    found = part.process
    issued = chain.paths.issued[chain.places[found.places]]
    unordered = chain.paths.unordered is not None
    level = 1.0 if unordered else min(1.0, part.level)
    return Check(
        chain.name, part.kind, part.by, exponential(found.log_value), exponential(found.log_largest), level,
        sentence(chain.name, part.kind, part.by, level, delta, part.where, unordered), part.where,
        len(found.places), found.left_out, None if unordered else _since(issued, found.log_values, delta),
        thinned(issued, found.log_values),
    )  # fmt: skip


def _since(issued: Wholes, log_values: npt.NDArray[np.float64], delta: float) -> int | None:
    """The number of issue at which an e-process first reached 1/δ."""
    reached = np.flatnonzero(log_values >= -math.log(delta))
    return int(issued[reached[0]]) if len(reached) else None


# -- all chains together


def _together(
    chains: Mapping[str | None, _Chain],
    parts: Mapping[str | None, list[_Part]],
    weights: Mapping[str | None, float],
    delta: float,
) -> tuple[list[Check], dict[tuple[Kind, str], tuple[str, ...]], list[str]]:
    """The checks of all chains together, and the responsible chains if one rejects."""
    shown = {(part.kind, part.by) for found in parts.values() for part in found if part.shown}
    kinds = [key for key in (*CHECKS, (Kind.REFERENCE, KNOWN), (Kind.SAMENESS, OTHER)) if key in shown]
    end, why = _common_end(chains)
    unordered = any(chain.paths.unordered is not None for chain in chains.values())
    checks, blamed = [], {}
    for kind, by in kinds:
        found = {name: part for name in chains for part in parts[name] if (part.kind, part.by) == (kind, by)}
        own = _shares(found, weights) if kind is Kind.REFERENCE or by == OTHER else weights
        merged = _merged(chains, found, own, end)
        if kind is Kind.CHANGE:
            level = min(1.0, min(part.level / own[name] for name, part in found.items()))
        else:
            level = math.exp(-merged.log_largest)
        level = 1.0 if unordered else level
        if level <= delta:
            blamed[kind, by] = _blamed(kind, found, own, delta)
        text = sentence(None, kind, by, level, delta, (), unordered, together=True)
        checks.append(
            Check(
                None, kind, by, exponential(merged.log_value), exponential(merged.log_largest), level, text, (),
                merged.cards, sum(part.process.left_out for part in found.values()),
                None if unordered else _since(merged.issued, merged.log_values, delta),
                thinned(merged.issued, merged.log_values),
            )
        )  # fmt: skip
    remarks = [] if why is None else [why]
    return checks, {key: value for key, value in blamed.items() if value}, remarks


def _shares(found: Mapping[str | None, _Part], weights: Mapping[str | None, float]) -> dict[str | None, float]:
    """The weights of the chains that the caller named for a check. They sum to at most one."""
    total = sum(weights[name] for name in found)
    return {name: weights[name] / total for name in found}


def _blamed(
    kind: Kind, found: Mapping[str | None, _Part], weights: Mapping[str | None, float], delta: float
) -> tuple[str, ...]:
    """The responsible chains, all at level δ at once.

    Chains of equal weight are found by closed testing on their values now. For *change*, which is a level, and for
    chains of different weights, each chain's own level over its weight decides.
    """
    if kind is Kind.CHANGE:
        return tuple(str(name) for name, part in found.items() if part.level / weights[name] <= delta)
    now = {str(name): exponential(part.process.log_value) for name, part in found.items()}
    if len(set(weights.values())) > 1:
        return tuple(name for name, value in now.items() if weights[name] * value >= 1 / delta)
    others = {str(name): 1.0 for name in weights if name not in found}  # nothing to compare: the e-value is still one
    return rejected_chains({**now, **others}, delta)


class _Merged(NamedTuple):
    """The weighted mean of all chains' e-values over the common order of issue."""

    issued: Wholes
    log_values: npt.NDArray[np.float64]
    #: How many transitions were judged.
    cards: int

    @property
    def log_value(self) -> float:
        return float(self.log_values[-1]) if len(self.log_values) else 0.0

    @property
    def log_largest(self) -> float:
        return max(0.0, float(self.log_values.max(initial=0.0)))


def _merged(
    chains: Mapping[str | None, _Chain],
    found: Mapping[str | None, _Part],
    weights: Mapping[str | None, float],
    end: int | None,
) -> _Merged:
    """The mean, and its value after every card: the largest of the mean, never the mean of the largest.

    ``end``: the number of issue at which the common queue ends; None: there is no common order of issue, so only the
    values of this moment can be averaged.
    """
    names = list(weights)
    share = np.array([weights[name] for name in names])
    number = {name: place for place, name in enumerate(names)}
    issued, owner, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    for name, part in found.items():
        chain = chains[name]
        numbers = chain.paths.issued[chain.places[part.process.places]]
        keep = np.arange(len(numbers)) == len(numbers) - 1 if end is None else numbers < end
        issued.append(numbers[keep])
        owner.append(np.full(int(keep.sum()), number[name], np.int64))
        values.append(part.process.log_values[keep])
    numbers = np.concatenate(issued)
    order = np.argsort(numbers, kind="stable")
    log_values = _processes.mean_over_chains(np.concatenate(owner)[order], np.concatenate(values)[order], share)
    if end is None:
        cards = sum(len(part.process.places) for part in found.values())
        return _Merged(numbers[order][-1:], log_values[-1:], cards)
    return _Merged(numbers[order], log_values, len(numbers))


def _common_end(chains: Mapping[str | None, _Chain]) -> tuple[int | None, str | None]:
    """The number of issue at which the queue of all chains ends, None if their numbers are not of one count; and a
    remark about it.
    """
    every = [chain.paths for chain in chains.values()]
    issued = np.concatenate([paths.issued for paths in every])
    of_each = np.concatenate([np.unique(paths.issued) for paths in every])
    if len(np.unique(of_each)) < len(of_each):
        return None, NO_COMMON_ORDER
    order = np.argsort(issued, kind="stable")
    sizes = np.cumsum([0] + [paths.size for paths in every])
    source = np.concatenate(
        [np.where(p.source >= 0, p.source + at, p.source) for p, at in zip(every, sizes, strict=False)]
    )
    target = np.concatenate(
        [np.where(p.target >= 0, p.target + at, p.target) for p, at in zip(every, sizes, strict=False)]
    )
    zeros = np.zeros(len(issued), np.int64)
    told = np.concatenate([paths.told for paths in every])
    united = Paths(
        int(sizes[-1]), path=zeros, step=zeros, source=source[order], target=target[order], issued=issued[order],
        told=told[order],
    )  # fmt: skip
    stop, why = queue_end(united)
    if stop == len(united):
        return int(issued.max(initial=0)) + 1, None
    number = int(united.issued[stop])
    behind = (united.source[stop:] >= 0) & (united.target[stop:] >= 0)
    return number, why_waiting(None, int(behind.sum()), str(why), together=True) if behind.any() else None
