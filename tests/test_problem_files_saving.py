"""Problem files: what is saved reads back equal, and what a file cannot hold is refused."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_samples import CHANNEL

from chainscout import MarkovChain
from chainscout.errors import FileError, InputError
from chainscout.problems import Problem, get, names

PROBLEM = Problem({"north": CHANNEL, "a": MarkovChain([[1 / 3, 2 / 3], [0.1, 0.9]])}, "channels", "Two.", "The roof.")


# ---------------------------------------------------------------- what is saved reads back


def round_trip(problem, where):
    problem.save(where)
    return Problem.load(where)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = TEXT.filter(bool)
LABELS = st.one_of(TEXT, st.integers(), st.integers(0, 3).map(str))


def laws(size):
    weights = st.lists(st.floats(0, 1) | st.just(5e-324), min_size=size, max_size=size).filter(
        lambda law: sum(law) > 0.1
    )
    return weights.map(lambda law: np.array(law) / sum(law))


@st.composite
def problems(draw, chain_names=NAMES, labels=LABELS):
    chains = {}
    for name in draw(st.lists(chain_names, min_size=1, max_size=3, unique=True)):
        size = draw(st.integers(1, 4))
        initial = draw(laws(size) | st.none())
        states = draw(st.lists(labels, min_size=size, max_size=size, unique=True) | st.none())
        chains[name] = MarkovChain([draw(laws(size)) for _ in range(size)], initial, states)
    return Problem(chains, draw(TEXT), draw(TEXT), draw(TEXT))


@pytest.mark.parametrize("suffix", [".toml", ".json"])
@given(problem=problems())
@settings(max_examples=25, deadline=None)
def test_any_problem_reads_back_equal(suffix, problem, tmp_path_factory):
    assert round_trip(problem, tmp_path_factory.mktemp("p") / f"problem{suffix}") == problem


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("form", ["p.toml", "p.json"])
def test_the_catalogue_reads_back_equal(name, form, tmp_path):
    problem = get(name)
    assert round_trip(problem, tmp_path / form) == problem


def test_a_saved_file_is_readable(tmp_path):
    PROBLEM.save(tmp_path / "p.toml")
    assert (tmp_path / "p.toml").read_text() == (
        'format = 1\nname = "channels"\ndescription = "Two."\nsource = "The roof."\n\n'
        '[chains.north]\nstates = ["good", "bad"]\ninitial = [1.0, 0.0]\n'
        "matrix = [\n  [0.9, 0.1],\n  [0.4, 0.6],\n]\n\n"
        "[chains.a]\nmatrix = [\n  [0.3333333333333333, 0.6666666666666666],\n  [0.1, 0.9],\n]\n"
    )


def test_a_large_matrix(tmp_path):
    problem = get("sparse", chains=1, states=300)
    assert round_trip(problem, tmp_path / "p.toml") == problem


def test_saving_replaces_a_file_and_follows_a_link(tmp_path):
    (tmp_path / "p.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "p.json")
    assert round_trip(PROBLEM, tmp_path / "link.json") == Problem.load(tmp_path / "p.json") == PROBLEM
    assert (tmp_path / "link.json").is_symlink()


def test_the_labels_of_other_libraries(tmp_path):
    problem = Problem({"a": MarkovChain(CHANNEL.matrix, states=list(np.array([7, 9])))})
    assert round_trip(problem, tmp_path / "p.toml")["a"].states == (7, 9)


# ---------------------------------------------------------------- what cannot be saved

REFUSED = {
    "labels": ("p.toml", {"a": MarkovChain(CHANNEL.matrix, states=[(0, 1), 2.5])}, "only strings and integers"),
    "suffix": ("p.yaml", {"a": CHANNEL}, "saved as .toml or .json, or for a model checker .* not as '.yaml'"),
    "Unicode": ("p.toml", {"a\ud800": CHANNEL}, "must be valid Unicode"),
}


@pytest.mark.parametrize(("file", "chains", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_a_file_cannot_hold_is_refused(file, chains, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        Problem(chains).save(tmp_path / file)
    assert not os.listdir(tmp_path)


def test_where_nothing_can_be_saved(tmp_path):
    (tmp_path / "d.toml").mkdir()
    (tmp_path / "f").write_text("a file")
    with pytest.raises(FileError, match="cannot be saved here: Is a directory"):
        PROBLEM.save(tmp_path / "d.toml")
    with pytest.raises(FileError, match="cannot be saved here: No such file or directory"):
        PROBLEM.save(tmp_path / "none" / "p.toml")
    with pytest.raises(FileError, match="cannot be saved here: Not a directory"):
        PROBLEM.save(tmp_path / "f" / "p.toml")
    with pytest.raises(FileError, match=r"cannot be saved here: .*null"):
        PROBLEM.save("a\0b.toml")
    with pytest.raises(InputError, match="path must be a string or a path, not 3"):
        PROBLEM.save(3)
    assert sorted(os.listdir(tmp_path)) == ["d.toml", "f"]


def test_an_interrupted_save_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "p.toml").write_text("old")

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        PROBLEM.save(tmp_path / "p.toml")
    assert os.listdir(tmp_path) == ["p.toml"]
    assert (tmp_path / "p.toml").read_text() == "old"
