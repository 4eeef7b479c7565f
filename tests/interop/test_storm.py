"""What model checkers make of the files that are written for them: Storm 2, in an environment of its own."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import chainscout as cs
from chainscout.formats import WRITTEN

pytestmark = pytest.mark.interop

PEER = Path(__file__).resolve().parent / "storm_peer.py"


def storm(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What Storm answers."""
    python = os.environ.get("CHAINSCOUT_INTEROP_PYTHON")
    assert python, "run these tests by 'make test-interop'"
    done = subprocess.run([python, PEER], input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout[done.stdout.index("[{") :])


STATES = ("idle", "busy", "blocked", "down")
CHAIN = cs.MarkovChain(
    [[0.7, 0.2, 0.1, 0], [0.3, 0.5, 0.15, 0.05], [0.25, 0.25, 0.5, 0], [0, 0, 0.125, 0.875]],
    states=STATES,
    initial=[0.5, 0.5, 0, 0],
)


def learned(where: Path, observations: int, seed: int) -> cs.Study:
    """A study of one chain that a simulated source was asked for so many times."""
    study = cs.Study.create(str(where), chains={"machine": list(STATES)}, budget=observations)
    random = np.random.default_rng(seed)
    state = "idle"
    for _ in range(observations):
        study.tell("machine", state)
        state = STATES[random.choice(4, p=CHAIN.matrix[STATES.index(state)])]
    return study


def box_reach(lower: np.ndarray, upper: np.ndarray, steps: int, avoided: list[int], *, largest: bool) -> np.ndarray:
    """Robust dynamic programming: the extreme probability of 'down' within so many steps over all rows in the boxes."""
    value = np.array([0.0, 0.0, 0.0, 1.0])
    for _ in range(steps):
        order = np.argsort(-value if largest else value, kind="stable")
        following = value.copy()
        for x in range(3):
            row, left = lower[x].copy(), 1 - lower[x].sum()
            for y in order:
                more = min(left, upper[x, y] - lower[x, y])
                row[y] += more
                left -= more
            following[x] = 0.0 if x in avoided else row @ value
        value = following
    return value


@pytest.mark.parametrize("observations", [30, 400, 20_000])
def test_bounded_reachability_over_intervals(tmp_path, observations):
    study = learned(tmp_path / "lab.db", observations, seed=observations)
    found = study.estimate("machine")
    asked = []
    formulas = {'P=? [F<=25 "down"]': (25, []), 'P=? [!"blocked" U<=7 "down"]': (7, [2])}
    for suffix in WRITTEN:
        study.export(tmp_path / f"model{suffix}")
        asked.append({"file": str(tmp_path / f"model{suffix}"), "exact": False, "formulas": list(formulas)})
    for suffix, answer in zip(WRITTEN, storm(asked), strict=True):
        assert answer["initial"] == ["idle"], suffix
        for formula, (steps, avoided) in formulas.items():
            for mode in ("least", "largest"):
                ours = box_reach(found.lower, found.upper, steps, avoided, largest=mode == "largest")
                theirs = answer["values"][f"{formula} {mode}"]
                assert_allclose(
                    [theirs[state] for state in STATES], ours, rtol=0, atol=1e-9, err_msg=f"{suffix} {mode}"
                )


def test_a_lower_bound_of_zero_is_refused_where_there_is_no_limit_of_steps(tmp_path):
    """What docs/model-checkers.md says of it. With every lower bound above 0 the same question has an answer."""
    study = learned(tmp_path / "lab.db", 2_000, seed=1)
    study.export(tmp_path / "model.drn")
    formula = 'P=? [!"blocked" U "down"]'
    [answer] = storm([{"file": str(tmp_path / "model.drn"), "exact": False, "formulas": [formula]}])
    assert "graph-preservation" in answer["values"][f"{formula} least"]


@pytest.mark.parametrize("suffix", WRITTEN)
def test_exact_values(tmp_path, suffix):
    file = tmp_path / f"machine{suffix}"
    cs.Problem({"machine": CHAIN}).save(file)
    questions = {
        'P=? [F<=25 "down"]': lambda state: cs.Reach("down", start=state, within=25),
        'P=? [F "down"]': lambda state: cs.Reach("down", start=state),
        'P=? [!"blocked" U "down"]': lambda state: cs.Reach("down", start=state, before="blocked"),
        'T=? [F "down"]': lambda state: cs.PassageTime("down", start=state),
        'LRA=? ["blocked" | "down"]': lambda state: cs.LongRunShare(["blocked", "down"]),
    }
    [answer] = storm([{"file": str(file), "exact": True, "formulas": list(questions)}])
    assert answer["initial"] == ["busy", "idle"]
    for formula, question in questions.items():
        for state in STATES:
            ours = cs.answer(CHAIN, question(state)).estimate
            assert_allclose(answer["values"][formula][state], ours, rtol=1e-6, err_msg=f"{formula} from {state}")


@pytest.mark.parametrize("suffix", [".prism", ".drn", ".umb"])
def test_what_storm_writes_is_read(tmp_path, suffix):
    """Storm's own DRN and UMB of each format come back as the same chain."""
    file = tmp_path / f"machine{suffix}"
    cs.Problem({"machine": CHAIN}).save(file)
    python = os.environ["CHAINSCOUT_INTEROP_PYTHON"]
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import stormpy, storm_peer;"
        " model = storm_peer.built(pathlib.Path(sys.argv[2]), True);"
        " stormpy.io.export_to_drn(model, sys.argv[3] + '.drn'); stormpy.io.export_to_umb(model, sys.argv[3] + '.umb')"
    )
    subprocess.run([python, "-c", code, PEER.parent, file, tmp_path / "again"], capture_output=True, check=True)
    for again in (".drn", ".umb"):
        back = cs.Problem.load(tmp_path / f"again{again}")["again"]
        order = [back.states.index(state) for state in STATES]  # a builder numbers states as it finds them
        assert_allclose(back.matrix[np.ix_(order, order)], CHAIN.matrix, rtol=1e-12)
        assert_allclose(back.initial[order], CHAIN.initial)
