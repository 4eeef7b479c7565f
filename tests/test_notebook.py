"""A study in a notebook, run by a real kernel."""

import re

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

SLOW = """
import random, time
import chainscout as cs

def machine():
    time.sleep(0.002)
    return random.choice(["up", "down"])

states = {"press": ["up", "down"], "saw": ["up", "down"]}
"""


def run(*cells: str) -> list[list[nbformat.NotebookNode]]:
    """The outputs of the cells as they are in the end, after every update."""
    book = new_notebook(cells=[new_code_cell(text) for text in (SLOW, *cells)])
    NotebookClient(book, timeout=120, kernel_name="python3").execute()
    return [cell["outputs"] for cell in book.cells[1:]]


def html(output: nbformat.NotebookNode) -> str:
    return str(output["data"]["text/html"])


@pytest.fixture(scope="module")
def shown() -> list[list[nbformat.NotebookNode]]:
    return run(
        "study = cs.learn({'press': machine, 'saw': machine}, 300, states=states, certificate='mixture')",
        "study.answer('press', 'reach down from up within 2')",
        "study = cs.Study.create(None, states, budget=200, certificate='mixture')\nstudy.live(every=0.05)",
        "while not study.finished:\n    study.tell(study.ask(), machine())\ntime.sleep(1)",
        "study",
    )


def test_learning_shows_the_study(shown: list[list[nbformat.NotebookNode]]) -> None:
    """In place of a bar; the last thing that is shown is the study's end."""
    (output,) = shown[0]
    assert "300 of 300 observations" in html(output)
    assert re.search(r"every loss is at most 0\.\d+", html(output))


def test_an_answer_is_a_table(shown: list[list[nbformat.NotebookNode]]) -> None:
    (output,) = shown[1]
    assert "<table>" in html(output)
    assert "at least" in html(output)


def test_a_live_study_follows_what_other_cells_tell(shown: list[list[nbformat.NotebookNode]]) -> None:
    """The output of the earlier cell was updated while the later one ran."""
    (output,) = shown[2]
    assert "200 of 200 observations" in html(output)
    assert shown[3] == []
    assert "200 of 200 observations" in html(shown[4][0])
