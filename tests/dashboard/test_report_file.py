"""The report file: it shows the library's numbers, loads nothing, and no name breaks out of its place."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dashboard_studies import HOSTILE, PROBLEM, advance, new_study, stored

import chainscout as cs
from chainscout import experiment
from chainscout.cli import main
from chainscout.numerals import bound, cell, lower, upper
from chainscout.report.charts import line_chart
from chainscout.report.study_page import study_page
from chainscout.report.tables import Drawing, Series
from chainscout.study import Study


class Reader(HTMLParser):
    """The elements of a page and the texts of its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("td", "th"):
            self.cells.append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.cells[-1] += data


def test_the_page_of_a_study_shows_the_library_s_numbers(where: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = CliRunner().invoke(main, ["report", str(where), "--out", str(out)])
    assert (done.exit_code, done.output) == (0, f"{out}\n")
    page = Reader(out.read_text(encoding="utf-8"))
    with Study.open(where, read_only=True) as study:
        assert bound(study.progress().certificate) in page.cells
        for name in PROBLEM.names:
            assert bound(stored(study)[name]) in page.cells
            assert cell(study.indices()[name]) in page.cells
            estimate = study.estimate(name)
            x, y = 1, 2
            words = (
                f"{x} → {y}: {cell(float(estimate.matrix[x, y]))}, between {lower(estimate.lower[x, y])} and "
                f"{upper(estimate.upper[x, y])} with probability 0.95; seen {estimate.transitions[x, y]:,} times "
                f"in {estimate.exits[x]:,} exits"
            )
            if estimate.exits[x] == 0:
                words += "; the row was never left: not known"
            elif (estimate.upper - estimate.lower)[x].max() > 0.5:
                words += "; the row was rarely left: hardly known"
            assert f"{estimate.matrix[x, y]:.2f}{words}" in page.cells
    assert page.cells.count("never left: not known") + page.cells.count("rarely left: hardly known") > 0


def test_the_page_of_an_experiment_shows_its_summary(tmp_path: Path) -> None:
    results = experiment.compare(PROBLEM, ["uniform", "oracle"], [100, 200], 20, engine="python", progress=False)
    results.save(tmp_path / "run.npz")
    out = tmp_path / "report.html"
    done = CliRunner().invoke(main, ["report", str(tmp_path / "run.npz"), "--out", str(out)])
    assert done.exit_code == 0, done.output
    text = out.read_text(encoding="utf-8")
    page = Reader(text)
    for row in results.summary():
        for name, value in row.items():
            if f"± {name}" in row:
                assert f"{cell(value)} ± {row[f'± {name}']:.2g}" in page.cells
    assert "seed" in page.cells
    check_self_contained(text)


def check_self_contained(text: str) -> None:
    """Nothing to load, nothing to run."""
    page = Reader(text)
    assert "script" not in page.tags
    assert not {"iframe", "object", "embed", "link", "img", "base", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [value for name, value in page.attributes if name in ("src", "href", "xlink:href") and value[:1] != "#"]
    assert not re.search(r"@import|url\((?!#)", text)
    assert "default-src 'none'" in text


@pytest.mark.parametrize("observations", [0, 150])
def test_hostile_names_stay_in_their_places(observations: int) -> None:
    study = Study.create(None, dict.fromkeys(HOSTILE, HOSTILE), budget=10_000)
    for t in range(observations):
        study.tell(study.ask(), HOSTILE[t % len(HOSTILE)])
    study.worker(HOSTILE[0], renews=False).lease()
    text = study_page(study, HOSTILE[0])
    check_self_contained(text)
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "x" * 100 not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


@pytest.mark.parametrize("chains", [1, 30, 300])
def test_any_number_of_chains(chains: int) -> None:
    study = Study.create(None, {f"chain {k}": 3 for k in range(chains)}, budget=1000)
    for t in range(40):
        study.tell(study.ask(), t % 3)
    text = study_page(study, "Study")
    assert text.count("<details>") == min(chains, 20)
    assert ("least known of" in text) == (chains > 20)


def test_a_finished_study_says_why() -> None:
    study = new_study(None, budget=60)
    advance(study, 60)
    assert "finished: the budget is spent" in study_page(study, "Study")


def test_a_target_met_by_the_rest_is_said_in_words() -> None:
    study = Study.create(None, {"a": 1, "b": 2}, target_loss=0.5)
    study.tell_many([("a", 0)] * 3)
    study.set_aside("b", "its source is broken")
    assert study.stop_reason == "target_loss_of_the_rest"
    page = study_page(study, "Study")
    words = "the target loss is certified but for the chains set aside"
    assert f"finished: {words}" in page
    assert f"reason {words}" in page  # among what happened
    assert "target_loss" not in page


def test_more_states_than_are_drawn() -> None:
    study = Study.create(None, {"large": 200}, budget=1000)
    study.tell("large", 3)
    assert "The first 30 of 200 states are shown." in study_page(study, "Study")


def test_charts() -> None:
    def drawn(x: list[float], y: list[float | None], **options: Any) -> str:
        return line_chart(Drawing("Loss", "n", (Series.of("a", x, y),), **options))

    assert "nothing to draw yet" in drawn([], [])
    flat = drawn([1, 2], [3.0, 3.0], logarithmic=True, level=1.0)
    assert flat.count("<polyline") == 1
    assert "target</bdi>: 1" in flat
    known = drawn([1, 2, 3], [0.5, None, 0.1])
    assert len(re.findall(r'<polyline [^>]*points="([^"]*)"', known)[0].split()) == 2
    assert "<polyline" in drawn([1], [0.0])
    assert "nothing to draw yet" in drawn([1], [0.0], logarithmic=True)
    assert drawn([1], [-2.0], bottom=-4.0, notes=("below <0>",)).count("<p class=note>below &lt;0&gt;</p>") == 1


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["nothing.db"], 1, "chainscout: there is no study at nothing.db"),
        (["nothing.npz"], 1, "chainscout: there is no file nothing.npz"),
    ],
)
def test_what_is_not_there(
    words: list[str], status: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["report", *words])
    assert (done.exit_code, done.output) == (status, f"{sentence}\n")


def test_a_file_that_cannot_be_written(where: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["report", str(where), "--out", str(tmp_path / "no" / "report.html")])
    assert done.exit_code == 1
    assert "could not be written: No such file or directory" in done.output


def test_the_package_is_what_it_says() -> None:
    assert cs.__version__ in study_page(new_study(None), "Study")
