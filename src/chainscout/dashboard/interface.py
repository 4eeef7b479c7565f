"""The HTTP interface: what each request takes, gives and does. Routes and OpenAPI document are made from it."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel

from ..errors import ChainscoutError, InputError
from ..report import Table
from ..report.study_data import Card, Chain, Curves, Drawings, Happening, Held, Overview, Page, StudyReport
from ..study import Step, Study
from .parameters import (
    Ask,
    Asked,
    CurvesQuery,
    GiveBack,
    Given,
    Leased,
    LogQuery,
    NoQuery,
    PageQuery,
    Renew,
    Restart,
    TakeLease,
    Tell,
    Told,
    WindowQuery,
)

Found = TypeVar("Found")


class Missing(InputError):
    """There is no such chain."""


class Conflict(InputError):
    """The request is valid, and the study refuses it."""


def found(look: Callable[[], Found]) -> Found:
    """The result of a look for a chain. Raises `Missing`, which is status 404, if there is no such chain."""
    try:
        return look()
    except InputError as error:
        raise Missing(str(error)) from None


class Read(NamedTuple):
    """A request that reads."""

    path: str
    meaning: str
    query: type[Given]
    answer: Any
    work: Callable[..., Any]
    #: The JSON Schema of the parameters in its path.
    inside: dict[str, dict[str, Any]] = {}  # noqa: RUF012

    @property
    def address(self) -> str:
        """The path as OpenAPI writes it."""
        return re.sub(r":\w+}", "}", self.path)


class Write(NamedTuple):
    """A request that may change the study."""

    path: str
    meaning: str
    body: type[Given]
    answer: type[BaseModel]
    work: Callable[[Study, Any], BaseModel]


# -- reading


def _named(report: StudyReport, given: WindowQuery, name: str) -> Chain:
    return report.chain(found(lambda: report.number(name)), **given.model_dump())


def _numbered(report: StudyReport, given: WindowQuery, number: int) -> Chain:
    return report.chain(found(lambda: report.browser.line(number)).number, **given.model_dump())


def _over_time(method: str, report: StudyReport, given: CurvesQuery) -> Any:
    for number in given.chain:
        found(partial(report.browser.line, number))
    return getattr(report, method)(given.chain)


def _call(method: str) -> Callable[[StudyReport, Given], Any]:
    """A request that is a method of `StudyReport`, with its query as the arguments."""
    return lambda report, given: getattr(report, method)(**given.model_dump())


NAME = {"name": {"type": "string", "minLength": 1}}
NUMBER = {"number": {"type": "integer", "minimum": 0, "maximum": 10**9}}
READS = (
    Read("/api/study", "the study as a whole", NoQuery, Overview, _call("overview")),
    Read("/api/chains", "some chains, searched and sorted", PageQuery, Page, _call("page")),
    Read("/api/chains/{name:anything}", "a chain by name", WindowQuery, Chain, _named, NAME),
    Read("/api/numbered/{number:int}", "a chain by number", WindowQuery, Chain, _numbered, NUMBER),
    Read("/api/curves", "chains over time", CurvesQuery, Curves, partial(_over_time, "curves")),
    Read("/api/drawings", "what the page draws over time", CurvesQuery, Drawings, partial(_over_time, "drawings")),
    Read("/api/leases", "who holds what", NoQuery, list[Held], _call("leases")),
    Read("/api/panels", "what the page shows beside the chains, as tables", NoQuery, list[Table], _call("panels")),
    Read("/api/questions", "registered questions, with answers over time", NoQuery, list[Card], _call("cards")),
    Read("/api/log", "what happened", LogQuery, list[Happening], _call("events")),
)


# -- changing: the library's methods, and the library's errors


def _ask(study: Study, given: Ask) -> Asked:
    chains = study.ask(given.number)
    place = study.chain(chains[0])
    return Asked(chains=chains, path=place.path, state=place.last, step=place.step)


def _lease(study: Study, given: TakeLease) -> Leased:
    lease = study.worker(given.worker, renews=False).lease(given.seconds, steps=given.steps, wait=0, continuing=True)
    if lease is None:
        study.ask()  # raises the error that says why there is nothing to ask
        raise AssertionError("a study that gives no lease has stopped")
    return Leased(**{name: getattr(lease, name) for name in Leased.model_fields})


def _done(method: str, study: Study, given: Any) -> Told:
    """Calls a method that changes one chain. The answer says where the next observation belongs.

    If the study cannot be read after the change, the answer has no numbers: an error would deny the change.
    """
    found(lambda: study.chain(given.chain))
    done: Step | None = getattr(study, method)(**given.model_dump())
    try:
        place = done or study.chain(given.chain)
    except ChainscoutError:
        return Told(path=None, next_step=None)
    return Told(path=place.path, next_step=place.step)


WRITES = (
    Write("/api/ask", "which chains to advance next; changes nothing", Ask, Asked, _ask),
    Write("/api/tell", "one observation, durable before the answer", Tell, Told, partial(_done, "tell")),
    Write("/api/lease", "leases the next step of the worker's own path of the best chain", TakeLease, Leased, _lease),
    Write("/api/renew", "holds a lease for longer", Renew, Told, partial(_done, "renew")),
    Write("/api/give-back", "ends a lease", GiveBack, Told, partial(_done, "give_back")),
    Write("/api/restart", "ends a path: the next observation begins another", Restart, Told, partial(_done, "restart")),
)
