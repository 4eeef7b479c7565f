"""The cost of a step of a simulated experiment, as a multiple of *bare* and *plain* simulation in the same run.

*Bare* is a compiled loop that only simulates and counts the same chains, round robin, with the same generator and the
same tables, in the engine's own layout. It is the fastest such loop that we know. *Plain* is the usual program without
the engine: arrays of three dimensions, one replication after the other, chain t mod K at step t. Single-core figures
are processor time of one thread, the best of several rounds in turn, so that a busy machine affects all rows equally.
"""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from recording import record

import chainscout as cs
from chainscout import policies
from chainscout.compile import compiled
from chainscout.engine import Options, run
from chainscout.engine.cpu import State, prepare
from chainscout.random import alias

ROUNDS = 5

#: The largest allowed cost of a step, as a multiple of a loop that simulates and counts.
AIMS = {"scout": 2.3, "ba-mc": 2.8, "gini-ucb": 12, "certifier": 12}


# -- what it is compared with

_BARE = """
from chainscout.engine.cpu.layout import BASE, FOUR, GAMMA, POSITION, ROW, SIZE, START, record
from chainscout.random import MASK, mix, sample

def bare(steps, lanes, chains, head, table, words, rows):
    for lane in range(lanes):
        for step in range(steps):
            for chain in range(chains):
                word = record(lane, chain, chains)
                position = (words[word + POSITION] + words[word + GAMMA]) & MASK
                words[word + POSITION] = position
                size = words[word + SIZE]
                place = words[word + ROW]
                after = sample(mix(position), size, table, place + head)
                words[word + ROW] = words[word + START] + after * (size + head)
                rows[words[word + BASE] + place + head + after] += 1.0
"""


def bare_loop():
    """The bare loop counts in unsigned words as the engine's loops do, so it is compiled as one of them."""
    names = {"__name__": "chainscout.engine.bare"}
    exec(_BARE, names)
    return compiled(names["bare"], {}, cache=False)


BARE = bare_loop()


