"""What a database has of a study: formats with their migrations, and indices that spare a look at everything."""

import math

import pytest
import sqlalchemy
from study_checks import check
from study_rules import RULE
from study_stores import STATES, filled

from chainscout.errors import FileError
from chainscout.store import migrations, statements
from chainscout.store.order import Order
from chainscout.store.schema import FORMAT
from chainscout.study import Study

# -- formats


def definitions(study):
    """The columns and indices that the database has, by name."""
    inspector = sqlalchemy.inspect(study._store.database.engine)
    return {
        table: (
            {column["name"] for column in inspector.get_columns(table)},
            {index["name"]: definition(index) for index in inspector.get_indexes(table)},
        )
        for table in inspector.get_table_names()
    }


def definition(index):
    """What an index orders, and its condition."""
    return index["column_names"], [str(option) for option in index.get("dialect_options", {}).values()]


def set_format(study, version):
    """Makes a study one of another format; older ones lack what came later."""
    with study._store.database.transaction(write=True):
        study._store.database.query(f"UPDATE study SET format = {version} WHERE id = 1")
        if version < 3:
            study._store.database.query("DROP INDEX chain_aside")
            study._store.database.query("DROP INDEX chain_stale")
            old = "CREATE INDEX chain_stale ON chain (number) WHERE certified < transitions AND aside = 0"
            study._store.database.query(old)
            study._store.database.query("ALTER TABLE study DROP COLUMN closed")
            study._store.database.query("ALTER TABLE study DROP COLUMN closed_pairs")
        if version < 2:
            study._store.database.query("ALTER TABLE study DROP COLUMN changes")


@pytest.mark.parametrize("version", range(1, FORMAT))
def test_an_older_study_is_brought_up_and_goes_on(where, version):
    study = filled(where)
    new = definitions(study)
    set_format(study, version)
    assert definitions(study) != new
    study.close()
    with pytest.raises(FileError, match=f"older format {version}, and was opened to be read only: whatever writes to"):
        Study.open(where, RULE, read_only=True)
    with Study.open(where, RULE) as again:
        assert definitions(again) == new
        again.audit()
        again.tell("a", 0)
        check(again, STATES, RULE)
    with Study.open(where, RULE, read_only=True) as reader:
        assert reader.progress().observations == 6


def test_an_older_study_knows_what_it_knew_of_a_chain_set_aside(where):
    """The older format left the certificate of a chain that was set aside before there was a target as it was."""
    study = Study.create(where, {"a": 2, "b": 2}, budget=5000, policy="scout")
    study.tell_many([("b", x) for x in (0, 1, 1, 0, 0) * 60])
    study.set_aside("b", "broken")
    study.extend(target_loss=0.6)
    study.tell_many([("a", x) for x in (0, 1, 1, 0, 0) * 4])
    with study._store.writing() as transaction:
        record = transaction.chain("b")
        record.certificate, record.certified = math.inf, 0
        transaction.save(record)
    set_format(study, 2)
    study.close()
    Study.open(where).close()
    with Study.open(where, read_only=True) as reader:
        certificate = reader.certificate()
        assert reader.progress().certificate == certificate.max == certificate.loss["a"] < math.inf
        assert certificate.loss["b"] <= 0.6
    with Study.open(where) as again:
        while not again.finished:
            again.tell_many([("a", x) for x in (0, 1, 1, 0, 0)])
        assert again.stop_reason == "target_loss"
        assert again.progress().certificate == again.certificate().max <= 0.6


def test_a_newer_format_is_refused(where):
    study = filled(where)
    set_format(study, 99)
    study.close()
    with pytest.raises(FileError, match="written by a newer chainscout: its format is 99"):
        Study.open(where, RULE)


def test_an_older_format_is_brought_up(where, monkeypatch):
    study = filled(where)
    set_format(study, 0)
    study.close()
    with pytest.raises(FileError, match="format 0, which this chainscout cannot read"):
        Study.open(where, RULE)
    done = []
    monkeypatch.setitem(migrations.STEPS, 0, lambda database: done.append(database.where))
    with pytest.raises(FileError, match="whatever writes to it"):
        Study.open(where, RULE, read_only=True)
    assert not done
    with Study.open(where, RULE) as again:
        check(again, STATES, RULE)
    assert len(done) == 1
    Study.open(where, RULE).close()
    assert len(done) == 1


