"""The requests that change a study, for ``--writable``: the library's methods, and the library's errors."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from ..errors import ChainscoutError, InputError
from ..validation import shown
from .guard import MOST_BODY
from .parameters import Ask, Asked, Body, GiveBack, Leased, Renew, Restart, TakeLease, Tell, Told
from .work import change

if TYPE_CHECKING:
    from ..study import Step, Study

Given = TypeVar("Given", bound=Body)

#: Seconds in which a body must have arrived.
SLOWEST_BODY = 10.0


class Missing(InputError):
    """There is no such chain."""


class Conflict(InputError):
    """The request is well made, and the study refuses it."""


class TooLarge(Exception):
    """A body has too many bytes."""


class WrongKind(Exception):
    """A body is not JSON."""


async def read(request: Request, kind: type[Given]) -> Given:
    """The body, checked."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise WrongKind("the body must be JSON, with the content-type application/json")
    body = bytearray()
    async with asyncio.timeout(SLOWEST_BODY):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BODY:
                raise TooLarge(f"a request has at most {MOST_BODY:,} bytes")
    try:
        return kind.model_validate_json(bytes(body))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the body"
        raise InputError(f"{shown(place)}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None


class Writing:
    """One handler a request."""

    def __init__(self, study: "Study") -> None:
        self._study = study

    async def ask(self, request: Request) -> Response:
        """POST /api/ask."""
        given = await read(request, Ask)

        def work() -> Asked:
            chains = self._study.ask(given.number)
            place = self._study.chain(chains[0])
            return Asked(chains=chains, path=place.path, state=place.last, step=place.step)

        return await _answer(work)

    async def tell(self, request: Request) -> Response:
        """POST /api/tell."""
        given = await read(request, Tell)
        return await self._done(
            given.chain, lambda: self._study.tell(given.chain, given.state, given.path, given.step, token=given.token)
        )

    async def lease(self, request: Request) -> Response:
        """POST /api/lease."""
        given = await read(request, TakeLease)

        def work() -> Leased:
            worker = self._study.worker(given.worker, renews=False)
            lease = worker.lease(given.seconds, steps=given.steps, wait=0, continuing=True)
            if lease is None:
                self._study.ask()  # says why there is nothing to ask
                raise AssertionError("a study that gives no lease has stopped")
            return Leased(
                chain=lease.chain,
                token=lease.token,
                path=lease.path,
                state=lease.state,
                step=lease.step,
                steps=lease.steps,
            )

        return await _answer(work)

    async def renew(self, request: Request) -> Response:
        """POST /api/renew."""
        given = await read(request, Renew)
        return await self._done(given.chain, lambda: self._study.renew(given.chain, given.token, given.seconds))

    async def give_back(self, request: Request) -> Response:
        """POST /api/give-back."""
        given = await read(request, GiveBack)
        return await self._done(given.chain, lambda: self._study.give_back(given.chain, given.token, lost=given.lost))

    async def restart(self, request: Request) -> Response:
        """POST /api/restart."""
        given = await read(request, Restart)
        return await self._done(
            given.chain, lambda: self._study.restart(given.chain, lost=given.lost, token=given.token)
        )

    async def _done(self, chain: str, act: "Callable[[], Step | None]") -> Response:
        """What is done to one chain, and where the next observation belongs: of the path that was walked, or plain.

        When it is done, an answer that says otherwise would be wrong: a study that cannot be read just then gives no
        numbers.
        """

        def work() -> Told:
            try:
                self._study.chain(chain)
            except InputError as error:
                raise Missing(str(error)) from None
            done = act()
            try:
                place = done or self._study.chain(chain)
            except ChainscoutError:
                return Told(path=None, next_step=None)
            return Told(path=place.path, next_step=place.step)

        return await _answer(work)


async def _answer(work: Callable[[], BaseModel]) -> Response:
    try:
        found = await change(work)
    except Missing:
        raise
    except InputError as error:
        raise Conflict(str(error)) from None
    return Response(found.model_dump_json(), media_type="application/json")
