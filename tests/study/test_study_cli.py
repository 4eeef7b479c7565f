"""The command line of studies, as scripts in other languages use it."""

import json
import time

import numpy as np
import pytest
from click.testing import CliRunner
from study_commands import answer, run

from chainscout.cli import main
from chainscout.problems import Problem
from chainscout.study import Study


@pytest.fixture
def lab(folder):
    path = folder / "lab.db"
    run("new", path, "--chain", "north=idle,busy,down", "--chain", "south=4", "--chain", "east=?", "--budget", "40")
    return path


@pytest.fixture
def north(folder):
    """A study of one chain: what is next is not in question."""
    path = folder / "north.db"
    assert run("new", path, "--chain", "north=idle,busy,down", "--budget", "40") == f"{path}: a study of 1 chain\n"
    return path


def test_a_whole_study_by_commands(lab):
    while True:
        found = CliRunner().invoke(main, ["ask", str(lab)])
        if found.exit_code:
            break
        name = found.stdout.strip()
        state = {"north": "busy", "south": "3", "east": "x1"}[name]
        said = answer("tell", lab, name, state)
    assert "finished (the budget is spent)" in found.output
    assert said == {"observations": 40, "stop_reason": "budget"}
    tables = answer("status", lab)
    assert tables[0]["rows"][-1] == {"quantity": "finished", "value": "the budget is spent"}
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
    token = lease.pop("token")
    assert lease == {"chain": "north", "path": 1, "state": None, "step": 1, "steps": 1}
    assert "has ended" in run("tell", lab, "north", "idle", "--token", "9999", status=1)
    assert "'guess' is not a valid integer" in run("tell", lab, "north", "idle", "--token", "guess", status=2)
    assert "has ended" in run("tell", lab, "south", "1", "--token", token, status=1)
    place = ("--path", "1", "--step", "1")
    for _ in range(2):  # the second is a retry
        assert answer("tell", lab, "north", "idle", "--token", token, *place)["observations"] == 1
    assert "has ended" in run("tell", lab, "north", "busy", "--token", token, status=1)
    assert "not both" in run("ask", lab, "--lease", "robot", "--number", "2", status=2)


def test_a_worker_goes_on_with_its_own_path(north):
    run("tell", north, "north", "idle", "--token", answer("ask", north, "--lease", "robot")["token"])
    lease = answer("ask", north, "--lease", "robot")
    assert (lease["path"], lease["state"], lease["step"]) == (1, "idle", 2)
    place = ("--path", "1", "--step", "1")
    words = run("tell", north, "north", "idle", "--token", lease["token"], *place, status=1)
    assert "observation 1 of path 1 of the chain 'north' was told before, under another lease" in words


def test_a_retry_under_a_lease_needs_no_path_while_it_is_held(lab):
    lease = answer("ask", lab, "--lease", "robot", "--steps", "3")
    for state in ("idle", "idle"):
        assert answer("tell", lab, "north", state, "--token", lease["token"], "--step", "1")["observations"] == 1
    assert "with another state" in run("tell", lab, "north", "busy", "--token", lease["token"], "--step", "1", status=2)


def test_every_worker_walks_a_path_of_its_own_and_so_do_plain_calls(north):
    for worker in ("robot", "rig"):
        lease = answer("ask", north, "--lease", worker)
        assert (lease["chain"], lease["state"]) == ("north", None)
        run("tell", north, "north", "idle", "--token", lease["token"])
    run("tell", north, "north", "busy")
    run("tell", north, "north", "idle")
    run("tell", north, "north", "down", "--path", "3", "--step", "3")
    with Study.open(north, read_only=True) as study:
        assert [(line.path, line.step, line.state) for line in study.log("north")] == [
            (1, 1, "idle"),
            (2, 1, "idle"),
            (3, 1, "busy"),
            (3, 2, "idle"),
            (3, 3, "down"),
        ]
        assert study.counts("north").total == 2


