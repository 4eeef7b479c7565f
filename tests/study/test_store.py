"""What only stores on disk have: formats, readers, owners of rules, forks, and the write-ahead log."""

import math
import multiprocessing
import os
import sqlite3
import warnings
from dataclasses import replace

import pytest
import sqlalchemy
from study_checks import check
from study_rules import RULE

from chainscout import policies
from chainscout.errors import FileError, InputError, RecomputedWarning
from chainscout.policies import catalogue
from chainscout.store import migrations, sqlite, statements
from chainscout.store.order import Order
from chainscout.store.schema import FORMAT
from chainscout.study import Study

STATES = {"a": 2, "b": 3}


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, folder):
    return folder / "study.db" if request.param == "sqlite" else request.getfixturevalue("server").address()


def filled(where, policy=RULE):
    study = Study.create(where, STATES, budget=100, policy=policy)
    study.tell_many([("a", 0), ("b", 2), ("a", 1), ("b", 0), ("a", 1)])
    return study


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
        again.verify()
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


# -- who may do what


def test_readers_can_never_harm_a_study(where):
    study = filled(where)
    reader = Study.open(where, RULE, read_only=True)
    assert reader.progress() == study.progress()
    assert reader.ask() == study.ask()
    for change in (
        lambda: reader.tell("a", 1),
        lambda: reader.tell_many([("a", 1)]),
        lambda: reader.restart("a"),
        lambda: reader.lease("w"),
        lambda: reader.extend(budget=200),
    ):
        with pytest.raises(InputError, match="read only"):
            change()
    study.tell("a", 0)
    assert reader.progress().observations == 6
    assert [line.state for line in reader.log("a")] == [0, 1, 1, 0]
    reader.close()
    study.close()


def test_there_is_one_study_at_a_place(where):
    filled(where).close()
    with pytest.raises(InputError, match="already"):
        Study.create(where, STATES, policy=RULE)
    with Study.open(where, RULE) as study:
        assert study.progress().observations == 5


def test_places_are_checked(tmp_path):
    with pytest.raises(InputError, match="cannot be opened again"):
        Study.open(None)
    for wrong in ("mysql://x/y", "", 3):
        with pytest.raises(InputError, match="path"):
            Study.create(wrong, STATES, policy=RULE)
    with pytest.raises(FileError, match="could not be made"):
        Study.create(tmp_path / "no" / "such" / "folder.db", STATES, policy=RULE)
    with pytest.raises(FileError, match="there is no study"):
        Study.open(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_no_server(monkeypatch):
    from chainscout.errors import ChainscoutError

    with pytest.raises(ChainscoutError, match="no connection to postgresql"):
        Study.open("postgresql://nobody:secret@127.0.0.1:1/none")
    with pytest.raises(ChainscoutError) as caught:
        Study.open("postgresql://nobody:secret@127.0.0.1:1/none")
    assert "secret" not in str(caught.value)


def test_an_empty_database_has_no_study(server):
    with pytest.raises(FileError, match="there is no study in"):
        Study.open(server.address(), RULE)


def test_the_postgres_extra_is_named(monkeypatch):
    from chainscout.errors import MissingExtraError

    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"chainscout\[postgres\]"):
        Study.open("postgresql://localhost/none")


def child(study, pipe):
    try:
        study.tell("a", 0)
    except InputError as error:
        pipe.send(str(error))
    os._exit(0)


def test_a_study_is_not_used_across_a_fork(folder):
    study = filled(folder / "study.db")
    here, there = multiprocessing.Pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks of processes with threads
        process = multiprocessing.get_context("fork").Process(target=child, args=(study, there))
        process.start()
    assert "forked process" in here.recv()
    process.join()
    study.tell("a", 0)
    study.close()


# -- rules


def test_ones_own_policy_is_needed_and_checked(where):
    filled(where).close()
    with pytest.raises(
        InputError, match="'gini-rule', which is not built in: only a Python program that gives this policy"
    ):
        Study.open(where)
    for other in (
        replace(RULE, version=2),
        replace(RULE, parameters={"c": 3.0}),
        replace(RULE, name="another"),
    ):
        with pytest.raises(InputError, match="was created with the policy 'gini-rule'"):
            Study.open(where, other)
    Study.open(where, RULE).close()


