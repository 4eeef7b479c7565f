"""Studies to look at, and servers that show them."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dashboard_servers import Client, Running, connect
from dashboard_studies import advance, new_study


@pytest.fixture(scope="session")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to copy: each of its observations waited for the disk."""
    path = tmp_path_factory.mktemp("observed") / "study.db"
    with new_study(path) as study:
        advance(study, 300)
    return path


@pytest.fixture
def where(observed: Path, tmp_path: Path) -> Path:
    """The file of a study of three chains with 300 observations."""
    return Path(shutil.copy(observed, tmp_path / "study.db"))


@pytest.fixture
def client(where: Path) -> Iterator[Client]:
    """A reader who knows the token."""
    yield from connect(where)


@pytest.fixture
def writer(where: Path) -> Iterator[Client]:
    """The same where the server may write."""
    yield from connect(where, writable=True)


@pytest.fixture
def run() -> Iterator[Callable[..., Running]]:
    """Starts servers, and ends them."""
    started: list[Running] = []

    def start(where: Path, *options: str) -> Running:
        started.append(Running(where, *options))
        return started[-1]

    yield start
    for one in started:
        one.end()
