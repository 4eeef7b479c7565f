"""The one schema, for SQLite and PostgreSQL alike.

Every column has a type that both drivers give back unchanged (integers, doubles, text, bytes), so that statements can
be compiled once and run by the driver itself. Booleans are 0 and 1.
"""

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
    and_,
)

#: The version of this schema; ``migrations`` brings older files up to it.
FORMAT = 3

metadata = MetaData()

study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("format", Integer, nullable=False),
    Column("chains", BigInteger, nullable=False),
    Column("pairs", BigInteger, nullable=False),
    Column("closed", BigInteger, nullable=False),
    Column("closed_pairs", BigInteger, nullable=False),
    Column("delta", Double, nullable=False),
    Column("policy", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("on_lost_lease", Text, nullable=False),
    Column("budget", Double),
    Column("target_loss", Double),
    Column("deadline", Double),
    Column("least_cost", Double, nullable=False),
    Column("largest_cost", Double, nullable=False),
    Column("observations", BigInteger, nullable=False),
    Column("used", Double, nullable=False),
    Column("leases", BigInteger, nullable=False),
    Column("reserved", Double, nullable=False),
    Column("lost", BigInteger, nullable=False),
    Column("aside", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("stop_reason", Text),
    Column("changes", BigInteger, nullable=False),
    Column("check_sum", BigInteger, nullable=False),
    CheckConstraint("id = 1", name="one_study"),
)

#: Lists of labels, each stored once however many chains share it.
label_list = Table(
    "label_list",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("labels", Text, nullable=False),
)

chain = Table(
    "chain",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False, unique=True),
    Column("size", BigInteger, nullable=False),
    Column("label_list", BigInteger),
    Column("open", Integer, nullable=False),
    Column("weight", Double, nullable=False),
    Column("cost", Double, nullable=False),
    Column("constants", LargeBinary, nullable=False),
    Column("transitions", BigInteger, nullable=False),
    Column("observations", BigInteger, nullable=False),
    Column("segments", BigInteger, nullable=False),
    Column("last", BigInteger),
    Column("sums", LargeBinary, nullable=False),
    Column("index", Double, nullable=False),
    Column("look", BigInteger, nullable=False),
    #: T again, for the rules that look at the least sampled chain first; else NULL, and its index is empty.
    Column("least", BigInteger),
    Column("certificate", Double, nullable=False),
    Column("certified", BigInteger, nullable=False),
    Column("token", Text),
    Column("worker", Text),
    Column("expires", Double),
    Column("promised", BigInteger, nullable=False),
    Column("barren", BigInteger, nullable=False),
    Column("aside", Integer, nullable=False),
    Column("discovered", BigInteger, nullable=False),
    Column("check_sum", BigInteger, nullable=False),
)

_free = and_(chain.c.token.is_(None), chain.c.aside == 0)
_held = chain.c.token.is_not(None)
_sampled = and_(_free, chain.c.least.is_not(None))
_stale = chain.c.certified < chain.c.transitions
_present = chain.c.aside == 0
_aside = and_(chain.c.aside == 1, chain.c.certified >= chain.c.transitions)

# ``ask`` is the top of chain_order; equal indices go to the smallest chain number (MATH §6, Ties).
Index("chain_order", chain.c.index.desc(), chain.c.number, sqlite_where=_free, postgresql_where=_free)
Index("chain_least", chain.c.least, chain.c.number, sqlite_where=_sampled, postgresql_where=_sampled)
Index("chain_held", chain.c.expires, chain.c.number, sqlite_where=_held, postgresql_where=_held)
Index("chain_certificate", chain.c.certificate.desc(), sqlite_where=_present, postgresql_where=_present)
Index("chain_aside", chain.c.certificate.desc(), sqlite_where=_aside, postgresql_where=_aside)
Index("chain_stale", chain.c.aside, chain.c.number, sqlite_where=_stale, postgresql_where=_stale)

row = Table(
    "row",
    metadata,
    Column("chain", BigInteger, primary_key=True, autoincrement=False),
    Column("state", BigInteger, primary_key=True, autoincrement=False),
    Column("exits", BigInteger, nullable=False),
    Column("squares", BigInteger, nullable=False),
    Column("counts", LargeBinary, nullable=False),
    Column("terms", LargeBinary, nullable=False),
    Column("stale", Integer, nullable=False),
    Column("discoveries", LargeBinary, nullable=False),
    Column("check_sum", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

#: The counts that a study was warm-started from; the log goes on from there.
prior = Table(
    "prior",
    metadata,
    Column("chain", BigInteger, primary_key=True, autoincrement=False),
    Column("state", BigInteger, primary_key=True, autoincrement=False),
    Column("counts", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

#: The states of chains with open states, in order of discovery.
state = Table(
    "state",
    metadata,
    Column("chain", BigInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("label", Text, nullable=False),
    sqlite_with_rowid=False,
)
Index("state_label", state.c.chain, state.c.label, unique=True)

log = Table(
    "log",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("chain", BigInteger, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("segment", BigInteger, nullable=False),
    Column("state", BigInteger, nullable=False),
    Column("time", Double, nullable=False),
)
Index("log_step", log.c.chain, log.c.step, unique=True)

event = Table(
    "event",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("time", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("chain", BigInteger),
    Column("detail", Text, nullable=False),
)
