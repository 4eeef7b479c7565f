"""``chainscout learn``: studies that a file describes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import pytest
from click.testing import CliRunner
from study_commands import answer, run

from chainscout.cli import main
from chainscout.errors import RenormalisedWarning
from chainscout.learning import read_study_file
from chainscout.study import Study

STUDY = """
where = "lab.db"
budget = 60
policy = "scout"

[chains.program]
states = ["up", "down"]
command = [{python!r}, "-S", "walk.py"]
timeout = "20s"

[chains.matrix]
matrix = [[0.5, 0.5], [0.1, 0.9]]
weight = 2.0

[chains.recorded]
recorded = "paths.csv"

[chains.environment]
environment = "FrozenLake-v1"
seed = 4
"""


def study_file(folder, text=None):
    (folder / "paths.csv").write_text("chain,state\n" + "recorded,0\nrecorded,1\n" * 40)
    (folder / "walk.py").write_text(
        "import sys\nfor n, line in enumerate(sys.stdin):\n    print(['up', 'down'][n % 2], flush=True)\n"
    )
    path = folder / "study.toml"
    path.write_text((text or STUDY).replace("{python!r}", json.dumps(sys.executable)), encoding="utf-8")
    return path


def test_learn_from_a_file_and_resume(folder):
    path = study_file(folder)
    tables = answer("learn", path)
    assert tables[0]["rows"][1] == {"quantity": "observations", "value": 60}
    assert {row["chain"] for row in tables[1]["rows"]} == {"program", "matrix", "recorded", "environment"}
    assert answer("learn", path)[0]["rows"][1]["value"] == 60  # nothing more to do
    with Study.open(folder / "lab.db") as study:
        study.extend(budget=90)
    words = "the study has the budget 90, and the smaller one of 60 was given"
    assert words in run("learn", path, status=2)  # the file is an older one, or means less: nothing is spent
    path.write_text(path.read_text(encoding="utf-8").replace("budget = 60", "budget = 90"), encoding="utf-8")
    later, earlier = "2999-05-01T18:00:00+02:00", "2998-01-01T00:00:00Z"
    path.write_text(f"target_loss = 1e-9\ndeadline = {later}\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    facts = {row["quantity"]: row["value"] for row in answer("learn", path)[0]["rows"]}
    assert facts["deadline"] == "2999-05-01T16:00:00+00:00"
    text = path.read_text(encoding="utf-8")
    for old, new, words in (
        (
            "1e-9",
            "0.5",
            "has the target loss 1e-09, and the larger one of 0.5 was given: give 1e-09 or less, or change",
        ),
        (
            later,
            earlier,
            "has the deadline 2999-05-01T16:00:00+00:00, and the earlier one of 2998-01-01T00:00:00+00:00",
        ),
    ):
        path.write_text(text.replace(old, new), encoding="utf-8")
        assert words in run("learn", path, status=2)
    path.write_text(text, encoding="utf-8")
    for number in ("0", "-1"):
        assert "must be a whole number ≥ 1, not" in run("learn", path, "--workers", number, status=2)
    assert answer("learn", path, "--workers", "3")[0]["rows"][1]["value"] == 90


def test_learn_a_problem(folder):
    path = study_file(folder, 'where = "p.db"\nproblem = "unlike"\nbudget = 30\nseed = 3\n')
    assert "observations" in run("learn", path, "--quiet")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("for line in __import__('sys').stdin: print(7, flush=True)", "answered '7', which is no state of the chain"),
        ("for line in __import__('sys').stdin: pass", "has not answered for 0.2 seconds"),
    ],
)
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_learn_says_why_a_chain_was_set_aside(folder, code, reason, workers):
    command = json.dumps([sys.executable, "-S", "-c", code])
    bad = f'where = "%s.db"\nbudget = 30\n[chains.bad]\nstates = 2\ntimeout = 0.2\ncommand = {command}\n'
    alone = CliRunner().invoke(main, ["learn", str(study_file(folder, bad % "alone")), "--json", *workers])
    assert alone.exit_code == 1, alone.exception
    line, further = alone.stderr.splitlines()
    assert further == f"'chainscout take-up {folder / 'alone.db'} CHAIN' takes a chain up again"
    assert line.startswith("chain 'bad' was set aside: ")
    assert line.endswith(reason) or f"{reason}:" in line
    assert json.loads(alone.stdout)[0]["notes"] == [line]
    beside = bad % "beside" + "[chains.good]\nmatrix = [[0.5, 0.5], [0.1, 0.9]]\n"
    found = CliRunner().invoke(main, ["learn", str(study_file(folder, beside)), "--json", *workers])
    assert found.exit_code == 0, found.exception
    assert found.stderr.splitlines()[:-1] == [line]
    assert answer("status", folder / "beside.db")[0]["notes"] == [line]
    assert run("take-up", folder / "beside.db", "bad") == "bad is no longer set aside; finished (the budget is spent)\n"
    assert answer("status", folder / "beside.db")[0]["notes"] == []


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
@pytest.mark.parametrize(("other", "status"), [("recorded", 0), ("silent", 1)])
def test_the_exit_status_says_whether_a_source_failed_when_all_chains_are_set_aside(folder, other, status, workers):
    """A recording that ended works. A program that never answers has lost no observation, and does not work."""
    (folder / "log.csv").write_text("chain,state\na,0\na,1\na,0\nb,1\nb,0\n")
    sources = {"recorded": 'recorded = "log.csv"', "silent": 'command = [{python!r}, "-S", "-c", "pass"]'}
    text = 'where = "lab.db"\nbudget = 30\n[chains.a]\nstates = 2\nrecorded = "log.csv"\n[chains.b]\nstates = 2\n'
    found = CliRunner().invoke(main, ["learn", str(study_file(folder, text + sources[other] + "\n")), *workers])
    assert found.exit_code == status, found.output
    assert "chain 'a' was set aside: all 3 recorded states were given" in found.stderr
    assert "The study has ended: every chain was set aside." in found.output


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_learn_refuses_a_program_that_is_not_there_before_anything_is_made(folder, workers):
    text = 'where = "x.db"\nbudget = 30\n[chains.bad]\nstates = 2\ncommand = ["./nosuch"]\n'
    words = "chains.bad: ['./nosuch'] cannot be started: there is no program './nosuch'"
    assert words in run("learn", study_file(folder, text), *workers, status=1)
    module = text.replace('["./nosuch"]', json.dumps([sys.executable, "-m", "nosuch"]))
    assert "Python finds no module 'nosuch'" in run("learn", study_file(folder, module), *workers, status=1)
    assert not (folder / "x.db").exists()


def test_learn_with_a_target_that_only_the_rest_meets(folder):
    text = (
        'where = "rest.db"\ntarget_loss = 0.5\n[chains.bad]\nstates = 2\ncommand = [{python!r}, "-S", "-c", "pass"]\n'
        "[chains.good]\nmatrix = [[0.5, 0.5], [0.1, 0.9]]\n"
    )
    found = CliRunner().invoke(main, ["learn", str(study_file(folder, text)), "--json"])
    assert found.exit_code == 1, found.exception
    words = "the target loss is certified but for the chains set aside"
    assert json.loads(found.stdout)[0]["rows"][-1] == {"quantity": "finished", "value": words}
    assert words in run("status", folder / "rest.db").replace("\n", " ")
    assert f"the study is finished ({words})" in run("ask", folder / "rest.db", status=1)
    assert json.loads(run("export", folder / "rest.db"))["stop_reason"] == "target_loss_of_the_rest"


SEEDED = """
import random, sys
rng = random.Random({seed})
for line in sys.stdin:
    print(rng.randrange(3), flush=True)