def bare(state: State, budget: int) -> None:
    prepared = state.prepared
    shape = (budget // prepared.chains, state.lanes, prepared.chains, prepared.loop.head)
    BARE(*(np.uint64(value) for value in shape), prepared.table, state.words, state.rows)


@njit(error_model="numpy")
def plain_loop(budget, tables, states, counts, positions, gammas):
    """Simulates and counts, in the usual way."""
    chains, size = len(states), np.uint64(tables.shape[1])
    for t in range(budget):
        k = t % chains
        positions[k] += gammas[k]
        z = positions[k]
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        column = ((z >> np.uint64(32)) * size) >> np.uint64(32)
        word = tables[k, states[k], column]
        stays = (z & np.uint64(0xFFFFFFFF)) < (word >> np.uint64(32))
        after = column if stays else word & np.uint64(0xFFFFFFFF)
        counts[k, states[k], after] += 1
        states[k] = after


def plain(problem: cs.Problem, budget: int, lanes: int) -> None:
    chains, size = len(problem), problem.sizes[0]
    tables = np.array([alias.table(chain.matrix).reshape(size, size) for chain in problem.chains.values()])
    gammas = np.full(chains, 0x9E3779B97F4A7C15, np.uint64)
    for lane in range(lanes):
        positions = np.arange(chains, dtype=np.uint64) + np.uint64(lane)
        counts = np.zeros((chains, size, size), np.int64)
        plain_loop(budget, tables, np.zeros(chains, np.int64), counts, positions, gammas)


def numpy_ba_mc(problem: cs.Problem, budget: int, seed: int = 0) -> float:
    """Seconds for a step of a typical NumPy program: arrays over all chains, every index recomputed at each step."""
    matrices = np.array([chain.matrix for chain in problem.chains.values()])
    chains, size, _ = matrices.shape
    cumulative, generator = matrices.cumsum(axis=2), np.random.default_rng(seed)
    state = generator.integers(size, size=chains)
    counts, alpha = np.ones((chains, size, size)), 1 / (3 * size)
    beta = 1.1 * np.log(np.ceil(np.log(budget) / np.log(1.1)) * 6 * chains * size**2 / 0.05)
    start = time.thread_time()
    for _ in range(budget):
        exits = counts.sum(axis=2)
        total = exits + alpha * size
        estimate = (counts + alpha) / total[:, :, None]
        spread = estimate * (1 - estimate)
        seen = exits > 0
        index = 2 * beta * (seen * spread.sum(axis=2)).sum(axis=1)
        index += 6.6 * beta**1.5 * (exits**1.5 / total**2 * np.sqrt(spread).sum(axis=2)).sum(axis=1)
        index += 28 * beta**2 * size * (seen / total).sum(axis=1)
        k = (index / exits.sum(axis=1)).argmax()
        new = min(int(np.searchsorted(cumulative[k, state[k]], generator.random())), size - 1)
        counts[k, state[k], new] += 1
        state[k] = new
    return (time.thread_time() - start) / budget


# -- measuring


def prepared_for(problem: cs.Problem, name: str, budget: int):
    return prepare(problem, policies.get(name), budget, Options())


def nanoseconds(
    problem: cs.Problem, names: list[str], budget: int, lanes: int, rounds: int = ROUNDS
) -> dict[str, float]:
    """Nanoseconds for a step: the best of ``rounds`` rounds in turn. 'bare' and 'plain' may be among the names."""
    ready = {name: prepared_for(problem, "uniform" if name in ("bare", "plain") else name, budget) for name in names}
    best = dict.fromkeys(names, np.inf)
    for turn in range(rounds + 1):
        for name, prepared in ready.items():
            state = State(prepared, turn, 0, lanes)
            state.rows.fill(0.0)  # touches the memory, so that no row pays for the first touch
            length = min(budget, 2 * len(problem) + 10) if turn == 0 else budget  # the first turn compiles
            start = time.thread_time()
            if name == "plain":
                plain(problem, length, lanes)
            elif name == "bare":
                bare(state, length)
            else:
                state.run(length)
            if turn:
                best[name] = min(best[name], (time.thread_time() - start) / (budget * lanes) * 1e9)
    return best


def small_problems() -> None:
    names = ["bare", "plain", "uniform", "scout", "ba-mc", "gafs-max", "gini-ucb", "certifier"]
    blocks = ["bare", "plain", "scout:block=0.01", "ba-mc:block=0.01"]
    rows = []
    for some, budget, lanes in ((names, 20_000, 32), (blocks, 1_000_000, 8)):
        found = nanoseconds(cs.problems.get("dirichlet"), some, budget, lanes)
        for name, time_ in found.items():
            ratios = [f"{time_ / found[to]:.2f}" for to in ("bare", "plain")]
            rows.append((name, f"{budget:,}", f"{time_:.1f}", *ratios, AIMS.get(name, "") if budget < 10**6 else ""))
    columns = ("policy", "n", "ns a step", "× bare", "× plain", "aim, × a loop that simulates and counts")
    record("A step, K = S = 5, one core", "make bench", columns, rows, ("numba", "numpy"))


def growth() -> None:
    rows, first = [], {}
    for chains in (10, 100, 1_000, 10_000, 100_000):
        problem = cs.problems.get("dirichlet", chains=min(chains, 1_000), states=10)
        if chains > 1_000:  # the same thousand matrices again and again; they still take their places in memory
            thousand = list(problem.chains.values())
            problem = cs.Problem({str(k): thousand[k % 1_000] for k in range(chains)})
        budget = max(20_000, 4 * chains)
        found = nanoseconds(
            problem, ["bare", "scout", "ba-mc"], budget, 8 if chains <= 10_000 else 4, 3 if chains < 10**5 else 2
        )
        first = first or found
        grown = {name: value / first[name] for name, value in found.items()}
        beyond = [f"{grown[name] / grown['bare']:.2f}" for name in ("scout", "ba-mc")]
        rows.append((f"{chains:,}", *(f"{value:.0f}" for value in found.values()), *beyond))
    columns = ("K", "bare, ns", "scout, ns", "ba-mc, ns", "scout's growth over bare's (≤ 3)", "ba-mc's")
    record("Growth in the number of chains, S = 10", "make bench", columns, rows, ("numba", "numpy"))
    rows = []
    for states in (5, 10, 50, 100, 200):
        problem = cs.problems.get("dirichlet", chains=5, states=states)
        found = nanoseconds(problem, ["bare", "scout", "ba-mc"], 20_000, 8)
        rows.append((states, *(f"{value:.1f}" for value in found.values()), f"{found['ba-mc'] / states:.2f}"))
    columns = ("S", "bare, ns", "scout, ns", "ba-mc, ns", "ba-mc, ns a state")
    record("Growth in the number of states, K = 5", "make bench", columns, rows, ("numba", "numpy"))


def against_numpy() -> None:
    rows = []
    for size, budget in ((5, 2_000), (50, 300)):
        problem = cs.problems.get("dirichlet", chains=size, states=size)
        slow = min(numpy_ba_mc(problem, budget) for _ in range(3)) * 1e9
        lanes = min(16, prepared_for(problem, "ba-mc", 20_000).lanes(16))
        fast = nanoseconds(problem, ["ba-mc"], 20_000, lanes)["ba-mc"]
        rows.append(
            (f"K = S = {size}", f"{slow:,.0f}", f"{fast:.1f}", f"{slow / fast:,.0f}", 1_000 if size == 5 else "10,000")
        )
    columns = ("problem", "NumPy, ns a step", "engine, ns a step", "ratio", "aim ≥")
    record("ba-mc against vectorised NumPy", "make bench", columns, rows, ("numba", "numpy"))


def threads_and_start() -> None:
    problem = cs.problems.get("dirichlet")
    run(problem, "ba-mc", [1_000], range(4))

    def task(first: int) -> None:
        run(problem, "ba-mc", [20_000], range(first, first + 32))

    def seconds(workers: int) -> float:
        start = time.perf_counter()
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(task, range(0, 32 * 8, 32)))
        return time.perf_counter() - start

    one, two = (min(seconds(workers) for _ in range(3)) for workers in (1, 2))
    rows = [
        ("one thread, s", f"{one:.2f}", ""),
        ("two threads, s", f"{two:.2f}", ""),
        ("gain", f"{one / two:.2f}", "≥ 1.8"),
    ]
    script = (
        "import time, numba; start = time.process_time(); import chainscout as cs; from chainscout.engine import run;"
        " run(cs.problems.get('dirichlet'), 'ba-mc', [1000], range(4)); print(time.process_time() - start)"
    )
    first = min(
        float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )
    rows.append(
        (
            "first call in a fresh process, warm cache, after numba's import, s of processor time",
            f"{first:.2f}",
            "≤ 0.5",
        )
    )
    record("Threads, and the first call", "make bench", ("what", "measured", "aim"), rows, ("numba", "numpy"))