def test_a_migration_that_fails_changes_nothing(where, monkeypatch):
    study = filled(where)
    set_format(study, 0)
    study.close()

    def slip(database):
        database.query("DELETE FROM log")
        raise RuntimeError("a slip in a migration")

    monkeypatch.setitem(migrations.STEPS, 0, slip)
    with pytest.raises(RuntimeError, match="slip"):
        Study.open(where, RULE)
    monkeypatch.setitem(migrations.STEPS, 0, lambda database: None)
    with Study.open(where, RULE) as again:
        check(again, STATES, RULE)


# -- what is asked is the top of an index


def plan(study, statement):
    database = study._store.database
    text = database._known(statement).text
    words = "EXPLAIN QUERY PLAN " if type(database).__name__ == "Sqlite" else "EXPLAIN "
    parameters = {"limit": 1, "param_1": 0, "after": 0, "until": 0.0, "aside": 1}
    with database.transaction(write=False):
        return " ".join(str(row) for row in database._execute(words + text, parameters).fetchall())


def test_nothing_is_sorted_or_scanned(folder):
    study = filled(folder / "study.db")
    for statement, index in (
        (statements.top, "chain_order"),
        (statements.least, "chain_least"),
        (statements.expired, "chain_held"),
        (statements.worst, "chain_certificate"),
        (statements.worst_aside, "chain_aside"),
        (statements.stale_after, "chain_stale"),
    ):
        found = plan(study, statement)
        assert index in found, found
        assert "TEMP B-TREE" not in found, found
    study.close()


def test_another_target_looks_only_at_the_chains_that_moved(where, monkeypatch):
    study = Study.create(where, dict.fromkeys("abcdef", 2), budget=100, target_loss=0.5)
    study.tell_many([("a", 0), ("a", 1), ("b", 1), ("b", 0)])
    study.close()
    with Study.open(where) as again:
        read = seen(again, monkeypatch)
        again.extend(target_loss=0.4)
        assert statements.stale_after in read
        assert statements.chains_after not in read


OPENED = {"none": False, "one": ("b",), "all": True}


@pytest.mark.parametrize("version", [None, *range(1, FORMAT)])
@pytest.mark.parametrize("opened", OPENED.values(), ids=OPENED)
def test_an_estimate_reads_its_chain_and_no_other(where, monkeypatch, opened, version):
    study = Study.create(where, {"a": ["x", "y"], "b": ["x", "y", "z"], "c": ["x"]}, budget=100, open_states=opened)
    study.tell_many([("a", "x"), ("a", "y"), ("b", "z"), ("b", "v" if opened else "x")])
    before = [(study.estimate(name).lower, study.estimate(name).upper) for name in "abc"]
    if version is not None:
        set_format(study, version)
    study.close()
    with Study.open(where) as again:
        read = seen(again, monkeypatch)
        after = [(again.estimate(name).lower, again.estimate(name).upper) for name in "abc"]
        of_one = {"get_study", "chain_by_name", "get_rows", "get_states", "get_label_list"}
        assert set(read) <= {getattr(statements, name) for name in of_one}
    for old, new in zip(before, after, strict=True):
        assert all((lower == upper).all() for lower, upper in zip(old, new, strict=True))


def seen(study, monkeypatch):
    """The statements that are run from now on."""
    found = []
    run = study._store.database.run

    def noted(statement, *arguments):
        found.append(statement)
        return run(statement, *arguments)

    monkeypatch.setattr(study._store.database, "run", noted)
    return found


def test_an_order_of_keys():
    order = Order([3.0, 1.0, 1.0, None])
    assert order.first() == 1
    assert order.firsts(5) == [1, 2, 0]
    order.set(1, 5.0)
    order.set(1, 1.0)
    order.set(1, 5.0)
    order.set(3, 1.0)
    assert order.firsts(2) == [2, 3]
    order.set(2, None)
    assert order.first() == 3
    for step in range(1000):
        order.set(0, float(step))
        order.set(2, float(-step))
    assert len(order.heap) < 200
    assert order.firsts(4) == [2, 3, 1, 0]
