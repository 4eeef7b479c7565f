"""The SQL statement that counts transitions on every engine: a lag window and a group-by.

It is built from expressions, never from text. SQLAlchemy quotes the names and writes the values for each engine, and
nothing from a log gets into the statement.

The rows of the answer are (chain, from, to, count, faults). ``from`` is null where a path begins in ``to``, so that one
pass gives transitions, observations and paths. ``to`` is null for rows without a state. ``faults`` is the number of
rows that are tied with the row before, or lack a time, a path or an order.
"""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import GenericTypeCompiler, IdentifierPreparer

from ..errors import InputError
from ..validation import shown
from .request import NATIVE, CountRequest, Kind

Kinds = Mapping[str, Kind]
#: One of the functions below that make statements.
Build = Callable[[CountRequest, sa.FromClause, Kinds], sa.Select[Any]]

#: The dialects in which NaN can be named and equals itself. In others a number needs no care.
WITH_NAN = ("duckdb", "postgresql", "spark")


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


def as_text(build: Build, request: CountRequest, table: str, kinds: Kinds, dialect: str) -> str:
    """The statement that ``build`` makes, with its values; dots in ``table`` follow a catalogue and a schema."""
    place = _dialect(dialect)
    quoted = ".".join(map(place.identifier_preparer.quote_identifier, table.split(".")))
    if dialect.partition("+")[0] not in WITH_NAN:
        kinds = {name: Kind.INTEGER if kind is Kind.FLOAT else kind for name, kind in kinds.items()}
    statement = build(request, sa.table(sa.quoted_name(quoted, False)), kinds)
    return str(statement.compile(dialect=place, compile_kwargs={"literal_binds": True}))


def _dialect(name: str) -> Any:
    # Of the style of ':name', so that no '%' is doubled for a driver that would read it.
    if name in ("duckdb", "spark"):
        return (DefaultDialect if name == "duckdb" else _SparkDialect)(paramstyle="named")
    try:
        found: Any = sa.URL.create(name).get_dialect()
        return found(paramstyle="named")
    except (sa.exc.ArgumentError, TypeError):
        raise InputError(
            "dialect must be one that SQLAlchemy knows, such as postgresql, sqlite or mysql, or duckdb or spark, not"
            f" {shown(name)}"
        ) from None


def counting(request: CountRequest, table: sa.FromClause, kinds: Kinds) -> sa.Select[Any]:
    """Transitions, begun paths and faults of every chain."""
    log = _log(request, table, kinds)
    columns, window = log.c, _window(log)
    broken = [] if request.gap is None else [_far(columns.moment, request.gap, window)]
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
        begins.append(_far(columns.moment, request.gap, window))
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
    nan: Any = sa.cast(sa.literal("NaN", sa.String()), sa.Double())
    return sa.func.nullif(column, nan) if kinds[name] is Kind.FLOAT else column


def _label(name: str, kinds: Kinds) -> Any:
    return _cell(name, kinds) if kinds[name] in NATIVE else sa.cast(_cell(name, kinds), sa.String())


def _moment(request: CountRequest, kinds: Kinds) -> Any:
    column = _cell(request.time, kinds)
    return sa.cast(column, sa.TIMESTAMP()) if kinds[request.time] is Kind.TEXT else column


def _far(moment: Any, gap: float | datetime.timedelta, window: Any) -> Any:
    """Whether more than ``gap`` lies between a row and the one before."""
    before = sa.func.lag(moment).over(**window)
    if isinstance(gap, datetime.timedelta):
        # A sum, because the difference of two moments is no interval in some databases.
        return moment > before + sa.literal_column(f"INTERVAL '{gap.total_seconds():.6f}' SECOND")
    return moment - before > gap


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
    # As text, because DuckDB needs one more package to make Python's moments with a time zone.
    time = sa.cast(rows.c.moment, sa.String())
    return sa.select(rows.c.chain, time).where(condition).order_by(rows.c.chain, rows.c.moment).limit(1)
