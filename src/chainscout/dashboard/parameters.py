"""Models of queries, bodies and answers. They check requests, and the OpenAPI document is made from them."""

import re
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.datastructures import QueryParams

from ..errors import InputError
from ..report.study_data import LONGEST_SEARCH, MOST_CURVES, MOST_LINES, MOST_STATES, Sort
from ..validation import shown

#: The largest whole number that JSON keeps exactly in every language.
MOST = 2**53


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

    search: str = Field("", max_length=LONGEST_SEARCH, description="a part of the chains' names")
    sort: Sort = Field("number", description="what to sort by")
    descending: Annotated[bool, BeforeValidator(_value)] = Field(False, description="largest first")
    page: Number = Field(1, ge=1, le=10**9, description="the page, from 1")
    size: Number = Field(25, ge=1, le=MOST_LINES, description="chains on a page")


class WindowQuery(Given):
    """A part of a chain's matrix."""

    row: Number = Field(0, ge=0, le=10**9, description="the first state whose row is shown")
    column: Number = Field(0, ge=0, le=10**9, description="the first state whose column is shown")
    size: Number = Field(30, ge=1, le=MOST_STATES, description="states of the window")


class CurvesQuery(Given):
    """Chains over time."""

    chain: Chains = Field((), max_length=MOST_CURVES, description="numbers of chains; without any, the least known")


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
Token = Field(default=None, max_length=100)


class Ask(Given):
    """Which chains to advance next."""

    number: Whole = Field(default=1, ge=1, le=1000)


class Tell(Given):
    """One observation."""

    chain: str = Name
    state: str | Whole
    path: Annotated[int, Field(ge=1, le=MOST), BeforeValidator(_whole_number)] | None = None
    step: Annotated[int, Field(ge=1, le=MOST), BeforeValidator(_whole_number)] | None = None
    token: str | None = Token


class TakeLease(Given):
    """A worker that wants to advance its own path of the best chain."""

    worker: str = Field(min_length=1, max_length=200)
    seconds: float = Field(default=60.0, gt=0, le=86_400)
    steps: Whole = Field(default=1, ge=1, le=1_000_000)


class Renew(Given):
    """A lease to hold for longer: ``seconds`` from now on."""

    chain: str = Name
    token: str = Field(max_length=100)
    seconds: float = Field(default=60.0, gt=0, le=86_400)


class GiveBack(Given):
    """A lease to end; ``lost``: its worker cannot go on, and its path ends."""

    chain: str = Name
    token: str = Field(max_length=100)
    lost: bool = False


class Restart(Given):
    """A path to end; ``token``: of the lease under which it is walked. The next observation begins another path."""

    chain: str = Name
    lost: bool = False
    token: str | None = Token


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
    token: str
    steps: int


class Told(BaseModel):
    """Where the next observation belongs: its path, and its number in the path.

    The path is the one that was walked; after a lease was renewed or given back, the path of plain observations.

    Both are null if the change is stored and the study could not be read afterwards.
    """

    path: int | None
    next_step: int | None


class Failure(BaseModel):
    """Why a request was refused, in one sentence; ``kind`` is the name of the library's error."""

    error: str
    kind: str
