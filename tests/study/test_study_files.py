"""The file that is open is the file that is there: links, deleted and replaced files, network disks, copies, logs."""

import multiprocessing
import os
import pickle
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chainscout.store import backup
from chainscout.store.sql import sqlite, sqlite_files
from study_checks import check
from study_rules import RULE
from study_worker import SIZES, Simulators, Worker, goes_on, is_sound

from chainscout.counts import Counts
from chainscout.errors import FileError, InputError
from chainscout.study import Browser, Study


def small(path: Path, observations: int = 5) -> Study:
    study = Study.create(path, {"a": 2, "b": 2}, budget=10_000)
    for number in range(observations):
        study.tell(study.ask(), number % 2)
    return study


# -- which file it is


def test_a_link_that_leads_elsewhere_later_changes_nothing(folder):
    for name in ("one", "two"):
        (folder / name).mkdir()
        small(folder / name / "study.db").close()
    link = folder / "study.db"
    link.symlink_to(folder / "one" / "study.db")
    with Study.open(link) as study:
        link.unlink()
        link.symlink_to(folder / "two" / "study.db")
        study.tell("a", 0)
    with Study.open(folder / "one" / "study.db") as one, Study.open(link) as two:
        assert (one.progress().observations, two.progress().observations) == (6, 5)
    assert not list(folder.glob("study.db-*"))


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
def test_a_file_that_is_deleted_under_an_open_study_is_an_error(folder, ending):
    path = folder / "study.db"
    study = small(path)
    Path(f"{path}{ending}").unlink()
    for _ in range(2):
        with pytest.raises(FileError, match="deleted or replaced while the study was open"):
            study.tell("a", 0)
    study.close()
    if not ending:
        with pytest.raises(FileError, match="deleted or replaced"):
            study.tell("a", 0)


def test_a_file_that_is_replaced_under_an_open_study_is_an_error(folder):
    """By another study, and by a copy of the same one: neither is written to."""
    path, other = folder / "study.db", folder / "other.db"
    for make in (lambda: small(other, 7).close(), lambda: backup(path, other)):
        study = small(path)
        make()
        content = other.read_bytes()
        os.replace(other, path)
        with pytest.raises(FileError, match="deleted or replaced while the study was open"):
            study.tell("a", 0)
        study.close()
        with pytest.raises(FileError, match="deleted or replaced while the study was open"):
            study.tell("a", 0)
        assert path.read_bytes() == content
        for leftover in folder.glob("study.db*"):
            leftover.unlink()


def test_network_file_systems(folder, monkeypatch):
    table = (
        "/dev/sda1 / ext4 rw 0 0\n"
        "server:/home /mnt/my\\040lab nfs4 rw 0 0\n"
        "tmpfs /mnt/my\\040lab/local tmpfs rw 0 0\n"
        "//server/data /data cifs rw 0 0\nbroken line\n"
        "/dev/sdb1 /data ext4 rw 0 0\n"
    )
    found = sqlite_files.network_mount
    assert found(Path("/mnt/my lab/study.db"), table) == ("/mnt/my lab", "nfs4")
    for local in ("/mnt/my lab/local/study.db", "/mnt/my laboratory.db", "/data/study.db", "/home/study.db"):
        assert found(Path(local), table) is None
    assert found(folder / "study.db", sqlite_files.MOUNTS.read_text()) is None  # the table of this machine
    path = folder / "shared" / "study.db"
    path.parent.mkdir()
    small(path).close()
    (folder / "link.db").symlink_to(path)
    mounts = folder / "mounts"
    mounts.write_text(f"server:/home {path.parent} nfs rw 0 0\n")
    monkeypatch.setattr(sqlite_files, "MOUNTS", mounts)
    for where in (path, folder / "link.db"):
        for use in (lambda where=where: Study.open(where), lambda where=where: Study.open(where, read_only=True)):
            with pytest.raises(FileError, match=r"network file system \(nfs at .*\).* PostgreSQL"):
                use()
    with pytest.raises(FileError, match="network file system"):
        Study.create(path.parent / "new.db", {"a": 2})
    assert not (path.parent / "new.db").exists()


