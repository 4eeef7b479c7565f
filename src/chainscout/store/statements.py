"""Every statement that a study runs, written once for both databases.

Conditions are literal, not parameters, where they must match the condition of a partial index.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Table, and_, bindparam, func, insert, literal_column, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql import Executable

from . import schema
from .schema import chain, event, label_list, log, prior, row, state, study

_zero: Any = literal_column("0")
_one: Any = literal_column("1")
_free = and_(chain.c.token.is_(None), chain.c.aside == _zero)


@dataclass(frozen=True, eq=False)
class Bulk:
    """A statement that is often run for many sets of parameters at once."""

    #: For one set.
    one: Executable
    #: For all of them in one statement, each parameter an array: for a database at the other end of a connection.
    many: Executable


def _given(columns: Iterable[Column[Any]]) -> Any:
    """A table of parameters: one row a set, one column a parameter."""
    arrays = [bindparam(column.name, type_=ARRAY(column.type)) for column in columns]
    names = [Column(column.name, column.type) for column in columns]
    return func.unnest(*arrays).table_valued(*names).render_derived(name="given")


def _insert(table: Table) -> Bulk:
    columns = [column.name for column in table.columns]
    one = insert(table).values({name: bindparam(name) for name in columns})
    return Bulk(one, insert(table).from_select(columns, select(_given(table.columns))))


def _update(table: Table, keys: tuple[str, ...], fixed: tuple[str, ...] = ()) -> Bulk:
    """Sets every column but those ``fixed``, where the keys are those given."""
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
    return Bulk(one, many)


def _lookup(table: Table, *keys: str) -> Bulk:
    """The rows with the given keys."""
    one = select(table).where(*(table.c[key] == bindparam(key) for key in keys))
    given = _given([table.c[key] for key in keys])
    return Bulk(one, select(table).join(given, and_(*(table.c[key] == given.c[key] for key in keys))))


get_study = select(study)
lock_study = select(study).with_for_update()
add_study = _insert(study)
set_study = _update(study, ("id",))

add_label_list = _insert(label_list)
get_label_list = select(label_list.c.labels).where(label_list.c.number == bindparam("number"))

add_chain = _insert(chain)
set_chain = _update(chain, ("number",), ("name", "label_list", "open", "weight", "cost"))
chain_by_name = _lookup(chain, "name")
chain_by_number = _lookup(chain, "number")
chains_after = (
    select(chain).where(chain.c.number > bindparam("after")).order_by(chain.c.number).limit(bindparam("limit"))
)
top = select(chain).where(_free).order_by(chain.c.index.desc(), chain.c.number).limit(bindparam("limit"))
least = (
    select(chain)
    .where(_free, chain.c.least.is_not(None))
    .order_by(chain.c.least, chain.c.number)
    .limit(bindparam("limit"))
)
held = select(chain).where(chain.c.token.is_not(None)).order_by(chain.c.expires, chain.c.number)
expired = (
    select(chain)
    .where(chain.c.token.is_not(None), chain.c.expires <= bindparam("until"))
    .order_by(chain.c.expires, chain.c.number)
)
worst = (
    select(chain.c.certificate)
    .where(chain.c.aside == _zero)
    .order_by(chain.c.certificate.desc())
    .limit(literal_column("1"))
)
worst_aside = (
    select(chain.c.certificate)
    .where(chain.c.aside == _one, chain.c.certified >= chain.c.transitions)
    .order_by(chain.c.certificate.desc())
    .limit(literal_column("1"))
)
stale_after = (
    select(chain)
    .where(
        chain.c.certified < chain.c.transitions,
        chain.c.aside == bindparam("aside"),
        chain.c.number > bindparam("after"),
    )
    .order_by(chain.c.number)
    .limit(bindparam("limit"))
)

add_row = _insert(row)
set_row = _update(row, ("chain", "state"))
get_row = _lookup(row, "chain", "state")
get_rows = select(row).where(row.c.chain == bindparam("chain")).order_by(row.c.state)

add_prior = _insert(prior)
get_prior = select(prior.c.state, prior.c.counts).where(prior.c.chain == bindparam("chain")).order_by(prior.c.state)

add_state = _insert(state)
get_position = select(state.c.position).where(state.c.chain == bindparam("chain"), state.c.label == bindparam("label"))
get_states = select(state.c.label).where(state.c.chain == bindparam("chain")).order_by(state.c.position)

add_observation = _insert(log)
get_observation = select(log).where(log.c.chain == bindparam("chain"), log.c.step == bindparam("step"))
log_after = select(log).where(log.c.number > bindparam("after")).order_by(log.c.number).limit(bindparam("limit"))
chain_log_after = (
    select(log)
    .where(log.c.chain == bindparam("chain"), log.c.step > bindparam("after"))
    .order_by(log.c.step)
    .limit(bindparam("limit"))
)

add_event = _insert(event)
events_after = (
    select(event).where(event.c.number > bindparam("after")).order_by(event.c.number).limit(bindparam("limit"))
)

#: The columns of a record in the order of its table.
STUDY_COLUMNS = [column.name for column in schema.study.columns]
CHAIN_COLUMNS = [column.name for column in schema.chain.columns]
ROW_COLUMNS = [column.name for column in schema.row.columns]
