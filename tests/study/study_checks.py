"""What must be true of a study at any moment, found from its log alone by the slowest and plainest way."""

import math
from collections import defaultdict

import pytest

from chainscout.certificates import certify
from chainscout.counts import Counts
from chainscout.study import Study, _aim


def walked_paths(study: Study) -> dict[tuple[str, int], list]:
    """Chain and path → its states, from the log; the log itself is checked on the way."""
    paths: dict[tuple[str, int], list] = defaultdict(list)
    for place, line in enumerate(study.log(), start=1):
        assert line.number == place, "the log has a gap"
        path = paths[line.chain, line.path]
        assert line.step == len(path) + 1, "a path's log has a gap"
        path.append(line.state)
    return dict(paths)


def replayed_counts(study: Study, states: dict) -> dict[str, Counts]:
    """Each chain's counts from the log: the transitions along each path, and no others."""
    counts = {name: Counts(known) for name, known in states.items()}
    for (chain, _), path in walked_paths(study).items():
        counts[chain].restart()
        for state in path:
            counts[chain].record(state)
    return counts


def check(study: Study, states: dict, policy, weights: dict | None = None) -> None:
    """Counts, indices, certificate, leases and totals are those that the log gives."""
    weights = weights or {}
    counts = replayed_counts(study, states)
    progress = study.progress()
    assert progress.observations == sum(c.observations for c in counts.values())
    assert progress.paths == sum(c.paths for c in counts.values())
    losses = certify(counts, progress.delta).loss
    found = study.certificate().weighted
    for name, known in counts.items():
        kept = study.counts(name)
        assert kept.rows() == known.rows()
        assert (kept.observations, kept.paths) == (known.observations, known.paths)
        assert found[name] == weights.get(name, 1.0) * losses[name]
    assert study.indices() == replayed_indices(study, states, policy, weights)
    check_leases(study)
    check_issues(study)


def check_leases(study: Study) -> None:
    """What is held and promised is the sum over the paths under a lease; paths are those of the log."""
    walked = walked_paths(study)
    with study._store.reading() as transaction:
        record, held = transaction.study, transaction.held()
        costs = {chain.number: chain.cost for chain in transaction.every()}
        assert record.leases == len(held)
        assert record.reserved == pytest.approx(sum(path.promised * costs[path.chain] for path in held), abs=1e-9)
        assert all(path.token and path.expires and path.promised >= 1 and not path.ended for path in held)
        for chain in transaction.every():
            own = [path for path in held if path.chain == chain.number]
            assert (chain.leases, chain.pending) == (len(own), sum(path.promised for path in own))
            assert chain.blocked == (record.shared and bool(own))
            for number, path in enumerate(transaction.paths(chain), start=1):
                states = walked.get((chain.name, number), [])
                assert (path.number, path.steps) == (number, len(states))
                assert (path.token is None) == (path.number not in [other.number for other in own])
                assert path.last is None if not states else path.last is not None


def check_issues(study: Study) -> None:
    """Every draw that was issued was told, or an event names it, or a path still waits for it; and only one of these.

    (With shared paths, a lease that continues a path of plain tells issues the next draw again; and a study with an aim
    withdraws the draws of chains that rest.)
    """
    told = [line.issued for line in study.log() if line.issued]
    named = [event.detail["issued"] for event in study.events() if event.detail.get("issued")]
    with study._store.reading() as transaction:
        paths = (path for chain in transaction.every() for path in transaction.paths(chain))
        awaited = [path.issued for path in paths if path.issued]
        issues, shared = transaction.study.issues, transaction.study.shared
        withdraws = _aim.has_aim(transaction.study)
    found = sorted(told + named + awaited)
    assert len(set(found)) == len(found)
    assert set(found) <= set(range(1, issues + 1))
    assert shared or withdraws or len(found) == issues


def replayed_indices(study: Study, states: dict, policy, weights: dict | None = None) -> dict[str, float]:
    """The indices of a new study in memory that is told the same log, with what is pending in T; to the bit."""
    budget = study.progress().budget
    with study._store.reading() as transaction:
        costs = {chain.name: chain.cost for chain in transaction.every() if chain.cost != 1.0}
        pending = {chain.name: chain.pending for chain in transaction.every()}
    again = Study.create(None, states, budget=budget, policy=policy, weights=weights, costs=costs or None)
    if budget is not None:  # the log may be longer: a holder's tell is always kept
        again._store.study.budget = 1e18
    numbers: dict[tuple[str, int], int] = {}
    for line in study.log():
        key = line.chain, line.path
        if key not in numbers:
            numbers[key] = 1 + sum(chain == line.chain for chain, _ in numbers)
        again.tell(line.chain, line.state, path=numbers[key])
    return {chain.name: _expected_index(again, chain, pending[chain.name]) for chain in again._store.chains}


def _expected_index(study: Study, chain, pending: int) -> float:
    """The policy's index at T + pending; within a block it stays what it was at the beginning."""
    rule = study.policy.facing(None if study.progress().budget is None else 1)
    transitions = chain.transitions + pending
    if pending == 0 or 0 < chain.transitions <= transitions < chain.look:
        return chain.index
    if chain.transitions == 0:
        return 1e300 / (1 + pending)
    return rule.index(chain.sums, float(transitions), chain.constants) * rule.factor(chain.weight)


def naive_index(policy, setting, counts: Counts, pending: int = 0) -> float:
    """The index from scratch: no running sums."""
    if counts.total == 0:
        return 1e300 / (1 + pending) if pending else math.inf
    constants = policy.prepare(setting)
    size = counts.size
    if policy.terms is not None:
        rows = [[row.get(y, 0) for y in range(size)] for _, row in sorted(counts.rows().items())]
        terms = [policy.row_terms(r, size, float(sum(r)), float(sum(n * n for n in r)), constants) for r in rows]
        sums = tuple(map(sum, zip(*terms, strict=True)))
    else:
        dense = counts.transitions
        exits, squares = dense.sum(axis=1).astype(float), (dense**2).sum(axis=1).astype(float)
        sums = policy.summary(exits, squares, size, constants, [0.0] * 2 * size, [0] * 2 * size)
    return policy.index(sums, float(counts.total + pending), constants)
