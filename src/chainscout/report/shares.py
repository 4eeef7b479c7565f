"""What share of the observations a chain should have, by what is known now: plug-in η, and the policy's own aim."""

import math
import threading
import time
from typing import TYPE_CHECKING

from ..chains import MarkovChain
from ..errors import ChainscoutError
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

    def __init__(self, study: "Study", second: "Study | None") -> None:
        #: A second connection lets all looks but the first go on beside the readers of the first connection.
        self._study = study
        self._second = second
        self._lock = threading.Lock()
        self._looked: tuple[int, float, float] | None = None  # observations, when, how long it took
        self.variability = 0.0
        self._aims: dict[int, float] = {}

    def look(self, observations: int) -> None:
        """Looks again if the study has moved and it is time; waits for the first look only."""
        if self._second is None or self._looked is None:
            with self._lock:
                self._look(self._study, observations)
        elif self._is_due(observations) and self._lock.acquire(blocking=False):
            threading.Thread(target=self._look_beside, args=(observations,), daemon=True).start()

    def _look_beside(self, observations: int) -> None:
        try:
            assert self._second is not None
            self._look(self._second, observations)
        except ChainscoutError:  # the readers of the first connection will say so
            pass
        finally:
            self._lock.release()

    def _is_due(self, observations: int) -> bool:
        if self._looked is None:
            return True
        known, when, took = self._looked
        return known != observations and time.monotonic() > when + max(SECONDS, 20 * took)

    def _look(self, study: "Study", observations: int) -> None:
        if not self._is_due(observations):
            return
        began = time.monotonic()
        variability, aims = study.variability(), _aims(study)
        self.variability, self._aims = variability, aims
        self._looked = observations, time.monotonic(), time.monotonic() - began

    def plug_in(self, line: "ChainLine") -> float | None:
        """η̂ of a chain: ω·ΣĜ over Λ̂."""
        return line.variability / self.variability if self.variability > 0 else None

    def aim(self, line: "ChainLine") -> float | None:
        """The share that the policy tends to if the estimates are the truth; None if that is not known."""
        return self._aims.get(line.number)


def _aims(study: "Study") -> dict[int, float]:
    """The shares that the policy tends to if the estimates are the truth; none if it has no aim or it is too dear."""
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
