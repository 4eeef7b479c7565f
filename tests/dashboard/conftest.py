"""Studies to look at, servers that show them, and a browser to look with."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dashboard_browser import Browser, new_tab, start_browser
from dashboard_servers import Client, Running, connect
from dashboard_studies import advance, new_study
from selenium import webdriver

import chainscout as cs


@pytest.fixture(scope="session")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to copy: each of its observations waited for the disk."""
    path = tmp_path_factory.mktemp("observed") / "study.db"
    with new_study(path, target_loss=1e-6) as study:
        advance(study, 300)
    return path


@pytest.fixture
def where(observed: Path, tmp_path: Path) -> Path:
    """The file of a study of three chains with 300 observations, and a target that it does not meet."""
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


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    """One browser for all tests. Certificates are compiled before, which takes up to a minute on a new machine."""
    cs.certify({"a": cs.Counts.from_path([0, 1, 0], 2), "b": cs.Counts.from_path([0, 1, 2, 0], 3)})
    yield from start_browser()


@pytest.fixture
def browser(driver: webdriver.Chrome) -> Iterator[Browser]:
    """A fresh tab; a test that expects complaints reads them itself."""
    yield from new_tab(driver)
