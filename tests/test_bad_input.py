"""Every public entry point of the bottom layers, fed what it cannot use: one chainscout exception, one sentence."""

import copy
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from chainscout import validation
from chainscout.chains import MarkovChain
from chainscout.counts import Counts, smoothing
from chainscout.errors import ChainscoutError, InputError
from chainscout.losses import loss
from chainscout.sources import simulated

GOOD = [[0.9, 0.1], [0.4, 0.6]]


def observed():
    return Counts.from_path([0, 1, 0, 0, 1], 2)


def kept(rows, observations=0, paths=0, last=None):
    return Counts.from_rows(rows, 2, observations=observations, paths=paths, last=last)


def table(*arguments, **options):
    return MarkovChain.from_table(*arguments, **options)


# ---------------------------------------------------------------- what each message says

BAD = [
    # a matrix
    (lambda: MarkovChain(None), r"must be square with at least one state, not of shape \(\)"),
    (lambda: MarkovChain([]), r"not of shape \(0,\)"),
    (lambda: MarkovChain([[]]), r"not of shape \(1, 0\)"),
    (lambda: MarkovChain([0.5, 0.5]), r"not of shape \(2,\)"),
    (lambda: MarkovChain([[0.5, 0.5]]), r"not of shape \(1, 2\)"),
    (lambda: MarkovChain(np.zeros((2, 2, 2))), r"not of shape \(2, 2, 2\)"),
    (lambda: MarkovChain([[1], [0, 1]]), r"numbers in rows of equal length, not \[\[1\], \[0, 1\]\]"),
    (lambda: MarkovChain("matrix"), "numbers in rows of equal length, not 'matrix'"),
    (lambda: MarkovChain([["0.5", "0.5"]] * 2), r"numbers .* not \[\['0.5'"),
    (lambda: MarkovChain(np.array(GOOD) * 1j), r"numbers .* not array\(\[\[0\.\+0\.9j"),
    (lambda: MarkovChain({"a": 1}), r"numbers .* not \{'a': 1\}"),
    (lambda: MarkovChain(csr_array(np.array(GOOD))), "numbers .* not <Compressed Sparse Row"),
    (lambda: MarkovChain(np.ma.masked_less(GOOD, 0.2)), r"numbers .* not masked_array\("),
    (lambda: MarkovChain([[10**400]]), r"numbers .* not \[\[1000"),
    (lambda: MarkovChain([[math.nan, 1], [0, 1]]), "holds probabilities, but the one from 0 to 0 is nan"),
    (lambda: MarkovChain([[0, math.inf], [0, 1]], states=["a", "b"]), "the one from 'a' to 'b' is inf"),
    (lambda: MarkovChain([[1, 0], [-0.5, 1.5]]), "the one from 1 to 0 is -0.5"),
    (lambda: MarkovChain([[1, 0], [0, 1.5]]), "the one from 1 to 1 is 1.5"),
    (lambda: MarkovChain([[1e308, 1e308]] * 2), r"the one from 0 to 0 is 1e\+308"),
    (
        lambda: MarkovChain([[0.5, 0.5], [0.5, 0.4]]),
        "the row of 1 sums to 0.9; for a table .*from_table$",
    ),
    (lambda: MarkovChain([[0.5, 0.5 + 2e-9], [1, 0]]), "the row of 0 sums to 1.000000002"),
    (lambda: MarkovChain(np.zeros((2, 2))), "the row of 0 sums to 0;"),
    # its initial law
    (lambda: MarkovChain(GOOD, initial=[1]), r"must be 2 probabilities, one a state, that sum to one, not \[1\]"),
    (lambda: MarkovChain(GOOD, initial=[0.5, 0.6]), r"not \[0.5, 0.6\]"),
    (lambda: MarkovChain(GOOD, initial=[1.5, -0.5]), r"not \[1.5, -0.5\]"),
    (lambda: MarkovChain(GOOD, initial=[math.nan, 1]), r"not \[nan, 1\]"),
    (lambda: MarkovChain(GOOD, initial=[1e308, 1e308]), r"not \[1e\+308, 1e\+308\]"),
    (lambda: MarkovChain(GOOD, initial=GOOD), r"not \[\[0.9, 0.1\], \[0.4, 0.6\]\]"),
    (lambda: MarkovChain(GOOD, initial="first"), "the initial law must be numbers .* not 'first'"),
    # its states
    (lambda: MarkovChain(GOOD, states=["a"]), r"one label a row, 2 in all, not 1: \['a'\]"),
    (lambda: MarkovChain(GOOD, states=["a", "a"]), "must be unique, but 'a' stands for 2 of them"),
    (lambda: MarkovChain(GOOD, states=[1, True]), "must be unique, but 1 stands for 2 of them"),
    (lambda: MarkovChain(GOOD, states=[["a"], ["b"]]), r"hashable labels, at least one, not \[\['a'\], \['b'\]\]"),
    (lambda: MarkovChain(GOOD, states="ab"), "a sequence of hashable labels, at least one, not 'ab'"),
    (lambda: MarkovChain(GOOD, states={"a", "b"}), r"a sequence of hashable labels, at least one, not \{'"),
    (lambda: MarkovChain(GOOD, states=5), "at least one, not 5"),
    (lambda: MarkovChain(GOOD, states=[]), r"at least one, not \[\]"),
    (lambda: MarkovChain(GOOD, states=[math.nan, 1.0]), "labels that equal themselves, and nan does not"),
    (lambda: MarkovChain(GOOD, states=[np.float32("nan"), 1]), r"themselves, and np.float32\(nan\) does not"),
    (lambda: MarkovChain(GOOD, states=[Decimal("nan"), 1]), r"themselves, and Decimal\('NaN'\) does not"),
    # a table
    (lambda: table([[0.5, 0.4], [0.5, 0.5]]), "within 0.01, but the row of 0 sums to 0.9$"),
    (lambda: table(GOOD, tolerance=-1), r"tolerance \(how far from one a row may sum\) must be .* ≥ 0 and < 1, not -1"),
    (lambda: table(GOOD, tolerance=1), "not 1$"),
    (lambda: table(GOOD, tolerance="much"), "not 'much'"),
    (lambda: table([[0.5, -0.01], [0.5, 0.5]], tolerance=0.5), "the one from 0 to 1 is -0.01"),
    (lambda: table(GOOD, states=["a", "a"]), "must be unique, but 'a'"),
    (lambda: table(GOOD, initial=[2, -1]), r"not \[2, -1\]"),
    # questions
    (lambda: MarkovChain(GOOD).index_of("c"), r"unknown state 'c': the chain's states are \[0, 1\]"),
    (lambda: MarkovChain(GOOD).index_of([0]), r"unknown state \[0\]"),
    (
        lambda: MarkovChain(GOOD).mixing_time_bounds(0.5),
        r"epsilon \(a distance in total .* not 0.5",
    ),
    (lambda: MarkovChain(GOOD).mixing_time_bounds(0), "must be a finite number > 0 and < 0.5, not 0"),
    (lambda: MarkovChain(GOOD).mixing_time_bounds(None), "not None"),
    # counts
    (lambda: Counts(0), r"states \(the number of states\) must be a whole number ≥ 1, not 0"),
    (lambda: Counts(-(10**5000)), "whole number ≥ 1, not an object of type int that cannot be printed"),
    (lambda: Counts(10**12), "must be at most 1000000000, not 1000000000000"),
    (lambda: Counts(2.5), "a sequence of hashable labels, at least one, not 2.5"),
    (lambda: Counts(True), "not True"),
    (lambda: Counts(None), "not None"),
    (lambda: Counts([]), r"not \[\]"),
    (lambda: Counts("ab"), "not 'ab'"),
    (lambda: Counts([1, 1]), "must be unique, but 1 stands for 2 of them"),
    (lambda: Counts([[1]]), r"not \[\[1\]\]"),
    (lambda: Counts([math.nan]), "equal themselves, and nan does not"),
    (lambda: Counts.from_path(None, 2), "a path must be a sequence of states, not None"),
    (lambda: Counts.from_path(np.array(1), 2), r"a path must be a sequence of states, not array\(1\)"),
    (lambda: Counts.from_path([0, 2], 2), "a state must be a whole number from 0 to 1, not 2"),
    (lambda: Counts.from_transitions([[1, 2]]), r"square with at least one state, not of shape \(1, 2\)"),
    (lambda: Counts.from_transitions([["a"]]), r"transition counts must be numbers .* not \[\['a'\]\]"),
    (lambda: Counts.from_transitions([[0.5]]), r"whole numbers ≥ 0, 2⁵³ in all at most, not \[\[0.5\]\]"),
    (lambda: Counts.from_transitions([[-1]]), r"not \[\[-1.0\]\]"),
    (lambda: Counts.from_transitions([[math.nan]]), r"not \[\[nan\]\]"),
    (lambda: Counts.from_transitions([[math.inf]]), r"not \[\[inf\]\]"),
    (lambda: Counts.from_transitions([[1e308, 1e308]] * 2), r"not \[\[1e\+308"),
    (lambda: Counts.from_transitions([[2**53, 2**53]] * 2), "2⁵³ in all at most"),
    (lambda: Counts.from_transitions([[10**400]]), "transition counts must be numbers"),
    (lambda: Counts.from_transitions([[1]], states=["a", "b"]), "1 rows of counts need 1 state labels, not 2"),
    (lambda: Counts.from_pairs(5, 2), r"pairs must be a sequence of \(from, to, number\), not 5"),
    (lambda: Counts.from_pairs([(0, 1)], 2), r"a pair must be \(from, to, number\), not \(0, 1\)"),
    (lambda: Counts.from_pairs([(0, 1, -5)], 2), r"a count \(how often a .*\) must be a whole number ≥ 0, not -5"),
    (lambda: Counts.from_pairs([(0, 1, math.nan)], 2), "a whole number ≥ 0, not nan"),
    (lambda: Counts.from_pairs([(None, 1, 0.5)], 2), "a whole number ≥ 0, not 0.5"),
    (lambda: Counts.from_pairs([(0, 1, True)], 2), "a whole number ≥ 0, not True"),
    (lambda: Counts.from_pairs([(0, 2, 1)], 2), "a state must be a whole number from 0 to 1, not 2"),
    (lambda: Counts.from_pairs([(0, 0, 2**53), (0, 1, 1)], 2), "2⁵³ in all at most, not 9007199254740993"),
    (lambda: kept({7: {9: 1}}), "a position must be a whole number from 0 to 1, not 7"),
    (lambda: kept({0: {-1: 1}}), "a position must be a whole number from 0 to 1, not -1"),
    (lambda: kept({0: {1: -5}}), "a whole number ≥ 0, not -5"),
    (lambda: kept({0: {1: math.nan}}), "a whole number ≥ 0, not nan"),
    (lambda: kept({0: {0: 2**53, 1: 1}}), "2⁵³ in all at most"),
    (lambda: kept([[1, 2], [3, 4]]), r"rows must map positions to mappings .* not \[\[1, 2\], \[3, 4\]\]"),
    (lambda: kept({0: [1, 2]}), r"rows must map positions to mappings .* not \{0: \[1, 2\]\}"),
    (lambda: kept({}, observations=-1), "observations must be a whole number ≥ 0, not -1"),
    (lambda: kept({}, paths=0.5), "paths must be a whole number ≥ 0, not 0.5"),
    (lambda: kept({}, last=2), "a position must be a whole number from 0 to 1, not 2"),
    (lambda: Counts(2).merge(Counts(3)), r"over the same states can be merged: range\(0, 2\) and range\(0, 3\)"),
    (lambda: Counts(2).merge(Counts(["a", "b"])), r"range\(0, 2\) and \('a', 'b'\)"),
    (lambda: Counts(2).merge([[1, 2], [3, 4]]), r"range\(0, 2\) and \[\[1, 2\], \[3, 4\]\]"),
    (lambda: Counts(2).index_of("a"), "a whole number from 0 to 1, not 'a'"),
    (lambda: Counts(["a"]).index_of("b"), r"unknown state 'b': the states are \('a',\)"),
    (lambda: Counts(2).exits_of(2), "a position must be a whole number from 0 to 1, not 2"),
    (lambda: Counts(2).exits_of([]), r"a position must be a whole number from 0 to 1, not \[\]"),
    (lambda: Counts(2).occupancy, "no transition has been seen yet"),
    (lambda: Counts(2).matrix("perk"), "one of ba-mc, perks, laplace, jeffreys, krichevsky-trofimov, not 'perk'"),
    (lambda: Counts(2).matrix(-1), r"alpha \(what is added .*\) must be a finite number ≥ 0 and < 1e\+100, not -1"),
    (lambda: Counts(2).matrix(math.nan), "not nan"),
    (lambda: Counts(2).matrix(1e308), r"not 1e\+308"),
    (lambda: Counts(2).matrix([1]), r"not \[1\]"),
    (lambda: smoothing(None, 0), r"size \(the number of states\) must be a whole number ≥ 1, not 0"),
    # losses
    (lambda: loss(GOOD, observed()), r"compares a MarkovChain with Counts, not \[\[0.9, 0.1\].* with Counts\(2 states"),
    (lambda: loss(MarkovChain(GOOD), [[1, 2], [3, 4]]), r"with \[\[1, 2\], \[3, 4\]\]"),
    (lambda: loss(observed(), MarkovChain(GOOD)), r"not Counts\(2 states.* with MarkovChain\(2"),
    (lambda: loss(MarkovChain(GOOD), Counts(3)), r"the chain's states \[0, 1\], not over range\(0, 3\)"),
    (lambda: loss(MarkovChain(GOOD, states=[1, 0]), observed()), r"chain's states \[1, 0\], not over range\(0, 2\)"),
    (lambda: loss(MarkovChain(GOOD), Counts.from_path([1, 0], [1, 0])), r"states \[0, 1\], not over \(1, 0\)"),
    (lambda: loss(MarkovChain(GOOD), observed(), distance="l2"), "distance must be one of squared, .* not 'l2'"),
    (lambda: loss(MarkovChain(GOOD), observed(), distance=np.array(["squared"])), "not array"),
    (lambda: loss(MarkovChain(GOOD), observed(), weights=None), "weights must be one of empirical, .* not None"),
    (lambda: loss(MarkovChain(GOOD), observed(), alpha=-1), "not -1"),
]


