"""Quantities of one row of counts: plain scalar functions that certificates and policies share.

N_x exits, Q_x = Σ_y N[x,y]² (both as floats), α the smoothing, r = αS (MATH §6). They are interpreted, compiled for the
CPU and compiled for the GPU, so they use nothing but arithmetic and ``math``.
"""

import math


def smoothed_gini(exits: float, squares: float, alpha: float, weight: float) -> float:
    """Ĝ_x = 1 − (Q_x + 2αN_x + Sα²)/(N_x + r)², with ``weight`` = r.

    It is computed as (N² − Q + (r−α)(2N + r))/(N + r)²: N² − Q is exact, and deterministic rows cause no cancellation.
    """
    inverse = 1.0 / (exits + weight)
    return (exits * exits - squares + (weight - alpha) * (2.0 * exits + weight)) * (inverse * inverse)


def frequency_gini(exits: float, squares: float) -> float:
    """Ĝ^{MLE}_x = 1 − Q_x/N_x², of the unsmoothed frequencies."""
    return (exits * exits - squares) / (exits * exits)


def deviation(count: float, exits: float, alpha: float, weight: float) -> float:
    """(N_x + r)·√(N_x·P̂(1−P̂)(x,y)) = √(N_x·(N[x,y]+α)·(N_x+r−N[x,y]−α)): no division, which S of them would need."""
    smoothed = count + alpha
    return math.sqrt(exits * (smoothed * ((exits + weight) - smoothed)))
