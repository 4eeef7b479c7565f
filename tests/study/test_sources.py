"""Where states come from: callables, generators, recordings, programs, environments."""

import itertools
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from learning_sources import threads
from study_checks import replayed_counts
from test_docs_studies import code_blocks

import chainscout as cs
from chainscout.errors import FileError, InputError, SetAsideWarning, SourceEnded, SourceError
from chainscout.sources import Environment, Factory, Place, Program, Recorded, Restartable, convert, read_recorded


def taken(source, number):
    return [source.advance() for _ in range(number)]


def test_a_callable():
    numbers = itertools.count()
    source = convert(lambda: next(numbers))
    assert taken(source, 3) == [(0, True), (1, False), (2, False)]
    source.restart()
    assert taken(source, 2) == [(3, True), (4, False)]


def test_a_callable_that_can_restart():
    class Walk:
        def __init__(self):
            self.state = 0

        def __call__(self):
            self.state += 1
            return self.state

        def restart(self):
            self.state = 0

    source = convert(Walk())
    taken(source, 5)
    source.restart()
    assert source.advance() == (1, True)


def test_a_generator():
    closed = []

    def states():
        try:
            yield from "abc"
        finally:
            closed.append(True)

    source = convert(states())
    assert taken(source, 2) == [("a", True), ("b", False)]
    source.restart()
    assert source.advance() == ("c", True)
    with pytest.raises(SourceEnded):
        source.advance()
    source.close()
    assert closed == [True]


def test_a_generator_function_is_called_for_every_path():
    def walk():
        yield "a"
        yield "b"

    source = convert(walk)
    assert [source.advance() for _ in range(3)] == [("a", True), ("b", False), ("a", True)]
    source.restart()
    assert source.advance() == ("a", True)


def test_a_generator_function_begins_anew():
    source = Restartable(lambda: iter("ab"))
    assert taken(source, 4) == [("a", True), ("b", False), ("a", True), ("b", False)]
    source.restart()
    assert source.advance() == ("a", True)
    with pytest.raises(SourceEnded, match="before its first state"):
        Restartable(lambda: iter("")).advance()


def test_what_is_no_source():
    with pytest.raises(InputError, match="a source must be"):
        convert(3)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (np.array([0, 1, 1]), [(0, True), (1, False), (1, False)]),
        (["x", "y"], [("x", True), ("y", False)]),
        ([np.array([0, 1]), np.array([2])], [(0, True), (1, False), (2, True)]),  # as deeptime has them
        ([[0, 1], [2]], [(0, True), (1, False), (2, True)]),
        (np.array([[0, 1], [1, 0]]), [(0, True), (1, False), (1, True), (0, False)]),
    ],
)
def test_recorded_paths(paths, expected):
    source = Recorded(paths)
    assert taken(source, len(source)) == expected
    with pytest.raises(SourceEnded):
        source.advance()


def test_recorded_paths_restart_and_resume():
    source = Recorded([[0, 1, 2], [3, 4]])
    source.advance()
    source.restart()
    assert taken(source, 4) == [(1, True), (2, False), (3, True), (4, False)]  # each once, and broken where it was
    other = Recorded([[], [0, 1, 2], [3, 4]])
    assert other.resume(Place(2, 2, 3, 4))
    assert other.advance() == (4, False)
    assert other.resume(Place(1, 3, 1, 2))  # from wherever it is
    assert taken(other, 3) == [(2, False), (3, True), (4, False)]
    assert other.resume(Place(2, 1, None, 2))
    assert taken(other, 3) == [(2, True), (3, True), (4, False)]
    assert other.resume(Place(2, 1, None, 3))
    assert taken(other, 2) == [(3, True), (4, False)]
    assert not other.resume(Place(1, 2, 0, 2))  # somebody else has told the state that follows
    assert taken(other, 2) == [(2, True), (3, True)]
    with pytest.raises(InputError, match="observation 4 is 3 in the recording, and the study was told 1"):
        other.resume(Place(1, 5, 1, 4))
    with pytest.raises(InputError, match="told 9 observations of it, and 5 are recorded"):
        other.resume(Place(2, 1, None, 9))
    for wrong in ("abc", [], 3, np.zeros((1, 1, 1)), [[0], 1]):
        with pytest.raises(InputError, match="recorded states must be"):
            Recorded(wrong)


