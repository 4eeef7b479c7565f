"""The commands of this project: ``python3 dev.py COMMAND``, or ``make COMMAND``.

The parser of Python 3.6 must be able to read this file, so that an old interpreter prints a sentence and no syntax
error.
"""
# ruff: noqa: E402 - the version is checked before anything is imported that an old interpreter lacks

import sys

OLDEST = (3, 11)
if sys.version_info < OLDEST:
    sys.exit(
        f"dev.py: chainscout needs Python {OLDEST[0]}.{OLDEST[1]} or newer, and {sys.executable} is Python "
        f"{sys.version_info[0]}.{sys.version_info[1]}: name a newer one, as in 'make demo PYTHON=python3.13'"
    )

import argparse
import re
import shutil
import tomllib
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from tools.environments import ROOT, Refusal, pip_install, place, prepare, run

# --- what goes into each environment ----------------------------------------------------------------------------


def read_project() -> dict[str, Any]:
    """The [project] table of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


#: Extras without a wheel: pyspark is published as pure Python sources (400 MB), and runs on Java.
SOURCES_ONLY = {"spark": "pyspark"}
#: An extra of half a gigabyte that is useful only with a GPU. The test group contains the simulator.
GPU_ONLY = {"gpu"}
GPU_BENCHMARK = ROOT / "benchmarks" / "bench_gpu.py"
GROUPS = ["--group", "dev"]


def runtime() -> Path:
    """What the demo shows: studies, figures, and the live page."""
    return prepare(".venv", "runtime", ["-e", ".[plot,serve]"], enough=("development", "everything"))


def development() -> Path:
    """What the tests, linters and documentation need: wheels only."""
    return prepare(".venv", "development", ["-e", ".[all]", *GROUPS], enough=("everything",))


def everything() -> Path:
    """What development needs, and the extras that are built from sources, for system tests."""
    extras = ",".join(["all", *SOURCES_ONLY])
    return prepare(".venv", "everything", ["-e", f".[{extras}]", *GROUPS, *built_from_sources(SOURCES_ONLY)])


def built_from_sources(extras: Iterable[str]) -> list[str]:
    """pip's options for packages that have no wheel."""
    packages = [SOURCES_ONLY[name] for name in extras if name in SOURCES_ONLY]
    return [option for package in packages for option in ("--no-binary", package)]


def with_release_tools() -> Path:
    return prepare(".venv-release", "release", ["--group", "release"])


def with_gpu() -> Path:
    """The package, its tests, and what the GPU engine needs."""
    return prepare(".venv-gpu", "gpu", ["-e", ".[gpu]", "--group", "test"])


def with_peers() -> Path:
    """What benchmarks need: the tests' packages, and libraries that only benchmarks compare with."""
    return prepare(".venv-bench", "bench", ["-e", ".[all]", "--group", "test", "--group", "bench"])


def interop() -> Path:
    """Libraries whose pins conflict with ours. The package is not installed here; it is imported from its sources."""
    return prepare(".venv-interop", "interop", ["--group", "interop"])


def lowest() -> Path:
    """Every dependency of the package at its lower bound, and the test group at any version that fits."""
    return prepare(".venv-lowest", "lowest", ["-e", ".[all]", *lower_bounds(), "--group", "test"])


def lower_bounds() -> list[str]:
    """Each requirement of the package and of the extras in 'all' as 'name==bound'."""
    project = read_project()
    pins = []
    left_out = {"all", *SOURCES_ONLY, *GPU_ONLY}
    extras = [needs for extra, needs in project["optional-dependencies"].items() if extra not in left_out]
    for requirement in chain(project["dependencies"], *extras):
        parts = re.match(r"([\w.-]+)(?:\[[^]]*\])?>=([\w.]+)", requirement)
        if parts is None:
            raise Refusal(f"the requirement {requirement!r} in pyproject.toml must begin 'name>=bound', and does not")
        pins.append(f"{parts[1]}=={parts[2]}")
    return pins


# --- commands: each gives an exit status, and its docstring is its line of help ---------------------------------


def program(name: str) -> str:
    """A command of .venv."""
    return str(place(ROOT / ".venv", "scripts") / name)


def demo() -> int:
    """install the package into .venv, with figures and the live page, and show what it does"""
    runtime()
    return run([program("chainscout"), "demo"])


def extra(*names: str) -> int:
    """install the package with EXTRAS into .venv, as in 'make extra EXTRAS="logs postgres"'"""
    known = list(read_project()["optional-dependencies"])
    if not names or not set(names) <= set(known):
        raise Refusal(f"extra needs names among {', '.join(known)}, as in 'make extra EXTRAS=logs'")
    pip_install(runtime(), "extra", ["-e", f".[{','.join(names)}]", *built_from_sources(names)])
    return 0


def setup() -> int:
    """prepare .venv for development: every extra, tests, linters, documentation"""
    everything()
    print(".venv is ready.")
    return 0


# More than 8 workers would spend longer on starting than they save.
PYTEST = ["-m", "pytest", "-n", "auto", "--maxprocesses", "8"]


def test() -> int:
    """run the tests that need only wheels"""
    return run([str(development()), *PYTEST])


def test_system() -> int:
    """run the tests that need a program that no wheel contains"""
    # One after the other: the time that a browser needs for a click means nothing while a Spark cluster runs.
    return run([str(everything()), "-m", "pytest", "-m", "system"])


def test_interop() -> int:
    """compare with libraries whose pins conflict with ours, in .venv-interop"""
    peer = {"CHAINSCOUT_INTEROP_PYTHON": str(interop())}
    return run([str(development()), *PYTEST, "-m", "interop"], peer)


