"""Questions in study files, in ``learn`` and on the command line."""

import json
import subprocess
import sys

import pytest
from study_commands import answer, run

import chainscout as cs
from chainscout.errors import FileError, InputError, MixedUnitsWarning
from chainscout.learning import read_study_file
from chainscout.study import StopReason

CHAINS = {
    "north": cs.MarkovChain([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.4, 0.1, 0.5]], states=["idle", "busy", "down"]),
    "south": cs.MarkovChain([[0.9, 0.05, 0.05], [0.5, 0.3, 0.2], [0.4, 0.1, 0.5]], states=["idle", "busy", "down"]),
}
LINE = "reach down from idle within 4"
FILE = """
where = "lab.db"
policy = "furthest"
questions = ["reach down from idle within 4"]
target_width = 0.5

[chains.north]
states = ["idle", "busy", "down"]
matrix = [[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.4, 0.1, 0.5]]
questions = ["cost down=1 from idle over 3 steps"]

[chains.south]
states = ["idle", "busy", "down"]
matrix = [[0.9, 0.05, 0.05], [0.5, 0.3, 0.2], [0.4, 0.1, 0.5]]
"""


def test_learning_ends_with_the_answers_and_goes_on_for_narrower_ones(folder):
    where = folder / "lab.db"
    options = {
        "where": where,
        "questions": [cs.Reach("down", "idle", within=4)],
        "progress": False,
        "policy": "furthest",
    }
    with cs.learn(CHAINS, target_width=0.5, **options) as study:
        assert study.stop_reason is StopReason.TARGET_WIDTH
        first = study.progress().observations
    with cs.learn(CHAINS, target_width=0.45, **options) as study:
        assert study.stop_reason is StopReason.TARGET_WIDTH
        assert study.progress().observations > first
    with pytest.raises(InputError, match=r"larger one of 0\.9 was given"):
        cs.learn(CHAINS, target_width=0.9, **options)
    with pytest.raises(InputError, match="was created with the questions"):
        cs.learn(CHAINS, target_width=0.45, **{**options, "questions": "share of down"})
    with pytest.raises(InputError, match=r"was created with the limit None: it cannot go on with 0\.2"):
        cs.learn(CHAINS, limit=0.2, **options)
    with pytest.raises(InputError, match="learning needs an end"):
        cs.learn(CHAINS, questions=LINE, progress=False)


def test_one_width_for_answers_in_different_units_is_a_warning(folder):
    words = (
        r"one target width, and its answers are in different units \(probabilities or shares, steps\): the width 0\.2"
    )
    with pytest.warns(MixedUnitsWarning, match=words):
        cs.Study.create(None, {"a": 2}, questions=["share of 1", "time to 1 from 0"], target_width=0.2)
    for aim in ({"limit": 0.2}, {}):
        cs.Study.create(None, {"a": 2}, questions=["share of 1", "time to 1 from 0"], **aim)
    cs.Study.create(None, {"a": 2}, questions=["share of 1", "reach 1 from 0 within 3"], target_width=0.2)
    asked = ["--question", "share of 1", "--question", "cost 1=2 from 0 over 3 steps", "--target-width", "0.2"]
    command = [sys.executable, "-m", "chainscout", "new", str(folder / "a.db"), "--chain", "a=2", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("chainscout: a study has one target width, and its answers are in different units")
    assert done.stderr.count("\n") == 1


@pytest.mark.filterwarnings("ignore::chainscout.errors.MixedUnitsWarning")
def test_a_study_file_has_questions_for_all_chains_and_for_one(folder):
    path = folder / "study.toml"
    path.write_text(FILE)
    found = read_study_file(path).settings
    assert found.questions == {"north": [LINE, "cost down=1 from idle over 3 steps"], "south": [LINE]}
    assert found.target_width == 0.5
    shown = " ".join(run("learn", path, "--quiet").split())
    assert shown.endswith("The study has ended: every answer is at most 0.5 wide.")
    assert "questions answered well enough" in shown
    assert run("learn", path, "--quiet").count("ended") == 1  # it exists, with the same questions


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("idle within 4", "idle inside 4", "questions: 'before', 'from', 'within', 'ever', 'given', or the end is"),
        ("over 3 steps", "over 3", "chains.north.questions: 'steps' is expected after a number"),
        ("target_width = 0.5", "target_width = -1", "target_width: target_width .how wide every answer may"),
        ("target_width = 0.5", 'worst = "best"', "worst: worst must be one of"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_study_file_is_told_at_its_place(folder, old, new, message):
    path = folder / "study.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(FileError, match=message):
        read_study_file(path)


def test_the_command_line_makes_extends_and_shows_a_study_with_questions(folder):
    where = folder / "lab.db"
    words = ["--chain", "north=idle,busy,down", "--chain", "south=idle,busy,down", "--policy", "furthest"]
    run("new", where, *words, "--question", LINE, "--question-of", "north", "time to busy from idle", "--limit", "0.2")
    with cs.Study.open(where) as study:
        assert [(line.chain, line.question) for line in study.questions()] == [
            ("north", LINE), ("north", "time to busy from idle"), ("south", LINE),
        ]  # fmt: skip
        study.tell_many([("north", state) for state in ("idle", "busy") * 20])
    tables = {table["title"]: table for table in answer("status", where)}
    assert {"quantity": "limit", "value": 0.2} in tables["study"]["rows"]
    assert len(tables["questions"]["rows"]) == 3
    assert tables["questions"]["notes"][0] == "all answers hold at all times at once with probability ≥ 0.95"
    assert tables["questions"]["rows"][1]["at most"] is None
    assert any("time to busy from idle: the upper bound is infinite: " in note for note in tables["questions"]["notes"])
    extended = answer("extend", where, "--target-width", "0.3")
    assert extended["target_width"] == 0.3
    assert "the study has no chain 'nort'" in run("answer", where, "nort", LINE, status=2)
    found = answer("answer", where, "north", LINE)
    assert found["delta"] == 0.0125  # a registered question has its share of δ, and no 'as if asked beforehand'
    assert not any("beforehand" in note for note in found["notes"])


def test_the_worst_chain_is_named_in_the_last_sentence(folder):
    path = folder / "study.toml"
    text = FILE.replace("[[0.6, 0.3, 0.1]", "[[0.1, 0.1, 0.8]").replace("target_width = 0.5", 'worst = "highest"')
    path.write_text(text.replace('questions = ["cost down=1 from idle over 3 steps"]', ""))
    shown = " ".join(run("learn", path, "--quiet").split())
    assert "The study has ended: chain 'north' has the highest answer: " in shown
    limit = folder / "limit.toml"
    limit.write_text(path.read_text().replace('worst = "highest"', "limit = 0.5").replace("lab.db", "limit.db"))
    assert "1 of 2 answers are below 0.5, and the others are not." in " ".join(run("learn", limit, "--quiet").split())


@pytest.mark.filterwarnings("ignore::chainscout.errors.MixedUnitsWarning")
def test_json_of_learning_is_json_alone(folder):
    path = folder / "study.toml"
    path.write_text(FILE)
    assert [table["title"] for table in json.loads(run("learn", path, "--json"))][:2] == ["study", "chains"]
