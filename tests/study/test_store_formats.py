"""What a database has of a study: one format with a number, and indices that spare a look at everything."""

import pytest
from study_rules import RULE
from study_stores import filled

from chainscout.errors import FileError
from chainscout.store.sql import statements
from chainscout.store.sql.schema import FORMAT
from chainscout.study import Study, _certificate

# -- the format


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("other", [1, FORMAT - 1, FORMAT + 1, 99])
def test_another_format_is_refused_and_left_alone(where, other, read_only):
    def contents():
        with study._store.database.transaction(write=False):
            return [
                study._store.database.query(f"SELECT * FROM {table}")
                for table in ("study", "chain", "path", "row", "log")
            ]

    study = filled(where)
    with study._store.database.transaction(write=True):
        study._store.database.query(f"UPDATE study SET format = {other} WHERE id = 1")
    before = contents()
    words = (
        f"has the format {other} and this version of chainscout reads only format {FORMAT}: "
        "migrations begin with the first release, and nothing was changed"
    )
    with pytest.raises(FileError, match=words):
        Study.open(where, RULE, read_only=read_only)
    assert contents() == before
    study.close()


def test_a_study_that_states_no_format_is_refused(where):
    study = filled(where)
    with study._store.database.transaction(write=True):
        study._store.database.query("DELETE FROM study")
    study.close()
    with pytest.raises(FileError, match="it states no format"):
        Study.open(where, RULE)


# -- what is asked is the top of an index


def plan(study, statement):
    database = study._store.database
    text, names, *_ = database.compiled(statement)
    words = "EXPLAIN QUERY PLAN " if type(database).__name__ == "Sqlite" else "EXPLAIN "
    parameters = {"limit": 1, "param_1": 0, "after": 0, "until": 0.0, "chain": 0, "number": 1, "worker": "w"}
    given = [parameters[name] for name in names] if words.startswith("EXPLAIN QUERY") else parameters
    with database.transaction(write=False):
        return " ".join(str(row) for row in database.execute(words + text, given).fetchall())


def test_nothing_is_sorted_or_scanned(folder):
    study = filled(folder / "study.db")
    for statement, index in (
        (statements.top, "chain_order"),
        (statements.least, "chain_least"),
        (statements.expired, "path_held"),
        (statements.held, "path_held"),
        (statements.latest_path, "path_worker"),
        (statements.get_path, "PRIMARY KEY"),
        (statements.worst, "chain_certificate"),
        (statements.worst_aside, "chain_aside"),
        (statements.stale_after, "chain_stale"),
    ):
        found = plan(study, statement)
        assert index in found, found
        assert "TEMP B-TREE" not in found, found
    study.close()


def test_another_target_computes_only_the_bounds_of_chains_that_moved(where, monkeypatch):
    study = Study.create(where, dict.fromkeys("abcdef", 2), budget=100, target_loss=0.5)
    study.tell_many([("a", 0), ("a", 1), ("b", 1), ("b", 0)] * 8)
    study.close()
    with Study.open(where) as again:
        again.tell_many([("b", 0), ("b", 1)])
        again.extend(target_loss=0.4)
        computed = []
        bounds = _certificate._bounds
        monkeypatch.setattr(
            _certificate,
            "_bounds",
            lambda study, chains: computed.extend(c.name for c, _ in chains) or bounds(study, chains),
        )
        again.extend(target_loss=0.3)
        assert computed == []
        again.tell("b", 0)
        again.extend(target_loss=0.2)
        assert computed == ["b"]


OPENED = {"none": False, "one": ("b",), "all": True}


@pytest.mark.parametrize("opened", OPENED.values(), ids=OPENED)
def test_an_estimate_reads_its_chain_and_no_other(where, monkeypatch, opened):
    study = Study.create(where, {"a": ["x", "y"], "b": ["x", "y", "z"], "c": ["x"]}, budget=100, open_states=opened)
    study.tell_many([("a", "x"), ("a", "y"), ("b", "z"), ("b", "v" if opened else "x")])
    before = [(study.estimate(name).lower, study.estimate(name).upper) for name in "abc"]
    study.close()
    with Study.open(where) as again:
        read = seen(again, monkeypatch)
        after = [(again.estimate(name).lower, again.estimate(name).upper) for name in "abc"]
        of_one = {"get_study", "get_stamp", "chain_by_name", "get_rows", "get_states", "get_label_list"}
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
