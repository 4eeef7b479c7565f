"""A statement on PostgreSQL is cancelled: by its own time limit, by an administrator, or by Ctrl-C."""

import os
import signal
import threading
import time
from contextlib import contextmanager, nullcontext
from urllib.parse import quote

import psycopg
import pytest
from study_wire import watched

from chainscout.errors import Cancelled, ConnectionLost
from chainscout.study import Study

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid <> pg_backend_pid()"


@contextmanager
def locked(address, mode="ACCESS EXCLUSIVE"):
    """Nobody can read or change the journal; in the mode EXCLUSIVE, nobody can change it."""
    with psycopg.connect(address) as connection:
        connection.execute(f"LOCK TABLE journal IN {mode} MODE")
        yield
        connection.rollback()


@contextmanager
def cancelling(address):
    """An administrator cancels the first statement that waits for a lock."""

    def cancel():
        with psycopg.connect(address, autocommit=True) as connection:
            while not (found := connection.execute(WAITING).fetchall()):
                time.sleep(0.01)
            connection.execute("SELECT pg_cancel_backend(%s)", found[0])

    thread = threading.Thread(target=cancel)
    thread.start()
    yield
    thread.join()


def filled(address):
    study = Study.create(address, {"a": 3, "b": 2})
    for state in (0, 1, 2, 1):
        study.tell("a", state)
    study.tell("b", 0)
    return study


CALLS = {
    "tell": lambda study: study.tell("a", 2),
    "tell of another chain": lambda study: study.tell("b", 1),
    "tell_many": lambda study: study.tell_many([("a", 0), ("a", 1), ("b", 1)]),
    "restart": lambda study: study.restart("a"),
    "certificate": lambda study: study.certificate(),
    "progress": lambda study: study.progress(),
}
#: A call, and whether it waits where it reads or where it writes.
BLOCKED = [
    *((call, "ACCESS EXCLUSIVE") for call in CALLS), *((call, "EXCLUSIVE") for call in CALLS if call.startswith("tell"))
]  # fmt: skip
SENTENCE = (
    r"^postgresql://.* cancelled a statement \(canceling statement due to {}\): "
    "nothing was changed, and the call can be made again$"
)


@pytest.mark.parametrize(("call", "mode"), BLOCKED)
@pytest.mark.parametrize("why", ["statement timeout", "user request"])
def test_a_cancelled_statement_is_no_lost_connection(server, call, mode, why):
    address = server.address()
    filled(address).close()
    limit = quote(" -cstatement_timeout=300") if why == "statement timeout" else ""
    with Study.open(address + limit, continuing=True) as study, Study.open(address) as other:
        study.tell("a", 0)
        study.tell("a", 1)
        before, made = other.allocation(), study._keeper.journal._db
        ended = nullcontext() if limit else cancelling(address)
        with locked(address, mode), ended, pytest.raises(Cancelled, match=SENTENCE.format(why)) as caught:
            CALLS[call](study)
        assert not isinstance(caught.value, ConnectionLost)
        assert other.allocation() == before
        CALLS[call](study)
        study.tell("a", 2)
        assert study._keeper.journal._db is made
        assert study.ask() == other.ask()
        study.audit()


def test_a_worker_tells_again_what_a_cancelled_statement_did_not_store(server):
    address = server.address()
    with filled(address) as study:
        lease = study.worker("rig", renews=False).lease(600.0, steps=3, without={"b"})
        lease.tell(0)
        held = threading.Event()

        def stand_in_the_way():
            with locked(address), cancelling(address):
                held.set()

        thread = threading.Thread(target=stand_in_the_way)
        thread.start()
        held.wait()
        lease.tell(1)
        thread.join()
        assert [line.state for line in study.log("a")] == [0, 1, 2, 1, 0, 1]
        study.audit()


def test_an_interrupted_question_leaves_a_study_that_can_be_asked(server, tmp_path):
    """The server has prepared the statement, and Ctrl-C comes before its answer. Then the driver asks to cancel it."""
    address = server.address()
    filled(address).close()
    with watched(server, tmp_path / "0", address) as (study, wire):
        for state in (0, 1, 2):
            study.tell("a", state)
        made = wire.connections

        def interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            limit = time.monotonic() + 30
            while wire.connections == made and time.monotonic() < limit:
                time.sleep(0.01)

        wire.before_answer = interrupt
        with pytest.raises(KeyboardInterrupt):
            study.ask()
        assert wire.connections == made + 1
        study.tell("a", 1)
        with Study.open(address) as other:
            assert [study.ask() for _ in range(3)] == [other.ask()] * 3
        study.audit()
