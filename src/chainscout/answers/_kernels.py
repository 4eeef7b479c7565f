"""The kernels that run once per card or once per row: plain scalar Python over given arrays, compiled on first use."""

import math
from functools import cache
from typing import Any

from ..compile import compiled, is_off

__all__ = ["deal", "extreme_rows", "kernel", "walk_costs", "walk_cycles", "walk_episodes"]


@cache
def kernel(function: Any) -> Any:
    """A compiled kernel. With compilation off: the function itself."""
    return function if is_off() else compiled(function, {}, cache=True)


# -- replay


def deal(source, target, late, count, first, place, ends, card):
    """Deals the cards to their rows; the last row is for the starts. See ``replay.decks_of``.

    With an empty ``card`` it counts into ``count`` how many cards each row has; then it deals them from ``first`` on.
    ``ends``: 0 while a row can be read, then 1 or 2: a pending card, or a lost one that cannot be skipped.
    ``late``: 1 for a hole that is dealt as it is, 2 for a lost card that ends its row.
    """
    size = len(count) - 1
    for number in range(len(source)):
        x = source[number]
        if x < 0:
            x = size
        if ends[x] > 0:
            continue
        y = target[number]
        if y >= 0 or late[number] == 1:
            if len(card) > 0:
                card[first[x] + place[x]] = y
                place[x] += 1
            else:
                count[x] += 1
        elif y == -1:
            ends[x] = 1
        elif late[number] == 2:
            ends[x] = 2


def walk_episodes(first, count, card, pointer, kind, start, starts, offset, cap, number, result, length, state):
    """Runs episodes until a state is not `ON` or after ``cap`` steps. Returns how many are completed.

    There are at most as many as ``result`` has places. ``number`` were completed before; it continues where it waited.

    ``result``: the kind of the state that ended each episode, 0 after ``cap`` steps. ``length``: its steps.
    ``starts``: the starts that are drawn from a law, from episode ``offset`` on.
    ``state``: the row that the running episode waits for (−1: none), its steps so far, its state, whether it runs.
    """
    size = len(kind)
    while number < len(result):
        if state[3] == 1:
            steps = state[1]
            x = state[2]
            state[3] = 0
        else:
            steps = 0
            if start >= 0:
                x = start
            elif len(starts) > 0:
                x = starts[number - offset]
            elif pointer[size] < count[size]:
                x = card[first[size] + pointer[size]]
                pointer[size] += 1
            else:
                state[0] = size
                state[1] = 0
                return number
        while kind[x] == 0 and steps < cap:
            if pointer[x] >= count[x]:
                state[0] = x
                state[1] = steps
                state[2] = x
                state[3] = 1
                return number
            following = card[first[x] + pointer[x]]
            pointer[x] += 1
            x = following
            steps += 1
        result[number] = kind[x]
        length[number] = steps
        number += 1
    state[0] = -1
    state[1] = 0
    return number


def walk_costs(
    first, count, card, pointer, absorbing, cost, start, starts, tails, offset, horizon, discount, number, result,
    state, reals,
):  # fmt: skip
    """Runs episodes of costs. Returns how many are completed, and continues where it waited, like `walk_episodes`.

    The return is Σ_{k<horizon} discount^k c(x_k), and if there are ``tails`` discount^horizon/(1 − discount) times the
    cost of the state ``tails`` steps later. ``state``: the row that it waits for, k, the state, whether it runs.
    ``reals``: the sum so far, and discount^k.
    """
    size = len(cost)
    while number < len(result):
        resumed = state[3] == 1
        if resumed:
            k = state[1]
            x = state[2]
            total = reals[0]
            weight = reals[1]
            state[3] = 0
        else:
            k = 0
            total = 0.0
            weight = 1.0
            if start >= 0:
                x = start
            elif len(starts) > 0:
                x = starts[number - offset]
            elif pointer[size] < count[size]:
                x = card[first[size] + pointer[size]]
                pointer[size] += 1
            else:
                state[0] = size
                return number
        last = horizon - 1
        if len(tails) > 0:
            last = horizon + tails[number - offset]
        while True:
            if not resumed:
                if k < horizon:
                    total += weight * cost[x]
                    weight *= discount
                elif k == last:
                    total += weight / (1.0 - discount) * cost[x]
            resumed = False
            if k >= last:
                break
            if not absorbing[x]:
                if pointer[x] >= count[x]:
                    state[0] = x
                    state[1] = k
                    state[2] = x
                    state[3] = 1
                    reals[0] = total
                    reals[1] = weight
                    return number
                following = card[first[x] + pointer[x]]
                pointer[x] += 1
                x = following
            k += 1
        result[number] = total
        number += 1
    state[0] = -1
    return number


