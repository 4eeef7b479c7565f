"""The SQL statement that counts transitions on every engine: a lag window and a group-by.

It is built from expressions, never from text. SQLAlchemy quotes the names and binds the values for each engine, and
nothing from a log gets into the statement.

The rows of the answer are (chain, from, to, count, faults). ``from`` is null where a path begins in ``to``, so that one
pass gives transitions, observations and paths. ``to`` is null for rows without a state. ``faults`` is the number of
rows that are tied with the row before, or lack a time, a path or an order.
"""

import datetime
import math
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import GenericTypeCompiler, IdentifierPreparer

from .request import NATIVE, CountRequest, Kind

Kinds = Mapping[str, Kind]


class _SparkNames(IdentifierPreparer):
    """Spark quotes with backticks."""

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", escape_quote="`")


class _SparkTypes(GenericTypeCompiler):
    """Spark's VARCHAR needs a length; its text is STRING."""

    def visit_VARCHAR(self, type_: Any, **options: Any) -> str:
        return "STRING"


class _SparkDialect(DefaultDialect):
    preparer: Any = _SparkNames
    type_compiler_cls = _SparkTypes
    paramstyle = "named"
    default_paramstyle = "named"


DUCKDB = DefaultDialect(paramstyle="qmark")
SPARK = _SparkDialect()


def positional(statement: sa.Select[Any]) -> tuple[str, list[Any]]:
    """The statement as text for DuckDB, and its values in order."""
    compiled = statement.compile(dialect=DUCKDB)
    return str(compiled), [compiled.params[name] for name in compiled.positiontup or ()]


def named(statement: sa.Select[Any]) -> tuple[str, dict[str, Any]]:
    """The statement as text for Spark, and its values by name."""
    compiled = statement.compile(dialect=SPARK)
    return str(compiled), dict(compiled.params)


def table_named(name: str, schema: str | None = None) -> sa.TableClause:
    """A table or view of exactly this name."""
    return sa.table(sa.quoted_name(name, True), schema=None if schema is None else sa.quoted_name(schema, True))


def counting(request: CountRequest, table: sa.FromClause, kinds: Kinds) -> sa.Select[Any]:
    """Transitions, begun paths and faults of every chain."""
    log = _log(request, table, kinds)
    columns, window = log.c, _window(log)
    before = sa.func.lag(columns.moment).over(**window)
    broken = [] if request.gap is None else [columns.moment - before > sa.literal(request.gap, sa.types.NullType())]
    faults = sa.case((_fault(log), 1), else_=0).label("fault")
    if request.lag == 1:
        previous: Any = sa.func.lag(columns.state).over(**window)
        if broken:
            previous = sa.case((broken[0], sa.null()), else_=previous)
        pairs = sa.select(
            columns.chain, previous.label("previous"), columns.state, faults, sa.literal_column("1").label("used")
        ).subquery("pairs")
    else:
        pairs = _distant_pairs(request, log, window, broken, faults)
    keys = pairs.c.chain, pairs.c.previous, pairs.c.state
    number = sa.func.sum(pairs.c.used) if request.lag > 1 else sa.func.count()
    return sa.select(*keys, number.label("number"), sa.func.sum(pairs.c.fault).label("faults")).group_by(*keys)


def walking(request: CountRequest, table: sa.FromClause, kinds: Kinds) -> sa.Select[Any]:
    """Every row as a ``walks.Step``, in the order of chains, paths and times."""
    log = _log(request, table, kinds)
    columns, window = log.c, _window(log)
    begins: list[Any] = [sa.func.lag(columns.state).over(**window).is_(None)]
    if request.gap is not None:
        before = sa.func.lag(columns.moment).over(**window)
        begins.append(columns.moment - before > sa.literal(request.gap, sa.types.NullType()))
    path: Any = sa.literal_column("1")
    if request.path is not None:
        path = sa.func.dense_rank().over(partition_by=columns.chain, order_by=columns.path)
    moment = sa.func.dense_rank().over(partition_by=columns.chain, order_by=window["order_by"])
    steps = sa.select(
        columns.chain,
        path.label("path"),
        moment.label("moment"),
        sa.case((sa.or_(*begins), 1), else_=0).label("begins"),
        columns.state,
        sa.case((_fault(log), 1), else_=0).label("fault"),
    ).subquery("steps")
    return sa.select(steps).order_by(steps.c.chain, steps.c.path, steps.c.moment)


def _distant_pairs(request: CountRequest, log: Any, window: Any, broken: list[Any], faults: Any) -> Any:
    """Pairs ``lag`` steps apart within an unbroken path. A running maximum gives the beginning of the path."""
    columns = log.c
    missing = sa.or_(columns.state.is_(None), sa.func.lag(columns.state).over(**window).is_(None))
    rows = sa.select(
        columns.chain,
        columns.state,
        faults,
        *_ordering(log),
        sa.func.lag(columns.state, request.lag).over(**window).label("earlier"),
        sa.func.row_number().over(**window).label("place"),
        sa.case((sa.or_(missing, *broken), sa.func.row_number().over(**window))).label("beginning"),
    ).subquery("placed")
    started = sa.func.max(rows.c.beginning).over(**_window(rows), rows=(None, 0))
    steps = sa.select(
        rows.c.chain, rows.c.state, rows.c.fault, rows.c.earlier, (rows.c.place - started).label("step")
    ).subquery("steps")
    used: Any = sa.literal_column("1")
    if not request.sliding:
        used = sa.case((steps.c.step % request.lag == 0, 1), else_=0)
    previous = sa.case((steps.c.step >= request.lag, steps.c.earlier))
    return sa.select(
        steps.c.chain, previous.label("previous"), steps.c.state, steps.c.fault, used.label("used")
    ).subquery("pairs")


def first_tie(request: CountRequest, table: sa.FromClause, kinds: Kinds) -> sa.Select[Any]:
    """Chain and time of the first two rows with an unknown order."""
    log = _log(request, table, kinds)
    found = sa.select(log.c.chain, log.c.moment, sa.case((_tied(log), 1), else_=0).label("tied")).subquery("found")
    return _first(found, found.c.tied == 1)


def first_without_state(request: CountRequest, table: sa.FromClause, kinds: Kinds) -> sa.Select[Any]:
    """Chain and time of the first row that has no state."""
    log = _log(request, table, kinds)
    return _first(log, log.c.state.is_(None))


def lacking(request: CountRequest, table: sa.FromClause, kinds: Kinds) -> sa.Select[Any]:
    """How many rows have no chain, no time, no path and no order, in one row of numbers."""
    log = _log(request, table, kinds)
    names = ["chain", "moment", *(name for name in ("path", "place_in_time") if name in log.c)]
    absent: list[Any] = [sa.func.count() - sa.func.count(log.c[name]) for name in names]
    return sa.select(*absent).select_from(log)


def _log(request: CountRequest, table: sa.FromClause, kinds: Kinds) -> Any:
    """The columns that are read, with fixed names."""
    columns = [_label(request.chain, kinds).label("chain"), _moment(request, kinds).label("moment")]
    columns.append(_label(request.state, kinds).label("state"))
    if request.path is not None:
        columns.append(_label(request.path, kinds).label("path"))
    if request.order is not None:
        columns.append(_cell(request.order, kinds).label("place_in_time"))
    return sa.select(*columns).select_from(table).subquery("log")


def _cell(name: str, kinds: Kinds) -> Any:
    """A column. NaN counts as missing."""
    column: Any = sa.column(sa.quoted_name(name, True))
    return sa.func.nullif(column, sa.literal(math.nan, sa.types.NullType())) if kinds[name] is Kind.FLOAT else column


def _label(name: str, kinds: Kinds) -> Any:
    return _cell(name, kinds) if kinds[name] in NATIVE else sa.cast(_cell(name, kinds), sa.String())


def _moment(request: CountRequest, kinds: Kinds) -> Any:
    kind = kinds[request.time]
    dated = kind is Kind.DATE and isinstance(request.gap, datetime.timedelta)
    column = _cell(request.time, kinds)
    if dated or kind is Kind.TEXT:
        # Without a SQLAlchemy type, so that the driver binds a gap in its own way.
        column = sa.type_coerce(sa.cast(column, sa.TIMESTAMP()), sa.types.NullType())
    return column


def _ordering(log: Any) -> list[Any]:
    return [log.c[name] for name in ("path", "moment", "place_in_time") if name in log.c]


def _window(log: Any) -> dict[str, Any]:
    apart = [log.c[name] for name in ("chain", "path") if name in log.c]
    sequence = [log.c[name] for name in ("moment", "place_in_time") if name in log.c]
    return {"partition_by": apart, "order_by": sequence}


def _tied(log: Any) -> Any:
    window = _window(log)
    return sa.and_(*(column == sa.func.lag(column).over(**window) for column in window["order_by"]))


def _fault(log: Any) -> Any:
    return sa.or_(_tied(log), *(column.is_(None) for column in _ordering(log)))


def _first(rows: Any, condition: Any) -> sa.Select[Any]:
    return sa.select(rows.c.chain, rows.c.moment).where(condition).order_by(rows.c.chain, rows.c.moment).limit(1)
