"""``learn`` from a warm start: what it was counted from is not counted again by a source that repeats itself."""

import itertools

import numpy as np
import pytest

import chainscout as cs
from chainscout.errors import InputError
from chainscout.random import Walk
from chainscout.sources import Recorded, simulated
from chainscout.study import Study

CHAIN = cs.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
PATH = np.random.default_rng(3).integers(0, 2, 100).tolist()
STATES = {"states": {"a": 2}, "progress": False}


def bare():
    return CHAIN


def walk():
    return simulated({"a": CHAIN})["a"]


def recorded():
    return Recorded([PATH[:50], PATH[50:]])


def expected(source):
    if source is recorded:
        return PATH
    begun = Walk(CHAIN)
    first = list(itertools.islice(begun, 40))
    begun.restart()  # what is skipped ends a path
    return first + list(itertools.islice(begun, 60))


@pytest.mark.parametrize("source", [bare, walk, recorded])
def test_a_source_that_would_be_counted_twice_is_refused_and_nothing_is_made(folder, source):
    where = folder / "new.db"
    with cs.learn({"a": source()}, 40, **STATES) as old:
        warm = {"a": old.counts("a")}
    with pytest.raises(InputError, match=r"'a' repeats itself, .* counted twice: leave out the observations") as error:
        cs.learn({"a": source()}, 40, where=where, warm_start=warm, **STATES)
    assert "\n" not in str(error.value)
    assert not where.exists()
    Study.create(where, {"a": 2}, 10, warm_start=warm).close()
    with pytest.raises(InputError, match="counted twice"):  # however the study got its warm start
        cs.learn({"a": source()}, 40, where=where, **STATES)
    with Study.open(where) as study:
        assert (study.progress().observations, study.progress().budget) == (0, 10)


@pytest.mark.parametrize("source", [walk, recorded])
def test_what_was_used_is_left_out_and_the_same_call_again_goes_on(folder, source):
    where = folder / "new.db"
    with cs.learn({"a": source()}, 40, **STATES) as old:
        warm = {"a": old.counts("a")}
    for budget in (25, 25, 60):  # the last goes on behind 40 + 25
        study = cs.learn({"a": source().skip(40)}, budget, where=where, warm_start=warm, **STATES)
        assert [line.state for line in study.log("a")] == expected(source)[40 : 40 + budget]
        assert study.chain("a").paths == (1 if source is walk else 2)  # the recording's own break
        study.audit()
        study.close()


def test_another_seed_and_empty_counts_are_no_repetition():
    with cs.learn({"a": CHAIN}, 40, progress=False) as old:
        warm = {"a": old.counts("a")}
    other = simulated({"a": CHAIN}, seed=1)["a"].skip(0)
    with cs.learn({"a": other}, 40, warm_start=warm, progress=False) as study:
        assert [line.state for line in study.log("a")] == list(itertools.islice(Walk(CHAIN, seed=1), 40))
    with cs.learn({"a": CHAIN}, 40, warm_start={"a": cs.Counts(2)}, progress=False) as study:
        assert study.progress().observations == 40


def test_sources_that_do_not_repeat_themselves_need_no_word(folder):
    with cs.learn({"a": iter(PATH)}, 40, **STATES) as old:
        warm = {"a": old.counts("a")}
    with cs.learn({"a": iter(PATH[40:])}, 40, warm_start=warm, **STATES) as study:
        assert study.progress().observations == 40


@pytest.mark.parametrize("number", [-1, 1.5, "all"])
def test_no_number_of_observations_to_skip(number):
    for source in (walk(), recorded()):
        with pytest.raises(InputError, match=r"observations \(how many were used before\) must be a whole number ≥ 0"):
            source.skip(number)
        assert source.skipped is None


def test_more_cannot_be_skipped_than_is_recorded():
    source = recorded()
    with pytest.raises(InputError, match="behind 101 that were used before, and 100 are recorded"):
        source.skip(101)
    assert source.skipped is None
    assert source.advance() == (PATH[0], True)
    assert source.skip(100).skipped == 100
