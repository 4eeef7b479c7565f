"""One sampling budget, many Markov chains: learn every transition matrix equally well, and know how well.

Each name is imported when it is first used. So ``import chainscout`` alone takes almost no time.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import logs, policies, problems, sources
    from .answers import Answer, Cost, LongRunShare, PassageTime, Reach, answer
    from .certificates import Certificate, Estimate, certify
    from .chains import MarkovChain
    from .counts import Counts
    from .diagnostics import Check, Diagnosis, diagnose
    from .errors import ChainscoutError
    from .experiment import Results, compare
    from .learning.learn import learn
    from .logs import count_transitions
    from .losses import loss
    from .paths import Paths
    from .policies import Policy
    from .problems import Problem
    from .sources.simulated import simulated
    from .study import Study, plan

__all__ = [
    "Answer",
    "Certificate",
    "ChainscoutError",
    "Check",
    "Cost",
    "Counts",
    "Diagnosis",
    "Estimate",
    "LongRunShare",
    "MarkovChain",
    "PassageTime",
    "Paths",
    "Policy",
    "Problem",
    "Reach",
    "Results",
    "Study",
    "__version__",
    "answer",
    "certify",
    "compare",
    "count_transitions",
    "diagnose",
    "learn",
    "logs",
    "loss",
    "plan",
    "policies",
    "problems",
    "simulated",
    "sources",
]

_HOMES = {
    "answer": "answers",
    "Reach": "answers",
    "PassageTime": "answers",
    "LongRunShare": "answers",
    "Cost": "answers",
    "Answer": "answers",
    "Certificate": "certificates",
    "ChainscoutError": "errors",
    "Check": "diagnostics",
    "Counts": "counts",
    "Diagnosis": "diagnostics",
    "Estimate": "certificates",
    "MarkovChain": "chains",
    "Paths": "paths",
    "Policy": "policies",
    "Problem": "problems",
    "Results": "experiment",
    "Study": "study",
    "certify": "certificates",
    "compare": "experiment",
    "count_transitions": "logs",
    "diagnose": "diagnostics",
    "learn": "learning",
    "loss": "losses",
    "plan": "study",
    "simulated": "sources",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    if name in ("logs", "policies", "problems", "sources"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
