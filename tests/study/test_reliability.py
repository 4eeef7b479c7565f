"""Workers with simulators of their own are killed at random: no count is wrong, and the bounds hold."""

import random

import pytest
from reliability_trial import CHAINS, SIZES, Simulator, Trial, run
from scipy.stats import binom
from study_places import set_clock

from chainscout.study import Study


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, folder):
    return folder / "study.db" if request.param == "sqlite" else request.getfixturevalue("server").address()


def test_eight_workers_on_three_chains_are_killed(where, folder):
    assert run(where, folder, kills=12, budget=1_500, seed=1) == 0


@pytest.mark.soak
def test_two_hundred_kills(where, folder):
    assert run(where, folder, kills=200, budget=20_000, seed=2) == 0


@pytest.mark.soak
def test_two_hundred_kills_and_ten_restarts_of_the_server(own_server, folder):
    where = own_server.address()
    assert run(where, folder, kills=200, budget=20_000, seed=3, restart=own_server.restart, restarts=10) == 0


def most(runs, delta):
    """What a binomial number of misses exceeds with probability 1/1000."""
    return int(binom.ppf(0.999, runs, delta))


@pytest.mark.soak
def test_the_bounds_hold_over_two_hundred_trials(folder):
    missed = 0
    for seed in range(200):
        place = folder / str(seed)
        place.mkdir()
        missed += run(place / "study.db", place, kills=20, budget=1_500, seed=seed) > 0
    assert missed <= most(200, 0.05)


# -- the same program in one process, many times, looked at all the time


def naive_run(seed, steps, lie=False):
    """Workers come, take turns at random and vanish without a word; ``lie``: they say that they continue a path.

    Gives whether a bound ever failed, at any of many looks.
    """
    rng = random.Random(seed)
    now = 0.0
    study = Study.create(None, SIZES, delta=0.05)
    set_clock(study, now)
    crew = []
    for step in range(steps):
        if len(crew) < 4 or rng.random() < 0.02:  # a worker is started, or dies and is started again
            if len(crew) == 4:
                crew.pop(rng.randrange(4))
            simulators = {name: Simulator(CHAINS[name], f"{seed} {step} {name}") for name in CHAINS}
            crew.append((study.worker("rig", renews=False), simulators))
        worker, simulators = rng.choice(crew)
        if lie:  # every turn is a new worker object that claims the path of the one before it
            worker = study.worker("rig", renews=False)
        lease = worker.lease(seconds=10.0, continuing=lie)
        state = simulators[lease.chain].advance()
        if rng.random() < 0.05:  # this one forgets its lease, and its draw is lost
            now += 20.0
            set_clock(study, now)
            continue
        lease.tell(state)
        if step % 50 == 49 and Trial.misses(study):
            return True
    study.audit()
    return False


def naive_misses(runs, steps, lie=False):
    return sum(naive_run(seed, steps, lie) for seed in range(runs))


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")  # it breaks off after one observation too
def test_the_naive_program_is_right():
    assert naive_misses(20, 600) <= most(20, 0.05)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
def test_the_naive_program_is_right_five_hundred_times():
    assert naive_misses(500, 1_500) <= most(500, 0.05)


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
def test_whoever_says_falsely_that_a_path_continues_breaks_the_bounds():
    """The trial can fail: four workers of one name that claim each other's paths."""
    assert naive_misses(5, 3_000, lie=True) >= 4
