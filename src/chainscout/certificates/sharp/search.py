"""The bound of one chain: the smallest bound that the event gives, over scales, multipliers and the two lemmas.

For every family f, level m, offsets o and multiplier μ ≥ 0 (step D of docs/certificates.md)

    T·L ≤ μ·B(f, m, o) + Σ_x (the row's term at μ and ρ_x),

and ``mixture``'s lemma holds on the same event. A cheap score chooses f, m, o and a first μ; a few evaluations along μ
follow. Whatever is chosen is valid.
"""

import math
from typing import Any, NamedTuple

from .event import (
    ABSOLUTE,
    FAMILIES,
    LEAST_LEVEL,
    LEAST_POWER,
    PAIR_COST,
    PAIR_SCALE,
    boxes_of_row,
    joint_cost,
    offset_cost,
    power,
    row_cost,
    scale,
)
from .row import row_term

#: The score's first step along μ, and its largest number of steps.
STEP, STEPS = 1.2, 12
#: The range of μ that is searched.
LEAST_MULTIPLIER, MOST_MULTIPLIER = 1e-4, 1e4
#: The largest number of candidates that are evaluated. The score of each is at most REACH times the best score, or
#: below the best bound so far.
CANDIDATES, REACH = 3, 1.08
#: An evaluation of another candidate than the first ends once it is expected to exceed the best bound this many times:
#: with at most FEW rows, and with more.
HOPE, HOPE_OF_MANY, FEW = 1.05, 1.02, 12
#: A table with more classes than this is large. In a large table, the search along μ ends where |dlog(bound)/dlog μ| is
#: below STEEP: the minimum is near, because the slope grows fast with many rows.
LARGE, STEEP = 1000, 0.45
#: The stages of the search along μ: see ``descend``.
FIRST, OTHER, LAST = 0, 1, 2
#: The largest number of evaluations of one candidate along μ, and the relative gain that a further one must promise.
EVALUATIONS, GAIN = 4, 0.008
#: If rows that are given up have more than this part of the first bounds, a larger μ is tried.
LOST = 0.4
#: The tolerance of a row's term, as a fraction of the whole bound.
TOLERANCE = 0.015
#: The number of levels that there is room for: from LEAST_POWER to log₄(2⁵³) + 2.
LEVELS = 2 * (30 - LEAST_POWER)


#: Where log ρ̄ of two levels lies between them.
BETWEEN = math.log(PAIR_SCALE) / math.log(4.0)


class Table(NamedTuple):
    """One chain's counts in the form that the kernels take: the rows with exits, each as classes of equal counts."""

    #: Row x has the classes start[x] … stop[x] − 1. The first of them is the row's most frequent successor alone.
    start: Any
    stop: Any
    #: N[x,y] of a class, and how many entries it has.
    count: Any
    times: Any
    #: N_x.
    exits: Any


class Space(NamedTuple):
    """Scratch space, and what is known of the last solution."""

    # one value per class
    low: Any
    high: Any
    estimate: Any
    mean: Any
    half: Any
    tilt: Any
    top: Any
    top_grown: Any
    gain: Any
    # one value per row
    most: Any
    centre: Any
    multiplier: Any
    unsolved: Any
    lean: Any
    apart: Any
    apart_tilt: Any
    rho: Any
    theta: Any
    slope: Any
    base: Any
    lost: Any
    place: Any
    natural: Any
    offset: Any
    trial: Any
    order: Any
    # one value per cell
    left: Any
    right: Any
    cell_term: Any
    cell_square: Any
    cell_state: Any
    cell_halved: Any
    cell_found: Any
    # one value per row and level
    cost: Any
    give: Any
    half_give: Any
    plain: Any
    # one value per candidate, which is the best level of a family or its runner-up: score, 2·level + pair, and μ
    rating: Any
    level: Any
    start: Any
    # the choice: candidate, μ, the smallest bound, the highest level, §7's bound, and the slope and the bound near the
    # estimates at this μ; and the numbers of the last cell
    chosen: Any
    found: Any
    # the tangent planes of a row's term
    plane: Any