# -- copies


def test_a_backup_is_complete_whoever_writes(folder):
    path = folder / "study.db"
    Study.create(path, SIZES, policy=RULE).close()
    worker = Worker(path)
    worker.hear(20)
    backup(path, folder / "copy.db")
    worker.hear(60)
    written = worker.kill()
    with Study.open(folder / "copy.db", RULE) as copy:
        copy.audit()
        assert 20 <= copy.progress().observations < len(written)
        goes_on(copy)
    assert not list(folder.glob("copy.db-*"))
    for log in folder.glob("study.db-*"):  # the original's log does not fit the copy
        shutil.copy(log, folder / log.name.replace("study", "copy"))
    with pytest.raises(FileError, match=r"not its own|damaged"):
        Study.open(folder / "copy.db", RULE)
    is_sound(path, [written]).close()


def test_what_cannot_be_backed_up(folder):
    small(folder / "study.db").close()
    (folder / "taken.db").write_text("here")
    for where, copy, sentence in (
        ("postgresql://host/base", folder / "copy.db", "pg_dump"),
        (folder / "study.db", "postgresql://host/base", "pg_dump"),
        (folder / "study.db", folder / "taken.db", "exists already"),
        (folder / "study.db", None, "in memory"),
    ):
        with pytest.raises(InputError, match=sentence):
            backup(where, copy)
    with pytest.raises(FileError, match="there is no study"):
        backup(folder / "none.db", folder / "copy.db")
    assert not list(folder.glob(".*"))
    assert not list(folder.glob("copy*"))


# -- the log that belongs to a file


