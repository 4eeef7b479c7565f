"""``study.toml``: what a study is made of and where its states come from, checked with every error and its place."""

import tomllib
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from .. import problems
from ..chains import MarkovChain
from ..errors import ChainscoutError, FileError
from ..problems.schema import Errors, label, place_of
from ..sources import Environment, Program, Recorded, Source, read_recorded
from .simulation import Simulated

Label = Annotated[str | int, PlainValidator(label)]

#: The keys that say where a chain's states come from; a chain has one of them.
WAYS = ("command", "matrix", "recorded", "environment")


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class ChainTable(_Strict):
    """One chain of a study file."""

    states: int | list[Label] | None = None
    weight: float | None = None
    cost: float | None = None
    command: list[str] | None = Field(default=None, min_length=1)
    timeout: float = 60.0
    matrix: list[list[float]] | None = None
    recorded: str | None = None
    environment: str | None = None
    seed: int | None = None


class StudyTable(_Strict):
    """The top of a study file."""

    where: str
    budget: int | float | None = None
    target_loss: float | None = None
    deadline: datetime | None = None
    delta: float = 0.05
    policy: str = "scout"
    on_lost_lease: str = "restart"
    problem: str | None = None
    seed: int = 0
    chains: dict[str, Any] = Field(default_factory=dict)


@dataclass
class StudyFile:
    """A study file, read."""

    where: str
    sources: dict[str, Source]
    states: dict[str, int | list[Hashable]]
    options: dict[str, Any] = field(default_factory=dict)


def read(path: Path) -> StudyFile:
    """The study that a TOML file describes. Paths in it are relative to the file."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path} could not be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not TOML: {error}") from None
    errors = Errors(str(path))
    errors.check(StudyTable, data)
    for name, entry in data["chains"].items() if isinstance(data.get("chains"), dict) else ():
        errors.check(ChainTable, entry, place_of("chains", name))
    if errors.lines:
        raise FileError("\n".join(errors.lines))
    table = StudyTable.model_validate(data)
    found = StudyFile(_where(table.where, path.parent), {}, {})
    if table.problem is not None:
        _simulate(found, table, path.parent, errors)
    weights, costs = {}, {}
    for number, (name, entry) in enumerate(table.chains.items()):
        chain = ChainTable.model_validate(entry)
        try:
            found.sources[name] = _source(name, chain, number, table.seed, path.parent)
        except ChainscoutError as error:
            errors.add(place_of("chains", name), str(error))
        if chain.states is not None:
            found.states[name] = chain.states  # type: ignore[assignment]
        if chain.weight is not None:
            weights[name] = chain.weight
        if chain.cost is not None:
            costs[name] = chain.cost
    if not found.sources and not errors.lines:
        errors.add("chains", "a study needs at least one chain, or a problem to simulate")
    if errors.lines:
        raise FileError("\n".join(errors.lines))
    found.options = {
        "budget": table.budget,
        "target_loss": table.target_loss,
        "deadline": table.deadline,
        "delta": table.delta,
        "policy": table.policy,
        "on_lost_lease": table.on_lost_lease,
        "weights": weights or None,
        "costs": costs or None,
    }
    return found


def _where(text: str, folder: Path) -> str:
    return text if "://" in text else str(folder / text)


def _simulate(found: StudyFile, table: StudyTable, folder: Path, errors: Errors) -> None:
    assert table.problem is not None
    try:
        name = table.problem.partition(":")[0]
        known = name in problems.names()
        problem = problems.get(table.problem) if known else problems.Problem.load(folder / table.problem)
    except ChainscoutError as error:
        errors.add("problem", str(error))
        return
    if table.chains:
        errors.add("chains", "a study simulates a problem or has chains of its own, not both")
        return
    for number, (chain, known_chain) in enumerate(problem.chains.items()):
        found.sources[chain] = Simulated(known_chain, number, seed=table.seed)


def _source(name: str, chain: ChainTable, number: int, seed: int, folder: Path) -> Source:
    ways = [way for way in WAYS if getattr(chain, way) is not None]
    if len(ways) != 1:
        raise FileError(f"a chain's states come from one of {', '.join(WAYS)}, and {len(ways) or 'none'} are given")
    if chain.command is not None:
        return Program(chain.command, chain.timeout, directory=str(folder))
    if chain.matrix is not None:
        labels = chain.states if isinstance(chain.states, list) else None
        own = seed if chain.seed is None else chain.seed
        return Simulated(MarkovChain(chain.matrix, states=labels), number, seed=own)
    if chain.recorded is not None:
        return _recorded(name, folder / chain.recorded)
    assert chain.environment is not None
    if ":" in chain.environment:  # Gymnasium would import what stands before it
        raise FileError(f"the environment must be a registered one, not {chain.environment!r}")
    return Environment(chain.environment, seed=seed if chain.seed is None else chain.seed)


def _recorded(name: str, file: Path) -> Recorded:
    found = read_recorded(file)
    if name not in found:
        raise FileError(f"{file} has no chain {name!r}: it has {', '.join(found)}")
    return found[name]