def test_recorded_files(tmp_path):
    import duckdb

    table = tmp_path / "paths.csv"
    table.write_text("chain,t,state,path\na,2,y,1\na,1,x,1\nb,1,0,1\na,3,x,2\n", encoding="utf-8")
    found = read_recorded(table, time="t")
    assert taken(found["a"], 3) == [("x", True), ("y", False), ("x", True)]
    assert taken(found["b"], 1) == [(0, True)]
    parquet = tmp_path / "paths.parquet"
    duckdb.execute(f"COPY (SELECT * FROM read_csv('{table}')) TO '{parquet}' (FORMAT parquet)")
    again = read_recorded(parquet, time="t")
    assert taken(again["a"], 3) == [("x", True), ("y", False), ("x", True)]
    with pytest.raises(FileError, match="no file"):
        read_recorded(tmp_path / "none.csv")
    with pytest.raises(FileError, match=r"row 1 .* has no moment"):
        read_recorded(table, time="moment")
    (tmp_path / "empty.csv").write_text("chain,state\n")
    with pytest.raises(FileError, match="no rows"):
        read_recorded(tmp_path / "empty.csv")
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(FileError, match="could not be read"):
        read_recorded(tmp_path / "bad.parquet")


def test_recorded_labels_are_kept_apart(tmp_path):
    """A whole number is one if it is written as one; every other text is the label that it is."""
    table = tmp_path / "labels.csv"
    words = ["007", "7", "07", "1_000", "1000", "-3", "+3", "-0", "0", "7 7", "x", "1.5", "nan", "\u0663", "9" * 5000]
    table.write_text("chain,state\n" + "".join(f"a,{word}\n" for word in words), encoding="utf-8")
    numbers = {"7": 7, "1000": 1000, "-3": -3, "0": 0}
    source = read_recorded(table)["a"]
    assert [state for state, _ in taken(source, len(words))] == [numbers.get(word, word) for word in words]
    with pytest.warns(SetAsideWarning), cs.learn(read_recorded(table), 20, progress=False) as study:
        assert study.states("a") == [numbers.get(word, word) for word in words]
    table.write_text("chain,state,path\n7,x,1\n007,y,1\n7,y,01\n", encoding="utf-8")
    found = read_recorded(table)
    assert taken(found["7"], 2) == [("x", True), ("y", True)]
    assert taken(found["007"], 1) == [("y", True)]


def test_blanks_after_the_commas_of_a_recorded_file_do_not_count(tmp_path):
    table = tmp_path / "blanks.csv"
    table.write_text("chain,state,path\na, 1, 1\n a ,0,1\na, up ,1\na,\t1,2\n", encoding="utf-8")
    (source,) = read_recorded(table).values()
    assert taken(source, 4) == [(1, True), (0, False), ("up", False), (1, True)]
    table.write_text("chain,state\na, 1\na, 0\na, 1\n", encoding="utf-8")
    with pytest.warns(SetAsideWarning), cs.learn(read_recorded(table), 5, states={"a": 2}, progress=False) as study:
        assert study.counts("a").transitions.tolist() == [[0, 1], [1, 0]]
    table.write_text("chain,state\na, 1\na, \n", encoding="utf-8")
    with pytest.raises(FileError, match=r"row 2 of .* has no state"):
        read_recorded(table)


