"""The history of a study: the lines that the page and the report draw over time.

They are written together with the observations that cause them: a chain's line when its certificate is computed again,
and a line of the whole study when the number of its observations has grown by 1 %.
"""

from collections.abc import Iterable

from ..store import ChainRecord, Transaction
from . import _certificate

#: The first line of the whole study comes after at least this many observations.
LEAST = 10


def draw(transaction: Transaction, looked: Iterable[ChainRecord]) -> None:
    """Adds the lines that are due. ``looked``: the chains that were just looked at."""
    study = transaction.study
    if study.observations >= study.drawn + max(LEAST, study.drawn // 100):
        study.drawn = study.observations
        transaction.draw(None, _certificate.largest(transaction), study.variability)
    for chain in looked:
        if chain.certified == chain.transitions and _certificate.is_shown(study, chain):
            transaction.draw(chain, _certificate.bound_of(study, chain), chain.variability)
