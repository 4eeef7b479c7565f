"""The command line of studies, as scripts in other languages use it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from chainscout.cli import main
from chainscout.errors import RenormalisedWarning
from chainscout.problems import Problem
from chainscout.study import Study


def run(*words, stdin=None, status=0):
    found = CliRunner().invoke(main, [str(word) for word in words], input=stdin)
    assert found.exit_code == status, (found.output, found.exception)
    return found.output


def answer(*words, **options):
    return json.loads(run(*words, "--json", **options))


@pytest.fixture
def lab(folder):
    path = folder / "lab.db"
    run("new", path, "--chain", "north=idle,busy,down", "--chain", "south=4", "--chain", "east=?", "--budget", "40")
    return path


def test_a_whole_study_by_commands(lab):
    while True:
        found = CliRunner().invoke(main, ["ask", str(lab)])
        if found.exit_code:
            break
        name = found.output.strip()
        state = {"north": "busy", "south": "3", "east": "x1"}[name]
        said = answer("tell", lab, name, state)
    assert "finished (budget)" in found.output
    assert said == {"observations": 40, "stop_reason": "budget"}
    tables = answer("status", lab)
    assert tables[0]["rows"][-1] == {"quantity": "finished", "value": "budget"}
    assert [row["chain"] for row in tables[1]["rows"]] == ["north", "south", "east"]
    assert "at least" in answer("status", lab, "--chain", "north")[0]["rows"][0]
    assert "study" in run("status", lab)


def test_batches(lab):
    chosen = answer("ask", lab, "--number", "4")["chains"]
    assert len(chosen) == 4
    said = run("tell", lab, "-", stdin="north idle\nsouth 2\nsouth 1\neast 7\n")
    assert said == "4 observations\n"
    with Study.open(lab) as study:
        assert study.states("east") == [7]
    assert "line 2" in run("tell", lab, "-", stdin="north idle\nsouth\n", status=2)
    assert "unknown state" in run("tell", lab, "-", stdin="north idle\nnorth up\n", status=2)
    assert "line 1: the study has no chain 'west'" in run("tell", lab, "-", stdin="west 1\n", status=2)
    assert "all at once" in run("tell", lab, "-", "x", status=2)


def test_a_batch_with_blank_lines_and_blanks_in_names(folder):
    path = folder / "halls.db"
    run("new", path, "--chain", "north hall=idle,busy", "--chain", "south=2")
    said = run("tell", path, "-", stdin="\n  north hall idle\n \nnorth hall\tbusy \nsouth 1\n\n")
    assert said == "3 observations\n"
    with Study.open(path) as study:
        assert [line.state for line in study.log("north hall")] == ["idle", "busy"]
    assert "line 3: the study has no chain 'north'" in run("tell", path, "-", stdin="south 1\n\nnorth hall\n", status=2)


def test_leases(lab):
    lease = answer("ask", lab, "--lease", "robot", "--seconds", "30")
    assert (lease["chain"], lease["step"], lease["restarted"]) == ("north", 1, True)
    assert "held by 'robot'" in run("tell", lab, "north", "idle", status=2)
    words = "the token is not that of the lease that holds the chain 'north' now"
    assert words in run("tell", lab, "north", "idle", "--token", "guess", status=1)
    assert "has ended" in run("tell", lab, "south", "1", "--token", lease["token"], status=1)
    answer("tell", lab, "north", "idle", "--token", lease["token"], "--step", "1")
    answer("tell", lab, "north", "idle", "--token", lease["token"], "--step", "1")  # a retry
    assert run("ask", lab, "--lease", "robot").startswith("north ")
    assert "not both" in run("ask", lab, "--lease", "robot", "--number", "2", status=2)


def test_a_lease_is_renewed_and_given_back(lab):
    lease = answer("ask", lab, "--lease", "robot", "--seconds", "0.5", "--steps", "3")
    token = ("--token", lease["token"])
    assert answer("renew", lab, "north", *token, "--seconds", "300") == {"chain": "north", "step": 1, "seconds": 300}
    time.sleep(0.6)
    run("tell", lab, "north", "idle", *token)  # the half second alone would be over
    assert run("renew", lab, "north", *token, "--seconds", "30") == "north is held for 30 seconds\n"
    assert answer("give-back", lab, "north", *token) == {"chain": "north", "step": 2, "stop_reason": None}
    run("tell", lab, "north", "busy")  # anybody's again, and the path goes on
    with Study.open(lab) as study:
        assert study.counts("north").segments == 1
        assert study.progress().lost == 0
    for command in ("renew", "give-back"):
        words = run(command, lab, "north", *token, status=1)
        assert words == "chainscout: the lease of the chain 'north' has ended: nothing was changed\n"
        assert "Missing option '--token'" in run(command, lab, "north", status=2)
        assert "(did you mean north?)" in run(command, lab, "nroth", *token, status=2)
    assert "seconds (how long the chain is held)" in run("renew", lab, "north", *token, "--seconds", "0", status=2)


def test_a_lease_whose_worker_cannot_go_on_is_given_back(lab):
    run("tell", lab, "north", "idle")
    lease = answer("ask", lab, "--lease", "robot")
    assert run("give-back", lab, lease["chain"], "--token", lease["token"], "--lost") == f"{lease['chain']} is free\n"
    with Study.open(lab) as study:
        assert study.progress().lost == 1


def test_a_finished_study_is_extended(lab):
    run("tell", lab, "-", stdin="south 1\n" * 40)
    words = "the study is finished (budget); extend it with a larger budget to go on"
    assert run("ask", lab, status=1) == f"chainscout: {words}\n"
    assert run("extend", lab, "--budget", "1e6") == f"{lab}: budget 1,000,000\n"
    run("tell", lab, "south", "1")
    said = answer("extend", lab, "--target-loss", "0.25", "--deadline", "2020-05-01T18:00+02:00")
    assert said == {
        "budget": 1e6,
        "target_loss": 0.25,
        "deadline": "2020-05-01T16:00:00+00:00",
        "stop_reason": "deadline",
    }
    words = "budget 1,000,000, target loss 0.3, deadline 2020-05-01T16:00:00+00:00; finished (deadline)"
    assert run("extend", lab, "--target-loss", "0.3") == f"{lab}: {words}\n"
    assert "extend it with a later deadline" in run("ask", lab, status=1)
    assert "by a budget, a target loss or a deadline, and none was given" in run("extend", lab, status=2)
    assert "41 of the budget are used: it cannot become 40" in run("extend", lab, "--budget", "40", status=2)
    assert "must be a time as" in run("extend", lab, "--deadline", "noon", status=2)


def test_restart(lab):
    run("tell", lab, "south", "1")
    run("tell", lab, "south", "2", "--restart")
    with Study.open(lab) as study:
        assert study.counts("south").segments == 2
    assert "a chain and a state" in run("tell", lab, "south", status=2)


def test_exports(lab, folder):
    run("tell", lab, "-", stdin="north idle\nnorth busy\nsouth 2\nsouth 1\neast 7\neast 8\n")
    document = json.loads(run("export", lab))
    assert document["chains"]["north"]["states"] == ["idle", "busy", "down"]
    assert document["observations"] == 6
    lines = run("export", lab, "--format", "csv").splitlines()
    assert lines[0] == "chain,from,to,transitions,estimate,lower,upper"
    assert len(lines) == 1 + 9 + 16 + 4
    run("export", lab, "--format", "npz", "--out", folder / "lab.npz")
    with np.load(folder / "lab.npz", allow_pickle=False) as arrays:
        assert arrays["names"].tolist() == ["north", "south", "east"]
        assert arrays["matrix0"].shape == (3, 3)
        kinds = ("states", "matrix", "lower", "upper", "transitions")  # docs/studies.md names them
        assert set(arrays) == {"names", *(f"{kind}{number}" for kind in kinds for number in range(3))}
        assert arrays["states2"].tolist() == ["7", "8"]
        assert arrays["transitions0"].sum() == 1
    assert answer("export", lab, "--format", "toml", "--out", folder / "lab.toml")["written"].endswith("lab.toml")
    problem = Problem.load(folder / "lab.toml")
    assert problem["east"].states == (7, 8)
    printed = run("export", lab, "--format", "toml")
    assert printed == (folder / "lab.toml").read_text(encoding="utf-8")
    assert "must end in .toml" in run("export", lab, "--format", "toml", "--out", folder / "lab.txt", status=2)
    assert "must be one of" in run("export", lab, "--format", "pickle", status=2)


def test_wrong_uses(folder, lab):
    words = "exists already: go on with it (by ask, tell or learn on the command line, by Study.open in Python), or"
    assert words in run("new", lab, "--chain", "a=2", status=2)
    assert "at least one" in run("new", folder / "x.db", status=2)
    assert "NAME=VALUE" in run("new", folder / "x.db", "--chain", "a", status=2)
    assert "NAME=NUMBER" in run("new", folder / "x.db", "--chain", "a=2", "--weight", "a=much", status=2)
    for option, values in (("--chain", ("a=2", "a=3")), ("--cost", ("a=2", "a=3"))):
        twice = [word for value in values for word in (option, value)]
        words = run("new", folder / "x.db", "--chain", "b=2", *twice, status=2)
        assert f"{option} must be given once for each chain, and a is given twice" in words
    for moment, words in (
        ("noon", "must be a time as"),
        ("2026-05-01T18:00", "must have a time zone, and 2026-05-01T18:00:00 has"),
    ):
        assert words in run("new", folder / "x.db", "--chain", "a=2", "--deadline", moment, status=2)
        assert words in run("extend", lab, "--deadline", moment, status=2)
    assert "could not be written" in run("export", lab, "--out", folder / "none" / "x.json", status=1)
    run("new", folder / "late.db", "--chain", "a=2", "--deadline", "2020-05-01T18:00+02:00")
    assert "the study is finished (deadline)" in run("ask", folder / "late.db", status=1)
    assert "there is no study at" in run("ask", folder / "none.db", status=1)
    assert "no chain 'west'" in run("status", lab, "--chain", "west", status=2)
    assert "no chain 'nroth' (did you mean north?)" in run("status", lab, "--chain", "nroth", status=2)
    assert "no chain 'nroth' (did you mean north?)" in run("tell", lab, "nroth", "idle", status=2)
    assert "unknown state 'buzy' (did you mean busy?)" in run("tell", lab, "north", "buzy", status=2)
    assert "(did you mean json?)" in run("export", lab, "--format", "josn", status=2)
    words = run("new", folder / "x.db", "--chain", "north=2", "--cost", "nort=2", status=2)
    assert "names chains that the study does not have: ['nort'] (did you mean north?)" in words


STUDY = """
where = "lab.db"
budget = 60
policy = "scout"

