"""Adds the headline figures of RESULTS.md to HISTORY.md, as the column of this version.

The column of an existing version is replaced. Figures come from different machines and dates; RESULTS.md has both.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
HEAD = (
    "# Benchmark history\n\nOne column a version, written by `python benchmarks/history.py` from RESULTS.md. Ratios are"
    " taken inside one run; times depend on the machine.\n\n"
)


class Headline(NamedTuple):
    """One figure of RESULTS.md: how a section and a row begin, and the column's number from 0."""

    label: str
    section: str
    row: str
    column: int


HEADLINES = (
    Headline("base install, MB", "What is installed", "`chainscout` |", 2),
    Headline(
        "a first study in SQLite, import included, CPU s",
        "First import and first study",
        "a study of 30 observations in SQLite",
        1,
    ),
    Headline("a step of ba-mc, K = S = 5, × a bare loop", "A step, K = S = 5, one core", "ba-mc | 20,000", 3),
    Headline("a step of scout, K = S = 5, × a bare loop", "A step, K = S = 5, one core", "scout | 20,000", 3),
    Headline("ba-mc against vectorised NumPy, K = S = 5, ×", "ba-mc against vectorised NumPy", "K = S = 5", 3),
    Headline("ask + tell on SQLite, × an fdatasync", "Studies: SQLite", "SQLite, K = 10: ask + tell", 3),
    Headline("ask on SQLite, a hundred thousand chains, × ten", "Studies: SQLite", "SQLite, K = 100,000: ask ", 3),
    Headline("ask + tell in memory, a second", "Studies: in memory", "in memory, K = 10:", 1),
    Headline("50 million rows of logs, × DuckDB by hand", "Counting logs", "50 million | chainscout", 4),
    Headline(
        "page of 100,000 chains complete in the browser", "Live page", "100,000 chains in the browser | complete |", 2
    ),
    Headline(
        "ba-mc on one H200, float32, 10⁹ steps a second", "GPU engine (NVIDIA H200, ", "K = S = 5 | ba-mc | float32", 3
    ),
    Headline("`sharp` for a loss of 0.01, × predicted", "Observations for a certified loss", "**geometric mean**", 9),
    Headline(
        "`mixture` for a loss of 0.01, × predicted", "Observations for a certified loss", "**geometric mean**", 10
    ),
)


def figure(results: str, wanted: Headline) -> str:
    """The figure as it stands in RESULTS.md, or a dash."""
    section = re.search(rf"^## {re.escape(wanted.section)}[^\n]*\n(.*?)(?=^## |\Z)", results, re.M | re.S)
    row = section and re.search(rf"^\| {re.escape(wanted.row)}.*$", section[1], re.M)
    cells = row[0].strip("| ").split(" | ") if row else []
    return cells[wanted.column].partition(" × ")[0].strip("* ") if wanted.column < len(cells) else "–"


def with_column(history: str, version: str, figures: dict[str, str]) -> str:
    """The page with this version's column, at its old place or at the end."""
    lines = [line.strip("|").split("|") for line in history.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line] for line in lines if not set("".join(line)) <= set("- ")]
    versions = rows[0][1:] if rows else []
    known = {row[0]: dict(zip(versions, row[1:], strict=True)) for row in rows[1:]}
    if version not in versions:
        versions.append(version)
    table = [["figure", *versions], ["---"] * (len(versions) + 1)]
    for label in dict.fromkeys([*known, *figures]):
        found = {**known.get(label, {}), version: figures.get(label, "–")}
        table.append([label, *(found.get(one, "–") for one in versions)])
    return HEAD + "\n".join(f"| {' | '.join(row)} |" for row in table) + "\n"


def main() -> None:
    """Writes HISTORY.md."""
    sys.path.insert(0, str(FOLDER.parent / "src"))
    from chainscout import __version__

    results = (FOLDER / "RESULTS.md").read_text(encoding="utf-8")
    page = FOLDER / "HISTORY.md"
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    figures = {wanted.label: figure(results, wanted) for wanted in HEADLINES}
    page.write_text(with_column(old, __version__, figures), encoding="utf-8")
    print(page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
