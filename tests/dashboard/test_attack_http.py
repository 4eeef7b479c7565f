"""An attack on the server: locks that others hold for longer than a request lasts, and thousands of event streams.

All of it stays on this machine, and is bounded in number and time.
"""

import asyncio
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from dashboard_servers import Running
from dashboard_studies import new_study

from chainscout.study import Study

pytestmark = pytest.mark.soak

HELD = 31.0
WRITERS, READERS = 8, 4
STREAMS, WAVE = 10_000, 250
CROWD = 1_500


@pytest.fixture
def study(tmp_path: Path) -> Path:
    where = tmp_path / "study.db"
    new_study(where, budget=1_000_000).close()
    return where


def observations(where: Path) -> int:
    with Study.open(where, read_only=True) as study:
        return study.progress().observations


def test_locks_held_for_longer_than_a_request_lasts(
    run: Callable[..., Running], study: Path, record_property: Callable[..., None]
) -> None:
    """Every 200 is one observation, and nothing else is."""
    server = run(study, "--writable")
    done = threading.Event()
    answers: Counter[int] = Counter()
    slowest = [0.0] * READERS

    def tell() -> None:
        with server.client() as client:
            client.timeout = httpx.Timeout(60)
            while not done.is_set():
                answers[client.post("/api/tell", json={"chain": "sticky", "state": 0}).status_code] += 1

    def look(place: int) -> None:
        with server.client() as client:
            number = 0
            while not done.is_set():
                number += 1
                begun = time.monotonic()
                assert client.get(f"/api/log?limit={1 + number % 1000}").status_code == 200
                slowest[place] = max(slowest[place], time.monotonic() - begun)
                time.sleep(0.05)

    threads = [threading.Thread(target=tell) for _ in range(WRITERS)]
    threads += [threading.Thread(target=look, args=(place,)) for place in range(READERS)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        time.sleep(3)
        with closing(sqlite3.connect(study, isolation_level=None, timeout=60)) as other:
            other.execute("BEGIN IMMEDIATE")
            time.sleep(HELD)
            other.execute("ROLLBACK")
    time.sleep(3)
    done.set()
    for thread in threads:
        thread.join()
    time.sleep(3)  # nothing is done later
    figures = {"answers": dict(answers), "slowest look (s)": round(max(slowest), 2), "told": observations(study)}
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
    assert answers[503] >= WRITERS
    assert set(answers) <= {200, 503}
    assert observations(study) == answers[200]
    assert max(slowest) < 5.0, "changes that wait keep readers waiting"


def memory(process: int) -> float:
    """MiB."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_ten_thousand_event_streams_in_waves(
    run: Callable[..., Running], study: Path, record_property: Callable[..., None]
) -> None:
    server = run(study)
    host, port = server.address.removeprefix("http://").split(":")
    asked = (
        f"GET /api/events?after=0 HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    ).encode()

    async def stream() -> bytes:
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(asked)
            async with asyncio.timeout(60):
                found = await reader.read(4096)
                while found.startswith(b"HTTP/1.1 200") and b"\n\ndata" not in found and b"event:" not in found:
                    found += await reader.read(4096)
            return found[:12]
        except ConnectionError:
            return b"refused"
        finally:
            writer.close()

    async def waves() -> tuple[Counter[bytes], list[float], Counter[bytes]]:
        answers: Counter[bytes] = Counter()
        sizes = []
        for _ in range(STREAMS // WAVE):
            answers.update(await asyncio.gather(*(stream() for _ in range(WAVE))))
            sizes.append(memory(server.process.pid))
            await asyncio.sleep(0.3)  # the server notices that they are gone
        crowd = Counter(await asyncio.gather(*(stream() for _ in range(CROWD)), return_exceptions=False))
        return answers, sizes, crowd

    answers, sizes, crowd = asyncio.run(waves())
    time.sleep(1)
    with server.client() as client:
        assert client.get("/api/study").status_code == 200
    after = asyncio.run(stream())
    _, words = server.end()
    figures = {
        "waves": {key.decode(): number for key, number in answers.items()},
        "crowd": {key.decode(): number for key, number in crowd.items()},
        "MiB after a fifth and at the end": (round(sizes[len(sizes) // 5]), round(sizes[-1])),
        "lines in the log": words.count("\n"),
    }
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
    assert answers == {b"HTTP/1.1 200": STREAMS}
    assert set(crowd) <= {b"HTTP/1.1 200", b"HTTP/1.1 503", b"refused", b""}
    assert after == b"HTTP/1.1 200"
    assert sizes[-1] < 1.2 * sizes[len(sizes) // 5] + 10
    assert words.count("\n") < 20
