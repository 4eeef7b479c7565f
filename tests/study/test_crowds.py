"""Bounds hold whatever a crowd of walkers does: durations that depend on outcomes, leases that expire, walkers that
hold back, nights without machines (MATH §15). All goes through the public surface; `make soak` takes the full size.
"""

import heapq
import itertools
import random

import numpy as np
import pytest
from scipy.stats import binom
from study_places import set_clock

import chainscout as cs
from chainscout.errors import LeaseLost, NothingFree

DELTA = 0.1
#: How often a step goes to 1, whatever state it leaves. Such a step is slow.
SLOW = 0.3
LAW = np.array([[1 - SLOW, SLOW], [1 - SLOW, SLOW]])
CHAIN = cs.MarkovChain(LAW)
QUESTION = "reach 1 from 0 within 2"
#: What makes the walkers hostile.
KINDS = ["slow ones", "expiry", "held back", "nights"]


class Walker:
    """One machine. It holds a lease of one step after the other, on a path of its own."""

    def __init__(self, study, name, rng):
        self.worker, self.rng = study.worker(name, renews=False), rng
        self.lease, self.outcome = None, 0

    def begin(self, seconds):
        """Asks for the next step, and makes it. Returns whether it may."""
        try:
            self.lease = self.worker.lease(seconds, chain="a", wait=0)
        except NothingFree:  # the steps under way may be enough for the target
            return False
        self.outcome = int(self.rng.random() < SLOW)
        return self.lease is not None


def crowd(study, walkers, kind, seed, told, look=lambda study: None, every=40):
    """Lets walkers tell so many observations, or until the study is finished; looks at it now and then.

    A step to 1 takes an hour and a step to 0 a second, but for one walker alone: it is only twice as slow.
    """
    rng, tie = random.Random(seed), itertools.count()
    slow = 3600.0 if walkers > 1 else 2.0
    seconds = 600.0 if kind == "expiry" else 1e7
    now, events, number = 0.0, [], 0
    for place in range(walkers):
        heapq.heappush(events, (rng.random(), next(tie), Walker(study, f"walker {place}", rng), True))
    while number < told:
        if study.chain("a").aside:  # too many paths in a row were lost
            study.take_up("a")
        if study.finished:
            break
        now, _, walker, begins = heapq.heappop(events)
        set_clock(study, now)
        if begins:
            if not walker.begin(seconds):
                heapq.heappush(events, (now + 100.0, next(tie), walker, True))
                continue
            takes = (slow if walker.outcome else 1.0) * rng.uniform(0.9, 1.1)
            if kind == "held back" and walker.outcome and rng.random() < 0.5:
                takes *= 50.0  # it looks at what the others have told, and waits
            heapq.heappush(events, (now + takes, next(tie), walker, False))
            continue
        if kind == "nights" and rng.random() < 0.02 * (1 + 3 * walker.outcome):  # the machine is off before it tells
            walker.lease.restart(lost=True)
            walker.lease.give_back()
        else:
            try:
                walker.lease.tell(walker.outcome)
                number += 1
                if number % every == 0:
                    look(study)
            except LeaseLost:  # the lease has run out: the step is lost
                pass
        heapq.heappush(events, (now, next(tie), walker, True))
    look(study)
    return study


class Watch:
    """Looks at bounds, and notes whether one of each kind was wrong at any look."""

    def __init__(self):
        self.missed = dict.fromkeys(("certificate", "interval", "answer"), False)
        self.least = 2.0
        self.all_told = False

    def __call__(self, study):
        counts = study.counts("a")
        if counts.total:
            bound = study.certificate().loss["a"]
            self.least = min(self.least, bound)
            self.missed["certificate"] |= cs.loss(CHAIN, counts) > bound
            estimate = study.estimate("a")
            self.missed["interval"] |= bool(((estimate.lower > LAW) | (estimate.upper < LAW)).any())
            everything = study.counts("a", everything=True)
            wrong = cs.certify({"a": everything}, DELTA, "mixture").loss["a"]
            self.all_told |= cs.loss(CHAIN, everything) > wrong
        found = study.answer("a", QUESTION)
        truth = 1 - (1 - SLOW) ** 2
        self.missed["answer"] |= not found.lower <= truth <= found.upper


