"""One seed in several workers breaks every bound: paths that repeat each other are named."""

import random

import pytest

import chainscout as cs

CHAIN = cs.MarkovChain([[0.6, 0.4, 0.0], [0.3, 0.3, 0.4], [0.5, 0.0, 0.5]])


def walk(seed):
    """A user's own simulator."""
    rng, state = random.Random(seed), 0
    while True:
        yield state
        state = rng.choices(range(3), CHAIN.matrix[state].tolist())[0]


def driven(place, seeds, chain, steps=100):
    study = place.create({"a": chain})
    for number, seed in enumerate(seeds):
        worker, states = study.worker(f"worker {number}", renews=False), seed() if callable(seed) else walk(seed)
        for _ in range(steps):
            worker.lease().tell(next(states))
    return study


def test_workers_of_one_seed_are_named_beside_the_certificate(place):
    study = driven(place, (1, 2, 1), 3)
    (note,) = study.repeated_paths()
    assert "paths 1 and 3 of a begin with the same 64 states" in note
    assert note in study.certificate().notes


def test_workers_of_different_seeds_are_not(place):
    assert driven(place, range(5), 3).repeated_paths() == ()


def test_a_chain_that_hardly_ever_moves_repeats_itself_by_chance(place):
    study = driven(place, [lambda: iter([0] * 1000)] * 3, 3)
    assert study.repeated_paths() == ()


def test_pairs_that_are_likely_hide_no_other(place):
    """Thirty pairs of a chain that hardly ever moves come before the one that matters."""
    study = place.create({"a": 3, "b": 3})
    for number in range(30):
        held = study.worker(f"still {number}", renews=False).lease(steps=64, without={"b"})
        for _ in range(64):
            held.tell(0)
    for number in range(2):
        held, states = study.worker(f"seeded {number}", renews=False).lease(steps=64, without={"a"}), walk(1)
        for _ in range(64):
            held.tell(next(states))
    (note,) = study.repeated_paths()
    assert "paths 1 and 2 of b" in note


def test_simulated_chains_have_a_stream_for_every_path(place):
    study = place.create({"a": 3})
    for number in range(4):
        source = cs.simulated({"a": CHAIN}, seed=7)["a"]
        worker = study.worker(f"worker {number}", renews=False)
        lease = worker.lease(steps=200)
        source.resume(cs.sources.Place(lease.path, lease.step, lease.state))
        for _ in range(200):
            lease.tell(source.advance()[0])
    assert study.repeated_paths() == ()
    counts = study.counts("a")
    assert counts.paths == 4
    estimate = study.estimate("a").matrix
    assert estimate == pytest.approx(CHAIN.matrix, abs=0.15)  # 800 steps, at least 200 exits a row: 4 standard errors
