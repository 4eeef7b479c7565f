"""The kernel for one policy and one shape of problem."""

import dis
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .. import tuples
from ..specialising import Parts
from . import learning
from .compiling import GpuKernel, kernel
from .devices import compiler, is_simulated
from .kernel import run
from .memory import THREADS, WORD_BITS, Layout


@dataclass(frozen=True)
class Rule:
    """The parts of a policy, and what else a kernel is specialised for."""

    parts: Parts
    #: Observations of a look: max(``shortest``, ⌊block·T⌋), or those of a batch.
    block: float
    shortest: int
    batch: int
    budgets: int
    keep_counts: bool

    @property
    def reads_row(self) -> bool:
        """Whether ``terms`` looks at the row that it is given; most rules need N_x and Σ_y N[x,y]² only."""
        terms = self.parts.terms
        if terms is None or self.parts.entry is not None:
            return False
        row = terms.__code__.co_varnames[0]
        return any(row == step.argval or row in _several(step.argval) for step in dis.get_instructions(terms))

    @property
    def looks_last(self) -> bool:
        """Whether there are looks of more than one observation."""
        return self.block > 0 or self.shortest > 1

    @property
    def holds(self) -> bool:
        """Whether there are blocks in batches: a chain's index is held until it was observed so often."""
        return self.block > 0 and self.batch > 1


def _several(argument: Any) -> tuple[Any, ...]:
    """The names of an instruction that loads two variables at once."""
    return argument if isinstance(argument, tuple) else ()


@lru_cache(maxsize=64)
def specialised(rule: Rule, layout: Layout, shared: frozenset[str]) -> GpuKernel:
    """The kernel, ready to be launched."""
    from numba import from_dtype

    simulated = is_simulated()

    def kind(of: type) -> Any:
        return from_dtype(np.dtype(of))

    parts = rule.parts
    packed = parts.entry is not None and "rows" not in shared
    of_entries = learning.terms_of_words if packed else learning.terms_of_entries
    bits = 8 * np.dtype(layout.count).itemsize
    names = parts.names | {
        "cuda": compiler(),
        "row_terms": of_entries
        if parts.entry
        else learning.terms_of_row
        if rule.reads_row
        else learning.terms_of_totals,
        **{name: tuples.of_length(layout.width)[name] for name in ("take_lane", "put_lane", "replace_all")},
        "whole": int if simulated else np.uint64,
        "signed": int if simulated else np.int64,
        "real": float if simulated else layout.real,
        "counted": int if simulated else np.uint64 if layout.count is np.uint64 else np.uint32,
        "squared": float if layout.square is np.float64 else int if simulated else layout.square,
        "wide": float if layout.square is np.float64 else int if simulated else np.uint64,
        "count_type": kind(layout.count),
        "square_type": kind(layout.square),
        "real_type": kind(layout.real),
        "word_type": kind(np.uint64),
        "CHAINS": layout.chains,
        "STATES": layout.states,
        "WIDTH": layout.width,
        "BUDGETS": rule.budgets,
        "CLEARED": layout.chains * layout.states if "rows" in shared else 0,
        "THREADS": THREADS,
        "BATCH": rule.batch,
        "BLOCKS": rule.looks_last and rule.batch == 1,
        "HELD": rule.holds,
        "LOOKED": layout.looked,
        "KEEP_COUNTS": rule.keep_counts,
        "BLOCK": float(rule.block),
        "SHORTEST": rule.shortest,
        **{f"{group.upper()}_SHARED": group in shared for group in layout.groups},
        "PACKED": packed,
        "PER_WORD": WORD_BITS // bits,
        "COUNT_BITS": bits,
        "COUNT_MASK": (1 << bits) - 1,
        "NONE": int(np.iinfo(layout.count).max),
        "SHAPE_CHAINS": layout.chains,
        "SHAPE_STATES": layout.states,
        "SHAPE_ROWS": layout.chains * layout.states,
        "SHAPE_LOOKED": layout.groups["rows"]["looked"][0][0],
        "SHAPE_TERMS": layout.width,
        "SHAPE_THREADS": THREADS,
    }
    return kernel(run, names, layout.real, "rows" in shared)
