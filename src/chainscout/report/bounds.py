"""The certificates of very many chains, where the study stores none for want of a target.

One takes about a tenth of a millisecond, so that 100,000 take a while: they are found a batch at a time beside those
who read, and after that only those of chains that have moved.
"""

import time
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .beside import Beside

if TYPE_CHECKING:
    from ..study import Browser

#: Chains of one batch, and how long to rest after a batch, in times what it took: readers go first.
BATCH = 100
REST = 1.0


class Bounds:
    """ω·b of every chain, as of an earlier moment."""

    def __init__(self, browser: "Browser", second: "Browser | None") -> None:
        self._beside = Beside(browser, second, self._look, waits=False, rest=1.0)
        self._rest = 0.0 if second is None else REST
        #: By number; infinite where it is not known yet. Changed a batch at a time, by the looks alone.
        self.values: npt.NDArray[np.float64] = np.empty(0)
        #: Chains whose bound is known, and the observation as of which all are; None before all were looked at once.
        self.known = 0
        self.as_of: int | None = None

    def look(self, observations: int) -> None:
        """Looks again if the study has moved and it is time; never waits if somebody else can look."""
        self._beside.look(observations)

    @property
    def largest(self) -> float | None:
        """Of all chains; None before all were looked at once."""
        return None if self.as_of is None else float(self.values.max())

    def order(self, numbers: list[int] | None, descending: bool) -> npt.NDArray[np.int64]:
        """These chains' numbers, or all, sorted by bound; equal ones by number."""
        chosen = np.arange(len(self.values)) if numbers is None else np.array(numbers, dtype=np.int64)
        chosen = chosen[chosen < len(self.values)]
        values = self.values[chosen]
        return np.asarray(chosen[np.argsort(-values if descending else values, kind="stable")])

    def _look(self, browser: "Browser", observations: int) -> None:
        if self.as_of is None:
            chains = range(browser.study.progress().chains)
            self.values, self.known = np.full(len(chains), np.inf), 0
            moved = list(chains)
        else:
            moved = browser.moved(self.as_of, observations)
        for first in range(0, len(moved), BATCH):
            began = time.monotonic()
            batch = moved[first : first + BATCH]
            self.values[batch] = browser.bounds(batch)
            if self.as_of is None:
                self.known += len(batch)
            time.sleep(self._rest * (time.monotonic() - began))
        self.as_of = observations
