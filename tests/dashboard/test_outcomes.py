"""What a request that changes the study is told is what happened, however long others hold the study."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from dashboard_servers import Client, connect

from chainscout.dashboard import work
from chainscout.errors import Busy, OutcomeUnknown
from chainscout.journal.entry import Draft, Entry, Head, Kind
from chainscout.journal.journal import Command
from chainscout.journal.sqlite import SqliteJournal
from chainscout.study import Study


@contextmanager
def held(where: Path) -> Iterator[None]:
    """Another process's write lock."""
    with closing(sqlite3.connect(where, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.fixture
def hurried(where: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A server that may write, whose requests have less time."""
    monkeypatch.setattr(work, "FOR_WRITERS", 0.3)
    monkeypatch.setattr(work, "IN_QUEUE", 1.0)
    monkeypatch.setattr(work, "PATIENCE", 4.0)
    yield from connect(where, writable=True)


def observations(where: Path) -> int:
    with Study.open(where, read_only=True) as study:
        return study.progress().observations


def test_the_times_leave_room_for_the_change_itself() -> None:
    """SQLite is asked again after a second at most."""
    assert work.IN_QUEUE + work.FOR_WRITERS + 1.0 < work.PATIENCE - 5.0


def test_what_is_answered_503_is_never_applied(hurried: Client, where: Path) -> None:
    before = observations(where)
    asked = hurried.post("/api/ask", json={}).json()
    told = {"chain": asked["chains"][0], "state": 1}
    tells = [("POST", "/api/tell", {"json": told})] * 4
    lease = ("POST", "/api/lease", {"json": {"worker": "Julia"}})
    looks = [("GET", f"/api/log?after={number}", {}) for number in range(6)]
    with held(where):
        answers = hurried.together(*tells, lease, *looks)
    for answer, _ in answers[:5]:
        assert (answer.status_code, answer.json()["kind"]) == (503, "Busy")
        assert answer.json()["error"].endswith("nothing was changed")
    for answer, seconds in answers[5:]:
        assert answer.status_code == 200
        assert seconds < 0.3, "changes that wait keep readers waiting"
    time.sleep(1.5)  # nothing is done later either
    assert observations(where) == before
    assert hurried.get("/api/leases").json() == []
    again = {**told, "path": asked["path"], "step": asked["step"]}
    for _ in range(2):
        assert hurried.post("/api/tell", json=again).status_code == 200
    assert observations(where) == before + 1


def test_what_has_begun_is_answered_when_it_has_ended(
    hurried: Client, where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk takes longer than a request may."""
    before = observations(where)
    asked = hurried.post("/api/ask", json={}).json()
    told = {"chain": asked["chains"][0], "state": 1, "path": asked["path"], "step": asked["step"]}
    monkeypatch.setattr(work, "PATIENCE", 0.3)
    append = SqliteJournal._append

    def late(self: SqliteJournal, head: Head, command: Command) -> list[Entry]:
        time.sleep(1.0)
        return append(self, head, command)

    monkeypatch.setattr(SqliteJournal, "_append", late)
    waiting = ("POST", "/api/ask", {"json": {}})
    (answer, seconds), (refused, _) = hurried.together(("POST", "/api/tell", {"json": told}), waiting)
    assert (answer.status_code, answer.json()["next_step"]) == (200, asked["step"] + 1)
    assert seconds >= 1.0
    assert (refused.status_code, refused.json()["kind"]) == (503, "Busy")
    assert observations(where) == before + 1


def test_an_outcome_that_is_not_known_is_said_and_a_retry_is_safe(
    hurried: Client, where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database goes away after it has stored the change, and before it says so."""
    asked = hurried.post("/api/ask", json={}).json()
    assert hurried.post("/api/tell", json={"chain": asked["chains"][0], "state": 0}).status_code == 200
    before = observations(where)
    asked = hurried.post("/api/ask", json={}).json()
    told = {"chain": asked["chains"][0], "state": 1, "path": asked["path"], "step": asked["step"]}
    append = SqliteJournal._append

    def lost(self: SqliteJournal, head: Head, command: Command) -> list[Entry]:
        append(self, head, command)
        raise OutcomeUnknown("the connection was lost: it is not known whether the change was stored")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteJournal, "_append", lost)
        answer = hurried.post("/api/tell", json=told)
    assert (answer.status_code, answer.json()["kind"]) == (504, "OutcomeUnknown")
    assert "not known" in answer.json()["error"]
    assert hurried.post("/api/tell", json=told).status_code == 200
    assert observations(where) == before + 1


def test_a_tell_is_not_denied_because_its_bound_cannot_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds the write lock between the two."""
    append = SqliteJournal._append

    def busy(self: SqliteJournal, head: Head, command: Command) -> list[Entry]:
        def checked(tail: Sequence[Entry]) -> Sequence[Draft]:
            drafts = command(tail)
            if any(draft.kind is Kind.BOUND for draft in drafts):
                raise Busy("another process has held the write lock: nothing was changed")
            return drafts

        return append(self, head, checked)

    with Study.create(tmp_path / "study.db", {"a": 2}, target_loss=1e-9) as study:
        with monkeypatch.context() as patched:
            patched.setattr(SqliteJournal, "_append", busy)
            for number in range(20):
                study.tell("a", number % 2)
        assert study.progress().observations == 20
        assert study.look().chain("a").certified == 0
        study.tell("a", 0)
        assert study.look().chain("a").certified > 0
        study.audit()


def test_a_change_is_not_denied_because_the_study_cannot_be_read_afterwards(
    hurried: Client, where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chainscout.errors import FileError

    before = observations(where)
    chain = hurried.post("/api/ask", json={}).json()["chains"][0]
    tell, look = Study.tell, Study.chain
    done: list[bool] = []

    def noted(self: Study, *given: object, **more: object) -> None:
        tell(self, *given, **more)  # type: ignore[arg-type]
        done.append(True)

    def fails(self: Study, name: str) -> object:
        if done:
            raise FileError("the disk is gone")
        return look(self, name)

    monkeypatch.setattr(Study, "tell", noted)
    monkeypatch.setattr(Study, "chain", fails)
    answer = hurried.post("/api/tell", json={"chain": chain, "state": 1})
    assert (answer.status_code, answer.json()) == (200, {"path": None, "next_step": None})
    assert observations(where) == before + 1


def test_readers_compile_nothing(where: Path) -> None:
    """Everything that is shown is stored: no page waits for a compiler, on a machine that never had one at work."""
    script = f"""
import asyncio, sys
import httpx
from chainscout.dashboard.application import Dashboard
from chainscout.study import Study

async def look(application):
    client = httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://127.0.0.1")
    for path in ("study", "chains?sort=certificate", "numbered/1", "curves", "panels", "leases", "log"):
        assert (await client.get("/api/" + path)).status_code == 200, path
    for path in ("report.html", "chains.csv", "1/matrix.csv"):
        assert (await client.get("/download/" + path)).status_code == 200, path

with Study.open({str(where)!r}, read_only=True) as study:
    asyncio.run(look(Dashboard(study, "Study").application))
from chainscout.report import studies
with Study.open({str(where)!r}, read_only=True) as study:
    studies.status(study), studies.estimate(study, "sticky")
assert "numba" not in sys.modules, "a compiler was imported"
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr
