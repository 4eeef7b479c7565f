"""Checks of a study's chains, from its log: are they Markov chains that do not change?"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from ..chains import MarkovChain
from ..diagnostics import Diagnosis, diagnose
from ..errors import InputError
from ..paths import Paths
from ..store import Transaction
from . import _paths, _repetition
from ._labels import Labels

if TYPE_CHECKING:
    from .study import Study

__all__ = ["Diagnosis", "Known", "Other", "of_study"]

#: Matrices that are known exactly, by the chain's name.
Known: TypeAlias = Mapping[str, MarkovChain] | None
#: Another study, of whose chains those with the same names are compared, or paths by the chain's name.
Other: TypeAlias = "Study | Mapping[str, Paths] | None"


def of_study(study: "Study", reference: Known, other: Other, delta: float | None) -> Diagnosis:
    """All checks of all chains. ``delta``: None: the study's."""
    with study._lock, study._store.reading() as transaction:
        chains = _data(transaction, study._labels)
        repeated = _repetition.repeated(transaction)
        level = transaction.study.delta if delta is None else delta
    if other is not None and not isinstance(other, Mapping):
        there = set(other.names)
        other = {name: other.paths(name) for name in chains if name in there}
        if not other:
            raise InputError("other must be a study that has a chain of this study, and it has none")
    return diagnose(chains, reference=reference, other=other, delta=level, repeated=repeated)


def _data(transaction: Transaction, labels: Labels) -> dict[str, Paths]:
    """The draws of every chain.

    Where a chain is one process that workers pass on, the log does not say who made which draw: no worker is named.
    """
    found = {chain.name: _paths.chain_paths(transaction, chain, labels) for chain in transaction.every()}
    return {name: paths.by_one_worker() for name, paths in found.items()} if transaction.study.shared else found
