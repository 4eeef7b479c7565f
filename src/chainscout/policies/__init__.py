"""Index rules: whom to sample next."""

from .policy import Policy, Setting

__all__ = ["Policy", "Setting"]