@contextmanager
def killed(path: Path, number: int = 30) -> Iterator[dict[str, bytes]]:
    """The files of a study whose writer was killed, by their endings."""
    Study.create(path, SIZES, policy=RULE).close()
    worker = Worker(path)
    worker.hear(number)
    worker.kill()
    yield {ending: Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal", "-shm")}


def put(path: Path, files: dict[str, bytes]) -> None:
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
        if ending in files:
            Path(f"{path}{ending}").write_bytes(files[ending])


@pytest.mark.parametrize("through_link", [False, True])
def test_a_log_that_is_missing_cut_or_foreign_is_refused(folder, through_link):
    path = folder / "study.db"
    with killed(path) as files, killed(folder / "other.db") as other:
        where = path
        if through_link:
            (folder / "links").mkdir()
            where = folder / "links" / "study.db"
            where.symlink_to(path)
        wrong = {
            "is missing": {"": files[""]},
            "holds the last observations, is missing": {**files, "-wal": b""},
            "was cut off": {**files, "-wal": files["-wal"][: len(files["-wal"]) // 2]},
            "not its own|is damaged": {"": files[""], "-wal": other["-wal"]},
        }
        for sentence, found in wrong.items():
            for read_only in (False, True):
                put(path, found)
                with pytest.raises(FileError, match=sentence):
                    Study.open(where, RULE, read_only=read_only)
                assert path.read_bytes() == found[""]
        put(path, {"": files[""]})
        backup(where, folder / "rescued.db", without_log=True)
        with Study.open(folder / "rescued.db", RULE) as study:
            study.audit()
            goes_on(study)
        put(path, files)
        with Study.open(where, RULE) as study:
            study.audit()
            check(study, SIZES, RULE)


def test_an_older_log_of_the_same_study_is_refused(folder):
    path = folder / "study.db"
    with killed(path) as older:
        pass
    with Study.open(path, RULE, continuing=True) as study:
        simulators = Simulators("later")
        for _ in range(2 * sqlite._CHECKPOINT_EVERY):
            name = study.ask()
            study.tell(name, simulators.advance(name))
        now = {ending: Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal", "-shm")}
    put(path, {"": now[""], "-wal": older["-wal"]})
    with pytest.raises(FileError, match=r"not its own"):
        Study.open(path, RULE)
    put(path, now)
    Study.open(path, RULE).close()


def test_a_program_that_forgets_to_close_leaves_a_study_that_opens(folder):
    program = (
        "import sys\nfrom chainscout.study import Browser, Study\n"
        "studies = {}\n"
        "for number in map(int, sys.argv[2:]):\n"
        "    study = studies[number] = Study.create(f'{sys.argv[1]}/study{number}.db', {'a': 2}, budget=1000)\n"
        "    for step in range(number): study.tell('a', step % 2)\n"
        "del study, studies[98]\n"
    )
    numbers = (0, 1, 98, 99, 100, 101, 250)
    subprocess.run([sys.executable, "-c", program, str(folder), *map(str, numbers)], check=True)
    for number in numbers:
        path = folder / f"study{number}.db"
        with Study.open(path) as study:
            assert study.progress().observations == number
        with Study.open(path) as study:
            study.audit()


def test_the_log_does_not_grow_and_the_mark_is_taken_back(folder):
    path = folder / "study.db"
    with small(path) as study:
        sizes = []
        for step in range(6 * sqlite._CHECKPOINT_EVERY):
            study.tell("a", step % 2)
            if step % sqlite._CHECKPOINT_EVERY == 50:
                sizes.append(sqlite_files.log_size(path))
        assert sizes[-1] <= 1.2 * sizes[1], "check points do not begin the log anew"
        assert sqlite_files.is_open(sqlite_files.mark_of_the_file(path))
    assert not sqlite_files.is_open(sqlite_files.mark_of_the_file(path))
    assert not list(folder.glob("study.db-*"))


# -- readers that stall, permissions, leftovers


def test_a_reader_that_stalls_is_named(folder, monkeypatch):
    monkeypatch.setattr(sqlite, "_LARGE_LOG", 2**20)
    path = folder / "study.db"
    with small(path) as study:
        assert Browser(study).notes() == ()
        stalled = sqlite3.connect(path, isolation_level=None)
        stalled.execute("BEGIN")
        stalled.execute("SELECT * FROM study").fetchone()
        for step in range(3 * sqlite._CHECKPOINT_EVERY):
            study.tell("a", step % 2)
        (note,) = Browser(study).notes()
        assert "has been reading the study for long" in note
        stalled.close()
        sizes = []
        for _ in range(3):
            for step in range(sqlite._CHECKPOINT_EVERY + 10):
                study.tell("a", step % 2)
            sizes.append(sqlite_files.log_size(path))
        assert sizes[0] == sizes[1] == sizes[2], "the log is used again"
    with Study.open(path) as study:
        study.audit()


def test_new_files_are_no_wider_than_the_umask(folder):
    for mask, most in ((0o077, 0o600), (0o027, 0o640)):
        before = os.umask(mask)
        try:
            with small(folder / f"{mask}.db"):
                for file in folder.glob(f"{mask}.db*"):
                    assert stat.S_IMODE(file.stat().st_mode) & ~most == 0
        finally:
            os.umask(before)


def test_what_a_killed_maker_left_is_removed(folder):
    old, new = (folder / f".study.db.{name}.partial{ending}" for name, ending in (("0a", "-wal"), ("0b", "")))
    for file in (old, new):
        file.write_text("half a study")
    long_ago = time.time() - 2 * sqlite_files._LEFTOVER
    os.utime(old, (long_ago, long_ago))
    small(folder / "study.db").close()
    assert sorted(file.name for file in folder.iterdir()) == [new.name, "study.db"]


def test_random_cuts_of_the_log_never_lose_silently(folder):
    rng = random.Random(3)
    path = folder / "study.db"
    with killed(path) as files:
        for _ in range(10):
            put(path, {**files, "-wal": files["-wal"][: rng.randrange(len(files["-wal"]) - 4096)]})
            with pytest.raises(FileError, match="damaged"):
                Study.open(path, RULE)


# -- labels, open states and warm starts


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        *((f"UPDATE history SET {name} = {name} + 1 WHERE number = 3", "line 3 of the history is not what was written")
          for name in ("observations", "time", "own", "certificate", "variability")),
        ("UPDATE history SET chain = 1 WHERE number = 3", "line 3 of the history is not what was written"),
        ("UPDATE history SET number = 99 WHERE number = 3", "line 99 of the history is not what was written"),
        ("DELETE FROM history WHERE number = 3", "the history has 8 lines, and the study says 9"),
        ("DELETE FROM history WHERE number = 7", "the history has 8 lines, and the study says 9"),
    ],
)  # fmt: skip
def test_damaged_lines_of_history_are_found(folder, damage, sentence):
    path = folder / "study.db"
    with Study.create(path, {"a": 2, "b": 2}) as study:
        for first in range(5):
            study.tell_many([("a", (first + t) % 2) for t in range(60)])
        study.audit()
    with sqlite3.connect(path) as connection:
        assert connection.execute(damage).rowcount == 1
    connection.close()
    with pytest.raises(FileError, match=f"damaged: .*{sentence}"), Study.open(path) as study:
        study.audit()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("UPDATE label_list SET labels = replace(labels, 'busy', 'bury')", "the list of labels"),
        ("UPDATE state SET label = '\"rod\"' WHERE label = '\"red\"'", "the label of state"),
        ("DELETE FROM state WHERE position = 1", "a state of the chain 'colours' is missing"),
        ("UPDATE prior SET counts = zeroblob(16) WHERE state = 0", "what state 0 of chain"),
        ("DELETE FROM prior WHERE state = 1", "began with are not all there"),
    ],
)
def test_damaged_labels_open_states_and_warm_starts_are_found(folder, damage, sentence):
    path = folder / "study.db"
    warm = Counts.from_path([0, 1, 0, 1, 1], 2)
    study = Study.create(
        path,
        {"machine": ["idle", "busy"], "colours": [], "warm": 2},
        open_states=["colours"],
        warm_start={"warm": warm},
    )
    for label in ("red", "green", "red"):
        study.tell("colours", label)
    study.tell_many([("machine", "idle"), ("machine", "busy"), ("warm", 0), ("warm", 1)])
    study.audit()
    study.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute(damage).rowcount
    connection.close()
    with pytest.raises(FileError, match=f"damaged: .*{sentence}"), Study.open(path) as study:
        study.audit()