def evaluate(table: Any, rows: int, size: float, log_inverse: float, spare: float, space: Any) -> float:
    """T·b, T times the bound: the full search. ``size`` is S ≥ 2, ``rows`` ≥ 1.

    The search runs at ``log_inverse`` ≥ log(K/δ), and the returned bound is for log(K/δ) = ``log_inverse`` − ``spare``:
    the rows' terms hold there too, and only B is smaller. The search does not depend on ``spare``, so with the same
    ``log_inverse`` a smaller δ never has a smaller bound.
    """
    for x in range(rows):
        boxes_of_row(table, x, size, log_inverse, space)
    best = 0.0
    largest = 0.0
    for x in range(rows):
        best += space.most[x]
        largest = max(largest, table.exits[x])
    space.chosen[0] = -1.0
    fresh(table, rows, space)
    natural_offsets(table, rows, largest, space)
    top = LEAST_LEVEL  # ⌊log₄(N_max + 1)⌋ + 2
    while math.ldexp(1.0, 2 * top) <= 16.0 * (largest + 1.0):
        top += 1
    top -= 1
    space.chosen[3] = top
    costs(table, rows, size, top, space)
    for x in range(rows):
        plain_costs(table, x, size, top, space)
    by_lemma, by_lemma_less = lemma(table, rows, size, log_inverse, spare, top, space)
    space.chosen[2] = min(best, by_lemma_less)
    best = min(best, by_lemma)
    mu = 1.0
    for family in range(FAMILIES):
        mu = score(table, rows, log_inverse, family, top, mu, space)
    reach = math.inf
    classes = 0
    for x in range(rows):
        classes += table.stop[x] - table.start[x]
    large = classes > LARGE
    stretch = 1.0  # the μ of the first candidate over its guess
    for turn in range(CANDIDATES):
        candidate = 0
        for other in range(1, 2 * FAMILIES):
            if space.rating[other] < space.rating[candidate]:
                candidate = other
        reach = min(reach, space.rating[candidate])
        if space.rating[candidate] > max(REACH * reach, best):
            break
        space.start[candidate] *= stretch
        stage = FIRST if turn == 0 else OTHER
        best = descend(table, rows, size, log_inverse, spare, candidate, best, stage, large, space)
        space.rating[candidate] = math.inf
        if turn == 0 and space.chosen[0] == candidate:
            stretch = space.chosen[1] / space.start[candidate]
    if large and space.chosen[0] >= 0.0:
        descend(table, rows, size, log_inverse, spare, int(space.chosen[0]), best, LAST, large, space)
    found: float = space.chosen[2]
    return found * (1.0 + ABSOLUTE)


def fresh(table: Any, rows: int, space: Any) -> None:
    """Forgets the numbers of the last search."""
    for x in range(rows):
        space.unsolved[x] = True
        space.lean[x] = 0.0
        for i in range(table.start[x], table.stop[x]):
            space.tilt[i] = 0.0
            space.top[i] = 0.0
            space.top_grown[i] = 1.0


def evidence(count: float, exits: float, p: float, shift: float, rho: float) -> float:
    """Approximately max_a {na − Np(e^{a+s} − 1) − ρa²/2}: how strongly an entry's counts speak against p."""
    weight = exits * p * math.exp(shift)
    a = min(2.0, max(-3.0, (count - weight) / (weight + rho)))
    for _ in range(2):
        force = weight * math.exp(a)
        a += min(1.0, max(-1.0, (count - force - rho * a) / (force + rho)))
    return count * a - weight * math.exp(a) + exits * p - 0.5 * rho * a * a


def natural_offsets(table: Any, rows: int, largest: float, space: Any) -> None:
    """log₄(N_max/N_x), rounded to a whole number."""
    for x in range(rows):
        ratio = largest / table.exits[x]
        steps = 0
        while ratio >= 2.0:
            ratio *= 0.25
            steps += 1
        space.natural[x] = steps


