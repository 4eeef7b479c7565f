"""What the tests of journals share: places for journals, readers that fold, connections that stop at each statement."""

import itertools
import os
import sqlite3
from contextlib import ExitStack, closing
from urllib.parse import quote

from chainscout.journal.entry import FORMAT, START, Draft, Kind, packed
from chainscout.journal.opening import create, open_journal

#: The first entry of every journal in these tests.
CREATED = Draft(Kind.CREATED, more=packed(format=FORMAT, id="test"))


def told(value, more="", by=1):
    """An observation with this value."""
    return Draft(Kind.TOLD, chain=2, path=1, value=value, by=by, more=more)


class Schemas:
    """PostgreSQL, with a new schema for every journal."""

    def __init__(self, server):
        self.server = server
        self._numbers = itertools.count()

    def run(self, statement, *values):
        import psycopg

        with psycopg.connect(self.server.address, autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def address(self):
        name = f"journal{next(self._numbers)}"
        self.run(f"CREATE SCHEMA {name}")
        return self.server.address + "&options=" + quote(f"-csearch_path={name}")


class Place:
    """Makes journals of one kind, opens them again, and closes them at the end."""

    def __init__(self, kind, where):
        self.kind, self._where, self._open = kind, where, ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._open.close()

    def new(self, *drafts):
        """A new journal, and where it is."""
        where = self._where()
        return self._open.enter_context(closing(create(where, CREATED, *drafts))), where

    def again(self, journal, where, **options):
        """The same journal, opened once more as another process would."""
        if self.kind == "memory":
            return journal
        return self._open.enter_context(closing(open_journal(where, **options)))

    def change(self, where, statement):
        """Changes what is stored, past the journal."""
        if self.kind == "sqlite":
            with closing(sqlite3.connect(where)) as connection, connection:
                connection.execute(statement)
        else:
            import psycopg

            with psycopg.connect(where) as connection:
                connection.execute(statement)


class Reader:
    """A state: the entries that it has folded. Its commands decide by them."""

    #: As a session's number: no two readers write the same entry.
    numbers = itertools.count(os.getpid() * 1000)

    def __init__(self, journal, head=START):
        self.journal, self.head, self.entries, self.number = journal, head, [], next(self.numbers)

    def apply(self, entries):
        self.entries += entries
        if entries:
            self.head = entries[-1].head

    def read(self):
        self.apply(self.journal.read(self.head))
        return self

    def append(self, drafts=1):
        """Each new entry says how many entries its command knew: `decided` finds an old decision."""

        def command(tail):
            self.apply(tail)
            return [told(len(self.entries), by=self.number) for _ in range(drafts)]

        new = self.journal.append(self.head, command)
        self.apply(new)
        return new


def decided(entries):
    """Whether each entry was decided by a state that had all entries before its own append."""
    return all(
        entry.value == entry.number - 1 or (entry.value, entry.by) == (before.value, before.by)
        for before, entry in itertools.pairwise(entries)
    )


class Stepped:
    """A connection that calls ``at(number)`` before and after each statement: 0, 1 around the first, 2, 3, …"""

    def __init__(self, connection, at):
        self._connection, self._at, self._moments = connection, at, itertools.count()

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, *arguments):
        self._at(next(self._moments))
        done = self._connection.execute(*arguments)
        self._at(next(self._moments))
        return done

    def executemany(self, *arguments):
        self._at(next(self._moments))
        done = self._connection.executemany(*arguments)
        self._at(next(self._moments))
        return done

    def wait(self, *arguments, **options):
        """What a cursor of its own does in psycopg."""
        self._at(next(self._moments))
        done = self._connection.wait(*arguments, **options)
        self._at(next(self._moments))
        return done
