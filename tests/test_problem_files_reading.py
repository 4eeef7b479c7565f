"""Problem files as people write them: the documented examples."""

import re
from pathlib import Path

import pytest
from problem_samples import CHANNEL

from chainscout import MarkovChain
from chainscout.errors import FileError, RenormalisedWarning
from chainscout.problems import Problem

DOCUMENTATION = Path(__file__).parent.parent / "docs" / "problem-files.md"


def documented(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENTATION.read_text(), re.DOTALL | re.MULTILINE)


def test_the_documented_examples(tmp_path):
    toml, json_text = documented("toml"), documented("json")
    (tmp_path / "p.toml").write_text(*toml)
    with pytest.warns(RenormalisedWarning, match=r"p.toml: chains.south.matrix: rows were divided .* 0.001"):
        problem = Problem.load(tmp_path / "p.toml")
    assert problem["north"] == CHANNEL
    assert problem["south"].matrix[0] == pytest.approx([1 / 3] * 3, rel=1e-15)
    (tmp_path / "p.json").write_text(*json_text)
    assert Problem.load(tmp_path / "p.json")["north"] == MarkovChain(CHANNEL.matrix, None, ["good", "bad"])


def test_the_documented_errors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("channels.toml").write_text(
        'format = 1\n[chains.south]\ncolour = "red"\nstates = ["a", "b", 1.5]\nmatrix = [[1]]\n'
        '[chains.north]\nstates = ["good", "bad"]\nmatrix = [[0.9, 0.0], [0.4, 0.6]]\n'
    )
    with pytest.raises(FileError) as caught:
        Problem.load("channels.toml")
    assert sorted(str(caught.value).splitlines()) == sorted(documented("text")[-1].splitlines())
