"""The journal in PostgreSQL: lost connections and answers, cancelled statements, a server's clock, odd settings."""

import itertools
import random
import sys
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from urllib.parse import quote

import psycopg
import pytest
from journal_places import CREATED, Reader, Stepped, decided, told

from chainscout.errors import (
    Busy,
    Cancelled,
    ChainscoutError,
    ConnectionLost,
    FileError,
    InputError,
    MissingExtraError,
    OutcomeUnknown,
)
from chainscout.journal import postgres
from chainscout.journal.backup import backup
from chainscout.journal.entry import START, sealed
from chainscout.journal.opening import create, exists, open_journal


@pytest.fixture
def address(schemas):
    """The address of a journal with one entry."""
    found = schemas.address()
    create(found, CREATED).close()
    return found


@pytest.fixture
def opened():
    """Opens journals, and closes them at the end."""
    with ExitStack() as stack:
        yield lambda *given, **options: stack.enter_context(closing(open_journal(*given, **options)))


@pytest.fixture
def reader(address, opened):
    return Reader(opened(address, patience=5.0)).read()


@pytest.fixture
def other(address, opened):
    return Reader(opened(address, patience=5.0)).read()


@contextmanager
def locked(address, mode="ACCESS EXCLUSIVE"):
    """Nobody can read or change the journal."""
    with psycopg.connect(address) as connection:
        connection.execute(f"LOCK TABLE journal IN {mode} MODE")
        yield
        connection.rollback()


def terminated(schemas, connection):
    """Ends the connection, as a server does that is shut down."""
    with suppress(psycopg.Error):
        schemas.run("SELECT pg_terminate_backend(%s, 2000)", connection.info.backend_pid)


# -- exactly once


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("others", [0, 2])
def test_a_connection_that_ends_at_any_moment_of_an_append(schemas, reader, other, in_turn, others):
    """Before or after each statement: each append is stored once, and no command decided by an old state."""
    journal, counted = reader.journal, 0
    for moment in range(14):
        journal._crowd = 1 if in_turn else 0
        reached = []

        def end(number, moment=moment, reached=reached):
            if number == moment:
                reached.append(number)
                terminated(schemas, journal._db)
                if others:
                    other.append(others)

        journal._db = Stepped(journal._db, end)
        assert len(reader.append(2)) == 2
        counted += len(reached)
        reader.read()
        journal._db = getattr(journal._db, "_connection", journal._db)
    assert counted == (6 if in_turn else 2)
    entries = other.read().entries
    assert reader.read().entries == entries == other.journal.read()
    assert decided(entries)


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("others", [0, 1])
def test_an_answer_that_is_lost_at_any_moment(reader, other, in_turn, others):
    """The server did what it was asked, and the connection broke before it could say so."""
    journal, lost = reader.journal, 0
    for moment in range(1, 14, 2):
        journal._crowd = 1 if in_turn else 0

        def lose(number, moment=moment):
            nonlocal lost
            if number == moment:
                lost += 1
                journal._db.close()
                if others:
                    other.append(others)
                raise psycopg.OperationalError("the answer was lost")

        journal._db = Stepped(journal._db, lose)
        assert len(reader.append(2)) == 2
        journal._db = getattr(journal._db, "_connection", journal._db)
    assert lost >= (3 if in_turn else 1)
    assert reader.read().entries == other.read().entries == other.journal.read()
    assert decided(reader.entries)


@pytest.mark.parametrize("outcome", ["commit", "rollback", "another's"])
def test_the_first_attempt_is_still_on_its_way(address, reader, other, outcome):
    """The server goes on with what a lost connection has sent. The second attempt waits for it, and settles it."""
    journal = reader.journal
    new = sealed(reader.head, journal.now(), [told(1, by=reader.number), told(2, by=reader.number)])
    first = new if outcome != "another's" else sealed(reader.head, journal.now(), [told(3, by=other.number)])
    settled = []
    with psycopg.connect(address) as late:
        sender, journal._db = journal._db, late
        journal._insert(reader.head, first)
        journal._db = sender
        thread = threading.Thread(target=lambda: settled.append(journal._is_stored(reader.head, new)))
        thread.start()
        time.sleep(0.1)
        assert not settled
        late.rollback() if outcome == "rollback" else late.commit()
    thread.join()
    assert settled == [outcome != "another's"]
    assert other.read().entries[1:] == first


def test_what_stops_the_settlement_says_that_the_outcome_is_not_known(address, reader):
    new = sealed(reader.head, reader.journal.now(), [told(1)])
    reader.journal._db.execute("SET lock_timeout = 100")
    with locked(address, "EXCLUSIVE"), pytest.raises(OutcomeUnknown, match="whether the last change was stored will"):
        reader.journal._is_stored(reader.head, new)
    reader.append()


