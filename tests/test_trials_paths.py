"""Whole paths on trial: what is recorded of them is what the package would say after every transition."""

import math

import numpy as np
import pytest
from trial_samples import CHAINS, ENGINE

from chainscout import engine, problems
from chainscout.certificates import mixture, paper, sharp
from chainscout.chains import MarkovChain
from chainscout.counts import Counts
from chainscout.guarantees import lemma_8, on_event_c
from chainscout.losses import loss
from trials import heights, paths


def simulated(matrix, observations, seed):
    rng = np.random.default_rng(seed)
    path = [0]
    for _ in range(observations - 1):
        path.append(int(rng.choice(len(matrix), p=matrix[path[-1]])))
    return np.array(path, np.int64)


def prefixes(path, size):
    counts = Counts(size)
    counts.record(int(path[0]))
    for state in path[1:]:
        counts.record(int(state))
        yield counts


def shortfall(matrix, counts, level):
    """What the proof of Lemma 8 says is ≤ 12, largest over the entries of the states left."""
    n, estimate = counts.exits[:, None], counts.matrix()
    variance, weight = estimate * (1 - estimate), 1 / 3
    values = (n + weight) * (matrix * (1 - matrix) - variance) - np.sqrt(8 * level * n * variance)
    return values[counts.exits > 0].max()


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("level", "log_inverse"), [(0.2, 0.01), (3.0, math.log(2)), (9.0, math.log(20))])
def test_a_path_is_looked_at_as_the_package_would_after_every_transition(name, level, log_inverse):
    """Levels far too small are among them, so that events fail and certificates are missed."""
    chain = MarkovChain(CHAINS[name])
    path = simulated(chain.matrix, 80, seed=len(name))
    found = paths.follow_path(path, chain.matrix, level, log_inverse, ENGINE)
    on_event, ratios, missed, lower, below, rises, short, third = True, [], [], [], 0, 0, [], None
    for counts in prefixes(path, chain.size):
        on_event &= on_event_c(chain, counts, level)
        now, bound = loss(chain, counts), paper.bound(counts, level)
        ratios.append(now / bound)
        missed.append(now / mixture.bound_from_exits(counts.visited_exits(), chain.size, log_inverse))
        lower.append(lemma_8(chain, counts.exits, level)[0] / bound)
        plain = loss(chain, counts, alpha=0)
        below += now < plain * (1 - 1e-9)
        short.append(shortfall(chain.matrix, counts, level))
        before, third = third, sum(1 / (n + 1 / 3) for n in counts.visited_exits()) / counts.total
        rises += before is not None and third > before * (1 + 1e-9)
    close = {"rel": 1e-9, "abs": 1e-9}
    assert (found[paths.EVENT] <= 1) == on_event
    assert found[paths.PAPER] == pytest.approx(max(ratios), **close)
    assert found[paths.LOWER] == pytest.approx(max(lower), **close)
    assert (found[paths.RISES], found[paths.BELOW]) == (rises, below)
    assert found[paths.SHORTFALL] == pytest.approx(max(short), **close)
    assert found[paths.LOSS] == pytest.approx(79 * now, **close)
    assert found[paths.PLAIN] == pytest.approx(79 * plain, **close)
    assert found[paths.END_PAPER] == pytest.approx(ratios[-1], **close)
    assert found[paths.END_MIXTURE] == pytest.approx(missed[-1], **close)
    # Where a miss is impossible the mixture certificate is not evaluated, and no miss is left out.
    if max(missed) > 1:
        assert found[paths.MIXTURE] == pytest.approx(max(missed), **close)
    else:
        assert found[paths.MIXTURE] <= 1


def test_small_levels_do_fail():
    """The test above sees both sides of every inequality."""
    fair = CHAINS["fair coin"]
    found = np.array([paths.follow_path(simulated(fair, 80, s), fair, 0.2, 0.01, ENGINE) for s in range(10)])
    assert (found[:, paths.EVENT] > 1).any()
    assert (found[:, paths.MIXTURE] > 1).any()
    assert (found[:, paths.RISES] > 0).any()


