"""How often a certificate fails, over whole paths: a miss is a path on which the bound was below the loss even once.

A guarantee says that misses have probability ≤ δ. Paths are independent, so their number is binomial, and a test fails
when the one-sided 99.9 % Clopper–Pearson lower bound of the miss rate is above δ: for a certificate whose miss rate is
exactly δ that happens with probability 1/1000, and the seeds are fixed. `make soak` takes 20 times the paths.
"""

import math

import numpy as np
import pytest
import simulation
from scipy.stats import beta as beta_law

from chainscout.certificates import certify, entrywise
from chainscout.chains import MarkovChain
from chainscout.counts import Counts
from chainscout.guarantees import beta, on_event_c
from chainscout.losses import loss

DELTA = 0.05
SKEWED = [[0.7, 0.295, 0.005], [0.295, 0.7, 0.005], [0.5, 0.5, 0.0]]
CHAINS = {
    "ordinary": MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]]),
    "nearly deterministic": MarkovChain(0.98 * np.roll(np.eye(5), 1, axis=1) + 0.02 / 5),
    "skewed": MarkovChain(SKEWED),
    "two states": MarkovChain([[0.9, 0.1], [0.4, 0.6]]),
    "fair coin": MarkovChain(np.full((2, 2), 0.5)),
    "ten states": MarkovChain(np.random.default_rng(20).dirichlet(np.ones(10), 10)),
    "uniform rows": MarkovChain(np.full((5, 5), 0.2)),
}
# Sets of chains for adaptive sampling, of unlike sizes too.
SETS = {
    "equal": ["fair coin", "fair coin", "fair coin"],
    "unlike": ["two states", "skewed", "nearly deterministic"],
}
#: Paths and transitions of a quick run; with compilation off, far fewer.
PATHS, LENGTH, EVERY = (2_000, 2_000, 300) if simulation.COMPILED else (12, 300, 60)
SOAK = 20


def test_the_skewed_chain_is_skewed():
    assert CHAINS["skewed"].stationary.min() < 0.01


def lower_bound(misses, paths):
    """The one-sided 99.9 % Clopper–Pearson lower bound of a miss rate."""
    return float(beta_law.ppf(0.001, misses, paths - misses + 1)) if misses else 0.0


def check(label, missed, delta):
    """Print one line of the table, and hold the miss rate to δ."""
    misses, paths = int(np.sum(missed)), len(missed)
    lowest = lower_bound(misses, paths)
    print(f"{label:50s} {misses:6d} misses of {paths:6d} = {misses / paths:.4f}, above {lowest:.4f}, allowed {delta}")
    assert lowest <= delta


def worst_ratios(names, rule, delta, paths, seed):
    """The largest L/b on each path, for `mixture` and `paper`, δ shared by the chains."""
    chains = [CHAINS[name] for name in names]
    log_inverse = math.log(len(chains) / delta)
    level = beta(LENGTH + len(chains), delta, sum(chain.size**2 for chain in chains))
    rng = np.random.default_rng(seed)
    found = []
    for start in range(0, paths, 500):  # in pieces: the random numbers take memory
        uniforms = rng.random((min(500, paths - start), len(chains), LENGTH + 1))
        arrays = simulation.stacked(chains)
        found.append(simulation.follow(*arrays, uniforms, rule, log_inverse, level, EVERY))
    return np.concatenate(found)


def whole_paths(names, rule, delta, paths, seed, label):
    worst = worst_ratios(names, rule, delta, paths, seed)
    for column, method in ((simulation.MIXTURE, "mixture"), (simulation.PAPER, "paper")):
        check(f"{label}, {method}, largest L/b {worst[:, column].max():.3f}", worst[:, column] > 1, delta)
    return worst


# ---------------------------------------------------------------- mixture and paper


@pytest.mark.parametrize("name", CHAINS)
def test_one_chain(name):
    worst = whole_paths([name], simulation.LARGEST, DELTA, PATHS, 1, name)
    # What was followed is the loss: no bound is met, and none is out of sight.
    assert (worst > 0).all()


@pytest.mark.parametrize("name", ["fair coin", "two states", "ordinary"])
def test_one_chain_at_a_large_delta(name):
    """The bound is least slack here: at δ = ½ a mistake of a factor two would show."""
    whole_paths([name], simulation.LARGEST, 0.5, PATHS, 2, name)


def test_a_bound_that_is_too_small_would_be_caught():
    worst = worst_ratios(["fair coin"], simulation.LARGEST, DELTA, PATHS, 1)[:, simulation.MIXTURE]
    # What half the certificate would miss; the few paths without a compiler show a tenth of it only.
    missed = worst > (1 / 2 if simulation.COMPILED else 1 / 10)
    assert lower_bound(int(missed.sum()), len(missed)) > DELTA


