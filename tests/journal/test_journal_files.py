"""The journal in a file: which file it is, its log and its mark, copies, archives, what is refused, writers killed."""

import os
import random
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from journal_places import CREATED, Reader, Stepped, decided, told

from chainscout.errors import Busy, FileError, InputError
from chainscout.journal import files, sqlite
from chainscout.journal.backup import backup
from chainscout.journal.entry import FORMAT, Draft, Kind, packed
from chainscout.journal.opening import check_place, create, exists, holds_database, open_journal


@pytest.fixture
def opened():
    """Opens journals, and closes them at the end."""
    with ExitStack() as stack:
        yield lambda *given, **options: stack.enter_context(closing(open_journal(*given, **options)))


@pytest.fixture
def path(folder):
    """A journal with one entry."""
    found = folder / "study.db"
    create(found, CREATED).close()
    return found


def beside(path, ending):
    return Path(f"{path}{ending}")


def copied(path, target):
    """The file, its log and its index as they are on the disk now: what a crash of the machine would leave."""
    for ending in ("", "-wal", "-shm"):
        if beside(path, ending).exists():
            shutil.copy(beside(path, ending), beside(target, ending))
    return target


# -- which file it is


def test_a_link_that_leads_elsewhere_later_changes_nothing(folder):
    for name in ("one", "two"):
        (folder / name).mkdir()
        create(folder / name / "study.db", CREATED).close()
    link = folder / "study.db"
    link.symlink_to(folder / "one" / "study.db")
    with closing(open_journal(link)) as journal:
        link.unlink()
        link.symlink_to(folder / "two" / "study.db")
        Reader(journal).append()
    with closing(open_journal(folder / "one" / "study.db")) as one, closing(open_journal(link)) as two:
        assert (len(one.read()), len(two.read())) == (2, 1)
    assert not list(folder.glob("study.db-*"))


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_file_that_is_deleted_or_replaced_is_an_error(path, folder, opened, ending, is_replaced, is_quiet):
    """By a copy of itself too: entries would go into a file that nobody sees."""
    journal = opened(path)
    reader = Reader(journal)
    reader.append(3)
    copy = copied(path, folder / "copy.db")
    if is_quiet:  # nothing has changed in the folder for long
        os.utime(folder, (0, 0))
    reader.append()
    assert bool(journal._folder) == is_quiet
    beside(path, ending).unlink()
    if is_replaced:
        os.replace(beside(copy, ending), beside(path, ending))
    for _ in range(2):
        with pytest.raises(FileError, match="deleted or replaced while the study was open, so nothing was changed"):
            reader.append()
    if not ending:
        with pytest.raises(FileError, match="deleted or replaced while the study was open"):
            reader.read()


def test_a_folder_that_is_renamed_under_an_open_study_is_an_error(folder, opened):
    lab = folder / "lab"
    lab.mkdir()
    create(lab / "study.db", CREATED).close()
    reader = Reader(opened(lab / "study.db"))
    reader.append()
    lab.rename(folder / "old")
    for attempt in (reader.append, reader.read):
        with pytest.raises(FileError, match="deleted or replaced while the study was open, so nothing was changed"):
            attempt()
    (folder / "old").rename(lab)
    reader.append()


def test_network_file_systems(path, folder, monkeypatch):
    table = folder / "mounts"
    table.write_text(f"server:/x {folder} nfs4 rw 0 0\n")
    monkeypatch.setattr(files, "MOUNTS", table)
    for attempt in (
        lambda: create(folder / "new.db", CREATED),
        lambda: open_journal(path),
        lambda: backup(path, folder / "copy.db"),
    ):
        with pytest.raises(FileError, match=r"is on a network file system \(nfs4 at .*or in PostgreSQL"):
            attempt()
    assert not list(folder.glob("*new.db*"))
    monkeypatch.setattr(files, "MOUNTS", folder / "missing")
    open_journal(path).close()


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["/dev/sda / ext4 rw 0 0"], None),
        (["s:/ /data nfs rw 0 0"], ("/data", "nfs")),
        (["s:/ /data nfs rw 0 0", "/dev/sdb /data/lab ext4 rw 0 0"], None),
        (["/dev/sdb /data ext4 rw 0 0", "s:/ /data fuse.sshfs rw 0 0"], ("/data", "fuse.sshfs")),
        (["s:/ /dat nfs rw 0 0", "nonsense"], None),
        (["s:/ /data/l\\141b cifs rw 0 0"], ("/data/lab", "cifs")),
    ],
)
def test_mounts(lines, found):
    assert files.network_mount(Path("/data/lab/study.db"), "\n".join(lines)) == found


