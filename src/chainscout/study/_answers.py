"""Answers to questions about the chains of a study, from its log."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..answers import Answer, Question, answer, parse
from . import _repetition

if TYPE_CHECKING:
    from .study import Study


#: The default options of a question.
_PLAIN = {"method": None, "asked": None, "losses": "checked"}


def answered(study: "Study", chain: str, question: Question | str, delta: float | None, **options: Any) -> Answer:
    """The answer to a question about one chain. For a registered question, its own replay gives the answer."""
    question = parse(question) if isinstance(question, str) else question
    known = None
    with study._lock, study._store.reading() as transaction:
        record = study._find(transaction, chain)
        doubts = _repetition.repeated(transaction, record)
        if transaction.study.questions and delta is None and options == _PLAIN and isinstance(question, Question):
            known = study._answering.answered(transaction, record, question)
    if known is None:
        share = study.progress().delta if delta is None else delta
        known = answer(study.paths(chain), question, delta=share, **options)
    # Its own notes say when the bounds hold, and no bound holds.
    return replace(known, guaranteed=False, notes=doubts) if doubts else known


def of_all_chains(study: "Study", question: Question | str, losses: str) -> dict[str, Answer]:
    """The answers to one question about each chain, with δ/K for each."""
    share = study.progress().delta / study.progress().chains
    return {name: answered(study, name, question, share, losses=losses) for name in study.names}