[chains.program]
states = ["up", "down"]
command = [{python!r}, "-S", "walk.py"]
timeout = 20.0

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
    assert answer("learn", path)[0]["rows"][6]["value"] == "2999-05-01T16:00:00+00:00"
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
        (None, "could not be started"),
        ("for line in __import__('sys').stdin: print(7, flush=True)", "answered '7', which is no state of the chain"),
        ("for line in __import__('sys').stdin: pass", "has not answered for 0.2 seconds"),
    ],
)
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_learn_says_why_a_chain_was_set_aside(folder, code, reason, workers):
    command = json.dumps(["./nosuch"] if code is None else [sys.executable, "-S", "-c", code])
    bad = f'where = "%s.db"\nbudget = 30\n[chains.bad]\nstates = 2\ntimeout = 0.2\ncommand = {command}\n'
    alone = CliRunner().invoke(main, ["learn", str(study_file(folder, bad % "alone")), "--json", *workers])
    assert alone.exit_code == 1, alone.exception
    (line,) = alone.stderr.splitlines()
    assert line.startswith("chain 'bad' was set aside: ")
    assert line.endswith(reason) or f"{reason}:" in line
    assert json.loads(alone.stdout)[0]["notes"] == [line]
    beside = bad % "beside" + "[chains.good]\nmatrix = [[0.5, 0.5], [0.1, 0.9]]\n"
    found = CliRunner().invoke(main, ["learn", str(study_file(folder, beside)), "--json", *workers])
    assert found.exit_code == 0, found.exception
    assert found.stderr.splitlines() == [line]
    assert answer("status", folder / "beside.db")[0]["notes"] == [line]