def trials() -> int:
    """put the paper's claims on trial, in under a minute"""
    return run([str(development()), "-m", "trials"])


def test_gpu() -> int:
    """compare the GPU engine with the CPU's at full size, in .venv-gpu"""
    return run([str(with_gpu()), "-m", "pytest", "-rP", "-m", "gpu", "tests/test_gpu_device.py"])


def test_lowest() -> int:
    """run the tests with the lowest version of every dependency, in .venv-lowest"""
    return run([str(lowest()), *PYTEST])


def soak(*files: str) -> int:
    """run the tests that take from minutes to hours, all or those of FILES, and record them in benchmarks/SOAK.md"""
    return run([str(development()), str(ROOT / "benchmarks" / "soak.py"), *files])


#: Tests of compiled code that are small enough to be interpreted. Lines of compiled kernels do not count as run.
UNCOMPILED = (
    "tests/test_engine.py",
    "tests/test_policies.py",
    "tests/test_randomness.py",
    "tests/test_certificates.py",
    "tests/test_mixture.py",
    "tests/test_entrywise.py",
    "tests/test_certificate_coverage.py",
    "tests/test_trials_paths.py",
    "tests/test_trials_findings.py",
    "tests/test_trials.py",
    "tests/test_trials_command.py",
)


def coverage() -> int:
    """measure how much of the package the tests cover; tests of kernels run again with compilation off"""
    measure = [str(development()), "-m", "coverage"]
    run([*measure, "erase"])
    status = run([*measure, "run", *PYTEST])
    status = status or run([*measure, "run", *PYTEST, *UNCOMPILED], {"NUMBA_DISABLE_JIT": "1"})
    run([*measure, "combine", "--quiet"])
    return status or run([*measure, "report"])


def lint() -> int:
    """run the linters: ruff, ruff's formatter, mypy, codespell, zizmor"""
    python = str(development())
    linters = (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"], ["mypy", "dev.py"])
    others = [[program("codespell")], [program("zizmor"), "--offline", "--quiet", "."]]
    return sum([run(command) for command in (*[[python, "-m", *linter] for linter in linters], *others)])


def docs() -> int:
    """build the documentation into docs/_build/html; a warning is an error"""
    options = ["--fail-on-warning", "--keep-going", "--quiet"]
    return run([str(development()), "-m", "sphinx", *options, "docs", "docs/_build/html"])


def dist() -> int:
    """build the sdist and the wheel into dist/, check both, and run the tests against the installed wheel"""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    builder = str(with_release_tools())
    # The wheel is built from the sdist, so that both are known to be complete.
    status = run([builder, "-m", "build", "--no-isolation", "--outdir", "dist"])
    built = sorted(str(path) for path in (ROOT / "dist").glob("chainscout-*"))
    wheels = [path for path in built if path.endswith(".whl")]
    status = status or run([builder, "-m", "twine", "check", "--strict", *built])
    status = status or run([builder, "-m", "check_wheel_contents", *wheels])
    if status:
        return status
    shutil.rmtree(ROOT / ".venv-wheel", ignore_errors=True)
    python = str(prepare(".venv-wheel", "wheel", [f"{wheels[0]}[all]", "--group", "test"]))
    where = "import chainscout, sys; sys.exit(not chainscout.__file__.startswith(sys.prefix))"
    return run([python, "-c", where]) or run([python, *PYTEST])


def bench() -> int:
    """run every benchmark that needs no GPU, in .venv-bench"""
    scripts = sorted(set((ROOT / "benchmarks").glob("bench_*.py")) - {GPU_BENCHMARK})
    python = str(with_peers())
    return sum([run([python, str(script)]) for script in scripts])


def bench_gpu() -> int:
    """run the GPU engine's benchmark"""
    return run([str(with_gpu()), str(GPU_BENCHMARK)])


def clean() -> int:
    """remove the environments and everything else that these commands have made"""
    made = [".venv", ".venv-interop", ".venv-lowest", ".venv-gpu", ".venv-bench", ".venv-release", ".venv-wheel"]
    made += ["dist", "docs/_build", "chainscout-demo", ".coverage", ".coverage.*", ".hypothesis"]
    made += [".mypy_cache", ".pytest_cache", ".ruff_cache", "**/__pycache__"]
    for pattern in made:
        for path in list(ROOT.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    return 0


COMMANDS: dict[str, Callable[..., int]] = {
    "demo": demo,
    "extra": extra,
    "setup": setup,
    "test": test,
    "test-system": test_system,
    "test-interop": test_interop,
    "test-lowest": test_lowest,
    "test-gpu": test_gpu,
    "trials": trials,
    "soak": soak,
    "coverage": coverage,
    "lint": lint,
    "docs": docs,
    "dist": dist,
    "bench": bench,
    "bench-gpu": bench_gpu,
    "clean": clean,
}


def main(arguments: list[str]) -> int:
    lines = [f"  {name:<14}{command.__doc__}" for name, command in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="dev.py",
        description="Set up, check and measure this project.",
        epilog="\n".join(["commands:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("names", nargs="*", metavar="NAMES", help="FILES of soak, EXTRAS of extra")
    given = parser.parse_args(arguments or ["--help"])
    if given.names and given.command not in ("soak", "extra"):
        parser.error(f"{given.command} takes no names")
    try:
        return int(COMMANDS[given.command](*given.names) != 0)
    except (Refusal, OSError) as error:
        print(f"dev.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("dev.py: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
