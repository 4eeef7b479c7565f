"""Fixtures of the tests of studies."""

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from learning_sources import recorded, simulated_chain
from study_places import Place, Server, running_server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server for all tests of a process; each study has a schema of its own."""
    with running_server() as running:
        yield running


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that a test may restart."""
    with running_server() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder in memory where there is one: the tests end processes, not the machine."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as found:
        yield Path(found)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    files = (folder / f"study{n}.db" for n in itertools.count())
    kinds: dict[str, Callable[[], Any]] = {
        "memory": lambda: None,
        "sqlite": lambda: next(files),
        "postgres": lambda: request.getfixturevalue("server").address(),
    }
    found = Place(request.param, kinds[request.param])
    yield found
    found.close()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, folder: Path) -> Any:
    """A place on disk for one study."""
    return folder / "study.db" if request.param == "sqlite" else request.getfixturevalue("server").address()


@pytest.fixture(params=[recorded, simulated_chain], ids=["recorded", "simulated"])
def sources(request: pytest.FixtureRequest) -> Any:
    """What makes sources that repeat themselves."""
    return request.param
