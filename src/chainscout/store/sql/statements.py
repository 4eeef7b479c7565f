"""Every statement that a study runs, written once for both databases.

A condition that must match the condition of a partial index is a literal and not a parameter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from sqlalchemy import (
    Column,
    Integer,
    Select,
    Table,
    and_,
    bindparam,
    case,
    cast,
    delete,
    extract,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy import literal_column as literal
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql import Executable

from ..protocol import ORDERS
from ..records import ChainRecord, PathRecord, QuestionRecord, StudyRecord
from .schema import (
    answer,
    chain,
    event,
    evidence,
    history,
    label_list,
    log,
    path,
    prefix,
    prior,
    question,
    row,
    state,
    study,
)

# fmt: off
__all__ = [
    "LISTINGS",
    "PARTS_OF_NEEDED",
    "SELDOM_OF_CHAIN",
    "SELDOM_OF_PATH",
    "STAMP",
    "Bulk",
    "add_answer",
    "add_chain",
    "add_event",
    "add_evidence",
    "add_history",
    "add_label_list",
    "add_observation",
    "add_path",
    "add_prefix",
    "add_prior",
    "add_question",
    "add_row",
    "add_state",
    "add_study",
    "answers_after",
    "best",

    "chain_by_name",
    "chain_by_number",
    "chain_draws_after",
    "chain_log_after",
    "chains_after",
    "claim_study",
    "drawing",
    "draws_after",
    "drop_evidence",
    "events_after",
    "expired",
    "expired_now",
    "get_evidence",
    "get_label_list",
    "get_observation",
    "get_path",
    "get_paths",
    "get_position",
    "get_prefixes",
    "get_prior",
    "get_questions",
    "get_row",
    "get_rows",
    "get_stamp",
    "get_states",
    "get_study",
    "glance",
    "held",
    "history_after",
    "history_of_all",
    "latest_path",
    "latest_used_path",
    "least",
    "lock_study",
    "log_after",
    "move_chain",
    "move_path",
    "needed",
    "number_found",
    "outlines",
    "path_log_after",
    "pattern",
    "questions_of",
    "set_chain",
    "set_path",
    "set_question",
    "set_row",
    "set_study",
    "stale_after",
    "top",
    "top_below",
    "twin",
    "twins",
    "whole_glance",
    "worst",
    "worst_aside",
]
# fmt: on


@dataclass(frozen=True, eq=False)
class Bulk:
    """A statement that is often run with many sets of values."""

    #: The names of the values of a set, in their order.
    columns: list[str]
    #: For one set.
    one: Executable
    #: For all sets in one statement, where each parameter is an array. This saves round trips to a server.
    many: Executable


def _given(columns: Iterable[Column[Any]]) -> Any:
    """The arrays of parameters as a table: one row for each set."""
    arrays = [bindparam(column.name, type_=ARRAY(column.type)) for column in columns]
    names = [Column(column.name, column.type) for column in columns]
    return func.unnest(*arrays).table_valued(*names).render_derived(name="given")


def _insert(table: Table) -> Bulk:
    columns = [column.name for column in table.columns]
    one = insert(table).values({name: bindparam(name) for name in columns})
    return Bulk(columns, one, insert(table).from_select(columns, select(_given(table.columns))))


def _update(table: Table, keys: tuple[str, ...], fixed: Iterable[str] = ()) -> Bulk:
    """Sets every column except ``keys`` and ``fixed`` in the row with the given keys. A set has all columns."""
    changed = [column for column in table.columns if column.name not in keys and column.name not in fixed]
    one = (
        update(table)
        .where(*(table.c[key] == bindparam(key) for key in keys))
        .values({column.name: bindparam(column.name) for column in changed})
    )
    given = _given([*(table.c[key] for key in keys), *changed])
    many = (
        update(table)
        .where(*(table.c[key] == given.c[key] for key in keys))
        .values({column.name: given.c[column.name] for column in changed})
    )
    return Bulk([column.name for column in table.columns], one, many)


def _lookup(table: Table, *keys: str) -> Bulk:
    """The rows with the given keys."""
    one = select(table).where(*(table.c[key] == bindparam(key) for key in keys))
    given = _given([table.c[key] for key in keys])
    return Bulk([*keys], one, select(table).join(given, and_(*(table.c[key] == given.c[key] for key in keys))))


def _ordered(found: Select[Any], *order: Any) -> Select[Any]:
    """The first rows in an order."""
    return found.order_by(*order).limit(bindparam("limit"))


# -- the study and its lists of labels

get_study = select(study)
#: The columns that differ after every change of the study.
STAMP = ("changes", "check_sum")
_stamp = [study.c[name] for name in STAMP]
get_stamp = select(*_stamp)
lock_study = select(study).with_for_update()
#: Locks the study's row if it still has this stamp. If not, PostgreSQL reports an error that contains the text.
claim_study = select(
    case(
        (and_(*(column == bindparam(column.name) for column in _stamp)), literal("1")),
        else_=cast(literal("'another writer was faster, with change '").concat(study.c.changes), Integer),
    )
).with_for_update()
add_study = _insert(study)
set_study = _update(study, ("id",), {"format", *StudyRecord.FIXED})

add_label_list = _insert(label_list)
get_label_list = select(label_list).where(label_list.c.number == bindparam("number"))

# -- chains

_number = chain.c.number
_free = select(chain).where(*(column == literal("0") for column in (chain.c.aside, chain.c.blocked, chain.c.resting)))

add_chain = _insert(chain)
set_chain = _update(chain, ("number",), ChainRecord.FIXED)
#: The columns of a chain and of a path that have indices and that an observation seldom changes. A statement that does
#: not name them does not touch the pages of these indices. This saves a third of what a commit writes.
SELDOM_OF_CHAIN = (
    *("certificate", "variability", "certified", "error"),
    *("target", "ratio", "looked", "enough", "due", "resting"),
    *("aside", "blocked", "stale"),
)
SELDOM_OF_PATH = ("worker",)
move_chain = _update(chain, ("number",), {*ChainRecord.FIXED, *SELDOM_OF_CHAIN})
chain_by_name = _lookup(chain, "name")
chain_by_number = _lookup(chain, "number")
chains_after = _ordered(select(chain).where(_number > bindparam("after")), _number)
top = _ordered(_free, chain.c.index.desc(), _number)
top_below = _ordered(_free.where(chain.c.index < bindparam("below")), chain.c.index.desc(), _number)
best = _free.order_by(chain.c.index.desc(), _number).limit(literal("1"))
#: The stamp of the study and the number of its best chain, which comes from an index alone; and with the whole chain.
_best_number = best.with_only_columns(_number).correlate(None).scalar_subquery()
glance = select(*_stamp, _best_number)
whole_glance = select(*_stamp, chain).select_from(study.outerjoin(chain, _number == _best_number))
least = _ordered(_free.where(chain.c.least.is_not(None)), chain.c.least, _number)
#: Chains and their certificates, largest first.
_worst = _ordered(select(_number, chain.c.certificate), chain.c.certificate.desc())
worst = _worst.where(chain.c.aside == literal("0"))
worst_aside = _worst.where(chain.c.aside == literal("1"))
stale_after = _ordered(select(chain).where(chain.c.stale == literal("1"), _number > bindparam("after")), _number)

# -- paths

add_path = _insert(path)
set_path = _update(path, ("chain", "number"), PathRecord.FIXED)
move_path = _update(path, ("chain", "number"), {*PathRecord.FIXED, *SELDOM_OF_PATH})
get_path = select(path).where(path.c.chain == bindparam("chain"), path.c.number == bindparam("number"))
get_paths = select(path).where(path.c.chain == bindparam("chain")).order_by(path.c.number)
# The number alone comes from the index path_worker: SQLite would read all paths of the chain to sort whole rows.
_latest = select(func.max(path.c.number)).where(
    path.c.chain == bindparam("chain"), path.c.worker == bindparam("worker")
)
#: ``latest_used_path``: without the paths that were given back before their first observation.
latest_path, latest_used_path = (
    select(path).where(path.c.chain == bindparam("chain"), path.c.number == found.correlate(None).scalar_subquery())
    for found in (
        _latest,
        _latest.where(or_(path.c.steps > literal("0"), path.c.ended == literal("1"), path.c.token.is_not(None))),
    )
)
held = select(path).where(path.c.token.is_not(None)).order_by(path.c.expires, path.c.chain, path.c.number)
expired = held.where(path.c.expires <= bindparam("until"))
drawing = select(path).where(path.c.issued > literal("0")).order_by(path.c.chain, path.c.number)
# A chain, a length and a digest, and the first path that has them: the others of the group are its twins.
_beginning = (prefix.c.chain, prefix.c.length, prefix.c.digest)
_group = (
    select(*_beginning, func.min(prefix.c.path).label("first"))
    .group_by(*_beginning)
    .having(func.count() > literal("1"))
    .subquery()
)
twins = (
    select(prefix.c.chain, _group.c.first, prefix.c.path, prefix.c.length)
    .join(_group, and_(*(column == _group.c[column.name] for column in _beginning)))
    .where(prefix.c.path > _group.c.first)
    .order_by(prefix.c.chain, prefix.c.path, prefix.c.length)
)
#: The first other path of a chain with the same digest after as many states.
twin = select(func.min(prefix.c.path)).where(
    *(column == bindparam(column.name) for column in _beginning), prefix.c.path != bindparam("path")
)
add_prefix = _insert(prefix)
get_prefixes = select(prefix).where(prefix.c.chain == bindparam("chain")).order_by(*prefix.primary_key.columns)

# -- reads at the beginning of a transaction, to save round trips

#: A chain, one of its paths and the row of the state that the path is in; nothing if the study has not changed since
#: the caller last read it.
needed = (
    select(chain, path, row)
    .select_from(
        chain.outerjoin(path, and_(path.c.chain == _number, path.c.number == bindparam("path"))).outerjoin(
            row, and_(row.c.chain == _number, row.c.state == path.c.last)
        )
    )
    .where(chain.c.name == bindparam("name"), select(study.c.changes).scalar_subquery() != bindparam("changes"))
)
PARTS_OF_NEEDED = (
    slice(len(chain.columns)),
    slice(len(chain.columns), len(chain.columns) + len(path.columns)),
    slice(len(chain.columns) + len(path.columns), None),
)
#: The leases that have expired by the server's clock, which is a little later than the beginning of the transaction.
expired_now = held.where(path.c.expires <= extract("epoch", func.clock_timestamp()))

# -- rows and states

add_row = _insert(row)
set_row = _update(row, ("chain", "state"))
get_row = _lookup(row, "chain", "state")
get_rows = select(row).where(row.c.chain == bindparam("chain")).order_by(row.c.state)

add_prior = _insert(prior)
get_prior = select(prior).where(prior.c.chain == bindparam("chain")).order_by(prior.c.state)

add_state = _insert(state)
get_position = select(state).where(state.c.chain == bindparam("chain"), state.c.label == bindparam("label"))
get_states = select(state).where(state.c.chain == bindparam("chain")).order_by(state.c.position)

# -- the log and the events

add_observation = _insert(log)
get_observation = select(log).where(
    log.c.chain == bindparam("chain"), log.c.path == bindparam("path"), log.c.step == bindparam("step")
)
log_after = _ordered(select(log).where(log.c.number > bindparam("after")), log.c.number)
chain_log_after = _ordered(
    select(log).where(log.c.chain == bindparam("chain"), log.c.number > bindparam("after")), log.c.number
)
_draw = select(log.c.number, log.c.chain, log.c.path, log.c.step, log.c.state, log.c.issued)
draws_after = _ordered(_draw.where(log.c.number > bindparam("after")), log.c.number)
chain_draws_after = _ordered(
    _draw.where(log.c.chain == bindparam("chain"), log.c.number > bindparam("after")), log.c.number
)
path_log_after = _ordered(
    select(log.c.number, log.c.state).where(
        log.c.chain == bindparam("chain"), log.c.path == bindparam("path"), log.c.number > bindparam("after")
    ),
    log.c.number,
)
add_history = _insert(history)
_line = history.c.number > bindparam("after")
history_after = _ordered(select(history).where(history.c.chain == bindparam("chain"), _line), history.c.number)
history_of_all = _ordered(select(history).where(history.c.chain.is_(None), _line), history.c.number)

_of_chain = evidence.c.chain == bindparam("chain")
get_evidence = select(evidence).where(_of_chain)
drop_evidence = delete(evidence).where(_of_chain)
add_evidence = _insert(evidence)

add_question = _insert(question)
set_question = _update(question, ("number",), QuestionRecord.FIXED)
get_questions = select(question).order_by(question.c.number)
questions_of = get_questions.where(question.c.chain == bindparam("chain"))
add_answer = _insert(answer)
answers_after = _ordered(
    select(answer).where(answer.c.question == bindparam("question"), answer.c.number > bindparam("after")),
    answer.c.number,
)

add_event = _insert(event)
events_after = _ordered(select(event).where(event.c.number > bindparam("after")), event.c.number)

# -- queries of readers: chains searched, sorted and paged by the database
#
# None of these statements has an index of its own. An index would cost every writer, and a database reads 100,000
# chains in tens of milliseconds.

# The search reads only names, which the index of names holds. Then the database fetches the chains that it found.
_match = chain.c.name.ilike(bindparam("pattern"), escape="!")
number_found = select(func.count()).select_from(chain).where(_match)


def pattern(search: str) -> str:
    """The LIKE pattern of the names that contain ``search``."""
    for special in "!%_":
        search = search.replace(special, f"!{special}")
    return f"%{search}%"


def _listing(order: str, descending: bool, searched: bool) -> Any:
    column = chain.c[ORDERS[order]]
    listed = _ordered(select(chain), column.desc() if descending else column, _number).offset(bindparam("offset"))
    return listed.where(_number.in_(select(_number).where(_match))) if searched else listed


#: (order, descending, whether names are searched) → statement. Each is made once, so it is compiled once.
LISTINGS = {key: _listing(*key) for key in product(ORDERS, (False, True), (False, True))}

outlines = select(chain.c.size, chain.c.open, chain.c.weight, chain.c.prior > literal("0")).order_by(_number)
