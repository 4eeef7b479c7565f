"""Panels: what stands beside the chains is the same on the terminal, in the report and on the page."""

from pathlib import Path

import pytest
from dashboard_servers import Client, connect
from dashboard_studies import new_study

from chainscout.report import Table, panels, studies
from chainscout.report.study_data import StudyReport
from chainscout.report.study_page import study_page
from chainscout.study import Study


def test_a_panel_that_is_appended_is_shown_everywhere(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Table("a <new> panel", ("what", "how many"), (("steps & more", 1234), (None, None)), ("a <note>",))
    monkeypatch.setattr("chainscout.report.study_data.PANELS", (*panels.PANELS, lambda _: shown, lambda _: None))
    with Study.open(where, read_only=True) as study:
        assert studies.status(study)[-1] == shown
        assert StudyReport(study, "Study").panels()[-1] == shown
        text = study_page(study, "Study")
    assert "<h2>a &lt;new&gt; panel</h2>" in text
    assert "<td class=number>1,234</td>" in text
    assert "a &lt;note&gt;" in text
    client: Client
    for client in connect(where):
        *_, found = client.get("/api/panels").json()
        assert found == {
            "title": "a <new> panel",
            "columns": ["what", "how many"],
            "rows": [["steps & more", 1234], [None, None]],
            "notes": ["a <note>"],
            "keys": 1,
            "drawing": None,
        }


def test_leases_are_a_panel_while_anybody_holds_one(tmp_path: Path) -> None:
    study = new_study(tmp_path / "study.db")
    titles = [table.title for table in studies.status(study)]
    assert titles == ["study", "chains"]
    lease = study.worker("worker <7>").lease(7200, steps=4)
    assert lease is not None
    table = studies.status(study)[-1]
    assert (table.title, len(table.rows)) == ("leases", 1)
    chain, path, worker, left, promised = table.rows[0]
    assert (chain, path, worker, promised) == (lease.chain, 1, "worker <7>", 4)
    assert left in ("2 h 0 min", "1 h 59 min")
    assert "worker &lt;7&gt;" in study_page(study, "Study")
    lease.abandon()
    assert [table.title for table in studies.status(study)] == titles
