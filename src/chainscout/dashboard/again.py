"""Answers that are given again: a request that was answered a moment ago need not find its way once more."""

from starlette.types import ASGIApp, Receive, Scope, Send

from .work import Recent

TYPE = (b"content-type", b"application/json")


class Again:
    """In front of the routes, behind the guard. Answers are remembered by path and query, as they were sent."""

    def __init__(self, app: ASGIApp, recent: Recent) -> None:
        self._app = app
        self._recent = recent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        body = self._recent.fresh(key(scope)) if scope["type"] == "http" and scope["method"] == "GET" else None
        if body is None:
            await self._app(scope, receive, send)
            return
        headers = [TYPE, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def key(scope: Scope) -> tuple[str, bytes]:
    """What an answer is remembered by."""
    return scope["path"], scope.get("query_string", b"")
