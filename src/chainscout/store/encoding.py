"""Exact, compact encodings of what a database column holds: doubles to the bit, sparse counts, labels, check sums."""

import json
import struct
import zlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import FileError


def pack_floats(values: Sequence[float]) -> bytes:
    """Doubles, little-endian: the same bits come back from any database."""
    return struct.pack(f"<{len(values)}d", *values)


def unpack_floats(blob: bytes) -> tuple[float, ...]:
    """What ``pack_floats`` packed."""
    return struct.unpack(f"<{len(blob) // 8}d", blob)


def pack_counts(counts: Mapping[int, int]) -> bytes:
    """The positions and then the counts of the states seen, as 64-bit integers."""
    return struct.pack(f"<{2 * len(counts)}q", *counts, *counts.values())


def unpack_counts(blob: bytes) -> dict[int, int]:
    """What ``pack_counts`` packed."""
    values = struct.unpack(f"<{len(blob) // 8}q", blob)
    half = len(values) // 2
    return dict(zip(values[:half], values[half:], strict=True))


def pack_discoveries(discoveries: Mapping[int, tuple[int, int, int]]) -> bytes:
    """Position, number of discovery, exits and count then, for each pair."""
    if not discoveries:  # all chains but those with open states
        return b""
    flat = [value for y, found in discoveries.items() for value in (y, *found)]
    return struct.pack(f"<{len(flat)}q", *flat)


def unpack_discoveries(blob: bytes) -> dict[int, tuple[int, int, int]]:
    """What ``pack_discoveries`` packed."""
    if not blob:
        return {}
    flat = struct.unpack(f"<{len(blob) // 8}q", blob)
    return {flat[i]: (flat[i + 1], flat[i + 2], flat[i + 3]) for i in range(0, len(flat), 4)}


def pack_label(label: Hashable) -> str:
    """A label as JSON, so that 1 and "1" stay apart."""
    return json.dumps(label, ensure_ascii=False)


def pack_labels(labels: Iterable[Hashable]) -> str:
    """A list of labels as JSON."""
    return json.dumps(list(labels), ensure_ascii=False)


def unpack_json(text: str) -> Any:
    """JSON back, with a clear error if it is damaged."""
    try:
        return json.loads(text)
    except ValueError:
        raise FileError("the study is damaged: a stored text is not the JSON that was written") from None


def check_sum(values: Iterable[Any]) -> int:
    """CRC-32 of a row's values: a database page that lost a bit is noticed before its numbers are used."""
    return zlib.crc32(repr(tuple(values)).encode())