def attacked(schemas, readers, seconds, seed=0):
    """How many connections were ended while some threads appended, and the entries that each thread saw stored."""
    end, stored, failures = time.monotonic() + seconds, [[] for _ in readers], []

    def write(number):
        try:
            while time.monotonic() < end:
                stored[number] += readers[number].append(1 + number % 2)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(readers))]
    for thread in threads:
        thread.start()
    draw, ended = random.Random(seed), 0
    with psycopg.connect(schemas.server.address, autocommit=True) as killer:
        while time.monotonic() < end:
            time.sleep(draw.uniform(0.002, 0.03))
            with suppress(psycopg.OperationalError):  # it has ended, and is being made again
                pid = draw.choice(readers).journal._db.info.backend_pid
                ended += killer.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone()[0]
    for thread in threads:
        thread.join()
    assert not failures, failures
    return ended, stored


def check_exactly_once(schemas, address, opened, seconds):
    readers = [Reader(opened(address, patience=60.0)).read() for _ in range(3)]
    ended, stored = attacked(schemas, readers, seconds)
    entries = opened(address).read()
    assert ended > 10 * seconds
    assert sorted(itertools.chain(*stored)) == entries[1:]
    assert decided(entries)


def test_connections_that_end_at_random_moments_while_others_write(schemas, address, opened):
    check_exactly_once(schemas, address, opened, 2.0)


@pytest.mark.soak
def test_connections_that_end_at_random_moments_for_long(schemas, address, opened):
    check_exactly_once(schemas, address, opened, 60.0)


def test_a_server_that_stays_away(schemas, address, reader, monkeypatch):
    """Before an append was sent nothing was changed; afterwards nobody can know, and the error says so."""
    journal = reader.journal
    journal._patience = 0.3
    refused = psycopg.OperationalError("connection refused")

    def away(*_):
        raise ConnectionLost(f"no connection: {refused}")

    monkeypatch.setattr(postgres, "_connect", away)
    journal._db.close()
    for attempt in (reader.append, reader.read):
        with pytest.raises(ConnectionLost, match="was lost") as caught:
            attempt()
        assert not isinstance(caught.value, OutcomeUnknown)
    monkeypatch.undo()
    reader.read()
    monkeypatch.setattr(postgres, "_connect", away)
    journal._db = Stepped(journal._db, lambda number: number and terminated_and_raised(journal))
    with pytest.raises(OutcomeUnknown, match="whether the last change was stored will be seen when the study is read"):
        reader.append()
    monkeypatch.undo()
    assert [entry.number for entry in reader.read().entries] == [1, 2]  # it was


def terminated_and_raised(journal):
    journal._db.close()
    raise psycopg.OperationalError("the answer was lost")


# -- turns


def test_a_lone_writer_needs_one_statement(reader):
    reader.append()
    seen = []
    reader.journal._db = Stepped(reader.journal._db, seen.append)
    reader.append(3)
    assert len(seen) == 2


def test_a_crowd_takes_turns_until_a_writer_is_alone_again(reader, other):
    reader.append()
    other.append()
    assert other.journal._crowd > 0
    for _ in range(50):
        other.append()
    assert other.journal._crowd == 0


def test_a_refusal_by_an_old_state_is_checked_again(reader, other):
    """The budget was spent in the state that is known; meanwhile it was extended."""
    other.append()

    def command(tail):
        reader.apply(tail)
        if len(reader.entries) < 2:
            raise InputError("too early")
        return [told(0)]

    assert [entry.number for entry in reader.journal.append(reader.head, command)] == [3]


def test_who_holds_the_lock_for_too_long_is_named(address):
    sentence = r"held the write lock of .* for 0.1 seconds: nothing was changed"
    with closing(open_journal(address, patience=0.1)) as journal:
        reader = Reader(journal).read()
        with locked(address, "EXCLUSIVE"), pytest.raises(Busy, match=sentence):
            reader.append()


def test_a_process_that_sleeps_with_the_lock_does_not_stop_the_others(address, opened, monkeypatch):
    monkeypatch.setattr(postgres, "_ASLEEP", 200)
    sleeper, other = (Reader(opened(address, patience=10.0)).read() for _ in range(2))
    sleeper.journal._crowd, calls = 1, []

    def command(tail):
        sleeper.apply(tail)
        calls.append(tail)
        if len(calls) == 1:
            time.sleep(0.2)
            other.append()  # waits until the server has ended the sleeper's transaction
        return [told(len(sleeper.entries), by=sleeper.number)]

    sleeper.apply(sleeper.journal.append(sleeper.head, command))
    assert len(calls) > 1
    assert sleeper.entries == other.read().entries
    assert decided(sleeper.entries)


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("why", ["statement timeout", "user request"])
def test_a_cancelled_statement_is_no_lost_connection(schemas, address, in_turn, why):
    limit = quote(" -cstatement_timeout=200") if why == "statement timeout" else ""
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid <> pg_backend_pid()"

    def cancel():
        while not (found := schemas.run(waiting)):
            time.sleep(0.01)
        schemas.run("SELECT pg_cancel_backend(%s)", *found[0])

    with closing(open_journal(address + limit)) as journal:
        reader = Reader(journal).read()
        journal._crowd = int(in_turn)
        pid = journal._db.info.backend_pid
        thread = threading.Thread(target=cancel)
        with locked(address, "EXCLUSIVE"):
            if not limit:
                thread.start()
            with pytest.raises(Cancelled, match=rf"cancelled a statement \(.*{why}\): nothing was changed, and the"):
                reader.append()
            if not limit:
                thread.join()
        assert len(reader.append()) == 1
        assert journal._db.info.backend_pid == pid
        assert len(reader.read().entries) == 2


