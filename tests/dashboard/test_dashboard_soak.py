"""200 event streams and 1,000 requests a second for 30 seconds while a study writes."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dashboard_servers import Running
from dashboard_studies import PROBLEM, new_study

from chainscout.study import Study, simulated

pytestmark = pytest.mark.soak

STREAMS, REQUESTS, SECONDS = 200, 1_000, 30
#: Connections that share the requests.
CONNECTIONS = 50


class Writer:
    """Observes a study as fast as the disk allows, and restarts a chain now and then."""

    def __init__(self, where: Path) -> None:
        self._study = Study.open(where)
        self._sources = simulated(PROBLEM, seed=5)

    def observe(self, seconds: float) -> float:
        """Observations a second."""
        began, number = time.monotonic(), 0
        while time.monotonic() < began + seconds:
            name = self._study.ask()
            self._study.tell(name, self._sources[name].advance()[0])
            number += 1
            if number % 200 == 0:
                self._study.restart(name)
        return number / (time.monotonic() - began)

    def close(self) -> int:
        """The number of the last event."""
        events = self._study.progress().events
        self._study.close()
        return events


def request(server: Running, path: str) -> bytes:
    host = server.address.removeprefix("http://")
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()


async def listen(server: Running, found: list[int], until: asyncio.Event) -> None:
    """The numbers of all events of one stream."""
    host, port = server.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request(server, "/api/events?after=0"))
    while not until.is_set():
        try:
            async with asyncio.timeout(1):
                line = await reader.readline()
        except TimeoutError:
            continue
        if line.startswith(b"data: ") and b'"kind"' in line:
            found.append(json.loads(line[6:])["number"])
    writer.close()


async def ask(server: Running, rate: float, until: float) -> int:
    """Requests over one connection, at a steady rate; how many were answered."""
    host, port = server.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    paths = ("/api/study", "/api/chains?sort=index", "/api/numbered/1", "/api/leases")
    number, due = 0, time.monotonic()
    while time.monotonic() < until:
        writer.write(request(server, paths[number % len(paths)]))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        number += 1
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    writer.close()
    return number


def memory(process: int) -> float:
    """MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.fixture
def study(tmp_path: Path) -> Path:
    where = tmp_path / "study.db"
    new_study(where, budget=10_000_000).close()
    return where


def test_many_readers_and_a_study_that_writes(
    run: Callable[..., Running], study: Path, record_property: Callable[[str, object], None]
) -> None:
    writer = Writer(study)
    alone = writer.observe(SECONDS / 3)
    writer.close()
    server = run(study)
    rate: list[float] = []
    numbers: list[list[int]] = [[] for _ in range(STREAMS)]
    sizes: list[float] = []

    async def load() -> list[int]:
        writer = Writer(study)
        until = asyncio.Event()
        streams = [asyncio.create_task(listen(server, found, until)) for found in numbers]
        await asyncio.sleep(3)
        end = time.monotonic() + SECONDS
        thread = threading.Thread(target=lambda: rate.append(writer.observe(SECONDS)))
        thread.start()
        asking = [asyncio.create_task(ask(server, REQUESTS / CONNECTIONS, end)) for _ in range(CONNECTIONS)]
        while time.monotonic() < end:
            await asyncio.sleep(SECONDS / 10)
            sizes.append(memory(server.process.pid))
        answered = await asyncio.gather(*asking)
        await asyncio.to_thread(thread.join)
        last = writer.close()
        for _ in range(100):
            if all(found and found[-1] == last for found in numbers):
                break
            await asyncio.sleep(0.1)
        until.set()
        await asyncio.gather(*streams)
        assert all(found == list(range(1, last + 1)) for found in numbers), "an event was lost, or came twice"
        return answered

    answered = sum(asyncio.run(load()))
    figures = {
        "observations a second alone": round(alone),
        "observations a second beside the readers": round(rate[0]),
        "requests a second": round(answered / SECONDS),
        "memory after a third, at the end (MiB)": (round(sizes[3]), round(sizes[-1])),
    }
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
    assert sizes[-1] < sizes[3] * 1.1 + 5
    assert answered >= 0.95 * REQUESTS * SECONDS
    assert rate[0] > 0.9 * alone
