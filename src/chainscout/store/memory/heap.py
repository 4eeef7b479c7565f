"""A heap for the smallest of many keys that change one at a time. It drops an outdated entry when it finds one."""

from heapq import heapify, heappop, heappush, heapreplace

__all__ = ["Heap"]


class Heap:
    """The numbers 0 … n−1, ordered by (key, number). Numbers with the key None are left out."""

    __slots__ = ("_entries", "_keys")

    def __init__(self, keys: list[float | None]) -> None:
        self._keys = keys
        self._rebuild()

    def _rebuild(self) -> None:
        self._entries = [(key, number) for number, key in enumerate(self._keys) if key is not None]
        heapify(self._entries)

    def set(self, number: int, key: float | None) -> None:
        """Gives ``number`` another key."""
        keys, entries = self._keys, self._entries
        if key == keys[number]:
            return
        keys[number] = key
        if key is None:
            return
        if entries and entries[0][1] == number:
            # The usual case: the chain that moved is the chain that was asked for, and its old entry is on top.
            heapreplace(entries, (key, number))
        else:
            heappush(entries, (key, number))
            if len(entries) > 2 * len(keys) + 64:
                self._rebuild()

    def first(self) -> int | None:
        """The number with the smallest key."""
        entries, keys = self._entries, self._keys
        while entries:
            key, number = entries[0]
            if keys[number] == key:
                return number
            heappop(entries)
        return None

    def firsts(self, count: int) -> list[int]:
        """The ``count`` numbers with the smallest keys, in order."""
        found: list[int] = []
        taken: list[tuple[float, int]] = []
        while len(found) < count and (number := self.first()) is not None:
            entry = heappop(self._entries)
            if not found or number != found[-1]:  # an entry can occur twice, one right after the other
                found.append(number)
                taken.append(entry)
        for entry in taken:
            heappush(self._entries, entry)
        return found
