"""``learn`` for a study that exists: nothing that is given is passed over, and the same call again is always right."""

import inspect
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

import chainscout as cs
from chainscout.errors import InputError
from chainscout.learning import read_study_file
from chainscout.sources import simulated
from chainscout.study import Study

CHAINS = {"a": cs.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), "b": cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])}
#: What was counted elsewhere, from nothing that these chains give here.
WARM = {"a": cs.Counts.from_path([0, 1, 1, 0, 0], 2)}
#: Every option with another value than its default.
OPTIONS = {
    "delta": 0.01,
    "policy": "uniform",
    "weights": {"a": 2.0},
    "costs": {"b": 3.0},
    "paths": "shared",
    "warm_start": WARM,
    "states": {"a": 2},
    "open_states": ["b"],
    "target_loss": 1e-9,
    "deadline": 4e9,
}


def sources():
    """The chains, simulated; none of their observations is in the warm start."""
    return {name: source.skip(0) for name, source in simulated(CHAINS).items()}


@pytest.fixture
def where(folder):
    """A study that was made with all options; ``b`` is open, with its two states known beforehand."""
    place = folder / "study.db"
    cs.learn(sources(), 40, where=place, progress=False, **OPTIONS).close()
    return place


def kept(where):
    with Study.open(where) as study:
        return study.progress(), len(study.events())


def test_every_option_of_create_is_one_of_learn_and_reaches_a_new_study(where):
    known = inspect.signature(cs.learn).parameters
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    assert set(inspect.signature(Study.create).parameters) - set(known) == {"chains"}
    with Study.open(where) as study:
        progress = study.progress()
        assert (progress.delta, progress.policy, progress.shared) == (0.01, "uniform", True)
        assert (progress.target_loss, progress.deadline) == (1e-9, 4e9)
        lines = list(study.look().chains)
        assert [(line.weight, line.cost, line.open) for line in lines] == [(2.0, 1.0, False), (1.0, 3.0, True)]
        assert study.settings.warm_start["a"].rows() == WARM["a"].rows()


@pytest.mark.parametrize("left_out", [None, *OPTIONS])
def test_the_same_call_again_is_right_with_or_without_what_the_study_knows(where, left_out):
    before = kept(where)
    given = {
        name: value
        for name, value in OPTIONS.items()
        if name != left_out and (left_out, name) != ("open_states", "states")
    }
    cs.learn(sources(), 40, where=where, progress=False, **given).close()
    assert kept(where) == before
    cs.learn(sources(), where=where, progress=False).close()
    assert kept(where) == before