@pytest.mark.parametrize(("call", "sentence"), BAD, ids=[sentence[-40:] for _, sentence in BAD])
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        call()
    assert caught.value.exit_status == 2
    says_one_thing(caught.value)


def says_one_thing(error):
    text = str(error)
    assert "\n" not in text
    assert len(text) < 300
    assert not text.endswith(".")


# ---------------------------------------------------------------- anything at all


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


def nested(depth):
    inner = []
    for _ in range(depth):
        inner = [inner]
    return inner


def endless():
    loop = []
    loop.append(loop)
    return loop


ANYTHING = [
    *(None, True, 5, -1, 1.5, 0.0, -0.0, 5e-324, 1e308, math.nan, math.inf, -math.inf, 1j),
    *(10**400, -(10**5000), Fraction(10**400), Fraction(1, 3), Decimal("0.5"), Decimal("nan")),
    *("", "a", "ab", "0.5", "squared", "ones", b"ab", b""),
    *(..., type, len, object(), slice(1), range(2), iter([0, 1])),
    *([], (), {}, set(), {"a", "b"}, {0: 1}, [1, 1], [[1], [2]], [None, None], ["a", 1], [math.nan, 1.0], (0, 1)),
    *([10**400, 0], [[10**400]], [1e308, 1e308], [[1e308, 1e308]] * 2, [[math.nan] * 2] * 2, [[None, 1], [1, 0]]),
    *([[0.5, 0.5]], [[0.5, 0.4]] * 2, [[1.5, -0.5]] * 2, [["0.5", "0.5"]] * 2, [[True, False], [False, True]]),
    *(np.array(1), np.array([]), np.zeros((0, 0)), np.zeros((2, 2, 2)), np.array(GOOD), np.array(GOOD) * 1j),
    *(np.array(GOOD, dtype=str), np.array(["a", "b"]), np.array([0, 1], dtype="M8[D]"), np.float64(2), np.int8(1)),
    *(np.longdouble("1e4000"), np.bool_(True), np.array([GOOD], dtype=object), csr_array(np.array(GOOD))),
    *(np.ma.masked_less(GOOD, 0.2), np.matrix(GOOD), np.array([(1, 2.0)], dtype=[("x", int), ("y", float)])),
    *(
        Unprintable(),
        Unreadable(),
        [Unprintable()],
        nested(3_000),
        endless(),
        MarkovChain(GOOD),
        MarkovChain,
        observed(),
    ),
]

