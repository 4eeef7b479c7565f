"""Small studies that the tests of report and dashboard share."""

from pathlib import Path
from typing import Any

import chainscout as cs
from chainscout.sources import simulated
from chainscout.study import Study

TOKEN = "a_token_that_the_tests_know"
PROBLEM = cs.problems.get("unlike")

#: Names that try to break out of where they are shown.
HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "'; DROP TABLE chain; --",
    "x" * 10_000,
    "\u202eright to left\u202c",
    "nul\x00inside",
    "../../etc/passwd",
    "..",
    "%2e%2e%2f",
    "=1+2",
    "line\nbreak",
    "$math$ \\u0041 {{braces}}",
)


def new_study(where: Path | None, budget: int | None = 2000, **settings: Any) -> Study:
    """A study of the built-in problem 'unlike'."""
    return Study.create(where, {name: PROBLEM[name].states for name in PROBLEM.names}, budget=budget, **settings)


def stored(study: Study) -> dict[str, float]:
    """Each chain's certificate as the study keeps it."""
    return {line.name: line.certificate for line in study.look().chains}


def advance(study: Study, number: int, seed: int = 0) -> None:
    """So many observations, from the beginning of the simulated paths."""
    sources = simulated(PROBLEM, seed=seed)
    for _ in range(number):
        name = study.ask()
        study.tell(name, sources[name].advance()[0])
