"""One Markov chain: its matrix, and what follows from it (MATH §2)."""

from .chain import MarkovChain

__all__ = ["MarkovChain"]
