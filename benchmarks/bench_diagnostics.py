"""How many steps the checks of the Markov assumption need to detect an effect, compared with tests at a fixed time.

An effect replaces a law p by (1 − ε)p + ε·(all on one outcome, drawn uniformly): in every context or row, or in one.
The rows of a chain are drawn from a flat Dirichlet law, or are uniform. Detection is the first step at which the check
rejects at δ = 0.05; the table has its median over chains. The likelihood-ratio test is for one look: its column has
the number of steps at which it rejects half of the chains, with critical values simulated from the true matrix. For a
change, it knows the time of the change.

``--peer PYTHON``: the interpreter of an environment with PyDTMC (``make test-interop`` makes .venv-interop). Its tests
run once, and as often as shown, on chains that are Markov and do not change.
"""

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import numpy as np
from bench_study import chains, postgres, states
from recording import record

import chainscout as cs
from chainscout.diagnostics import _processes
from chainscout.diagnostics._processes import Cards
from chainscout.paths import Paths
from chainscout.study import Study, checks

DELTA = 0.05
SEED = 0
Effect = tuple[str, int, str, float, int, str, float]
EFFECTS: list[Effect] = [
    # check, S, where, ε, most steps, rows, and the median that a first implementation had
    ("order", 5, "all", 0.2, 8_000, "Dirichlet", 410),
    ("order", 5, "one", 0.6, 8_000, "uniform", 856),
    ("order", 10, "all", 0.4, 8_000, "Dirichlet", 230),
    ("order", 10, "one", 0.6, 16_000, "uniform", 1_987),
    ("worker", 5, "all", 0.4, 8_000, "uniform", 484),
    ("worker", 5, "one", 0.9, 8_000, "uniform", 361),
    ("change", 5, "all", 0.4, 4_000, "uniform", 279),
    ("change", 5, "one", 0.9, 4_000, "uniform", 98),
    ("reference", 5, "all", 0.1, 8_000, "uniform", 822),
]
#: The benchmark fails if a median is larger than the first one by more than this factor.
SLACK = 1.3
PARTS = ("power", "letters", "crossed", "kept", "peer")
#: The change happens after this number of steps, and one of this number of workers differs.
MOMENT, WORKERS = 1_000, 4


def mixed(laws: np.ndarray, share: float, rng: np.random.Generator, one: bool) -> np.ndarray:
    """Laws with an effect in all of them, or in one."""
    size = laws.shape[-1]
    flat = laws.reshape(-1, size).copy()
    for i in [int(rng.integers(len(flat)))] if one else range(len(flat)):
        flat[i] *= 1 - share
        flat[i, rng.integers(size)] += share
    return flat.reshape(laws.shape)


