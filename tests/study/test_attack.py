"""An attack on the files of a study: bits that flip, disks that are full, files that vanish or are replaced."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from study_checks import walked_paths
from study_rules import RULE
from study_worker import SIZES, Simulators, Worker, goes_on, is_sound

from chainscout.errors import FileError
from chainscout.journal.backup import backup
from chainscout.study import Study

pytestmark = pytest.mark.soak

FLIPS = 200
ENDINGS = ("", "-wal", "-shm")


def put(path: Path, files: dict[str, bytes]) -> None:
    for ending in ENDINGS:
        Path(f"{path}{ending}").unlink(missing_ok=True)
        if ending in files:
            Path(f"{path}{ending}").write_bytes(files[ending])


def seen(path: Path) -> tuple[object, ...]:
    """What a study says, with everything read and checked."""
    with Study.open(path, RULE) as study:
        study.audit()
        found = {name: (study.counts(name).rows(), list(study.states(name))) for name in study.names}
        return study.progress().observations, found


def flipped(content: bytes, rng: random.Random, first: int) -> bytes:
    damaged = bytearray(content)
    damaged[rng.randrange(first, len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


@pytest.mark.parametrize("through_link", [False, True])
def test_bits_flipped_in_the_database(folder: Path, through_link: bool, record_property: Callable[..., None]) -> None:
    """Refused, or exactly what it was."""
    path = folder / "study.db"
    with Study.create(path, SIZES, policy=RULE) as study:
        simulators = Simulators("attack")
        for _ in range(15):
            study.tell_many([(name, simulators.advance(name)) for name in study.ask(20)])
    where = linked(folder, path) if through_link else path
    whole, before = path.read_bytes(), seen(path)
    rng, refused = random.Random(21), 0
    for _ in range(FLIPS):
        put(path, {"": flipped(whole, rng, 100)})
        try:
            assert seen(where) == before
        except FileError:
            refused += 1
    record_property("refused", refused)
    assert refused > FLIPS // 10


@pytest.mark.parametrize("through_link", [False, True])
def test_bits_flipped_in_the_log(folder: Path, through_link: bool, record_property: Callable[..., None]) -> None:
    """A prefix of the study: SQLite reads the log up to the damage, as after a crash."""
    path = folder / "study.db"
    Study.create(path, SIZES, policy=RULE).close()
    worker = Worker(path)
    worker.hear(40)
    written = worker.kill()
    where = linked(folder, path) if through_link else path
    files = {ending: Path(f"{path}{ending}").read_bytes() for ending in ENDINGS}
    rng, shorter = random.Random(22), 0
    for _ in range(FLIPS):
        put(path, {**files, "-wal": flipped(files["-wal"], rng, 0)})
        with Study.open(where, RULE) as study:
            study.audit()
            told = walked_paths(study)
        for place, states in told.items():
            known = written.told.get(place, [])
            assert states[: len(known)] == known[: len(states)]
        shorter += sum(map(len, told.values())) < len(written)
    put(path, files)
    is_sound(path, [written]).close()
    record_property("shorter", shorter)
    assert shorter > FLIPS // 10


def linked(folder: Path, path: Path) -> Path:
    (folder / "links").mkdir()
    link = folder / "links" / "lab.db"
    link.symlink_to(path)
    return link


@pytest.mark.parametrize("room", range(150_000, 950_000, 50_000))
def test_a_full_disk_at_any_moment(folder: Path, room: int) -> None:
    path = folder / "study.db"
    Study.create(path, SIZES, policy=RULE).close()
    written = Worker(path, room=room).finish()
    assert written.words.startswith("FileError")
    assert "could not be written" in written.words
    study = is_sound(path, [written])
    goes_on(study)
    study.close()
    Study.open(path, RULE).close()


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("replaced", [False, True])
def test_files_that_vanish_or_are_replaced(folder: Path, turn: int, ending: str, replaced: bool) -> None:
    """The writer says so; what took the place of its file is left alone."""
    path, other = folder / "study.db", folder / "other.db"
    Study.create(path, SIZES, policy=RULE).close()
    worker = Worker(path)
    worker.hear(20 + 7 * turn)
    target = Path(f"{path}{ending}")
    if replaced and not ending:
        backup(path, other)
        content = other.read_bytes()
        os.replace(other, target)
    elif replaced:
        other.write_bytes(target.read_bytes())
        os.replace(other, target)
    else:
        target.unlink()
    written = worker.finish()
    assert written.words.startswith("FileError"), written.words
    assert "deleted or replaced while the study was open" in written.words
    if not ending and replaced:
        assert path.read_bytes() == content
        for leftover in ENDINGS[1:]:
            Path(f"{path}{leftover}").unlink(missing_ok=True)
        with Study.open(path, RULE) as study:
            study.audit()
            goes_on(study)
