"""Many simulated paths for the tests of coverage, with the package's own functions compiled.

What is written here is the simulation alone: steps, counts, losses and who is advanced next. Every bound is the
package's. Random numbers are passed in, and chain k's path is a function of uniforms[path, k] whatever the rule.
"""

import math
import types

import numba
import numpy as np

from chainscout import logarithm, rows
from chainscout.certificates import mixture, paper

#: Coverage of the package is measured with compilation off; then the tests take far fewer paths.
COMPILED = not numba.config.DISABLE_JIT

log = numba.njit(logarithm.log)
knapsack = numba.njit(mixture.knapsack)
smoothing_excess = numba.njit(mixture.smoothing_excess)
combine = numba.njit(mixture.combine)
deviation = numba.njit(rows.deviation)
smoothed_gini = numba.njit(rows.smoothed_gini)
STATED = paper.STATED


def compiled(function):
    """A copy of one of the package's functions, compiled, which calls compiled copies of what it calls."""
    names = {
        **function.__globals__,
        "deviation": deviation,
        "smoothed_gini": smoothed_gini,
        "log": log,
        "knapsack": knapsack,
    }
    names["log1p"] = log1p
    return numba.njit(types.FunctionType(function.__code__, names, function.__name__))


log1p = numba.njit(types.FunctionType(logarithm.log1p.__code__, {**vars(logarithm), "log": log}))
largest_excess = compiled(mixture.largest_excess)


entry, row_terms, factors, index = (compiled(f) for f in (paper.entry, paper.row_terms, paper.factors, paper.index))

#: How the next chain is chosen: the largest mixture certificate, or the loss nearest to its mixture certificate.
LARGEST, NEAREST = 0, 1
#: Columns of what `follow` returns.
MIXTURE, PAPER = 0, 1


def cumulated(matrix):
    """Row by row, the cumulated probabilities; the last is one, so that every uniform number finds its state."""
    upper = np.cumsum(matrix, axis=1)
    upper[:, -1] = 1.0
    return upper


@numba.njit
def step(upper, state, uniform):
    after = 0
    while uniform >= upper[state, after]:
        after += 1
    return after


@numba.njit
def row_loss(row, exits, truth, size):
    """N_x‖P̂(x,·) − P(x,·)‖², α = 1/(3S)."""
    alpha = 1.0 / (3.0 * size)
    total = 0.0
    for y in range(size):
        difference = (row[y] + alpha) / (exits + alpha * size) - truth[y]
        total += difference * difference
    return exits * total


@numba.njit
def certificates(table, exits, transitions, size, log_inverse, level, visited, offset, theta, order):
    """The mixture certificate and BA-MC's index of one chain."""
    number = 0
    gini = roots = inverses = 0.0
    for x in range(size):
        if exits[x] > 0.0:
            visited[number] = exits[x]
            number += 1
            deviations = squares = 0.0
            for y in range(size):
                deviations += entry(table[x, y], exits[x], size, 1.0 / (3.0 * size))
                squares += table[x, y] * table[x, y]
            terms = row_terms(deviations, exits[x], squares, size, 1.0 / (3.0 * size))
            gini += terms[0]
            roots += terms[1]
            inverses += terms[2]
    excess = largest_excess(visited, visited, number, size - 1.0, log_inverse, offset, theta, order)
    moved = smoothing_excess(visited, number, 1.0 - 1.0 / size, 1.0 / 3.0)
    stated = index((gini, roots, inverses), transitions, factors(size, level, STATED))
    return combine(excess, moved, transitions), stated


@numba.njit
def follow(uppers, matrices, sizes, uniforms, rule, log_inverse, level, every):
    """For each path the largest L/b met, over all chains and times, for the two certificates: above one is a miss.

    All chains but one idle at a step. A chain without a transition comes first, then ``rule`` decides. A chain is
    looked at after each of its first ``every`` transitions and then whenever it has 1 % more of them.
    """
    paths, chains, steps = uniforms.shape
    largest = uppers.shape[1]
    worst = np.zeros((paths, 2))
    visited, theta = np.empty(largest), np.empty(largest)
    offset, order = np.empty(largest, np.int64), np.empty(largest, np.int64)
    for path in range(paths):
        tables = np.zeros((chains, largest, largest))
        exits = np.zeros((chains, largest))
        losses = np.zeros((chains, largest))
        states = np.zeros(chains, np.int64)
        transitions = np.zeros(chains, np.int64)
        due = np.ones(chains, np.int64)
        key = np.full(chains, math.inf)
        for k in range(chains):
            states[k] = int(uniforms[path, k, 0] * sizes[k])
        for _ in range(steps - 1):
            k = 0
            for other in range(1, chains):
                if key[other] > key[k]:
                    k = other
            x = states[k]
            y = step(uppers[k], x, uniforms[path, k, transitions[k] + 1])
            tables[k, x, y] += 1.0
            exits[k, x] += 1.0
            states[k] = y
            transitions[k] += 1
            losses[k, x] = row_loss(tables[k, x], exits[k, x], matrices[k, x], sizes[k])
            if transitions[k] < due[k]:
                continue
            due[k] = transitions[k] + (1 if transitions[k] < every else max(1, transitions[k] // 100))
            loss = losses[k].sum() / transitions[k]
            found = certificates(
                tables[k], exits[k], transitions[k], sizes[k], log_inverse, level, visited, offset, theta, order
            )
            for method in range(2):
                worst[path, method] = max(worst[path, method], loss / found[method])
            key[k] = found[MIXTURE] if rule == LARGEST else loss / found[MIXTURE]
    return worst


@numba.njit
def snapshots(upper, uniforms, times):
    """The transition counts of each path after each of ``times`` transitions (increasing), from a uniform start."""
    paths, size = len(uniforms), len(upper)
    tables = np.zeros((paths, len(times), size, size), np.int32)
    for path in range(paths):
        table = np.zeros((size, size), np.int32)
        state = int(uniforms[path, 0] * size)
        number = 0
        for t in range(1, times[-1] + 1):
            after = step(upper, state, uniforms[path, t])
            table[state, after] += 1
            state = after
            if t == times[number]:
                tables[path, number] = table
                number += 1
    return tables


def grid(every, last, growth):
    """1, 2, …, every, then steps that grow by ``growth``, up to ``last``."""
    times = list(range(1, min(every, last) + 1))
    while times[-1] < last:
        times.append(min(last, times[-1] + max(1, int(times[-1] * growth))))
    return np.array(times)


def stacked(chains):
    """The arrays that `follow` takes: cumulated rows and matrices, padded to the largest chain, and sizes."""
    sizes = np.array([chain.size for chain in chains])
    uppers = np.ones((len(chains), sizes.max(), sizes.max()))
    matrices = np.zeros_like(uppers)
    for k, chain in enumerate(chains):
        uppers[k, : sizes[k], : sizes[k]] = cumulated(chain.matrix)
        matrices[k, : sizes[k], : sizes[k]] = chain.matrix
    return uppers, matrices, sizes
