"""One Markov chain: its matrix, and the quantities computed from it (MATH §2)."""

from .chain import MarkovChain

__all__ = ["MarkovChain"]