def walk_cycles(first, count, card, pointer, share, anchor, cap, number, inside, outside, early, state):
    """Runs cycles from the anchor to its next visit. Returns how many are completed, and continues where it waited.

    A cycle is stopped early when it has been outside the share ``cap`` times. The anchor's first moment counts, its
    return does not. ``state``: the row that it waits for, the times inside and outside, whether it runs.
    """
    while number < len(inside):
        stopped = 0
        if state[3] == 1:
            x = state[0]
            within = state[1]
            beyond = state[2]
            state[3] = 0
        else:
            x = anchor
            within = 0
            beyond = 0
            if share[x]:
                within = 1
            else:
                beyond = 1
        while True:
            if pointer[x] >= count[x]:
                state[0] = x
                state[1] = within
                state[2] = beyond
                state[3] = 1
                return number
            following = card[first[x] + pointer[x]]
            pointer[x] += 1
            x = following
            if x == anchor:
                break
            if share[x]:
                within += 1
            elif beyond >= cap:
                stopped = 1
                break
            else:
                beyond += 1
        inside[number] = within
        outside[number] = beyond
        early[number] = stopped
        number += 1
    state[0] = -1
    return number


# -- the worst row of a set


def extreme_row(first, stop, seen, count, exits, least, best, value, shift):
    """The largest Σ p·(value + shift) of a set, from above. ``best``: the largest value of a state never seen.

    By duality p(y) ∝ N(y)/(ζ − v(y)) at the largest; the bisection of ζ keeps the side outside the set.
    """
    if exits == 0.0:
        return best
    top = value[seen[first]]
    low = top
    for place in range(first, stop):
        top = max(top, value[seen[place]])
        low = min(low, value[seen[place]])
    scale = max(top, best) - min(low, best if best > -math.inf else low)
    if scale <= 0.0:
        return top
    edge = max(top, best)
    near, far = math.log(1e-15 * scale), math.log(1e15 * scale)
    if best > top:  # at ζ = the unseen value the rest of the probability can go there
        total, likelihood, mean = 0.0, 0.0, 0.0
        for place in range(first, stop):
            gap = edge - value[seen[place]]
            total += count[place] / gap
            likelihood += count[place] * (math.log(count[place]) - math.log(gap))
            mean += count[place] / gap * value[seen[place]]
        likelihood -= exits * math.log(total)
        if likelihood >= least:
            rest = 1.0 - math.exp((least - likelihood) / exits)
            return (1.0 - rest) * mean / total + rest * best + shift * scale
    found = edge
    for _ in range(70):
        middle = (near + far) / 2
        zeta = edge + math.exp(middle)
        total, likelihood, mean = 0.0, 0.0, 0.0
        for place in range(first, stop):
            gap = zeta - value[seen[place]]
            total += count[place] / gap
            likelihood += count[place] * (math.log(count[place]) - math.log(gap))
            mean += count[place] / gap * value[seen[place]]
        likelihood -= exits * math.log(total)
        if likelihood < least:  # outside the set, beyond the extreme
            near = middle
            found = mean / total
        else:
            far = middle
        if far - near < 1e-9:
            break
    return min(edge, found + shift * scale)


def extreme_rows(first, seen, count, exits, least, unseen, value, shift, wanted, found):
    """``extreme_row`` for each row that is wanted."""
    size = len(value)
    for x in range(size):
        if wanted[x]:
            best = -math.inf
            for y in range(size):
                if unseen[x, y] and value[y] > best:
                    best = value[y]
            found[x] = extreme_row(first[x], first[x + 1], seen, count, exits[x], least[x], best, value, shift)
