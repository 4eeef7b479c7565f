"""The common case of a study in memory, without the detour over transactions: a free chain is advanced.

Whatever is not that case (leases, targets, deadlines, open states, anything that is wrong) is left to the general way;
both use the same ``move``, and a test compares them bit by bit.
"""

import threading
from collections.abc import Hashable
from time import time

from ..store import MemoryStore
from .rule import Rule
from .states import States


class Quick:
    """``ask`` and ``tell`` over a store in memory."""

    def __init__(self, store: MemoryStore, rule: Rule, states: States, lock: threading.RLock) -> None:
        self.study = store.study
        self._store = store
        self._rule = rule
        self._positions = states
        self._lock = lock
        self._plain = rule.plain and rule.policy.floor is None

    def ask(self) -> str | None:
        """The chain with the largest index; None if the general way has to find it."""
        study = self.study
        if study.stop_reason is not None or study.deadline is not None or study.leases or not self._plain:
            return None
        store = self._store
        if study.budget is not None and study.used + study.largest_cost > study.budget:
            return None
        with self._lock:
            number = store._order.first()
        return None if number is None else store.chains[number].name

    def tell(self, name: str, state: Hashable) -> bool:
        """Whether the observation was told; if not, nothing was changed."""
        study, store = self.study, self._store
        if study.stop_reason is not None or study.deadline is not None or study.target_loss is not None:
            return False
        with self._lock:
            try:
                number = store._numbers.get(name)
            except TypeError:  # not hashable
                return False
            if number is None or not self._plain:
                return False
            chain = store.chains[number]
            x = chain.last
            if chain.token is not None or chain.open:
                return False
            if chain.labels is None:
                if type(state) is not int or not 0 <= state < chain.size:
                    return False
                y = state
            else:
                position = self._positions.known(chain, state)
                if position is None:
                    return False
                y = position
            cost = chain.cost
            used = study.used + cost
            if study.budget is not None and used + study.reserved + study.largest_cost > study.budget:
                return False  # it may be the last, or promised
            if x is None:
                chain.segments += 1
                chain.barren += 1
            else:
                row = store.row(chain, x)
                self._rule.move(chain, row, y)
                store.save_row(chain, x, row)
                chain.barren = 0
                if not chain.aside:
                    store._order.set(number, -chain.index)
            chain.last = y
            chain.observations += 1
            study.observations += 1
            study.used = used
            store.now = time()
            store.append(chain, y)
            return True