def process(effect: Effect, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """One walk with the effect."""
    check, size, where, share, steps, rows, _ = effect
    matrix = rng.dirichlet(np.ones(size), size) if rows == "Dirichlet" else np.full((size, size), 1 / size)
    one = where == "one"
    total = steps + (MOMENT if check == "change" else 0)
    walk = [int(rng.integers(size)), int(rng.integers(size))]
    label = rng.integers(0, WORKERS, total) if check == "worker" else np.zeros(total, np.int64)
    if check == "order":
        laws = mixed(np.repeat(matrix[None], size, axis=0), share, rng, one)  # law[z, x]: z came before x
    else:
        other = mixed(matrix, share, rng, one)
        laws = np.stack([matrix, other])
    sums, uniform = np.cumsum(laws, axis=-1), rng.random(total)
    for j in range(total):
        x = walk[-1]
        if check == "order":
            context = walk[-2]
        elif check == "worker":
            context = int(label[j] == 0)
        else:
            context = int(check == "reference" or j >= MOMENT)
        walk.append(min(int(np.searchsorted(sums[context, x], uniform[j], side="right")), size - 1))
    states = np.array(walk[1:])
    return {"source": states[:-1], "target": states[1:], "label": label, "matrix": matrix}


def first_rejection(effect: Effect, data: dict[str, np.ndarray]) -> float:
    """The step at which the check first rejects, or infinity; for a change, counted from the change."""
    check, size = effect[0], effect[1]
    source, target = data["source"], data["target"]
    if check == "change":
        found = _processes.change(source, target, size)
        running = np.maximum.accumulate(np.maximum(0.0, found.process.log_values))
        reject = 2 * np.minimum(found.levels, np.exp(-running)) <= DELTA
        places = found.process.places
    else:
        if check == "order":
            steps = np.arange(1, len(source) + 1)
            one = _processes.order(Cards(np.zeros_like(source), steps, source, target))
        elif check == "worker":
            one = _processes.sameness(source, target, data["label"], WORKERS)
        else:
            one = _processes.reference(source, target, data["matrix"][source, target])
        reject, places = one.log_values >= np.log(1 / DELTA), one.places
    if not reject.any():
        return np.inf
    return float(places[int(np.argmax(reject))] + 1 - (MOMENT if check == "change" else 0))


# -- the likelihood-ratio test, looked at once


def grouped(effect: Effect, data: dict[str, np.ndarray], steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The row, the group and the outcome of every card up to a step."""
    check = effect[0]
    source, target = data["source"][:steps], data["target"][:steps]
    if check == "order":
        return source[1:], source[:-1], target[1:]
    if check == "change":
        return source, (np.arange(len(source)) >= MOMENT).astype(np.int64), target
    return source, data["label"][:steps], target


def ratio(effect: Effect, row: np.ndarray, group: np.ndarray, outcome: np.ndarray, known: np.ndarray) -> float:
    """2·log of the likelihood ratio: a law for each row and group against one for each row, or the known one."""
    size = effect[1]
    groups = int(group.max()) + 1
    table = np.bincount((row * groups + group) * size + outcome, minlength=size * groups * size)
    table = table.reshape(size, groups, size).astype(float)
    pooled = table.sum(axis=1)

    def fitted(counts: np.ndarray) -> float:
        totals = counts.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(counts > 0, counts * np.log(counts / totals), 0.0).sum())

    if effect[0] == "reference":
        return 2 * (fitted(pooled) - float((pooled * np.log(known)).sum()))
    return 2 * (fitted(table) - fitted(pooled))


def rejects_once(effect: Effect, data: dict[str, np.ndarray], steps: int, draws: int, rng: np.random.Generator) -> bool:
    """Whether the test rejects at this step. Its critical value is simulated with the chain's own matrix as the null,
    because a matrix that is fitted to sparse tables gives critical values that are far too small.
    """
    row, group, outcome = grouped(effect, data, steps)
    size = effect[1]
    seen = ratio(effect, row, group, outcome, data["matrix"])
    sums = np.cumsum(data["matrix"], axis=1)
    larger = 0
    for _ in range(draws):
        uniform = rng.random(len(row))
        simulated = np.minimum((uniform[:, None] >= sums[row]).sum(axis=1), size - 1)
        larger += ratio(effect, row, group, simulated, data["matrix"]) >= seen
    return (larger + 1) / (draws + 1) <= DELTA


def fixed_time(effect: Effect, walks: list[dict[str, np.ndarray]], draws: int) -> float:
    """The least number of steps, on a grid of ratio 1.15, at which the test rejects half of the walks: by bisection."""
    rng = np.random.default_rng(SEED + 1)
    before = MOMENT if effect[0] == "change" else 0
    grid = [int(10 * 1.15**power) for power in range(int(np.log(effect[4] / 10) / np.log(1.15)) + 1)]
    low, high = 0, len(grid)
    while low < high:
        middle = (low + high) // 2
        steps = before + grid[middle]
        if np.mean([rejects_once(effect, data, steps, draws, rng) for data in walks]) >= 0.5:
            high = middle
        else:
            low = middle + 1
    return float(grid[low]) if low < len(grid) else np.inf


# -- letters


def letters() -> np.ndarray:
    """The letters and blanks of the language reference that every Python contains, as 0 … 26."""
    from pydoc_data.topics import topics

    text = re.sub("[^a-z]+", " ", " ".join(topics[key] for key in sorted(topics)).lower())
    return np.array(["abcdefghijklmnopqrstuvwxyz ".index(letter) for letter in text[:100_000]])


def letter_rows() -> Iterator[tuple[object, ...]]:
    """The first step at which the check rejects that letters are a chain of an order."""
    data = Paths.from_walks([letters()], 27)
    for order in (1, 2, 3):
        paths = data if order == 1 else data.lifted(order)
        seen = paths.source >= 0
        cards = Cards(paths.path[seen], paths.step[seen], paths.source[seen], paths.target[seen])
        found = _processes.order(cards)
        reject = found.log_values >= np.log(1 / DELTA)
        first = int(found.places[int(np.argmax(reject))] + 1) if reject.any() else None
        yield order, len(cards.path), "never" if first is None else f"{first:,}", f"{found.log_value:,.0f}"


# -- what sets off what


def crossed(number: int) -> Iterator[tuple[object, ...]]:
    """How often *change* rejects processes with memory, and how often *order* rejects chains that change."""
    steps = 3_000
    for check, share in (("order", 0.2), ("order", 0.4), ("change", 0.4), ("change", 0.8)):
        effect: Effect = (check, 5, "all", share, steps - MOMENT * (check == "change"), "Dirichlet", 0)
        rng = np.random.default_rng(SEED + 3)
        walks = [process(effect, rng) for _ in range(number)]
        found = []
        for judge in ("order", "change"):
            by = (judge, *effect[1:])
            found.append(sum(np.isfinite(first_rejection(by, data)) for data in walks))
        yield "memory" if check == "order" else "change", share, number, *found


# -- PyDTMC on chains that are Markov and do not change

PEER = """
import json, sys
import numpy as np
import pydtmc
given = json.load(sys.stdin)
def rejected(answer):
    return bool(answer[0])
states = [str(x) for x in range(given["size"])]
order = []
for walk in given["walks"]:
    named = [states[x] for x in walk]
    looks = []
    for end in given["looks"]:
        looks.append(rejected(pydtmc.assess_markov_property(states, named[:end], significance=0.05)))
    order.append(looks)
same = []
for first, second in given["pairs"]:
    named = [[states[x] for x in walk] for walk in (first, second)]
    same.append(rejected(pydtmc.assess_homogeneity(states, named, significance=0.05)))
print(json.dumps({"order": order, "same": same, "version": pydtmc.__version__}))
"""


def walk_of(matrix: np.ndarray, length: int, rng: np.random.Generator) -> list[int]:
    """One walk of a chain."""
    walk = [0]
    sums = np.cumsum(matrix, axis=1)
    for uniform in rng.random(length - 1):
        walk.append(min(int(np.searchsorted(sums[walk[-1]], uniform, side="right")), len(matrix) - 1))
    return walk


def asked(python: Path, given: dict[str, object]) -> dict[str, list[object]]:
    """What PyDTMC's tests say."""
    done = subprocess.run(
        [str(python), "-c", PEER], input=json.dumps(given), capture_output=True, text=True, check=True
    )  # fmt: skip
    answer: dict[str, list[object]] = json.loads(done.stdout)
    return answer


def peer_power(python: Path, number: int) -> Iterator[tuple[object, ...]]:
    """How often PyDTMC's tests detect an effect in one look, when the check has detected it in half of the walks.

    Its test of homogeneity knows the time of the change: it compares the walks before and after.
    """
    for effect in EFFECTS:
        check, size, where, share, *_ = effect
        if check not in ("order", "change"):
            continue
        rng = np.random.default_rng(SEED)
        data = [process(effect, rng) for _ in range(number)]
        steps = int(np.median([first_rejection(effect, each) for each in data]))
        walks = [[int(each["source"][0]), *each["target"].tolist()] for each in data]
        given: dict[str, object] = {"size": size, "walks": [], "looks": [steps + 1], "pairs": []}
        if check == "order":
            given["walks"] = [walk[: steps + 1] for walk in walks]
        else:
            given["pairs"] = [(walk[: MOMENT + 1], walk[MOMENT : MOMENT + steps + 1]) for walk in walks]
        found = asked(python, given)
        seen = sum(map(bool, found["same"])) if check == "change" else sum(map(any, found["order"]))  # type: ignore[arg-type]
        test = "order" if check == "order" else "homogeneity"
        yield check, size, f"{where} {share:g}", number, f"{steps:,}", number // 2, test, seen


def peer_rows(python: Path, number: int) -> Iterator[tuple[object, ...]]:
    """False alarms of PyDTMC's tests and of ours on the same walks."""
    rng = np.random.default_rng(SEED + 2)
    looks = list(range(100, 2_000, 100))
    for name, matrix in (
        ("dense, S = 5", rng.dirichlet(np.ones(5), 5)),
        ("sticky, S = 5", 0.95 * np.eye(5) + 0.05 * rng.dirichlet(np.ones(5), 5)),
    ):
        walks = [walk_of(matrix, 2_000, rng) for _ in range(number)]
        pairs = [walk_of(matrix, 1_000, rng) for _ in range(2 * number)]
        given = {"size": 5, "walks": walks, "looks": looks, "pairs": list(zip(pairs[::2], pairs[1::2], strict=True))}
        found = asked(python, given)
        once, ever = (sum(f(row) for row in found["order"]) for f in (lambda row: row[-1], any))
        ours = [_processes.order(cards_of(walk)).log_largest >= np.log(1 / DELTA) for walk in walks]
        theirs = sum(found["same"])
        both = [other_data(*pair) for pair in given["pairs"]]
        yield name, number, once, ever, sum(ours), theirs, sum(both), found["version"]


def cards_of(walk: list[int]) -> Cards:
    states = np.array(walk)
    return Cards(np.zeros(len(walk) - 1, np.int64), np.arange(1, len(walk)), states[:-1], states[1:])


def other_data(first: list[int], second: list[int]) -> bool:
    """Whether two walks are found to follow different laws."""
    one, two = cards_of(first), cards_of(second)
    source, target = np.concatenate([one.source, two.source]), np.concatenate([one.target, two.target])
    label = np.repeat([0, 1], [len(one.source), len(two.source)])
    return _processes.decks(source, target, label, 2).log_largest >= np.log(1 / DELTA)


def cost(check: str, size: int) -> float:
    """Nanoseconds for each card of the compiled pass, with its preparation."""
    data = process((check, size, "all", 0.0, 200_000, "Dirichlet", 0), np.random.default_rng(0))
    source, target = data["source"], data["target"]
    runs: dict[str, Callable[[], object]] = {
        "order": lambda: _processes.order(Cards(np.zeros_like(source), np.arange(1, len(source) + 1), source, target)),
        "worker": lambda: _processes.sameness(source, target, data["label"], WORKERS),
        "change": lambda: _processes.change(source, target, size),
        "reference": lambda: _processes.reference(source, target, data["matrix"][source, target]),
    }
    runs[check]()
    times = []
    for _ in range(3):
        start = time.process_time()
        runs[check]()
        times.append(time.process_time() - start)
    return 1e9 * min(times) / len(source)


def never(state: object) -> bool:
    """Takes the place of what is left out: a mock's call would cost a tenth of a pair."""
    return False


def kept_rows(pairs: int) -> Iterator[tuple[str, ...]]:
    """The cost of making the checks, against the same study without them, 256 pairs each in turn; and the time of a
    look at the checks that were made, against one pass over the journal."""
    cs.diagnose(cs.Paths.from_walks([[0, 1] * 50]))  # compiled code is loaded once a process
    with tempfile.TemporaryDirectory() as folder, postgres() as schema:
        places: dict[str, Callable[[str], str | None]] = {
            "memory": lambda _: None,
            "SQLite": lambda name: str(Path(folder) / f"{name}.db"),
            "PostgreSQL": schema,
        }
        for kind, place in places.items():
            studies = [Study.create(place(name), chains(10)) for name in ("keeping", "without")]
            following, spent, used = states(), [0.0, 0.0], [0.0, 0.0]
            for _ in range(pairs // 256):
                for which, study in enumerate(studies):
                    start, begun = time.perf_counter(), time.process_time()
                    with mock.patch.object(checks, "is_due", never) if which else nullcontext():
                        for _ in range(256):
                            study.tell(study.ask(), next(following))
                    spent[which] += time.perf_counter() - start
                    used[which] += time.process_time() - begun
            looks = []
            for look in (studies[0].checks, studies[0].diagnose):
                start = time.perf_counter()
                look()
                looks.append(1e3 * (time.perf_counter() - start))
            each = [1e6 * seconds / pairs for seconds in (*spent, *used)]
            yield (
                kind, f"{pairs:,}", f"{each[1]:,.0f} µs", f"{each[0]:,.0f} µs", f"{spent[0] / spent[1]:.3f}",
                f"{used[0] / used[1]:.3f}", f"{looks[0]:,.0f} ms", f"{looks[1]:,.0f} ms",
            )  # fmt: skip
            for study in studies:
                study.close()


def power(chains: int, fixed: int, draws: int) -> list[Effect]:
    """Records the table of steps to detect. Returns the effects that are detected much later than at first."""
    rows, slow = [], []
    for effect in EFFECTS:
        rng = np.random.default_rng(SEED)
        walks = [process(effect, rng) for _ in range(chains)]
        found = np.array([first_rejection(effect, data) for data in walks])
        median = float(np.median(found))
        once = fixed_time(effect, walks[:fixed], draws)
        check, size, where, share, _, law, expected = effect
        rows.append(
            (check, size, f"{where} {share:g}", law, f"{median:,.0f}", f"{expected:,}", f"{once:,.0f}",
             f"{np.isinf(found).mean():.0%}", f"{cost(check, size):,.0f}")
        )  # fmt: skip
        print(rows[-1], flush=True)
        slow += [effect] * (median > SLACK * expected)
    record(
        "Diagnostics: steps to detect at δ = 0.05",
        f"python benchmarks/bench_diagnostics.py --parts power --chains {chains}",
        (
            "check",
            "S",
            "effect",
            "rows",
            "median steps",
            "first measured",
            "likelihood ratio, once",
            "never",
            "ns a card",
        ),
        rows,
        ("numba",),
    )
    return slow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--chains", type=int, default=200, help="chains an effect")
    parser.add_argument("--fixed", type=int, default=40, help="chains an effect for the likelihood-ratio test")
    parser.add_argument("--draws", type=int, default=99, help="simulated nulls a critical value")
    parser.add_argument("--pairs", type=int, default=50_000, help="ask and tell in each kind of study")
    parser.add_argument("--peer", type=Path, help="an interpreter with PyDTMC, without which its part is left out")
    parser.add_argument("--peer-walks", type=int, default=100)
    given = parser.parse_args()
    command = "python benchmarks/bench_diagnostics.py --parts"
    slow = power(given.chains, given.fixed, given.draws) if "power" in given.parts else []
    if "letters" in given.parts:
        record(
            "Diagnostics: the letters of Python's language reference",
            f"{command} letters",
            ("states are tuples of", "transitions", "order rejects at step", "log e-value at the end"),
            list(letter_rows()),
        )
    if "crossed" in given.parts:
        record(
            "Diagnostics: what sets off what in 3,000 steps",
            f"{command} crossed --chains {given.chains}",
            ("the process has", "ε in all contexts or rows", "processes, S = 5", "order rejects", "change rejects"),
            list(crossed(given.chains)),
        )
    if "kept" in given.parts:
        record(
            "Diagnostics: what it costs to keep them",
            f"{command} kept --pairs {given.pairs}",
            ("10 chains, S = 5, in", "pairs", "a pair without", "a pair", "ratio by the clock",
             "ratio by processor time", "a look", "one pass over the journal"),
            list(kept_rows(given.pairs)),
        )  # fmt: skip
    if "peer" in given.parts and given.peer:
        peers = list(peer_rows(given.peer, given.peer_walks))
        record(
            "Diagnostics: false alarms beside PyDTMC",
            f"{command} peer --peer PYTHON --peer-walks {given.peer_walks}",
            ("chain", "walks", "PyDTMC order, once", "PyDTMC order, 19 looks", "order, every step",
             "PyDTMC homogeneity, once", "sameness, every step", "PyDTMC"),
            peers,
        )  # fmt: skip
        record(
            "Diagnostics: power beside PyDTMC",
            f"{command} peer --peer PYTHON --peer-walks {given.peer_walks}",
            ("check", "S", "effect", "walks", "our median steps", "rejected by then", "PyDTMC's test, once",
             "rejected at that step"),
            list(peer_power(given.peer, given.peer_walks)),
        )  # fmt: skip
    if slow:
        raise SystemExit(f"slower than first measured by more than {SLACK:g}: {slow}")


if __name__ == "__main__":
    main()