def test_the_paths_are_those_of_the_engine():
    problem, observations = problems.get("unlike"), 40
    found = paths.followed(problem, observations, 6, 0.05, seed=5, engine=ENGINE)
    losses, pulls = engine.run(problem, "uniform", [3 * observations], range(6), engine.Options(seed=5, engine=ENGINE))
    assert (pulls == observations).all()
    assert found[:, :, paths.LOSS] / (observations - 1) == pytest.approx(losses[0], rel=1e-9)


def test_interpreted_and_compiled_agree_to_the_bit_and_no_split_matters():
    problem = problems.get("two-state")
    first = paths.followed(problem, 50, 5, 0.05, seed=1, engine=ENGINE)
    assert (first == paths.followed(problem, 50, 5, 0.05, seed=1, engine="python")).all()
    assert (first[:2] == paths.followed(problem, 50, 2, 0.05, seed=1, engine=ENGINE)).all()
    cut = paths.in_parallel(lambda some: list(some), 7, 3)
    assert cut == [[0, 1, 2], [3, 4, 5], [6]]


def test_without_the_mixture_the_rest_is_the_same():
    problem = problems.get("two-state")
    full, bare = (paths.followed(problem, 50, 3, 0.05, engine=ENGINE, mixture=m) for m in (True, False))
    others = [c for c in range(paths.RECORDED) if c not in (paths.MIXTURE, paths.END_MIXTURE)]
    assert (full[:, :, others] == bare[:, :, others]).all()
    assert (bare[:, :, [paths.MIXTURE, paths.END_MIXTURE]] == 0).all()


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("log_inverse", [0.01, math.log(20)])
def test_the_sharp_certificate_is_looked_at_where_the_loss_is_at_a_new_height(name, log_inverse):
    chain = MarkovChain(CHAINS[name])
    path = simulated(chain.matrix, 60, seed=len(name))
    highest, ratios = 0.0, []
    for counts in prefixes(path, chain.size):
        excess = counts.total * loss(chain, counts)
        if excess > heights.RISE * highest or counts.total == len(path) - 1:
            ratios.append(loss(chain, counts) / sharp.bounds([counts], log_inverse)[0].loss)
            highest = max(highest, excess)
    assert len(ratios) > 3
    for engine_name in {ENGINE, "python"}:
        found = heights.quotients(path, chain.matrix, log_inverse, engine_name)
        assert found == pytest.approx((max(ratios), ratios[-1]), rel=1e-9)


def test_a_sharp_certificate_that_is_too_small_is_caught():
    """At δ = 0.99 the bound is missed now and then: the trial sees it."""
    fair = CHAINS["fair coin"]
    found = [heights.quotients(simulated(fair, 60, s), fair, 0.01, ENGINE)[0] for s in range(60)]
    assert max(found) > 1


def test_the_sharp_trial_is_on_the_paths_of_the_engine():
    problem = problems.get("two-state")
    found = heights.looked_at(problem, 40, 3, 0.05, 5, ENGINE)
    whole = paths.followed(problem, 40, 3, 0.05, seed=5, engine=ENGINE)
    losses, _ = engine.run(problem, "uniform", [3 * 40], range(3), engine.Options(seed=5, engine=ENGINE))
    assert found.shape == (3, 3, 2)
    assert (found[:, :, 1] <= found[:, :, 0]).all()
    assert whole[:, :, paths.LOSS] / 39 == pytest.approx(losses[0], rel=1e-9)
    # b, as it follows from L/b and from L: those of whole counts of 39 transitions, at δ/K.
    bounds = losses[0] / found[:, :, 1]
    assert ((bounds >= losses[0]) & (bounds <= 2)).all()
    again = heights.looked_at(problem, 40, 1, 0.05, 5, ENGINE)
    assert (again == found[:1]).all()
