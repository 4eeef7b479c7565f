"""The routes: the page, the interface, the downloads."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .. import errors
from ..report.study_page import study_page
from ..report.study_report import StudyReport
from ..report.views import Curves
from . import downloads, parameters
from .again import Again, key
from .openapi import document
from .parameters import Parameter
from .streams import Hub
from .work import Recent, Unknown, in_thread, to_json
from .writing import Conflict, Missing, TooLarge, Writing, WrongKind

if TYPE_CHECKING:
    from ..study import Study

STATIC = Path(__file__).parent / "static"

#: The library's errors and what HTTP calls them; the first that fits.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (Missing, 404),
    (Conflict, 409),
    (errors.InputError, 400),
    (errors.StudyFinished, 409),
    (errors.LeaseLost, 409),
    (errors.NothingFree, 409),
    (errors.OutcomeUnknown, 504),
    (errors.ChainscoutError, 503),
    (TooLarge, 413),
    (WrongKind, 415),
    (TimeoutError, 503),
    (Unknown, 504),
)


class Anything(Convertor[str]):
    """A part of a path that may have slashes and line breaks in it, as a chain's name may."""

    regex = r"[\s\S]+"

    def convert(self, value: str) -> str:
        """The text itself."""
        return value

    def to_string(self, value: str) -> str:
        """The text itself."""
        return value


register_url_convertor("anything", Anything())


class Dashboard:
    """The handlers; each gives what ``report`` found, as JSON."""

    def __init__(self, study: "Study", title: str, writing: "Study | None" = None) -> None:
        """``study``: opened to be read; ``writing``: opened to be changed."""
        self._study = study
        self._title = title
        self.report = StudyReport(study, title)
        self.hub = Hub(self.report, self._signature)
        self._recent = Recent()
        self._writable = writing is not None
        routes = [
            Route("/", self.page),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/api/study", self.study),
            Route("/api/chains", self.chains),
            Route("/api/chains/{name:anything}", self.chain_of_name),
            Route("/api/numbered/{number:int}", self.chain_of_number),
            Route("/api/curves", self.curves),
            Route("/api/leases", self.leases),
            Route("/api/panels", self.panels),
            Route("/api/questions", self.questions),
            Route("/api/log", self.log),
            Route("/api/events", self.events),
            Route("/api/openapi.json", self.openapi),
            Route("/download/report.html", self.download_report),
            Route("/download/chains.csv", self.download_chains),
            Route("/download/{number:int}/matrix.csv", self.download_matrix),
        ]
        if writing is not None:
            post = Writing(writing)
            routes += [
                Route("/api/ask", post.ask, methods=["POST"]),
                Route("/api/tell", post.tell, methods=["POST"]),
                Route("/api/lease", post.lease, methods=["POST"]),
                Route("/api/renew", post.renew, methods=["POST"]),
                Route("/api/give-back", post.give_back, methods=["POST"]),
                Route("/api/restart", post.restart, methods=["POST"]),
            ]
        handlers: dict[Any, Callable[[Request, Exception], Response | Awaitable[Response]]] = {
            kind: failed for kind, _ in STATUS
        }
        handlers[HTTPException] = refused
        self.application = Again(Starlette(routes=routes, exception_handlers=handlers), self._recent)

    def _signature(self) -> Any:
        progress = self._study.progress()
        return progress.observations, progress.events, progress.leases, progress.stop_reason, progress.lost

    async def _give(self, request: Request, known: Sequence[Parameter], work: Callable[..., Any]) -> Response:
        """What ``work`` makes of the query, as JSON."""
        values = parameters.parse(request.query_params, known)
        body = await self._recent.get(key(request.scope), lambda: to_json(work(**values)))
        return Response(body, media_type="application/json")

    async def page(self, request: Request) -> Response:
        """GET /."""
        return FileResponse(STATIC / "index.html")

    async def study(self, request: Request) -> Response:
        """GET /api/study."""
        return await self._give(request, (), self.report.overview)

    async def chains(self, request: Request) -> Response:
        """GET /api/chains."""
        return await self._give(request, parameters.CHAINS_QUERY, self.report.page)

    async def chain_of_name(self, request: Request) -> Response:
        """GET /api/chains/{name}."""
        name = request.path_params["name"]
        return await self._give_chain(request, lambda: self.report.number(name))

    async def chain_of_number(self, request: Request) -> Response:
        """GET /api/numbered/{number}."""
        number = request.path_params["number"]
        return await self._give_chain(request, lambda: self.report.browser.line(number).number)

    async def _give_chain(self, request: Request, number: Callable[[], int]) -> Response:
        return await self._give(
            request, parameters.WINDOW_QUERY, lambda **window: self.report.chain(found(number), **window)
        )

    async def curves(self, request: Request) -> Response:
        """GET /api/curves."""

        def work(chain: tuple[int, ...]) -> Curves:
            for number in chain:
                found(partial(self.report.browser.line, number))
            return self.report.curves(chain)

        return await self._give(request, (parameters.CHAIN,), work)

    async def leases(self, request: Request) -> Response:
        """GET /api/leases."""
        return await self._give(request, (), self.report.leases)

    async def panels(self, request: Request) -> Response:
        """GET /api/panels."""
        return await self._give(request, (), self.report.panels)

    async def questions(self, request: Request) -> Response:
        """GET /api/questions."""
        return await self._give(request, (), self.report.cards)

    async def log(self, request: Request) -> Response:
        """GET /api/log."""
        return await self._give(request, parameters.LOG_QUERY, self.report.events)

    async def events(self, request: Request) -> Response:
        """GET /api/events."""
        values = parameters.parse(request.query_params, (parameters.FROM,))
        after = values["after"]
        given = request.headers.get("last-event-id")
        if given is not None:
            after = parameters.FROM.parse([given])
        if self.hub.is_full():
            raise HTTPException(503, "too many event streams are open")
        return StreamingResponse(self.hub.stream(after), media_type="text/event-stream")

    async def openapi(self, request: Request) -> Response:
        """GET /api/openapi.json."""
        parameters.parse(request.query_params, ())
        return JSONResponse(document(self._writable))

    async def download_report(self, request: Request) -> Response:
        """GET /download/report.html."""
        text = await in_thread(lambda: study_page(self._study, self._title))
        return Response(text, media_type="text/html", headers=_attached("report.html"))

    async def download_chains(self, request: Request) -> Response:
        """GET /download/chains.csv."""
        lines = downloads.chains(self.report)
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=_attached("chains.csv"))

    async def download_matrix(self, request: Request) -> Response:
        """GET /download/{number}/matrix.csv."""
        number = request.path_params["number"]
        await in_thread(lambda: found(partial(self.report.browser.line, number)))
        lines = downloads.matrix(self._study, self.report, number)
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=_attached("matrix.csv"))


def found(look: Callable[[], Any]) -> Any:
    """What a look for a chain gives; a chain that is not there is 404."""
    try:
        return look()
    except errors.InputError as error:
        raise Missing(str(error)) from None


def failed(request: Request, error: Exception) -> Response:
    """An error of the library, in its own sentence."""
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    sentence = str(error) or "this took too long"
    kind = "InputError" if isinstance(error, errors.InputError) else type(error).__name__
    return JSONResponse({"error": sentence, "kind": kind}, status)


def refused(request: Request, error: Exception) -> Response:
    """A request that fits no route, or a refusal of ours."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail, "kind": "Refused"}, error.status_code, headers=error.headers)


def _attached(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
