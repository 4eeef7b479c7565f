"""The routes: the page, the interface, the downloads."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .. import errors
from ..report.study_data import Line, StudyReport
from ..report.study_page import study_page
from ..study.export import COLUMNS, as_csv, entries
from . import interface
from .guard import MOST_BODY
from .interface import Conflict, NoQuery, Part, Read, StreamQuery, Write, checked, parsed
from .openapi import document
from .streams import Hub
from .work import Latest, change, in_thread, sentence, to_json

if TYPE_CHECKING:
    from ..study import Study

STATIC = Path(__file__).parent / "static"

#: Seconds within which a body must arrive.
SLOWEST_BODY = 10.0


#: Errors and their HTTP status. The first that fits counts.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.UnknownChain, 404),
    (Conflict, 409),
    (errors.InputError, 400),
    (errors.StudyFinished, 409),
    (errors.LeaseLost, 409),
    (errors.NothingFree, 409),
    (errors.OutcomeUnknown, 504),
    (errors.ChainscoutError, 503),
    (TimeoutError, 503),
)


class Anything(PathConvertor):
    """A part of a path with any characters, such as a chain's name.

    Starlette's own ``path`` takes no line breaks, and takes the empty text.
    """

    regex = r"[\s\S]+"


register_url_convertor("anything", Anything())


class Dashboard:
    """The routes. Each gives a record of ``report`` as JSON, a part of the page, or a file."""

    def __init__(self, study: "Study", title: str, writing: "Study | None" = None) -> None:
        """``study`` is open for reading, and ``writing`` is open for changes."""
        self._study = study
        self._title = title
        self._latest = Latest(study, title)
        self.hub = Hub(self._latest)
        self._writable = writing is not None
        routes = [
            Route("/", self.page),
            Mount("/static", StaticFiles(directory=STATIC, packages=[("chainscout.report", "static")])),
            *(Route(read.path, self._reader(read, to_json, "application/json")) for read in interface.READS),
            *(Route(part.path, self._reader(part, str.encode, "text/html")) for part in interface.PARTS),
            Route("/api/events", self.events),
            Route("/api/openapi.json", self.openapi),
            Route("/download/report.html", self.download_report),
            Route("/download/chains.csv", self.download_chains),
            Route("/download/{number:int}/matrix.csv", self.download_matrix),
        ]
        if writing is not None:
            routes += [Route(write.path, self._writer(write, writing), methods=["POST"]) for write in interface.WRITES]
        kinds: list[Any] = [HTTPException, *(kind for kind, _ in STATUS)]
        self.application = Starlette(routes=routes, exception_handlers=dict.fromkeys(kinds, failed))

    def _reader(
        self, read: Read | Part, encode: Callable[[Any], bytes], kind: str
    ) -> Callable[[Request], Awaitable[Response]]:
        """Answers a request that changes nothing."""

        async def answer(request: Request) -> Response:
            given = parsed(read.query, request.query_params)
            key = request.scope["path"], request.scope["query_string"]
            moment = await self._latest.moment()
            body = await moment.answer(
                key, lambda report: encode(read.work(report, given, *request.path_params.values()))
            )
            return Response(body, media_type=kind)

        return answer

    def _writer(self, write: Write, study: "Study") -> Callable[[Request], Awaitable[Response]]:
        """Answers a request that may change the study."""

        async def answer(request: Request) -> Response:
            given = checked(write.body, await _body(request))
            try:
                done = await change(lambda: write.work(study, given))
            except errors.UnknownChain:
                raise
            except errors.InputError as error:
                raise Conflict(str(error)) from None
            finally:
                self._latest.expire()
            return Response(done.model_dump_json(), media_type="application/json")

        return answer

    async def page(self, request: Request) -> Response:
        """GET /."""
        return FileResponse(STATIC / "index.html")

    async def events(self, request: Request) -> Response:
        """GET /api/events."""
        last = request.headers.get("last-event-id")
        query = request.query_params if last is None else QueryParams({"after": last})
        after = parsed(StreamQuery, query).after
        if self.hub.is_full():
            raise HTTPException(503, "too many event streams are open")
        return StreamingResponse(self.hub.stream(after), media_type="text/event-stream")

    async def openapi(self, request: Request) -> Response:
        """GET /api/openapi.json."""
        parsed(NoQuery, request.query_params)
        return JSONResponse(document(self._writable))

    async def download_report(self, request: Request) -> Response:
        """GET /download/report.html."""
        text = await in_thread(lambda: study_page(self._study, self._title))
        return Response(text, media_type="text/html", headers=_attached("report.html"))

    async def download_chains(self, request: Request) -> Response:
        """GET /download/chains.csv."""
        return _csv("chains.csv", _chain_lines((await self._latest.moment()).report))

    async def download_matrix(self, request: Request) -> Response:
        """GET /download/{number}/matrix.csv."""
        line = (await self._latest.moment()).report.look.chain(request.path_params["number"])
        return _csv("matrix.csv", matrix_lines(self._study, line.name))


async def _body(request: Request) -> bytes:
    """The body. It must be JSON, arrive in time, and not be too long."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the body must be JSON, with the content-type application/json")
    body = bytearray()
    async with asyncio.timeout(SLOWEST_BODY):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BODY:
                raise HTTPException(413, f"a request has at most {MOST_BODY:,} bytes")
    return bytes(body)


def failed(request: Request, error: Exception) -> Response:
    """An error of the library with its own sentence, or a request that fits no route or is refused here."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail, "kind": "Refused"}, error.status_code, headers=error.headers)
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    kind = "InputError" if isinstance(error, errors.InputError) else type(error).__name__
    return JSONResponse({"error": sentence(error), "kind": kind}, status)


def _attached(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


def _csv(name: str, lines: Iterator[bytes]) -> Response:
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=_attached(name))


def _chain_lines(report: StudyReport) -> Iterator[bytes]:
    """Every chain as comma-separated values."""
    yield as_csv([[field.name for field in fields(Line)]])
    yield from (as_csv([tuple(asdict(line).values())]) for line in map(report.line, report.look.chains))


def matrix_lines(study: "Study", chain: str) -> Iterator[bytes]:
    """A chain's matrix with its intervals as comma-separated values, a row of the matrix at a time."""
    yield as_csv([COLUMNS])
    yield from map(as_csv, entries(study.estimate(chain)))
