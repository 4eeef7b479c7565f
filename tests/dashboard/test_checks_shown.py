"""What the checks say, wherever certificates are shown."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from dashboard_browser import Browser
from dashboard_servers import Running, connect

from chainscout.cli import main
from chainscout.diagnostics._sentences import why_waiting
from chainscout.report import studies
from chainscout.report.study_data import StudyReport
from chainscout.report.study_page import study_page
from chainscout.study import Study

TITLE = "checks of what the bounds assume"
NOTE = (
    "the bound assumes that the next state depends on the state alone and that the law does not change; the data speak "
    "against it: order (predecessor)"
)


def observed(where: Path | None, memory: float, length: int = 700) -> Study:
    """A study of two chains; the second one goes back where it came from with this probability."""
    rng = np.random.default_rng(3)
    study = Study.create(where, {"plain": 2, "odd": 3})
    walks = {"plain": [0, 0], "odd": [0, 0]}
    told = []
    for number in range(length):
        name = ("plain", "odd")[number % 2]
        back = name == "odd" and rng.random() < memory
        walks[name].append(walks[name][-2] if back else int(rng.integers(2 if name == "plain" else 3)))
        told.append((name, walks[name][-1]))
    study.tell_many(told)
    return study


def line(study: Study) -> str:
    return str(dict(studies.status(study)[0].rows)[TITLE])


def test_nothing_that_speaks_against_it() -> None:
    study = observed(None, 0.0, 1100)
    assert line(study) == "nothing speaks against a Markov chain that does not change (1,098 of 1,098 transitions)"
    assert not any("speak against it" in note for note in StudyReport(study, "").overview().notes)
    study.tell_many([("odd", 0)] * 3)
    assert line(study).endswith("(1,098 of 1,101 transitions)")
    assert "Of 3 transitions nothing is said" in " ".join(StudyReport(study, "").panels()[-1].notes)


def test_few_transitions_that_were_checked_come_first() -> None:
    """No check goes past a draw that was given up after a later one had begun, and the line begins with that."""
    study = Study.create(None, {"a": 2})
    one, two = study.worker("one", renews=False), study.worker("two", renews=False)
    first, second = one.lease(steps=2_000), two.lease(steps=2_000)
    rng = np.random.default_rng(1)
    for _ in range(200):
        first.tell(int(rng.integers(2)))
        second.tell(int(rng.integers(2)))
    first.give_back()
    for _ in range(1_500):
        second.tell(int(rng.integers(2)))
    second.give_back()
    assert line(study) == (
        "only 398 of 1,898 transitions were checked ('chainscout diagnose' checks each chain to its end): nothing in"
        " these speaks against a Markov chain that does not change"
    )
    assert why_waiting(None, 16_188, "draw 7 is pending").startswith("16,188 transitions wait")


def test_of_few_observations_nothing_is_kept() -> None:
    study = observed(None, 0.4, 1000)
    assert line(study) == "none kept of so few observations or so many chains: 'chainscout diagnose' reads the log"
    assert StudyReport(study, "").panels() == ()
    found = study.checks()
    assert found is not None
    assert found.note == NOTE


def test_what_speaks_against_it_is_said_wherever_certificates_are(tmp_path: Path) -> None:
    where = tmp_path / "lab.db"
    with observed(where, 0.4, 1600) as study:
        certificates = {name: study.certificate().loss[name] for name in study.names}
        found = study.checks()
        assert found is not None
        assert found.note == NOTE
        assert line(study).startswith("the data speak against a Markov chain that does not change: order (predecessor)")
        assert NOTE in studies.status(study)[1].notes
        assert NOTE in StudyReport(study, "").overview().notes
        table = StudyReport(study, "").panels()[-1]
        assert (table.title, table.columns[0], table.rows[0][:2]) == (TITLE, "check", ("order", "predecessor"))
        drawing = table.drawing
        assert drawing is not None
        assert (drawing.level, drawing.lines[0].label) == (100.0, "order (predecessor)")
        assert max(drawing.lines[0].y) > drawing.level > max(drawing.lines[1].y)
        assert list(drawing.lines[0].x) == sorted(drawing.lines[0].x)
        text = study_page(study, "Lab")
        assert f"<h2>{TITLE}</h2>" in text
        assert NOTE in text
        assert "speaks against it</bdi>: 100" in text
        # The certificate itself is what it was.
        assert {name: study.certificate().loss[name] for name in study.names} == certificates
    shown = CliRunner().invoke(main, ["status", str(where)], terminal_width=400)
    assert shown.exit_code == 0
    assert "the data speak against a Markov chain that does not change" in shown.output
    assert json.loads(CliRunner().invoke(main, ["status", str(where), "--json"]).output)
    for client in connect(where):
        *_, panel = client.get("/api/panels").json()
        assert panel["drawing"]["level"] == 100
        assert all(len(line["x"]) == len(line["y"]) for line in panel["drawing"]["lines"])
        assert NOTE in client.get("/api/study").json()["notes"]


def test_a_certificate_has_the_note_as_of_when_the_checks_were_last_kept() -> None:
    assert observed(None, 0.4, 1000).certificate().doubt is None
    assert observed(None, 0.4, 1600).certificate().notes[1] == NOTE
    assert observed(None, 0.0, 1600).certificate().doubt is None


def test_a_certificate_of_a_small_study_that_has_stopped_has_the_note_of_its_last_moment() -> None:
    study = observed(None, 0.4, 1000)
    study.extend(budget=1001)
    assert study.certificate().doubt is None
    study.tell(study.ask(), 0)
    assert study.finished
    assert study.certificate().doubt == NOTE


@pytest.mark.system
def test_the_page_draws_the_evidence(browser: Browser, run: Callable[..., Running], tmp_path: Path) -> None:
    where = tmp_path / "lab.db"
    with Study.create(where, {"a": 2}) as study:
        server = run(where)
        browser.show(server)
        assert "evidence" not in browser.text("#panels")
        study.tell_many([("a", number % 2) for number in range(1100)])
        browser.until(lambda: browser.one("#panels polyline"))
        assert "speaks against it: 100" in browser.text("#panels .legend")
        browser.until(lambda: "Nothing speaks against" in browser.text("#panels"))
