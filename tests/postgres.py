"""A real PostgreSQL server for the tests: the programs of a Python wheel, run here, started once a test process.

Tests import the fixture: ``from postgres import postgres``. The wheel's own Python code is not used: it keeps files
outside of the test's directory.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest


class Server:
    """One server over a socket in a directory of its own. PostgreSQL refuses to run as root: then it is 'nobody'."""

    def __init__(self, directory: Path) -> None:
        self.programs = _programs()
        self.directory, self.data = directory, directory / "data"
        self.user = "nobody" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(directory, self.user)
        self.run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")

    @property
    def address(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.directory}"

    @property
    def socket(self) -> str:
        return str(self.directory / ".s.PGSQL.5432")

    def start(self) -> None:
        options = f"-k {self.directory} -c listen_addresses='' -c fsync=off"
        self.run("pg_ctl", "start", "--wait", "--silent", f"--log={self.directory / 'log'}", f"--options={options}")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "stop", "--wait", "--silent", f"--mode={mode}")

    def run(self, program: str, *arguments: str) -> None:
        """Runs one of PostgreSQL's programs on the server's data."""
        command = [str(self.programs / program), f"--pgdata={self.data}", *arguments]
        groups = [] if self.user else None
        done = subprocess.run(
            command, cwd=self.directory, user=self.user, extra_groups=groups, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def _programs() -> Path:
    """The folder of PostgreSQL's programs: the wheel's or, where there is no wheel (Python 3.13), the machine's."""
    found = find_spec("pgserver")
    if found is not None and found.origin is not None:
        return Path(found.origin).parent / "pginstall" / "bin"
    asked = shutil.which("pg_config")
    folders = [Path(subprocess.check_output([asked, "--bindir"], text=True).strip())] if asked else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    places = [folder for folder in folders if (folder / "initdb").exists() or (folder / "initdb.exe").exists()]
    assert places, "the tests need the package pgserver, or PostgreSQL's programs"
    return places[0]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The running server. (A socket's path must be short: it is not below pytest's own temporary directory.)"""
    directory = Path(tempfile.mkdtemp(prefix="pg-"))
    server = Server(directory)
    server.start()
    try:
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(directory, ignore_errors=True)
