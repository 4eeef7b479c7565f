"""The live page with 100,000 chains in a browser, and many readers while a study is written.

The figures are those that the system and soak tests of the dashboard record; chromium and chromedriver are needed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from recording import record

TESTS = Path(__file__).resolve().parent.parent / "tests" / "dashboard"
#: Title, file, marker and test.
MEASURED = (
    ("100,000 chains in the browser", "test_browser_large.py", "system", "a_hundred_thousand_chains"),
    ("200 streams and 1,000 requests a second wanted", "test_dashboard_soak.py", "soak", "many_readers"),
)


def main() -> None:
    rows: list[tuple[str, str, str]] = []
    for what, file, marker, test in MEASURED:
        with tempfile.TemporaryDirectory() as folder:
            found = Path(folder) / "found.xml"
            words = [sys.executable, "-m", "pytest", str(TESTS / file), "-q", "-m", marker, "-k", test]
            # A test that misses its limit fails, but its figures are recorded.
            subprocess.run([*words, "-p", "no:xdist", f"--junitxml={found}", "-o", "junit_family=xunit1"], check=False)
            properties = ElementTree.parse(found).iter("property")
            rows += [(what, str(entry.get("name")), str(entry.get("value"))) for entry in properties]
    record(
        "Live page",
        "python benchmarks/bench_dashboard.py",
        ("where", "what", "measured"),
        rows,
        ("starlette", "uvicorn"),
    )


if __name__ == "__main__":
    main()
