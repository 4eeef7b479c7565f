"""The demonstration: short, in plain words, true, and what it leaves can be opened."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

import chainscout as cs
from chainscout.cli import demonstration, main
from chainscout.learning import read_study_file
from chainscout.numerals import bound, lower, upper

SCRIPTS = Path(sys.executable).parent


def chainscout(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """The command as it is installed, found on the path."""
    program = SCRIPTS / "chainscout"
    environment = os.environ | {"PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}
    return subprocess.run(
        [program, *words], cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False, env=environment
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def told(folder: Path) -> str:
    (folder / "chainscout-demo").mkdir()
    (folder / "chainscout-demo" / "lab.db").write_text("of an earlier demonstration")
    done = chainscout("demo", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_it_fits_one_screen(told: str) -> None:
    lines = told.splitlines()
    assert len(lines) <= 40
    # Beside the name of the program, which is longer where it is not found on the path ('.venv/bin/chainscout').
    assert max(map(len, lines)) <= 80
    assert max(len(line) for line in lines if line.startswith("  chainscout ")) + len(".venv/bin/") <= 80


def test_its_file_invites_nobody_to_a_fixed_seed() -> None:
    comment, _, _ = demonstration.STUDY.read_text(encoding="utf-8").partition("where = ")
    assert "--seed" not in comment
    assert "with a fixed seed its paths repeat,\n# and no bound holds." in comment


def test_it_speaks_plain_words(told: str) -> None:
    assert not re.search("[Α-Ωα-ωℓ₀-₉]|_ps", told)


def test_what_it_says_is_what_the_study_holds(told: str, folder: Path) -> None:
    with cs.Study.open(folder / "chainscout-demo" / "lab.db", read_only=True) as study:
        study.audit()
        assert study.stop_reason == "target_loss"
        used, certificate = study.progress().observations, study.certificate()
        answer = study.answer("queue", "reach full from empty within 5")
        pump = study.counts("pump")
    assert f"no loss is above {bound(certificate.max)}" in told
    assert certificate.max <= 0.03
    assert pump.unknown_rows == 3
    assert "pump     3 of 5 rows were never left: nothing is known of hot, down, repaired" in told
    assert f"from {lower(answer.lower)} to {upper(answer.upper)}" in told
    assert answer.lower <= 0.24799 <= answer.upper
    runs = {
        words: [int(number.replace(",", "")) for number in numbers.split()]
        for words, numbers in re.findall(r"^  (this study's rule|taking turns|the paper's)[^\d]*([\d, ]+)$", told, re.M)
    }
    assert list(runs) == ["this study's rule", "taking turns", "the paper's"]
    mine, turns = runs["this study's rule"], runs["taking turns"]
    assert mine[0] == used
    assert all(few < many for few, many in zip(mine, turns, strict=True))
    assert f"{1 - sum(mine) / sum(turns):.0%} fewer samples" in told


def test_the_others_are_measured(told: str) -> None:
    """Round-robin on the same paths, until every bound has reached the target: the last chain is found by hand."""
    needed = []
    for seed in demonstration.SEEDS:
        sources = cs.simulated(demonstration.demonstrated(), seed=seed)
        with cs.learn(sources, 20_000, target_loss=0.03, progress=False) as study:
            enough = list(study.allocation().values())
        most = max(enough)  # at that moment the chains before this one have as many, and those after it one fewer
        needed.append(f"{3 * (most - 1) + 1 + enough.index(most):,}")
    assert re.search(r"round-robin\) +" + " +".join(needed) + "$", told, re.M)
    assert f"(seeds {', '.join(map(str, demonstration.SEEDS))})" in told


def test_the_study_has_the_defaults_of_the_library(folder: Path, told: str) -> None:
    with cs.Study.open(folder / "chainscout-demo" / "lab.db", read_only=True) as study:
        assert study.certificate().method == "sharp"


def test_its_files_open(told: str, folder: Path) -> None:
    left = folder / "chainscout-demo"
    assert {file.name for file in left.iterdir()} >= set(demonstration.FILES)
    assert list(read_study_file(left / "study.toml").sources) == ["queue", "channel", "pump"]
    page = (left / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Three processes" in page
    assert all(name in told for name in demonstration.FILES)
    # The command that it shows goes on with the study, which is finished.
    shown = next(line for line in told.splitlines() if "$ chainscout" in line)
    done = chainscout(*shlex.split(shown)[2:], cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "the target loss is certified" in done.stdout


def test_the_commands_to_try_next_work(told: str, folder: Path) -> None:
    commands = [shlex.split(line) for line in told.splitlines() if line.startswith("  chainscout ")]
    assert [words[1] for words in commands] == ["status", "answer", "serve"]
    for words in commands[:2]:
        done = chainscout(*words[1:], cwd=folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout
    command = [str(SCRIPTS / "chainscout"), *commands[2][1:], "--port", "0"]  # the usual port may be in use here
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            entrance = server.stdout.readline().strip()
            page = httpx.get(entrance, follow_redirects=True, timeout=30)
            assert page.status_code == 200
            assert "chainscout" in page.text
        finally:
            server.terminate()


def test_where_nothing_can_be_written_one_sentence_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = chainscout("demo", "--out", str(tmp_path / "file" / "demo"), cwd=tmp_path)
    assert done.returncode != 0
    assert re.fullmatch(r"chainscout: \S+ could not be written: .*\n", done.stderr)


def test_a_study_file_that_was_edited_is_kept(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text("budget = 5\n")
    (tmp_path / "lab.db").write_text("mine")
    found = CliRunner().invoke(main, ["demo", "--out", str(tmp_path)])
    assert found.exit_code == 1
    assert "is not what a demonstration wrote, and is kept" in found.output
    assert file.read_text() == "budget = 5\n"
    assert (tmp_path / "lab.db").read_text() == "mine"