ENTRY_POINTS = {
    "matrix": MarkovChain,
    "initial": lambda value: MarkovChain(GOOD, initial=value),
    "states": lambda value: MarkovChain(GOOD, states=value),
    "table": table,
    "tolerance": lambda value: table(GOOD, tolerance=value),
    "table's initial": lambda value: table(GOOD, initial=value),
    "table's states": lambda value: table(GOOD, states=value),
    "convert": MarkovChain.convert,
    "index_of": lambda value: MarkovChain(GOOD).index_of(value),
    "epsilon": lambda value: MarkovChain(GOOD).mixing_time_bounds(value),
    "Counts": lambda value: (Counts(value), repr(Counts(value))),
    "path": lambda value: Counts.from_path(value, 2),
    "path's states": lambda value: Counts.from_path([], value),
    "transitions": lambda value: Counts.from_transitions(value).matrix(),
    "transitions' states": lambda value: Counts.from_transitions([[1, 2], [3, 4]], value),
    "pairs": lambda value: Counts.from_pairs(value, 2),
    "a pair's states": lambda value: Counts.from_pairs([(value, value, 1)], 2),
    "a pair's number": lambda value: Counts.from_pairs([(0, 1, value)], 2).matrix(),
    "rows": lambda value: kept(value).matrix(),
    "a row": lambda value: kept({0: value}).matrix(),
    "a row's count": lambda value: kept({0: {1: value}}).matrix(),
    "observations": lambda value: kept({}, observations=value),
    "last": lambda value: kept({}, last=value),
    "smoothing": lambda value: smoothing(value, 3),
    "smoothing's size": lambda value: smoothing(None, value),
    "loss's chain": lambda value: loss(value, observed()),
    "loss's counts": lambda value: loss(MarkovChain(GOOD), value),
    "distance": lambda value: loss(MarkovChain(GOOD), observed(), distance=value),
    "weights": lambda value: loss(MarkovChain(GOOD), observed(), weights=value),
    "loss's alpha": lambda value: loss(MarkovChain(GOOD), observed(), distance="chi-squared", alpha=value),
    "whole_number": lambda value: validation.whole_number(value, "n"),
    "real_number": lambda value: validation.real_number(value, "x"),
    "failure_probability": validation.failure_probability,
    "quantile_failure": validation.quantile_failure,
    "one_of": lambda value: validation.one_of(value, "x", ["a", "b"]),
    "unique_labels": validation.unique_labels,
    "number_array": lambda value: validation.number_array(value, "x"),
}


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_anything_is_taken_or_refused_with_one_sentence(entry_point):
    refused = 0
    for value in ANYTHING:
        try:
            ENTRY_POINTS[entry_point](copy.copy(value))
        except ChainscoutError as error:
            says_one_thing(error)
            refused += 1
    assert 0 < refused < len(ANYTHING)