# -- the clock


def test_the_clock_is_the_servers(address, reader, monkeypatch):
    """Also after this machine slept, when its monotonic clock stood still, and after its own clock was set."""
    true = reader.journal.now()
    assert abs(true - time.time() * 1000) < 5_000
    for jump in (3600.0, -3600.0):
        here = time.time()
        monkeypatch.setattr(postgres.time, "time", lambda here=here, jump=jump: here + jump)
        reader.journal._ahead -= 7_200_000  # what it would be after a sleep of two hours
        new = reader.append()
        assert abs(new[0].time - true) < 60_000
        monkeypatch.undo()


# -- addresses and servers


def test_what_is_no_study(schemas):
    address = schemas.address()
    assert not exists(address)
    with pytest.raises(FileError, match="there is no study in postgresql://"):
        open_journal(address)
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE study (id integer, format integer)")
        connection.execute("INSERT INTO study VALUES (1, 13)")
    assert exists(address)
    with pytest.raises(FileError, match="has the format 13, and this version of chainscout reads only the format 15"):
        open_journal(address)
    with pytest.raises(InputError, match="exists already"):
        create(address, CREATED)


def test_a_schema_that_is_missing(schemas):
    with pytest.raises(InputError, match="has no schema nowhere, in which the study was to be made"):
        create(schemas.server.address + "&options=" + quote("-csearch_path=nowhere"), CREATED)


def test_a_study_in_another_schema_of_the_path_is_another_study(schemas, address):
    own, name = schemas.address(), address.rpartition("%3D")[2]
    path = f"{own},{name}"
    with pytest.raises(FileError, match="there is no study"):
        open_journal(path)
    create(path, CREATED).close()
    with closing(open_journal(own)) as found:
        assert len(found.read()) == 1


def test_two_makers_make_one_study(schemas):
    address, made, refused = schemas.address(), [], []

    def make():
        try:
            made.append(create(address, CREATED))
        except InputError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 5)
    made[0].close()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_server_with_another_default_level(address, opened, level):
    options = quote(f" -cdefault_transaction_isolation={level.replace(' ', chr(92) + ' ')}")
    readers = [Reader(opened(address + options)) for _ in range(3)]
    threads = [threading.Thread(target=lambda r=reader: [r.append() for _ in range(20)]) for reader in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = opened(address).read()
    assert len(entries) == 61
    assert decided(entries)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:se%2Fcret@host:5/db?a=b", "postgresql://me:***@host:5/db?a=b"),
        ("postgresql://host/db?user=me&password=secret&a=b", "postgresql://host/db?user=me&password=***&a=b"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
    ],
)
def test_no_message_has_a_password(given, shown):
    assert postgres._without_password(given) == shown


def test_addresses_that_lead_nowhere(tmp_path):
    with pytest.raises(InputError, match="must be of the form postgresql://user@host/database"):
        open_journal("postgresql://host/db?nonsense=1")
    with pytest.raises(ConnectionLost, match="no connection to postgresql://me:\\*\\*\\*@"):
        open_journal(f"postgresql://me:secret@/db?host={quote(str(tmp_path))}")
    with pytest.raises(InputError, match="copied by pg_dump and pg_restore"):
        backup("postgresql://host/db", tmp_path / "copy.db")


def test_the_driver_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "chainscout.journal.postgres")
    monkeypatch.delattr("chainscout.journal.postgres")
    for attempt in (lambda: open_journal("postgresql://host/db"), lambda: exists("postgresql://host/db")):
        with pytest.raises(MissingExtraError, match="a study in PostgreSQL needs an optional dependency"):
            attempt()


def test_a_text_in_the_wrong_place_is_damage(address, reader):
    reader.append(4)
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE journal SET more = 'x' WHERE number = 3")
    with closing(open_journal(address)) as journal, pytest.raises(FileError, match=r"entry 3 is not what was written"):
        journal.read(START)


def test_a_refused_statement_is_said(address, reader):
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE journal")
    with pytest.raises(ChainscoutError, match=r"there is no study in .*, or it is damaged"):
        reader.append()
