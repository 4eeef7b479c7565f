"""What must be true of a study at any moment, found from its log alone by the slowest and plainest way."""

import math
from collections import defaultdict

import pytest

from chainscout.certificates import certify
from chainscout.counts import Counts
from chainscout.study import Study
from chainscout.study.draws import Status


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
    with study._keeper.lock():
        cuts = {chain.name: study._keeper.state().chosen_cut(chain) for chain in study._keeper.state().chains}
    for name, known in counts.items():
        kept = study.counts(name, everything=True)
        assert kept.rows() == known.rows()
        assert (kept.observations, kept.paths) == (known.observations, known.paths)
        if not (cuts[name].holes or cuts[name].without):
            assert study.counts(name).rows() == known.rows()
            assert found[name] == weights.get(name, 1.0) * losses[name]
    assert study.indices() == replayed_indices(study, states, policy, weights)
    check_leases(study)
    check_slots(study)


def check_leases(study: Study) -> None:
    """What is held and promised is the sum over the paths under a lease; paths are those of the log."""
    walked = walked_paths(study)
    with study._keeper.lock():
        state = study._keeper.state()
        held = list(state.leases.values())
        costs = [chain.cost for chain in state.chains]
        assert state.reserved == pytest.approx(sum(lease.steps * costs[lease.chain] for lease in held), abs=1e-9)
        for chain in state.chains:
            own = [lease for lease in held if lease.chain == chain.number]
            assert (chain.leases, chain.pending) == (len(own), sum(lease.steps for lease in own))
            assert all(chain.walks[lease.path].lease is lease and lease.steps >= 1 for lease in own)
            assert all(not chain.walks[lease.path].ended for lease in own)
            for number, path in chain.walks.items():
                assert (path.number, path.steps) == (number, len(walked.get((chain.name, number), [])))
                assert path.lease is None or path.lease in own


def check_slots(study: Study) -> None:
    """Every told draw has one place in the order of issue, and every open slot belongs to a path that may fill it."""
    with study._keeper.lock():
        state = study._keeper.recorded()
        for chain in state.chains:
            told = [card for card in chain.draws.cards or () if card.told]
            assert len(told) == chain.observations
            assert len({(card.path, card.step) for card in told}) == len(told)
            open_slots = [hole for hole in chain.draws.holes if hole.status in (Status.PENDING, Status.RELEASED)]
            assert all(chain.walks[hole.path].slot is hole for hole in open_slots)


def replayed_indices(study: Study, states: dict, policy, weights: dict | None = None) -> dict[str, float]:
    """The indices of a new study in memory that is told the same log, with what is pending in T; to the bit."""
    budget = study.progress().budget
    with study._keeper.lock():
        chains = study._keeper.state().chains
        costs = {chain.name: chain.cost for chain in chains if chain.cost != 1.0}
        pending = {chain.name: chain.pending for chain in chains}
    again = Study.create(None, states, budget=budget, policy=policy, weights=weights, costs=costs or None)
    if budget is not None:  # the log may be longer: a holder's tell is always kept
        again._keeper.state().budget = 1e18
    numbers: dict[tuple[str, int], int] = {}
    for line in study.log():
        key = line.chain, line.path
        if key not in numbers:
            numbers[key] = 1 + sum(chain == line.chain for chain, _ in numbers)
        again.tell(line.chain, line.state, path=numbers[key])
    return {chain.name: _expected_index(again, chain, pending[chain.name]) for chain in again._keeper.state().chains}


def _expected_index(study: Study, chain, pending: int) -> float:
    """The policy's index at T + pending; within a block it stays what it was at the beginning."""
    order = study._keeper.state().order
    transitions = chain.transitions + pending
    if pending == 0 or 0 < chain.transitions <= transitions < chain.look:
        return order.index(chain, 0)
    if chain.transitions == 0:
        return 1e300 / (1 + pending)
    return order.rule.index(chain.sums, float(transitions), chain.constants) * order.rule.factor(chain.weight)


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
