"""``chainscout serve``: listens, prints its address, and ends at once when it is interrupted."""

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from uvicorn import Server

    from ..study import Study
    from .application import Dashboard

#: The most connections at once, and seconds that the head of a request may take.
MOST_CONNECTIONS = 1_000
SLOWEST_HEAD = 10.0
#: The fewest characters of a user's own token.
SHORTEST_TOKEN = 16


def serve(
    where: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    token: str | None = None,
    writable: bool = False,
    ready: Callable[[str], Any] = print,
) -> None:
    """Serves a study until it is interrupted. ``ready`` is called with the address, which has the token in it."""
    try:
        import starlette  # noqa: F401 - only to know whether it is there
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtraError("serve", "serve") from None
    from ..study import Study
    from .application import Dashboard

    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isidentifier()):
        raise InputError(f"a token has at least {SHORTEST_TOKEN} letters, digits and _, and begins with no digit")
    key = token or secrets.token_hex(24)
    title = "Study" if "://" in where else f"Study {Path(where).name}"
    with ExitStack() as stack:
        study = stack.enter_context(Study.open(where, read_only=True))
        writing = stack.enter_context(writing_study(where)) if writable else None
        listening = stack.enter_context(_listen(host, port))
        number = listening.getsockname()[1]
        server = make_server(Dashboard(study, title, writing), key, host, number)
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{number}/?token={key}")
        with suppress(KeyboardInterrupt):  # which uvicorn passes on when it has ended
            asyncio.run(server.serve(sockets=[listening]))


def writing_study(where: str) -> "Study":
    """The study, open for changes by requests. It waits for other writers for less time than a request has."""
    from ..study import Study
    from .work import FOR_WRITERS

    return Study.open(where, continuing=True, patience=FOR_WRITERS)


def make_server(dashboard: "Dashboard", token: str, host: str, port: int) -> "Server":
    """The server in front of a dashboard."""
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from .guard import Guard

    class Protocol(H11Protocol):
        """HTTP with a time limit for the head of a request. uvicorn has no such limit, and would wait for ever."""

        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            if self._late is None:
                self._wait()
            super().data_received(data)
            if self.cycle is not before and self._late is not None:
                self._late.cancel()
                self._late = None

        def connection_lost(self, exc: Exception | None) -> None:
            if self._late is not None:
                self._late.cancel()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._late = self.loop.call_later(SLOWEST_HEAD, self._too_late)

        def _too_late(self) -> None:
            self._late = None
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    class Ending(uvicorn.Server):
        """A server that ends its event streams before it waits for its connections. uvicorn would wait for them."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await dashboard.hub.close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        Guard(dashboard.application, token=token, host=host, port=port),
        http=Protocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
        limit_concurrency=MOST_CONNECTIONS,
    )
    log = logging.getLogger("uvicorn.error")
    for old in [known for known in log.filters if isinstance(known, Seldom)]:
        log.removeFilter(old)
    log.addFilter(Seldom())
    return Ending(config)


class Seldom(logging.Filter):
    """Limits how often the same warning is logged, so that a flood of requests does not fill a disk.

    The standard library has no such filter.
    """

    #: Seconds between two lines of the same warning.
    PAUSE = 10.0

    def __init__(self) -> None:
        super().__init__()
        #: Warning → when it was last logged, and how often it was left out since then.
        self._known: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the line."""
        if record.levelno != logging.WARNING:
            return True
        last, missed = self._known.get(str(record.msg), (-self.PAUSE, 0))
        now = time.monotonic()
        if now - last < self.PAUSE:
            self._known[str(record.msg)] = last, missed + 1
            return False
        self._known[str(record.msg)] = now, 0
        if missed:
            record.msg = f"{record.msg} (and {missed:,} more like this before)"
        return True


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family is socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, backlog=512, dualstack_ipv6=both)
    except OSError as error:
        raise InputError(f"nothing can be served at {host} port {port}: {error.strerror or error}") from None
