"""What a missing optional dependency's message says: a command that works in the environment at hand."""

import importlib.util
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import chainscout as cs
from chainscout import installation
from chainscout.errors import MissingExtraError

ROOT = Path(__file__).resolve().parent.parent
#: What the extra 'logs' needs, as a shell reads it.
LOGS = "'duckdb>=2.0' 'sqlalchemy>=2.0.30'"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that is a checkout as far as this module sees."""
    (tmp_path / "dev.py").touch()
    monkeypatch.setattr(installation, "_ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """The package where pip puts it: no checkout around it."""
    monkeypatch.setattr(installation, "_ROOT", tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())


def test_the_environment_of_a_checkout_is_served_by_make(checkout, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(checkout / ".venv"))
    assert installation.extra_command("logs") == f"make -C {checkout} extra EXTRAS=logs"
    monkeypatch.chdir(checkout)
    assert installation.extra_command("logs") == "make extra EXTRAS=logs"
    assert str(MissingExtraError("a log", "logs")) == "a log needs an optional dependency: make extra EXTRAS=logs"


def test_the_make_target_exists():
    command = ["make", "-n", "--no-print-directory", "extra", "EXTRAS=logs"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["extra", "logs"]


def test_an_environment_of_ones_own_installs_the_checkout(checkout, monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/elsewhere")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert installation.extra_command("logs") == f"{sys.executable} -m pip install -e '{checkout}[logs]'"


def test_an_installed_package_names_what_the_extra_needs(wheel):
    """Its own version may be on no index, so that 'chainscout[logs]' could not be found."""
    assert installation.extra_command("logs") == f"{sys.executable} -m pip install {LOGS}"
    served = installation.extra_command("serve")
    assert "starlette" in served
    assert "uvicorn" in served
    assert "extra" not in served


def test_a_package_without_metadata_names_itself(wheel, monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    assert installation.extra_command("logs").endswith("-m pip install 'chainscout[logs]'")


def test_without_pip_uv_is_named_if_there_is_one(wheel, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/uv")
    assert installation.extra_command("logs") == f"uv pip install --python {sys.executable} {LOGS}"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "-m pip install" in installation.extra_command("logs")


def test_every_extra_of_the_metadata_has_its_packages(wheel):
    for extra in metadata.metadata("chainscout").get_all("Provides-Extra"):
        assert "pip install" in installation.extra_command(extra)


# --- without the extras


def test_without_pandas_a_frame_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"to_pandas needs an optional dependency: .*pandas"):
        cs.Counts(2).to_pandas()
    with pytest.raises(MissingExtraError, match=r"to_pandas needs an optional dependency: .*pandas"):
        cs.MarkovChain([[1.0]]).to_pandas()


def test_without_xarray_draws_are_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtraError, match=r"to_xarray needs an optional dependency: .*xarray"):
        cs.Estimate(cs.Counts(2)).to_xarray()


#: Modules of every optional dependency, and a program that may use none of them.
OPTIONAL = (
    "matplotlib", "pandas", "xarray", "duckdb", "sqlalchemy", "psycopg", "starlette", "uvicorn", "distributed",
    "gymnasium",
)  # fmt: skip
BASE = f"""
import sys
for name in {OPTIONAL}:
    sys.modules[name] = None
"""


def without_extras(program, folder):
    return subprocess.run([sys.executable, "-c", BASE + program], cwd=folder, capture_output=True, text=True)


def test_the_base_runs_studies_experiments_and_their_files(tmp_path):
    program = """
import chainscout as cs
problem = cs.problems.get("two-state")
result = cs.learn(cs.simulated(problem, seed=1), where="lab.db", budget=60, progress=False)
print(result.certificate().max < 9, result.finished)
cs.certify({"a": cs.Counts.from_path([0, 1, 0, 1], 2)})
print(len(cs.compare("two-state", policies=["uniform"], budgets=[20], replications=2).summary()))
from chainscout.cli import main
main(["status", "lab.db"], standalone_mode=False)
main(["report", "lab.db", "--out", "study.html"], standalone_mode=False)
main(["compare", "two-state", "--policies", "uniform", "--budgets", "20", "--replications", "2", "--out", "out"])
"""
    done = without_extras(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True True\n1\n")
    assert (tmp_path / "study.html").is_file()
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["report.html", "run.npz"]
    assert "loss.svg and loss.png are left out: a figure needs an optional dependency" in done.stderr
