"""Names are data, and so is what a file or an address says: one sentence, and nothing that steers a terminal."""

import contextlib
import json
import math
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import chainscout as cs
from chainscout.cli import main
from chainscout.errors import ChainscoutError, FileError, InputError
from chainscout.sources.recorded import read_recorded
from chainscout.study import Study
from chainscout.study.export import content

#: Clears the screen, sets its title, rings, turns the text round, and a control character of eight bits.
HOSTILE = "a\x1b[2J\x1b]0;owned\x07\u202e\x9b31m\rz"


def steers(text: str) -> list[str]:
    return [c for c in text if not c.isprintable() and c != "\n"]


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    where = str(tmp_path / "study.db")
    with Study.create(where, {HOSTILE: ["\x1b[1m", "=1+1"], "b": 2}, budget=40) as study:
        study.tell_many([(HOSTILE, "\x1b[1m"), (HOSTILE, "=1+1"), ("b", 0), ("b", 1)])
        study.set_aside("b", "because \x1b[5m")
    return where


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_no_name_steers_the_terminal(hostile: str, options: list[str]) -> None:
    for command in (
        ["status", hostile],
        ["status", hostile, "--chain", HOSTILE],
        ["status", hostile, "--chain", HOSTILE + "x"],
        ["tell", hostile, HOSTILE, "no \x1b[0m state"],
        ["tell", hostile, HOSTILE, "=1+1"],
        ["renew", hostile, HOSTILE, "--token", "\x1b[0m"],
        ["audit", hostile + "\x1b[1m"],
        ["ask", hostile, *(["--lease", "Julia"] if not options else [])],
    ):
        done = CliRunner().invoke(main, [*command, *options])
        assert done.exception is None or isinstance(done.exception, SystemExit)
        shown = done.stderr if command[0] == "ask" and not options else done.output + done.stderr
        assert not steers(shown), command
    done = CliRunner().invoke(main, ["ask", hostile, "--json"])
    assert json.loads(done.stdout)["chains"] == [HOSTILE], "a script gets the name itself"


#: A word that stands at the beginning of a line only if a name was broken there.
SECOND = "SecondLine"


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A study in which every name and every reason has a line break, and paths repeat each other."""
    where = str(tmp_path / "study.db")
    chain, other, up = (f"{name}\n{SECOND}" for name in ("chain", "other", "up"))
    chains = {chain: [up, "down"], other: [up, "down"], f"third\n{SECOND}": [up, "down"]}
    with Study.create(
        where, chains, budget=500, target_loss=0.01, questions=f'reach down from "{up}" within 3'
    ) as study:
        rng = np.random.default_rng(1)
        states = [(up, "down")[number] for number in rng.integers(2, size=80)]
        for _ in range(2):
            study.tell_many([(chain, state) for state in states])
            study.restart(chain)
        study.set_aside(other, f"because\n{SECOND}")
        study.worker(f"rig\n{SECOND}", renews=False).lease(600.0)
    return where


COMMANDS = (
    ("status",),
    ("status", "--chain", f"chain\n{SECOND}"),
    ("status", "--chain", f"no chain\n{SECOND}"),
    ("plan", "--target-loss", "0.01"),
    ("plan", "--target-width", "0.01"),
    ("diagnose",),
    ("answer", f"chain\n{SECOND}", f'reach down from "up\n{SECOND}" within 3'),
    ("answer", f"chain\n{SECOND}", f'reach down from "up\n{SECOND}" within 4'),
    ("tell", f"chain\n{SECOND}", f"no state\n{SECOND}"),
    ("ask",),
    ("ask", "--number", "3"),
    ("ask", "--lease", f"rig 2\n{SECOND}"),
    ("take-up", f"other\n{SECOND}"),
    ("give-back", f"chain\n{SECOND}", "--token", f"token\n{SECOND}"),
    ("extend", "--budget", "600"),
)


#: Runs commands one after another in one process, because each start takes a second.
RUN = """
import contextlib, json, sys
from chainscout.cli import main
for number, command in enumerate(json.loads(sys.argv[1])):
    with contextlib.suppress(SystemExit):
        main(command)
    print(flush=True)
    print("end of command", number, flush=True)
