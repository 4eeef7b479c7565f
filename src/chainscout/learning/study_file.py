"""``study.toml``: the description of a study and its sources. All errors are reported, each with its place."""

import tomllib
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from .. import problems
from ..answers import parse
from ..errors import FileError, InputError
from ..journal.opening import check_place
from ..problems.schema import Errors, chain_of, label, place_of
from ..sources import Environment, Program, Recorded, Simulated, Source, read_recorded
from ..study import StudySettings
from ..study.budget import check_affordable, checked_budget
from ..study.labels import closed_states
from ..study.settings import CHECKS, checked_name
from ..validation import did_you_mean, real_number, seconds, seed_number
from .learn import check_end

__all__ = ["ChainTable", "StudyFile", "StudyTable", "read_study_file"]

#: The keys for the source of a chain's states. A chain has exactly one of them.
_WAYS = ("command", "matrix", "recorded", "environment")


def _states(value: object) -> int | list[str | int]:
    if isinstance(value, list):
        with suppress(PydanticCustomError):
            return [label(item) for item in value]
    elif isinstance(value, int) and not isinstance(value, bool):
        return value
    raise PydanticCustomError(
        "states", "this must be how many states there are, or a list of their labels (strings or whole numbers)"
    )


def _seed(value: object) -> int:
    if isinstance(value, int):  # 5.0 in a file is not a whole number
        with suppress(InputError):
            return seed_number(value)
    raise PydanticCustomError("seed", "this must be a whole number ≥ 0 and below 2**64")


def _timeout(value: object) -> float:
    with suppress(InputError):
        return seconds(value, "timeout")
    raise PydanticCustomError("timeout", "this must be a number of seconds > 0, or a duration such as '30s' or '5min'")


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class ChainTable(_Strict):
    """One chain of a study file."""

    states: Annotated[int | list[str | int] | None, PlainValidator(_states)] = None
    weight: float | None = None
    cost: float | None = None
    command: list[str] | None = Field(default=None, min_length=1)
    timeout: Annotated[float, PlainValidator(_timeout)] = 60.0
    matrix: list[list[float]] | None = None
    tolerance: float | None = None
    initial: list[float] | None = None
    recorded: str | None = None
    environment: str | None = None
    questions: list[str] | None = None
    seed: Annotated[int | None, PlainValidator(_seed)] = None


class StudyTable(_Strict):
    """The top of a study file."""

    where: str
    budget: float | None = None
    target_loss: float | dict[str, float] | None = None
    questions: list[str] | None = None
    target_width: float | None = None
    limit: float | None = None
    worst: str | None = None
    deadline: datetime | None = None
    delta: float | None = None
    certificate: str | None = None
    policy: str | None = None
    paths: str | None = None
    problem: str | None = None
    seed: Annotated[int, PlainValidator(_seed)] = 0
    chains: dict[str, Any] = Field(default_factory=dict)


@dataclass
class StudyFile:
    """The content of a study file."""

    where: str
    sources: dict[str, Source]
    states: dict[str, int | list[Hashable]]
    settings: StudySettings = field(default_factory=StudySettings)


def read_study_file(path: Path) -> StudyFile:
    """The study that a TOML file describes. Paths in it are relative to the file. All errors are reported together."""
    try:
        content = path.read_bytes()
        if content.startswith(b"SQLite format 3"):
            raise FileError(f"{path} is a study, not the file that describes one: learn takes its study.toml")
        data = tomllib.loads(content.decode())
    except OSError as error:
        raise FileError(f"{path} could not be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not TOML: {error}") from None
    errors = Errors(str(path))
    wrong = errors.check(StudyTable, data)
    # Invalid parts are left out here, so that the rest can still be checked.
    table = StudyTable.model_validate({"where": ""} | {key: data[key] for key in data if key not in wrong})
    found = StudyFile(_where(table.where, path.parent), {}, {})
    if table.problem is not None:
        _simulate(found, table, path.parent, errors)
    weights: dict[str, float] = {}
    costs: dict[str, float] = {}
    common = _questions(table.questions, "questions", errors)
    asked = dict.fromkeys(found.sources, common)
    for number, (name, entry) in enumerate(table.chains.items()):
        chain = _add_chain(found, errors, name, entry, number, table.seed, path.parent)
        for key, numbers in (("weight", weights), ("cost", costs)):
            value = getattr(chain, key)
            if value is not None:
                with errors.at(place_of("chains", name, key)):
                    numbers[name] = real_number(value, key, above=0.0)
        own = _questions(chain.questions, place_of("chains", name, "questions"), errors)
        asked[name] = [*common, *own]
    if not table.chains and table.problem is None and not wrong & {"chains", "problem"}:
        errors.add("chains", "a study needs at least one chain, or a problem to simulate")
    top = {field.name for field in fields(StudySettings)} & StudyTable.model_fields.keys()
    given = {name: getattr(table, name) for name in top}
    given["questions"] = {name: lines for name, lines in asked.items() if lines} or None
    found.settings = StudySettings(**given, weights=weights or None, costs=costs or None)
    priced = any(isinstance(entry, dict) and "cost" in entry for entry in table.chains.values())
    _check_options(found, errors, wrong, priced)
    if errors.lines:
        for source in found.sources.values():
            source.close()
        raise FileError("\n".join(errors.lines))
    return found