def costs(table: Any, rows: int, size: float, top: int, space: Any) -> None:
    """For the score, per row and scale: ½·log det(I + u·Σ̂), and how strongly the row's counts speak against a law.

    Two laws are tried: one moves as much probability as the boxes allow from the mode to the entry with the widest
    box, the other moves half of that.
    """
    for x in range(rows):
        first = table.start[x]
        exits = table.exits[x]
        far = 0.0
        other = first
        for i in range(first + 1, table.stop[x]):
            if space.high[i] - space.estimate[i] > far:
                far = space.high[i] - space.estimate[i]
                other = i
        far = min(far, space.estimate[first] - space.low[first])
        share = space.most[x] / max(2.0 * exits * far * far, 1e-300)
        for power_of in range(LEAST_POWER, top + 1):
            at = x * LEVELS + 2 * (power_of - LEAST_POWER)
            rho = scale(power_of, 0)
            u = exits / rho
            beta = 0.0
            logs = 0.0
            product = 1.0
            centre = 0.0
            for i in range(first, table.stop[x]):
                p = space.estimate[i]
                grown = 1.0 + u * p
                part = table.times[i] * p / grown
                beta += part
                centre += part
                if table.times[i] == 1.0 and product < 1e250 and grown < 1e20:
                    product *= grown
                else:
                    logs += table.times[i] * math.log(grown)
            centre *= 0.5 / rho
            space.cost[at] = 0.5 * (logs + math.log(product * beta))
            shift = 0.5 / (rho + exits * space.estimate[first]) - centre
            other_shift = 0.5 / (rho + exits * space.estimate[other]) - centre
            none = evidence(table.count[first], exits, space.estimate[first], shift, rho)
            none += evidence(table.count[other], exits, space.estimate[other], other_shift, rho)
            whole = evidence(table.count[first], exits, space.estimate[first] - far, shift, rho)
            whole += evidence(table.count[other], exits, space.estimate[other] + far, other_shift, rho)
            half = evidence(table.count[first], exits, space.estimate[first] - 0.5 * far, shift, rho)
            half += evidence(table.count[other], exits, space.estimate[other] + 0.5 * far, other_shift, rho)
            space.give[at] = share * max(1e-3 * exits * far * far, whole - none)
            space.half_give[at] = share * max(2.5e-4 * exits * far * far, half - none)
            if power_of > LEAST_POWER:  # two levels at once: between them
                last = at - 2
                space.cost[at - 1] = BETWEEN * space.cost[at] + (1.0 - BETWEEN) * space.cost[last]
                space.cost[at - 1] += PAIR_COST * (size - 1.0)
                space.give[at - 1] = BETWEEN * space.give[at] + (1.0 - BETWEEN) * space.give[last]
                space.half_give[at - 1] = BETWEEN * space.half_give[at] + (1.0 - BETWEEN) * space.half_give[last]


