"""What costs time on PostgreSQL is waiting for answers: asking and telling wait twice each."""

import psycopg

from chainscout.study import Study


def test_asking_and_telling_wait_twice_each(server, monkeypatch):
    """A statement is waited for, unless it is sent through a pipeline, which is waited for once, at its end."""
    waits = []
    execute, pipeline = psycopg.Cursor.execute, psycopg.Connection.pipeline

    def counted(self, *given, **more):
        if self.connection._pipeline is None:
            waits.append("statement")
        return execute(self, *given, **more)

    def opened(self):
        waits.append("pipeline")
        return pipeline(self)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    monkeypatch.setattr(psycopg.Connection, "pipeline", opened)
    with Study.create(server.address(), {"a": 3, "b": 3}) as study:
        study.tell_many([(name, t % 3) for t in range(1000) for name in "ab"])
        for step in range(15):  # a certificate is due after 250 of a chain, history after 20
            waits.clear()
            name = study.ask()
            asked = len(waits)
            study.tell(name, step % 3)
            if step >= 5:  # every record has been read once
                assert (asked, waits[asked:]) == (2, ["statement", "pipeline"])