@pytest.mark.parametrize(
    "rule", [simulation.LARGEST, simulation.NEAREST], ids=["largest bound", "nearest to its bound"]
)
@pytest.mark.parametrize("names", SETS)
def test_adaptive_sampling(names, rule, request):
    whole_paths(SETS[names], rule, DELTA, PATHS // 2, 3, request.node.callspec.id)


@pytest.mark.soak
@pytest.mark.parametrize("name", CHAINS)
def test_one_chain_in_full(name):
    whole_paths([name], simulation.LARGEST, DELTA, SOAK * PATHS, 11, name)
    whole_paths([name], simulation.LARGEST, 0.5, SOAK * PATHS, 12, name)


@pytest.mark.soak
@pytest.mark.parametrize(
    "rule", [simulation.LARGEST, simulation.NEAREST], ids=["largest bound", "nearest to its bound"]
)
@pytest.mark.parametrize("names", SETS)
def test_adaptive_sampling_in_full(names, rule, request):
    for delta in (DELTA, 0.5):
        whole_paths(SETS[names], rule, delta, SOAK * PATHS // 2, 13, request.node.callspec.id)


# ---------------------------------------------------------------- entries, and what follows from them


def tables_of(chain, paths, times, seed):
    uniforms = np.random.default_rng(seed).random((paths, times[-1] + 1))
    return simulation.snapshots(simulation.cumulated(chain.matrix), uniforms, times)


def interval_table(tables, level):
    """The package's intervals for the pairs (N[x,y], N_x) that occur, each computed once, as a function."""
    exits = np.broadcast_to(tables.sum(axis=-1, keepdims=True), tables.shape)
    most = int(exits.max()) + 1
    # 0 of n stands for the states never seen from x (entrywise.row_bounds).
    keys = np.unique(np.concatenate([(exits * most + tables).ravel(), (exits * most).ravel()]))
    low, high = entrywise.intervals(keys % most, keys // most, level)

    def look_up(successes, trials, log_inverse, holes=0):
        assert log_inverse == level
        assert not np.any(holes)
        place = np.searchsorted(keys, np.asarray(trials).astype(int) * most + np.asarray(successes).astype(int))
        return low[place], high[place]

    return look_up


def entries(name, paths, length, every, seed, monkeypatch):
    """Entry intervals at each time of a grid; for a quarter of the paths, at every eighth, what follows from them."""
    chain, level = CHAINS[name], math.log(CHAINS[name].size ** 2 / DELTA)
    times = simulation.grid(every, length, 0.02)
    missed, below, outside = [], [], []
    for piece in range(0, paths, 200):
        tables = tables_of(chain, min(200, paths - piece), times, seed + piece)
        look_up = interval_table(tables, level)
        low, high = look_up(tables, tables.sum(axis=-1, keepdims=True), level)
        missed.extend(((chain.matrix < low) | (chain.matrix > high)).any(axis=(1, 2, 3)).tolist())
        with monkeypatch.context() as patch:
            patch.setattr(entrywise, "intervals", look_up)
            for path, misses in zip(tables[::4, ::8], missed[piece::4], strict=True):
                counts = [Counts.from_transitions(table) for table in path]
                below.append(any(certify({name: c}, DELTA, "entrywise").max < loss(chain, c) for c in counts))
                outside.append(not all(on_event_c(chain, c, beta(length + 1, DELTA, chain.size**2)) for c in counts))
                # The certificate follows from the intervals, so it cannot fail where they hold.
                assert misses or not below[-1]
    check(f"{name}, entry intervals", missed, DELTA)
    check(f"{name}, entrywise", below, DELTA)
    check(f"{name}, event C", outside, DELTA)


ENTRY_PATHS, ENTRY_LENGTH, ENTRY_EVERY = (200, 2_000, 200) if simulation.COMPILED else (10, 200, 40)


@pytest.mark.parametrize("name", CHAINS)
def test_entries(name, monkeypatch):
    entries(name, ENTRY_PATHS, ENTRY_LENGTH, ENTRY_EVERY, 4, monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("name", CHAINS)
def test_entries_in_full(name, monkeypatch):
    entries(name, SOAK * ENTRY_PATHS, ENTRY_LENGTH, ENTRY_EVERY, 14, monkeypatch)


# ---------------------------------------------------------------- asymptotic: not guaranteed

#: (chain, target) → the miss rate at δ = 5 % that 4,000 paths gave (`make soak` measures it again). MATH §7 knows of 0
#: to 5.3 %. The two-state chain has three times δ: one path in ten begins with 15 steps from the first state to itself,
#: and then the estimated variance is so small that the target seems to be met.
RATES = {
    ("ordinary", 0.01): 0.046,
    ("two states", 0.01): 0.152,
    ("skewed", 0.03): 0.070,
    ("ten states", 0.03): 0.025,
    ("nearly deterministic", 0.002): 0.0,
}
STOPS = 200 if simulation.COMPILED else 8


def stopped(name, target, paths, seed):
    """Whether the loss is above the target when the asymptotic certificate first meets it, and when that is."""
    chain, times = CHAINS[name], simulation.grid(20, 4_000, 0.05)
    missed, ends = [], []
    for piece in range(0, paths, 200):
        for tables in tables_of(chain, min(200, paths - piece), times, seed + piece):
            counts = (Counts.from_transitions(table) for table in tables)
            end = next(c for c in counts if certify({name: c}, DELTA, "asymptotic").max <= target)
            missed.append(loss(chain, end) > target)
            ends.append(end.total)
    return np.array(missed), np.array(ends)


def check_rate(name, target, paths, seed):
    """The recorded rate lies in the two-sided 99.9 % Clopper–Pearson interval of what is measured now."""
    missed, ends = stopped(name, target, paths, seed)
    misses = int(missed.sum())
    low = beta_law.ppf(0.0005, misses, paths - misses + 1) if misses else 0.0
    high = beta_law.ppf(0.9995, misses + 1, paths - misses)
    print(f"{name}, asymptotic, target {target}: {misses} misses of {paths} = {misses / paths:.4f},", end=" ")
    print(f"in {low:.4f} to {high:.4f}; it stops at T = {np.median(ends):.0f} (median)")
    assert low <= RATES[name, target] <= high
    return low


@pytest.mark.parametrize(("name", "target"), RATES)
def test_asymptotic_at_its_stopping_time(name, target):
    check_rate(name, target, STOPS, 5)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "target"), RATES)
def test_asymptotic_at_its_stopping_time_in_full(name, target):
    low = check_rate(name, target, SOAK * STOPS, 1_000_000)
    # Not a guarantee, and called so: on two of these chains it misses more often than δ, for certain.
    assert (low > DELTA) == (name in ("two states", "skewed"))