def plain_costs(table: Any, x: int, size: float, top: int, space: Any) -> None:
    """What §7's lemma subtracts for a row, at every scale up to the level ``top``: ((S−1)/2)·log(1 + u/S)."""
    for j in range(2 * (top - LEAST_POWER) + 1):
        u = table.exits[x] / scale(LEAST_POWER + j // 2, j % 2)
        space.plain[x * LEVELS + j] = 0.5 * (size - 1.0) * math.log1p(u / size)


def guess(
    rows: int, joint: float, family: int, m: int, pair: int, mu: float,
    cost: Any, give: Any, half_give: Any, most_of: Any, trial: Any,
) -> tuple[float, float]:  # fmt: skip
    """The score of a level at μ, and its slope. ``joint`` is B without the rows' parts. The offsets go to ``trial``."""
    slope = joint
    total = mu * slope
    most = 0
    if family == 1:
        most = m - LEAST_POWER
    elif family == 2:
        most = (m - LEAST_POWER) // 2
    elif family == 3:
        most = max(m, 0)
    stride = -4 if family == 2 else -2
    base = offset_cost(family, 0, m, pair)
    more = offset_cost(family, 1, m, pair) - base
    for x in range(rows):
        at = x * LEVELS + 2 * (m - LEAST_POWER) + pair
        least = math.inf
        best = 0
        rise = 0.0
        price = base
        for offset in range(most + 1):
            value = mu * (cost[at] + price)
            over = most_of[x] - mu * give[at]
            half = 0.25 * most_of[x] - mu * half_give[at]
            value += max(0.0, over, half)
            if value < least:
                least = value
                best = offset
                rise = cost[at] + price
                if max(over, half) > 0.0:
                    rise -= give[at] if over > half else half_give[at]
            at += stride
            price += more
        total += least
        slope += rise
        trial[x] = best
    return total, slope


def guess_row(mu: float, at: int, most: float, space: Any) -> float:
    """The score of one row at μ, at the scale with the place ``at``."""
    found: float = mu * space.cost[at] + max(0.0, most - mu * space.give[at], 0.25 * most - mu * space.half_give[at])
    return found


def score(table: Any, rows: int, log_inverse: float, family: int, top: int, mu: float, space: Any) -> float:
    """Guesses the two best levels of a family, the candidate ``family`` and its runner-up. Returns the best one's μ.

    ``mu`` is a first guess of μ. A score is convex in μ, or nearly so, with corners. Tangents from both sides enclose
    the least value, and a level is dropped as soon as they meet above the runner-up.
    """
    runner = family + FAMILIES
    space.rating[family] = space.rating[runner] = math.inf
    for double in range(2 * top, 2 * LEAST_LEVEL - 1, -1):
        m = double // 2
        pair = double % 2
        joint = joint_cost(log_inverse, family, m, pair)
        at = mu
        least = math.inf
        low = high = 0.0
        at_low = at_high = math.inf
        fall = rise = 0.0
        factor = STEP
        for _ in range(STEPS):
            here, slope = guess(
                rows, joint, family, m, pair, at, space.cost, space.give, space.half_give, space.most, space.trial
            )
            if here < least:
                least = here
                space.found[0] = at
                for x in range(rows):
                    space.order[x] = space.trial[x]
            if slope > 0.0:
                high, at_high, rise = at, here, slope
            else:
                low, at_low, fall = at, here, slope
            if at_low == math.inf:
                at /= factor
                factor *= factor
            elif at_high == math.inf:
                at *= factor
                factor *= factor
            else:
                at = (at_low - at_high + rise * high - fall * low) / (rise - fall)
                if at_low + fall * (at - low) > 0.995 * min(space.rating[runner], least):
                    break
                at = min(high - 0.02 * (high - low), max(low + 0.2 * (high - low), at))
            if not LEAST_MULTIPLIER < at < MOST_MULTIPLIER:
                break
        if least >= space.rating[runner]:
            continue
        place = runner
        if least < space.rating[family]:
            place = family
            space.rating[runner], space.level[runner] = space.rating[family], space.level[family]
            space.start[runner] = space.start[family]
            for x in range(rows):
                space.offset[runner * rows + x] = space.offset[family * rows + x]
            mu = space.found[0]
        space.rating[place], space.level[place], space.start[place] = least, double, space.found[0]
        for x in range(rows):
            space.offset[place * rows + x] = space.order[x]
    return mu


def prepared(rows: int, size: float, log_inverse: float, candidate: int, space: Any) -> float:
    """B for a candidate's scales. Each row's ρ goes to ``space.rho``."""
    family = candidate % FAMILIES
    m = space.level[candidate] // 2
    pair = space.level[candidate] % 2
    bound = joint_cost(log_inverse, family, m, pair) + ABSOLUTE
    for x in range(rows):
        offset = space.offset[candidate * rows + x]
        space.rho[x] = scale(power(family, m, offset), pair)
        space.place[x] = x * LEVELS + 2 * (power(family, m, offset) - LEAST_POWER) + pair
        bound += row_cost(family, offset, m, pair, size - 1.0)
    return bound


def bound_at(
    table: Any, rows: int, size: float, bound: float, mu: float, tolerance: float, most: float, space: Any
) -> tuple[float, float, float, float]:
    """The bound at μ, its slope, the bound if all rows were near their estimates, and the part of rows given up.

    The scales are those of the candidate that was prepared last, and ``bound`` is its B. The evaluation ends as soon as
    the bound is expected to exceed ``most``, and then gives infinity.
    """
    total = base = mu * bound
    slope = bound
    lost = 0.0
    guessed = 0.0
    met = 0.0
    if most < math.inf:
        for x in range(rows):
            guessed += guess_row(mu, space.place[x], space.most[x], space)
    # Rows are visited in an order in which the first ones are like the rest: in strides that reach every row.
    stride = int(0.618 * rows) + 1
    while math.gcd(stride, rows) != 1:
        stride += 1
    x = 0
    for done in range(1, rows + 1):
        x = (x + stride) % rows
        total += row_term(table, x, size, space.rho[x], mu, tolerance, space)
        slope += space.slope[x]
        base += space.base[x]
        lost += space.lost[x]
        if most < math.inf:
            guessed -= guess_row(mu, space.place[x], space.most[x], space)
            met += guess_row(mu, space.place[x], space.most[x], space)
            # From a quarter of the rows on, the rest is expected to be as far above its guess as these rows.
            rest = guessed
            if 4 * done >= rows:
                rest *= max(1.0, (total - mu * bound) / met)
            if total + rest > most:
                return math.inf, 0.0, 0.0, 0.0
    return total, slope, base, lost


def descend(
    table: Any, rows: int, size: float, log_inverse: float, spare: float, candidate: int, best: float, stage: int,
    large: bool, space: Any,
) -> float:  # fmt: skip
    """The smaller of ``best`` and the bound that a search along μ finds at a candidate's scales.

    The bound is convex in μ, up to the tolerance of its terms, and its slope is known. So the next μ is where two
    tangents meet. ``space.chosen[2]`` becomes the smallest of all bounds at log(K/δ) = ``log_inverse`` − ``spare``.
    ``stage`` is FIRST for the first candidate and OTHER for the others. In a ``large`` table these are evaluated once,
    and the best of them is searched at the end, in the stage LAST.
    """
    bound = prepared(rows, size, log_inverse, candidate, space)
    mu = space.start[candidate]
    most = math.inf
    if stage == OTHER:
        most = best * (HOPE if rows <= FEW else HOPE_OF_MANY)
    for x in range(rows):
        space.unsolved[x] = True
    # The tangents nearest to the minimum: one falling, one rising.
    below = above = 0.0
    at_below = at_above = math.inf
    fall = rise = 0.0
    for turn in range(EVALUATIONS):
        if not LEAST_MULTIPLIER < mu < MOST_MULTIPLIER:
            break
        if turn == 0 and stage == LAST:
            mu, total, slope, base = space.chosen[1], best, space.chosen[5], space.chosen[6]
        else:
            tolerance = TOLERANCE * best / rows
            total, slope, base, lost = bound_at(table, rows, size, bound, mu, tolerance, most, space)
            if total == math.inf:
                break
            most = math.inf
            space.chosen[2] = min(space.chosen[2], total - mu * spare)
            if total < best:
                best = total
                space.chosen[0], space.chosen[1] = candidate, mu
                space.chosen[5], space.chosen[6] = slope, base
            if stage == FIRST and lost > LOST * total and turn < 3:  # μ is too small for these rows
                mu *= 1.3
                continue
            if large and (stage != LAST or turn > 0):
                break
        if slope > 0.0:
            above, at_above, rise = mu, total, slope
        else:
            below, at_below, fall = mu, total, slope
        # The slope of log(bound) as a function of log μ. It grows at a rate of about one, and faster with more rows.
        steep = mu * slope / total
        if turn == 0:
            if large and abs(steep) < STEEP:
                break
            gain = min(0.2, 0.5 * steep * steep / min(rows - 0.5, 4.0))
            if gain < GAIN or (stage == OTHER and total * (1.0 - gain) > best):
                break
        if at_above == math.inf:
            # If all rows are near their estimates, the bound is proportional to μ. It is never smaller than that.
            farther = (at_below / mu - fall) / (base / mu - fall)
            mu *= min(3.0, max(1.02, 1.0 - 0.25 * steep, farther))
        elif at_below == math.inf:
            mu *= max(0.5, 1.0 - (1.0 + turn) * steep / (10.0 if large else 6.0))
        else:
            ahead = (at_below - at_above + rise * above - fall * below) / (rise - fall)
            least = at_below + fall * (ahead - below)
            if min(at_below, at_above) - least < GAIN * best:
                break
            near = 0.1 * (above - below)
            mu = min(above - near, max(below + near, ahead))
    return best


def lemma(
    table: Any, rows: int, size: float, log_inverse: float, spare: float, top: int, space: Any
) -> tuple[float, float]:
    """§7's bound on this event: the largest Σ_x W_x with Σ_x θ_x W_x ≤ B, plus the largest effect of smoothing.

    Returned for log(K/δ) = ``log_inverse`` and for ``log_inverse`` − ``spare``. ``plain_costs`` must have filled
    ``space.plain``.
    """
    best = 0.0
    moved = 0.0
    for x in range(rows):
        best += 2.0 * table.exits[x]
        moved += table.exits[x] / ((table.exits[x] + 1.0 / 3.0) * (table.exits[x] + 1.0 / 3.0))
        space.order[x] = x
    moved *= (1.0 - 1.0 / size) / 9.0
    less = best
    for family in range(FAMILIES):
        for double in range(2 * LEAST_LEVEL, 2 * top + 1):
            m = double // 2
            pair = double % 2
            bound = joint_cost(log_inverse, family, m, pair) + ABSOLUTE
            base = row_cost(family, 0, m, pair, size - 1.0)
            more = row_cost(family, 1, m, pair, size - 1.0) - base
            for x in range(rows):
                offset = 0
                if family == 1:
                    offset = min(space.natural[x], m - LEAST_POWER)
                elif family == 2:
                    offset = min((space.natural[x] + 1) // 2, (m - LEAST_POWER) // 2)
                elif family == 3:
                    offset = min(space.natural[x], max(m, 0))
                at = power(family, m, offset)
                rho = scale(at, pair)
                bound += base + offset * more + space.plain[x * LEVELS + 2 * (at - LEAST_POWER) + pair]
                space.theta[x] = table.exits[x] / (table.exits[x] + 2.0 * rho)
            # No θ exceeds one, so ΣW is at least B.
            if bound < best:
                best = min(best, knapsack(table, rows, bound * (1.0 + 1e-12), space))
            if bound - spare < less:
                less = min(less, knapsack(table, rows, (bound - spare) * (1.0 + 1e-12), space))
    root = math.sqrt(best) + math.sqrt(moved)
    root_less = math.sqrt(less) + math.sqrt(moved)
    return root * root, root_less * root_less


def knapsack(table: Any, rows: int, bound: float, space: Any) -> float:
    """The largest Σ_x W_x with Σ_x θ_x W_x ≤ bound and 0 ≤ W_x ≤ 2N_x: filled by increasing θ."""
    stride = 1
    while 3 * stride + 1 < rows:
        stride = 3 * stride + 1
    while stride > 0:
        for i in range(stride, rows):
            x = space.order[i]
            j = i - stride
            while j >= 0 and space.theta[space.order[j]] > space.theta[x]:
                space.order[j + stride] = space.order[j]
                j -= stride
            space.order[j + stride] = x
        stride //= 3
    total: float = 0.0
    for i in range(rows):
        x = space.order[i]
        room = 2.0 * table.exits[x]
        if space.theta[x] * room > bound:
            filled: float = total + bound / space.theta[x]
            return filled
        total += room
        bound -= space.theta[x] * room
    return total
