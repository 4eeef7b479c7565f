"""The set-up: dev.py and its environments on a bare machine, and the lists of targets that must agree."""

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def load(path: Path, name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path):
    """A copy of what dev.py reads, to be damaged at will."""
    for name in ("dev.py", "pyproject.toml", "tools", "src/chainscout/_version.py"):
        target = tmp_path / "project" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, target)
    return tmp_path / "project"


@pytest.fixture
def environments(project):
    return load(project / "tools" / "environments.py", "environments_of_the_copy")


@pytest.fixture
def dev(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return load(ROOT / "dev.py", "dev")


@pytest.fixture
def installations(environments, monkeypatch):
    """What pip is asked to install, in place of installing it."""
    asked = []
    monkeypatch.setattr(environments, "pip_install", lambda python, contents, requirements: asked.append(requirements))
    return asked


def one_line(text: str) -> str:
    assert text.count("\n") == 1, text
    return text.rstrip("\n")


# --- the interpreter


def test_an_old_python_gets_one_sentence():
    pretend = "import runpy, sys; sys.version_info = (3, 8, 10, 'final', 0); runpy.run_path('dev.py')"
    done = subprocess.run([sys.executable, "-c", pretend], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "needs Python 3.11 or newer" in one_line(done.stderr)


def test_an_old_python_can_read_dev_py(dev):
    ast.parse((ROOT / "dev.py").read_text(encoding="utf-8"), feature_version=(3, 6))
    assert PYPROJECT["project"]["requires-python"] == f">={dev.OLDEST[0]}.{dev.OLDEST[1]}"


def test_only_the_standard_library_is_imported():
    for file in (ROOT / "dev.py", *(ROOT / "tools").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names | {"tools"}


# --- pip's wheel


def test_the_wheel_is_the_one_we_tested(environments):
    environments.check_pip()


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_damaged_wheel_is_refused(project, environments, damage):
    wheel = project / "tools" / environments.PIP_WHEEL.name
    if damage == "changed":
        wheel.write_bytes(wheel.read_bytes() + b"\0")
    else:
        wheel.unlink()
    done = subprocess.run([sys.executable, "dev.py", "setup"], cwd=project, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"dev\.py: tools/pip.* is (damaged|missing).*", one_line(done.stderr))
    assert not (project / ".venv").exists()


def test_a_failing_installation_shows_the_last_lines_of_pip(project, environments, capfd):
    environments.create(project / ".venv")
    python = environments.python_of(project / ".venv")
    with pytest.raises(environments.Refusal, match="pip could not install the test packages"):
        environments.pip_install(python, "test", ["--no-index", "no-such-package"])
    assert "No matching distribution found for no-such-package" in capfd.readouterr().err


# --- environments


@pytest.mark.parametrize("has_venv", [True, False])
def test_an_environment_is_isolated_and_can_run_pip(project, environments, monkeypatch, has_venv):
    if not has_venv:
        monkeypatch.setitem(sys.modules, "venv", None)
    folder = project / ".venv"
    environments.create(folder)
    assert environments.is_sound(folder)
    (environments.place(folder, "purelib") / "only_here.py").write_text("import sys; print(sys.prefix)")
    python = str(environments.python_of(folder))
    found = subprocess.run([python, "-c", "import only_here"], check=True, capture_output=True, text=True)
    assert Path(found.stdout.strip()) == folder
    others = subprocess.run([python, "-c", "import pytest"], capture_output=True, text=True)
    assert "No module named 'pytest'" in others.stderr
    pip = subprocess.run([python, str(environments.PIP_WHEEL / "pip"), "list"], check=True, capture_output=True)
    assert pip.stdout == b""


def test_nothing_is_installed_twice(environments, installations):
    python = environments.prepare(".venv", "development", ["this"])
    assert environments.prepare(".venv", "development", ["this"]) == python
    assert environments.prepare(".venv", "runtime", ["less"], enough=("development",)) == python
    assert installations == [["this"]]


def test_development_extends_what_the_demo_installed(project, environments, installations):
    environments.prepare(".venv", "runtime", ["less"], enough=("development",))
    (project / ".venv" / "kept").touch()
    environments.prepare(".venv", "development", ["more"])
    assert installations == [["less"], ["more"]]
    assert (project / ".venv" / "kept").exists()


@pytest.mark.parametrize("name", ["pyproject.toml", "dev.py", "tools/environments.py", "src/chainscout/_version.py"])
def test_a_change_of_what_determines_an_installation_repeats_it(project, environments, installations, name):
    environments.prepare(".venv", "runtime", ["this"])
    with (project / name).open("a") as file:
        file.write("\n")
    environments.prepare(".venv", "runtime", ["this"])
    assert installations == [["this"], ["this"]]


def test_another_interpreter_makes_the_environment_anew(project, environments, installations, monkeypatch):
    environments.prepare(".venv", "runtime", ["this"])
    (project / ".venv" / "left over").touch()
    monkeypatch.setattr(environments, "INTERPRETER", environments.INTERPRETER.with_name("another-python"))
    environments.prepare(".venv", "runtime", ["this"])
    assert installations == [["this"], ["this"]]
    assert not (project / ".venv" / "left over").exists()


def test_a_vanished_interpreter_makes_the_environment_anew(project, environments, installations):
    python = environments.prepare(".venv", "runtime", ["this"])
    python.unlink()
    python.symlink_to(project / "removed")
    environments.prepare(".venv", "runtime", ["this"])
    assert installations == [["this"], ["this"]]
    assert environments.is_sound(project / ".venv")


def test_an_interrupted_installation_makes_the_environment_anew(project, environments, installations, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(environments, "pip_install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            environments.prepare(".venv", "runtime", ["this"])
    (project / ".venv" / "half a package").touch()
    environments.prepare(".venv", "runtime", ["this"])
    assert installations == [["this"]]
    assert not (project / ".venv" / "half a package").exists()


# --- lists that must agree


def test_the_lowest_versions_are_the_bounds_of_pyproject(dev):
    left_out = {"all", *dev.SOURCES_ONLY, *dev.GPU_ONLY}
    extras = [e for name, e in PYPROJECT["project"]["optional-dependencies"].items() if name not in left_out]
    requirements = PYPROJECT["project"]["dependencies"] + [one for extra in extras for one in extra]
    requirements = [re.sub(r"\[.*\]", "", one) for one in requirements]  # 'psycopg[binary]' is pinned as psycopg
    lower = [one.partition(",")[0] for one in requirements]  # without an upper bound
    assert [pin.replace("==", ">=") for pin in dev.lower_bounds()] == lower


def test_all_has_every_extra_that_wheels_bring_on_every_system(dev):
    extras = PYPROJECT["project"]["optional-dependencies"]
    (listed,) = re.findall(r"^chainscout\[(.*)\]$", extras["all"][0])
    assert sorted(listed.split(",")) == sorted(set(extras) - {"all", *dev.SOURCES_ONLY, *dev.GPU_ONLY})


def test_the_base_has_no_figures_servers_drivers_or_frames(dev):
    names = {re.match(r"[\w.-]+", one)[0] for one in PYPROJECT["project"]["dependencies"]}
    assert names == {"numpy", "scipy", "numba", "cloudpickle", "click", "rich", "pydantic", "tomli-w"}


@pytest.mark.parametrize("names", [(), ("log",), ("logs", "every")])
def test_an_extra_that_is_not_one_is_refused(dev, names):
    with pytest.raises(dev.Refusal, match="extra needs names among all, plot, "):
        dev.extra(*names)


def test_an_extra_is_added_to_the_environment(dev, monkeypatch):
    asked = []
    monkeypatch.setattr(dev, "runtime", lambda: Path("python"))
    monkeypatch.setattr(dev, "pip_install", lambda *arguments: asked.append(arguments))
    assert dev.main(["extra", "logs", "spark"]) == 0
    assert asked == [(Path("python"), "extra", ["-e", ".[logs,spark]", "--no-binary", "pyspark"])]


def test_a_requirement_without_a_lower_bound_is_refused(dev, monkeypatch):
    monkeypatch.setattr(dev, "read_project", lambda: {"dependencies": ["numpy<3"], "optional-dependencies": {}})
    with pytest.raises(dev.Refusal, match="'numpy<3'"):
        dev.lower_bounds()


def targets(path: str, pattern: str) -> list[str]:
    """The words of the one line of a file that matches."""
    (found,) = re.findall(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return found.split()


def test_make_and_dev_py_have_the_same_commands(dev):
    assert targets("Makefile", r"^(demo .*):$") == list(dev.COMMANDS)
    assert targets("Makefile", r"^\.PHONY: (.*)$") == ["help", *dev.COMMANDS]


def test_the_hooks_are_the_linters_of_ci():
    assert targets(".pre-commit-config.yaml", r"entry: (.*)$") == ["make", "lint"]
    assert "lint" in targets(".ci/run", r"^targets=\((.*)\)$")


def workflow(name: str) -> str:
    return (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")


def test_the_workflow_runs_the_targets_of_ci_the_lowest_versions_and_the_package():
    runs = re.findall(r"run: make (.*)", workflow("ci.yml"))
    assert runs == [*targets(".ci/run", r"^targets=\((.*)\)$"), "test-lowest", "dist"]
    assert re.findall(r"run: make (.*)", workflow("release.yml")) == ["dist"]


def test_the_workflow_has_every_python_of_the_metadata_and_all_three_systems():
    label = "Programming Language :: Python :: 3."
    minors = sorted(int(c.removeprefix(label)) for c in PYPROJECT["project"]["classifiers"] if c.startswith(label))
    assert PYPROJECT["project"]["requires-python"] == f">=3.{minors[0]}"
    ends, between = (re.findall(r"\d+\.(\d+)", found) for found in re.findall(r"python: \[(.*)\]", workflow("ci.yml")))
    assert [int(end) for end in ends] == [minors[0], minors[-1]]
    assert sorted(int(minor) for minor in (*ends, *between)) == minors
    (machines,) = re.findall(r"machine: \[(.*)\]", workflow("ci.yml"))
    assert [machine.split("-")[0] for machine in machines.split(", ")] == ["ubuntu", "macos", "windows"]


def test_actions_are_pinned_by_hash_and_one_action_has_one_version():
    used = [use for name in ("ci.yml", "release.yml") for use in re.findall(r"uses: (.*)", workflow(name))]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in used)
    assert len({use.partition("@")[0] for use in used}) == len(set(used))


def test_only_the_job_that_publishes_may_ask_for_an_identity():
    assert "id-token" not in workflow("ci.yml")
    before, publish = workflow("release.yml").split("  publish:\n")
    assert "id-token" not in before
    assert "id-token: write" in publish


def test_every_convention_that_is_not_followed_has_its_reason():
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = re.findall(r"^\| ((?:[A-Z]+\d+(?:, )?)+) \|.*\| .+ \|$", page, re.M)
    explained = [check for row in table for check in row.split(", ")]
    assert sorted(explained) == sorted(PYPROJECT["tool"]["repo-review"]["ignore"])


def test_the_citation_has_the_version_of_the_package():
    version = re.findall(r'= "(.+)"', (ROOT / "src" / "chainscout" / "_version.py").read_text("utf-8"))
    assert re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M) == version
