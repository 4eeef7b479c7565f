"""Disks that are full, files that are cut off, and bits that are flipped, in the file and in its write-ahead log."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from study_checks import replayed_counts, walked_paths
from study_rules import RULE
from study_worker import SIZES, Simulators, Worker, goes_on, is_sound

from chainscout.errors import FileError
from chainscout.study import Study


def test_a_full_disk(folder):
    path = folder / "study.db"
    Study.create(path, SIZES, policy=RULE).close()
    written = Worker(path, room=600_000).finish()
    assert len(written) > 10
    assert written.words.startswith("FileError")
    assert "could not be written" in written.words
    assert "nothing was changed" in written.words
    study = is_sound(path, [written])
    goes_on(study)
    study.close()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own. Where mounting is not allowed, the test fails: this is what the marker is for."""
    place = folder / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", str(place)], capture_output=True, text=True
    )
    assert done.returncode == 0, f"a small file system must be mounted, and could not be: {done.stderr}"
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.system
def test_a_disk_that_is_really_full(tmp_path):
    with small_disk(tmp_path, "1m") as disk:
        path = disk / "study.db"
        Study.create(path, SIZES, policy=RULE).close()
        (disk / "ballast").write_bytes(bytes(400_000))
        written = Worker(path).finish()
        assert len(written) > 10
        assert written.words.startswith("FileError")
        assert "could not be written" in written.words
        assert "nothing was changed" in written.words
        with Study.open(path, RULE) as study:  # reading goes on while there is no room
            assert study.progress().observations == len(written)
        (disk / "ballast").unlink()
        study = is_sound(path, [written])
        goes_on(study)
        study.close()


@pytest.mark.system
def test_a_disk_of_postgres_that_is_really_full(tmp_path, own_server):
    """The tables are on the small disk. (A server whose own log finds no room stops by itself: that is a restart.)"""
    with small_disk(tmp_path, "2m") as disk:
        for parent in (tmp_path, *tmp_path.parents[:3]):
            parent.chmod(parent.stat().st_mode | 0o055)  # the server is another user
        space = disk / "space"
        space.mkdir()
        shutil.chown(space, own_server.server.directory.owner())
        own_server.run(f"CREATE TABLESPACE small LOCATION '{space}'")
        where = own_server.address() + "%20-cdefault_tablespace%3Dsmall"
        Study.create(where, SIZES, policy=RULE).close()
        room = shutil.disk_usage(disk).free
        (disk / "ballast").write_bytes(bytes(max(0, room - 200_000)))
        written = Worker(where).finish()
        assert len(written) > 10
        assert written.words.startswith("FileError")
        assert "could not be written" in written.words
        assert "nothing was changed" in written.words
        (disk / "ballast").unlink()
        study = is_sound(where, [written])
        goes_on(study)
        study.close()
        own_server.run("DROP SCHEMA study0 CASCADE")
        own_server.run("DROP TABLESPACE small")


def complete_file(folder: Path, observations: int = 300) -> Path:
    path = folder / "study.db"
    study = Study.create(path, SIZES, policy=RULE)
    simulators = Simulators("complete")
    for _ in range(observations // 20):
        study.tell_many([(name, simulators.advance(name)) for name in study.ask(20)])
    study.close()
    return path


def use_all_of_it(path: Path) -> dict[tuple[str, int], list]:
    """Opens a study, reads everything and goes on with it. Returns what was told before."""
    with Study.open(path, RULE) as study:
        study.audit()
        told = walked_paths(study)
        assert all(study.counts(name).rows() == counts.rows() for name, counts in replayed_counts(study, SIZES).items())
        goes_on(study)
    return told


def test_a_truncated_file_is_refused(folder):
    path = complete_file(folder)
    whole = path.read_bytes()
    for share in (0.0, 0.001, 0.3, 0.6, 0.95):
        path.write_bytes(whole[: int(share * len(whole))])
        for leftover in folder.glob("study.db-*"):
            leftover.unlink()
        with pytest.raises(FileError, match=r"damaged|not a study"):
            use_all_of_it(path)


def test_a_bit_flipped_file_is_refused_or_harmless(folder):
    path = complete_file(folder)
    whole = path.read_bytes()
    told = use_all_of_it(path)
    rng = random.Random(7)
    refused = 0
    for _ in range(90):
        place = rng.randrange(100, len(whole))
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        for leftover in folder.glob("study.db-*"):
            leftover.unlink()
        try:
            assert use_all_of_it(path) == told
        except FileError:
            refused += 1
    assert refused > 10  # the others hit free space, or times that nothing depends on


def test_what_is_not_a_study(folder, tmp_path):
    import sqlite3

    with pytest.raises(FileError, match="there is no study at"):
        Study.open(folder / "none.db", RULE)
    text = folder / "notes.txt"
    text.write_text("nothing of the kind, " * 50)
    with pytest.raises(FileError, match="not a study"):
        Study.open(text, RULE)
    other = folder / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE study (id INTEGER)")
    connection.close()
    with pytest.raises(FileError, match="not a study"):
        Study.open(other, RULE)
    with pytest.raises(FileError, match="could not be read"):
        Study.open(folder, RULE)
    shutil.copy(complete_file(tmp_path), folder / "copy.db")
    Study.open(folder / "copy.db", RULE).close()


# -- the write-ahead log


def test_a_log_that_is_cut_off_is_what_a_crash_leaves(folder):
    """Every prefix of the log is the study as it once was: nobody can tell a cut from a crash."""
    path = folder / "study.db"
    Study.create(path, SIZES, policy=RULE).close()
    worker = Worker(path)
    worker.hear(40)
    written = worker.kill()
    files = {file: file.read_bytes() for file in folder.iterdir()}
    log, rng = folder / "study.db-wal", random.Random(12)
    for _ in range(20):
        for file in folder.iterdir():
            file.unlink()
        for file, content in files.items():
            file.write_bytes(content)
        (folder / "study.db-shm").unlink()
        log.write_bytes(files[log][: rng.randrange(33, len(files[log]))])
        with Study.open(path, RULE) as study:
            study.audit()
            told = walked_paths(study)
            assert all(states[:-1] == written.told.get(place, [])[: len(states) - 1] for place, states in told.items())
            goes_on(study)
