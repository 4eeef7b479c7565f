"""The suite of trials and the command that runs it: effort, exit status, JSON, the written table."""

import json
import math

import pytest
from click.testing import CliRunner
from simulation import COMPILED
from trial_samples import finding, rows, tiny

from chainscout.errors import InputError
from trials import suite
from trials.__main__ import main
from trials.findings import FAILS, HOLDS, NOT_REACHED, Measured


def test_the_effort():
    quick, full = suite.Effort(), suite.Effort(full=True, scale=0.5)
    assert (quick.times(400, 2_000), full.times(400, 2_000), full.times(1, 2)) == (400, 1_000, 4)
    assert full.runs({10: 1}, {20: 100, 30: 40}) == [(20, 50), (30, 20)]
    on_gpu = suite.Effort(full=True, engine="gpu")
    assert on_gpu.times(400, 2_000) == 1_000_000
    assert on_gpu.runs({10: 1}, {1 << 16: 9, 1 << 20: 9, 1 << 22: 9}) == [
        (1 << 16, 1_000_000),
        (1 << 20, 1_000_000),
        (1 << 22, 65_536),
    ]
    assert not quick.thorough
    assert not full.thorough
    assert suite.Effort(full=True).thorough
    with pytest.raises(InputError, match="scale \\(what numbers of replications are multiplied by\\)"):
        suite.Effort(scale=0.0)
    with pytest.raises(InputError, match="seed"):
        suite.Effort(seed=-1)


def test_a_full_suite_has_all_that_a_quick_one_has():
    quick = [about for about, _ in suite.trials(suite.Effort())]
    full = [about for about, _ in suite.trials(suite.Effort(full=True))]
    assert set(quick) < set(full)
    assert len(set(full)) == len(full)


def run(monkeypatch, given, *arguments):
    monkeypatch.setattr(suite, "verify", lambda effort, started: (started("1/1 trial"), given)[1])
    return CliRunner().invoke(main, arguments)


def test_the_status_says_whether_all_is_as_expected(monkeypatch):
    fine = run(monkeypatch, [finding(FAILS, FAILS)])
    assert (fine.exit_code, fine.stderr) == (0, "1/1 trial …\n")
    assert "every verdict is the expected one" in fine.stdout
    surprised = run(monkeypatch, [finding(FAILS, FAILS), finding(HOLDS, FAILS, claim="d")])
    assert surprised.exit_code == 1
    assert "surprising: 'd' (s): holds, expected was: fails" in surprised.stdout
    assert run(monkeypatch, [finding(NOT_REACHED, HOLDS)], "--full").exit_code == 1
    assert run(monkeypatch, [finding(NOT_REACHED, HOLDS)], "--full", "--scale=0.5").exit_code == 0


def test_json_has_plain_numbers(monkeypatch):
    unknown = finding(NOT_REACHED, HOLDS, measured=Measured(math.nan, -math.inf, math.inf))
    (row,) = json.loads(run(monkeypatch, [unknown], "--json").stdout)
    assert row["measured"] == {"value": None, "low": None, "high": None}
    assert (row["verdict"], row["expected"], row["surprising"]) == (NOT_REACHED, HOLDS, False)


def test_the_table_can_be_written(monkeypatch, tmp_path):
    out = tmp_path / "table.md"
    result = run(
        monkeypatch, [finding(FAILS, FAILS), finding(HOLDS, HOLDS, measured=Measured.exactly(3.0))], f"--out={out}"
    )
    assert result.exit_code == 0
    text = out.read_text(encoding="utf-8")
    assert rows(text) == [
        ["c", "p", "s", "f|g: 0.5000", "0.4000 … 0.6000", "fails", ""],
        ["c", "p", "s", "f|g: 3.000", "computed", "holds", ""],
    ]
    assert f"*Made by `python -m trials --quick --out={out}` on " in text
    refused = run(monkeypatch, [finding(FAILS, FAILS)], f"--out={tmp_path / 'none' / 'table.md'}")
    assert refused.exit_code == 1
    assert "could not be written" in refused.stderr


def test_a_whole_run(monkeypatch):
    """The quick suite with few replications; with compilation off, the tiny trials in its place."""
    if not COMPILED:
        monkeypatch.setattr(suite, "trials", lambda effort: [("tiny", lambda: list(tiny()))])
    result = CliRunner().invoke(main, ["--scale", "0.01", "--json"])
    assert result.exit_code == 0, result.output
    assert {row["claim"] for row in json.loads(result.stdout)} == {f.claim for f in tiny()}


def test_bad_arguments():
    result = CliRunner().invoke(main, ["--scale", "-1"])
    assert result.exit_code == 2
    assert "scale (what numbers of replications are multiplied by)" in result.stderr
