"""The files of a study: links, deleted and replaced files, network disks, copies, the journal as lines, audits."""

import json
import multiprocessing
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from study_checks import check, entries_of
from study_commands import run
from study_driving import STATES, drive
from study_rules import RULE
from study_worker import SIZES, Worker, goes_on, is_sound

from chainscout.counts import Counts
from chainscout.errors import FileError, InputError
from chainscout.journal import files, sqlite
from chainscout.journal.backup import backup
from chainscout.study import Study, keeper


def small(path: Path, observations: int = 5) -> Study:
    study = Study.create(path, {"a": 2, "b": 2}, budget=10_000)
    for number in range(observations):
        study.tell(study.ask(), number % 2)
    return study


def change(path: Path, statement: str, *values: object) -> None:
    """Changes what is stored, past the study."""
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount


def seen(study: Study) -> tuple[Any, ...]:
    """What a study says of its chains."""
    names = study.names
    counts = {name: (study.states(name), study.counts(name, everything=True).rows()) for name in names}
    return counts, study.indices(), study.allocation(), list(study.log()), study.stop_reason


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
        assert path.read_bytes() == content
        for leftover in folder.glob("study.db*"):
            leftover.unlink()


def test_network_file_systems(folder, monkeypatch):
    path = folder / "shared" / "study.db"
    path.parent.mkdir()
    with small(path) as study:
        study.export(folder / "study.jsonl")
    (folder / "link.db").symlink_to(path)
    mounts = folder / "mounts"
    mounts.write_text(f"server:/home {path.parent} nfs rw 0 0\n")
    monkeypatch.setattr(files, "MOUNTS", mounts)
    new = path.parent / "new.db"
    uses: list[Callable[[], object]] = [
        lambda: Study.open(path),
        lambda: Study.open(folder / "link.db"),
        lambda: Study.open(path, read_only=True),
        lambda: Study.create(new, {"a": 2}),
        lambda: Study.restore(folder / "study.jsonl", new),
    ]
    for use in uses:
        with pytest.raises(FileError, match=r"network file system \(nfs at .*\).* PostgreSQL"):
            use()
    assert not new.exists()


# -- copies, and the write-ahead log


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
    is_sound(path, [written]).close()