# -- new files


def test_a_new_file_never_replaces_another(folder):
    path = folder / "study.db"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        create(path, CREATED)
    assert path.read_text() == "mine"
    path.unlink()

    def late():
        with files.new_file(path) as partial:
            partial.write_text("late")
            path.write_text("early")

    with pytest.raises(InputError, match="exists already"):
        late()
    assert path.read_text() == "early"
    assert [found.name for found in folder.iterdir()] == ["study.db"]


def test_a_new_file_is_whole_or_not_there(folder):
    def beginning(now):
        yield from ()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), files.new_file(folder / "study.db") as partial:
        sqlite.fill(partial, beginning)
    assert not list(folder.iterdir())
    with pytest.raises(FileError, match="could not be made"):
        create(folder / "no folder" / "study.db", CREATED)


def test_new_files_are_no_wider_than_the_umask(folder, opened):
    before = os.umask(0o077)
    try:
        create(folder / "study.db", CREATED).close()
        Reader(opened(folder / "study.db")).append()
    finally:
        os.umask(before)
    modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in folder.iterdir()}
    assert modes == dict.fromkeys(("study.db", "study.db-wal", "study.db-shm"), 0o600)


def test_what_a_killed_maker_left_is_removed(folder):
    old, new, other = (folder / f".{name}.partial" for name in ("a.db.1", "a.db.2", "b.db.1"))
    for found in (old, new, other):
        found.touch()
    os.utime(old, (0, 0))
    create(folder / "a.db", CREATED).close()
    assert {found.name for found in folder.iterdir()} == {"a.db", new.name, other.name}


# -- what is no study


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + b"x" * 4000, bytes(8192)])
def test_a_file_of_something_else(folder, content):
    path = folder / "study.db"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"study.db is (damaged, or is )?not a study"):
        open_journal(path)
    assert path.read_bytes() == content


def test_a_database_of_something_else(folder):
    path = folder / "study.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE journal (number)")
    with pytest.raises(FileError, match="is not a study: it is a database of something else"):
        open_journal(path)
    assert holds_database(path)
    assert not holds_database(folder)


def test_a_study_of_an_earlier_format(folder):
    path = folder / "study.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"PRAGMA application_id = {sqlite._APPLICATION}")
        database.execute("CREATE TABLE study (id INTEGER, format INTEGER)")
        database.execute("INSERT INTO study VALUES (1, 13)")
    with pytest.raises(FileError, match="has the format 13, and this version of chainscout reads only the format 15"):
        open_journal(path)


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        (Draft(Kind.CREATED, more=packed(format=FORMAT + 1)), f"has the format {FORMAT + 1}"),
        (Draft(Kind.CREATED), "has the format None"),
        (told(0), "its first entry does not create one"),
        (None, "its first entry does not create one"),
    ],
)
def test_a_journal_that_begins_otherwise(folder, first, sentence):
    with pytest.raises(FileError, match=sentence):
        create(folder / "study.db", *([first] if first else []))
    with pytest.raises(FileError, match=sentence):
        open_journal(folder / "study.db")


def test_places(folder):
    for given in (1.5, "", "http://x", "a\0b", "\ud800"):
        with pytest.raises(InputError):
            check_place(given)
    for given in (None, "a.db", folder, "postgresql://x"):
        check_place(given)
    assert not exists(None)
    assert not exists(folder / "study.db")
    for given, sentence in ((folder, "it is a directory"), (folder / "no", "there is no study at")):
        with pytest.raises(FileError, match=sentence):
            open_journal(given)
    os.mkfifo(folder / "pipe")
    with pytest.raises(FileError, match="it is no file"):
        open_journal(folder / "pipe")


# -- the log and the mark


