"""Index rules: whom to sample next. Each is written once and interpreted, or compiled for the CPU and the GPU."""

from .catalogue import DEFAULT, get, is_built_in, names
from .policy import Policy, Setting, settings

__all__ = ["DEFAULT", "Policy", "Setting", "get", "is_built_in", "names", "settings"]
