"""Problem files as people write them: the documented examples, labels, tables, notes."""

import re
from pathlib import Path

import pytest
from problem_samples import CHANNEL, CSV_TEXT

from chainscout import MarkovChain
from chainscout.errors import FileError, RenormalisedWarning
from chainscout.problems import Problem

DOCUMENTATION = Path(__file__).parent.parent / "docs" / "problem-files.md"


def documented(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENTATION.read_text(), re.DOTALL | re.MULTILINE)


def test_the_documented_examples(tmp_path):
    toml, json_text = documented("toml"), documented("json")
    bare, labelled, _ = documented("text")
    (tmp_path / "p.toml").write_text(*toml)
    with pytest.warns(RenormalisedWarning, match=r"p.toml: chains.south.matrix: rows were divided .* 0.001"):
        problem = Problem.load(tmp_path / "p.toml")
    assert problem["north"] == CHANNEL
    assert problem["south"].matrix[0] == pytest.approx([1 / 3] * 3, rel=1e-15)
    (tmp_path / "p.json").write_text(*json_text)
    assert Problem.load(tmp_path / "p.json")["north"] == MarkovChain(CHANNEL.matrix, None, ["good", "bad"])
    (tmp_path / "bare.csv").write_text(bare)
    (tmp_path / "labelled.csv").write_text(labelled)
    assert Problem.load(tmp_path / "bare.csv") == Problem({"bare": MarkovChain(CHANNEL.matrix)})
    assert labelled == CSV_TEXT
    assert Problem.load(tmp_path / "labelled.csv")["labelled"].states == ("good", "bad")


def test_the_documented_errors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("channels.toml").write_text(
        'format = 1\n[chains.south]\ncolour = "red"\nstates = ["a", "b", 1.5]\nmatrix = [[1]]\n'
        '[chains.north]\nstates = ["good", "bad"]\nmatrix = [[0.9, 0.0], [0.4, 0.6]]\n'
    )
    with pytest.raises(FileError) as caught:
        Problem.load("channels.toml")
    assert sorted(str(caught.value).splitlines()) == sorted(documented("text")[-1].splitlines())


def test_a_directory_without_a_note_is_in_alphabetical_order(tmp_path):
    (tmp_path / "b.csv").write_text(CSV_TEXT)
    (tmp_path / "a.csv").write_text("\ufeff.5, 0.5\n\n1e0,0\n")
    (tmp_path / "notes.txt").write_text("ignored")
    problem = Problem.load(str(tmp_path))
    assert problem.names == ("a", "b")
    assert problem["a"] == MarkovChain([[0.5, 0.5], [1, 0]])
    assert problem["b"].states == ("good", "bad")


def test_integer_labels_in_a_table(tmp_path):
    (tmp_path / "a.csv").write_text("state,3,-1\n3,.5,.5\n-1,.5,.5\n")
    (tmp_path / "b.csv").write_text("state,3,01\n3,.5,.5\n01,.5,.5\n")
    problem = Problem.load(tmp_path)
    assert problem["a"].states == (3, -1)
    assert problem["b"].states == ("3", "01")


def test_a_note_gives_order_and_initial_laws_and_tolerances(tmp_path):
    (tmp_path / "b.csv").write_text("0.333,0.666\n.5,.5\n")
    (tmp_path / "a.csv").write_text(CSV_TEXT)
    (tmp_path / "problem.toml").write_text(
        'format = 1\nname = "q"\n[chains.b]\ntolerance = 0.01\n[chains.a]\ninitial = [1, 0]\n'
    )
    with pytest.warns(RenormalisedWarning, match=r"b.csv: rows were divided"):
        problem = Problem.load(tmp_path)
    assert (problem.names, problem.name) == (("b", "a"), "q")
    assert problem["a"] == CHANNEL
