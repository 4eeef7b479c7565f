"""What a transaction has read, kept for the next one: it is still so if nobody has changed the study in between."""

from .records import ChainRecord, RowRecord

#: Records kept at most.
LIMIT = 50_000


class Cache:
    """The records of a study as they were after so many changes."""

    def __init__(self) -> None:
        self.changes = -1
        self.chains: dict[int, ChainRecord] = {}
        self.numbers: dict[str, int] = {}
        self.rows: dict[tuple[int, int], RowRecord] = {}

    def at(self, changes: int) -> "Cache":
        """The records, of which none are kept if the study is not what it was."""
        if changes != self.changes or len(self.chains) + len(self.rows) > LIMIT:
            self.forget()
            self.changes = changes
        return self

    def forget(self) -> None:
        """Keeps nothing: the next transaction reads everything anew."""
        self.changes = -1
        self.chains.clear()
        self.numbers.clear()
        self.rows.clear()
