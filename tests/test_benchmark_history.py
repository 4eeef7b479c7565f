"""The page of benchmark history: figures are found in RESULTS.md, and a version's column is added or replaced."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def history():
    specification = importlib.util.spec_from_file_location("history", FOLDER / "history.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_headline_is_a_figure_of_the_results(history):
    results = (FOLDER / "RESULTS.md").read_text(encoding="utf-8")
    for wanted in history.HEADLINES:
        assert any(letter.isdigit() for letter in history.figure(results, wanted)), wanted


def test_a_figure_that_is_not_there_is_a_dash(history):
    assert history.figure("## Speed\n\n| a | 1 |\n", history.Headline("", "Speed", "b", 1)) == "–"
    assert history.figure("## Speed\n\n| a | 1 |\n", history.Headline("", "Speed", "a", 2)) == "–"
    assert history.figure("## Speed\n\n| a | **1.5** × x |\n", history.Headline("", "Speed", "a", 1)) == "1.5"


def test_a_version_has_one_column(history):
    first = history.with_column("", "0.1", {"speed": "1", "size": "7"})
    second = history.with_column(first, "0.2", {"speed": "2", "weight": "3"})
    again = history.with_column(second, "0.1", {"speed": "4"})
    assert again.splitlines()[-5:] == [
        "| figure | 0.1 | 0.2 |",
        "| --- | --- | --- |",
        "| speed | 4 | 2 |",
        "| size | – | – |",
        "| weight | – | 3 |",
    ]
