"""The arguments of a kernel, and the place of a replication's state: shared memory if it fits, else device memory."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

#: Threads of a block. One warp: blocks are small, so that several share a multiprocessor's memory.
THREADS = 32
#: The shared memory that a block may use without a request for more.
SHARED_BYTES = 48 * 1024
#: The shared memory that it may use if rows are in device memory: about ten blocks then share a multiprocessor.
CROWDED_BYTES = 23 * 1024
#: The bytes that the device memory moves at a time. A record of at most this many bytes never spans two such parts.
SECTOR = 32

#: Bits of the words that several counts of a row are read in at a time.
WORD_BITS = 64

#: An array of the state: its shape for one lane, and its type.
Field = tuple[tuple[int, ...], type]


class Tables(NamedTuple):
    """The data that all replications read, padded to the largest S; matrix (k, x, y) is at (k·S + x)·S + y."""

    budgets: Any
    sizes: Any
    table: Any
    laws: Any
    constants: Any
    weights: Any
    matrices: Any


class Outcome(NamedTuple):
    """The results of a launch: losses and pulls (budget, replication, chain), or counts instead of losses."""

    loss: Any
    pulls: Any
    kept: Any


class Lanes(NamedTuple):
    """The state of the replications of a launch, one lane each (the last axis of every array), and scratch space."""

    #: The rows' counts again, several in a word.
    packed: Any
    counts: Any
    exits: Any
    squares: Any
    looked: Any
    term: Any
    total: Any
    transitions: Any
    states: Any
    nexts: Any
    positions: Any
    gammas: Any
    indices: Any
    #: Space for a summary or a row.
    reals: Any
    wholes: Any
    #: A batch's plan, and blocks in batches.
    pending: Any
    plans: Any
    looks: Any
    held: Any


def count_type(budget: int, states: int) -> type:
    """The smallest type that holds n and S. A smaller type leaves room for more replications at a time."""
    largest = max(budget, states + 1)
    return np.uint16 if largest < 1 << 16 else np.uint32 if largest < 1 << 32 else np.uint64


@dataclass(frozen=True)
class Layout:
    """The arrays of a replication's state, and their places."""

    chains: int
    states: int
    width: int
    #: The type of counts.
    count: type
    real: type
    #: Whether rows keep N_x of the last evaluation.
    looked: bool

    @property
    def square(self) -> type:
        """Σ_y N[x,y]² is at most n²."""
        if self.count is np.uint16:
            return np.uint32
        return np.uint64 if self.count is np.uint32 else np.float64

    @property
    def groups(self) -> dict[str, dict[str, Field]]:
        """The fields of every row, and of every chain: its position, its random stream, its index."""
        rows, once = self.chains * self.states, (self.chains,)
        return {
            "rows": {
                "counts": ((rows, self.states), self.count),
                "exits": ((rows,), self.count),
                "squares": ((rows,), self.square),
                "looked": ((rows if self.looked else 1,), self.count),
                "term": ((rows, self.width), self.real),
            },
            "chains": {
                "total": ((*once, self.width), self.real),
                "transitions": (once, self.count),
                "states": (once, self.count),
                "nexts": (once, self.count),
            },
            "streams": {"positions": (once, np.uint64), "gammas": (once, np.uint64)},
            "indices": {"indices": (once, self.real)},
        }

    @property
    def shared(self) -> frozenset[str]:
        """The groups in shared memory: all if they fit; else the indices, which every step looks at all of, and as
        much as leaves room for enough threads to hide the device memory's latency."""
        taken = {group: THREADS * _bytes(fields) for group, fields in self.groups.items()}
        if sum(taken.values()) <= SHARED_BYTES:
            return frozenset(taken)
        if taken["indices"] > SHARED_BYTES:
            return frozenset()
        if taken["indices"] + taken["chains"] > CROWDED_BYTES:
            return frozenset({"indices"})
        if taken["indices"] + taken["chains"] + taken["streams"] > CROWDED_BYTES:
            return frozenset({"indices", "chains"})
        return frozenset({"indices", "chains", "streams"})

    @property
    def bytes(self) -> int:
        """The device memory that one replication's state takes."""
        indices = 0 if "indices" in self.shared else _bytes(self.groups["indices"])
        return indices + sum(record.number * record.bytes for record in self.records.values())

    @property
    def records(self) -> "dict[str, Record]":
        """A record for every row and one for every chain, of the fields in device memory."""
        groups, shared = self.groups, self.shared
        per_chain = {**({} if "chains" in shared else groups["chains"]), **groups["streams"]}
        records = {}
        if "rows" not in shared:
            records["rows"] = Record.of(groups["rows"], self.chains * self.states)
        if "streams" not in shared:
            records["chains"] = Record.of(per_chain, self.chains)
        return records

    def allocate(self, arrays: Any, lanes: int) -> tuple[list[Any], list[Any]]:
        """The state of ``lanes`` replications in device memory, in the order of the kernel's arguments, with a single
        word for what is in shared memory; and the memory that must be cleared before each launch."""
        made: list[Any] = []
        memory = {
            name: arrays.empty(lanes * record.number * record.bytes, np.uint8) for name, record in self.records.items()
        }
        for group, fields in self.groups.items():
            place = "chains" if group == "streams" else group
            for name, (shape, kind) in fields.items():
                if group in self.shared:
                    made.append(arrays.empty((1,) * (len(shape) + 1), kind))
                elif group == "indices":
                    made.append(arrays.empty((*shape, lanes), kind))
                else:
                    made.append(self.records[place].view(arrays, memory[place], name, shape, kind, lanes))
        if "rows" in self.shared:
            return [arrays.empty((1, 1, 1), np.uint64), *made], []
        record, words = self.records["rows"], -(-self.states * np.dtype(self.count).itemsize * 8 // WORD_BITS)
        packed = record.view(arrays, memory["rows"], "counts", (record.number, words), np.uint64, lanes)
        return [packed, *made], [memory["rows"]]


@dataclass(frozen=True)
class Record:
    """The fields of a row or a chain side by side: one step touches one row and one chain of a replication, and its
    neighbours touch others, so that fields apart would be fetched apart, 32 bytes each."""

    number: int
    offsets: dict[str, int]
    bytes: int

    @classmethod
    def of(cls, fields: dict[str, Field], number: int) -> "Record":
        """Counts come first, because they are read as words, then the widest fields first: each is aligned."""
        end, offsets = 0, {}
        for name in sorted(fields, key=lambda name: (name != "counts", -np.dtype(fields[name][1]).itemsize)):
            shape, kind = fields[name]
            size = np.dtype(kind).itemsize
            offsets[name] = end = -(-end // size) * size
            end += size * int(np.prod(shape[1:])) * (shape[0] == number)
        return cls(number, offsets, max(8, 1 << (end - 1).bit_length()) if end <= SECTOR else -(-end // 8) * 8)

    def view(self, arrays: Any, memory: Any, name: str, shape: tuple[int, ...], kind: type, lanes: int) -> Any:
        """A field as an array with the lanes last. What is not kept is an array of one word."""
        if shape[0] != self.number:
            return arrays.empty((*(1 for _ in shape), lanes), kind)
        size = np.dtype(kind).itemsize
        strides = (self.bytes, *(size for _ in shape[1:]), self.number * self.bytes)
        words = memory[self.offsets[name] :]
        words = words[: len(words) // size * size].view(kind)
        return arrays.lib.stride_tricks.as_strided(words, (*shape, lanes), strides)


def _bytes(fields: dict[str, Field]) -> int:
    return sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in fields.values())
