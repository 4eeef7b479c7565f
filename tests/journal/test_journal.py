"""The laws of a journal, which are the same in memory, in SQLite and in PostgreSQL."""

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from journal_places import CREATED, Reader, Stepped, decided, told

from chainscout.errors import Busy, FileError, InputError
from chainscout.journal import journal as module
from chainscout.journal.entry import START, Draft, Head, Kind, packed, sealed, unpacked
from chainscout.journal.journal import Snapshot
from chainscout.journal.opening import create, open_journal


def test_what_is_appended_is_read(place):
    journal, where = place.new()
    drafts = [
        Draft(Kind.LABEL, chain=3, value=7, more=packed(label="Zürich\n\0\"\\' 🙂 %s {} ")),
        Draft(Kind.LEASE, chain=2**31 - 1, path=2**31 - 1, value=2**62, by=2**62),
        Draft(Kind.PATH_ENDED, value=-1),
    ]
    new = journal.append(START, lambda tail: drafts)
    assert [Draft(*entry[2:8]) for entry in new] == drafts
    entries = place.again(journal, where).read()
    assert entries == [entries[0], *new]
    assert all(isinstance(entry.kind, Kind) for entry in entries)
    assert unpacked(entries[1].more) == {"label": "Zürich\n\0\"\\' 🙂 %s {} "}
    assert entries == [*sealed(START, entries[0].time, [CREATED]), *sealed(entries[0].head, new[0].time, drafts)]


def test_a_command_gets_what_others_wrote_since_the_head(place):
    journal, where = place.new()
    one, two = Reader(journal).read(), Reader(place.again(journal, where))
    for turn in range(40):
        writer, other = (one, two) if turn % 3 else (two, one)
        writer.append(1 + turn % 4)
        if turn % 5 == 0:
            other.read()
    assert one.read().entries == two.read().entries == journal.read()
    assert decided(one.entries)


def test_who_refuses_stores_nothing(place):
    journal, where = place.new()
    one, two = Reader(journal).read(), Reader(place.again(journal, where)).read()
    two.append(3)

    def refuse(tail):
        one.apply(tail)
        raise InputError("no")

    for _ in range(2):
        with pytest.raises(InputError, match=r"^no$"):
            journal.append(one.head, refuse)
        assert one.entries == two.entries  # what the command was given was not lost
    assert journal.append(one.head, lambda tail: []) == []
    one.append()
    assert [entry.number for entry in two.read().entries] == [1, 2, 3, 4, 5]


def test_a_draft_that_cannot_be_stored_stores_nothing(place):
    journal, where = place.new()
    before = journal.read()
    with pytest.raises((UnicodeEncodeError, TypeError)):
        journal.append(START, lambda tail: [told(1), told(2, more="\ud800"), told(3)])
    assert place.again(journal, where).read() == before == journal.read()


def test_time_never_goes_back(place):
    journal, _ = place.new()
    (first,) = journal.read()
    assert abs(first.time - time.time() * 1000) < 60_000
    journal.now = lambda: first.time + 5_000
    ahead = journal.append(START, lambda tail: [told(0)])
    journal.now = lambda: first.time - 5_000
    behind = journal.append(START, lambda tail: [told(0)])
    assert [ahead[0].time, behind[0].time] == [first.time + 5_000] * 2


def test_pages_are_the_journal(place):
    journal, where = place.new()
    journal.append(START, lambda tail: [told(value) for value in range(25)])
    whole = journal.read()
    assert len(whole) == 26
    for head in (START, whole[0].head, whole[9].head, whole[-1].head):
        for most in (1, 2, 7, 26, 100):
            assert journal.read(head, most) == whole[head.number : head.number + most]
    again = place.again(journal, where)
    assert [entry for page in again.pages() for entry in page] == whole
    assert again.check_whole() == whole[-1].head


def test_a_kind_that_is_not_known_is_said(lasting):
    journal, where = lasting.new()
    later = [told(0)._replace(kind=99)]
    journal.append(START, lambda tail: later)
    with pytest.raises(FileError, match="written by a later version of chainscout: entry 2 has the kind 99"):
        lasting.again(journal, where).read()


