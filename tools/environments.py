"""Virtual environments and pip on a machine that has Python and nothing else: no pip, no ensurepip, no ``venv``."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent

# pip is part of the project and is not downloaded. A download would need the address of an index, and a second
# implementation of pip's own configuration (index, proxies, certificates). pip, run from its wheel, reads the machine's
# configuration. The wheel is the one that pip's authors publish; its licences are inside.
PIP_WHEEL = ROOT / "tools" / "pip-26.3-py3-none-any.whl"
PIP_SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"

# The files that an installation depends on: the requirements, the version, and the commands that make it.
DETERMINING = [
    ROOT / "pyproject.toml",
    ROOT / "src" / "chainscout" / "_version.py",
    ROOT / "dev.py",
    ROOT / "tools" / "environments.py",
]

# The interpreter that environments are made from, also if the running one belongs to an environment.
INTERPRETER = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
VERSION = ".".join(map(str, sys.version_info[:3]))


class Refusal(Exception):
    """The reason why a command cannot continue, in one sentence."""


def prepare(name: str, contents: str, requirements: list[str], enough: tuple[str, ...] = ()) -> Path:
    """The interpreter of environment ``name``. Installs ``requirements`` unless the stamp says that they are there.

    The stamp is one line, 'contents digest'; ``enough`` names other contents that are sufficient. While pip works, the
    stamp says 'unfinished'. Such an environment is made again, because pip takes a half-copied package for a whole one.
    """
    folder = ROOT / name
    python = python_of(folder)
    stamp = folder / "chainscout-stamp"
    found = stamp.read_text(encoding="utf-8") if stamp.is_file() else ""
    if found in [f"{one} {digest()}" for one in (contents, *enough)] and python.exists():
        return python
    check_pip()
    if found == "unfinished" or not is_sound(folder):
        create(folder)
    print(f"Installing the {contents} packages into {name} (minutes, the first time).", flush=True)
    stamp.write_text("unfinished", encoding="utf-8")
    pip_install(python, contents, requirements)
    stamp.write_text(f"{contents} {digest()}", encoding="utf-8")
    return python


def digest() -> str:
    """A text that changes when an environment must be updated."""
    total = hashlib.sha256(f"{INTERPRETER} {VERSION} {ROOT}".encode())
    for file in DETERMINING:
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def place(folder: Path, what: str) -> Path:
    """Where an environment keeps its ``scripts``, ``purelib`` or ``platlib``."""
    return Path(sysconfig.get_path(what, "venv", {"base": str(folder), "platbase": str(folder)}))


def python_of(folder: Path) -> Path:
    """An environment's interpreter."""
    return place(folder, "scripts") / f"python{sysconfig.get_config_var('EXE')}"


def is_sound(folder: Path) -> bool:
    """Whether an environment is complete and its interpreter is this one, which may have been replaced or removed."""
    python = python_of(folder)
    return (
        python.exists()
        and os.path.realpath(python) == str(INTERPRETER)
        and place(folder, "purelib").is_dir()
        and (folder / "pyvenv.cfg").is_file()
    )


def create(folder: Path) -> None:
    """Makes an empty environment, with the ``venv`` module if the machine has it."""
    if folder.exists():
        shutil.rmtree(folder)
    print(f"Creating {folder.name} with Python {VERSION}.", flush=True)
    try:
        import venv
    except ImportError:
        lay_out(folder)
    else:
        venv.create(folder, with_pip=False, symlinks=os.name == "posix")


def lay_out(folder: Path) -> None:
    """Makes an empty environment without ``venv``: PEP 405 needs no more than this."""
    if os.name != "posix":
        raise Refusal("this Python has no 'venv' module, which dev.py can do without on POSIX systems only: install it")
    place(folder, "purelib").mkdir(parents=True)
    place(folder, "platlib").mkdir(parents=True, exist_ok=True)
    configuration = f"home = {INTERPRETER.parent}\ninclude-system-site-packages = false\nversion = {VERSION}\n"
    (folder / "pyvenv.cfg").write_text(configuration, encoding="utf-8")
    python = python_of(folder)
    python.parent.mkdir()
    python.symlink_to(INTERPRETER)
    for name in ("python3", f"python{sys.version_info[0]}.{sys.version_info[1]}"):
        (python.parent / name).symlink_to(python.name)


def check_pip() -> None:
    """Raises ``Refusal`` if pip is not the tested one."""
    name = PIP_WHEEL.name
    if not PIP_WHEEL.is_file():
        raise Refusal(f"tools/{name} is missing: restore it from the repository")
    found = hashlib.sha256(PIP_WHEEL.read_bytes()).hexdigest()
    if found != PIP_SHA256:
        raise Refusal(
            f"tools/{name} is damaged (its sha256 must be {PIP_SHA256}, not {found}): restore it from the repository"
        )


def pip_install(python: Path, contents: str, requirements: list[str]) -> None:
    """Installs with our pip, from wheels only, so that nothing needs a compiler. Quiet unless it fails."""
    options = ["--no-input", "--disable-pip-version-check", "--only-binary=:all:"]
    command = [str(python), str(PIP_WHEEL / "pip"), "install", *options, *requirements]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        if run(command, output=output) == 0:
            return
        output.seek(0)
        print("".join(output.readlines()[-15:]), end="", file=sys.stderr)
    raise Refusal(f"pip could not install the {contents} packages: its last lines are above")


def run(command: list[str], variables: Mapping[str, str] | None = None, output: IO[str] | None = None) -> int:
    """Runs a command and returns its exit status. The caller's PYTHONPATH and PYTHONHOME are not passed on."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    errors = None if output is None else subprocess.STDOUT
    with subprocess.Popen(
        command, cwd=ROOT, env={**environment, **(variables or {})}, stdout=output, stderr=errors
    ) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the command was interrupted too, and may need time for its last words
            process.wait()
            raise
