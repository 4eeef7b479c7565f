"""Every statement that a study runs, written once for both databases.

Conditions are literal, not parameters, where they must match the condition of a partial index.
"""

from typing import Any

from sqlalchemy import Table, and_, bindparam, insert, literal_column, select, update

from . import schema
from .schema import chain, event, label_list, log, prior, row, state, study

_zero: Any = literal_column("0")
_free = and_(chain.c.token.is_(None), chain.c.aside == _zero)


def _insert(table: Table) -> Any:
    return insert(table).values({column.name: bindparam(column.name) for column in table.columns})


def _update(table: Table, keys: tuple[str, ...], fixed: tuple[str, ...] = ()) -> Any:
    """Sets every column; the keys are given as ``at_…``."""
    changed = [c.name for c in table.columns if c.name not in keys and c.name not in fixed]
    return (
        update(table)
        .where(*(table.c[key] == bindparam(f"at_{key}") for key in keys))
        .values({name: bindparam(name) for name in changed})
    )


get_study = select(study)
lock_study = select(study).with_for_update()
add_study = _insert(study)
set_study = _update(study, ("id",))

add_label_list = _insert(label_list)
get_label_list = select(label_list.c.labels).where(label_list.c.number == bindparam("number"))

add_chain = _insert(chain)
set_chain = _update(chain, ("number",), ("name", "label_list", "open", "weight", "cost"))
chain_by_name = select(chain).where(chain.c.name == bindparam("name"))
chain_by_number = select(chain).where(chain.c.number == bindparam("number"))
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
stale_after = (
    select(chain)
    .where(chain.c.certified < chain.c.transitions, chain.c.aside == _zero, chain.c.number > bindparam("after"))
    .order_by(chain.c.number)
    .limit(bindparam("limit"))
)

add_row = _insert(row)
set_row = _update(row, ("chain", "state"))
get_row = select(row).where(row.c.chain == bindparam("chain"), row.c.state == bindparam("state"))
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
