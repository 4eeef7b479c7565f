"""Places where a study can be: memory, SQLite, and a real PostgreSQL server started from a wheel."""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import postgres

from chainscout.study import Study


class Place:
    """Creates studies of one kind and opens them again."""

    def __init__(self, kind: str, where: Callable[[], Any]) -> None:
        self.kind = kind
        self._where = where
        self._studies: list[tuple[Study, Any]] = []

    def create(self, *arguments: Any, **options: Any) -> Study:
        where = self._where()
        study = Study.create(where, *arguments, **options)
        self._studies.append((study, where))
        return study

    def where(self, study: Study) -> Any:
        return next(where for known, where in self._studies if known is study)

    def reopen(self, study: Study, policy: Any = None, continuing: bool = True) -> Study:
        """The same study after its process has ended; in memory there is no such thing.

        ``continuing``: its chains stand where the study left them. In memory they always do.
        """
        where = self.where(study)
        if where is None:
            return study
        study.close()
        again = Study.open(where, policy, continuing=continuing)
        self._studies.append((again, where))
        return again

    def close(self) -> None:
        for study, _ in self._studies:
            study.close()


def lease(study: Study, worker: str, seconds: float = 60.0, **options: Any) -> Any:
    """A lease of a new worker, which does not renew it and does not wait for it."""
    return study.worker(worker, renews=False).lease(seconds, **{"wait": 0, **options})


#: A moment that no real clock shows in these tests: a study's clock never goes back.
LATER = 4e9


def set_clock(study: Study, now: float) -> None:
    """Lets the study's clock show ``now`` for ever: seconds since 1970, or a small number of seconds after `LATER`."""
    moment = int(1000 * (now if now > LATER / 4 else LATER + now))
    study._keeper.journal.now = lambda: moment  # type: ignore[method-assign]


class Server:
    """PostgreSQL, with a new schema for every study."""

    def __init__(self, folder: Path) -> None:
        self._schemas = itertools.count()
        # The tests end processes, not the machine: what the kernel has is safe without fsync.
        self.server = postgres.Server(folder)
        self.server.start()

    def run(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.server.address, autocommit=True) as connection:
            connection.execute(statement)

    def address(self) -> str:
        """The address of a new, empty schema."""
        name = f"study{next(self._schemas)}"
        self.run(f"CREATE SCHEMA {name}")
        return self.server.address + "&options=" + quote(f"-csearch_path={name}")

    def control(self, *words: str) -> None:
        """Runs pg_ctl on the server."""
        self.server.run("pg_ctl", *words)

    def restart(self) -> None:
        """Ends every connection at once, and is there again a little later."""
        self.control("-w", "-m", "immediate", "restart")

    def stop(self) -> None:
        self.server.stop("immediate")


@contextmanager
def running_server() -> Iterator[Server]:
    """A server in a folder of its own. Root cannot run one: then another user does, who must be able to go there."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        running = Server(Path(folder))
        yield running
        running.stop()
