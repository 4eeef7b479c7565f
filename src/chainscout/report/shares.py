"""What share of the observations a chain should have, by what is known now: plug-in η, and the policy's own aim."""

import math
import threading
import time
from typing import TYPE_CHECKING

from ..chains import MarkovChain
from ..problems import Problem

if TYPE_CHECKING:
    from ..study import ChainLine, Study

#: Chains and entries of matrices up to which the policy's aim is computed: it needs every estimate at once.
MOST_CHAINS = 500
MOST_ENTRIES = 100_000
#: What is known of all chains together is looked at again after so many seconds, and after as long as 20 looks take.
SECONDS = 2.0


class Shares:
    """Λ of the estimates and the policy's aim; they need all chains, and so are looked at only now and then."""

    def __init__(self, study: "Study") -> None:
        self._study = study
        self._lock = threading.Lock()
        self._looked: tuple[int, float, float] | None = None  # observations, when, how long it took
        self.variability = 0.0
        self._aims: dict[int, float] = {}

    def look(self, observations: int) -> None:
        """Looks again if the study has moved and it is time."""
        with self._lock:
            began = time.monotonic()
            if self._looked is not None:
                known, when, took = self._looked
                if known == observations or began < when + max(SECONDS, 20 * took):
                    return
            self.variability = self._study.variability()
            self._aims = self._find_aims()
            self._looked = observations, time.monotonic(), time.monotonic() - began

    def plug_in(self, line: "ChainLine") -> float | None:
        """η̂ of a chain: ω·ΣĜ over Λ̂."""
        return line.variability / self.variability if self.variability > 0 else None

    def aim(self, line: "ChainLine") -> float | None:
        """The share that the policy tends to if the estimates are the truth; None if that is not known."""
        return self._aims.get(line.number)

    def _find_aims(self) -> dict[int, float]:
        study = self._study
        number, lines = study.browse(limit=MOST_CHAINS)
        if number > MOST_CHAINS or sum(line.size**2 for line in lines) > MOST_ENTRIES:
            return {}
        if any(line.size == 0 for line in lines):
            return {}
        problem = Problem({line.name: MarkovChain(study.estimate(line.name).matrix) for line in lines})
        shares = study.policy.aim(problem, [line.weight for line in lines])
        if shares is None or not all(math.isfinite(share) for share in shares):
            return {}
        return {line.number: float(share) for line, share in zip(lines, shares, strict=True)}