@pytest.mark.parametrize(
    ("times", "order"),
    [
        (["10", "9", "9.5", "-1e3"], "dbca"),
        (["1700000000000000001", "1700000000000000000", "0", "-1"], "dcba"),  # alike as floats
        (["2026-01-02", "2026-01-01", "2025-12-31", "2026-01-01"], "cbda"),
    ],
)
def test_recorded_times_are_numbers_or_texts(tmp_path, times, order):
    table = tmp_path / "times.csv"
    table.write_text("chain,state,t\n" + "".join(f"c,{x},{t}\n" for x, t in zip("abcd", times, strict=True)))
    assert "".join(state for state, _ in taken(read_recorded(table, time="t")["c"], 4)) == order


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (["1", "z", "2"], "row 2 of .* cannot be put in order: its t 'z' is no number, and those before are"),
        (["z", "y", "2"], "row 3 of .* cannot be put in order: its t '2' has no place among those before"),
        (["1", "nan", "2"], "row 2 of .* its t 'nan' is no number, and those before are"),
        (["1", "1_0", "2"], "row 2 of .* its t '1_0' is no number, and those before are"),
    ],
)
def test_recorded_times_of_two_kinds_have_no_order(tmp_path, times, words):
    table = tmp_path / "times.csv"
    table.write_text("chain,state,t\n" + "".join(f"c,x,{t}\n" for t in times))
    with pytest.raises(FileError, match=words):
        read_recorded(table, time="t")
    if times[1] == "nan":
        import duckdb

        parquet = tmp_path / "times.parquet"
        numbers = "SELECT 'c' AS chain, 'x' AS state, unnest([1.0, 'nan'::DOUBLE, 2.0]) AS t"
        duckdb.execute(f"COPY ({numbers}) TO '{parquet}' (FORMAT parquet)")
        with pytest.raises(FileError, match=r"row 2 of .* its t nan has no place among those before"):
            read_recorded(parquet, time="t")


# -- programs


def test_a_program_in_python(tmp_path):
    script = tmp_path / "walk.py"
    script.write_text(
        "import sys\nstate = 0\nfor line in sys.stdin:\n"
        "    state = 0 if line.strip() == 'restart' else (state + 1) % 3\n    print(state, flush=True)\n"
    )
    source = Program([sys.executable, str(script)])
    assert taken(source, 4) == [("1", True), ("2", False), ("0", False), ("1", False)]
    source.restart()
    assert source.advance() == ("0", True)
    source.close()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import time; time.sleep(60)", "has not answered for 0.5 seconds"),
        ("import sys; sys.exit(3)", "has ended with status 3"),
        ("import os; os.kill(os.getpid(), 9)", "has ended with status -9"),
        ("print(); input()", "no state"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush(); input(); input()", "no state"),
        ("import sys; sys.stdout.buffer.write(b'x' * 20000); sys.stdout.flush(); input(); input()", "no state"),
    ],
)
def test_programs_that_fail(script, words):
    source = Program([sys.executable, "-c", script], timeout=0.5 if "sleep" in script else 20.0)
    with pytest.raises(SourceError, match=words):
        source.advance()
    source.close()


def test_a_program_is_started_without_a_shell(tmp_path):
    with pytest.raises(SourceError, match="could not be started"):
        Program(["echo hello; touch " + str(tmp_path / "made")]).advance()
    assert not (tmp_path / "made").exists()
    for wrong in ("echo", [], [1]):
        with pytest.raises(InputError, match="list of words"):
            Program(wrong)


def test_a_program_that_dies_now_and_then_loses_steps(tmp_path):
    script = tmp_path / "frail.py"
    script.write_text(
        "import os, random, sys\nstate = 0\nfor line in sys.stdin:\n"
        "    if random.random() < 0.3: os._exit(1)\n"
        "    state = random.randrange(3)\n    print(state, flush=True)\n"
    )
    study = cs.learn({"a": Program([sys.executable, "-S", str(script)])}, 25, states={"a": 3}, progress=False)
    assert study.stop_reason == "budget"
    assert study.progress().lost >= 1
    assert 2 <= study.chain("a").paths <= 1 + study.progress().lost
    replayed_counts(study, {"a": 3})


