"""Event streams and the server's end, with real connections."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from dashboard_servers import Running
from dashboard_studies import advance

from chainscout.dashboard import streams
from chainscout.study import Study

Start = Callable[..., Running]


def messages(lines: Iterator[str]) -> Iterator[tuple[str, dict, str | None]]:
    """Kind, data and id of each message."""
    found: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            key, _, value = line.partition(": ")
            found[key] = value
        elif found:
            yield found["event"], json.loads(found["data"]), found.get("id")
            found = {}


def test_a_stream_tells_everything_that_happens_in_order(run: Start, where: Path) -> None:
    server = run(where)
    with server.client() as client, Study.open(where) as study, client.stream("GET", "/api/events?after=0") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        arriving = messages(stream.iter_lines())
        first = [next(arriving) for _ in range(2)]
        assert [(kind, data.get("kind")) for kind, data, _ in first] == [("happened", "created"), ("study", None)]
        for _ in range(30):
            study.lose("sticky")
        advance(study, 5)
        numbers, observations = [], 300
        while len(numbers) < 30 or observations < 305:
            kind, data, number = next(arriving)
            if kind == "happened":
                assert data["kind"] == "observation lost"
                assert number == str(data["number"])
                numbers.append(data["number"])
            else:
                observations = data["observations"]
        assert numbers == [event.number for event in study.events() if event.kind == "observation lost"]
        assert len(set(numbers)) == 30


def test_events_of_one_entry_are_told_together(run: Start, tmp_path: Path) -> None:
    """A path that ends can set its chain aside, which ends the study: three events, and one place to go on from."""
    where = tmp_path / "study.db"
    with Study.create(where, {"a": 2}, budget=100) as study:
        for _ in range(10):
            study.restart("a")
            study.tell("a", 0)
        study.restart("a")
        numbers = [event.number for event in study.events()]
        assert len(set(numbers)) < len(numbers)
    with run(where).client() as client:
        with client.stream("GET", "/api/events?after=0") as stream:
            arriving = messages(stream.iter_lines())
            told = [next(arriving) for _ in numbers]
        assert [data["number"] for _, data, _ in told] == numbers
        assert {int(place) for _, _, place in told if place is not None} == set(numbers)
        with client.stream("GET", f"/api/events?after={numbers[-1]}") as stream:
            assert next(messages(stream.iter_lines()))[0] == "study"


def test_studies_that_are_opened_and_closed_elsewhere_are_followed(run: Start, where: Path) -> None:
    """Each command opens the study and closes it; the server has it open several times, and misses nothing."""
    server = run(where, "--writable")
    with server.client() as client:
        for number in range(1, 4):
            command = [sys.executable, "-m", "chainscout", "tell", str(where), "sticky", "0"]
            subprocess.run(command, check=True, capture_output=True)
            assert client.post("/api/tell", json={"chain": "cyclic", "state": 1}).status_code == 200
            time.sleep(0.3)  # longer than an answer is given again
            assert client.get("/api/study").json()["observations"] == 300 + 2 * number
    server.end()
    with Study.open(where) as study:
        assert study.progress().observations == 306
        study.audit()


def test_a_stream_goes_on_after_the_last_event_known(run: Start, where: Path) -> None:
    with Study.open(where) as study:
        for _ in range(5):
            study.lose("cyclic")
        numbers = [event.number for event in study.events()]
    server = run(where)
    with server.client() as client:
        with client.stream("GET", "/api/events", headers={"last-event-id": str(numbers[-3])}) as stream:
            arriving = messages(stream.iter_lines())
            assert [next(arriving)[1].get("number") for _ in range(2)] == numbers[-2:]
        with client.stream("GET", "/api/events") as stream:  # only what is new
            assert next(messages(stream.iter_lines()))[0] == "study"
        assert client.get("/api/events", headers={"last-event-id": "x"}).status_code == 400


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_within_two_seconds_with_streams_open(run: Start, where: Path, ending: int) -> None:
    server = run(where)
    with server.client() as client, client.stream("GET", "/api/events") as stream:
        next(messages(stream.iter_lines()))
        half = socket.create_connection(("127.0.0.1", int(server.address.rpartition(":")[2])))
        half.sendall(b"GET /api/study HTTP/1.1\r\n")
        began = time.monotonic()
        server.process.send_signal(ending)
        server.process.wait(10)
        took = time.monotonic() - began
        half.close()
    out, error = server.process.communicate()
    assert took < 2
    assert "Traceback" not in out + error


def test_too_many_streams_are_refused(run: Start, where: Path) -> None:
    server = run(where)
    port = int(server.address.rpartition(":")[2])
    request = f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    open_ones = []
    try:
        for _ in range(streams.MOST_STREAMS):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(request.encode())
            assert connection.recv(12) == b"HTTP/1.1 200"
            open_ones.append(connection)
        with server.client() as client:
            answer = client.get("/api/events")
            assert (answer.status_code, answer.json()["error"]) == (503, "too many event streams are open")
            assert client.get("/api/study").status_code == 200
            open_ones.pop().close()
            for _ in range(100):  # the server hears of it a little later
                with client.stream("GET", "/api/events") as stream:
                    if stream.status_code == 200:
                        break
                time.sleep(0.1)
            assert stream.status_code == 200
    finally:
        for connection in open_ones:
            connection.close()


def test_slow_requests_do_not_stay(run: Start, where: Path) -> None:
    """A head that does not end, and a body that does not come."""
    server = run(where, "--writable")
    port = int(server.address.rpartition(":")[2])
    head = f"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {server.token}\r\n"
    body = head + "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{"
    answers: dict[str, bytes] = {}

    def slow(name: str, text: str) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=25) as connection:
            connection.sendall(text.encode())
            answers[name] = connection.recv(1000)

    threads = [threading.Thread(target=slow, args=item) for item in {"head": head, "body": body}.items()]
    for thread in threads:
        thread.start()
    with server.client() as client:
        assert client.get("/api/study").status_code == 200
    for thread in threads:
        thread.join()
    assert answers["head"] == b""
    assert re.match(rb"HTTP/1.1 503 ", answers["body"])


def test_bodies_in_pieces_are_counted(run: Start, where: Path) -> None:
    server = run(where, "--writable")

    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    with server.client() as client:
        answer = client.post("/api/ask", content=pieces(), headers={"content-type": "application/json"})
        assert answer.status_code == 413


def test_a_study_that_fails_is_told(run: Start, where: Path) -> None:
    with Study.open(where) as study:
        study.restart("cyclic")
    server = run(where)
    with server.client() as client, client.stream("GET", "/api/events") as stream:
        arriving = messages(stream.iter_lines())
        assert next(arriving)[0] == "study"
        with where.open("r+b") as file:
            file.truncate(6000)
        kind, data, _ = next(arriving)
        assert (kind, data["kind"]) == ("failed", "FileError")
        with client.stream("GET", "/api/events?after=0") as later:  # its events cannot be read any more
            assert next(messages(later.iter_lines()))[0] == "failed"


def test_readers_leave_no_trace(run: Start, where: Path) -> None:
    before = where.read_bytes()
    server = run(where)
    with server.client() as client:
        for path in ("study", "chains", "numbered/1", "curves", "leases", "log"):
            assert client.get(f"/api/{path}").status_code == 200
    server.end()
    assert where.read_bytes() == before


def test_what_is_printed_is_one_address(run: Start, where: Path) -> None:
    server = run(where)
    assert httpx.get(server.entrance).status_code == 200
    assert len(server.token) == 48
    assert server.token not in httpx.get(server.entrance).text
