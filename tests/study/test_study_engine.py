"""Live equals compiled: a study on simulated sources repeats a replication of an experiment, choice by choice."""

import subprocess
import sys

import pytest

from chainscout import engine, policies
from chainscout.problems import get
from chainscout.sources import Place, simulated
from chainscout.study import Study

PROBLEM = get("unlike")
BUDGET = 600
#: Those that need the true matrices cannot run live.
LIVE = [name for name in policies.names() if not name.startswith("oracle")]
PARAMETERS = {"static": "static:weights=" + "/".join(str(k + 1) for k in range(len(PROBLEM)))}
SPECIFICATIONS = [PARAMETERS.get(name, name) for name in LIVE] + ["scout:block=0.05", "ba-mc:block=0.05"]


def live_run(place, policy, budget, every, replication, weights=None):
    """Choices, and the chosen chains' indices; the study is closed and opened again after ``every`` observations."""
    states = {name: list(chain.states) for name, chain in PROBLEM.chains.items()}
    study = place.create(states, budget=budget, policy=policies.get(policy), weights=weights)
    sources = simulated(PROBLEM, seed=11, replication=replication)
    names = list(states)
    choices = []
    while not study.finished:
        name = study.ask()
        state, fresh = sources[name].advance()
        assert fresh == (name not in choices_seen(choices, names))
        study.tell(name, state)
        choices.append(names.index(name))
        if len(choices) % every == 0 and place.kind != "memory":
            study = place.reopen(study)
            sources = simulated(PROBLEM, seed=11, replication=replication)
            for other in names:
                chain = study.continue_path(other)
                assert sources[other].resume(Place(chain.path, chain.step, chain.last, chain.observations))
    return choices, study


def choices_seen(choices, names):
    return {names[k] for k in set(choices)}


@pytest.mark.parametrize("policy", SPECIFICATIONS)
def test_a_study_repeats_a_replication(place, policy):
    budget = BUDGET if place.kind == "memory" else 200
    choices, _ = live_run(place, policy, budget, 100, replication=3)
    expected, _ = engine.trace(PROBLEM, policy, budget, 3, engine.Options(seed=11))
    assert choices == expected.tolist()


@pytest.mark.parametrize("policy", ["scout", "scout:power=0.5", "certifier"])
def test_weights_mean_the_same_live_and_compiled(place, policy):
    budget = BUDGET if place.kind == "memory" else 120
    omega = {name: 0.5 + k for k, name in enumerate(PROBLEM.names)}
    choices, _ = live_run(place, policy, budget, 50, replication=1, weights=omega)
    expected, _ = engine.trace(PROBLEM, policy, budget, 1, engine.Options(seed=11, weights=list(omega.values())))
    assert choices == expected.tolist()


@pytest.mark.parametrize(
    "policy", ["scout", "ba-mc", "gafs-max", "scout:block=0.1", "gini-ucb:block=0.05", "certifier:block=0.1"]
)
def test_a_batch_means_the_same_live_and_compiled(policy):
    study = Study.create(
        None, {n: list(c.states) for n, c in PROBLEM.chains.items()}, budget=400, policy=policies.get(policy)
    )
    sources = simulated(PROBLEM, seed=4)
    choices = []
    while not study.finished:
        chosen = study.ask(8)
        choices += [PROBLEM.names.index(name) for name in chosen]
        study.tell_many([(name, sources[name].advance()[0]) for name in chosen])
    assert choices == engine.trace(PROBLEM, policy, 400, 0, engine.Options(seed=4, batch=8))[0].tolist()


def test_the_live_path_imports_no_compiler(tmp_path):
    script = f"""
import sys
import chainscout
from chainscout.problems import get
from chainscout.study import Study
from chainscout.sources import simulated
problem = get("unlike")
study = Study.create({str(tmp_path / "s.db")!r}, {{n: list(c.states) for n, c in problem.chains.items()}}, budget=None)
sources = simulated(problem)
for _ in range(30):  # certificates begin at 100 transitions, and when the study stops
    name = study.ask()
    study.tell(name, sources[name].advance()[0])
study.estimate(name), study.progress()
assert "numba" not in sys.modules, "a compiler was imported"
assert "llvmlite" not in sys.modules
print("fine")
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.stdout == "fine\n", found.stderr


def test_the_engines_interpreted_loop_agrees_too():
    study = Study.create(None, {n: list(c.states) for n, c in PROBLEM.chains.items()}, budget=100)
    sources = simulated(PROBLEM, seed=2)
    choices = []
    while not study.finished:
        name = study.ask()
        choices.append(PROBLEM.names.index(name))
        study.tell(name, sources[name].advance()[0])
    assert choices == engine.trace(PROBLEM, "scout", 100, 0, engine.Options(seed=2, engine="python"))[0].tolist()