@pytest.mark.parametrize("cut", [1, 2, 4])
def test_a_journal_that_went_back_is_refused(lasting, cut):
    """A server that failed over, or a file that was restored: the next entry would leave a gap or rewrite history."""
    journal, where = lasting.new()
    reader = Reader(journal).read()
    for _ in range(4):
        reader.append()
    lasting.change(where, f"DELETE FROM journal WHERE number > {5 - cut}")
    for attempt in (reader.append, reader.read):
        with pytest.raises(FileError, match="no longer has entry 5, which was read from it"):
            attempt()
    other = Reader(lasting.again(journal, where)).read()
    for _ in range(cut + 1):  # the same numbers with other entries
        other.append(1)
    for attempt in (reader.append, reader.read):
        with pytest.raises(FileError, match="no longer has entry 5"):
            attempt()
    assert len(other.read().entries) == 6


def test_a_reader_writes_nothing(lasting):
    journal, where = lasting.new()
    reader = lasting.again(journal, where, read_only=True)
    for attempt in (
        lambda: reader.append(START, lambda tail: [told(0)]),
        lambda: reader.keep(Snapshot("", START, b"")),
    ):
        with pytest.raises(InputError, match="was opened to be read only"):
            attempt()
    journal.append(START, lambda tail: [told(0)])
    assert reader.read() == journal.read()


def test_a_closed_journal_says_so(place):
    journal, _ = place.new()
    journal.close()
    journal.close()
    for attempt in (journal.read, journal.snapshot, lambda: journal.append(START, lambda tail: [])):
        with pytest.raises(InputError, match="was closed: open it again"):
            attempt()


def test_a_forked_child_is_refused(place):
    journal, where = place.new()
    parent, child = os.getpid(), os.getpid() + 1
    journal._process = child
    for attempt in (journal.read, journal.snapshot, lambda: journal.append(START, lambda tail: [])):
        with pytest.raises(InputError, match="was opened before this process was forked: open it again in the child"):
            attempt()
    journal.close()  # leaves the parent's connection alone
    journal._process = parent
    assert journal.read() == place.again(journal, where).read()


def test_a_second_study_at_a_place_is_refused(lasting):
    journal, where = lasting.new()
    with pytest.raises(InputError, match="exists already"):
        create(where, CREATED)
    assert len(journal.read()) == 1


# -- snapshots


def test_a_snapshot_is_a_cache(lasting):
    journal, where = lasting.new()
    assert journal.snapshot() is None
    reader = Reader(journal).read()
    for content in (b"one", b"\0two\xff" * 1000):
        reader.append()
        assert journal.keep(Snapshot("rule 1", reader.head, content))
        assert lasting.again(journal, where).snapshot() == Snapshot("rule 1", reader.head, content)
    reader.append()
    found = lasting.again(journal, where).snapshot()
    assert journal.read(found.head) == reader.entries[found.head.number :]
    lasting.change(where, "DELETE FROM snapshot")
    assert lasting.again(journal, where).snapshot() is None
    assert lasting.again(journal, where).read() == reader.entries


def test_a_snapshot_that_the_journal_does_not_reach_shows_that_it_was_cut(lasting):
    journal, where = lasting.new()
    reader = Reader(journal).read()
    reader.append(5)
    journal.keep(Snapshot("", reader.head, b""))
    lasting.change(where, "DELETE FROM journal WHERE number > 4")
    with pytest.raises(FileError, match="no longer has entry 6"):
        lasting.again(journal, where).snapshot()


def test_memory_keeps_no_snapshot():
    journal = create(None, CREATED)
    assert journal.keep(Snapshot("", START, b""))
    assert journal.snapshot() is None
    assert journal.notes() == ()
    with pytest.raises(InputError, match="a study in memory cannot be opened again"):
        open_journal(None)


# -- several writers


