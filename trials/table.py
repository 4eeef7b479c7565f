"""The table of verdicts, for a terminal, as records and for the documentation."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from chainscout.numerals import cell
from chainscout.report.tables import Columns, Table

from .findings import Finding
from .suite import Effort

COLUMNS: Columns = {
    "claim": "claim",
    "place": "place",
    "setting": "setting",
    "measured": lambda f: f"{f.figure}: {cell(f.measured.value)}",
    "95 % interval": lambda f: "computed" if f.measured.exact else f"{cell(f.measured.low)} … {cell(f.measured.high)}",
    "verdict": "verdict",
    "note": "note",
}


def table(findings: Sequence[Finding], effort: Effort, delta: float) -> Table:
    """One row for each claim and setting, ordered by claim. The notes name surprising verdicts."""
    claims = list(dict.fromkeys(f.claim for f in findings))
    notes = [f"δ = {delta:g} unless the setting says otherwise; 'holds' is meant for these settings, not for all"]
    surprises = [f for f in findings if f.surprising(effort.thorough)]
    said = [f"surprising: '{f.claim}' ({f.setting}): {f.verdict}, expected was: {f.expected}" for f in surprises]
    notes += said or ["every verdict is the expected one"]
    ordered = sorted(findings, key=lambda f: claims.index(f.claim))
    return Table.of("the paper's claims on trial", ordered, COLUMNS, notes)


def records(findings: Sequence[Finding], effort: Effort) -> list[dict[str, Any]]:
    """One dictionary a row."""
    return [{**asdict(f), "surprising": f.surprising(effort.thorough)} for f in findings]


def markdown(shown: Table, made_by: str) -> str:
    """The table as Markdown for the documentation, and the command that made it."""
    lines = [shown.columns, ("---",) * len(shown.columns)]
    lines += [tuple(cell(value).replace("|", "\\|") for value in row) for row in shown.rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    notes = "\n".join(f"- {note}" for note in shown.notes)
    return f"{text}\n\n{notes}\n\n*{made_by}*\n"