def watched(where, walkers, kind, seed, told, method="mixture"):
    watch = Watch()
    study = cs.Study.create(where, {"a": 2}, delta=DELTA, certificate=method, questions=[QUESTION])
    crowd(study, walkers, kind, seed, told, watch)
    study.close()
    return watch


def most(runs, delta=DELTA):
    """What a binomial number of misses exceeds with probability 1/1000."""
    return int(binom.ppf(0.999, runs, delta))


def hold(walkers, kind, runs, told, method="mixture"):
    found = [watched(None, walkers, kind, f"{kind} {seed}", told, method) for seed in range(runs)]
    for what in found[0].missed:
        assert sum(watch.missed[what] for watch in found) <= most(runs), what
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("walkers", [1, 8, 20, 40])
def test_bounds_hold_at_every_look(walkers, kind):
    found = hold(walkers, kind, 6, 160)
    if walkers == 1 or kind == "slow ones":  # the bounds say something
        assert min(watch.least for watch in found) < 0.5


def test_bounds_of_everything_that_was_told_would_not_hold():
    """The trial can fail: 40 walkers whose slow values have not come."""
    found = [watched(None, 40, "slow ones", seed, 300) for seed in range(8)]
    assert sum(watch.all_told for watch in found) >= 7
    assert sum(watch.missed["certificate"] for watch in found) <= most(8)


@pytest.mark.parametrize("walkers", [8, 20])
def test_the_certificate_that_keeps_the_law_holds(walkers):
    hold(walkers, "slow ones", 3, 160, "sharp")


#: Where every third step is lost, no number of observations is enough for a small target.
STOPS = ["slow ones", "held back", "nights"]


@pytest.mark.parametrize("kind", STOPS)
def test_a_study_that_stops_has_reached_its_target(kind):
    """At the stop, and for the counts that the study then has."""
    runs, missed, target = 5, 0, 0.2
    for seed in range(runs):
        study = cs.Study.create(None, {"a": 2}, delta=DELTA, certificate="mixture", target_loss=target)
        crowd(study, 8, kind, seed, 1_500)
        assert study.finished
        assert study.certificate().loss["a"] <= target
        missed += cs.loss(CHAIN, study.counts("a")) > target
    assert missed <= most(runs)


def seen(study):
    counts, found = study.counts("a"), study.answer("a", QUESTION)
    return study.certificate().loss, counts.rows(), dict(counts.holes), (found.lower, found.upper), study.checks()


@pytest.mark.parametrize("kind", KINDS)
def test_every_place_says_the_same(place, kind):
    """So what holds in memory holds in a file and on a server."""
    given = {"delta": DELTA, "certificate": "mixture", "questions": [QUESTION]}
    here, there = cs.Study.create(None, {"a": 2}, **given), place.create({"a": 2}, **given)
    found = [seen(crowd(study, 8, kind, 1, 90, every=45)) for study in (here, there)]
    assert found[0] == found[1]
    assert seen(place.reopen(there, continuing=False)) == found[1]


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("walkers", [1, 8, 20, 40])
def test_bounds_hold_at_every_look_in_full(walkers, kind):
    hold(walkers, kind, 200, 1_000)
    hold(walkers, kind, 20, 400, "sharp")


@pytest.mark.soak
@pytest.mark.parametrize("kind", STOPS)
def test_stops_in_full(kind):
    runs, missed = 100, 0
    for seed in range(runs):
        study = cs.Study.create(None, {"a": 2}, delta=DELTA, certificate="mixture", target_loss=0.1)
        crowd(study, 20, kind, seed, 10_000)
        assert study.finished
        missed += cs.loss(CHAIN, study.counts("a")) > 0.1
    assert missed <= most(runs)
