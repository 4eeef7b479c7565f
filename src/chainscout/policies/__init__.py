"""Index rules, which choose the next chain. Each is written once, and interpreted or compiled for the CPU and GPU."""

from .catalogue import DEFAULT, WITH_TARGET, for_study, get, is_built_in, names
from .policy import Policy, Setting, settings

__all__ = ["DEFAULT", "WITH_TARGET", "Policy", "Setting", "for_study", "get", "is_built_in", "names", "settings"]
