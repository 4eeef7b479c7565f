"""The guard of the server: a request must name the right host, come from the server's own page, and know the token."""

import hmac
import ipaddress
import logging
import secrets
import socket

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The server's own log.
_log = logging.getLogger("uvicorn.error")

#: The largest body of a request, in bytes.
MOST_BODY = 64 * 1024

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


#: The same as bytes.
ENCODED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Guard:
    """Stands in front of the application. A request that it refuses reaches nothing else.

    Starlette's own middleware is not enough. `TrustedHostMiddleware` ignores the port and knows no addresses, so other
    servers of this machine would pass. `AuthenticationMiddleware` leaves header, cookie and comparison to its user.
    """

    def __init__(self, app: ASGIApp, *, token: str, host: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        #: The value of the cookie, so that a browser does not keep the token itself.
        self._session = secrets.token_hex(24).encode()
        self._port = port
        self._local = is_loopback(host)
        self._names = {"localhost", host.lower()}
        if not self._local:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        #: All ports of a machine share their cookies, so each server has a cookie of its own.
        self.cookie = f"chainscout-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        cookie = b"set-cookie", f"{self.cookie}={self._session.decode()}; Path=/; HttpOnly; SameSite=Strict".encode()
        enters = refusal is None and self._enters(Request(scope))

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                # This runs a thousand times a second, so the headers are ready bytes. No answer sets any of them.
                message["headers"] = [*message.get("headers", ()), *ENCODED, *([cookie] if enters else ())]
            await send(message)

        if refusal is None:
            await self._app(scope, receive, send_guarded)
        else:
            status, sentence = refusal
            if status == 401:
                client = (scope.get("client") or ("an unknown place",))[0]
                _log.warning("refused a request from %s: the token is missing or wrong", client)
            more = {"www-authenticate": "Bearer"} if status == 401 else {}
            answer = JSONResponse({"error": sentence, "kind": "Refused"}, status, headers=more)
            await answer(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and sentence of a refusal, or None."""
        request = Request(scope)
        headers = request.headers  # if one is given twice, the first one counts
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._is_own_name(host):
            return 421, "this server is not the one that the Host header names"
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            return 403, "requests from other sites are refused"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and scope["path"] != "/":
            return 403, "requests from other sites are refused"
        if not self._is_known(request):
            return 401, "the token is missing or wrong: use the address that 'chainscout serve' printed"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:12]) > MOST_BODY:
            return 413, f"a request has at most {MOST_BODY:,} bytes"
        return None

    def _is_own_name(self, host: str) -> bool:
        """Whether a Host header names this server. A foreign name that a DNS server points here does not."""
        name, port = _split(host)
        if port != self._port:
            return False
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self._local

    def _is_known(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._matches(given.strip()):
            return True
        return _same(request.cookies.get(self.cookie, ""), self._session) or self._enters(request)

    def _enters(self, request: Request) -> bool:
        """Whether the request is for the page and has the token in its address."""
        return request.scope["path"] == "/" and self._matches(request.query_params.get("token", ""))

    def _matches(self, given: str) -> bool:
        return _same(given, self._token)


def _same(given: str, secret: bytes) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(host: str) -> tuple[str, int | None]:
    """Name and port of a Host header. IPv6 addresses stand in brackets."""
    name, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):
        name, port = host, "80"
    if not port.isdecimal() or len(port) > 5:
        return name, None
    return name.strip("[]").lower(), int(port)