def test_check_points_keep_the_log_short_and_the_mark_says_what_the_file_needs(path, opened, monkeypatch):
    monkeypatch.setattr(sqlite, "_CHECKPOINT_EVERY", 10)
    reader = Reader(opened(path))
    sizes = set()
    for _ in range(100):
        reader.append()
        sizes.add(beside(path, "-wal").stat().st_size)
        assert not reader.journal._needs_log()
    assert max(sizes) < 200_000
    alone = shutil.copy(path, path.with_name("alone.db"))
    with pytest.raises(FileError, match="its write-ahead log, which holds the last observations, is missing; put back"):
        open_journal(alone)
    head = backup(alone, path.with_name("rescued.db"), without_log=True)
    assert 80 < head.number <= 101
    assert opened(path.with_name("rescued.db")).read() == reader.entries[: head.number]
    assert opened(copied(path, path.with_name("both.db"))).read() == reader.entries
    reader.journal.close()
    assert not beside(path, "-wal").exists()
    assert opened(shutil.copy(path, path.with_name("closed.db"))).read() == reader.entries


def test_a_large_batch_and_a_large_log_are_put_away(path, opened, monkeypatch):
    reader = Reader(opened(path))
    reader.append(sqlite._BATCH * sqlite._CHECKPOINT_EVERY)
    assert reader.journal._appends > sqlite._CHECKPOINT_EVERY
    copy = copied(path, path.with_name("copy.db"))
    monkeypatch.setattr(sqlite, "_LARGE_LOG", 1000)
    assert opened(copy).notes()[0].startswith("the write-ahead log beside")
    assert copy.stat().st_size > 1_000_000
    reader.append()
    assert reader.journal._appends == 1
    assert opened(copy).read() == reader.entries[:-1]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_check_point_that_is_cut_off_at_any_moment(path, opened, monkeypatch, read_only):
    """What is on the disk then is the study; the mark is taken back as soon as somebody writes."""
    monkeypatch.setattr(sqlite, "_CHECKPOINT_EVERY", 3)
    reader = Reader(opened(path))
    for moment in range(20):
        found = []

        def copy(number, moment=moment, found=found):
            if number == moment:
                found.append(copied(path, path.with_name(f"copy{moment}.db")))

        connection = reader.journal._db
        reader.journal._db = Stepped(connection, copy)
        before = len(reader.entries)
        for _ in range(4):
            reader.append()
        reader.journal._db = connection
        again = opened(found[0], read_only=read_only)
        number = len(again.read())
        assert before <= number <= len(reader.entries)
        assert again.read() == reader.entries[:number]
        if not read_only:
            assert not again._needs_log()
            again.close()
            assert opened(found[0]).read() == reader.entries[:number]


def test_another_process_opens_at_every_moment_of_a_check_point(path, opened, monkeypatch):
    monkeypatch.setattr(sqlite, "_CHECKPOINT_EVERY", 1)
    reader = Reader(opened(path))
    reader.append()
    blocked = 0
    for moment in range(24):

        def meddle(number, moment=moment):
            nonlocal blocked
            if number == moment:
                try:
                    with closing(open_journal(path, patience=0.01)) as journal:
                        Reader(journal).append()
                except Busy:
                    blocked += 1

        connection = reader.journal._db
        reader.journal._db = Stepped(connection, meddle)
        reader.append()
        reader.journal._db = connection
        assert not reader.journal._needs_log()
        reader.read()
    assert blocked
    assert decided(reader.entries)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_program_that_forgets_to_close_leaves_a_study_that_opens(path):
    program = (
        "import sys; sys.path.insert(0, sys.argv[2]); from journal_places import *; "
        "reader = Reader(open_journal(sys.argv[1])); [reader.append() for _ in range(900)]"
    )
    subprocess.run([sys.executable, "-c", program, path, Path(__file__).parent], check=True)
    with closing(open_journal(path)) as journal:
        assert len(journal.read()) == 901


# -- copies beside writers, readers of archives


