"""What a new user waits for: the size of an installation, the first import, the first study.

``python benchmarks/bench_startup.py`` makes an empty environment for each row of the first table (a package index is
needed) and measures the times in the environment of the base.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from recording import record  # noqa: E402

from tools import environments  # noqa: E402

STUDY = """
import chainscout as cs
study = cs.Study.create({where!r}, {{"north": 3, "south": 3}}, budget=30)
while not study.finished:
    study.tell(study.ask(), study.progress().observations % 3)
study.certificate()
"""

PROGRAMS = {
    "import chainscout": "import chainscout",
    "from chainscout import MarkovChain": "from chainscout import MarkovChain",
    "from chainscout import Study": "from chainscout import Study",
    "a study of 30 observations in memory": STUDY.format(where=None),
    "a study of 30 observations in SQLite": STUDY.format(where="lab.db"),
}
RUNS = 5


def installed(folder: Path, requirement: str) -> tuple[Path, int, float]:
    """An empty environment with the package: its interpreter, the number of packages, and their size in MB."""
    environments.create(folder)
    python = environments.python_of(folder)
    environments.pip_install(python, "measured", [requirement])
    site = environments.place(folder, "purelib")
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file() and not file.is_symlink())
    return python, len(list(distributions(path=[str(site)]))), size / 1e6


def times(python: Path, program: str) -> tuple[float, float]:
    """CPU seconds of the first run, with an empty cache of compiled code, and the median of later ones."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        variables["NUMBA_CACHE_DIR"] = cache
        found = []
        for _ in range(RUNS + 1):
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                begin = _of_children()
                subprocess.run([str(python), "-c", program], cwd=folder, env=variables, check=True)
                found.append(_of_children() - begin)
        return found[0], statistics.median(found[1:])


def _of_children() -> float:
    """CPU seconds of the processes that have ended. Unlike wall time, they do not depend on other programs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Records both tables."""
    command = "python benchmarks/bench_startup.py"
    with tempfile.TemporaryDirectory() as place:
        rows, pythons = [], []
        for number, extras in enumerate(("", "[plot,serve]", "[all]")):
            python, packages, size = installed(Path(place) / f"environment{number}", f"{ROOT}{extras}")
            rows.append((f"`chainscout{extras}`", packages, f"{size:,.0f}"))
            pythons.append(python)
        record("What is installed", command, ("what", "packages", "MB"), rows)
        bare = statistics.median(times(pythons[0], "pass")[1] for _ in range(3))
        measured = [("an interpreter alone", f"{bare:.2f}", "")]
        for name, program in PROGRAMS.items():
            first, later = times(pythons[0], program)
            measured.append((f"`{name}`" if "import" in name else name, f"{later:.2f}", f"{first:.1f}"))
        columns = ("what", "CPU s, median of 5 processes", "CPU s, first time, nothing compiled yet")
        record("First import and first study", command, columns, measured, ("numpy", "numba"))


if __name__ == "__main__":
    main()