def test_threads_with_states_of_their_own(place):
    journal, where = place.new()
    readers = [Reader(place.again(journal, where)) for _ in range(4)]
    threads = [threading.Thread(target=lambda r=reader: [r.append(1 + n % 2) for n in range(25)]) for reader in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = journal.read()
    assert len(entries) == 1 + 4 * 37
    assert decided(entries)
    assert all(reader.read().entries == entries for reader in readers)


PROCESS = """
import sys
sys.path.insert(0, sys.argv[2])
from journal_places import Reader, open_journal
reader = Reader(open_journal(sys.argv[1]))
for turn in range(60):
    reader.append(1 + turn % 3)
assert reader.entries == reader.journal.read()[: len(reader.entries)]
reader.journal.close()
"""


def test_processes_side_by_side(lasting):
    journal, where = lasting.new()
    command = [sys.executable, "-c", PROCESS, where, Path(__file__).parent]
    running = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    entries = journal.read()
    assert len(entries) == 1 + 4 * 120
    assert decided(entries)


def moments_of(append, journal):
    """How many moments the statements of an append have."""
    seen = []
    connection, journal._db = journal._db, Stepped(journal._db, seen.append)
    append()
    journal._db = connection
    return len(seen)


@pytest.mark.parametrize("in_turn", [False, True])
def test_another_writer_at_every_moment_of_an_append(lasting, in_turn):
    """It writes before, or it waits and writes afterwards: never in between, and never with an old state."""
    journal, where = lasting.new()
    one, two, three = (Reader(lasting.again(journal, where, patience=0.02)) for _ in range(3))
    for reader in (one, two, three):
        reader.read()
    moments = moments_of(one.append, one.journal)
    connection, blocked = one.journal._db, 0
    for moment in range(moments + 6):
        if in_turn:
            two.append()
        if in_turn or lasting.kind == "sqlite":
            one.append()  # PostgreSQL: the next ones take turns too

        def meddle(number, moment=moment):
            nonlocal blocked
            if number == moment:
                for other in (two, three):
                    try:
                        other.append(2)
                    except Busy:
                        blocked += 1

        one.journal._db = Stepped(connection, meddle)
        one.append()
        one.journal._db = connection
        one.read(), two.append(), three.read()
    entries = journal.read()
    assert decided(entries)
    assert all(reader.read().entries == entries for reader in (one, two, three))
    assert blocked


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interruption_at_every_moment_of_an_append(lasting, error):
    """All of the append is stored, or nothing. The lock is free, and the same journal goes on."""
    journal, where = lasting.new()
    reader, other = Reader(journal).read(), Reader(lasting.again(journal, where, patience=1.0))
    other.read()
    moments = moments_of(reader.append, journal) + 4
    stored = set()
    for moment in range(moments):
        for crowd in (0, 1) if lasting.kind == "postgres" else (0,):
            reader.read()
            journal._crowd = crowd
            before = len(other.read().entries)

            def interrupt(number, moment=moment):
                if number == moment:
                    raise error

            connection, journal._db = journal._db, Stepped(journal._db, interrupt)
            try:
                reader.append(3)
            except error:
                pass
            finally:
                if isinstance(journal._db, Stepped):
                    journal._db = connection
            after = len(other.read().entries)
            assert after - before in (0, 3)
            stored.add(after - before)
            other.append()
            reader.append()
    assert stored == {0, 3}
    assert reader.read().entries == other.read().entries == lasting.again(journal, where).read()
    assert decided(reader.entries)


#: Seconds for which the machine's writers wait: those of PostgreSQL say so to the server when they connect.
PATIENT = 0.05


class Writers(RuleBasedStateMachine):
    """Three states that follow one journal, in any order: each always has a prefix of it, and decides by all of it."""

    place = None

    @initialize()
    def begin(self):
        self.journal, self.where = self.place.new()
        self.readers = [self.opened() for _ in range(3)]
        self.expected = self.journal.read()

    def opened(self):
        return Reader(self.place.again(self.journal, self.where, patience=PATIENT))

    who = st.integers(0, 2)

    @rule(who=who, drafts=st.integers(0, 4))
    def append(self, who, drafts):
        reader = self.readers[who]
        new = reader.append(drafts)
        assert len(new) == drafts
        self.expected += new
        if drafts:
            assert reader.entries == self.expected

    @rule(who=who, moments=st.lists(st.tuples(st.integers(0, 9), who, st.integers(0, 3)), max_size=3))
    def append_while_others_do(self, who, moments):
        """Others append at some moments of this append, before or after each of its statements."""
        if self.place.kind == "memory":
            return
        reader, begun = self.readers[who], []

        def meddle(number):
            for moment, other, drafts in moments:
                if moment == number and other != who and other not in begun:
                    begun.append(other)
                    with suppress(Busy):  # the writer has the lock: then nothing was changed
                        self.readers[other].append(drafts)

        connection, reader.journal._db = reader.journal._db, Stepped(reader.journal._db, meddle)
        new = reader.append(2)
        reader.journal._db = connection
        assert len(new) == 2
        self.expected = self.journal.read()
        assert reader.entries == self.expected[: len(reader.entries)]

    @rule(who=who, most=st.none() | st.integers(1, 3))
    def read(self, who, most):
        reader = self.readers[who]
        found = reader.journal.read(reader.head, most)
        assert found == self.expected[reader.head.number :][:most]
        reader.apply(found)

    @rule(who=who, gets_tail=st.booleans())
    def refuse(self, who, gets_tail):
        reader = self.readers[who]

        def command(tail):
            if gets_tail:
                reader.apply(tail)
            raise InputError("no")

        with pytest.raises(InputError, match="no"):
            reader.journal.append(reader.head, command)

    @rule(who=who)
    def open_again(self, who):
        if self.place.kind != "memory":
            self.readers[who].journal.close()
        reader = self.readers[who] = self.opened()
        found = reader.journal.snapshot()
        if found is not None:
            assert self.expected[found.head.number - 1].head == found.head
            assert found.content == b"%d" % found.head.number
            reader.entries, reader.head = self.expected[: found.head.number], found.head

    @rule(who=who)
    def keep(self, who):
        reader = self.readers[who]
        if reader.head != START:
            assert reader.journal.keep(Snapshot("key", reader.head, b"%d" % reader.head.number))

    @rule()
    def drop_the_snapshot(self):
        if self.place.kind != "memory":
            self.place.change(self.where, "DELETE FROM snapshot")

    @invariant()
    def each_state_is_a_prefix(self):
        for reader in self.readers:
            assert reader.entries == self.expected[: reader.head.number]
            assert reader.head == (reader.entries[-1].head if reader.entries else START)

    def teardown(self):
        if hasattr(self, "readers"):
            assert self.journal.read() == self.expected
            assert decided(self.expected)
            if self.place.kind != "memory":
                for reader in self.readers:
                    reader.journal.close()
                self.journal.close()


def machine(place, examples, steps):
    found = type("Writers", (Writers,), {"place": place})
    run_state_machine_as_test(found, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None))


def test_every_state_is_a_prefix_whoever_writes(place):
    machine(place, 20, 25)


@pytest.mark.soak
def test_every_state_is_a_prefix_whoever_writes_at_length(place):
    machine(place, 500, 60)


def test_a_head_is_where_an_entry_ends():
    entries = sealed(Head(7, 1000, 99), 900, [told(1), told(2)])
    assert [entry.head for entry in entries] == [(8, 1000, entries[0].digest), (9, 1000, entries[1].digest)]


def test_a_writer_that_was_idle_reads_before_it_takes_the_lock(place, monkeypatch):
    """What others wrote meanwhile may be long, and nobody should wait while it is read."""
    journal, where = place.new()
    one, two = Reader(place.again(journal, where)).read(), Reader(journal).read()
    two.append(5)
    one.journal._latest -= 2 * module._IDLE
    given = []

    def command(tail):
        given.append(list(tail))
        one.apply(tail)
        if len(given) == 1:
            assert len(one.entries) == 6
        return [told(len(one.entries), by=one.number)]

    one.apply(one.journal.append(one.head, command))
    assert sum(map(len, given)) == 5
    assert one.entries == two.read().entries
    assert decided(one.entries)