def test_a_backup_is_a_prefix_whoever_writes(path, opened, monkeypatch):
    monkeypatch.setattr(sqlite, "_CHECKPOINT_EVERY", 5)
    reader, stop = Reader(opened(path)), threading.Event()
    thread = threading.Thread(target=lambda: [reader.append(1 + n % 3) for n in range(10**6) if not stop.is_set()])
    thread.start()
    heads = []
    try:
        for number in range(6):
            copy = path.with_name(f"copy{number}.db")
            heads.append((backup(path, copy), opened(copy).read()))
            while len(reader.entries) <= heads[-1][0].number and thread.is_alive():  # until it has written more
                time.sleep(0.002)
    finally:
        stop.set()
        thread.join()
    assert [head.number for head, _ in heads] == sorted({head.number for head, _ in heads})
    for head, entries in heads:
        assert entries == reader.entries[: head.number]


def test_what_cannot_be_backed_up(path, folder):
    for copy in (path, folder):
        with pytest.raises(InputError, match="exists already"):
            backup(path, copy)
    with pytest.raises(InputError, match="a study in memory has none"):
        backup(path, None)
    with pytest.raises(FileError, match="there is no study at"):
        backup(folder / "no.db", folder / "copy.db")
    assert not list(folder.glob("*copy*"))


@pytest.fixture
def archive(path, monkeypatch):
    """A study in a folder that cannot be written. (Root can write everywhere, so the question is answered here.)"""

    def lock():
        path.parent.chmod(0o555)
        path.chmod(0o444)
        writable = os.access
        monkeypatch.setattr(sqlite.os, "access", lambda what, how: what != path.parent and writable(what, how))

    yield lock
    path.parent.chmod(0o755)


def test_an_archive_is_read_without_a_write(path, archive, opened):
    with closing(open_journal(path)) as journal:
        Reader(journal).append(3)
    archive()
    journal = opened(path, read_only=True)
    assert len(journal.read()) == 4
    assert journal.check_whole().number == 4
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_an_archive_that_changes_is_read_again(path, archive, opened):
    with closing(open_journal(path)) as journal:
        Reader(journal).append(3)
    archive()
    reader = Reader(opened(path, read_only=True)).read()
    assert reader.journal._frozen
    path.parent.chmod(0o755)  # of somebody who may write there
    path.chmod(0o644)
    with closing(open_journal(path)) as journal:
        Reader(journal).append(2)
    assert len(reader.read().entries) == 6


@contextmanager
def seen_read_only(folder):
    """The same folder at another place, where nothing can be written. Where mounting is not allowed, the test fails."""
    place = folder.with_name(f"{folder.name}-archive")
    place.mkdir()
    for words in (["--bind", folder, place], ["-o", "remount,ro,bind", place]):
        done = subprocess.run(["mount", *words], capture_output=True, text=True)
        assert done.returncode == 0, f"a folder must be mounted read only, and could not be: {done.stderr}"
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
        place.rmdir()


@pytest.mark.system
def test_who_reads_in_a_folder_that_cannot_be_written_sees_what_others_write(path, folder):
    with seen_read_only(folder) as archive, closing(open_journal(archive / path.name, read_only=True)) as journal:
        reader = Reader(journal).read()
        assert journal._frozen
        with pytest.raises(FileError, match="could not be opened: its folder cannot be written, and nothing was chang"):
            open_journal(archive / path.name)
        for _ in range(3):  # at first there is no log, then it is there to be read, then it has been put away
            with closing(open_journal(path)) as writing:
                writer = Reader(writing)
                for _ in range(2):
                    writer.append()
                    assert reader.read().entries == writer.entries
            assert reader.read().entries == writer.entries
        with pytest.raises(FileError, match="may not be written"), closing(open_journal(archive / path.name)) as same:
            Reader(same).append()
        with pytest.raises(FileError, match="could not be made"):
            create(archive / "other.db", CREATED)


@pytest.mark.system
def test_a_log_in_a_folder_that_cannot_be_written_is_not_passed_over(path, folder, tmp_path, opened):
    reader = Reader(opened(path))
    reader.append(3)
    copy = tmp_path / "lab"
    copy.mkdir()
    copied(path, copy / "study.db")
    with seen_read_only(copy) as archive:
        with closing(open_journal(archive / "study.db", read_only=True)) as journal:
            assert journal.read() == reader.entries
        beside(copy / "study.db", "-shm").unlink()
        with pytest.raises(FileError, match="holds observations that can only be read in a folder that can be written"):
            open_journal(archive / "study.db", read_only=True)