def test_a_program_that_never_works_is_set_aside():
    sources = {"a": Program([sys.executable, "-S", "-c", "print('rubbish'); input(); input()"]), "b": lambda: 0}
    with pytest.warns(SetAsideWarning, match="'a': .*no state of the chain"):
        study = cs.learn(sources, 12, states={"a": 2, "b": 1}, progress=False)
    assert study.certificate().aside == ("a",)
    assert study.progress().lost == 10
    assert study.progress().observations == 12
    aside = next(event for event in study.events() if event.kind == "set aside")
    assert "no state of the chain" in aside.detail["reason"]


def test_a_program_that_is_not_there_is_refused_before_anything_is_made(tmp_path):
    (tmp_path / "walk").write_text("#!/bin/sh\n")
    missing = Program(["./walk"], directory=str(tmp_path))
    words = r"the source of the chain 'a' cannot be used: \['./walk'\] cannot be started: the file './walk' cannot be"
    for where in (None, tmp_path / "study.db"):
        with pytest.raises(InputError, match=words):  # it is no program before it can be run
            cs.learn({"a": missing}, 20, where=where, states={"a": 2}, progress=False)
    assert not (tmp_path / "study.db").exists()
    (tmp_path / "walk").chmod(0o755)
    missing.check()
    Program([sys.executable]).check()
    (tmp_path / "walk.py").write_text("")
    for words in (["-c", "pass"], ["-"], ["-m", "json.tool"], ["-X", "dev", "-u", "walk.py"], ["-m", "walk"]):
        Program([sys.executable, *words], directory=str(tmp_path)).check()
    with pytest.raises(InputError, match=r"cannot be started: Python finds no module 'walks\.steps'"):
        Program([sys.executable, "-I", "-m", "walks.steps"], directory=str(tmp_path)).check()
    with pytest.raises(InputError, match=r"cannot be started: there is no file 'walks\.py'"):
        Program([sys.executable, "-W", "error", "walks.py", "-m", "json"], directory=str(tmp_path)).check()
    with pytest.raises(InputError, match="there is no program 'nosuchthing'"):
        Program(["nosuchthing"]).check()
    with pytest.raises(InputError, match="there is no directory"):
        Program([sys.executable], directory=str(tmp_path / "none")).check()


@pytest.mark.parametrize("executor", [False, True], ids=["alone", "threads"])
def test_a_program_that_cannot_be_started_loses_nothing(tmp_path, executor):
    """It is there, and cannot be run. No observation was made."""
    (tmp_path / "walk").write_bytes(b"\x7fELF")
    (tmp_path / "walk").chmod(0o755)
    sources = {"a": Program([str(tmp_path / "walk")]), "b": lambda: 0}
    with threads(executor) as pool, pytest.warns(SetAsideWarning, match="'a': .*could not be started"):
        study = cs.learn(sources, 12, states={"a": 2, "b": 1}, executor=pool, progress=False)
    assert study.certificate().aside == ("a",)
    assert (study.progress().lost, study.progress().leases) == (0, 0)
    assert study.chain("a").paths == 0
    (reason,) = [event.detail["reason"] for event in study.events() if event.kind == "set aside"]
    assert "could not be started" in reason
    study.extend(budget=20)
    study.take_up("a")
    assert study.certificate().aside == ()
    assert study.ask() == "a"


def test_a_factory_makes_sources():
    factory = Factory(lambda: itertools.count(5))
    first, second = factory.source(), factory.source()
    assert taken(first, 2) == [(5, True), (6, False)]
    assert taken(second, 1) == [(5, True)]
    with pytest.raises(InputError, match="a factory needs a function that makes sources, not 3"):
        Factory(3)
    with pytest.raises(InputError, match="a source must be"):
        Factory(lambda: 3).source()


