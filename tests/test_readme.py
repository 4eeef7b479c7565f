"""Every code block of the README runs, in order, in an empty directory."""

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
    first = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:20]
    picture = next(re.search(r"\]\((.*\.png)\)", line) for line in first if line.startswith("!["))
    assert picture is not None
    assert (ROOT / picture[1]).is_file()
    assert {"demo", "test"} <= {words[1] for words in commands() if words[0] == "make"}


def test_python_blocks_then_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text, "README.md", "exec"), names)
    for words in commands():
        if words[0] == "chainscout":
            done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        else:  # what runs the tests and the demo cannot run inside them
            assert words[0] == "make"
            assert (
                re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M)
                or words[1] in (ROOT / "Makefile").read_text().split()
            )


def test_who_repeats_the_first_block_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = next(text for kind, text in BLOCKS if kind == "python")
    exec(compile(first, "README.md", "exec"), {})
    with pytest.raises(
        InputError, match=r"^lab\.db exists already: go on with it \(.*, by Study\.open in Python\), or"
    ):
        exec(compile(first, "README.md", "exec"), {})


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target
