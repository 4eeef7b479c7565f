"""Answers to questions about the chains of a study, from its log."""

from typing import TYPE_CHECKING, Any

from ..answers import Answer, Question, answer

if TYPE_CHECKING:
    from .study import Study


def answered(study: "Study", chain: str, question: Question | str, delta: float | None, **options: Any) -> Answer:
    """What is known of a question about one chain."""
    return answer(study.paths(chain), question, delta=study.progress().delta if delta is None else delta, **options)


def of_all_chains(study: "Study", question: Question | str, losses: str) -> dict[str, Answer]:
    """What is known of one question about each chain, with δ/K for each."""
    share = study.progress().delta / study.progress().chains
    return {name: answered(study, name, question, share, losses=losses) for name in study.names}
