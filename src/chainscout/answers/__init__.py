"""Answers: bounds on what a user wants to know about a chain (MATH §11)."""

from .answer import METHODS, Answer, answer
from .grammar import parse
from .question import Cost, LongRunShare, PassageTime, Question, Reach

__all__ = ["METHODS", "Answer", "Cost", "LongRunShare", "PassageTime", "Question", "Reach", "answer", "parse"]