QUESTIONS = {
    "record": Counts.record,
    "merge": Counts.merge,
    "index_of": Counts.index_of,
    "exits_of": Counts.exits_of,
    "matrix": Counts.matrix,
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("states", [2, ["a", "b"]], ids=["numbered", "labelled"])
def test_counts_that_refuse_do_not_change(name, states):
    for value in ANYTHING:
        counts = Counts(states)
        for position in (0, 1, 0, 0, 1):
            counts.record(counts.states[position])
        before = copy.deepcopy(counts)
        try:
            QUESTIONS[name](counts, value)
        except ChainscoutError as error:
            says_one_thing(error)
            assert counts == before
            assert counts.exits.tolist() == before.exits.tolist()


# ---------------------------------------------------------------- single checks


def test_numbers_in_any_dress():
    fives = (5, 5.0, np.int8(5), np.float32(5), Fraction(5))
    assert [validation.whole_number(value, "n") for value in fives] == [5] * 5
    assert [validation.real_number(value, "x") for value in (0.5, np.float64(0.5), Fraction(1, 2))] == [0.5] * 3
    assert validation.whole_number(0, "n", least=0) == 0
    assert validation.whole_number(9, "n", most=9) == 9
    assert [validation.truth_value(value, "x", "") for value in (True, np.bool_(False))] == [True, False]
    assert [validation.failure_probability(value) for value in (0.05, 1e-300)] == [0.05, 1e-300]
    assert [validation.quantile_failure(value) for value in (0.05, 1e-12)] == [0.05, 1e-12]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: validation.whole_number(2.5, "n", 3, "how many"), "n (how many) must be a whole number ≥ 3, not 2.5"),
        (lambda: validation.whole_number(-100.0, "n"), "n must be a whole number ≥ 1, not -100"),
        (lambda: validation.whole_number(2.5, "n", most=9), "n must be a whole number ≥ 1, not 2.5"),
        (lambda: validation.whole_number(10, "n", 1, "how many", most=9), "n (how many) must be at most 9, not 10"),
        (lambda: validation.truth_value(1, "open", "whether"), "open (whether) must be True or False, not 1"),
        (lambda: validation.unicode_text("\udcff", "a name"), r"a name must be text that UTF-8 can hold, not '\udcff'"),
        (lambda: validation.real_number(math.inf, "x"), "x must be a finite number, not inf"),
        (lambda: validation.real_number(11, "x", above=0, most=10), "x must be a finite number > 0 and ≤ 10, not 11"),
        (lambda: validation.real_number(1, "x", above=1), "x must be a finite number > 1, not 1"),
        (lambda: validation.real_number(9, "x", least=0, below=5), "x must be a finite number ≥ 0 and < 5, not 9"),
        (
            lambda: validation.failure_probability(1),
            "delta (the probability with which a guarantee may fail) must be a finite number > 0 and ≤ 0.5, not 1",
        ),
        (
            lambda: validation.quantile_failure(1e-13),
            "delta (the quantile of probability 1 − delta is reported) must be a finite number ≥ 1e-12, not 1e-13",
        ),
        (lambda: validation.one_of("c", "letter", "ab"), "letter must be one of a, b, not 'c'"),
        (
            lambda: validation.one_of("rad", "x", ["red", "blue"]),
            "x must be one of red, blue, not 'rad' (did you mean red?)",
        ),
    ],
)
def test_checks_word_by_word(call, sentence):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == sentence


def test_what_is_shown_fits_on_a_line():
    assert validation.shown("a\nb") == r"'a\nb'"
    assert validation.shown(np.eye(2)) == "array([[1., 0.], [0., 1.]])"
    assert validation.shown(list(range(100)), length=10) == "[0, 1, 2,…"
    assert validation.shown(Unprintable()) == "an object of type Unprintable that cannot be printed"


def test_what_is_simulated_has_a_name():
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InputError, match="simulated takes a problem, or chains by their names, not MarkovChain"):
        simulated(chain)
    with pytest.raises(InputError, match="each chain must be a MarkovChain, but chain 'north' is 3"):
        simulated({"north": 3})