def generators() -> None:
    """A draw and its use in the bare loop, for three counter-based generators."""
    found = {name: generator_nanoseconds(loop) for name, loop in GENERATORS.items()}
    rows = [(name, f"{value:.2f}") for name, value in found.items()]
    record("A 64-bit draw of a counter-based generator", "make bench", ("generator", "ns"), rows, ("numba",))


def generator_nanoseconds(loop) -> float:
    number, best = 2_000_000, np.inf
    for turn in range(ROUNDS + 1):
        start = time.thread_time()
        loop(np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC58EFD154CE32F6D), number)
        if turn:
            best = min(best, (time.thread_time() - start) / number * 1e9)
    return best


@njit
def splitmix(position, gamma, number):
    """SplitMix64 (Steele, Lea & Flood 2014)."""
    total = np.uint64(0)
    for _ in range(number):
        position += gamma
        z = (position ^ (position >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        total ^= z ^ (z >> np.uint64(31))
    return total


@njit
def squares(counter, key, number):
    """squares64 (Widynski 2020), five rounds."""
    total, half = np.uint64(0), np.uint64(32)
    for _ in range(number):
        counter += np.uint64(1)
        x = counter * key
        y = x
        z = y + key
        x = x * x + y
        x = (x >> half) | (x << half)
        x = x * x + z
        x = (x >> half) | (x << half)
        x = x * x + y
        x = (x >> half) | (x << half)
        x = x * x + z
        t = x
        x = (x >> half) | (x << half)
        total ^= t ^ ((x * x + y) >> half)
    return total


@njit
def philox(counter, key, number):
    """Philox 4×32-10 (Salmon et al. 2011): two 64-bit draws a block."""
    total, half, low = np.uint64(0), np.uint64(32), np.uint64(0xFFFFFFFF)
    for _ in range(number // 2):
        counter += np.uint64(1)
        a, b, c, d = counter & low, counter >> half, np.uint64(0), np.uint64(0)
        k0, k1 = key & low, key >> half
        for _ in range(10):
            p, q = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
            a, b, c, d = (q >> half) ^ b ^ k0, q & low, (p >> half) ^ d ^ k1, p & low
            k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
        total ^= ((a << half) | b) ^ ((c << half) | d)
    return total


GENERATORS = {"SplitMix64": splitmix, "Squares (64 bits)": squares, "Philox 4×32-10": philox}


def main() -> None:
    generators()
    small_problems()
    against_numpy()
    threads_and_start()
    growth()


if __name__ == "__main__":
    main()