def test_ask_says_where_the_path_stands(lab):
    def ask():
        found = CliRunner().invoke(main, ["ask", str(lab)])
        return found.stdout, found.stderr

    assert ask() == ("north\n", "path 1 of north begins with the next state\n")
    assert answer("ask", lab) == {"chains": ["north"], "path": 1, "state": None, "step": 1}
    run("tell", lab, "north", "idle")
    assert ask() == ("north\n", "path 1 of north is in 'idle'\n")
    assert answer("ask", lab) == {"chains": ["north"], "path": 1, "state": "idle", "step": 2}


def test_one_process_a_chain_is_held_by_one_worker_at_a_time(folder):
    path = folder / "rigs.db"
    run("new", path, "--chain", "rig=2", "--paths", "shared")
    lease = answer("ask", path, "--lease", "Ann")
    for words in (("rig", "0"), ("rig", "0", "--path", "1", "--step", "1")):
        assert "only the holder of a lease can say where it is" in run("tell", path, *words, status=2)
    assert run("ask", path, "--lease", "Ben", status=1).startswith("chainscout: ")
    run("tell", path, "rig", "0", "--token", lease["token"])
    assert answer("ask", path) == {"chains": ["rig"], "path": 1, "state": 0, "step": 2}
    lease = answer("ask", path, "--lease", "Ben")
    assert (lease["path"], lease["state"], lease["step"]) == (1, 0, 2)
    assert "must be" in run("new", folder / "x.db", "--chain", "a=2", "--paths", "mine", status=2)


def test_a_lease_is_renewed_and_given_back(lab):
    lease = answer("ask", lab, "--lease", "robot", "--seconds", "0.5", "--steps", "3")
    token = ("--token", lease["token"])
    assert answer("renew", lab, "north", *token, "--seconds", "300") == {"chain": "north", "seconds": 300}
    time.sleep(0.6)
    run("tell", lab, "north", "idle", *token)  # the half second alone would be over
    assert run("renew", lab, "north", *token, "--seconds", "30") == "north is held for 30 seconds\n"
    assert answer("give-back", lab, "north", *token) == {"chain": "north", "stop_reason": None}
    with Study.open(lab) as study:
        assert study.progress().lost == 0
        assert study.events()[-1].kind == "lease given back"
    for command in ("renew", "give-back"):
        words = run(command, lab, "north", *token, status=1)
        assert words == "chainscout: the lease of the chain 'north' has ended, if there was one: nothing was changed\n"
        assert "Missing option '--token'" in run(command, lab, "north", status=2)
        assert "(did you mean north?)" in run(command, lab, "nroth", *token, status=2)
    assert "--seconds (how long a lease lasts)" in run("renew", lab, "north", *token, "--seconds", "0", status=2)


def test_a_path_that_begins_under_a_lease_gives_the_lease_another_token(north):
    lease = answer("ask", north, "--lease", "robot", "--steps", "3")
    assert answer("tell", north, "north", "idle", "--token", lease["token"])["observations"] == 1
    begun = answer("tell", north, "north", "busy", "--token", lease["token"], "--begin")
    assert begun["token"] != lease["token"]
    assert "has ended" in run("tell", north, "north", "down", "--token", lease["token"], status=1)
    assert "token" not in answer("tell", north, "north", "down", "--token", begun["token"])
    with Study.open(north, read_only=True) as study:
        assert [(line.path, line.state) for line in study.log()] == [(1, "idle"), (2, "busy"), (2, "down")]


def test_a_lease_whose_worker_cannot_go_on_is_given_back(lab):
    run("tell", lab, "north", "idle")
    lease = answer("ask", lab, "--lease", "robot")
    assert run("give-back", lab, lease["chain"], "--token", lease["token"], "--lost") == f"{lease['chain']} is free\n"
    with Study.open(lab) as study:
        assert study.progress().lost == 1


