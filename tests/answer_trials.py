"""Chains, ways of sampling them and questions, on which answers are tried (MATH §11)."""

import heapq

import numpy as np

import chainscout as cs
from chainscout.paths import LOST, PENDING, START, Paths


def dense():
    rng = np.random.default_rng(5)
    return rng.dirichlet(np.ones(5), size=5)


def sticky():
    return np.array([[0.97, 0.02, 0.01], [0.03, 0.95, 0.02], [0.05, 0.05, 0.9]])


def gambler(size=20):
    matrix = np.zeros((size, size))
    matrix[0, 0] = matrix[-1, -1] = 1.0
    for x in range(1, size - 1):
        matrix[x, x + 1], matrix[x, x - 1] = 0.55, 0.45
    return matrix


def rare_failure():
    """From state 1, failure (state 3) before repair (state 0) has a probability near 0.006."""
    return np.array([[0.9, 0.1, 0, 0], [0.6, 0.35, 0.05, 0], [0.5, 0.42, 0.0, 0.08], [1.0, 0, 0, 0]])


def queue(size=50):
    matrix = np.zeros((size, size))
    for x in range(size):
        matrix[x, min(x + 1, size - 1)] += 0.35
        matrix[x, max(x - 1, 0)] += 0.45
        matrix[x, x] += 0.2
    return matrix


def credit():
    """Eight ratings, the last one default; a smoothed table of yearly migrations."""
    matrix = np.array(
        [
            [90.81, 8.33, 0.68, 0.06, 0.12, 0.00, 0.00, 0.00],
            [0.70, 90.65, 7.79, 0.64, 0.06, 0.14, 0.02, 0.00],
            [0.09, 2.27, 91.05, 5.52, 0.74, 0.26, 0.01, 0.06],
            [0.02, 0.33, 5.95, 86.93, 5.30, 1.17, 0.12, 0.18],
            [0.03, 0.14, 0.67, 7.73, 80.53, 8.84, 1.00, 1.06],
            [0.00, 0.11, 0.24, 0.43, 6.48, 83.46, 4.07, 5.20],
            [0.22, 0.00, 0.22, 1.30, 2.38, 11.24, 64.86, 19.79],
            [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 100.0],
        ]
    )
    return matrix / matrix.sum(axis=1, keepdims=True)


def grid(side=4):
    """A walk on a grid that slips; the last corner is the goal and leads back to the first."""
    size = side * side
    matrix = np.zeros((size, size))
    for x in range(size):
        row, column = divmod(x, side)
        for (down, right), p in {(1, 0): 0.35, (0, 1): 0.35, (-1, 0): 0.15, (0, -1): 0.15}.items():
            y = min(max(row + down, 0), side - 1) * side + min(max(column + right, 0), side - 1)
            matrix[x, y] += p
    matrix[-1] = 0
    matrix[-1, 0] = 1
    return matrix


def periodic():
    matrix = np.zeros((6, 6))
    for x in range(6):
        matrix[x, (x + 1) % 6], matrix[x, (x - 1) % 6] = 0.6, 0.4
    return matrix


CHAINS = {
    "dense": dense, "sticky": sticky, "gambler": gambler, "rare failure": rare_failure, "queue": queue,
    "credit": credit, "grid": grid, "periodic": periodic,
}  # fmt: skip

#: For each chain: a start, a target, what must not be reached before, an anchor. Traps are declared absorbing.
ASKED = {
    "dense": (0, 4, 2, 0), "sticky": (0, 2, 1, 0), "gambler": (6, 19, 0, None), "rare failure": (1, 3, 0, 0),
    "queue": (5, 0, 20, 0), "credit": (4, 7, 0, None), "grid": (0, 15, 12, 0), "periodic": (0, 3, 5, 0),
}  # fmt: skip


def questions(name):
    """Every kind of question that makes sense for a chain, with its true answer."""
    chain = cs.MarkovChain(CHAINS[name]())
    start, target, before, anchor = ASKED[name]
    absorbing = [x for x in range(chain.size) if chain.matrix[x, x] == 1]
    other = next(x for x in reversed(range(chain.size)) if x not in (start, target))
    costs = {x: (x % 3) * 0.5 for x in range(chain.size)}
    asked = [
        cs.Reach(target, start, within=30 if name == "gambler" else 10, absorbing=absorbing),
        cs.Reach(target, start, before=before, absorbing=absorbing),
        cs.Cost(costs, start, steps=8, absorbing=absorbing),
        cs.Cost(costs, {start: 0.5, other: 0.5}, discount=0.8, absorbing=absorbing),
    ]
    if anchor is not None:
        asked += [cs.PassageTime(target, start), cs.LongRunShare(target, anchor=anchor)]
    return [(question, cs.answer(chain, question).lower) for question in asked]


