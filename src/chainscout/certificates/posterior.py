"""Draws of a matrix from its posterior law under a Dirichlet prior, in the shape that ArviZ reads. Not guaranteed."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, MissingExtraError
from ..validation import seed_number, whole_number


def posterior_draws(
    states: Sequence[Hashable], transitions: npt.NDArray[np.int64], alpha: float, draws: int, chains: int, seed: int
) -> Any:
    """An xarray Dataset with the variable ``P`` (chain, draw, from, to), each row drawn from Dirichlet(N[x,·] + α)."""
    shape = (
        whole_number(chains, "chains", meaning="groups of draws, as a sampler has them"),
        whole_number(draws, "draws", meaning="draws in each group"),
    )
    if alpha == 0:
        raise InputError("draws need a prior, which alpha = 0 is not: take the default alpha, or one above 0")
    try:
        import xarray
    except ImportError:
        raise MissingExtraError("to_xarray", "xarray") from None
    generator = np.random.default_rng(seed_number(seed))
    rows = [generator.dirichlet(row + alpha, size=shape) for row in transitions]
    labels = [state if isinstance(state, str | int) else str(state) for state in states]
    return xarray.Dataset(
        {"P": (("chain", "draw", "from", "to"), np.stack(rows, axis=2))},
        coords={"chain": range(shape[0]), "draw": range(shape[1]), "from": labels, "to": labels},
        attrs={"prior": f"Dirichlet({alpha:g}) for every row", "guaranteed": "no"},
    )