@pytest.mark.system
def test_a_program_in_shell(tmp_path):
    script = tmp_path / "walk.sh"
    script.write_text(next(block for language, block in code_blocks() if language == "sh"))
    source = Program([shutil.which("sh"), str(script)])
    assert taken(source, 4) == [("1", True), ("2", False), ("0", False), ("1", False)]
    source.close()


@pytest.mark.system
def test_a_program_in_c(tmp_path):
    code = next(block for language, block in code_blocks() if language == "c")
    (tmp_path / "walk.c").write_text(code)
    subprocess.run([shutil.which("cc"), "-O1", "-o", str(tmp_path / "walk"), str(tmp_path / "walk.c")], check=True)
    source = Program([str(tmp_path / "walk"), "7"])
    states = {state for state, _ in taken(source, 50)}
    assert states <= {"0", "1", "2"}
    source.restart()
    assert source.advance() == ("0", True)
    source.close()


# -- environments


def test_a_gymnasium_environment():
    source = Environment("FrozenLake-v1", seed=3)
    seen = taken(source, 200)
    assert seen[0] == (0, True)
    paths = [state for state, fresh in seen if fresh]
    assert len(paths) > 5
    assert set(paths) == {0}
    source.restart()
    assert source.advance() == (0, True)
    again = Environment("FrozenLake-v1", seed=3)
    assert taken(again, 200) == seen
    source.close()


def test_an_environment_that_goes_on_repeats_no_episode():
    """With a seed it gives the same states in every process: those that a study has counted must not come again."""
    source = Environment("FrozenLake-v1", seed=3)
    first = taken(source, 300)
    again, other = Environment("FrozenLake-v1", seed=3), Environment("FrozenLake-v1", seed=3)
    place = Place(8, 5, first[-1][0], 300)
    assert not again.resume(place)
    assert not other.resume(place._replace(step=1, last=None))
    further = taken(again, 300)
    assert further[0] == (0, True)
    assert further != first
    assert further == taken(other, 300)  # it can be repeated all the same
    again.resume(Place(9, 1, None, 0))  # two programs that begin at once
    assert taken(again, 300) not in (first, further)
    again.resume(Place())
    assert taken(again, 300) == first
    for each in (source, again, other):
        each.close()


def test_an_environment_with_a_policy_and_an_encoder():
    def encode(observation):
        return "left" if observation[0] < 0 else "right"

    source = Environment("CartPole-v1", policy=lambda observation: int(observation[2] > 0), encode=encode, seed=1)
    assert {state for state, _ in taken(source, 30)} <= {"left", "right"}
    with pytest.raises(InputError, match="need an encoder"):
        Environment("CartPole-v1").advance()
    with pytest.raises(InputError, match="no environment"):
        Environment("NoSuchThing-v9")
    with pytest.raises(InputError, match="reset and step"):
        Environment(3)


def test_a_factory_of_simulated_chains_says_what_to_do():
    with pytest.raises(InputError, match="give the chain itself, without a factory"):
        Factory(lambda: cs.MarkovChain([[1.0]])).source()


def test_a_file_that_cannot_be_executed_is_named_as_one(tmp_path):
    script = tmp_path / "walk.sh"
    script.write_text("echo 0")
    with pytest.raises(InputError, match=r"the file '.*walk.sh' cannot be executed"):
        Program([str(script)]).check()


@pytest.mark.parametrize("threads", [False, True])
def test_a_program_that_dies_before_its_first_answer_has_lost_nothing(threads):
    pool = ThreadPoolExecutor(1) if threads else None
    source = Program([sys.executable, "-S", "-c", "raise SystemExit(3)"])
    with pytest.warns(SetAsideWarning, match="has ended with status 3"):
        study = cs.learn({"a": source}, 5, states={"a": 2}, executor=pool, progress=False)
    assert (study.progress().aside, study.progress().lost, study.progress().observations) == (1, 0, 0)
    assert "path ended" not in [event.kind for event in study.events()]
