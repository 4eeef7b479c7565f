"""What must be true of a study at any moment, found from its log alone by the slowest and plainest way."""

import math

from chainscout.certificates import certify
from chainscout.counts import Counts
from chainscout.study import Study


def replayed_counts(study: Study, states: dict) -> dict[str, Counts]:
    """Each chain's counts from the log; the log itself is checked on the way."""
    paths: dict[tuple[str, int], list] = {}
    for place, line in enumerate(study.log(), start=1):
        assert line.number == place, "the log has a gap"
        walked = paths.setdefault((line.chain, line.path), [])
        walked.append(line.state)
        assert line.step == len(walked), "a path has a gap"
    counts = {name: Counts(known) for name, known in states.items()}
    for (chain, _), walked in paths.items():
        counts[chain].restart()
        for state in walked:
            counts[chain].record(state)
    return counts


def check(study: Study, states: dict, policy, weights: dict | None = None) -> None:
    """Counts, indices, certificate and totals are those that the log gives."""
    weights = weights or {}
    counts = replayed_counts(study, states)
    progress = study.progress()
    assert progress.observations == sum(c.observations for c in counts.values())
    losses = certify(counts, progress.delta).loss
    found = study.certificate().loss
    for name, known in counts.items():
        kept = study.counts(name)
        assert kept.rows() == known.rows()
        assert (kept.observations, kept.paths) == (known.observations, known.paths)
        assert found[name] == weights.get(name, 1.0) * losses[name]
    again = replayed_indices(study, states, policy, weights)
    for name, index in study.indices().items():
        if not study.chain(name).leases:  # what workers have not told yet counts in T
            assert index == again[name]


def replayed_indices(study: Study, states: dict, policy, weights: dict | None = None) -> dict[str, float]:
    """The indices of a new study in memory that is told the same log, to the bit."""
    budget = study.progress().budget
    again = Study.create(None, states, budget=budget, policy=policy, weights=weights)
    if budget is not None:  # the log may be longer: a holder's tell is always kept
        again._store.study.budget = 1e18
    paths: dict[tuple[str, int], int] = {}
    for line in study.log():  # a path that was leased and never told has a number in the study, and none here
        number = paths.setdefault((line.chain, line.path), again.chain(line.chain).paths + 1)
        again.tell(line.chain, line.state, path=number, step=line.step)
    return again.indices()


def naive_index(policy, setting, counts: Counts) -> float:
    """The index from scratch: no running sums."""
    if counts.total == 0:
        return math.inf
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
    return policy.index(sums, float(counts.total), constants)
