"""Runs slow whole-study computations in a background thread, so that page requests never wait."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import ChainscoutError

if TYPE_CHECKING:
    from ..study import Browser

#: A look is taken again after so many seconds at the earliest, and after as long as 20 looks take.
SECONDS = 2.0
REST = 20.0


class Beside:
    """One kind of look, taken when the study has moved and it is time."""

    def __init__(
        self,
        browser: "Browser",
        second: "Browser | None",
        look: Callable[["Browser", int], None],
        *,
        waits: bool,
        rest: float = REST,
    ) -> None:
        """``second``: the same study once more; without it every look keeps its reader waiting.

        ``waits``: whether the first look is waited for even so. ``rest``: looks that would fit between two looks.
        """
        self._browser, self._second = browser, second
        self._look, self._waits, self._rest = look, waits, rest
        self._lock = threading.Lock()
        self._looked: tuple[int, float, float] | None = None  # observations, when, how long it took

    def look(self, observations: int) -> None:
        """Looks again, or lets it be done, if it is due."""
        if self._second is None or (self._looked is None and self._waits):
            with self._lock:
                self._take(self._browser, observations)
        elif self._is_due(observations) and self._lock.acquire(blocking=False):
            threading.Thread(target=self._take_beside, args=(self._second, observations), daemon=True).start()

    def _take_beside(self, second: "Browser", observations: int) -> None:
        try:
            self._take(second, observations)
        except ChainscoutError:  # those who read on the first connection will say so
            pass
        finally:
            self._lock.release()

    def _is_due(self, observations: int) -> bool:
        if self._looked is None:
            return True
        known, when, took = self._looked
        return known != observations and (
            self._second is None or time.monotonic() > when + max(SECONDS, self._rest * took)
        )

    def _take(self, browser: "Browser", observations: int) -> None:
        if not self._is_due(observations):
            return
        began = time.monotonic()
        self._look(browser, observations)
        self._looked = observations, time.monotonic(), time.monotonic() - began
