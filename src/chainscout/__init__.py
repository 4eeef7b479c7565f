"""One sampling budget, many Markov chains: learn every transition matrix equally well, and know how well.

Names are imported when they are first used, so that ``import chainscout`` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import problems
    from .certificates import Certificate, Estimate, certify
    from .chains import MarkovChain
    from .counts import Counts
    from .errors import ChainscoutError
    from .logs import count_transitions
    from .losses import loss
    from .problems import Problem

__all__ = [
    "Certificate",
    "ChainscoutError",
    "Counts",
    "Estimate",
    "MarkovChain",
    "Problem",
    "__version__",
    "certify",
    "count_transitions",
    "loss",
    "problems",
]

_HOMES = {
    "Certificate": "certificates",
    "ChainscoutError": "errors",
    "Counts": "counts",
    "Estimate": "certificates",
    "MarkovChain": "chains",
    "Problem": "problems",
    "certify": "certificates",
    "count_transitions": "logs",
    "loss": "losses",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    if name == "problems":
        return importlib.import_module(".problems", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
