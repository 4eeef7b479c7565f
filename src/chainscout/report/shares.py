"""What share of the observations each chain should have if the estimates are the truth: the policy's own aim."""

import math
from typing import TYPE_CHECKING

from ..chains import MarkovChain
from ..problems import Problem

if TYPE_CHECKING:
    from ..study import Browser

#: Chains and entries of matrices up to which the policy's aim is computed: it needs every estimate at once.
MOST_CHAINS = 100
MOST_ENTRIES = 20_000


def aims(browser: "Browser") -> dict[int, float]:
    """Each chain's share in the policy's aim, by number; none if the policy has no aim, or if it costs too much."""
    study = browser.study
    if study.policy.target is None:
        return {}
    number, lines = browser.page(limit=MOST_CHAINS)
    if number > MOST_CHAINS or sum(line.states**2 for line in lines) > MOST_ENTRIES:
        return {}
    if any(line.states == 0 for line in lines):
        return {}
    problem = Problem({str(line.number): MarkovChain(study.estimate(line.name).matrix) for line in lines})
    shares = study.policy.aim(problem, [line.weight for line in lines])
    if shares is None or not all(map(math.isfinite, shares)):
        return {}
    return dict(zip((line.number for line in lines), shares.tolist(), strict=True))
