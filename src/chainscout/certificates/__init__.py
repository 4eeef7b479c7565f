"""What is known with probability 1 − δ: bounds on losses, and intervals for single probabilities (MATH §7)."""

from .certificate import ASSUMPTION, EXITS, METHODS, Certificate, certify
from .estimate import Estimate

__all__ = ["ASSUMPTION", "EXITS", "METHODS", "Certificate", "Estimate", "certify"]
