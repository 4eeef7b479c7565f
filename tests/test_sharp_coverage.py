"""How often the sharp certificate fails, over whole paths (see test_certificate_coverage for how it is judged).

Chains of 2 to 10 states, nearly deterministic and skewed ones too; one chain, or several of which the next is chosen
adaptively: the largest bound, or, to be hostile, the chain whose loss is nearest to its bound, restarted at will in the
state whose row is worst known. A miss is a path on which a loss was above its bound even once.

Every step is looked at. T·b hardly changes from one step to the next. So b itself is computed at the steps of a
schedule, and at every other step at which T·L is above SCREEN times the last T·b. That leaves nothing out as long as
T·b does not fall to SCREEN of itself between two computations: whenever it is computed, it must be above FALL of the
last one.
"""

import math

import numpy as np
import pytest
import simulation
from test_certificate_coverage import CHAINS, DELTA, SETS, check, lower_bound

from chainscout.certificates import sharp
from chainscout.counts import Counts

PATHS, LENGTH = (25, 300) if simulation.COMPILED else (1, 25)
SOAK = 40

SCREEN, FALL = 0.4, 0.6


def looked_at(transitions):
    """Whether b is computed at this step in any case: at the first ones, and then whenever there are 4 % more."""
    return transitions <= 30 or transitions % max(1, transitions // 25) == 0


def row_losses(counts, matrix):
    """N_x‖P̂(x,·) − P(x,·)‖² of every row."""
    exits = counts.sum(axis=1)
    estimate = (counts + 1 / (3 * len(matrix))) / (exits[:, None] + 1 / 3)
    return exits * ((estimate - matrix) ** 2).sum(axis=1)


def worst_ratio(names, hostile, delta, rng, length):
    """The largest L/b on one path of the whole set."""
    chains = [CHAINS[name].matrix for name in names]
    log_inverse = math.log(len(chains) / delta)
    counts = [np.zeros(matrix.shape) for matrix in chains]
    states = [int(rng.integers(len(matrix))) for matrix in chains]
    key = [math.inf] * len(chains)
    last = [math.inf] * len(chains)  # T·b when it was last computed
    worst = 0.0
    for _ in range(length * len(chains)):
        k = int(np.argmax(key))
        matrix, table = chains[k], counts[k]
        if hostile and rng.random() < 0.2:
            states[k] = int(row_losses(table, matrix).argmax())
        x = states[k]
        y = int(rng.choice(len(matrix), p=matrix[x]))
        table[x, y] += 1
        states[k] = y
        total = int(table.sum())
        loss = float(row_losses(table, matrix).sum())
        if last[k] == math.inf or looked_at(total) or loss > SCREEN * last[k]:
            bound = total * sharp.Bounds(Counts.from_transitions(table), log_inverse).loss
            if last[k] < math.inf:
                assert bound > FALL * last[k]
            last[k] = bound
        worst = max(worst, loss / last[k])
        key[k] = loss / last[k] if hostile else last[k] / total
    return worst


def whole_paths(names, hostile, delta, paths, seed, length=LENGTH):
    rng = np.random.default_rng(seed)
    worst = np.array([worst_ratio(names, hostile, delta, rng, length) for _ in range(paths)])
    check(f"{', '.join(names)}, δ = {delta}, sharp, largest L/b {worst.max():.3f}", worst > 1, delta)
    assert (worst > 0).all()
    return worst


@pytest.mark.parametrize("delta", [DELTA, 0.5])
@pytest.mark.parametrize("name", CHAINS)
def test_one_chain(name, delta):
    few = 6 if CHAINS[name].size == 10 else PATHS
    whole_paths([name], False, delta, min(few, PATHS), 1)


@pytest.mark.parametrize("hostile", [False, True], ids=["largest bound", "nearest to its bound, restarted"])
@pytest.mark.parametrize("names", SETS)
def test_adaptive_sampling(names, hostile):
    for delta in (DELTA, 0.5):
        whole_paths(SETS[names], hostile, delta, max(1, PATHS // 3), 2, LENGTH // 2)


def test_a_bound_that_is_too_small_would_be_caught():
    worst = whole_paths(["fair coin"], True, DELTA, 12 * PATHS, 3, 120)
    # What half of the certificate would miss; the few paths without a compiler show a tenth of it only.
    missed = worst > (1 / 2 if simulation.COMPILED else 1 / 10)
    assert lower_bound(int(missed.sum()), len(missed)) > DELTA


@pytest.mark.soak
@pytest.mark.parametrize("delta", [DELTA, 0.5])
@pytest.mark.parametrize("name", CHAINS)
def test_one_chain_in_full(name, delta):
    whole_paths([name], False, delta, SOAK * PATHS, 11)


@pytest.mark.soak
@pytest.mark.parametrize("hostile", [False, True], ids=["largest bound", "nearest to its bound, restarted"])
@pytest.mark.parametrize("names", SETS)
def test_adaptive_sampling_in_full(names, hostile):
    for delta in (DELTA, 0.5):
        whole_paths(SETS[names], hostile, delta, SOAK * PATHS, 13)
