"""Claims about whole paths: the event C, certificates at all times, and the doubtful steps of proofs (MATH §5)."""

from typing import Any

import numpy as np

from chainscout.chains import MarkovChain
from chainscout.guarantees import beta
from chainscout.problems import Problem

from . import heights, paths
from .findings import FAILS, HOLDS, Finding, Measured, at_most, mean, never, once_seen, proportion

#: How often the constructed path of Lemma 8's trial stays in its first state.
STAYS = 500


def whole_paths(
    problem: Problem, observations: int, replications: int, delta: float, seed: int, engine: str
) -> list[Finding]:
    """All findings that one pass over the paths of a problem gives."""
    found = paths.followed(problem, observations, replications, delta, seed, engine)
    setting = f"{problem.name}, n = {observations:,} for every chain, {replications:,} replications"
    outside = (found[:, :, paths.EVENT] > 1).any(axis=1)
    findings = [
        Finding(
            "the event C holds with probability ≥ 1 − δ",
            "Lemma 6",
            setting,
            "P(C fails)",
            (misses := _share(outside)),
            at_most(misses, delta),
            HOLDS,
            f"largest |P̂ − P| over its width: {found[:, :, paths.EVENT].max():.2f}",
        )
    ]
    for claim, place, largest, end in (
        ("BA-MC's index is above the loss at all times", "§3", paths.PAPER, paths.END_PAPER),
        ("the mixture certificate is above the loss at all times", "ours", paths.MIXTURE, paths.END_MIXTURE),
    ):
        misses = _share((found[:, :, largest] > 1).any(axis=1))
        note = f"at the end b is {1 / np.median(found[:, :, end]):,.0f} times L (median)"
        findings.append(Finding(claim, place, setting, "P(b < L once)", misses, at_most(misses, delta), HOLDS, note))
    held = found[~outside]
    below = _share((held[:, :, paths.LOWER] > 1).any(axis=1))
    rises = mean(found[:, :, paths.RISES].ravel())
    smaller = _share((found[:, :, paths.LOSS] < found[:, :, paths.PLAIN]).ravel())
    return [
        *findings,
        Finding(
            "on C, the index is at least 2β/T·ΣG at all times",
            "Lemma 8",
            setting,
            "P(b < 2β/T·ΣG once | C)",
            below,
            never(below),
            HOLDS,
            f"largest 2βΣG/(T·b): {held[:, :, paths.LOWER].max():.2f}",
        ),
        Finding(
            "the index's third term does not grow",
            "Lemma 9, proof",
            setting,
            "E[steps of a path at which it grows]",
            rises,
            never(rises),
            FAILS,
        ),
        Finding(
            "smoothing makes the loss no smaller: L ≥ L̃",
            "Lemma 1, proof",
            setting,
            "P(L < L̃ at the end of a path)",
            smaller,
            never(smaller),
            FAILS,
        ),
    ]


def sharp_on_paths(
    problem: Problem, observations: int, replications: int, delta: float, seed: int, engine: str
) -> list[Finding]:
    """The ``sharp`` certificate along whole paths, evaluated where T·L is at a new height and at the end."""
    here = "cpu" if engine.startswith("gpu") else engine  # the search is not compiled for GPUs
    found = heights.looked_at(problem, observations, replications, delta, seed, here)
    misses = _share((found[:, :, 0] > 1).any(axis=1))
    return [
        Finding(
            "the sharp certificate is above the loss wherever T·L is at a new height",
            "ours",
            f"{problem.name}, n = {observations:,} for every chain, {replications:,} replications",
            "P(b < L once)",
            misses,
            at_most(misses, delta),
            HOLDS,
            f"at the end b is {1 / np.median(found[:, :, 1]):,.0f} times L (median)",
        )
    ]


def lemma_8_line(
    states: int, observations: int, replications: int, delta: float, seed: int, engine: str
) -> list[Finding]:
    """The line P̂(1−P̂) ≥ P(1−P) − √(…) − 12/(N+αS) in the proof of Lemma 8, which lacks a β, on the event C."""
    constructed, level = _constructed(delta, engine)
    claim, place = "on C, P̂(1−P̂) ≥ P(1−P) − √(8βN·P̂(1−P̂))/(N+αS) − 12/(N+αS)", "Lemma 8, proof"
    problem = Problem({"uniform": MarkovChain(np.full((states, states), 1 / states))})
    found = paths.followed(problem, observations, replications, delta, seed, engine, mixture=False)[:, 0]
    on_event = found[found[:, paths.EVENT] <= 1, paths.SHORTFALL]
    setting = f"uniform rows, S = {states}, n = {observations:,}, {replications:,} paths"
    allowed = 12 * beta(observations, delta, states**2)
    printed, corrected = _share(on_event > 12), _share(on_event > allowed)
    return [
        Finding(
            claim,
            place,
            f"a constructed path: {STAYS} exits of x, none to y, P(x,y) = 2.5β/{STAYS}",
            "(N+αS)·(P(1−P) − P̂(1−P̂)) − √(8βN·P̂(1−P̂)), to be ≤ 12",
            constructed,
            at_most(constructed, 12),
            FAILS,
            f"12β = {12 * level:.1f}",
        ),
        Finding(claim, place, setting, "P(it is false once | C)", printed, once_seen(printed), FAILS),
        Finding(
            "the same with 12β",
            "Lemma 8, corrected",
            setting,
            "P(it is false once | C)",
            corrected,
            never(corrected),
            HOLDS,
            f"what is to be ≤ 12β = {allowed:.0f} is at most {on_event.max():.1f}",
        ),
    ]


def _constructed(delta: float, engine: str) -> tuple[Measured, float]:
    """The largest shortfall on a path of the event C that refutes the line, and β."""
    level = beta(1_000, delta, 4)
    p = 2.5 * level / STAYS
    matrix = np.array([[1 - p, p], [0.5, 0.5]])
    here = "cpu" if engine.startswith("gpu") else engine  # a GPU has no advantage for a single path
    found = paths.follow_path(np.zeros(STAYS + 1, np.int64), matrix, level, np.inf, here)
    assert found[paths.EVENT] <= 1, "the constructed path has left the event C"
    return Measured.exactly(float(found[paths.SHORTFALL])), level


def _share(happened: Any) -> Measured:
    return proportion(int(np.sum(happened)), len(happened))
