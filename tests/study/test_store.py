"""What only stores on disk have: readers, owners of rules, forks, and the write-ahead log."""

import multiprocessing
import os
import sqlite3
import threading
import warnings
from dataclasses import replace

import pytest
from study_checks import check
from study_rules import RULE
from study_stores import STATES, filled

from chainscout import policies
from chainscout.errors import FileError, InputError, RecomputedWarning
from chainscout.policies import catalogue
from chainscout.store.sql import sqlite
from chainscout.study import Study

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
        lambda: reader.worker("w").lease(),
        lambda: reader.take_up("a"),
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
    with pytest.raises(MissingExtraError, match=r"needs an optional dependency: .*postgres"):
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


def test_a_fork_while_another_thread_is_in_the_study_waits_for_nobody(where):
    """In the new process there is no thread that could leave the study: the child is refused and does not hang."""
    study = filled(where)
    here, there = multiprocessing.Pipe()
    inside, leave = threading.Event(), threading.Event()

    def stays() -> None:
        with study._lock:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=stays)
    thread.start()
    inside.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        process = multiprocessing.get_context("fork").Process(target=child, args=(study, there))
        process.start()
    assert here.poll(30), "the child hangs"
    assert "forked process" in here.recv()
    process.join()
    leave.set()
    thread.join()
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
    plain, now = policies.get("uniform"), policies.get("scout").version

    def changed():
        return replace(plain, name="scout", version=now + 1)

    monkeypatch.setitem(catalogue._FACTORIES, "scout", changed)
    with Study.open(where, read_only=True) as reader:
        assert reader.indices() != {"a": 1 / 2, "b": 1.0}
    with pytest.raises(InputError, match=rf"version {now}; the one given is 'scout', .*, version {now + 1}"):
        Study.open(where, policies.get("scout"))
    with pytest.warns(RecomputedWarning, match=f"from version {now} to {now + 1}"):
        study = Study.open(where, given)
    assert study.indices() == {"a": 1 / 2, "b": 1.0}
    assert study.events()[-1].detail == {"policy": "scout", "old": now, "new": now + 1}
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
        ("UPDATE log SET path = 3 WHERE number = 3", "the log of path 3 of the chain 'a' is broken"),
        ("DELETE FROM path WHERE chain = 1", "the paths of the chain 'b' are not those of its log"),
        ("UPDATE path SET steps = 2 WHERE chain = 0", "the row of path 1 of chain 0 is not what was written"),
        ("DELETE FROM log WHERE number = 5", "has 4 observations, and the study says 5"),
        ("DELETE FROM chain WHERE number = 1", "the log is broken"),
    ],
)
def test_verify_finds_what_no_check_sum_covers(where, statement, words):
    study = filled(where)
    study.audit()
    with study._store.database.transaction(write=True):
        study._store.database.query(statement)
    with pytest.raises(FileError, match=words):
        study.audit()
    study.close()


# -- SQLite's write-ahead log


def test_check_points_are_made_and_nothing_is_lost(folder, monkeypatch):
    monkeypatch.setattr(sqlite, "_CHECKPOINT_EVERY", 20)
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
    monkeypatch.setattr(sqlite, "_CHECKPOINT_SIZE", 1000)
    before = path.read_bytes()
    Study.open(path, RULE).close()
    assert path.read_bytes() != before
    reader.close()
    study.close()
