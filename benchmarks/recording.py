"""Writes a table into its section of RESULTS.md, or of another file, with machine, versions and date."""

import datetime
import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

FILE = Path(__file__).with_name("RESULTS.md")
HEAD = (
    "# Benchmarks\n\nEvery section is written by the command that stands in it. Times vary from machine to machine;"
    " ratios are taken inside one run.\n"
)


def record(
    title: str,
    command: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    packages: Sequence[str] = (),
    file: Path = FILE,
    head: str = HEAD,
) -> None:
    """Prints the table and replaces the section ``title`` of ``file`` by it; a new file begins with ``head``."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    about = f"`{command}`, {datetime.date.today().isoformat()}, {machine()}, Python {platform.python_version()}"
    about += "".join(f", {name} {version(name)}" for name in packages)
    section = f"## {title}\n\n{about}\n\n" + "\n".join(lines) + "\n"
    text = file.read_text(encoding="utf-8") if file.exists() else head
    old = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", text, re.M | re.S)
    text = text[: old.start()] + section + "\n" + text[old.end() :] if old else text.rstrip("\n") + "\n\n" + section
    file.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    print(section)


def machine() -> str:
    """The processor's name and the number of cores."""
    name = platform.processor() or platform.machine()
    try:
        found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
        name = found[1] if found else name
    except OSError:
        pass
    return f"{name}, {os.cpu_count()} cores"
