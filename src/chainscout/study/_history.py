"""What was known earlier: the few lines that the page and the report draw over time.

They are written with the observations that cause them: a chain's line when its certificate was computed again, and a
line of the whole study when its observations have grown by 1 %.
"""

from collections.abc import Iterable

from ..store import ChainRecord, Transaction
from . import _certificate

#: The whole study has a line after so many observations at the earliest.
LEAST = 10


def draw(transaction: Transaction, refreshed: Iterable[ChainRecord]) -> None:
    """Adds the lines that are due. ``refreshed``: the chains whose certificates were just computed again."""
    study = transaction.study
    if study.observations >= study.drawn + max(LEAST, study.drawn // 100):
        study.drawn = study.observations
        transaction.draw(None, _certificate.largest(transaction), study.variability)
    for chain in refreshed:
        if _certificate.is_shown(study, chain):
            transaction.draw(chain, chain.certificate, chain.variability)
