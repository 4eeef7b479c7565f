"""Spectral gaps and the mixing-time bounds that follow from them (paper §2.1; Paulin 2015)."""

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigvals, eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, svds

Array = npt.NDArray[np.float64]

#: The error of a gap: it is one minus a rounded number near one.
ROUNDING = 1e-12

#: Up to this size all singular values are computed. Above it only the largest one is computed, by Lanczos.
DENSE = 256


def deviation(matrix: Array, stationary: Array) -> Array:
    """D^{1/2} P D^{-1/2} − √π√πᵀ, D = diag(π): P as an operator on L²(π), without the leading eigenvalue 1.

    Its powers are D^{1/2} P^ℓ D^{-1/2} − √π√πᵀ. It is symmetric if and only if the chain is reversible. The eigenvalues
    of (P*)^ℓ P^ℓ, other than the leading 1, are the squared singular values of its ℓ-th power.
    """
    root = np.sqrt(stationary)
    return np.asarray(root[:, None] * matrix / root[None, :] - np.multiply.outer(root, root))


def absolute_spectral_gap(matrix: Array, stationary: Array) -> float:
    """γ = 1 − max{|λ| : λ ≠ the leading 1} of a reversible chain."""
    if len(matrix) == 1:
        return 1.0
    a = deviation(matrix, stationary)
    eigenvalues = eigvalsh((a + a.T) / 2)
    return _gap(max(abs(eigenvalues[0]), abs(eigenvalues[-1])))


def pseudo_spectral_gap(matrix: Array, stationary: Array) -> float:
    """γ_ps = max over ℓ ≥ 1 of f(ℓ) = γ((P*)^ℓ P^ℓ)/ℓ, to a relative 1e-9, with a proven stopping point.

    With A the deviation, f(ℓ) = (1 − ‖A^ℓ‖²)/ℓ. Two bounds show which ℓ can be skipped:
    - ‖A^ℓ‖ ≥ |λ₂|^ℓ, so f(ℓ) ≤ (1 − |λ₂|^{2ℓ})/ℓ, which falls as ℓ grows: beyond some ℓ no value is larger;
    - ‖A^ℓ‖ falls as ℓ grows, so f ≤ (1 − ‖A^high‖²)/(low + 1) between low and high.
    ℓ = 1, 2, 4, … are tried until the first bound ends the search, then the intervals between them by bisection. The
    eigenvalue costs more than everything else, so f(ℓ) ≤ 1/ℓ is tried first: it is enough for most chains.
    """
    if len(matrix) == 1:
        return 1.0
    powers = [deviation(matrix, stationary)]  # for the exponents 1, 2, 4, …
    gaps = [_gap(_norm(powers[0]) ** 2)]
    best = gaps[0]
    if best >= 1 / 2:
        return best
    second = float(np.abs(eigvals(powers[0])).max())

    def hopeless(low: int, gap: float) -> bool:
        # No ℓ > low with γ((P*)^ℓ P^ℓ) ≤ gap can beat the best by more than rounding errors.
        return min(gap, _gap(second ** (2 * (low + 1)))) / (low + 1) <= best * (1 + 1e-9) + ROUNDING

    while not hopeless(2 ** (len(powers) - 1), 1.0):
        powers.append(powers[-1] @ powers[-1])
        gaps.append(_gap(_norm(powers[-1]) ** 2))
        best = max(best, gaps[-1] / 2 ** (len(powers) - 1))
    # An interval: its lower end, the power there, the logarithm of its length, the gap at its upper end.
    intervals = [(2**k, powers[k], k, gaps[k + 1]) for k in range(len(powers) - 1)]
    while intervals:
        low, power, logarithm, gap = intervals.pop()
        if logarithm > 0 and not hopeless(low, gap):
            middle, half = low + 2 ** (logarithm - 1), power @ powers[logarithm - 1]
            middle_gap = _gap(_norm(half) ** 2)
            best = max(best, middle_gap / middle)
            intervals += [(middle, half, logarithm - 1, gap), (low, power, logarithm - 1, middle_gap)]
    return best


def reversible_mixing_bounds(gap: float, smallest: float, epsilon: float) -> tuple[float, float]:
    """Bounds on the first t with max_x TV(P^t(x,·), π) ≤ ε < ½, for a reversible chain with π ≥ ``smallest``.

    With λ = 1 − γ: an eigenfunction f has λ^t‖f‖∞ ≤ 2·TV·‖f‖∞, so t ≥ log(1/2ε)/log(1/λ). And TV ≤ ½λ^t/√π_min, so
    log(1/(2ε√π_min))/log(1/λ) steps suffice (Levin, Peres & Wilmer, chapter 12).
    """
    if gap >= 1:
        return 1.0, 1.0
    rate, closeness = -math.log1p(-gap), -math.log(2 * epsilon)
    return closeness / rate, (closeness - math.log(smallest) / 2) / rate


def mixing_bounds(pseudo_gap: float, smallest: float, epsilon: float) -> tuple[float, float]:
    """The same for any ergodic chain: (1−2ε)/γ_ps and (1 + 2·log(1/2ε) + log(1/π_min))/γ_ps (Paulin 2015, §3.1).

    Lower: if P^t is within ε of π in total variation, (P*)^t P^t moves functions of mean zero by at most 2ε in ‖·‖∞,
    so its gap is ≥ 1 − 2ε. Upper, with ℓ the maximiser: 2·TV·√π_min ≤ ‖A^ℓ‖^{⌊t/ℓ⌋} ≤ e^{(1−γ_ps t)/2}.
    """
    return (1 - 2 * epsilon) / pseudo_gap, (1 - 2 * math.log(2 * epsilon) - math.log(smallest)) / pseudo_gap


def _gap(second: float) -> float:
    # Rounding can make the second largest modulus of a periodic chain 1 + 1e-16.
    return max(0.0, 1.0 - float(second))


def _norm(a: Array) -> float:
    """The largest singular value."""
    if len(a) > DENSE:
        operator = LinearOperator(a.shape, matvec=a.__matmul__, rmatvec=a.T.__matmul__, dtype=a.dtype)
        try:
            # A fixed start vector, so that the same chain gives the same bits. (Not all ones: many chains have this
            # vector in their null space.)
            start = np.random.default_rng(0).standard_normal(len(a))
            found = float(svds(operator, k=1, return_singular_vectors=False, v0=start, maxiter=200)[0])
            # Lanczos may have missed the largest value, which would make a gap too large. This check rules that out:
            np.linalg.cholesky((found**2 + ROUNDING) * np.eye(len(a)) - a.T @ a)
            return found
        except (ArpackNoConvergence, np.linalg.LinAlgError):
            pass
    return float(np.linalg.norm(a, 2))
