"""Answers to questions about the chains of a study, from its log."""

from typing import TYPE_CHECKING, Any

from .. import diagnostics
from ..answers import Answer, Question, parse
from ..answers.answer import unchecked
from ..diagnostics import Diagnosis, Doubt
from . import _evidence, _paths, _repetition

if TYPE_CHECKING:
    from .study import Study


#: The default options of a question.
_PLAIN = {"method": None, "asked": None, "losses": "checked"}


def answered(
    study: "Study", chain: str, question: Question | str, delta: float | None, checks: Diagnosis | None = None,
    **options: Any,
) -> Answer:  # fmt: skip
    """The answer to a question about one chain. For a registered question, its own replay gives the answer.

    ``checks``: the checks of all chains at this moment, if they are known already.
    """
    question = parse(question) if isinstance(question, str) else question
    known, news = None, False
    with study._lock, study._store.reading() as transaction:
        record, shared = study._find(transaction, chain), transaction.study.shared
        repeated = _repetition.repeated(transaction, record)
        level, number = transaction.study.delta, transaction.study.chains
        asked = transaction.study.questions > 0
        if asked and delta is None and options == _PLAIN and isinstance(question, Question):
            known, news = study._answering.answered(transaction, record, question)
        checks = None if repeated else checks or _evidence.look(transaction)
        paths = None
        if known is None or checks is None:
            paths = _paths.chain_paths(transaction, record, study._labels)
    if news:
        study._look_at([chain])
    if known is None:
        known = unchecked(paths, question, delta=level if delta is None else delta, **options)
    if repeated:
        return known.without_bounds(Doubt("repeated", repeated[0]), *repeated[1:])
    if checks is not None:
        return known.without_bounds(checks.doubt(chain))
    assert paths is not None  # a study that stores no checks, because it has so many chains
    paths = paths.by_one_worker() if shared else paths
    return known.without_bounds(diagnostics.diagnose(paths, delta=level / number).doubt())


def of_all_chains(study: "Study", question: Question | str, losses: str) -> dict[str, Answer]:
    """The answers to one question about each chain, with δ/K for each."""
    share, checks = study.progress().delta / study.progress().chains, study.checks()
    return {
        name: answered(study, name, question, share, checks, method=None, asked=None, losses=losses)
        for name in study.names
    }
