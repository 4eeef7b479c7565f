"""What share of the observations a chain should have, by what is known now: plug-in η, and the policy's own aim."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..chains import MarkovChain
from ..problems import Problem
from .beside import Beside

if TYPE_CHECKING:
    from ..study import Browser, ChainLine, Study

#: Chains and entries of matrices up to which the policy's aim is computed: it needs every estimate at once.
MOST_CHAINS = 500
MOST_ENTRIES = 100_000


class Shares:
    """Λ of the estimates and the policy's aim; they need all chains, and so are looked at only now and then."""

    def __init__(self, browser: "Browser", second: "Browser | None") -> None:
        self._beside = Beside(browser, second, self._look, waits=True)
        self.variability = 0.0
        self._aims: dict[int, float] = {}

    def look(self, observations: int) -> None:
        """Looks again if the study has moved and it is time; waits for the first look only."""
        self._beside.look(observations)

    def _look(self, browser: "Browser", observations: int) -> None:
        self.variability, self._aims = browser.variability(), _aims(browser)

    def plug_in(self, line: "ChainLine") -> float | None:
        """η̂ of a chain: ω·ΣĜ over Λ̂."""
        return line.variability / self.variability if self.variability > 0 else None

    def aim(self, line: "ChainLine") -> float | None:
        """The share that the policy tends to if the estimates are the truth; None if that is not known."""
        return self._aims.get(line.number)


def _aims(browser: "Browser") -> dict[int, float]:
    """The shares that the policy tends to if the estimates are the truth; none if it has no aim or it is too dear."""
    number, lines = browser.page(limit=MOST_CHAINS)
    if number > MOST_CHAINS or sum(line.size**2 for line in lines) > MOST_ENTRIES:
        return {}
    if any(line.size == 0 for line in lines):
        return {}
    matrices = (browser.study.estimate(line.name).matrix for line in lines)
    shares = aimed(browser.study, list(matrices), [line.weight for line in lines])
    return {} if shares is None else dict(zip((line.number for line in lines), shares, strict=True))


def aimed(study: "Study", matrices: Sequence[npt.NDArray[np.float64]], weights: Sequence[float]) -> list[float] | None:
    """The shares that the study's policy tends to where these are the chains; None if it has no aim."""
    if study.policy.target is None:
        return None
    problem = Problem({str(number): MarkovChain(matrix) for number, matrix in enumerate(matrices)})
    shares = study.policy.aim(problem, weights)
    return None if shares is None or not all(map(math.isfinite, shares)) else shares.tolist()
