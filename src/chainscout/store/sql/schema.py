"""The one schema of SQLite and PostgreSQL.

Both drivers return the type of every column unchanged (integers, doubles, text, bytes). So statements are compiled
once, and the driver itself runs them. Booleans are 0 and 1.
"""

from collections.abc import Iterator
from types import NoneType
from typing import Any, get_args, get_type_hints

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from ..records import (
    AnswerLine,
    ChainRecord,
    HistoryLine,
    Observation,
    PathRecord,
    Prefix,
    QuestionRecord,
    StudyRecord,
)

# fmt: off
__all__ = [
    "FORMAT", "answer", "chain", "event", "evidence", "history", "label_list", "log", "metadata", "path", "prefix",
    "prior", "question", "row", "state", "study",
]
# fmt: on

#: The number of this schema. A study with another number is refused.
FORMAT = 13

metadata = MetaData()

#: The type of a record's field → the type of its column.
_KINDS: dict[Any, Any] = {
    int: BigInteger,
    float: Double,
    str: Text,
    bool: Integer,
    tuple[float, ...]: LargeBinary,
}


def _column(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _number(name: str = "number") -> Column[Any]:
    """A primary key; in SQLite the row number itself."""
    return Column(name, BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False)


def _columns(record: Any, without: str = "") -> Iterator[Column[Any]]:
    """A column for every field of a record, in the order of the fields. The field ``number`` is the primary key."""
    hints = get_type_hints(record)
    for name in record.__match_args__:  # the fields of a dataclass or a NamedTuple
        hint = hints[name]
        if name == "number":
            yield _number()
        elif name != without:
            optional = NoneType in get_args(hint)
            yield Column(name, _KINDS[get_args(hint)[0] if optional else hint], nullable=optional)


def _part(name: str) -> Column[Any]:
    """One column of a primary key of several columns."""
    return Column(name, BigInteger, primary_key=True, autoincrement=False)


study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _column("format", Integer),
    *_columns(StudyRecord),
    _column("check_sum", BigInteger),
    CheckConstraint("id = 1", name="one_study"),
)

#: Lists of labels. Chains with the same labels share one list.
label_list = Table("label_list", metadata, _number(), _column("labels", Text), _column("check_sum", BigInteger))

chain = Table(
    "chain",
    metadata,
    *_columns(ChainRecord, without="labels"),
    #: T plus the observations that leases will bring, if the policy asks for the least sampled chain. Otherwise NULL,
    #: and the index of this column is empty.
    Column("least", BigInteger),
    #: Whether it moved since its certificate was computed.
    _column("stale", Integer),
    _column("check_sum", BigInteger),
    UniqueConstraint("name"),
)


def _partial(name: str, condition: Any, *columns: Any) -> None:
    """An index of the chains that meet a condition."""
    Index(name, *columns, sqlite_where=condition, postgresql_where=condition)


_free = (chain.c.aside == 0) & (chain.c.blocked == 0) & (chain.c.resting == 0)

# ``ask`` is the top of chain_order; equal indices go to the smallest chain number (MATH §6, Ties).
_partial("chain_order", _free, chain.c.index.desc(), chain.c.number)
_partial("chain_least", _free & chain.c.least.is_not(None), chain.c.least, chain.c.number)
_partial("chain_stale", chain.c.stale == 1, chain.c.number)
_partial("chain_certificate", chain.c.aside == 0, chain.c.certificate.desc())
_partial("chain_aside", chain.c.aside == 1, chain.c.certificate.desc())

path = Table(
    "path",
    metadata,
    _part("chain"),
    _part("number"),
    *(column for column in _columns(PathRecord, without="stored") if column.name not in ("chain", "number")),
    _column("check_sum", BigInteger),
    sqlite_with_rowid=False,
)
_partial("path_held", path.c.token.is_not(None), path.c.expires, path.c.chain, path.c.number)
Index("path_worker", path.c.chain, path.c.worker, path.c.number)

#: The beginnings of paths. The key is the whole row, so paths that began alike are next to each other.
prefix = Table("prefix", metadata, *map(_part, Prefix._fields), sqlite_with_rowid=False)

row = Table(
    "row",
    metadata,
    _part("chain"),
    _part("state"),
    _column("exits", BigInteger),
    _column("squares", BigInteger),
    _column("counts", LargeBinary),
    _column("terms", LargeBinary),
    _column("stale", Integer),
    _column("discoveries", LargeBinary),
    _column("check_sum", BigInteger),
    sqlite_with_rowid=False,
)

#: The counts of a warm start. The log does not contain them.
prior = Table(
    "prior",
    metadata,
    _part("chain"),
    _part("state"),
    _column("counts", LargeBinary),
    _column("check_sum", BigInteger),
    sqlite_with_rowid=False,
)

#: The states of chains with open states, in order of discovery.
state = Table(
    "state",
    metadata,
    _part("chain"),
    _part("position"),
    _column("label", Text),
    _column("check_sum", BigInteger),
    sqlite_with_rowid=False,
)
Index("state_label", state.c.chain, state.c.label, unique=True)

log = Table("log", metadata, *_columns(Observation))
Index("log_chain", log.c.chain, log.c.number)

#: The lines that the page and the report draw. A line of the whole study has no chain.
history = Table("history", metadata, *_columns(HistoryLine), _column("check_sum", BigInteger))
Index("history_chain", history.c.chain, history.c.number)

#: The standing of the checks, so that they continue without the log: of each chain, and of all together (chain −1).
evidence = Table(
    "evidence",
    metadata,
    _number("chain"),
    _column("content", LargeBinary),
    _column("check_sum", BigInteger),
)

#: The registered questions with their answers, and the answers at earlier moments.
question = Table("question", metadata, *_columns(QuestionRecord), _column("check_sum", BigInteger))
Index("question_chain", question.c.chain, question.c.number)

answer = Table("answer", metadata, *_columns(AnswerLine), _column("check_sum", BigInteger))
Index("answer_question", answer.c.question, answer.c.number)

event = Table(
    "event",
    metadata,
    _number(),
    _column("time", Double),
    _column("kind", Text),
    Column("chain", BigInteger),
    _column("detail", Text),
)