def test_learn_with_a_target_that_only_the_rest_meets(folder):
    text = (
        'where = "rest.db"\ntarget_loss = 0.5\n[chains.bad]\nstates = 2\ncommand = ["./nosuch"]\n'
        "[chains.good]\nmatrix = [[0.5, 0.5], [0.1, 0.9]]\n"
    )
    found = CliRunner().invoke(main, ["learn", str(study_file(folder, text)), "--json"])
    assert found.exit_code == 1, found.exception
    words = "the target loss is certified but for the chains set aside"
    assert json.loads(found.stdout)[0]["rows"][-1] == {"quantity": "finished", "value": words}
    assert words in run("status", folder / "rest.db").replace("\n", " ")
    assert f"the study is finished ({words})" in run("ask", folder / "rest.db", status=1)
    assert json.loads(run("export", folder / "rest.db"))["stop_reason"] == "target_loss_of_the_rest"


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
on_lost_lease = "contineu"
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
    keys = "the keys known here are where, budget, target_loss, deadline, delta, policy, on_lost_lease, problem, "
    states = "this must be how many states there are, or a list of their labels (strings or whole numbers), not "
    beginnings = [
        "budgett: unknown key (did you mean budget?); " + keys,
        "budget: this must be a number, not 'many'",
        "deadline: this must be a date and time with a time zone, as 2026-05-01T18:00:00+02:00 without quotes, not",
        "delta: delta (the probability with which a guarantee may fail) must be a finite number > 0 and < 1, not 7",
        "policy: unknown policy 'scuot' (did you mean scout?): the policies are ",
        "on_lost_lease: on_lost_lease must be one of restart, continue, not 'contineu' (did you mean continue?)",
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
        "chains.other.timeout: this must be a number, not 'long'",
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
    with pytest.warns(RenormalisedWarning, match="chains.a.matrix"):
        run("learn", study_file(folder, text + "tolerance = 0.01\n"))


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
        study.verify()
        before = study.progress().observations
        study.tell(study.ask(), study.states(study.ask())[0])
        assert study.progress().observations == before + 1