# -- other processes


def test_a_fork_while_threads_open_studies(folder):
    """The child can open the study, whatever the parent's threads were doing."""
    path = folder / "study.db"
    small(path).close()
    done = threading.Event()

    def keep_opening() -> None:
        while not done.is_set():
            Study.open(path, read_only=True).close()

    def child(pipe: Any) -> None:
        with Study.open(path, read_only=True) as study:
            pipe.send(study.progress().observations)

    threads = [threading.Thread(target=keep_opening) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(25):
            here, there = multiprocessing.Pipe(duplex=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # newer Pythons warn of forks of processes with threads
                process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
                process.start()
            try:
                assert here.poll(20), "the child waits for ever"
                assert here.recv() == 5
            finally:
                process.kill()
                process.join()
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_a_study_cannot_be_pickled(folder):
    with small(folder / "study.db") as study, pytest.raises(InputError, match=r"cannot be pickled: .* open it there"):
        pickle.dumps(study)


@pytest.mark.parametrize("issued", [0, 1, 1_000_000])
def test_a_damaged_number_of_a_draw_is_found(folder, issued):
    path = folder / "study.db"
    small(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE log SET issued = ? WHERE number = 3", (issued,))
    connection.close()
    with pytest.raises(FileError, match="is not of a draw of its own"), Study.open(path) as study:
        study.audit()
