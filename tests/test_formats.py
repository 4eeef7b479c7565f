"""Files of model checkers: what is written reads back as the same chain, and what is no chain is refused in a line."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import chainscout as cs
from chainscout.errors import FileError, InputError
from chainscout.formats import SUFFIXES, Model
from chainscout.formats.model import _RESERVED, _WORDS

NAMES = st.one_of(
    st.text(max_size=6),
    st.integers(),
    st.sampled_from(["init", "deadlock", "A", "s_0", "s_1", "half full", "half_full"]),
)


@st.composite
def chains(draw):
    size = draw(st.integers(1, 6))
    states = draw(st.none() | st.lists(NAMES, min_size=size, max_size=size, unique_by=lambda s: (s, type(s))))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    matrix = random.dirichlet(np.full(size, 0.3), size=size)
    matrix[matrix < 1e-3] = 0.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    first = random.random(size) < 0.5
    first[random.integers(size)] = True
    try:
        return cs.MarkovChain(matrix, initial=first / first.sum(), states=states)
    except InputError:  # 1 and True, 0 and 0.0 are one label
        return cs.MarkovChain(matrix, initial=first / first.sum())


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=40, deadline=None)
@given(chain=chains())
def test_a_chain_reads_back(tmp_path_factory, suffix, chain):
    file = tmp_path_factory.mktemp("formats") / f"north{suffix}"
    cs.Problem({"north": chain}).save(file)
    back = cs.Problem.load(file)["north"]
    assert_array_equal(back.matrix, chain.matrix)
    assert_array_equal(back.initial, chain.initial)
    numbered = chain.states == tuple(range(chain.size))
    assert back.states == chain.states if numbered else len(set(back.states)) == chain.size


@given(states=st.lists(NAMES, max_size=8, unique=True))
def test_labels_are_names_that_checkers_take(states):
    none = np.zeros((0, 0))
    labels = Model.of_states(states, none, none, ()).labels
    assert len(set(labels)) == len(states)
    for state, label in zip(states, labels, strict=True):
        assert re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", label)
        assert label not in ("init", "deadlock", "A", "C", "P", "label", "true")
        if isinstance(state, str) and re.fullmatch("[b-z][a-z]{4,}", state):
            assert (label == state) == (state not in _WORDS | _RESERVED)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_interval_model_is_not_a_chain(tmp_path, suffix):
    study = cs.Study.create(None, chains={"north": ["idle", "busy"]}, budget=10)
    for state in ("idle", "busy", "busy", "idle"):
        study.tell("north", state)
    study.export(tmp_path / f"north{suffix}")
    with pytest.raises(FileError, match=r"this is an interval, .*, and only exact chains are read"):
        cs.Problem.load(tmp_path / f"north{suffix}")


def test_the_intervals_of_a_study(tmp_path):
    study = cs.Study.create(None, chains={"north": ["idle", "busy"], "south": 3}, budget=10)
    for state in ("busy", "idle", "busy", "busy", "idle"):
        study.tell("north", state)
    study.export(tmp_path / "north.tra", chain="north")
    known = study.estimate("north")
    lines = [line.split() for line in (tmp_path / "north.tra").read_text().splitlines()]
    assert lines[0] == ["2", "4"]
    for x, y, interval in lines[1:]:
        low, high = interval.strip("[]").split(",")
        assert float(low) == known.lower[int(x), int(y)]
        assert float(high) == known.upper[int(x), int(y)]
    assert (tmp_path / "north.lab").read_text() == '0="init" 1="deadlock" 2="idle" 3="busy"\n0: 2\n1: 0 3\n'
    study.export(tmp_path / "start.prism", chain="north", start="idle")
    program = (tmp_path / "start.prism").read_text()
    assert "init s=0 endinit" in program
    assert program.startswith("// chain 'north' after 5 observations: all intervals of the study hold together with")
    study.export(tmp_path / "south.prism", chain="south")
    assert "[] s=0 -> [0.0,1.0]:(s'=0) + [0.0,1.0]:(s'=1) + [0.0,1.0]:(s'=2);" in (tmp_path / "south.prism").read_text()


def test_what_cannot_be_exported(tmp_path):
    study = cs.Study.create(None, chains={"north": ["idle", "busy"], "south": []}, open_states=["south"], budget=10)
    study.tell("south", "x")
    for path, given_, sentence in (
        ("model.drn", {}, "holds one chain, and this study has 2: name the chain"),
        ("model.drn", {"chain": "south"}, "may have others than those seen"),
        ("model.drn", {"chain": "north", "start": "down"}, "unknown state 'down'"),
        ("model.json", {"chain": "north"}, "has all chains: chain is for the formats of model checkers"),
        ("model.jani", {}, "the end of the file's name must be one of json, csv, npz, toml, jsonl, prism, tra, drn, umb"),
    ):
        with pytest.raises(InputError, match=re.escape(sentence)):
            study.export(tmp_path / path, **given_)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="holds one chain, and this problem has 4"):
        cs.problems.get("gilbert-elliott").save(tmp_path / "all.drn")


HEAD = "dtmc\nmodule m\n s : [0..1];\n"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.prism", "mdp\n", "line 1: 'mdp' is not of the form that is read"),
        ("a.prism", "dtmc\nmodule m\nendmodule\n", "there is no variable for the state"),
        ("a.prism", HEAD + " [] s=0 -> 0.5:(s'=0) + 0.5:(s'=2);\n", "line 4: the states are numbered from 0 to 1"),
        ("a.prism", HEAD + " t : [0..1];\n", "line 4: there is a second variable, 't'"),
        ("a.prism", HEAD + " [] s=0 -> p:(s'=0);\n", "line 4: a probability must be a number or a fraction, not 'p'"),
        ("a.prism", HEAD + " [] s<1 -> 1:(s'=0);\n", 'line 4: "[] s<1'),
        ("a.prism", HEAD + " [] s=0 -> 1:(s'=0);\n [] s=0 -> 1:(s'=1);\n", "line 5: the state 0 has a second command"),
        ("a.prism", HEAD + " [] s=0 -> 1:(s'=0);\nendmodule\n", "the row of 1 sums to 0"),
        ("a.prism", HEAD + ' label "x" = s>0;\n', "line 4: a condition must be like s=1|s=2"),
        ("a.tra", "2 2 3\n", "begins with two numbers"),
        ("a.tra", "", "this file is empty"),
        ("a.tra", "1 2\n0 0 1\n", "it says 2 transitions, and 1 follow"),
        ("a.tra", "1 1\n0 1 1\n", "line 2: a transition is two states from 0 to 0 and a probability"),
        ("a.tra", "1 2\n0 0 0.5\n0 0 0.5\n", "line 3: the transition 0 to 0 is there twice"),
        ("a.tra", "1 1\n0 0 1/0\n", "line 2: a probability must be a number or a fraction, not '1/0'"),
        ("a.drn", "@type: MDP\n@model\n", "the type must be DTMC, a Markov chain, not 'MDP'"),
        ("a.drn", "@type: DTMC\n@nr_states\n1\n", "has the lines @nr_states and @model"),
        ("a.drn", "@type: DTMC\n@nr_states\n1\n@model\nstate 1\n", "line 5: the states are numbered from 0 to 0"),
        ("a.drn", "@type: DTMC\n@nr_states\n1\n@model\nstate 0\n action 0\n action 1\n", "line 7: the state 0 has two"),
        (
            "a.drn",
            "@type: DTMC\n@nr_states\n1\n@model\nhello\n",
            "line 5: a line is a state, an action or a transition",
        ),
        ("a.tra", "1000000000000 0\n", "with 1 to 16,384 states, and this file says 1,000,000,000,000"),
        ("a.tra", "0 0\n", "and this file says 0"),
        ("a.drn", "@type: DTMC\n@nr_states\n99999999\n@model\n", "and this file says 99,999,999"),
        ("a.prism", "dtmc\nmodule m\n s : [0..99999999];\nendmodule\n", "and this file says 100,000,000"),
        ("a.tra", "1 1\n0 0 1e999\n", "must be a number or a fraction, not '1e999'"),
        ("a.tra", "1 1\n0 0 nan\n", "must be a number or a fraction, not 'nan'"),
        ("a.tra", "1 1\n0 0 -1\n", "must be a number or a fraction, not '-1'"),
        ("a.umb", "no archive", "this is not a UMB file"),
    ],
)
def test_a_wrong_file_is_refused_at_its_place(tmp_path, name, content, sentence):
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(FileError, match=re.escape(sentence)) as caught:
        cs.Problem.load(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_wrong_labels_are_refused_at_their_place(tmp_path):
    (tmp_path / "a.tra").write_text("1 1\n0 0 1\n")
    for content, sentence in (("x\n", "line 1: a .lab file begins"), ('0="init"\n0: 1\n', "line 2: a line is a state")):
        (tmp_path / "a.lab").write_text(content)
        with pytest.raises(FileError, match=re.escape(f"a.lab: {sentence}")):
            cs.Problem.load(tmp_path / "a.tra")


def test_a_file_without_labels_has_numbered_states(tmp_path):
    (tmp_path / "a.tra").write_text("2 3\n0 0 1/4\n0 1 3/4\n1 1 1\n")
    assert cs.Problem.load(tmp_path / "a.tra")["a"] == cs.MarkovChain([[0.25, 0.75], [0, 1]])
    with pytest.raises(FileError, match="this file cannot be read: No such file"):
        cs.Problem.load(tmp_path / "b.umb")