WRONG = {
    "default delta": ({"delta": 0.05}, r"created with the delta 0\.01: it cannot go on with 0\.05"),
    "default policy": ({"policy": "scout"}, "created with the policy uniform: it cannot go on with 'scout'"),
    "no delta": ({"delta": 7}, "delta .* must be a finite number > 0 and ≤ 0.5, not 7"),
    "no policy": ({"policy": "scuot"}, "did you mean scout"),
    "weights": ({"weights": {"a": 1000.0}}, "the weight 2 of the chain 'a': it cannot go on with 1000"),
    "weights of others": ({"weights": {"b": 1.0}}, "the weight 2 of the chain 'a': it cannot go on with 1"),
    "weights of nobody": ({"weights": {"zzz": 3}}, r"weights names chains that the study does not have: \['zzz'\]"),
    "costs": ({"costs": {"a": 9, "b": 3}}, "the cost 1 of the chain 'a': it cannot go on with 9"),
    "paths": ({"paths": "own"}, "the paths 'shared': it cannot go on with 'own'"),
    "states": ({"states": {"a": 77}}, r"the states \[0, 1\] of the chain 'a': it cannot go on with 77"),
    "labels": (
        {"states": {"a": ["x", "y"]}},
        r"the states \[0, 1\] of the chain 'a': it cannot go on with \['x', 'y'\]",
    ),
    "states of nobody": ({"states": {"zzz": 3}}, "states names chains that the study does not have"),
    "states in a list": ({"states": [3]}, r"states must be a mapping from names of chains to states, not \[3\]"),
    "closed": ({"states": {"b": 2}}, "open states of the chain 'b': it cannot go on with closed ones"),
    "all closed": ({"open_states": False}, "open states of the chain 'b': it cannot go on with closed ones"),
    "open": ({"open_states": ["a"]}, "closed states of the chain 'a': it cannot go on with open ones"),
    "all open": ({"open_states": True}, "closed states of the chain 'a': it cannot go on with open ones"),
    "known": (
        {"states": {"b": [1, 0]}, "open_states": ["b"]},
        r"the states \[0, 1\] of the chain 'b': it cannot go on with \[1, 0\]",
    ),
    "warm start": (
        {"warm_start": {"a": cs.Counts.from_path([0, 1, 0], 2)}},
        "4 transitions in the warm start of the chain 'a': it cannot go on with another of 2",
    ),
    "warm start of another": (
        {"warm_start": {**WARM, "b": cs.Counts.from_path([0, 1, 0], 2)}},
        "0 transitions in the warm start of the chain 'b': it cannot go on with another of 2",
    ),
    "no warm start": ({"warm_start": {"b": 3}}, "4 transitions in the warm start of the chain 'a'"),
    "no counts": ({"warm_start": {"a": 3}}, "the chain 'a' must be warm-started from Counts, not 3"),
    "budget": ({"budget": 20}, "has the budget 40, and the smaller one of 20 was given"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_differs_is_refused_in_one_sentence_and_changes_nothing(where, case):
    options, words = WRONG[case]
    before = kept(where)
    with pytest.raises(InputError, match=words) as error:
        cs.learn(sources(), where=where, progress=False, **{"budget": 60, **options})
    assert "\n" not in str(error.value)
    assert kept(where) == before


def test_unknown_options_are_refused_for_new_studies_and_for_old_ones(where, folder):
    before = kept(where)
    for place in (where, folder / "new.db"):
        with pytest.raises(TypeError, match="nonsense"):
            cs.learn(CHAINS, 60, where=place, nonsense=3, progress=False)
    assert kept(where) == before
    assert not (folder / "new.db").exists()


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ({**CHAINS, "c": lambda: 0}, r"sources were given for chains that the study does not have: \['c'\]"),
        ({"a": CHAINS["a"]}, r"the study has chains without a source: \['b'\]"),
    ],
)
def test_sources_that_are_not_those_of_the_study_are_refused_before_it_is_extended(where, sources, words):
    before = kept(where)
    with pytest.raises(InputError, match=words):
        cs.learn(sources, 1_000, where=where, progress=False)
    assert kept(where) == before


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
@pytest.mark.parametrize("workers", [0, -1, 1.5, "two"])
def test_no_number_of_workers_is_refused_before_anything_is_made_or_extended(where, folder, workers, executor):
    before = kept(where)
    for place in (where, folder / "new.db"):
        with (
            ThreadPoolExecutor(1) if executor else nullcontext() as pool,
            pytest.raises(InputError, match=r"workers .* must be a whole number ≥ 1, not"),
        ):
            cs.learn(CHAINS, 1_000, where=place, executor=pool, workers=workers, progress=False)
    assert kept(where) == before
    assert not (folder / "new.db").exists()


def test_open_states_of_a_new_study():
    with cs.learn(CHAINS, 20, open_states=True, progress=False) as study:
        assert [line.open for line in study.look().chains] == [True, True]
        assert study.states("a") == [0, 1]
    sources = {"a": lambda: 0, "b": CHAINS["b"]}
    with cs.learn(sources, 20, open_states=["b"], progress=False) as study:  # and ``a``, whose states nobody knows
        assert [line.open for line in study.look().chains] == [True, True]
    with cs.learn(sources, 20, states={"a": 1}, open_states=False, progress=False) as study:
        assert [line.open for line in study.look().chains] == [False, False]
    with pytest.raises(InputError, match=r"needs the states of every chain, and those of \['a'\] are not given"):
        cs.learn(sources, 20, open_states=False, progress=False)
    with pytest.raises(InputError, match="open_states names chains that the study does not have"):
        cs.learn(sources, 20, open_states=["c"], progress=False)


def test_many_numbered_states_are_compared_without_a_list_of_them(folder):
    where, options = folder / "wide.db", {"states": {"a": 10**7}, "progress": False}
    cs.learn({"a": lambda: 5}, 3, where=where, **options).close()
    with cs.learn({"a": lambda: np.int64(6)}, 6, where=where, **options) as study:
        assert study.progress().observations == 6
        assert study.counts("a").states == range(10**7)


def test_a_study_file_says_nothing_of_what_it_leaves_out(folder):
    """Made with another policy and delta, a study is gone on with by a file that names neither."""

    Study.create(folder / "lab.db", {"a": 2}, 20, "uniform", 0.01).close()
    path = folder / "study.toml"
    text = 'where = "lab.db"\n%s\n[chains.a]\nmatrix = [[0.5, 0.5], [0.1, 0.9]]\n'

    def learned(more):
        path.write_text(text % more)
        found = read_study_file(path)
        return cs.learn(found.sources, where=found.where, states=found.states, progress=False, **found.settings.given())

    with learned("") as study:
        assert study.progress().observations == 20
    for more, words in (("delta = 0.05", "created with the delta"), ('policy = "scout"', "created with the policy")):
        with pytest.raises(InputError, match=words):
            learned(more)