def sample(matrix, start, cards, rng, *, walkers=1, cancels=False, adaptive=False):
    """Cards of one chain, as hostile as the theory allows, in the order of issue.

    A path is restarted at ``start`` when its last state and the last one of all paths say so: it depends on values.
    ``walkers``: copies that walk side by side. A walker's draw takes longer the larger its value is, so that values
    arrive out of order. ``cancels``: a walker gives up a draw when a *later* draw of the same row has arrived with a
    large value. ``adaptive``: a path begins in the state with the fewest exits where the last value was above that
    state's mean so far, and at ``start`` otherwise: what is drawn next, and how often, depends on all values.
    """
    size = len(matrix)
    exits, sums = [0] * size, [0.0] * size
    lively = [x for x in range(size) if matrix[x, x] < 1]
    cumulative = matrix.cumsum(axis=1)
    uniform = rng.random(3 * cards + 100)
    used = 0
    path, step, source, target, told = [], [], [], [], []
    # Walker → its path, its step, its state; what is under way: (time of arrival, card, walker, value).
    state, where, steps = [start] * walkers, list(range(walkers)), [0] * walkers
    paths = walkers
    under_way: list[tuple[float, int, int, int]] = []
    given_up = set()
    clock = 0.0
    moment = 0

    def issue(walker):
        nonlocal used
        x = state[walker]
        u = uniform[used]
        used += 1
        y = int(min(np.searchsorted(cumulative[x], u, side="right"), size - 1))
        number = len(source)
        path.append(where[walker])
        step.append(steps[walker])
        source.append(x)
        target.append(PENDING)
        told.append(0)
        delay = 1.0 + (5.0 * y / size if walkers > 1 else 0.0)
        heapq.heappush(under_way, (clock + delay, number, walker, y))

    for walker in range(walkers):  # each path's first state is chosen by us
        path.append(where[walker])
        step.append(0)
        source.append(START)
        target.append(start)
        moment += 1
        told.append(moment)
        steps[walker] = 1
    for walker in range(walkers):
        issue(walker)
    while len(source) < cards and under_way:
        clock, number, walker, y = heapq.heappop(under_way)
        if number in given_up:
            continue
        x = source[number]
        moment += 1
        target[number], told[number] = y, moment
        if cancels and y > x:
            for entry in under_way:
                earlier = entry[1]
                if earlier < number and source[earlier] == x and earlier not in given_up:
                    given_up.add(earlier)
                    target[earlier], told[earlier] = LOST, moment
                    state[entry[2]] = x
                    issue(entry[2])
        state[walker] = y
        steps[walker] += 1
        exits[x] += 1
        sums[x] += y
        stuck = matrix[y, y] == 1
        if stuck or (y > x and used % 3 == 0) or steps[walker] > 40 + 10 * (y % 2):
            begin = start
            if adaptive and y > sums[x] / exits[x]:
                begin = min(lively, key=exits.__getitem__)
            where[walker], state[walker], steps[walker] = paths, begin, 1
            paths += 1
            path.append(where[walker])
            step.append(0)
            source.append(START)
            target.append(begin)
            moment += 1
            told.append(moment)
        issue(walker)
    return Paths(size, path=path, step=step, source=source, target=target, told=told)


def early(paths, moment):
    """The same cards as they were known at a moment, as far as they were issued by then.

    A card was issued before the next card was, so at the latest when the next one's predecessor on its path was told.
    Cards up to the last one known at the moment are kept; what was told or lost later is pending.
    """
    known = (paths.told > 0) & (paths.told <= moment)
    kept = np.arange(len(paths)) <= np.flatnonzero(known).max(initial=-1)
    target = np.where(known, paths.target, PENDING)[kept]
    arrays = {name: getattr(paths, name)[kept] for name in ("path", "step", "source", "issued")}
    return Paths(paths.size, **arrays, target=target, told=np.where(known, paths.told, 0)[kept])
