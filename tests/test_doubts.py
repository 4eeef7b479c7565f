"""Answers and certificates of data that our own checks reject: they say first that no bound holds (issue 25)."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import chainscout as cs
from chainscout import report
from chainscout.cli import main
from chainscout.logs import count_transitions, read_paths
from chainscout.numerals import cell
from chainscout.report.html import section
from chainscout.report.study_data import StudyReport

STATES = ["idle", "busy", "down"]
LAW = {"idle": [0.6, 0.3, 0.1], "busy": [0.3, 0.5, 0.2], "down": [0.5, 0.25, 0.25]}
QUESTION = "reach down from idle within 3"


def walk(number, memory, seed=1):
    """A Markov chain or, with ``memory``, a process that goes back from 'busy' to where it came from."""
    rng = np.random.default_rng(seed)
    states = ["idle", "busy"]
    while len(states) < number:
        back = states[-1] == "busy" and rng.random() < memory
        states.append(states[-2] if back else str(rng.choice(STATES, p=LAW[states[-1]])))
    return states


def changed(number):
    rng = np.random.default_rng(2)
    return [str(rng.choice(STATES, p=[0.8, 0.1, 0.1] if k < number // 2 else [0.1, 0.8, 0.1])) for k in range(number)]


def told(walks, where=None, **options):
    study = cs.Study.create(where, dict.fromkeys(walks, STATES), **options)
    study.tell_many(
        [
            (name, state)
            for states in zip(*walks.values(), strict=True)
            for name, state in zip(walks, states, strict=True)
        ]
    )
    return study


FINE, ORDER = walk(3000, 0.0), walk(3000, 0.4)


# -- answers from paths


def test_an_answer_from_data_that_a_check_rejects_says_first_that_no_bound_applies():
    found = cs.answer(cs.Paths.from_walks([ORDER], STATES), QUESTION)
    assert (found.holds, found.code, found.guaranteed) == (False, "order", False)
    since = int(found.notes[0].split("draw ")[1].split(":")[0].replace(",", ""))
    assert 100 < since < 3000
    first, second, *_ = str(found).splitlines()
    assert first == found.notes[0]
    assert first.startswith("no bound holds: the check of order (predecessor) rejects since draw ")
    assert QUESTION in second
    assert "not guaranteed" in second
    assert "no bound holds" in repr(found)
    content = found.to_json()
    assert list(content)[:2] == ["holds", "code"]
    assert (content["holds"], content["code"]) == (False, "order")
    assert bool(found.to_pandas()["holds"][0]) is False
    before = cs.Paths.from_walks([ORDER[: since - 1]], STATES)
    assert cs.answer(before, QUESTION).holds
    assert not cs.answer(cs.Paths.from_walks([ORDER[:since]], STATES), QUESTION).holds


@pytest.mark.parametrize("method", ["replay", "row-likelihood"])
def test_every_method_says_it(method):
    assert not cs.answer(cs.Paths.from_walks([ORDER], STATES), QUESTION, method=method).holds


def test_a_change_is_said_with_its_moment():
    found = cs.answer(cs.Paths.from_walks([changed(3000)], STATES), QUESTION)
    assert found.code == "change"
    moment = int(found.notes[0].split("since draw ")[1].split(":")[0].replace(",", ""))
    assert abs(moment - 1500) < 100


def test_an_answer_from_a_markov_chain_holds():
    found = cs.answer(cs.Paths.from_walks([FINE], STATES), [QUESTION, "share of down"])
    assert [(each.holds, each.code, each.guaranteed) for each in found] == [(True, None, True)] * 2
    assert cs.answer(cs.MarkovChain([LAW[state] for state in STATES], states=STATES), QUESTION).holds


# -- answers from studies


def test_in_a_study_the_chain_that_is_rejected_is_told_from_the_others():
    study = told({"north": FINE, "south": ORDER}, questions=[QUESTION])
    assert not study.answer("south", QUESTION).holds
    assert study.answer("north", QUESTION).holds
    assert {name: found.holds for name, found in study.answers("share of down").items()} == {
        "north": True,
        "south": False,
    }
    assert study.answer("south", "share of down").code == "order"
    assert study.checks().blamed == study.diagnose().blamed
    said = study.look().doubts
    assert said.keys() == {"south"}
    assert said["south"].startswith("no bound holds: the check of order (predecessor) rejects")
    north, south = study.questions()
    assert (north.holds, north.code) == (True, None)
    assert (south.holds, south.code, south.met) == (False, "order", False)
    assert south.notes[0] == said["south"]
    assert "no bound holds" in str(study)
    table = next(panel for panel in StudyReport(study, "lab").panels() if panel.title == "questions")
    assert not any("all answers hold" in note for note in table.notes)
    assert [(row["at least"] is None, row.get("code")) for row in table.records()] == [(False, None), (True, "order")]
    card = StudyReport(study, "lab").cards()[1]
    assert (card.holds, card.code) == (False, "order")
    assert card.words.startswith("no bound holds")


def test_a_chain_whose_change_is_rejected_is_named_from_the_stored_checks():
    study = told({"a": FINE, "b": changed(3000)})
    assert [study.answer(name, QUESTION).code for name in ("a", "b")] == [None, "change"]


def test_the_draw_since_which_a_check_rejects_stays_the_same():
    """Also when the stored history of its evidence is thinned."""
    study = cs.Study.create(None, {"order": STATES})
    found = set()
    for state in ORDER:
        study.tell("order", state)
        if study.progress().observations % 750 == 0:
            found |= {check.since for check in study.checks().checks if check.kind == "order"}
    assert found == {next(check.since for check in study.diagnose() if check.kind == "order")}


def test_the_command_prints_the_answer_and_exits_with_3(tmp_path):
    where = tmp_path / "lab.db"
    told({"south": ORDER}, where).close()
    found = CliRunner().invoke(main, ["answer", str(where), "south", QUESTION])
    assert found.exit_code == 3
    assert found.stdout.startswith("no bound holds: the check of order")
    assert QUESTION in found.stdout
    found = CliRunner().invoke(main, ["answer", str(where), "south", QUESTION, "--json"])
    assert found.exit_code == 3
    content = json.loads(found.stdout)
    assert (content["holds"], content["code"], content["chain"]) == (False, "order", "south")


# -- counts of a log


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "log.csv"
    lines = [
        f"{name},{at},{state}" for name, states in (("good", FINE), ("bad", ORDER)) for at, state in enumerate(states)
    ]
    file.write_text("\n".join(["id,at,what", *lines]))
    return file


COLUMNS = {"chain": "id", "time": "at", "state": "what"}


def test_a_count_strikes_out_the_bound_of_a_chain_that_it_rejects(log):
    words = ["count", str(log), "--chain", "id", "--time", "at", "--state", "what", "--states", ",".join(STATES)]
    words += ["--target-loss", "0.001"]
    loose = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert all(row["loss ≤, δ = 0.05"] > 0 for row in loose[0]["rows"])
    text = CliRunner().invoke(main, [*words, "--diagnose"]).stdout
    assert "(no bound: not a Markov chain — order)" in text
    struck = loose[0]["rows"][0]["loss ≤, δ = 0.05"]
    assert cell(struck) not in text
    strict = json.loads(CliRunner().invoke(main, [*words, "--diagnose", "--json"]).stdout)
    rows = {row["chain"]: row for row in strict[0]["rows"]}
    assert (rows["bad"]["loss ≤, δ = 0.05"], rows["bad"]["code"]) == (None, "order")
    assert rows["good"]["loss ≤, δ = 0.05"] > 0
    assert rows["good"].get("code") is None
    whole = {row["quantity"]: row for row in strict[1]["rows"]}["certified: every loss ≤, δ = 0.05"]
    assert (whole["value"], whole["code"]) == (None, "order")
    assert "With probability" not in json.dumps(strict, ensure_ascii=False)


def test_html_strikes_the_bound_out(log):
    with count_transitions(str(log), **COLUMNS, states=STATES) as counts:
        found = cs.diagnose(read_paths(str(log), **COLUMNS, states=STATES))
        page = "".join(section(table) for table in report.counted(counts, diagnosis=found))
    assert page.count("<s>") == 2
    assert "</s> (no bound: not a Markov chain — order)" in page


def test_an_interval_model_of_a_rejected_chain_says_so(tmp_path):
    study = told({"fine": FINE, "order": ORDER})
    for name, says in (("order", "no bound holds: the check of order"), ("fine", "all intervals of the chain hold")):
        study.export(tmp_path / "model.prism", chain=name, start="idle")
        head = (tmp_path / "model.prism").read_text().splitlines()[0]
        assert head.startswith(f"// chain '{name}' after 3000 observations: {says}")
