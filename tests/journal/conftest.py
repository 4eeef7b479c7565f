"""Fixtures of the tests of journals: one of each kind, and a server."""

import itertools
import os
import tempfile
from pathlib import Path

import pytest
from journal_places import Place, Schemas
from postgres import postgres

__all__ = ["postgres"]


@pytest.fixture(scope="session")
def schemas(postgres):
    """Addresses of new, empty schemas of one server."""
    return Schemas(postgres)


@pytest.fixture
def folder(tmp_path):
    """An empty folder in memory where there is one: the tests end processes, not the machine."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as found:
        yield Path(found)


def made(request, kind):
    if kind == "memory":
        return Place(kind, lambda: None)
    if kind == "postgres":
        return Place(kind, request.getfixturevalue("schemas").address)
    files = (request.getfixturevalue("folder") / f"study{number}.db" for number in itertools.count())
    return Place(kind, lambda: next(files))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request):
    """Makes and opens journals of one kind."""
    with made(request, request.param) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request):
    """Makes and opens journals of one kind that lasts."""
    with made(request, request.param) as found:
        yield found
