"""Runs the soak tests, file by file, and writes the results of each into its section of SOAK.md.

``python dev.py soak`` runs all of them, ``python dev.py soak tests/study/test_study_faults.py`` the named files.
"""

import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from recording import record

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(__file__).with_name("SOAK.md")
HEAD = (
    "# Soak tests\n\nThe tests that take from minutes to hours, as they last ran. Every section is written by the"
    " command that stands in it.\n"
)
#: One test at a time, because each one can fill a machine. The newer form of the report cannot hold recorded figures.
PYTEST = [sys.executable, "-m", "pytest", "-m", "soak", "-n", "0", "-q", "-o", "junit_family=xunit1"]


def files_with_soak_tests() -> list[str]:
    """The test files with a test that is marked."""
    found = (ROOT / "tests").rglob("test_*.py")
    return sorted(str(f.relative_to(ROOT)) for f in found if "pytest.mark.soak" in f.read_text(encoding="utf-8"))


def run(file: str) -> int:
    """Runs one file's soak tests and records them; pytest's exit status."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        status = subprocess.run([*PYTEST, file, f"--junitxml={report}"], cwd=ROOT, check=False).returncode
        if not report.exists():  # interrupted, or there is no such file: pytest has printed the reason
            return status
        cases = ElementTree.parse(report).getroot().iter("testcase")
        record(file, f"python dev.py soak {file}", COLUMNS, rows(cases), file=FILE, head=HEAD)
    return status


COLUMNS = ("test", "cases", "passed", "seconds")


def rows(cases) -> list[tuple[str, int, int, str]]:
    """One row for each test, with all its cases."""
    times, passed = defaultdict(list), defaultdict(int)
    for case in cases:
        name = case.get("name", "").split("[")[0].removeprefix("test_").replace("_", " ")
        times[name].append(float(case.get("time", 0)))
        passed[name] += not any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
    return [(name, len(found), passed[name], f"{sum(found):,.0f}") for name, found in times.items()]


if __name__ == "__main__":
    statuses = [run(file) for file in sys.argv[1:] or files_with_soak_tests()]
    sys.exit(int(any(statuses)))
