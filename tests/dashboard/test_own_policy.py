"""A study with a user's own policy: everything is shown that does not need the rule, and nothing of it is imported."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from dashboard_servers import Client, Running, connect
from dashboard_studies import advance, new_study

from chainscout.cli import main
from chainscout.errors import InputError
from chainscout.policies import Policy
from chainscout.report.study_data import StudyReport
from chainscout.study import Study

RULE = Policy(
    "os:system <b>",
    lambda sums, transitions, constants: sums[0] / transitions,
    lambda *row: (1.0,),
    parameters={"c": 2.0},
)
SENTENCE = (
    "the study uses the policy 'os:system <b>', which is not built in: only a Python program "
    "that gives this policy to Study.open can go on with it"
)


@pytest.fixture
def where(tmp_path: Path) -> Path:
    path = tmp_path / "own.db"
    with new_study(path, policy=RULE) as study:
        advance(study, 120)
    return path


def test_what_does_not_need_the_rule_is_read(where: Path) -> None:
    with Study.open(where, RULE) as own, Study.open(where, read_only=True) as study:
        assert not study.knows_policy
        assert own.knows_policy
        assert study.certificate() == own.certificate()
        assert study.indices() == {}
        assert (study.estimate("cyclic").matrix == own.estimate("cyclic").matrix).all()
        assert study.progress().policy == RULE.name
        study.audit()
        for needs in (study.ask, lambda: study.ask(3), lambda: study.policy):
            with pytest.raises(InputError) as refused:
                needs()
            assert str(refused.value) == SENTENCE
        shown, known = StudyReport(study, "Study"), StudyReport(own, "Study")
        lines = tuple(replace(line, index=None) for line in known.page().chains)
        assert shown.page().chains == lines
        assert shown.curves() == known.curves()
        assert "its rule is not here" in " ".join(shown.overview().notes)
        assert "its rule is not here" not in " ".join(known.overview().notes)


def test_the_command_line_shows_it(where: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = CliRunner().invoke(main, ["report", str(where), "--out", str(out)])
    assert done.exit_code == 0, done.output
    text = out.read_text(encoding="utf-8")
    assert "os:system &lt;b&gt; is not built in, and its rule is not here" in text
    assert "<b>" not in text
    assert CliRunner().invoke(main, ["status", str(where)]).exit_code == 0
    asked = CliRunner().invoke(main, ["ask", str(where)])
    assert (asked.exit_code, asked.output) == (2, f"chainscout: {SENTENCE}\n")


def test_the_page_shows_it(where: Path, run: Callable[..., Running]) -> None:
    for client in connect(where):
        overview = client.get("/api/study").json()
        assert overview["policy"] == "os:system <b>"
        assert overview["observations"] == 120
        assert [curve["aim"] for curve in client.get("/api/curves").json()["curves"]] == [None] * 3
        assert all(line["index"] is None for line in client.get("/api/chains").json()["chains"])
    with run(where).client() as other:
        assert other.get("/api/study").status_code == 200


def test_writing_needs_the_rule(where: Path) -> None:
    command = [sys.executable, "-m", "chainscout", "serve", str(where), "--port", "0", "--writable"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"chainscout: {SENTENCE}\n")


def test_a_reader_changes_nothing(where: Path, client: Client) -> None:
    before = where.read_bytes()
    assert client.get("/download/report.html").status_code == 200
    assert where.read_bytes() == before
