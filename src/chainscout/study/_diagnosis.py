"""Checks of a study's chains: are they Markov chains that do not change? `Study` has these functions as methods."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from .. import diagnostics
from ..chains import MarkovChain
from ..diagnostics import Diagnosis
from ..errors import InputError
from ..paths import Paths
from ..store import Transaction
from . import _evidence, _paths, _repetition
from ._certificate import StudyCertificate
from ._labels import Labels

if TYPE_CHECKING:
    from .study import Study

__all__ = ["Known", "Other", "checks", "diagnose", "noted"]

#: Matrices that are known exactly, by the chain's name.
Known: TypeAlias = Mapping[str, MarkovChain] | None
#: Another study, whose chains are compared with those of the same names, or paths by the chain's name.
Other: TypeAlias = "Study | Mapping[str, Paths] | None"


def diagnose(self: "Study", *, reference: Known = None, other: Other = None, delta: float | None = None) -> Diagnosis:
    """Checks the assumptions of all bounds, for each chain and for all together, in one pass over the log.

    ``reference``: matrices that are known exactly, by the chain's name.
    ``other``: another study, or paths by the chain's name: do chains of the same name follow the same law?
    ``delta``: the probability that any check ever rejects wrongly; None: the study's.
    See ``chainscout.diagnose``.
    """
    with self._lock, self._store.reading() as transaction:
        chains = _data(transaction, self._labels)
        repeated = _repetition.repeated(transaction)
        level = transaction.study.delta if delta is None else delta
    if other is not None and not isinstance(other, Mapping):
        there = set(other.names)
        other = {name: other.paths(name) for name in chains if name in there}
        if not other:
            raise InputError("other must be a study that has a chain of this study, and it has none")
    return diagnostics.diagnose(chains, reference=reference, other=other, delta=level, repeated=repeated)


def checks(self: "Study") -> Diagnosis | None:
    """The checks of all chains together at this moment, from the stored standing and the end of the log.

    They equal those of ``diagnose`` up to the first pending draw, at the study's δ, without losses and without paths
    that repeat each other. None for a study with more than 1,000 chains: it stores no standing.
    """
    with self._lock, self._store.reading() as transaction:
        return _evidence.look(transaction)


def noted(transaction: Transaction, certificate: StudyCertificate) -> StudyCertificate:
    """The certificate without the bounds of chains that the last stored checks speak against, and with a note."""
    found = _evidence.stored(transaction)
    if found is None:
        return certificate
    chains = (transaction.chain(name) for name in certificate.loss)
    doubts = _evidence.doubts(transaction, [chain for chain in chains if chain is not None])
    loss = {name: math.inf if name in doubts else bound for name, bound in certificate.loss.items()}
    entries = {name: rows for name, rows in certificate.entries.items() if name not in doubts}
    return replace(certificate, loss=loss, entries=entries, doubt=found.note, doubts=doubts)


def _data(transaction: Transaction, labels: Labels) -> dict[str, Paths]:
    """The draws of every chain.

    If a chain is one process that workers share, the log does not say who made which draw: no worker is named.
    """
    found = {chain.name: _paths.chain_paths(transaction, chain, labels) for chain in transaction.every()}
    return {name: paths.by_one_worker() for name, paths in found.items()} if transaction.study.shared else found
