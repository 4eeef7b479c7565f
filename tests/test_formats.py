"""Files of model checkers: what is written reads back as the same chain, and what is no chain is refused in a line."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import chainscout as cs
from chainscout.errors import FileError, InputError
from chainscout.formats import READ, Model
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


@pytest.mark.parametrize("suffix", READ)
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


@pytest.mark.parametrize("suffix", READ)
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
    study.export(tmp_path / "north.drn", chain="north")
    known = study.estimate("north")
    x = -1
    for line in (tmp_path / "north.drn").read_text().splitlines()[12:]:
        if line.startswith("state"):
            x += 1
            assert line.split()[1:] == [["0", "idle"], ["1", "init", "busy"]][x]
        elif ":" in line:
            y, interval = line.split(" : ")
            low, high = interval.strip("[]").split(",")
            assert float(low) == known.lower[x, int(y)]
            assert float(high) == known.upper[x, int(y)]
    assert x == 1
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
        ("model.jani", {}, "the end of the file's name must be one of json, csv, npz, toml, jsonl, prism, drn, umb"),
    ):
        with pytest.raises(InputError, match=re.escape(sentence)):
            study.export(tmp_path / path, **given_)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="holds one chain, and this problem has 4"):
        cs.problems.get("gilbert-elliott").save(tmp_path / "all.drn")


HEAD = "@type: DTMC\n@nr_states\n{}\n@model\n"
ONE = HEAD.format(1) + "state 0\n"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.drn", "", "this file is empty"),
        ("a.drn", "@type: MDP\n@model\n", "the type must be DTMC, a Markov chain, not 'MDP'"),
        ("a.drn", "@type: DTMC\n@nr_states\n1\n", "has the lines @nr_states and @model"),
        ("a.drn", HEAD.format(1) + "state 1\n", "line 5: the states are numbered from 0 to 0"),
        ("a.drn", ONE + " action 0\n action 1\n", "line 7: the state 0 has two"),
        ("a.drn", HEAD.format(1) + "hello\n", "line 5: a line is a state, an action or a transition"),
        ("a.drn", HEAD.format(99999999), "with 1 to 16,384 states, and this file says 99,999,999"),
        ("a.drn", HEAD.format(0), "and this file says 0"),
        ("a.drn", HEAD.format(2) + "state 0\n 0 : 1\n", "the row of 1 sums to 0"),
        ("a.drn", ONE + " 0 : 0.5\n 0 : 0.5\n", "line 7: the transition 0 to 0 is there twice"),
        *(
            ("a.drn", f"{ONE} 0 : {wrong}\n", f"line 6: a probability must be a number or a fraction, not '{wrong}'")
            for wrong in ("1/0", "1e999", "nan", "-1", "p")
        ),
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


def test_a_file_without_labels_has_numbered_states(tmp_path):
    lines = ["@type: DTMC", "@nr_states", "2", "@model", "state 0", " 0 : 1/4", " 1 : 3/4", "state 1", " 1 : 1"]
    (tmp_path / "a.drn").write_text("\n".join(lines))
    assert cs.Problem.load(tmp_path / "a.drn")["a"] == cs.MarkovChain([[0.25, 0.75], [0, 1]])
    with pytest.raises(FileError, match="this file cannot be read: No such file"):
        cs.Problem.load(tmp_path / "b.umb")
