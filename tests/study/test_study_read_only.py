"""Studies in folders that cannot be written: archives, mounts that are read only. Root ignores permission bits, so
these are real file systems, mounted for the test."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from study_rules import RULE
from study_worker import SIZES, Worker

from chainscout.cli import main
from chainscout.errors import FileError
from chainscout.study import Study

pytestmark = pytest.mark.system

CHAINS = {"north": 2, "south": 3}


@contextmanager
def seen_read_only(folder: Path) -> Iterator[Path]:
    """The same folder at another place, where nothing can be written. Where mounting is not allowed, the test fails."""
    place = folder.with_name(f"{folder.name}-archive")
    place.mkdir(exist_ok=True)
    for words in (["--bind", str(folder), str(place)], ["-o", "remount,ro,bind", str(place)]):
        done = subprocess.run(["mount", *words], capture_output=True, text=True)
        assert done.returncode == 0, f"a folder must be mounted read only, and could not be: {done.stderr}"
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    folder = tmp_path / "lab"
    folder.mkdir()
    return folder


def filled(path: Path, batches: int = 20) -> None:
    with Study.create(path, CHAINS) as study:
        for number in range(batches):
            study.tell_many([("north", number % 2), ("south", number % 3)])


def run(*words: object, status: int = 0) -> str:
    found = CliRunner().invoke(main, [str(word) for word in words])
    assert found.exit_code == status, (found.output, found.exception)
    return found.output


def test_it_is_read_there_as_it_is_read_elsewhere(lab, tmp_path):
    filled(lab / "study.db")
    copy = shutil.copy(lab / "study.db", tmp_path / "copy.db")
    with seen_read_only(lab) as archive:
        path = archive / "study.db"
        for words in (["status"], ["export"], ["export", "--format", "csv"], ["ask"], ["ask", "--number", "5"]):
            command, *options = words
            assert run(command, path, *options) == run(command, copy, *options)
        run("report", path, "--out", tmp_path / "report.html")
        assert "south" in (tmp_path / "report.html").read_text(encoding="utf-8")
        link = tmp_path / "link.db"
        link.symlink_to(path)  # its own folder can be written; that of the file cannot
        with Study.open(link, read_only=True) as study:
            study.audit()
            assert study.progress().observations == 40
        words = "could not be opened: its folder cannot be written, and nothing was changed"
        assert run("tell", path, "north", "1", status=1) == f"chainscout: {path} {words}\n"
        assert "could not be made" in run("new", archive / "other.db", "--chain", "a=2", status=1)
    assert [file.name for file in lab.iterdir()] == ["study.db"]


def test_a_log_that_was_not_put_away_is_not_passed_over(lab, tmp_path):
    """Without it the study would be shown as it once was: it is read with its index, and refused without."""
    Study.create(lab / "study.db", SIZES, policy=RULE).close()
    worker = Worker(lab / "study.db")
    worker.hear(30)
    written = worker.kill()
    with seen_read_only(lab) as archive, Study.open(archive / "study.db", RULE, read_only=True) as study:
        assert study.progress().observations in (len(written), len(written) + 1)  # the last was not heard of
    (lab / "study.db-shm").unlink()
    with seen_read_only(lab) as archive:
        path = archive / "study.db"
        words = (
            f"{path} could not be opened: the write-ahead log beside it holds observations that can only be read in a "
            "folder that can be written, and this one cannot; copy both files to one that can"
        )
        for _ in range(2):
            with pytest.raises(FileError) as caught:
                Study.open(path, RULE, read_only=True)
            assert str(caught.value) == words
        copy = tmp_path / "copy"
        shutil.copytree(archive, copy)
    with Study.open(copy / "study.db", RULE, read_only=True) as study:
        study.audit()
        assert study.progress().observations in (len(written), len(written) + 1)


def test_who_reads_there_sees_what_others_write(lab):
    """The folder is read only for the reader, and not for the writer."""
    filled(lab / "study.db")
    with seen_read_only(lab) as archive, Study.open(archive / "study.db", read_only=True) as reader:
        assert reader.progress().observations == 40
        with Study.open(lab / "study.db") as writer:
            writer.tell("north", 1)
            assert reader.progress().observations == 41  # the log is there to be read
            writer.tell("south", 1)
            assert reader.progress().observations == 42
        assert reader.progress().observations == 42  # and here it has been put away
        reader.audit()
        with Study.open(lab / "study.db", continuing=True) as writer:
            writer.tell("north", 0)
        assert reader.progress().observations == 43
        assert reader.counts("north").transitions.sum() == 20  # 22 observations on two paths


def test_what_changes_while_it_is_read_is_read_again(lab):
    filled(lab / "study.db")
    with seen_read_only(lab) as archive, Study.open(archive / "study.db", read_only=True) as reader:
        lines = reader.log()
        assert next(lines).number == 1
        with Study.open(lab / "study.db") as writer:
            writer.tell("north", 1)
        assert len(list(lines)) in (39, 40)
        assert reader.progress().observations == 41
        reader.audit()