def test_who_reads_writes_nothing(path, opened):
    Reader(opened(path)).append(3)
    copy = copied(path, path.with_name("copy.db"))
    beside(copy, "-shm").unlink()
    before = copy.read_bytes(), beside(copy, "-wal").read_bytes()
    with closing(open_journal(copy, read_only=True)) as journal:
        assert len(journal.read()) == 4
    assert before == (copy.read_bytes(), beside(copy, "-wal").read_bytes())


# -- writers that are stuck, disks that are full


def test_who_holds_the_lock_for_too_long_is_named(path, opened):
    reader = Reader(opened(path, patience=0.05))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy, match=r"has held the write lock of .* for 0.05 seconds: nothing was changed"):
            reader.append()
        assert len(reader.read().entries) == 1
        other.execute("ROLLBACK")
    reader.append()


def test_a_full_disk_at_any_moment(path, opened, monkeypatch):
    """The batch that does not fit is refused whole, a snapshot that does not fit is no error, and reading goes on."""
    from chainscout.journal.journal import Snapshot

    reader = Reader(opened(path))
    reader.append()
    for pages in range(reader.journal._db.execute("PRAGMA page_count").fetchone()[0], 12):
        reader.journal._db.execute(f"PRAGMA max_page_count = {pages}")
        before = len(reader.entries)
        with pytest.raises(FileError, match=r"could not be written \(database or disk is full\): nothing was changed"):
            reader.append(3000)
        assert not reader.journal.keep(Snapshot("", reader.head, bytes(10**6)))
        assert len(reader.read().entries) == before
    reader.journal._db.execute("PRAGMA max_page_count = 1000000")
    reader.append(100)
    assert decided(reader.entries)


# -- damage


def damaged(path, opened, statement):
    copy = path.with_name("damaged.db")
    for ending in ("", "-wal", "-shm"):
        beside(copy, ending).unlink(missing_ok=True)
    backup(path, copy)
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute(statement)
    return copy


COLUMNS = ("time", "kind", "chain", "path", "value", "by", "digest")


@pytest.mark.parametrize("number", [1, 4, 9])
def test_every_change_of_an_entry_is_found_with_its_number(path, opened, number):
    Reader(opened(path)).append(8)
    sentence = rf"is damaged: entry {number} is not what was written; the {number - 1} entries before it are whole"
    changes = [f"{column} = {column} + 1" for column in COLUMNS] + ["more = more || ' '", "more = x'00'", "time = 'x'"]
    for change in changes:
        copy = damaged(path, opened, f"UPDATE journal SET {change} WHERE number = {number}")
        with pytest.raises(FileError, match=sentence), closing(open_journal(copy)) as journal:
            journal.check_whole()


@pytest.mark.parametrize(
    ("statements", "sentence"),
    [
        (["DELETE FROM journal WHERE number = 5"], "entry 5 is missing"),
        (["DELETE FROM journal WHERE number = 1"], "entry 1 is missing"),
        (["DELETE FROM journal WHERE number = 5", "UPDATE journal SET number = number - 1 WHERE number > 5"],
         "entry 5 is not what was written"),
        (["UPDATE journal SET number = -1 WHERE number = 3", "UPDATE journal SET number = 3 WHERE number = 7",
          "UPDATE journal SET number = 7 WHERE number = -1"], "entry 3 is not what was written"),
        (["INSERT INTO journal SELECT 10, time, kind, chain, path, value, by, more, digest FROM journal"
          " WHERE number = 9"], "entry 10 is not what was written"),
    ],
)  # fmt: skip
def test_entries_that_are_moved_missing_or_added_are_found(path, opened, statements, sentence):
    Reader(opened(path)).append(8)
    copy = damaged(path, opened, "SELECT 1")
    with closing(sqlite3.connect(copy)) as database, database:
        for statement in statements:
            database.execute(statement)
    with pytest.raises(FileError, match=sentence), closing(open_journal(copy)) as journal:
        journal.check_whole()


