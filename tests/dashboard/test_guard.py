"""Who is let in."""

import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from dashboard_servers import ADDRESS, Client, Running
from dashboard_studies import TOKEN

from chainscout.cli import main
from chainscout.dashboard import guard
from chainscout.dashboard.guard import Guard
from chainscout.dashboard.server import Seldom
from chainscout.installation import extra_command

NOBODY = {"authorization": ""}


def test_the_token(client: Client) -> None:
    for headers in (
        NOBODY,
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer ä"},
        {**NOBODY, "cookie": f"chainscout-8321={TOKEN[:-1]}"},
        {**NOBODY, "cookie": f"chainscout-1={TOKEN}"},
        {**NOBODY, "cookie": "a=b; ;;=\x7f"},
    ):
        for path in ("/api/study", "/", "/static/page.js", "/download/report.html", "/api/nothing", "/api/events"):
            encoded = {name: value.encode() for name, value in headers.items()}
            answer = client.get(path, headers=encoded)
            assert answer.status_code == 401
            assert "sticky" not in answer.text
            assert "set-cookie" not in answer.headers


def test_the_printed_address_sets_a_cookie_that_no_script_can_read(client: Client) -> None:
    answer = client.get(f"/?token={TOKEN}", headers=NOBODY)
    assert answer.status_code == 200
    found = re.fullmatch(r"chainscout-8321=(\w{48}); Path=/; HttpOnly; SameSite=Strict", answer.headers["set-cookie"])
    assert found
    assert TOKEN not in answer.text + found[1], "the cookie is a session of its own"
    for value, status in ((found[1], 200), (TOKEN, 401)):
        cookie = {**NOBODY, "cookie": f"other=1; chainscout-8321={value}"}
        assert client.get("/api/study", headers=cookie).status_code == status
    bearer = {"authorization": f"Bearer {found[1]}", "cookie": ""}
    assert client.get("/api/study", headers=bearer).status_code == 401
    assert client.get("/?token=wrong", headers={**NOBODY, "cookie": ""}).status_code == 401
    # Only there: an address that is passed on must not open the interface.
    assert client.get(f"/api/study?token={TOKEN}", headers={**NOBODY, "cookie": ""}).status_code == 401


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    compared = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr(guard.hmac, "compare_digest", compare)
    assert client.get("/api/study", headers={"authorization": "Bearer guess"}).status_code == 401
    assert (b"guess", TOKEN.encode()) in compared


@pytest.mark.parametrize(
    "host",
    [
        "example.org",
        "example.org:8321",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost.example.org:8321",
        "10.0.0.1:8321",
        "",
        "127.0.0.1:8321:8321",
        "[::1",
        "127.0.0.1:99999999",
    ],
)
def test_a_foreign_host_is_refused(client: Client, host: str) -> None:
    answer = client.get("/api/study", headers={"host": host})
    assert answer.status_code == 421
    assert answer.json()["error"] == "this server is not the one that the Host header names"


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost:8321", "LOCALHOST:8321", "[::1]:8321"])
def test_its_own_names_are_known(client: Client, host: str) -> None:
    assert client.get("/api/study", headers={"host": host}).status_code == 200


def test_a_server_for_others_is_reached_by_any_address_but_by_no_foreign_name() -> None:
    found = Guard(None, token=TOKEN, host="0.0.0.0", port=80)  # type: ignore[arg-type]
    assert found._is_own_name("192.168.1.7")
    assert found._is_own_name("[2001:db8::1]:80")
    assert not found._is_own_name("rebound.example.org")
    assert guard.is_loopback("127.3.2.1")
    assert guard.is_loopback("localhost")
    assert not guard.is_loopback("0.0.0.0")
    assert not guard.is_loopback("example.org")


@pytest.mark.parametrize("origin", ["http://example.org", "null", "https://127.0.0.1:8321", "http://127.0.0.1:8322"])
def test_a_foreign_origin_is_refused(writer: Client, origin: str) -> None:
    assert writer.get("/api/study", headers={"origin": origin}).status_code == 403
    assert writer.post("/api/ask", json={}, headers={"origin": origin}).status_code == 403
    assert writer.post("/api/ask", json={}, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    own = {"origin": ADDRESS, "sec-fetch-site": "same-origin"}
    assert writer.post("/api/ask", json={}, headers=own).status_code == 200


def test_every_answer_has_the_headers_that_tie_it_down(client: Client) -> None:
    for path in ("/", "/api/study", "/api/nothing", "/static/page.js", "/download/chains.csv"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


def test_the_page_has_no_script_of_its_own_and_loads_from_nowhere_else(client: Client) -> None:
    text = client.get("/").text
    assert not re.search(r"<script(?![^>]* src=\"/static/)", text)
    assert not re.search(r"\bon\w+=|style=|https?:", text)
    static = Path(guard.__file__).parent / "static"
    for path in static.glob("*.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(|document\.write", path.read_text())


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static/....//server.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/",
        "/static/page.js%00",
        "/..%2f..%2fetc/passwd",
    ],
)
def test_paths_that_climb(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text


@pytest.mark.parametrize("length", ["65537", "99999999999999999999", "-1", "x"])
def test_bodies_that_say_they_are_too_large(writer: Client, length: str) -> None:
    answer = writer.post("/api/ask", content=b"{}", headers={"content-length": length})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--token", "short"], "a token has at least 16 letters, digits and _"),
        (["--token", "with spaces and more"], "a token has at least 16 letters, digits and _"),
        (["--host", "no.such.host.invalid"], "nothing can be served at no.such.host.invalid port 8321"),
        (["--host", "203.0.113.7"], "nothing can be served at 203.0.113.7 port 8321"),
    ],
)
def test_wrong_settings(where: Path, options: list[str], sentence: str) -> None:
    done = CliRunner().invoke(main, ["serve", str(where), *options])
    assert done.exit_code == 2
    assert sentence in done.output


def test_without_the_extra_one_line_says_what_to_install(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    done = CliRunner().invoke(main, ["serve", str(where)])
    assert done.exit_code == 2
    assert done.output == f"chainscout: serve needs an optional dependency: {extra_command('serve')}\n"


def test_refused_tokens_leave_a_line_and_not_thousands(run: Callable[..., Running], where: Path) -> None:
    server = run(where)
    with httpx.Client(base_url=server.address, timeout=30) as client:
        for _ in range(50):
            assert client.get("/api/study").status_code == 401
    _, words = server.end()
    assert words.count("refused a request from 127.0.0.1: the token is missing or wrong") == 1
    assert server.token not in words
    assert words.startswith("Open this address in a browser. Ctrl-C ends the server.\n")


def test_the_same_warning_is_let_through_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    seldom = Seldom()

    def let_through(level: int, text: str) -> str | None:
        record = logging.LogRecord("uvicorn.error", level, __file__, 1, text, (), None)
        return record.getMessage() if seldom.filter(record) else None

    assert let_through(logging.WARNING, "Exceeded concurrency limit.") == "Exceeded concurrency limit."
    assert let_through(logging.WARNING, "another") == "another"
    for _ in range(2_000):
        assert let_through(logging.WARNING, "Exceeded concurrency limit.") is None
        assert let_through(logging.ERROR, "an error") == "an error"
    now[0] = 11.0
    found = let_through(logging.WARNING, "Exceeded concurrency limit.")
    assert found == "Exceeded concurrency limit. (and 2,000 more like this before)"