"""


@pytest.mark.parametrize(("seed", "status"), [("7", 1), ("", 0)])
def test_learn_after_a_crash_with_the_same_seed_has_no_bound_and_says_so(folder, seed, status):
    """The states of the first run were counted twice. So the target is never reached, and the budget is spent."""
    text = 'where = "lab.db"\nbudget = 100\n[chains.b]\nstates = 3\ncommand = [{python!r}, "-S", "seeded.py"]\n'
    (folder / "seeded.py").write_text(SEEDED.format(seed=seed))
    run("learn", study_file(folder, text))
    second = study_file(folder, text.replace("budget = 100", "budget = 2000\ntarget_loss = 0.05"))
    found = CliRunner().invoke(main, ["learn", str(second)])
    assert found.exit_code == status, found.output
    said = " ".join(found.output.split())
    assert ("no bound holds: paths 1 and 2 of b" in found.stderr) == bool(status)
    assert ("The study has ended: the budget is spent, but no bound holds." in said) == bool(status)
    assert ("The study has ended: the target loss is certified." in said) != bool(status)
    assert ("With probability 0.95" in said) != bool(status)
    assert ("certified" in " ".join(run("ask", folder / "lab.db", status=1).split())) != bool(status)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("where = 3\n", "where"),
        ("budget = 5\n", "where: this key is required"),
        ('where = "x.db"\n', "at least one chain"),
        ('where = "x.db"\nbudgets = 5\n[chains.a]\ncommand = "rm -r x"\nstate = 3\n', "budgets: unknown key"),
        ('where = "x.db"\n[chains.a]\ncommand = "rm -r x"\n', "chains.a.command"),
        ('where = "x.db"\n[chains.a]\nstates = 3\n', "one of command, matrix, recorded, environment"),
        ('where = "x.db"\n[chains.a]\nmatrix = [[1.5]]\n', "chains.a.matrix: row 0 holds probabilities"),
        ('where = "x.db"\n[chains.recorder]\nrecorded = "paths.csv"\n', "mean recorded?"),
        ('where = "x.db"\n[chains.a]\nrecorded = "none.csv"\n', "no file"),
        ('where = "x.db"\n[chains.a]\nrecorded = "paths.csv"\n', "has no chain 'a'"),
        ('where = "x.db"\n[chains.a]\nenvironment = "os:Env-v0"\n', "registered one"),
        ('where = "x.db"\nproblem = "unlike"\n[chains.a]\nmatrix = [[1.0]]\n', "not both"),
        ('where = "x.db"\nproblem = "nothing.toml"\n', "problem: "),
        ('where = "x.db"\nproblem = "unlyke"\n', "problem 'unlyke' (did you mean unlike?)"),
        ('where = "x.db"\nbudget = 3\n[chains.a]\nmatrix = [[1.0]]\ncost = 5.0\n', "budget: the budget 3 does not pay"),
        ('where = "x.db"\n[chains.a]\nmatrix = [[1.0]]\n', "learning needs an end"),
        (
            'where = "x.db"\nseed = -1\nproblem = "unlike"\n',
            "seed: this must be a whole number ≥ 0 and below 2**64, not -1",
        ),
        (
            f'where = "x.db"\n[chains.a]\nmatrix = [[1.0]]\nseed = {2**64}\n',
            "chains.a.seed: this must be a whole number ≥ 0 and below 2**64, not 18446744073709551616",
        ),
        ('where = "x.db"\n[chains.a]\nenvironment = "FrozenLake-v1"\nseed = 1.5\n', "chains.a.seed: this must be"),
        ("where = \n", "is not TOML"),
    ],
)
def test_study_files_are_checked_whole(folder, text, words):
    assert words in run("learn", study_file(folder, text), status=1)
    assert not (folder / "x.db").exists()


WRONG = """
where = "mysql://lab"
budgett = 100
budget = "many"
delta = 7.0
policy = "scuot"
paths = "sharde"
deadline = "tomorrow"
target_loss = -0.1

