"""The smallest of many keys, of which one at a time changes: a heap whose outdated entries are dropped when met."""

import heapq


class Order:
    """Numbers 0 … n−1 ordered by (key, number); a key of None takes the number out."""

    def __init__(self, keys: list[float | None]) -> None:
        self.keys = keys
        self.heap = [(key, number) for number, key in enumerate(keys) if key is not None]
        heapq.heapify(self.heap)

    def set(self, number: int, key: float | None) -> None:
        """Gives ``number`` another key."""
        keys, heap = self.keys, self.heap
        if key == keys[number]:
            return
        keys[number] = key
        if key is None:
            return
        if heap and heap[0][1] == number:
            # The usual case: the chain that was asked for is the one that moved, and its old entry is on top.
            heapq.heapreplace(heap, (key, number))
        else:
            heapq.heappush(heap, (key, number))
            if len(heap) > 2 * len(keys) + 64:
                self.heap = [(k, n) for n, k in enumerate(keys) if k is not None]
                heapq.heapify(self.heap)

    def first(self) -> int | None:
        """The number with the smallest key."""
        heap, keys = self.heap, self.keys
        while heap:
            key, number = heap[0]
            if keys[number] == key:
                return number
            heapq.heappop(heap)
        return None

    def firsts(self, count: int) -> list[int]:
        """The ``count`` numbers with the smallest keys, in order."""
        found: list[int] = []
        taken: list[tuple[float, int]] = []
        while len(found) < count:
            number = self.first()
            if number is None:
                break
            entry = heapq.heappop(self.heap)
            if not found or number != found[-1]:  # an entry can be there twice, one right after the other
                found.append(number)
                taken.append(entry)
        for entry in taken:
            heapq.heappush(self.heap, entry)
        return found
