"""200 event streams and 1,000 requests a second for 30 seconds while a study writes."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dashboard_servers import Running
from dashboard_studies import new_study

pytestmark = pytest.mark.soak

STREAMS, REQUESTS, SECONDS = 200, 1_000, 30
#: Then so often, with all readers and without any, for so many seconds each; and how long the study writes.
TURNS, TURN = 6, 4
WHOLE = SECONDS + 2 * TURNS * TURN + 2
#: Connections that share the requests.
CONNECTIONS = 50
PATHS = ("/api/study", "/api/chains?sort=index", "/api/numbered/1", "/api/leases")
EVENT = re.compile(rb"event: happened\nid: (\d+)\n")
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Writer:
    """``dashboard_writer`` at work."""

    def __init__(self, where: Path, seconds: float) -> None:
        command = [sys.executable, str(Path(__file__).with_name("dashboard_writer.py")), str(where), str(seconds)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("begin\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        text, _ = self._process.communicate(timeout=WHOLE + 60)
        assert self._process.returncode == 0
        found: dict[str, Any] = json.loads(text)
        found["tenths"] = {int(tenth): number for tenth, number in found["tenths"].items()}
        return found


def made(tenths: dict[int, int], spans: list[tuple[float, float]]) -> float:
    """Observations a second in these spans of time, less the tenths at their edges."""
    inside = [range(int(10 * first) + 1, int(10 * last)) for first, last in spans]
    return 10 * sum(tenths.get(tenth, 0) for part in inside for tenth in part) / sum(map(len, inside))


def request(server: Running, path: str) -> bytes:
    host = server.address.removeprefix("http://")
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()


# Protocols, for they cost a third of what asyncio's streams do: the two cores are there to be measured.


class Listener(asyncio.Protocol):
    """One event stream: the numbers of all its events."""

    def __init__(self, asked: bytes) -> None:
        self._asked = asked
        self._rest = b""
        self.numbers: list[int] = []
        self.messages = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._asked)

    def data_received(self, data: bytes) -> None:
        whole, end, rest = (self._rest + data).rpartition(b"\n\n")
        self._rest = rest
        self.messages += whole.count(b"event: study\n")
        self.numbers += [int(number) for number in EVENT.findall(whole + end)]


class Asker(asyncio.Protocol):
    """Requests over one connection, one after the other, at a steady rate; an answer that is not 200 ends it."""

    def __init__(
        self, asked: list[bytes], rate: float, first: float, until: float, done: "asyncio.Future[None]"
    ) -> None:
        self._asked, self._pause, self._until, self._done = asked, 1 / rate, until, done
        self._due = first
        self._data = b""
        self.answered = 0
        self.slowest = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        asyncio.get_running_loop().call_later(max(0.0, self._due - time.monotonic()), self._ask)

    def _ask(self) -> None:
        self._sent = time.monotonic()
        self._transport.write(self._asked[self.answered % len(self._asked)])

    def data_received(self, data: bytes) -> None:
        self._data += data
        head = self._data.find(b"\r\n\r\n")
        if head < 0:
            return
        length = LENGTH.search(self._data, 0, head)
        if not self._data.startswith(b"HTTP/1.1 200") or length is None:
            self._done.set_exception(AssertionError(self._data[:300]))
            return
        if len(self._data) < head + 4 + int(length[1]):
            return
        self._data = b""
        self.answered += 1
        now = time.monotonic()
        self.slowest = max(self.slowest, now - self._sent)
        self._due += self._pause
        if now >= self._until:
            self._transport.close()
            self._done.set_result(None)
        elif self._due <= now:
            self._ask()
        else:
            asyncio.get_running_loop().call_later(self._due - now, self._ask)


def memory(process: int) -> float:
    """MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def worked(process: int) -> float:
    """Seconds that the processor has worked for it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    where = tmp_path / "study.db"
    new_study(where, budget=10_000_000).close()
    return where


async def ask(server: Running, seconds: float) -> list[Asker]:
    """The requests of so many seconds, over all connections."""
    loop = asyncio.get_running_loop()
    host, port = server.address.removeprefix("http://").split(":")
    began = time.monotonic()
    requests, rate = [request(server, path) for path in PATHS], REQUESTS / CONNECTIONS
    ends = [loop.create_future() for _ in range(CONNECTIONS)]
    askers = []
    for place, done in enumerate(ends):
        first = began + place / REQUESTS  # not all at the same moment
        asker = Asker(requests, rate, first, began + seconds, done)
        await loop.create_connection(lambda found=asker: found, host, int(port))
        askers.append(asker)
    await asyncio.gather(*ends)
    return askers


def test_many_readers_and_a_study_that_writes(
    run: Callable[..., Running], study: Path, record_property: Callable[[str, object], None]
) -> None:
    """First all readers for 30 seconds; then, turn and turn about, all of them and a server that is stopped.

    The disk and the cores may be shared: a rate is compared with the one of a few seconds before and after.
    """
    server = run(study)
    process = server.process.pid
    sizes: list[float] = []
    beside: list[tuple[float, float]] = []
    alone: list[tuple[float, float]] = []

    async def weigh() -> None:
        while True:
            await asyncio.sleep(SECONDS / 10)
            sizes.append(memory(process))

    async def load() -> tuple[list[Asker], list[Listener], float, dict[str, Any]]:
        loop = asyncio.get_running_loop()
        host, port = server.address.removeprefix("http://").split(":")
        asked = request(server, "/api/events?after=0")
        listeners = [
            (await loop.create_connection(lambda: Listener(asked), host, int(port)))[1] for _ in range(STREAMS)
        ]
        writer = await asyncio.to_thread(Writer, study, WHOLE)
        await asyncio.sleep(1)
        writer.begin()
        weighing = asyncio.create_task(weigh())
        began, before = time.monotonic(), worked(process)
        askers = await ask(server, SECONDS)
        core = (worked(process) - before) / (time.monotonic() - began)
        weighing.cancel()
        for _ in range(TURNS):
            first = time.monotonic()
            await ask(server, TURN)
            beside.append((first, time.monotonic()))
            os.kill(process, signal.SIGSTOP)
            try:
                first = time.monotonic()
                await asyncio.sleep(TURN)
                alone.append((first, time.monotonic()))
            finally:
                os.kill(process, signal.SIGCONT)
        found = await asyncio.to_thread(writer.end)
        for _ in range(100):
            if all(listener.numbers and listener.numbers[-1] == found["events"][-1] for listener in listeners):
                break
            await asyncio.sleep(0.1)
        for listener in listeners:
            listener.transport.close()
        return askers, listeners, core, found

    askers, listeners, core, found = asyncio.run(load())
    answered = sum(asker.answered for asker in askers)
    with_readers, without = made(found["tenths"], beside), made(found["tenths"], alone)
    figures = {
        "observations a second without readers": round(without),
        "observations a second beside the readers": round(with_readers),
        "requests a second": round(answered / SECONDS),
        "slowest answer (ms)": round(1000 * max(asker.slowest for asker in askers)),
        "the server's share of a core": round(core, 2),
        "the writer's share of a core": round(found["core"], 2),
        "memory after a third, at the end (MiB)": (round(sizes[3]), round(sizes[-1])),
    }
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
    assert all(listener.numbers == found["events"] for listener in listeners), "an event was lost, or came twice"
    assert sizes[-1] < sizes[3] * 1.1 + 5
    assert answered >= 0.95 * REQUESTS * SECONDS
    assert with_readers > 0.9 * without
