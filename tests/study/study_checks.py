"""What must be true of a study at any moment, found from its journal alone by the slowest and plainest way."""

import itertools
import math
from collections import defaultdict
from typing import Any

import pytest
from fold_reference import Reference

from chainscout.certificates import certify
from chainscout.counts import Counts
from chainscout.journal.entry import START, Draft, Entry, Kind, packed, sealed
from chainscout.study import Study
from chainscout.study.state import State


def entries_of(study: Study) -> list[Entry]:
    """The whole journal."""
    return list(itertools.chain.from_iterable(study._keeper.pages()))


def state_of(study: Study) -> State:
    """The state of this moment."""
    with study._keeper.lock():
        return study._keeper.state()


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
    """Counts, indices, certificate, leases, slots and totals are those that the log gives."""
    weights = weights or {}
    counts = replayed_counts(study, states)
    progress = study.progress()
    assert progress.observations == sum(c.observations for c in counts.values())
    assert progress.paths == sum(c.paths for c in counts.values())
    found = study.certificate().weighted
    for name, known in counts.items():
        told = study.counts(name, everything=True)
        assert told.rows() == known.rows()
        assert (told.observations, told.paths) == (known.observations, known.paths)
    kept = {name: study.counts(name) for name in counts}
    for has_holes in (False, True):  # bounds of chains with holes are searched for apart
        some = {name: one for name, one in kept.items() if bool(one.holes) == has_holes}
        alone = certify(some, progress.delta * len(some) / len(counts)).loss if some else {}
        for name, bound in alone.items():
            assert found[name] == pytest.approx(weights.get(name, 1.0) * bound, rel=1e-9)
    assert study.indices() == replayed_indices(study, policy)
    check_leases(study)
    check_issues(study)


def check_leases(study: Study) -> None:
    """What is held and promised is the sum over the leases."""
    state = state_of(study)
    costs = [chain.cost for chain in state.chains]
    assert state.reserved == pytest.approx(sum(one.steps * costs[one.chain] for one in state.leases.values()), abs=1e-9)
    assert all(lease.steps >= 1 for lease in state.leases.values())
    for chain in state.chains:
        own = [lease for lease in state.leases.values() if lease.chain == chain.number]
        assert (chain.leases, chain.pending) == (len(own), sum(lease.steps for lease in own))
        for lease in own:
            path = chain.walks[lease.path]
            assert path.lease is lease
            assert not path.ended
    walked = walked_paths(study)
    for chain in state.chains:
        for path in chain.walks.values():
            assert path.steps == len(walked.get((chain.name, path.number), []))


def check_issues(study: Study) -> None:
    """The chosen cut has the counts of the slots that were issued before its end, each with its own draw."""
    entries, state = entries_of(study), state_of(study)
    for chain in state.chains:
        reference = Reference(entries, chain.number, state.shared)
        cut = state.chosen_cut(chain)
        holes = chain.draws.holes
        counts, _ = reference.prefix(cut.number, hole=cut.place < len(holes) and holes[cut.place].path > 0)
        for x, row in chain.warm.items():
            own = counts.setdefault(x, {})
            for y, n in row.items():
                own[y] = own.get(y, 0) + n
        assert cut.counts(chain.rows) == counts


def replayed_indices(study: Study, policy) -> dict[str, float]:
    """The indices after the same observations without any lease, with what is pending in T; to the bit."""
    drafts: list[Draft] = []
    walkers: dict[tuple[int, int], int] = {}
    for entry in entries_of(study):
        draft = Draft(*entry[2:8])
        if entry.kind is Kind.TOLD:
            place = entry.chain, entry.path
            if place not in walkers:
                drafts.append(Draft(Kind.SESSION, more=packed(id=str(place))))
                walkers[place] = len(drafts)
            drafts.append(draft._replace(by=walkers[place], more=""))
        elif entry.kind in (Kind.CREATED, Kind.LABEL, Kind.EXTENDED, Kind.CORRECTED):
            drafts.append(draft)
    again = State(policy)
    again.apply(sealed(START, 0, drafts))
    order: Any = again.order
    now = state_of(study)
    return {chain.name: order.index(chain, now.names[chain.name].pending) for chain in again.chains}


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
