"""Every code block of the README runs, in order, in an empty directory."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from chainscout.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)


def commands() -> list[list[str]]:
    lines = [line for kind, text in BLOCKS if kind == "console" for line in text.splitlines()]
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def test_the_first_screen_has_a_picture_and_the_two_commands() -> None:
    first = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:20])
    pictures = re.findall(r'(?:srcset|src)="([^"]+)"', first)
    assert pictures == ["docs/figures/idea-dark.svg", "docs/figures/idea-light.svg"]
    assert all((ROOT / picture).is_file() for picture in pictures)
    assert {"demo", "test"} <= {words[1] for words in commands() if words[0] == "make"}
    assert "$ make demo" in first
    assert "how likely is a failure within 10 steps?" in first


def test_the_example_has_ten_lines_or_so() -> None:
    first = next(text for kind, text in BLOCKS if kind == "python")
    assert len([line for line in first.splitlines() if line.strip()]) <= 12


def test_python_blocks_then_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ```text block is what the ```python block above it prints."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for kind, text in BLOCKS:
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, "README.md", "exec"), names)
            printed = out.getvalue()
        elif kind == "text":
            assert [line.rstrip() for line in printed.splitlines()] == text.splitlines()
    for words in commands():
        if words[0] == "chainscout":
            done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            if words[1] == "answer":  # an answer that says something
                low, high = map(float, re.findall(r" in \[([\d.]+), ([\d.]+)\]", done.stdout)[0])
                assert high - low < 0.35
        else:  # what runs the tests and the demo cannot run inside them
            assert words[0] == "make"
            assert (
                re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M)
                or words[1] in (ROOT / "Makefile").read_text().split()
            )


def test_who_repeats_the_study_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = [text for kind, text in BLOCKS if kind == "python"][:2]
    names: dict[str, object] = {}
    exec(compile(first, "README.md", "exec"), names)
    exec(compile(second, "README.md", "exec"), names)
    with pytest.raises(
        InputError, match=r"^lab\.db exists already: go on with it \(.*, by Study\.open in Python\), or"
    ):
        exec(compile(second, "README.md", "exec"), names)


def test_where_a_crash_loses_nothing_a_seed_is_warned_of() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "so a crash loses nothing. A source that you seed yourself needs a new seed each time it starts" in text


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target