def test_a_cut_tail_is_a_valid_prefix(path, opened):
    reader = Reader(opened(path))
    reader.append(8)
    for number in range(1, 10):
        copy = damaged(path, opened, f"DELETE FROM journal WHERE number > {number}")
        with closing(open_journal(copy)) as journal:
            assert journal.read() == reader.entries[:number]
            Reader(journal).append()


def test_a_bit_of_the_file_that_flips_is_found_or_harmless(path, opened):
    reader = Reader(opened(path))
    reader.append(500)
    backup(path, path.with_name("whole.db"))
    content, draw, found = path.with_name("whole.db").read_bytes(), random.Random(0), 0
    for _ in range(80):
        place = draw.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        copy = path.with_name("flipped.db")
        copy.write_bytes(flipped)
        try:
            with closing(open_journal(copy, read_only=True)) as journal:
                journal.check_whole()
                assert journal.read() == reader.entries
        except FileError:
            found += 1
    assert found > 40


def test_a_log_that_is_cut_off_leaves_a_prefix(path, opened):
    reader = Reader(opened(path))
    for _ in range(30):
        reader.append()
    whole, draw, lengths = beside(path, "-wal").read_bytes(), random.Random(1), set()
    for _ in range(30):
        copy = copied(path, path.with_name("cut.db"))
        beside(copy, "-shm").unlink()
        beside(copy, "-wal").write_bytes(whole[: draw.randrange(len(whole))])
        with closing(open_journal(copy)) as journal:
            entries = journal.read()
            assert entries == reader.entries[: len(entries)]
            lengths.add(len(entries))
    assert len(lengths) > 5


# -- writers that are killed

WRITER = """
import os, random, struct, sys
sys.path.insert(0, sys.argv[3])
from journal_places import Reader, open_journal, told
from chainscout.journal import sqlite
from chainscout.journal.journal import Snapshot
sqlite._CHECKPOINT_EVERY = 7
# Forks a writer a line: opening takes a millisecond, starting Python a quarter of a second.
for line in sys.stdin:
    child = os.fork()
    if not child:
        journal = open_journal(sys.argv[1])
        reader = Reader(journal).read()
        out = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
        os.write(out, struct.pack("qq", os.getpid(), 0))
        while True:
            new = reader.append(1 + len(reader.entries) % 3)
            os.write(out, struct.pack("qq", new[-1].number, new[-1].digest))
            if len(reader.entries) % 11 == 0:
                journal.keep(Snapshot("", reader.head, b"x" * 5000))
    _, status = os.waitpid(child, 0)
    print(status, flush=True)
"""


def killed(path, folder, times, seed=0):
    """How many appends were acknowledged by writers of which each was killed at a random moment."""
    draw, acknowledged = random.Random(seed), 0
    out = folder / "acknowledged"
    out.touch()
    command = [sys.executable, "-c", WRITER, path, out, Path(__file__).parent]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:
        for _ in range(times):
            os.truncate(out, 0)
            print("go", file=nursery.stdin, flush=True)
            while out.stat().st_size < 16:
                time.sleep(0.0005)
            time.sleep(draw.uniform(0.0, 0.02))
            os.kill(struct.unpack("qq", out.read_bytes()[:16])[0], signal.SIGKILL)
            assert nursery.stdout.readline() == f"{signal.SIGKILL}\n"
            content = out.read_bytes()
            told_of = [struct.unpack_from("qq", content, at) for at in range(16, len(content) // 16 * 16, 16)]
            acknowledged += len(told_of)
            with closing(open_journal(path)) as journal:
                entries = journal.read()
                assert all(entries[number - 1].digest == digest for number, digest in told_of)
                assert decided(entries)
                found = journal.snapshot()
                assert found is None or found.head == entries[found.head.number - 1].head
        nursery.stdin.close()
    return acknowledged


def test_writers_are_killed_at_random_moments(path, folder):
    assert killed(path, folder, 40) > 100


@pytest.mark.soak
def test_writers_are_killed_at_a_thousand_moments(folder):
    """Ten journals: what a writer reads when it begins stays short."""
    for seed in range(10):
        path = folder / f"study{seed}.db"
        create(path, CREATED).close()
        assert killed(path, folder, 100, seed) > 250