[chains]
"" = 3

[chains.rig]
states = "two"
comand = ["./simulate"]
command = ["./simulate", 7]
weight = true

[chains.model]
matrix = [[0.9, 0.2], [0.4, 0.5]]
states = ["up", "up"]
cost = -1.0

[chains.other]
states = ["up", 1.5]
matrix = [[1, "x"], [0.5, 0.5]]
timeout = "long"

[chains.larger]
states = 3
matrix = [[0.5, 0.5], [0.5, 0.4]]

[chains.none]
states = 0
matrix = [[0.5, 0.5], [0.5, 0.5]]

[chains.both]
matrix = [[1.0]]
environment = "FrozenLake-v1"

[chains.old]
recorded = "none.csv"
states = 0
"""


def test_everything_that_is_wrong_in_a_study_file_is_told_at_once(folder):
    """One line a mistake, at the place that the person wrote, with what was expected and what was given."""
    path = study_file(folder, WRONG)
    lines = run("learn", path, status=1).removeprefix("chainscout: ").splitlines()
    keys = (
        "the keys known here are where, budget, target_loss, questions, target_width, limit, worst, deadline, delta, "
    )
    keys += "certificate, policy, paths, problem, "
    states = "this must be how many states there are, or a list of their labels (strings or whole numbers), not "
    beginnings = [
        "budgett: unknown key (did you mean budget?); " + keys,
        "budget: this must be a number, not 'many'",
        "deadline: this must be a date and time with a time zone, as 2026-05-01T18:00:00+02:00 without quotes, not",
        "delta: delta (the probability with which a guarantee may fail) must be a finite number > 0 and ≤ 0.5, not 7",
        "policy: unknown policy 'scuot' (did you mean scout?): the policies are ",
        "paths: paths must be one of own, shared, not 'sharde' (did you mean shared?)",
        "target_loss: target_loss (the loss whose certificate ends the study) must be a finite number > 0, not -0.1",
        "where: a study is kept at a path or at postgresql://…, not at 'mysql://lab'",
        "chains.'': a chain's name must be a string that is not empty, not ''",
        "chains.'': a chain must be a table of keys, not 3",
        f"chains.rig.states: {states}'two'",
        "chains.rig.comand: unknown key (did you mean command?); the keys known here are states, weight, ",
        "chains.rig.command, item 2: this must be a string, not 7",
        "chains.rig.weight: this must be a number, not True",
        "chains.model.matrix: row 'up' sums to 1.1, but each row must sum to one",
        "chains.model.matrix: row 'up' sums to 0.9, but each row must sum to one",
        "chains.model.states: states must be unique, but 'up' stands for 2 of them",
        "chains.model.cost: cost must be a finite number > 0, not -1.0",
        f"chains.other.states: {states}['up', 1.5]",
        "chains.other.matrix, row 1, column 2: this must be a number, not 'x'",
        "chains.other.timeout: this must be a number of seconds > 0, or a duration such as '30s' or '5min', not 'long'",
        "chains.larger.states: the matrix has 2 states, not 3",
        "chains.larger.matrix: row 1 sums to 0.9, but each row must sum to one",
        "chains.none.states: the states of chain 'none' (how many there are) must be a whole number ≥ 1, not 0",
        "chains.both: a chain's states come from one of command, matrix, recorded, environment, and matrix, "
        "environment are given",
        "chains.old: there is no file",
        "chains.old.states: the states of chain 'old' (how many there are) must be a whole number ≥ 1, not 0",
    ]
    for beginning in beginnings:
        assert sum(line.startswith(f"{path}: {beginning}") for line in lines) == 1, (beginning, lines)
    assert len(lines) == len(beginnings), lines


def test_the_number_of_states_beside_a_matrix_is_its_size(folder):
    text = 'where = "n.db"\nbudget = 9\n[chains.a]\nstates = %d\nmatrix = [[0.5, 0.5], [0.5, 0.5]]\n'
    for number in (1, 3):
        words = run("learn", study_file(folder, text % number), status=1)
        assert f"chains.a.states: the matrix has 2 states, not {number}" in words
        assert not (folder / "n.db").exists()
    assert answer("learn", study_file(folder, text % 2))


def test_a_matrix_of_a_study_file_can_be_off_by_rounding(folder):
    text = 'where = "r.db"\nbudget = 9\n[chains.a]\nmatrix = [[0.333, 0.333, 0.333], [0, 1, 0], [0, 0, 1]]\n'
    assert "needs a 'tolerance'" in run("learn", study_file(folder, text), status=1)
    with warnings.catch_warnings():
        warnings.simplefilter("always", RenormalisedWarning)
        said = run("learn", study_file(folder, text + "tolerance = 0.01\n"))
    assert re.search(r"^chainscout: .*chains\.a\.matrix", said, re.M)  # one line, without the place in the code


def test_a_matrix_of_a_study_file_has_an_initial_law(folder):
    text = 'where = "i.db"\nbudget = 1\nseed = %d\n[chains.a]\nmatrix = [[0.5, 0.5], [0.5, 0.5]]\n'
    for seed in range(8):  # a uniform law would give the other state in half of them
        path = study_file(folder, text % seed + "initial = [0.0, 1.0]\n")
        assert read_study_file(path).sources["a"].advance() == (1, True)
    wrong = study_file(folder, text % 0 + "initial = [0.5, 0.6]\n")
    assert "chains.a.initial: " in run("learn", wrong, status=1)


@pytest.mark.parametrize("line", ["initial = [1.0]", "tolerance = 0.1"])
def test_only_a_matrix_has_an_initial_law_and_a_tolerance(folder, line):
    path = study_file(folder, f'where = "c.db"\nbudget = 9\n[chains.a]\ncommand = ["cat"]\n{line}\n')
    assert f"chains.a.{line.split()[0]}: only a chain with a matrix has this key" in run("learn", path, status=1)


def test_a_study_file_that_is_not_there(folder):
    assert "could not be read" in run("learn", folder / "none.toml", status=1)


def test_control_c_leaves_a_study_that_resumes(folder):
    path = study_file(folder, 'where = "p.db"\nproblem = "unlike"\nbudget = 100000000\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "chainscout", "learn", str(path), "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    while not (folder / "p.db").exists():
        time.sleep(0.05)
    with Study.open(folder / "p.db", read_only=True) as reader:
        while reader.progress().observations < 10:
            time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert "goes on" in process.communicate(timeout=60)[1]
    assert process.returncode == 130
    with Study.open(folder / "p.db") as study:
        study.audit()
        before = study.progress().observations
        study.tell(study.ask(), study.states(study.ask())[0])
        assert study.progress().observations == before + 1


def test_a_study_is_not_the_file_that_describes_one(folder):
    Study.create(folder / "lab.db", {"a": 2}, budget=10).close()
    assert "is a study, not the file that describes one: learn takes its study.toml" in run(
        "learn", folder / "lab.db", status=1
    )
