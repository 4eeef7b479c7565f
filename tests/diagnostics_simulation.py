"""Null processes for the tests of false alarms, under choices that are as hostile as the null allows.

What is written here is the simulation alone: states, labels, delays and who chooses them. Every stake and every look is
the package's. The functions are plain Python over arrays, compiled as the package compiles its own.
"""

import math
import types

import numpy as np
from simulation import COMPILED, cumulated

from chainscout.compile import compiled
from chainscout.diagnostics._bets import bet, bets_for, compensation, set_stakes
from chainscout.paths import PENDING, START, Paths

#: How the next label is chosen: at random; the one whose bets have won most; the one whose stakes are worth most.
RANDOM, WINNING, DEAREST = 0, 1, 2


def _sticky(size, stay):
    return np.full((size, size), (1 - stay) / (size - 1)) + np.eye(size) * (stay - (1 - stay) / (size - 1))


def _sparse(size):
    matrix = np.zeros((size, size))
    for x in range(size):
        matrix[x, (x + 1) % size], matrix[x, (3 * x + 2) % size] = 0.6, 0.4
    return matrix / matrix.sum(axis=1, keepdims=True)


def _dense(size):
    return np.random.default_rng(size).dirichlet(np.ones(size), size)


#: The chains whose null is on trial.
MATRICES = {
    "fair coin": np.full((2, 2), 0.5),
    "sticky pair": np.array([[0.99, 0.01], [0.03, 0.97]]),
    "rare outcome": np.array([[0.98, 0.02], [0.98, 0.02]]),
    "sticky five": _sticky(5, 0.95),
    "cyclic five": np.roll(_sticky(5, 0.9), 1, axis=1),
    "skewed five": np.array([np.roll([0.9, 0.06, 0.02, 0.01, 0.01], x // 2) for x in range(5)]),
    "dense three": _dense(3),
    "dense five": _dense(5),
    "dense ten": _dense(10),
    "dense twenty": _dense(20),
    "sparse twenty": _sparse(20),
    "nearly deterministic six": np.roll(_sticky(6, 0.995), 2, axis=1),
}


def walk(upper, uniform, restart, length, size, path, step, source, target):
    """A path that is begun anew at random moments, in the state that was left least often (``restart`` > 0)."""
    state = 0
    number = 0
    steps = 0
    for j in range(length):
        if uniform[2 * j] < restart:
            fewest = j + 1
            for x in range(size):
                left = 0
                for i in range(max(0, j - 50), j):
                    left += 1 if source[i] == x else 0
                if left < fewest:
                    fewest = left
                    state = x
            number += 1
            steps = 0
        y = 0
        while uniform[2 * j + 1] >= upper[state, y]:
            y += 1
        steps += 1
        path[j] = number
        step[j] = steps
        source[j] = state
        target[j] = y
        state = y


def hostile(upper, law, uniform, length, size, labels, choice, bets, slots, source, label, target):
    """The largest log E of F on one path whose labels, and now and then states, are chosen by who sees all stakes."""
    state = 0
    largest = 0.0
    for j in range(length):
        if uniform[3 * j] < 0.2:  # a new path, in the row whose evidence is largest now
            for x in range(size):
                if bets.log_value[x] > bets.log_value[state]:
                    state = x
        chosen = int(uniform[3 * j + 1] * labels)
        best = -math.inf
        if choice != RANDOM:
            for c in range(labels):
                context = state * labels + c
                worth = 0.0
                if choice == WINNING:
                    for m in range(3):
                        worth += bets.log_ratio[3 * context + m]
                else:
                    set_stakes(bets, state, context)
                    for y in range(size):
                        slot = slots[state * size + y]
                        worth += law[state, y] * bets.stake[slot if slot >= 0 else bets.seen[state]]
                if worth > best:
                    best = worth
                    chosen = c
        y = 0
        while uniform[3 * j + 2] >= upper[state, y]:
            y += 1
        if slots[state * size + y] < 0:
            slots[state * size + y] = bets.seen[state]
        largest = max(largest, bet(bets, state, state * labels + chosen, slots[state * size + y]))
        source[j] = state
        label[j] = chosen
        target[j] = y
        state = y
    return largest


def withheld(rows, length, rng):
    """log E of bets that double their wealth or lose it all, on fair coins, if the losing card never arrives.

    Each row puts everything on one outcome and then on the other one, so that the compensation is nothing after every
    second card. The first number is the largest value in one queue, which ends at the first card that never arrives;
    the second one is what a queue for each row makes of the same cards.
    """
    queue = each = 0.0
    going = True
    for _ in range(rows):
        drift, value, before = [0.0, 0.0], 0.0, each
        for j in range(length):
            guess = j % 2
            if rng.integers(2) != guess:
                going = False
                break
            drift[guess] += 1.0
            drift[1 - guess] -= 1.0
            value = (j + 1) * math.log(2) - compensation(max(drift), j + 1.0)
            each = before + value
            if going:
                queue = max(queue, each)
    return queue, each


def mutants(function, **changed):
    """Copies of the functions of a function's module, which call each other, in which names have changed."""
    names = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if isinstance(value, types.FunctionType) and value.__module__ == function.__module__:
            names[name] = types.FunctionType(value.__code__, names, name)
    names.update(changed)
    return names


def made(function, cache=True):
    """The function, compiled where the tests compile."""
    return compiled(function, {}, cache=cache) if COMPILED else function


WALK, HOSTILE = made(walk), made(hostile)


def cards_of(matrix, length, rng, restart=0.0):
    """Arrays path, step, source, target of one chain."""
    arrays = [np.zeros(length, np.int64) for _ in range(4)]
    WALK(cumulated(matrix), rng.random(2 * length), restart, length, len(matrix), *arrays)
    return arrays


def hostile_path(matrix, length, labels, choice, rng, kernel=None):
    """The largest log E of F, and the arrays source, label and target."""
    size = len(matrix)
    bets = bets_for(np.full(size, size), np.repeat(np.arange(size), labels))
    arrays = [np.zeros(length, np.int64) for _ in range(3)]
    uniform, slots = rng.random(3 * length), np.full(size * size, -1, np.int64)
    given = (cumulated(matrix), matrix, uniform, length, size, labels, choice, bets, slots)
    return (kernel or HOSTILE)(*given, *arrays), arrays


def delayed_workers(matrix, workers, ticks, slow, rng):
    """Paths of workers whose step into the last state takes ``slow`` ticks and every other step takes one."""
    size, upper = len(matrix), cumulated(matrix)
    cards = []  # issue time, worker, step, source, target, arrival
    for worker in range(workers):
        now, state, step = 0, START, 0
        while now < ticks:
            y = int(np.searchsorted(upper[0 if state == START else state], rng.random(), side="right"))
            y = min(y, size - 1)
            arrival = now + (slow if y == size - 1 else 1)
            cards.append((now, worker, step, state, y, arrival))
            now, state, step = arrival, y, step + 1
    cards.sort(key=lambda card: card[:2])
    table = np.array(cards)
    known = table[:, 5] <= ticks
    arrived = np.lexsort((table[:, 1], table[:, 5]))
    told = np.zeros(len(table), np.int64)
    told[arrived] = np.arange(1, len(table) + 1)
    return Paths(
        size, path=table[:, 1], step=table[:, 2], source=table[:, 3], target=np.where(known, table[:, 4], PENDING),
        told=np.where(known, told, 0), worker=np.arange(workers), workers=[str(w) for w in range(workers)],
    )  # fmt: skip