def _add_chain(
    found: StudyFile, errors: Errors, name: str, entry: Any, number: int, seed: int, folder: Path
) -> ChainTable:
    """Adds one chain, without its invalid parts, to ``found``: its states and its source."""
    place = place_of("chains", name)
    with errors.at(place):
        checked_name(name)
    wrong = errors.check(ChainTable, entry, place)
    if not isinstance(entry, dict):
        return ChainTable()
    chain = ChainTable.model_validate({key: entry[key] for key in entry if key not in wrong})
    ways = [way for way in _WAYS if way in entry]
    if chain.states is not None:
        found.states[name] = chain.states  # type: ignore[assignment]
        if ways != ["matrix"] or isinstance(chain.states, int):  # the labels of a matrix are checked with it
            with errors.at(place_of("states", within=place)):
                fixed = closed_states(name, chain.states)
                if ways == ["matrix"] and chain.matrix and fixed != len(chain.matrix):
                    raise InputError(f"the matrix has {len(chain.matrix)} states, not {fixed}")
    if len(ways) != 1:
        given = ", ".join(ways) or "none"
        errors.add(place, f"a chain's states come from one of {', '.join(_WAYS)}, and {given} are given")
    elif ways[0] == "matrix":
        labels = chain.states if isinstance(chain.states, list) else None
        written = {"matrix": chain.matrix, "states": labels, "tolerance": chain.tolerance, "initial": chain.initial}
        known = None if chain.matrix is None else chain_of(written, place, errors)
        if known is not None:
            found.sources[name] = Simulated(known, number, seed=seed if chain.seed is None else chain.seed)
    elif ways[0] not in wrong:
        with errors.at(place):
            found.sources[name] = _source(name, chain, seed, folder)
    if "matrix" not in ways:
        for key in sorted({"initial", "tolerance"} & entry.keys()):
            errors.add(place_of(key, within=place), "only a chain with a matrix has this key")
    return chain


def _check_options(found: StudyFile, errors: Errors, wrong: set[str], priced: bool) -> None:
    """Checks the keys at the top as a new study would, and reports the place of each error.

    ``priced``: some observation has a cost, valid or not.
    """
    given = found.settings.given()
    costs = given.get("costs", {})
    for name, check in CHECKS.items():
        if name in given:
            with errors.at(name):
                check(given[name])
    with errors.at("budget"):
        budget = checked_budget(given.get("budget"), priced=priced)
        if bool(costs) == priced:
            check_affordable(budget, min((costs.get(name, 1.0) for name in found.sources), default=1.0))
    if "where" not in wrong:
        with errors.at("where"):
            check_place(found.where)
    if not wrong & {"where", "budget", "target_loss", "deadline", "target_width", "limit", "worst"}:
        with errors.at(""):
            check_end(found.where, found.settings)


def _questions(lines: list[str] | None, place: str, errors: Errors) -> list[str]:
    """The lines that are questions. Whether they fit the chain's states is checked when the study is created."""
    found = []
    for line in lines or ():
        with errors.at(place):
            found.append(str(parse(line)))
    return found


def _where(text: str, folder: Path) -> str:
    return text if "://" in text else str(folder / text)


def _simulate(found: StudyFile, table: StudyTable, folder: Path, errors: Errors) -> None:
    assert table.problem is not None
    if table.chains:
        errors.add("chains", "a study simulates a problem or has chains of its own, not both")
    with errors.at("problem"):
        problem = problems.find(table.problem, folder)
        for number, (chain, known_chain) in enumerate(problem.chains.items()):
            found.sources[chain] = Simulated(known_chain, number, seed=table.seed)


def _source(name: str, chain: ChainTable, seed: int, folder: Path) -> Source:
    if chain.command is not None:
        program = Program(chain.command, chain.timeout, directory=str(folder))
        program.check()
        return program
    if chain.recorded is not None:
        return _recorded(name, folder / chain.recorded)
    assert chain.environment is not None
    if ":" in chain.environment:  # Gymnasium would import what stands before it
        raise FileError(f"the environment must be a registered one, not {chain.environment!r}")
    return Environment(chain.environment, seed=seed if chain.seed is None else chain.seed)


def _recorded(name: str, file: Path) -> Recorded:
    found = read_recorded(file)
    if name not in found:
        hint = did_you_mean(name, found)
        raise FileError(f"{file} has no chain {name!r}{hint}: it has {', '.join(found)}")
    return found[name]
