"""The widths of answers, compared with other methods on the same data; the cost of a replay of ten million
transitions; and the observations that a target width takes.

``python benchmarks/bench_answers.py`` does all; ``… widths``, ``… times`` or ``… stopping`` does one part.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np
from recording import record

import chainscout as cs
from chainscout.answers import betting, parse
from chainscout.answers.answer import unchecked
from chainscout.answers.replay import Decks
from chainscout.answers.running import Running
from chainscout.certificates import entrywise
from chainscout.errors import ChainscoutError
from chainscout.sources import simulated

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from answer_trials import ASKED, CHAINS, questions

DELTA = 0.05
COMMAND = "python benchmarks/bench_answers.py"
SEEDS = 1
LENGTHS = (4_000, 40_000)
#: How a chain is sampled: as one path that is restarted only in a trap, or with a restart every 20 steps.
WAYS = {"free": None, "from the start": 20}


def walks(matrix, start: int, transitions: int, again: int | None, rng) -> list[list[int]]:
    """Walks with this number of transitions in all."""
    cumulative = matrix.cumsum(axis=1)
    found, walk = [], [start]
    for u in rng.random(transitions):
        x = walk[-1]
        walk.append(int(min(np.searchsorted(cumulative[x], u, side="right"), len(matrix) - 1)))
        if matrix[walk[-1], walk[-1]] == 1 or (again is not None and len(walk) > again):
            found.append(walk)
            walk = [start]
    return [*found, walk]


def box_width(counts: cs.Counts, question, size: int) -> float:
    """Robust dynamic programming over intervals for single entries, as model checkers do with interval models."""
    level = math.log(size**2 / DELTA)
    table = counts.transitions
    low, high = entrywise.intervals(table, table.sum(axis=1, keepdims=True) + 0 * table, level)
    rest = 1 - low.sum(axis=1)
    target = np.zeros(size)
    on = np.ones(size, dtype=bool)
    cost, steps = np.zeros(size), 2_000
    if isinstance(question, cs.Reach):
        target[list(question.target)] = 1
        on[list(question.target) + list(question.before or ()) + list(question.absorbing)] = False
        steps = steps if question.within is None else question.within
    else:
        cost[[x for x, _ in question.costs]] = [c for _, c in question.costs]
        steps = question.steps
    ends = []
    for sign in (-1, 1):
        from_above = sign > 0 and isinstance(question, cs.Reach) and question.within is None
        value = on + target if from_above else target.copy()
        for _ in range(steps):
            order = np.argsort(-sign * value, kind="stable")
            room = (high - low)[:, order]
            before = np.cumsum(room, axis=1) - room
            given = np.clip(rest[:, None] - before, 0, room)
            mean = low @ value + (given * value[order]).sum(axis=1)
            mean = np.where([x in question.absorbing for x in range(size)], value, mean)
            value = cost + mean if isinstance(question, cs.Cost) else np.where(on, mean, target)
        ends.append(value[question.start])
    return float(ends[1] - ends[0])


def direct_width(made: list[list[int]], question) -> float:
    """Direct counting of the whole episodes in the walks."""
    ends = []
    for walk in made:
        steps = None
        for x in walk:
            if steps is None and x == question.start:
                steps = 0
            elif steps is not None:
                steps += 1
            if steps is not None and (x in question.target or steps == question.within):
                ends.append(x in question.target)
                steps = None
    counts = np.array([len(ends) - sum(ends), sum(ends)], dtype=float)
    points, level = np.array([0.0, 1.0]), math.log(2 / DELTA)
    return betting.most_mean_within(points, counts, level) - betting.least_mean(points, counts, level)


def width(data, question, method: str | None = None) -> float:
    try:
        return cs.answer(data, question, delta=DELTA, method=method).width
    except ChainscoutError:
        return math.nan


def widths() -> None:
    rows = []
    for name, make in CHAINS.items():
        matrix = make()
        size, start = len(matrix), ASKED[name][0]
        for way, again in WAYS.items():
            for length in LENGTHS:
                found: dict[str, list[list[float]]] = {}
                for seed in range(SEEDS):
                    made = walks(matrix, start, length, again, np.random.default_rng([seed, length]))
                    paths = cs.Paths.from_walks(made, size)
                    counts = paths.counts()
                    for question, _ in questions(name):
                        simple = isinstance(question, cs.Reach) or (isinstance(question, cs.Cost) and question.steps)
                        within = isinstance(question, cs.Reach) and question.within is not None
                        found.setdefault(str(question), []).append(
                            [
                                width(paths, question),
                                width(counts, question),
                                box_width(counts, question, size) if simple else math.nan,
                                direct_width(made, question) if within else math.nan,
                            ]
                        )
                for question, truth in questions(name):
                    middle = np.median(np.array(found[str(question)]), axis=0)
                    cells = ["–" if math.isnan(w) else f"{w:.3g}" for w in middle]
                    said = str(question).split(" given")[0]
                    said = "cost, " + said[said.index(" from ") + 1 :] if said.startswith("cost") else said
                    rows.append((name, way, f"{length:,}", said, f"{truth:.4g}", *cells))
                    print(rows[-1], flush=True)
    columns = (
        "chain", "sampled", "transitions", "question", "truth", "replay", "rows' likelihood", "box model",
        "direct counting",
    )  # fmt: skip
    record("Widths of answers", f"{COMMAND} widths", columns, rows, ("numpy",))


def times() -> None:
    rng = np.random.default_rng(0)
    size, number = 5, 10_000_000
    matrix = rng.dirichlet(np.ones(size), size=size)
    # A thousand walks of the chain, simulated together and then put one after the other.
    cumulative = matrix.cumsum(axis=1)
    copies = 1_000
    x = np.zeros(copies, dtype=np.int64)
    steps = number // copies
    table = np.empty((steps, copies), dtype=np.int64)
    for step in range(steps):
        x = np.minimum((rng.random(copies)[:, None] > cumulative[x]).sum(axis=1), size - 1)
        table[step] = x
    targets = table.T.reshape(-1)
    began = time.process_time()
    paths = cs.Paths.from_walks([targets], size)
    rows = [("Paths.from_walks", f"{time.process_time() - began:.2f}", "")]
    options = {"delta": 0.05, "method": None, "asked": None, "losses": "checked"}
    for question in (
        "reach 4 from 0 within 10",
        "reach 4 before 2 from 0",
        "cost 1=1, 2=5 from 0 over 8 steps",
        "cost 1=1 from 0 discounted 0.9",
        "time to 4 from 0",
        "share of 4 anchor 0",
    ):
        unchecked(cs.Paths.from_walks([targets[:1000]], size), question, **options)  # compiles
        began = time.process_time()
        answer = unchecked(paths, question, **options)
        rows.append((question, f"{time.process_time() - began:.2f}", f"{answer.episodes:,}"))
    columns = ("what", "seconds of one core", "episodes")
    record("Ten million transitions replayed", f"{COMMAND} times", columns, rows, ("numba", "numpy"))


# -- observations to a target width


def link(bad: float, good: float) -> cs.MarkovChain:
    """A channel that is good or bad."""
    return cs.MarkovChain([[1 - bad, bad], [good, 1 - good]], states=["good", "bad"])


def machine(wear: float, failure: float, repair: float) -> cs.MarkovChain:
    """A machine that wears out, fails and is repaired."""
    matrix = [[1 - wear, wear, 0], [repair, 1 - repair - failure, failure], [0.8, 0, 0.2]]
    return cs.MarkovChain(matrix, states=["new", "worn", "down"])


def station(arrivals: float, size: int = 8) -> cs.MarkovChain:
    """A queue with room for a few."""
    matrix = np.zeros((size, size))
    for x in range(size):
        matrix[x, min(x + 1, size - 1)] += arrivals
        matrix[x, max(x - 1, 0)] += 0.5
        matrix[x, x] += 0.5 - arrivals
    return cs.MarkovChain(matrix)


def trial(name: str) -> cs.MarkovChain:
    return cs.MarkovChain(CHAINS[name]())


#: Name → the chains, each with its question, and the target width. Every chain is one path without a restart.
PROBLEMS = {
    "links": (
        {f"link {k}": (link(bad, 0.4), "reach bad from good within 5") for k, bad in
         enumerate((0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.2))},
        0.05,
    ),
    "machines": (
        {f"machine {k}": (machine(wear, failure, 0.3), "reach down from new within 20") for k, (wear, failure) in
         enumerate(((0.02, 0.02), (0.05, 0.03), (0.1, 0.05), (0.3, 0.2)))},
        0.08,
    ),
    "stations": (
        {f"station {k}": (station(arrivals), "reach 0 before 7 from 3") for k, arrivals in
         enumerate((0.25, 0.35, 0.45, 0.5))},
        0.1,
    ),
    "unlike": (
        {"dense": (trial("dense"), "reach 4 from 0 within 10"), "sticky": (trial("sticky"), "reach 2 from 0 within 10"),
         "rare failure": (trial("rare failure"), "reach 3 from 1 within 10"),
         "grid": (trial("grid"), "reach 15 from 0 within 10"),
         "periodic": (trial("periodic"), "reach 3 from 0 within 10")},
        0.1,
    ),
    "shares": (
        {f"link {k}": (link(bad, good), "share of bad anchor good") for k, (bad, good) in
         enumerate(((0.02, 0.1), (0.1, 0.2), (0.3, 0.3), (0.05, 0.6)))},
        0.05,
    ),
}  # fmt: skip
REPLICATIONS = 2


def problem_of(name: str):
    chains, target = PROBLEMS[name]
    problem = cs.Problem({key: chain for key, (chain, _) in chains.items()})
    return problem, {key: parse(line) for key, (_, line) in chains.items()}, target


def by_hand(source, states, asked, target: float, delta: float) -> int:
    """The first number of observations of a chain at which its own answer has the target width, to a thousandth."""
    running, decks = Running(asked, states, delta), Decks.empty(len(states))
    position = {label: place for place, label in enumerate(states)}
    state = position[source.advance()[0]]
    decks.add(decks.size, [state])  # where the path starts
    told = 1
    while running.answer(decks).width > target:
        for _ in range(1 + told // 1_000):
            before, state = state, position[source.advance()[0]]
            decks.add(before, [state])
            told += 1
    return told


def stopping() -> None:
    """The default rule of a study that aims at a width, beside the least and taking turns."""
    rows, all_ratios = [], []
    for name in PROBLEMS:
        problem, asked, target = problem_of(name)
        found = []
        for replication in range(REPLICATIONS):
            sources = simulated(problem, seed=1, replication=replication)
            enough = [
                by_hand(sources[c], known.states, asked[c], target, DELTA / len(problem))
                for c, known in problem.chains.items()
            ]
            sources = simulated(problem, seed=1, replication=replication)
            with cs.learn(sources, questions=asked, target_width=target, delta=DELTA, progress=False) as study:
                assert study.stop_reason == "target_width"
                found.append((sum(enough), study.progress().observations, len(enough) * max(enough)))
        least, *others = np.mean(found, axis=0)
        all_ratios.append([other / least for other in others])
        rows.append((name, len(problem), f"{target:g}", f"{least:,.0f}", *(f"{r:.3f}" for r in all_ratios[-1])))
        print(*rows[-1], flush=True)
    rows.append(("geometric mean", "", "", "", *(f"{mean:.3f}" for mean in np.exp(np.log(all_ratios).mean(axis=0)))))
    columns = ("problem", "chains", "target width", "least", "default", "taking turns")
    title = "Observations until every answer has its target width, over the least that any rule can need"
    record(title, f"{COMMAND} stopping", columns, rows, ("numpy",))


PARTS = {"widths": widths, "times": times, "stopping": stopping}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
