"""The connection to PostgreSQL is lost after the server has done what it was asked, and before its answer arrives."""

import psycopg
import pytest
from study_wire import watched

from chainscout.errors import ConnectionLost, OutcomeUnknown
from chainscout.study import Study


@pytest.mark.parametrize("read", [Study.progress, Study.certificate, Study.repeated_paths], ids=lambda f: f.__name__)
@pytest.mark.parametrize("cut", [1, 2])
def test_a_reader_has_changed_nothing(server, tmp_path, read, cut):
    address = server.address()
    Study.create(address, {"a": 3, "b": 2}).close()
    with watched(server, tmp_path / "0", address) as (study, wire):
        wire.cut = cut
        with pytest.raises(ConnectionLost, match=r"nothing was changed$") as caught:
            read(study)
        assert not isinstance(caught.value, OutcomeUnknown)


@pytest.mark.parametrize(
    ("is_alone", "cut", "error", "sentence"),
    [
        (True, 1, OutcomeUnknown, "whether the last change was stored is not known$"),
        (False, 1, ConnectionLost, "nothing was changed$"),
        (False, 2, OutcomeUnknown, "whether the last change was stored is not known$"),
    ],
)
def test_a_tell_says_what_has_become_of_it(server, tmp_path, is_alone, cut, error, sentence):
    """Told again with its path and step, the observation is there once."""
    address = server.address()
    Study.create(address, {"a": 3, "b": 2}).close()
    with watched(server, tmp_path / "0", address) as (study, wire), Study.open(address) as other:
        for state in (0, 1, 2, 1):
            study.tell("a", state)
        path, step = place = study.tell("a", 0)
        if not is_alone:
            other.tell("b", 0)
            study.ask()
        wire.cut = cut
        with pytest.raises(error, match=sentence):
            study.tell("a", 2, *place)
        assert len(list(other.log("a"))) == 5 + (error is OutcomeUnknown)
        assert study.tell("a", 2, *place) == (path, step + 1)
        assert study.tell("a", 2, *place) == (path, step + 1)
        assert [line.state for line in other.log("a")] == [0, 1, 2, 1, 0, 2]
        assert study.ask() == other.ask()
        study.audit()


@pytest.mark.parametrize("asks", [False, True])
def test_a_server_that_has_lost_the_last_changes_damages_nothing(server, asks):
    """A replica takes over that was behind. Then another writer makes as many changes as were lost."""
    address = server.address()
    study = Study.create(address, {"a": 2, "b": 2})
    for state in (0, 1, 0, 1, 1, 0):
        study.tell("a", state)
        study.tell("b", state)
    with psycopg.connect(address, autocommit=True) as replica:
        found = replica.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        for (table,) in found:
            replica.execute(f"CREATE TABLE old_{table} AS TABLE {table}")
        for _ in range(3):
            study.tell("a", 0)
        for (table,) in found:
            replica.execute(f"TRUNCATE {table}; INSERT INTO {table} TABLE old_{table}")
    study.close()  # its next call connects to the replica
    with Study.open(address) as other:
        for _ in range(3):
            other.tell("b", 1)
        if asks:
            assert study.ask() == other.ask()
        study.tell("a", 0)
        assert study.allocation() == other.allocation() == {"a": 7, "b": 9}
        other.audit()
    study.close()
