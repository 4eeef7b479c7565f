"""The parts of the live page: the HTML of the report, with buttons that ask for more."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl

import pytest
from dashboard_servers import connect
from dashboard_studies import HOSTILE
from test_report_file import Reader

from chainscout.answers import Reach
from chainscout.dashboard import parts
from chainscout.report.study_data import StudyReport
from chainscout.report.study_page import study_page
from chainscout.study import Study

ASKED = {"search": "", "sort": "number", "descending": False, "page": 1, "size": 25}


def buttons(text: str) -> dict[str, tuple[str, dict[str, str]]]:
    """The words of each button that can be pressed → its part, and what it asks for."""
    found = re.findall(r'<button type=button(?: id=[\w-]+)? data-part=(\w+) data-ask="([^"]*)">(.*?)</button>', text)
    return {re.sub("<[^>]*>", "", words): (part, dict(parse_qsl(unescape(query)))) for part, query, words in found}


def test_the_page_shows_what_the_report_shows(where: Path) -> None:
    with Study.open(where, read_only=True) as study:
        found, report = StudyReport(study, "Study"), study_page(study, "Study")
        shown = parts.study(found) + parts.charts(found, ())
    moving = re.compile(r"(as of|last observation|time left \(estimate\)|observations a second)</dt><dd>.*?</dd>")
    for name in ("figures", "certificate", "share"):
        (mine,), (its,) = (
            re.findall(rf"<section id={name}>.*?</section>", text, re.DOTALL) for text in (shown, report)
        )
        mine = re.sub(' data-read="[^"]*"', "", mine)
        assert moving.sub("", mine) == moving.sub("", its)


def test_a_legend_has_the_value_of_every_point(where: Path) -> None:
    with Study.open(where, read_only=True) as study:
        text = parts.charts(StudyReport(study, "Study"), ())
    read = [values.split("|") for values in re.findall('data-read="([^"]*)"', text)]
    points = [places.split() for places in re.findall('<polyline [^>]*points="([^"]*)"', text)]
    assert len(read) == len(points) > 3
    assert [len(values) for values in read] == [len(places) for places in points]
    assert all(values[-1].endswith(" (latest)") and " at " in values[0] for values in read if len(values) > 1)


def test_buttons_of_the_table_ask_for_what_they_say(tmp_path: Path) -> None:
    with Study.create(tmp_path / "study.db", {f"chain {k:02d}": 2 for k in range(60)}, budget=100) as study:
        report = StudyReport(study, "Study")
        found = buttons(parts.chains(report, **ASKED | {"search": "chain &", "page": 1}))
        assert "Next" not in found  # nothing was found
        found = buttons(parts.chains(report, **ASKED | {"page": 2}))
        assert [found[name][1]["page"] for name in ("First", "Previous", "Next", "Last")] == ["1", "1", "3", "3"]
        assert (found["chain"][1]["sort"], found["chain"][1]["descending"]) == ("name", "false")
        assert (found["states"][1]["sort"], found["states"][1]["descending"]) == ("states", "true")
        assert found["chain 25"] == ("chain", {"number": "25"})
        assert "share" not in found
        found = buttons(parts.chains(report, **ASKED | {"sort": "states", "descending": True}))
        assert found["states ▾"][1]["descending"] == "false"
    for client in connect(tmp_path / "study.db"):
        assert found["Next"] == ("chains", {"page": "2"})
        answer = client.get("/part/chains?sort=states&descending=true&page=2")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "page 2 of 3" in answer.text


def test_a_large_matrix_has_buttons_that_stay_inside(tmp_path: Path) -> None:
    with Study.create(None, {"large": 50}, budget=100) as study:
        report = StudyReport(study, "Study")
        found = buttons(parts.chain(report, 0, 0, 20))
        assert {words: query for words, (_, query) in found.items()} == {
            "↓ rows": {"number": "0", "row": "20", "column": "20"},
            "← columns": {"number": "0", "row": "0", "column": "0"},
            "→ columns": {"number": "0", "row": "0", "column": "40"},
        }
        assert set(buttons(parts.chain(report, 0, 40, 40))) == {"↑ rows", "← columns"}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str) -> None:
    study = Study.create(
        None, {name: [name, "other"]}, budget=100, questions={name: [Reach(name, start="other", within=3)]}
    )
    study.tell(name, name)
    study.tell(name, "other")
    report = StudyReport(study, name)
    for text in (
        parts.study(report),
        parts.charts(report, (0,)),
        parts.chains(report, **ASKED),
        parts.chain(report, 0, 0, 0),
    ):
        read = Reader(text)
        assert not {"script", "img", "iframe"} & set(read.tags)
        assert not [key for key, _ in read.attributes if key.startswith("on") or key in ("style", "src")]
        assert "\x00" not in text
        for query in re.findall('data-ask="([^"]*)"', text):
            assert set(parse_qs(unescape(query))) <= {*ASKED, "number", "row", "column"}
