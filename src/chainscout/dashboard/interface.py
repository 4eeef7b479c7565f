"""The HTTP interface: the models of requests and answers, and what each request does.

Routes and OpenAPI document are made from it.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.datastructures import QueryParams

from ..errors import ChainscoutError, InputError
from ..report import Table, study_data
from ..report.study_data import StudyReport
from ..study import Step, Study
from ..validation import shown
from . import parts

#: The largest whole number that JSON keeps exactly in every language.
MOST = 2**53
#: The most chains on a page.
MOST_LINES = 200


class Given(BaseModel):
    """A request's query or body. Other keys and other types are refused."""

    model_config = ConfigDict(strict=True, extra="forbid")


Kind = TypeVar("Kind", bound=Given)


def checked(kind: type[Kind], given: dict[str, Any] | bytes) -> Kind:
    """The model of a query's values or of a JSON body. Raises `InputError` with one sentence if it is wrong."""
    try:
        return kind.model_validate_json(given) if isinstance(given, bytes) else kind.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the body"
        raise InputError(f"{shown(place)}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None


# -- queries


def parsed(kind: type[Kind], query: QueryParams) -> Kind:
    """The model of a query. A name that is given more than once has a list of values."""
    values = {name: query.getlist(name) for name in query}
    return checked(kind, {name: texts[0] if len(texts) == 1 else texts for name, texts in values.items()})


def _value(text: Any) -> Any:
    """The number or truth value of a query's text, written as in JSON.

    pydantic's own conversion takes more, such as 1e3 for a whole number and 1 for true.
    """
    if isinstance(text, str) and re.fullmatch(r"-?[0-9]{1,16}", text, re.ASCII):
        return int(text)
    return {"true": True, "false": False}.get(text, text) if isinstance(text, str) else text


def _values(texts: Any) -> Any:
    return tuple(map(_value, texts if isinstance(texts, list) else [texts]))


Number = Annotated[int, BeforeValidator(_value)]
Chains = Annotated[tuple[Annotated[int, Field(ge=0, le=10**9)], ...], BeforeValidator(_values)]


class NoQuery(Given):
    """A query without parameters."""


class PageQuery(Given):
    """Some of the chains."""

    search: str = Field("", max_length=200, description="a part of the chains' names")
    sort: study_data.Sort = Field("number", description="what to sort by")
    descending: Annotated[bool, BeforeValidator(_value)] = Field(False, description="largest first")
    page: Number = Field(1, ge=1, le=10**9, description="the page, from 1")
    size: Number = Field(25, ge=1, le=MOST_LINES, description="chains on a page")


class WindowQuery(Given):
    """A part of a chain's matrix."""

    row: Number = Field(0, ge=0, le=10**9, description="the first state whose row is shown")
    column: Number = Field(0, ge=0, le=10**9, description="the first state whose column is shown")
    size: Number = Field(30, ge=1, le=60, description="states of the window")


class ChainQuery(Given):
    """A chain on the page, and the first states of the window of its matrix."""

    number: Number = Field(ge=0, le=10**9)
    row: Number = Field(0, ge=0, le=10**9)
    column: Number = Field(0, ge=0, le=10**9)


class CurvesQuery(Given):
    """Chains over time."""

    chain: Chains = Field((), max_length=12, description="numbers of chains; without any, the least known")


class LogQuery(Given):
    """What happened."""

    after: Number = Field(
        -100, ge=-1000, le=MOST, description="the number of the last event known; a negative number counts from the end"
    )
    limit: Number = Field(100, ge=1, le=1000, description="how many events")


class StreamQuery(Given):
    """What happens."""

    after: Annotated[Number | None, Field(ge=0, le=MOST)] = Field(
        None, description="the number of the last event known; without it, only new ones are sent"
    )


# -- bodies of requests that change the study


def _whole_number(value: Any) -> Any:
    """3.0 is a whole number in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole_number)]
Name = Field(min_length=1, max_length=20_000)
Positive = Annotated[int, Field(ge=1, le=MOST), BeforeValidator(_whole_number)]


class Ask(Given):
    """Which chains to advance next."""

    number: Whole = Field(default=1, ge=1, le=1000)


class Tell(Given):
    """One observation."""

    chain: str = Name
    state: str | Whole
    path: Positive | None = None
    step: Positive | None = None
    token: Positive | None = None
    key: str | None = Field(default=None, max_length=200)
    ends: bool = False


class TakeLease(Given):
    """A worker that wants to advance its own path of the best chain."""

    worker: str = Field(min_length=1, max_length=200)
    seconds: float = Field(default=60.0, gt=0, le=86_400)
    steps: Whole = Field(default=1, ge=1, le=1_000_000)


class Renew(Given):
    """A lease to hold for longer: ``seconds`` from now on."""

    chain: str = Name
    token: Positive
    seconds: float = Field(default=60.0, gt=0, le=86_400)


class GiveBack(Given):
    """A lease to end; ``lost``: its worker cannot go on, and its path ends."""

    chain: str = Name
    token: Positive
    lost: bool = False


class Restart(Given):
    """A path to end; ``token``: of the lease under which it is walked. The next observation begins another path."""

    chain: str = Name
    lost: bool = False
    due: bool = False
    token: Positive | None = None


# -- answers to them


class Place(BaseModel):
    """Where the next observation belongs."""

    #: The path, the state that it is in (null: the next observation begins it), and that observation's number in it.
    path: int
    state: str | int | None
    step: int


class Asked(Place):
    """The chains to advance, in this order, and the place of the next plain observation of the first one."""

    chains: list[str]


class Leased(Place):
    """A lease. Its ``token`` goes with every observation that is told under it."""

    chain: str
    token: int
    steps: int


class Told(BaseModel):
    """Where the next observation belongs: its path, and its number in the path.

    The path is the one that was walked; after a lease was renewed or given back, the path of plain observations.

    Both are null if the change is stored and the study could not be read afterwards.
    """

    path: int | None
    next_step: int | None


class Restarted(Told):
    """Where the next observation belongs, and the token that goes with it if the path is walked under a lease."""

    token: int | None


class Failure(BaseModel):
    """Why a request was refused, in one sentence; ``kind`` is the name of the library's error."""

    error: str
    kind: str


# -- requests


class Conflict(InputError):
    """The request is valid, and the study refuses it."""


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


def _call(method: str) -> Callable[..., Any]:
    """A request that is a method of `StudyReport`. Its arguments are what stands in the path, and the query."""
    return lambda report, given, *inside: getattr(report, method)(*inside, **given.model_dump())


NAME = {"name": {"type": "string", "minLength": 1}}
NUMBER = {"number": {"type": "integer", "minimum": 0, "maximum": 10**9}}
READS = (
    Read("/api/study", "the study as a whole", NoQuery, study_data.Overview, _call("overview")),
    Read("/api/chains", "some chains, searched and sorted", PageQuery, study_data.Page, _call("page")),
    Read("/api/chains/{name:anything}", "a chain by name", WindowQuery, study_data.Chain, _call("chain"), NAME),
    Read("/api/numbered/{number:int}", "a chain by number", WindowQuery, study_data.Chain, _call("chain"), NUMBER),
    Read("/api/curves", "chains over time", CurvesQuery, study_data.Curves, _call("curves")),
    Read("/api/leases", "who holds what", NoQuery, list[study_data.Held], _call("leases")),
    Read("/api/panels", "what the page shows beside the chains, as tables", NoQuery, list[Table], _call("panels")),
    Read(
        "/api/questions", "registered questions, with answers over time", NoQuery, list[study_data.Card], _call("cards")
    ),
    Read("/api/log", "what happened", LogQuery, list[study_data.Happening], _call("events")),
)


class Part(NamedTuple):
    """A part of the live page. It is the page's own, and not in the OpenAPI document."""

    path: str
    query: type[Given]
    write: Callable[..., str]

    def work(self, report: StudyReport, given: Given) -> str:
        """The part as HTML."""
        return self.write(report, **given.model_dump())


PARTS = (
    Part("/part/study", NoQuery, parts.study),
    Part("/part/charts", CurvesQuery, parts.charts),
    Part("/part/chains", PageQuery, parts.chains),
    Part("/part/chain", ChainQuery, parts.chain),
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
    done: Step | None = getattr(study, method)(**given.model_dump())
    try:
        place = done or study.chain(given.chain)
    except ChainscoutError:
        return Told(path=None, next_step=None)
    return Told(path=place.path, next_step=place.step)


def _restart(study: Study, given: Restart) -> Restarted:
    place = study.restart(**given.model_dump())
    token = None if isinstance(place, Step) else place.token
    return Restarted(path=place.path, next_step=place.step, token=token)


WRITES = (
    Write("/api/ask", "which chains to advance next; changes nothing", Ask, Asked, _ask),
    Write("/api/tell", "one observation, durable before the answer", Tell, Told, partial(_done, "tell")),
    Write("/api/lease", "leases the next step of the worker's own path of the best chain", TakeLease, Leased, _lease),
    Write("/api/renew", "holds a lease for longer", Renew, Told, partial(_done, "renew")),
    Write("/api/give-back", "ends a lease", GiveBack, Told, partial(_done, "give_back")),
    Write("/api/restart", "ends a path: the next observation begins another", Restart, Restarted, _restart),
)
