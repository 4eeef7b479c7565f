"""Simulated runs that stop by answers, against a live study on the same paths."""

import math
from itertools import groupby

import numpy as np
import pytest

import chainscout as cs
from chainscout.answers import parse
from chainscout.answers.running import next_look
from chainscout.engine import Options, answering, trace
from chainscout.problems import Problem
from chainscout.sources import simulated

PROBLEM = Problem(
    {
        "quick": cs.MarkovChain([[0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]),
        "slow": cs.MarkovChain([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.4, 0.1, 0.5]]),
        "other": cs.MarkovChain([[0.1, 0.9], [0.6, 0.4]]),
    }
)
LINES = {"quick": "reach 2 from 0 within 3", "slow": "reach 2 from 0 within 9", "other": "time to 1 from 0"}
QUESTIONS = {name: parse(line) for name, line in LINES.items()}
TARGET = 0.4


def live(policy, budget, target=TARGET, seed=7, replication=2):
    """The chains that a study asks for, until it stops."""
    chains = {name: list(chain.states) for name, chain in PROBLEM.chains.items()}
    study = cs.Study.create(None, chains, budget, policy, questions=LINES, target_width=target)
    sources = simulated(PROBLEM, seed=seed, replication=replication)
    asked = []
    while not study.finished:
        asked.append(study.ask())
        study.tell(asked[-1], sources[asked[-1]].advance()[0])
    return study, asked


def simulate(policy, budget, target=TARGET, seed=7, replication=2):
    known = answering.curves(PROBLEM, QUESTIONS, 0.05, seed, replication)
    targets = [target] * len(PROBLEM)
    return answering.run(PROBLEM, known, targets, policy, budget, seed=seed, replication=replication), known


def blocks(choices):
    """(chain, how many in a row)."""
    return [(k, len(list(same))) for k, same in groupby(choices)]


@pytest.mark.filterwarnings("ignore::chainscout.errors.MixedUnitsWarning")
@pytest.mark.parametrize("budget", [50, 700, 10**5])
def test_a_study_and_a_simulated_run_make_the_same_choices(budget):
    study, asked = live("widest", budget)
    found, _ = simulate("widest", budget)
    names = list(PROBLEM.chains)
    chosen = [k for k, number in found.choices for _ in range(number)]
    assert blocks([names.index(name) for name in asked]) == blocks(chosen)
    assert found.observations == len(asked)
    assert found.pulls == tuple(study.allocation().values())
    assert found.finished == (study.stop_reason == "target_width")
    assert found.finished == (budget == 10**5)


@pytest.mark.filterwarnings("ignore::chainscout.errors.MixedUnitsWarning")
@pytest.mark.parametrize("policy", ["uniform", "scout"])
def test_a_run_by_counts_stops_where_a_study_stops(policy):
    study, asked = live(policy, 10**5)
    found, known = simulate(policy, 10**5)
    assert found.finished
    assert found.observations == len(asked) == study.progress().observations
    assert found.pulls == tuple(study.allocation().values())
    choices, _ = trace(PROBLEM, policy, len(asked), 2, Options(seed=7))
    assert [list(PROBLEM.chains)[k] for k in choices] == asked
    for line, curve in zip(study.questions(), known, strict=True):
        width = curve.widths[curve.transitions.index(line.transitions)]
        assert line.width == pytest.approx(width, rel=1e-12)


def test_a_curve_has_the_answers_of_a_chain_at_the_looks_of_a_study():
    known = answering.curves(PROBLEM, QUESTIONS, 0.06, 3)
    assert known[0].look(0) == (0, math.inf)
    transitions, width = known[0].look(40)
    looks = [0]
    while len(looks) <= 40:
        looks.append(next_look(looks[-1]))
    assert known[0].transitions == looks
    source = simulated(PROBLEM, seed=3)["quick"]
    walk = [source.advance()[0] for _ in range(transitions + 1)]
    expected = cs.answer(cs.Paths.from_walks([walk], 3), QUESTIONS["quick"], delta=0.02, asked=0)
    assert width == expected.width
    assert np.isfinite(known[0].widths[1:]).all()


def test_a_budget_ends_a_run():
    for policy in ("uniform", "widest"):
        found, _ = simulate(policy, 100, target=1e-6)
        assert (found.finished, found.observations, sum(found.pulls)) == (False, 100, 100)