@pytest.mark.parametrize("through_link", [False, True])
def test_a_file_without_its_log_is_refused_and_rescued(folder, through_link, monkeypatch):
    """A writer that was killed leaves its last observations in the log."""
    path = where = folder / "study.db"
    if through_link:
        (folder / "links").mkdir()
        where = folder / "links" / "study.db"
        where.symlink_to(path)
    monkeypatch.setattr(sqlite, "_CHECKPOINT_EVERY", 20)
    with small(path, 50):
        left = {ending: Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal")}
    for log in (None, b""):
        for read_only in (False, True):
            path.write_bytes(left[""])
            if log is not None:
                Path(f"{path}-wal").write_bytes(log)
            with pytest.raises(FileError, match="its write-ahead log, which holds the last observations, is missing"):
                Study.open(where, read_only=read_only)
            assert path.read_bytes() == left[""]
            Path(f"{path}-wal").unlink(missing_ok=True)
    said = run("backup", "--without-log", where, folder / "rescued.db", "--json")
    with Study.open(folder / "rescued.db") as study:
        study.audit()
        assert 20 <= study.progress().observations < 50
        assert json.loads(said)["observations"] == study.progress().observations
        goes_on(study)
    Path(f"{path}-wal").write_bytes(left["-wal"])
    with Study.open(where) as study:
        study.audit()
        assert study.progress().observations == 50


def test_a_program_that_forgets_to_close_leaves_a_study_that_opens(folder):
    program = (
        "import sys\nfrom chainscout.study import Study\n"
        "studies = {}\n"
        "for number in map(int, sys.argv[2:]):\n"
        "    study = studies[number] = Study.create(f'{sys.argv[1]}/study{number}.db', {'a': 2}, budget=10_000)\n"
        "    for step in range(number): study.tell('a', step % 2)\n"
        "del study, studies[98]\n"
    )
    numbers = (0, 1, 98, 399, 400, 401, 850)
    subprocess.run([sys.executable, "-c", program, str(folder), *map(str, numbers)], check=True)
    for number in numbers:
        path = folder / f"study{number}.db"
        with Study.open(path) as study:
            assert study.progress().observations == number
        with Study.open(path) as study:
            study.audit()


def test_a_reader_that_stalls_is_named(folder, monkeypatch):
    monkeypatch.setattr(sqlite, "_LARGE_LOG", 2**18)
    path = folder / "study.db"
    with small(path) as study:
        assert study.look().notes == ()
        stalled = sqlite3.connect(path, isolation_level=None)
        stalled.execute("BEGIN")
        stalled.execute("SELECT * FROM journal").fetchone()
        for step in range(3 * sqlite._CHECKPOINT_EVERY):
            study.tell("a", step % 2)
        (note,) = study.look().notes
        assert "has been reading the study for long" in note
        stalled.close()
        log, sizes = Path(f"{path}-wal"), []
        for _ in range(3):
            for step in range(sqlite._CHECKPOINT_EVERY + 10):
                study.tell("a", step % 2)
            sizes.append(log.stat().st_size)
        assert sizes[0] == sizes[1] == sizes[2], "the log is used again"
    with Study.open(path) as study:
        study.audit()


# -- the journal as lines


def everything(where: Any) -> Study:
    """A study of all kinds of chains, with workers, questions, a target and ends of all kinds."""
    study = Study.create(
        where,
        {**STATES, "colours": ["red"]},
        budget=3_000,
        target_loss=1e-6,
        open_states=["colours"],
        weights={"south": 2.0},
        costs={"east": 0.5},
        warm_start={"east": Counts.from_path([0, 1, 0, 1, 1], 2)},
        questions={"north": "reach down from idle within 3"},
    )
    for label in ("red", "green", "Zürich", "red"):
        study.tell("colours", label)
    study.tell_many([("north", "idle"), ("north", "busy"), ("south", 3), ("south", 0)])
    with study.worker("rig 7") as worker:
        for k in range(40):
            lease = worker.lease(wait=0)
            states = study.states(lease.chain)
            lease.tell(states[k % len(states)])
            if k % 9 == 0:
                lease = worker.lease(wait=0)
                lease.abandon() if k % 2 else lease.give_back()
    study.restart("north", lost=True)
    study.lose("south")
    study.set_aside("east", "it is broken")
    study.take_up("east")
    study.certificate()
    return study


def test_the_journal_as_lines_makes_the_same_study(folder, where):
    path = folder / "study.jsonl"
    with everything(folder / "first.db") as study:
        study.export(path)
        assert path.read_text() == run("export", folder / "first.db", "--format", "jsonl")
        before, said, entries = seen(study), study.look().to_dict(), entries_of(study)
        with pytest.raises(InputError, match="exists already"):
            study.export(path)
        with pytest.raises(InputError, match="has all chains"):
            study.export(folder / "other.jsonl", chain="north")
    for place in (None, where):
        with Study.restore(path, place) as again:
            again.audit()
            assert entries_of(again) == entries
            assert seen(again) == before
            assert again.look().to_dict()["chains"] == said["chains"]
            again.tell("colours", "blue")
    with pytest.raises(InputError, match="exists already"):
        Study.restore(path, where)


def test_every_prefix_of_the_lines_is_a_study(folder):
    with everything(None) as study:
        study.export(folder / "study.jsonl")
    lines = (folder / "study.jsonl").read_text().splitlines(keepends=True)
    rng = random.Random(5)
    for number in {1, 2, len(lines), *rng.choices(range(1, len(lines)), k=12)}:
        (folder / "cut.jsonl").write_text("".join(lines[:number]) + lines[-1][: rng.randrange(20)])
        with Study.restore(folder / "cut.jsonl", None) as cut:
            assert entries_of(cut)[-1].number == number
            cut.certificate()
            before = cut.progress().observations
            cut.tell("north", "idle", begin=True)
            assert cut.look().progress.observations == before + 1


def test_lines_that_were_changed_make_no_study(folder):
    with everything(None) as study:
        study.export(folder / "study.jsonl")
    lines = (folder / "study.jsonl").read_text().splitlines(keepends=True)
    damaged = {
        "entry 7 is not what was written": [*lines[:6], lines[6].replace(",", ", ", 1), *lines[7:]],
        "entry 8 is missing": [*lines[:7], *lines[8:]],
        "entry 9 is missing": [*lines[:8], lines[9], lines[8], *lines[10:]],
        "entry 3 is missing": [*lines[:2], lines[1], *lines[2:]],
        "its first entry does not create one": ["hello"],
    }
    for sentence, found in damaged.items():
        (folder / "damaged.jsonl").write_text("".join(found))
        with pytest.raises(FileError, match=sentence):
            Study.restore(folder / "damaged.jsonl", folder / "new.db")
        assert sentence in run("restore", folder / "damaged.jsonl", folder / "new.db", status=1)
        assert not list(folder.glob("*new.db*"))
    with pytest.raises(FileError, match="could not be read"):
        Study.restore(folder / "none.jsonl", folder / "new.db")


def test_the_commands_of_copies(folder):
    small(folder / "lab.db", 30).close()
    assert "lab.jsonl written" in run("export", folder / "lab.db", "--out", folder / "lab.jsonl")
    assert run("restore", folder / "lab.jsonl", folder / "again.db").endswith("again.db: a copy with 30 observations\n")
    assert json.loads(run("backup", folder / "lab.db", folder / "copy.db", "--json"))["observations"] == 30
    assert "30" in run("audit", folder / "again.db")
    assert "exists already" in run("restore", folder / "lab.jsonl", folder / "again.db", status=2)
    with Study.open(folder / "again.db") as again, Study.open(folder / "copy.db") as copy:
        assert seen(again) == seen(copy)


def test_a_policy_of_the_users_is_needed_to_restore(folder):
    with Study.create(folder / "study.db", SIZES, policy=RULE) as study:
        drive_all(study, 60)
        study.export(folder / "study.jsonl")
        before = seen(study)
    with pytest.raises(InputError, match="is not built in"):
        Study.restore(folder / "study.jsonl", folder / "new.db")
    assert not (folder / "new.db").exists()
    with Study.restore(folder / "study.jsonl", folder / "new.db", RULE) as again:
        assert seen(again) == before


def drive_all(study: Study, number: int, seed: int = 0) -> None:
    rng = random.Random(seed)
    for _ in range(number):
        name = study.ask()
        study.tell(name, rng.randrange(len(study.states(name))))


# -- audits, damage, snapshots


@pytest.fixture
def eager(monkeypatch):
    """A snapshot is kept after every change."""
    monkeypatch.setattr(keeper, "TAIL", 1)
    monkeypatch.setattr(keeper, "OBJECTS", 0)


def test_a_snapshot_that_is_deleted_at_random_changes_nothing(folder, eager):
    """Two studies in one, told the same: from one the snapshot is deleted now and then."""
    rng = random.Random(8)
    paths = [folder / "kept.db", folder / "deleted.db"]
    for path in paths:
        Study.create(path, STATES, budget=400, target_loss=1e-6).close()
    for turn in range(12):
        said = []
        if turn and rng.random() < 0.6:
            change(paths[1], "DELETE FROM snapshot")
        for path in paths:
            with Study.open(path, continuing=bool(turn % 2)) as study:
                drive(study, 25, seed=turn)
                study.audit()
                said.append((seen(study)[:3], study.stop_reason, study.certificate().weighted))
        assert said[0] == said[1]


def test_damage_before_the_snapshot_is_found_by_an_audit(folder, eager):
    path = folder / "study.db"
    small(path, 40).close()
    change(path, "UPDATE journal SET value = 1 - value WHERE number = 17")
    with Study.open(path) as study, pytest.raises(FileError, match="damaged: entry 17 is not what was written"):
        study.audit()
    assert "entry 17 is not what was written" in run("audit", path, status=1)
    change(path, "DELETE FROM snapshot")
    with pytest.raises(FileError, match="entry 17 is not what was written; the 16 entries before it are whole"):
        Study.open(path)


def test_a_snapshot_that_is_wrong_is_found_by_an_audit(folder, eager):
    """A damaged one is of no use to anybody, and is no damage. One that says something else is."""
    path = folder / "study.db"
    small(path, 40).close()
    with closing(sqlite3.connect(path)) as connection:
        ((content,),) = connection.execute("SELECT content FROM snapshot").fetchall()
    change(path, "UPDATE snapshot SET content = ?", content[:100] + b"x" + content[101:])
    with Study.open(path) as study:
        study.audit()
        assert study.progress().observations == 40
    with Study.create(None, {"a": 2, "b": 2}, budget=10_000) as other, other._keeper.lock():
        state = other._keeper.state()
        with Study.open(path) as study:
            state.head = study._keeper.state().head
        change(path, "UPDATE snapshot SET content = ?, number = ?, digest = ?", keeper.packed_state(state),
               state.head.number, state.head.digest)  # fmt: skip
    with Study.open(path) as study, pytest.raises(FileError, match="its snapshot is not what its entries say"):
        study.audit()


def test_an_audit_while_others_write(folder):
    path = folder / "study.db"
    Study.create(path, SIZES, policy=RULE).close()
    worker = Worker(path)
    with Study.open(path, RULE, read_only=True) as study:
        for number in range(5, 60, 5):
            worker.hear(number)
            study.audit()
    with is_sound(path, [worker.kill()]) as study:
        check(study, SIZES, RULE)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE journal SET value = 5 WHERE number = 9", "entry 9 is not what was written"),
        ("UPDATE journal SET time = time + 1 WHERE number = 20", "entry 20 is not what was written"),
        ("UPDATE journal SET more = replace(more, 'a', 'b') WHERE number = 1", "entry 1 is not what was written"),
        ("UPDATE journal SET digest = digest + 1 WHERE number = 12", "entry 12 is not what was written"),
        ("DELETE FROM journal WHERE number = 11", "entry 11 is missing; the 10 entries before it are whole"),
        ("UPDATE journal SET number = -1 WHERE number = 11", "is missing"),
    ],
)
def test_a_damaged_study_is_refused_with_the_entrys_number(folder, statement, sentence):
    path = folder / "study.db"
    small(path, 30).close()
    change(path, statement)
    content = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(FileError, match=f"damaged: .*{sentence}"):
            Study.open(path, read_only=read_only)
    assert sentence in run("audit", path, status=1)
    assert path.read_bytes() == content


