"""How often checks reject what they must not: the largest value over whole paths, looked at at every step.

Twelve kinds of chain, with and without restarts; labels that a hostile chooser picks who sees every stake; several
chains whose interleaving is chosen by who sees all e-values, or by a live policy; workers whose delays depend on the
value. Mutants of the
rules that validity rests on raise far too many alarms.
"""

import math

import numpy as np
import pytest
from diagnostics_simulation import (
    DEAREST,
    MATRICES,
    RANDOM,
    WINNING,
    cards_of,
    delayed_workers,
    hostile,
    hostile_path,
    made,
    mutants,
    withheld,
)
from simulation import COMPILED, cumulated
from test_certificate_coverage import check, lower_bound

import chainscout as cs
from chainscout.diagnostics import _bets, _decks, _processes
from chainscout.diagnostics._diagnose import queue_end
from chainscout.paths import PENDING

DELTA = 0.05
PATHS, LENGTH = (30, 600) if COMPILED else (1, 120)
SOAK_PATHS, SOAK_LENGTH = 2_000, 3_000


def levels(matrix, length, rng, restart):
    """The smallest level of every check on one path."""
    path, step, source, target = cards_of(matrix, length, rng, restart)
    cards = _processes.Cards(path, step, source, target)
    one = {
        "order": _processes.order(cards),
        "workers at random": _processes.sameness(source, target, rng.integers(0, 4, length), 4),
        "workers in sequence": _processes.sameness(source, target, np.arange(length) // 100),
        "ages": _processes.sameness(source, target, cards.ages(), 4),
        "paths": _processes.sameness(source, target, path),
        "reference": _processes.reference(source, target, matrix[source, target]),
    }
    found = {name: math.exp(-process.log_largest) for name, process in one.items()}
    change = _processes.change(source, target, len(matrix))
    found["change"] = change.level
    found["M alone"] = math.exp(-change.process.log_largest)
    found["P alone"] = min(1.0, float(change.levels[-1]))
    return found


def false_alarms(name, paths, length, seed):
    """Holds every check to δ; every second path is begun anew now and then, in a state that was left rarely."""
    rng = np.random.default_rng(seed)
    found = [levels(MATRICES[name], length, rng, 0.05 * (number % 2)) for number in range(paths)]
    for kind in found[0]:
        check(f"{name}, {kind}", np.array([each[kind] <= DELTA for each in found]), DELTA)


@pytest.mark.parametrize("name", MATRICES)
def test_false_alarms(name):
    false_alarms(name, PATHS, LENGTH, 1)


@pytest.mark.soak
@pytest.mark.parametrize("name", MATRICES)
def test_false_alarms_in_full(name):
    false_alarms(name, SOAK_PATHS, SOAK_LENGTH, 11)


# -- a hostile choice of the next label


def hostile_alarms(name, choice, paths, length, seed, kernel=None):
    rng = np.random.default_rng(seed)
    log_values, others = [], []
    for _ in range(paths):
        value, (source, label, target) = hostile_path(MATRICES[name], length, 4, choice, rng, kernel)
        log_values.append(value)
        others.append(_processes.decks(source, target, label, None).log_largest)
    return np.array(log_values), np.array(others)


def hold_hostile(name, choice, paths, length, seed):
    bets, looks = hostile_alarms(name, choice, paths, length, seed)
    check(f"{name}, hostile labels {choice}, F", bets >= math.log(1 / DELTA), DELTA)
    check(f"{name}, hostile labels {choice}, T", looks >= math.log(1 / DELTA), DELTA)


@pytest.mark.parametrize("choice", [RANDOM, WINNING, DEAREST], ids=["random", "winning", "dearest"])
@pytest.mark.parametrize("name", ["fair coin", "rare outcome", "dense five", "sticky five"])
def test_hostile_labels(name, choice):
    hold_hostile(name, choice, PATHS // 2 or 1, LENGTH, 2)


@pytest.mark.soak
@pytest.mark.parametrize("name", MATRICES)
def test_hostile_labels_in_full(name):
    for choice in (WINNING, DEAREST):
        hold_hostile(name, choice, SOAK_PATHS // 2, SOAK_LENGTH, 12)


def test_the_simulation_plays_the_package_s_bets():
    value, (source, label, target) = hostile_path(MATRICES["dense five"], 200, 4, WINNING, np.random.default_rng(0))
    assert value == pytest.approx(_processes.fair_bets(source, target, label).log_largest, abs=1e-9)


def nothing(largest, bets):
    """A compensation that is none."""
    return 0.0 * largest * bets


def test_without_compensation_bets_would_be_wrong():
    changed = mutants(_bets.bet, FEEDBACK=0.0, compensation=nothing)
    names = mutants(hostile, bet=changed["bet"], set_stakes=changed["set_stakes"])
    kernel = made(names["hostile"], cache=False)
    paths = 24 if COMPILED else 6
    bets, _ = hostile_alarms("sparse twenty", DEAREST, paths, 400, 3, kernel)
    assert lower_bound(int((bets >= math.log(1 / DELTA)).sum()), paths) > DELTA


def test_a_queue_for_each_row_of_bets_would_be_wrong():
    rng = np.random.default_rng(4)
    queue, each = np.array([withheld(20, 40, rng) for _ in range(400)]).T
    check("one queue", queue >= math.log(1 / DELTA), DELTA)
    assert lower_bound(int((each >= math.log(1 / DELTA)).sum()), len(each)) > DELTA


def multiplied_looks(outcomes):
    """The largest product of the e-values of all looks at change in one row: a mutant."""
    factorials = np.array([math.lgamma(n + 1) for n in range(len(outcomes) + 2)])
    total = largest = 0.0
    for end in range(20, len(outcomes) + 1, 4):
        pooled = np.bincount(outcomes[:end], minlength=2).astype(float)
        for length in (16, 32, 64):
            if end % (length // 4) == 0 and end > length:
                window, before = outcomes[end - length : end], outcomes[: end - length]
                smaller = window if len(window) <= len(before) else before
                part = np.bincount(smaller, minlength=2).astype(float)
                total += math.log(_decks.evidence(factorials, part, pooled, 2, float(len(smaller)), float(end)))
        largest = max(largest, total)
    return largest


def test_looks_that_are_multiplied_would_be_wrong():
    rng = np.random.default_rng(5)
    found = np.array([multiplied_looks((rng.random(240) < 0.1).astype(int)) for _ in range(200)])
    assert lower_bound(int((found >= math.log(1 / DELTA)).sum()), len(found)) > DELTA


def multiplied_label_looks(source, label, target):
    """The largest product of the e-values of all looks at labels, over rows too: a mutant of T."""
    factorials = np.array([math.lgamma(n + 1) for n in range(len(source) + 2)])
    size = int(target.max()) + 1
    sides, total, largest = {}, 0.0, 0.0
    for x, c, y in zip(source.tolist(), label.tolist(), target.tolist(), strict=True):
        for other in range(4):
            own = other == c
            counts, reached, kept = sides.setdefault((x, other, own), [np.zeros(size), 0, {}])
            counts[y] += 1
            reached += 1
            sides[x, other, own][1] = reached
            if reached < 4 or reached & (reached - 1):
                continue
            kept[reached] = counts.copy()
            for rest, held in sides.get((x, other, not own), [0, 0, {}])[2].items():
                smaller = kept[reached] if (reached, not own) < (rest, own) else held
                pool, drawn = kept[reached] + held, float(min(reached, rest))
                total += math.log(_decks.evidence(factorials, smaller, pool, size, drawn, float(reached + rest)))
        largest = max(largest, total)
    return largest


def test_looks_that_are_multiplied_would_be_wrong_with_hostile_labels_too():
    rng = np.random.default_rng(15)
    found = []
    for _ in range(60):
        _, arrays = hostile_path(MATRICES["fair coin"], 300, 4, WINNING, rng)
        found.append(multiplied_label_looks(*arrays))
    assert lower_bound(int((np.array(found) >= math.log(1 / DELTA)).sum()), len(found)) > DELTA


# -- several chains, and workers with delays


def interleaved(matrices, length, rng):
    """The largest mean of F over chains if whoever sees all e-values always advances the chain with the smallest."""
    traces = []
    for matrix in matrices:
        path, step, source, target = cards_of(matrix, length, rng)
        traces.append(_processes.order(_processes.Cards(path, step, source, target)).log_values)
    place, now, order = [0] * len(traces), [0.0] * len(traces), []
    while True:
        going = [k for k in range(len(traces)) if place[k] < len(traces[k])]
        if not going:
            break
        k = min(going, key=now.__getitem__)
        now[k] = traces[k][place[k]]
        order.append((k, now[k]))
        place[k] += 1
    chain, value = np.array([k for k, _ in order]), np.array([v for _, v in order])
    return float(_processes.mean_over_chains(chain, value, np.full(len(traces), 1 / len(traces))).max())


def hold_interleaved(paths, length, seed):
    rng = np.random.default_rng(seed)
    matrices = [MATRICES[name] for name in ("fair coin", "sticky pair", "dense five", "dense three")]
    found = np.array([interleaved(matrices, length, rng) for _ in range(paths)])
    check("the mean over chains", found >= math.log(1 / DELTA), DELTA)


def test_the_mean_over_chains_that_are_advanced_adaptively():
    hold_interleaved(PATHS, LENGTH // 2, 6)


@pytest.mark.soak
def test_the_mean_over_chains_that_are_advanced_adaptively_in_full():
    hold_interleaved(SOAK_PATHS, SOAK_LENGTH, 16)


def live_levels(policy, length, seed, restart):
    """The levels of the checks of all chains together, of a study whose policy chooses the next chain."""
    rng = np.random.default_rng(seed)
    names = ("fair coin", "sticky pair", "dense five", "rare outcome")
    study = cs.Study.create(None, {name: len(MATRICES[name]) for name in names}, budget=length, policy=policy)
    uppers, states = {name: cumulated(MATRICES[name]) for name in names}, dict.fromkeys(names, 0)
    uniforms = rng.random((length, 2))
    for first, second in uniforms:
        name = study.ask()
        if first < restart and study.chain(name).last is not None:  # a new path, which begins where the caller likes
            study.restart(name)
            states[name] = int(second * len(uppers[name]))
        states[name] = int(np.searchsorted(uppers[name][states[name]], second, side="right"))
        study.tell(name, states[name])
    return {(check.kind.value, check.by): check.level for check in study.diagnose() if check.chain is None}


def hold_live(runs, length, seed):
    policies = ("scout", "ba-mc", "uniform")
    found = [
        live_levels(policies[number % 3], length, seed + number, 0.02 * (number % 2)) for number in range(runs)
    ]  # fmt: skip
    for kind in dict.fromkeys(key for each in found for key in each):
        check(f"a live policy, {kind}", np.array([each.get(kind, 1.0) <= DELTA for each in found]), DELTA)


def test_several_chains_under_a_live_policy():
    hold_live(6 if COMPILED else 2, 300 if COMPILED else 60, 100)


@pytest.mark.soak
def test_several_chains_under_a_live_policy_in_full():
    hold_live(SOAK_PATHS, SOAK_LENGTH, 10_000)


SLOW = np.array([[0.7, 0.3], [0.5, 0.5]])


def delayed_alarms(paths, workers, ticks, seed):
    """Whether a check of all cards rejects: in order of issue, and in order of arrival."""
    rng = np.random.default_rng(seed)
    issue, arrival = [], []
    for _ in range(paths):
        data = delayed_workers(SLOW, workers, ticks, 60, rng)
        found = cs.diagnose(data, delta=DELTA)
        issue.append([check.level <= DELTA for check in found])
        known = np.flatnonzero((data.source >= 0) & (data.target >= 0))
        known = known[np.argsort(data.told[known])]
        arrival.append(_processes.change(data.source[known], data.target[known], 2).level <= DELTA)
    for number, judged in enumerate(found):
        check(f"delays, {judged.kind} {judged.by}", np.array([each[number] for each in issue]), DELTA)
    return np.array(arrival)


def test_the_order_of_issue_holds_and_the_order_of_arrival_would_not():
    paths = 30 if COMPILED else 10
    arrival = delayed_alarms(paths, 40, 100, 7)
    assert lower_bound(int(arrival.sum()), paths) > DELTA


def test_the_order_of_arrival_would_be_wrong_for_bets_and_hostile_labels_too():
    """Labels that a chooser gives who knows what has arrived: the first quarter of the cards, the second one, …"""
    rng, found = np.random.default_rng(9), []
    for _ in range(12):
        data = delayed_workers(SLOW, 100, 200 if COMPILED else 150, 60, rng)
        known = np.flatnonzero((data.source >= 0) & (data.target >= 0))
        known = known[np.argsort(data.told[known])]
        path, step, source, target = (getattr(data, name)[known] for name in ("path", "step", "source", "target"))
        order = _processes.order(_processes.Cards(path, step, source, target))
        hostile_label = 4 * np.arange(len(known)) // len(known)
        looks = _processes.decks(source, target, hostile_label, 4)
        bets = _processes.fair_bets(source, target, hostile_label)
        found.append([process.log_largest >= math.log(1 / DELTA) for process in (order, looks, bets)])
    for alarms in np.array(found).T:
        assert lower_bound(int(alarms.sum()), len(alarms)) > DELTA


@pytest.mark.soak
def test_the_order_of_issue_holds_in_full():
    arrival = delayed_alarms(SOAK_PATHS, 100, 400, 17)
    assert lower_bound(int(arrival.sum()), len(arrival)) > DELTA


def test_delayed_workers_leave_cards_that_wait():
    data = delayed_workers(SLOW, 40, 100, 60, np.random.default_rng(8))
    end, why = queue_end(data)
    assert end < len(data)
    assert "is pending" in why
    assert data.target[end] == PENDING
