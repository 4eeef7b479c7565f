"""The connection to PostgreSQL is lost after the server has done what it was asked, and before its answer arrives."""

import psycopg
import pytest
from study_wire import watched

from chainscout.errors import FileError, OutcomeUnknown
from chainscout.study import Study


@pytest.mark.parametrize("read", [Study.progress, Study.certificate, Study.repeated_paths], ids=lambda f: f.__name__)
@pytest.mark.parametrize("cut", [1, 2])
def test_a_reader_connects_again(server, tmp_path, read, cut):
    address = server.address()
    Study.create(address, {"a": 3, "b": 2}).close()
    with watched(server, tmp_path / "0", address) as (study, wire), Study.open(address) as other:
        made, wire.cut = wire.connections, cut
        found = read(study)
        assert wire.connections == made + 1 or wire.cut > 0  # one message was enough
        assert str(found) == str(read(other))
        study.audit()


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("cut", [1, 2])
def test_a_tell_is_stored_once(server, tmp_path, is_alone, cut):
    """Whether the answer was lost before or after the server stored it, the study finds out by itself."""
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
        for _ in range(2):  # the caller's own retry changes nothing
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
    with Study.open(address) as other:
        for _ in range(3):
            other.tell("b", 1)
        with pytest.raises(FileError, match=r"no longer has entry \d+, which was read from it: .* nothing was changed"):
            study.ask() if asks else study.tell("a", 0)
        study.close()
        with Study.open(address) as again:
            assert again.ask() == other.ask()
            again.tell("a", 0)
            assert again.allocation() == other.allocation() == {"a": 7, "b": 9}
            other.audit()


@pytest.mark.parametrize("retry", ["step", "key"])
def test_the_first_tell_may_be_repeated_although_nobody_knows_that_it_was_stored(tmp_path, monkeypatch, retry):
    """The answer to the append that began the walker was lost: it does not know its own entry."""
    where = tmp_path / "lab.db"
    Study.create(where, {"a": 3}).close()
    with Study.open(where) as study:
        stored = study._keeper.journal.append

        def append(head, command):
            stored(head, command)
            raise OutcomeUnknown("the answer was lost")

        place = {"path": 1, "step": 1} if retry == "step" else {"key": "one"}
        with monkeypatch.context() as patch:
            patch.setattr(study._keeper.journal, "append", append)
            with pytest.raises(OutcomeUnknown):
                study.tell("a", 2, **place)
        for _ in range(2):
            assert study.tell("a", 2, **place) == (1, 2)
        assert [line.state for line in study.log()] == [2]
        assert study.tell("a", 1, path=1, step=2) == (1, 3)
        assert study.counts("a").total == 1
        assert len(study._keeper.state().walkers) == 1
        study.audit()