def test_a_study_of_an_earlier_format_is_refused(folder):
    path = folder / "study.db"
    small(path).close()
    change(path, "UPDATE journal SET more = replace(more, '\"format\":', '\"format\":1') WHERE number = 1")
    with pytest.raises(FileError, match="entry 1 is not what was written"):
        Study.open(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA application_id = {sqlite._APPLICATION}")
        connection.execute("CREATE TABLE study (id INTEGER, format INTEGER)")
        connection.execute("INSERT INTO study VALUES (1, 11)")
    content = path.read_bytes()
    sentence = "has the format 11, and this version of chainscout reads only the format 15: no version with another"
    for read_only in (False, True):
        with pytest.raises(FileError, match=sentence):
            Study.open(path, read_only=read_only)
    assert sentence in run("audit", path, status=1)
    assert path.read_bytes() == content


# -- other processes


def test_a_forked_child_opens_the_study_again(folder):
    path = folder / "study.db"
    study = small(path)

    def child(pipe: Any) -> None:
        for use in (study.ask, study.progress, lambda: study.tell("a", 0)):
            try:
                use()
            except InputError as error:
                pipe.send(str(error))
        with Study.open(path) as again:
            again.tell("a", 0)
            pipe.send(again.progress().observations)

    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    try:
        for _ in range(3):
            assert here.poll(20)
            assert "was opened before this process was forked: open it again in the child" in here.recv()
        assert here.recv() == 6
    finally:
        process.join()
    study.tell("b", 0)
    assert study.progress().observations == 7
    study.close()


def test_a_study_is_opened_while_others_close_it(folder):
    """Who closes it last holds the whole file for a moment."""
    path = folder / "study.db"
    small(path).close()
    failed: list[BaseException] = []

    def open_often(read_only: bool) -> None:
        try:
            for _ in range(200):
                Study.open(path, read_only=read_only).close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=open_often, args=(k % 2 == 0,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_study_cannot_be_pickled(folder):
    with small(folder / "study.db") as study, pytest.raises(InputError, match=r"cannot be pickled: .* open it there"):
        pickle.dumps(study)
