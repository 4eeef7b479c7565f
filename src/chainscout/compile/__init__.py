"""Plain scalar Python, specialised for a rule: interpreted copies, compiled and cached ones, and digests of both."""

from .digests import digest
from .specialise import Copies, bound, call, compiled, has_file, is_off

__all__ = ["Copies", "bound", "call", "compiled", "digest", "has_file", "is_off"]
