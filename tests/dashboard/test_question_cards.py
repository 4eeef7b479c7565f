"""Registered questions on the page, in the report and as JSON: a card each."""

from pathlib import Path

import numpy as np
import pytest
from dashboard_servers import connect

import chainscout as cs
from chainscout.dashboard.work import to_json
from chainscout.report.study_data import StudyReport
from chainscout.report.study_page import study_page

LINES = ["reach down from idle within 4", "time to busy from idle"]


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A study with an answer that is finite, and one that is not yet."""
    where = tmp_path / "lab.db"
    rng = np.random.default_rng(0)
    states = ["idle", "busy", "down"]
    with cs.Study.create(where, {"north": states, "<b>": 2}, questions={"north": LINES}, limit=2.0) as study:
        for x in rng.choice(2, 320):
            study.tell("north", states[x])
    return where


def test_a_card_has_the_interval_over_time_and_says_what_it_waits_for(asked: Path) -> None:
    with cs.Study.open(asked, read_only=True) as study:
        reach, time = StudyReport(study, "Study").cards()
        line = study.questions()[0]
        assert (reach.lower, reach.upper, reach.limit) == (line.lower, line.upper, 2.0)
        assert list(reach.observations) == sorted(reach.observations)
        assert len(reach.uppers) == len(reach.observations) > 5
        assert reach.uppers[-1] == line.upper
        assert reach.uppers[0] >= reach.uppers[-1]
        assert (time.upper, time.uppers) == (None, ())
        assert time.words.startswith("Not done: infinitely wide with probability 0.975")
        assert "no exit of the state 'down' is known" in time.notes[0]
        assert "sample it, or declare the transitions into it impossible" in time.notes[0]


def test_the_report_has_a_card_a_question(asked: Path) -> None:
    with cs.Study.open(asked, read_only=True) as study:
        page = study_page(study, "Study")
    assert "Questions over time" in page
    for line in LINES:
        assert f"north: {line}" in page
    assert "limit</bdi>: 2" in page
    assert "the upper bound is infinite: no exit of the state &#x27;down&#x27; is known" in page


def test_the_interface_gives_the_cards(asked: Path) -> None:
    with cs.Study.open(asked, read_only=True) as study:
        expected = to_json(StudyReport(study, "Study").cards())
    for client in connect(asked):
        assert client.get("/api/questions").content == expected
        panel, *_ = client.get("/api/panels").json()
        assert panel["title"] == "questions"


def test_a_study_without_questions_has_no_cards(where: Path) -> None:
    with cs.Study.open(where, read_only=True) as study:
        assert StudyReport(study, "Study").cards() == ()
        assert "Questions over time" not in study_page(study, "Study")