def test_a_policy_is_given_by_name(where):
    filled(where, "scout:power=1").close()
    with Study.open(where, "scout:power=1") as study:
        assert study.progress().policy == "scout:power=1"
    for name, words in (
        ("uniform", "the one given is 'uniform'"),
        ("scuot", "did you mean scout"),
        (3, "must be a string .* not 3"),
    ):
        with pytest.raises(InputError, match=words):
            Study.open(where, name)


@pytest.mark.parametrize("given", [None, "scout"])
def test_a_changed_built_in_rule_recomputes_indices_once_and_says_so(where, monkeypatch, given):
    filled(where, "scout").close()
    plain = policies.get("uniform")

    def changed():
        return replace(plain, name="scout", version=2)

    monkeypatch.setitem(catalogue._FACTORIES, "scout", changed)
    with Study.open(where, read_only=True) as reader:
        assert reader.indices() != {"a": 1 / 2, "b": 1.0}
    with pytest.raises(InputError, match=r"version 1; the one given is 'scout', parameters \{\}, version 2"):
        Study.open(where, policies.get("scout"))
    with pytest.warns(RecomputedWarning, match="from version 1 to 2"):
        study = Study.open(where, given)
    assert study.indices() == {"a": 1 / 2, "b": 1.0}
    assert study.events()[-1].detail == {"policy": "scout", "old": 1, "new": 2}
    study.close()
    Study.open(where).close()  # a warning would be an error


def test_parameters_of_a_policy_are_kept(where):
    filled(where, "scout:power=0.5,exploration=3").close()
    with Study.open(where) as study:
        assert study.progress().policy == "scout:power=0.5,exploration=3"


# -- damage


def test_a_row_that_was_changed_behind_the_studys_back_is_noticed(folder):
    path = folder / "study.db"
    filled(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE chain SET transitions = 7 WHERE name = 'a'")
    connection.close()
    with Study.open(path, RULE) as study, pytest.raises(FileError, match="the row of chain 0 is not what was written"):
        study.tell("a", 0)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM log WHERE number = 3", "the log is broken"),
        ("UPDATE log SET state = 0 WHERE number = 3", "counts"),
        ("UPDATE log SET state = 9 WHERE number = 3", "a state that does not exist"),
        ("UPDATE log SET segment = 3 WHERE number = 3", "the log of the chain 'a' is broken"),
        ("DELETE FROM log WHERE number = 5", "has 4 observations, and the study says 5"),
        ("DELETE FROM chain WHERE number = 1", "the log is broken"),
    ],
)
def test_verify_finds_what_no_check_sum_covers(where, statement, words):
    study = filled(where)
    study.verify()
    with study._store.database.transaction(write=True):
        study._store.database.query(statement)
    with pytest.raises(FileError, match=words):
        study.verify()
    study.close()


# -- SQLite's write-ahead log


def test_check_points_are_made_and_nothing_is_lost(folder, monkeypatch):
    monkeypatch.setattr(sqlite, "CHECKPOINT_EVERY", 20)
    path = folder / "study.db"
    study = Study.create(path, STATES, policy=RULE)
    reader = Study.open(path, RULE, read_only=True)
    for step in range(100):
        study.tell("a", step % 2)
        assert reader.progress().observations == step + 1
    size = (folder / "study.db-wal").stat().st_size
    for step in range(200):
        study.tell("a", step % 2)
    assert (folder / "study.db-wal").stat().st_size < 3 * size  # the log is used again from its beginning
    reader.close()
    study.close()
    assert not (folder / "study.db-wal").exists()
    with Study.open(path, RULE) as again:
        check(again, STATES, RULE)


def test_settings_of_the_connection(folder):
    study = filled(folder / "study.db")
    settings = {
        name: study._store.database.query(f"PRAGMA {name}")[0][0]
        for name in ("journal_mode", "synchronous", "wal_autocheckpoint", "mmap_size")
    }
    study.close()
    assert settings == {"journal_mode": "wal", "synchronous": 2, "wal_autocheckpoint": 0, "mmap_size": 0}


def test_a_log_that_grew_long_is_put_away_when_a_study_is_opened(folder, monkeypatch):
    path = folder / "study.db"
    study = filled(path)
    reader = Study.open(path, RULE, read_only=True)
    monkeypatch.setattr(sqlite, "CHECKPOINT_SIZE", 1000)
    before = path.read_bytes()
    Study.open(path, RULE).close()
    assert path.read_bytes() != before
    reader.close()
    study.close()


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