def test_a_finished_study_is_extended(lab):
    run("tell", lab, "-", stdin="south 1\n" * 40)
    words = "the study is finished (the budget is spent); extend it with a larger budget to go on"
    assert run("ask", lab, status=1) == f"chainscout: {words}\n"
    assert run("extend", lab, "--budget", "1e6") == f"{lab}: budget 1,000,000\n"
    run("tell", lab, "south", "1")
    said = answer("extend", lab, "--target-loss", "0.25", "--deadline", "2020-05-01T18:00+02:00")
    assert said == {
        "budget": 1e6,
        "target_loss": 0.25,
        "target_width": None,
        "deadline": "2020-05-01T16:00:00+00:00",
        "stop_reason": "deadline",
    }
    words = "budget 1,000,000, target loss 0.3, deadline 2020-05-01T16:00:00+00:00; finished (the deadline has passed)"
    assert run("extend", lab, "--target-loss", "0.3") == f"{lab}: {words}\n"
    assert "extend it with a later deadline" in run("ask", lab, status=1)
    assert "by a budget, a target or a deadline, and none was given" in run("extend", lab, status=2)
    assert "41 of the budget are used: it cannot become 40" in run("extend", lab, "--budget", "40", status=2)
    assert "must be a time as" in run("extend", lab, "--deadline", "noon", status=2)


def test_begin(lab):
    run("tell", lab, "south", "1")
    run("tell", lab, "south", "2", "--begin")
    run("tell", lab, "south", "3")
    with Study.open(lab, read_only=True) as study:
        assert study.counts("south").paths == 2
        assert study.counts("south").total == 1
    assert "leave out --path and --step" in run("tell", lab, "south", "1", "--begin", "--step", "1", status=2)
    assert "a chain and a state" in run("tell", lab, "south", status=2)


def test_exports(lab, folder):
    run("tell", lab, "-", stdin="north idle\nnorth busy\nsouth 2\nsouth 1\neast 7\neast 8\n")
    document = json.loads(run("export", lab))
    assert document["chains"]["north"]["states"] == ["idle", "busy", "down"]
    assert document["observations"] == 6
    assert document["paths"] == 3
    assert {name: chain["paths"] for name, chain in document["chains"].items()} == {"north": 1, "south": 1, "east": 1}
    assert document["chains"]["north"]["observations"] == 2
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
        assert f"{option} must be given once for each chain, and 'a' is given twice" in words
    for moment, words in (
        ("noon", "must be a time as"),
        ("2026-05-01T18:00", "must have a time zone, and 2026-05-01T18:00:00 has"),
    ):
        assert words in run("new", folder / "x.db", "--chain", "a=2", "--deadline", moment, status=2)
        assert words in run("extend", lab, "--deadline", moment, status=2)
    assert "cannot be saved here" in run("export", lab, "--out", folder / "none" / "x.json", status=1)
    run("new", folder / "late.db", "--chain", "a=2", "--deadline", "2020-05-01T18:00+02:00")
    assert "the study is finished (the deadline has passed)" in run("ask", folder / "late.db", status=1)
    assert "there is no study at" in run("ask", folder / "none.db", status=1)
    assert "no chain 'west'" in run("status", lab, "--chain", "west", status=2)
    assert "no chain 'nroth' (did you mean north?)" in run("status", lab, "--chain", "nroth", status=2)
    assert "no chain 'nroth' (did you mean north?)" in run("tell", lab, "nroth", "idle", status=2)
    assert "unknown state 'buzy' (did you mean busy?)" in run("tell", lab, "north", "buzy", status=2)
    assert "(did you mean json?)" in run("export", lab, "--format", "josn", status=2)
    words = run("new", folder / "x.db", "--chain", "north=2", "--cost", "nort=2", status=2)
    assert "names chains that the study does not have: ['nort'] (did you mean north?)" in words


def test_a_state_that_is_refused_begins_no_path(lab):
    run("tell", lab, "north", "idle")
    run("tell", lab, "north", "broken", "--begin", status=2)
    assert answer("ask", lab)["chains"] == ["north"]
    assert answer("ask", lab)["path"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ("tell", "north", "idle", "--path", "9" * 20),
        ("tell", "north", "idle", "--path", "1", "--step", "9" * 20),
        ("ask", "--lease", "w", "--steps", "9" * 20),
        ("ask", "--number", "9" * 20),
    ],
)
def test_a_number_that_no_database_holds_is_one_sentence(lab, words):
    told = run(words[0], lab, *words[1:], status=2)
    assert "must be at most" in told
    assert len(told.splitlines()) == 1
