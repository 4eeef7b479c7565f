"""What requests may ask for, said once: it checks them, and it is what the OpenAPI document says."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.datastructures import QueryParams

from ..errors import InputError
from ..report.study_report import LONGEST_SEARCH, MOST_CURVES, MOST_LINES, MOST_STATES, SORTS
from ..validation import shown

#: Whole numbers that every language's JSON keeps.
MOST = 2**53


@dataclass(frozen=True)
class Parameter:
    """One parameter of a query."""

    name: str
    #: As in JSON Schema.
    schema: Mapping[str, Any]
    meaning: str
    default: Any

    def parse(self, texts: Sequence[str]) -> Any:
        """The value of the texts given for it."""
        kind = self.schema["type"]
        if kind == "array":
            if len(texts) > self.schema["maxItems"]:
                raise InputError(f"{self.name} may be given {self.schema['maxItems']} times, not {len(texts)}")
            return tuple(self._number(text, self.schema["items"]) for text in texts)
        if len(texts) != 1:
            raise InputError(f"{self.name} may be given once, not {len(texts)} times")
        (text,) = texts
        if kind == "integer":
            return self._number(text, self.schema)
        if kind == "boolean":
            if text not in ("true", "false"):
                raise InputError(f"{self.name} must be true or false, not {shown(text)}")
            return text == "true"
        if "enum" in self.schema and text not in self.schema["enum"]:
            raise InputError(f"{self.name} must be one of {', '.join(self.schema['enum'])}, not {shown(text)}")
        if len(text) > self.schema.get("maxLength", MOST):
            raise InputError(f"{self.name} has at most {self.schema['maxLength']} characters, not {len(text):,}")
        return text

    def _number(self, text: str, schema: Mapping[str, Any]) -> int:
        low, high = schema["minimum"], schema["maximum"]
        if not re.fullmatch(r"-?[0-9]{1,16}", text, re.ASCII) or not low <= int(text) <= high:
            raise InputError(f"{self.name} must be a whole number from {low} to {high}, not {shown(text)}")
        return int(text)


def _whole(name: str, meaning: str, default: Any, low: int, high: int = 10**9) -> Parameter:
    return Parameter(name, {"type": "integer", "minimum": low, "maximum": high, "default": default}, meaning, default)


SEARCH = Parameter(
    "search", {"type": "string", "maxLength": LONGEST_SEARCH, "default": ""}, "a part of the chains' names", ""
)
SORT = Parameter("sort", {"type": "string", "enum": list(SORTS), "default": "number"}, "what to sort by", "number")
DESCENDING = Parameter("descending", {"type": "boolean", "default": False}, "largest first", False)
PAGE = _whole("page", "the page, from 1", 1, 1)
SIZE = _whole("size", "chains on a page", 25, 1, MOST_LINES)
ROW = _whole("row", "the first state whose row is shown", 0, 0)
COLUMN = _whole("column", "the first state whose column is shown", 0, 0)
STATES = _whole("size", "states of the window", 30, 1, MOST_STATES)
CHAIN = Parameter(
    "chain",
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 10**9}, "maxItems": MOST_CURVES},
    "numbers of chains; without any, the least known",
    (),
)
AFTER = _whole("after", "the number of the last event known; a negative number counts from the end", -100, -1000, MOST)
LIMIT = _whole("limit", "how many events", 100, 1, 1000)
#: An event stream begins with what is new unless it is told where to begin.
FROM = _whole("after", "the number of the last event known; without it, only new ones are sent", None, 0, MOST)

CHAINS_QUERY = (SEARCH, SORT, DESCENDING, PAGE, SIZE)
WINDOW_QUERY = (ROW, COLUMN, STATES)
LOG_QUERY = (AFTER, LIMIT)


def parse(query: QueryParams, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The values of a query; what is unknown or wrong is refused."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in query:
        if name not in known:
            may = f"takes {', '.join(known)}" if known else "takes none"
            raise InputError(f"there is no parameter {shown(name)}: this request {may}")
    return {
        name: parameter.parse(query.getlist(name)) if name in query else parameter.default
        for name, parameter in known.items()
    }


# -- bodies of requests that change the study


class Body(BaseModel):
    """A JSON object with these keys and no others."""

    model_config = ConfigDict(strict=True, extra="forbid")


def _whole_number(value: Any) -> Any:
    """3.0 is a whole number in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole_number)]
Name = Field(min_length=1, max_length=20_000)
Token = Field(default=None, max_length=100)


class Ask(Body):
    """Which chains to advance next."""

    number: Whole = Field(default=1, ge=1, le=1000)


class Tell(Body):
    """One observation."""

    chain: str = Name
    state: str | Whole
    path: Annotated[int, Field(ge=1, le=MOST), BeforeValidator(_whole_number)] | None = None
    step: Annotated[int, Field(ge=1, le=MOST), BeforeValidator(_whole_number)] | None = None
    token: str | None = Token


class TakeLease(Body):
    """A worker that wants to advance its own path of the best chain."""

    worker: str = Field(min_length=1, max_length=200)
    seconds: float = Field(default=60.0, gt=0, le=86_400)
    steps: Whole = Field(default=1, ge=1, le=1_000_000)


class Renew(Body):
    """A lease to hold for longer: ``seconds`` from now on."""

    chain: str = Name
    token: str = Field(max_length=100)
    seconds: float = Field(default=60.0, gt=0, le=86_400)


class GiveBack(Body):
    """A lease to end; ``lost``: its worker cannot go on, and its path ends."""

    chain: str = Name
    token: str = Field(max_length=100)
    lost: bool = False


class Restart(Body):
    """A path to end; ``token``: of the lease under which it is walked. The next observation begins another path."""

    chain: str = Name
    lost: bool = False
    token: str | None = Token


# -- and what they give


class Asked(BaseModel):
    """The chains to advance, in this order, and where the next plain observation of the first one belongs."""

    chains: list[str]
    #: The path, the state that it is in (null: the next observation begins it), and that observation's number in it.
    path: int
    state: str | int | None
    step: int


class Told(BaseModel):
    """Where the next observation belongs: its path, and its number in the path.

    Of the path that was walked; after a lease was renewed or given back, of plain observations.

    Both are null if the change is stored and the study could not be read afterwards.
    """

    path: int | None
    next_step: int | None


class Leased(BaseModel):
    """A lease: ``token`` goes with what is told under it."""

    chain: str
    token: str
    #: The path, the state that it is in (null: the next observation begins it), and that observation's number in it.
    path: int
    state: str | int | None
    step: int
    steps: int


class Failure(BaseModel):
    """Why a request was refused, in one sentence; ``kind`` is the name of the library's error."""

    error: str
    kind: str