"""


def test_a_name_is_one_line_on_a_terminal(broken: str) -> None:
    commands = [(name, broken, *rest) for name, *rest in COMMANDS]
    text = in_terminal("-c", RUN, json.dumps(commands))
    for number, command in enumerate(commands):
        shown, _, text = text.partition(f"end of command {number}")
        assert SECOND in shown or command[0] == "extend", command
        assert "Traceback" not in shown
        assert not [line for line in shown.splitlines() if line.lstrip().startswith(SECOND)], shown


def in_terminal(*arguments: str) -> str:
    """What a Python program shows in a terminal of 200 columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 200))
    environment = {**os.environ, "TERM": "dumb"}
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as program:
        os.close(theirs)
        parts = []
        with contextlib.suppress(OSError):  # Linux says so at the end
            while part := os.read(ours, 65536):
                parts.append(part)
        os.close(ours)
        program.wait()
    return b"".join(parts).decode()


def test_a_name_is_one_line_in_what_objects_say_of_themselves(broken: str) -> None:
    chain = f"chain\n{SECOND}"
    with Study.open(broken) as study:
        held = study.worker("rig 3", renews=False).lease(600.0)
        question = f'reach down from "up\n{SECOND}" within 3'
        certificate, answer = study.certificate(), study.answer(chain, question)
        for thing in (study, certificate, answer, held, study.diagnose(), study.plan(), study.estimate(chain)):
            for text in (str(thing), repr(thing)):
                assert not [line for line in text.splitlines() if line.lstrip().startswith(SECOND)], text
        for note in (*certificate.notes, *study.repeated_paths()):
            assert "\n" not in note


def test_exported_tables_have_no_formulas(hostile: str) -> None:
    with Study.open(hostile, read_only=True) as study:
        text = content(study, "csv").decode()
    assert "'=1+1" in text
    assert ",=1+1" not in text


def test_integers_with_thousands_of_digits(tmp_path: Path) -> None:
    long = "9" * 5_000
    with Study.create(tmp_path / "study.db", {"open": [], "closed": 3}, open_states=["open"]) as study:
        for chain in ("open", "closed"):
            with pytest.raises(InputError):
                study.tell(chain, 10**5_000)
        study.tell("open", 2**1000)
        assert study.states("open") == [2**1000]
    for command in (
        ["new", str(tmp_path / "new.db"), "--chain", f"a={long}"],
        ["tell", str(tmp_path / "study.db"), "closed", long],
        ["ask", str(tmp_path / "study.db"), "--number", long],
        ["serve", str(tmp_path / "study.db"), "--port", long],
    ):
        done = CliRunner().invoke(main, command)
        assert (done.exit_code, isinstance(done.exception, SystemExit)) == (2, True), command
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("name", ["x" * 300, "y/" * 3_000, "a\0b"])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    where = f"{tmp_path}/{name}"
    for use in (
        lambda: Study.open(where),
        lambda: Study.create(where, {"a": 2}),
        lambda: cs.learn({"a": lambda: 0}, states={"a": 2}, budget=3, where=where),
        lambda: read_recorded(where),
        lambda: read_recorded(where + ".parquet"),
    ):
        with pytest.raises(ChainscoutError) as found:
            use()
        assert "\n" not in str(found.value)


def test_pipes_and_devices_are_no_files(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(FileError, match="a recording is a file"):
            read_recorded(path)
        with pytest.raises(FileError, match="could not be read: it is"):
            Study.open(path)


def test_ports_that_are_no_numbers() -> None:
    for address in ("postgresql://host:port/base", "postgresql://host:1:2/base", f"postgresql://host:{'9' * 5_000}/b"):
        with pytest.raises(ChainscoutError) as found:
            Study.open(address)
        assert "\n" not in str(found.value)


def test_crafted_results(tmp_path: Path) -> None:
    """The archive is whole, and what it says is not."""
    problem = cs.Problem({"a": cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])})
    good = tmp_path / "good.npz"
    cs.compare(problem, policies=["uniform"], budgets=[20], replications=2, seed=0, engine="python").save(good)
    with np.load(good) as file:
        kept = dict(file)
    about = json.loads(str(kept["about"]))
    cases = {
        "text": {"about": "{"},
        "deep": {"about": "[" * 100_000},
        "budget": {"about": json.dumps({**about, "budgets": [math.nan]})},
        "policies": {"about": json.dumps({**about, "policies": 3})},
        "problem": {"about": json.dumps({**about, "problem": {"format": 1, "chains": {"a": {"matrix": [[0.5]]}}}})},
        "loss": {"loss": kept["loss"][..., :0]},
        "pulls": {"pulls": np.array([{}], dtype=object)},
    }
    for name, changed in cases.items():
        path = tmp_path / f"{name}.npz"
        np.savez(path, **{**kept, **changed})
        with pytest.raises(FileError) as found:
            cs.Results.load(path)
        assert "\n" not in str(found.value)
