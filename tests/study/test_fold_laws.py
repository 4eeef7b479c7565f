"""The laws of the fold, on random programs of several sessions and workers (JOURNAL §10)."""

import pytest
from fold_programs import Program
from fold_reference import UNKNOWN, Reference, plain_bound
from fold_studies import Kept

from chainscout.journal.entry import Kind
from chainscout.study.budget import unspent
from chainscout.study.draws import Status, bound_with_holes
from chainscout.study.snapshot import packed_state, unpacked_state

#: What a study is made with, by the number of the program.
STUDIES = [
    {"policy": "scout", "budget": 60},
    {"policy": "uniform", "budget": 60.0, "costs": {"a": 1.7, "b": 0.3}},
    {"policy": "scout", "paths": "shared"},
    {"policy": "scout", "open_states": ["b"]},
    {"target_loss": 0.3},
    {"policy": "scout:block=0.05"},
]


def program(seed, *, checks=False, steps=150, chains=None):
    given = STUDIES[seed % len(STUDIES)]
    states = {"a": 2, "b": [] if "open_states" in given else 3}
    return Program(seed, chains or states, checks=checks, **given).run(steps)


@pytest.mark.parametrize("seed", range(6))
def test_a_command_that_runs_twice_gives_the_same_and_one_that_fails_changes_nothing(seed):
    found = program(seed, checks=True, steps=120)
    assert found.refused
    assert len(found.kept.entries) > 50


@pytest.mark.parametrize("seed", range(12))
def test_the_fold_of_the_entries_is_the_state(seed):
    found = program(seed)
    assert packed_state(found.kept.folded()) == packed_state(found.state)


@pytest.mark.parametrize("seed", range(6))
def test_every_prefix_folds_and_a_snapshot_with_the_tail_is_the_fold(seed):
    kept = program(seed).kept
    whole = packed_state(kept.state)
    for until in range(1, len(kept.entries) + 1, 7):
        part = kept.folded(until)
        assert part.head.number == until
        content = packed_state(part)
        again = unpacked_state(content, kept.policy, recording=True)
        assert again is not None
        assert packed_state(again) == content
        again.apply(kept.entries[until:])
        assert packed_state(again) == whole


@pytest.mark.parametrize("seed", range(6))
def test_a_reader_needs_no_rule(seed):
    kept = program(seed).kept
    reader = kept.folded(policy=None)
    for mine, other in zip(kept.state.chains, reader.chains, strict=True):
        assert {x: row.counts for x, row in mine.rows.items()} == {x: row.counts for x, row in other.rows.items()}
        assert (mine.transitions, mine.pending, mine.aside) == (other.transitions, other.pending, other.aside)


@pytest.mark.parametrize("seed", range(24))
def test_the_arithmetic_of_a_study(seed):
    kept = program(seed).kept
    state = kept.state
    assert state.budget is None or state.used + state.reserved <= state.used + unspent(state)
    assert state.observations == sum(chain.observations for chain in state.chains)
    assert len(state.leases) == sum(chain.leases for chain in state.chains)
    for chain in state.chains:
        own = [lease for lease in state.leases.values() if lease.chain == chain.number]
        assert (chain.leases, chain.pending) == (len(own), sum(lease.steps for lease in own))
        exits = sum(row.exits for row in chain.rows.values())
        assert chain.transitions == exits == sum(sum(row.counts.values()) for row in chain.rows.values())
        assert chain.transitions == chain.observations - chain.begun
        told = [card for card in chain.draws.cards if card.told]
        assert len(told) == chain.observations
        assert len([card for card in told if card.step == 1]) == chain.begun


@pytest.mark.parametrize("seed", range(24))
def test_slots_holes_and_cuts_are_those_of_the_rules_written_out_slowly(seed):
    found = Program(seed, checks=False, budget=100, policy="uniform", paths="shared" if seed % 4 == 0 else "own")
    for _ in range(8):
        found.run(20)
        for chain in found.state.chains:
            check_cuts(found.kept, chain)


def check_cuts(kept: Kept, chain):
    reference = Reference(kept.entries, chain.number, kept.state.shared)
    told = [(c.path, c.step, c.source, c.target) for c in chain.draws.ordered() if c.told and c.source >= 0]
    assert told == reference.told()
    holes = chain.draws.holes
    corrected = any(entry.kind is Kind.CORRECTED and entry.chain == chain.number for entry in kept.entries)
    for place in range(len(holes) + 1):
        if place < len(holes) and holes[place].status is Status.KEPT:
            continue
        cut = chain.draws.cut(place, kept.state.head.number + 1)
        counts, open_slots = reference.prefix(cut.number, hole=place < len(holes) and holes[place].path > 0)
        assert cut.counts(chain.rows) == counts
        assert (UNKNOWN in cut.holes) == (UNKNOWN in open_slots)
        if UNKNOWN not in open_slots:  # a corrected slot may stand earlier than it was issued
            assert cut.holes == dict(open_slots) or (corrected and not open_slots - cut_counter(cut))


def cut_counter(cut):
    return type(Reference([], 0).prefix(0)[1])(cut.holes)


@pytest.mark.parametrize("seed", range(12))
def test_the_chosen_cut_has_the_smallest_bound_of_the_candidates(seed):
    state = program(6 * seed).state
    for chain in state.chains:
        draws, found = chain.draws, state.chosen_cut(chain)
        everything = state.head.number + 1
        log_inverse = 3.7
        cut = draws.chosen(chain.rows, chain.size, log_inverse, everything)
        assert found.place <= len(draws.holes)
        bounds = {}
        slots = [place for place, hole in enumerate(draws.holes) if hole.status is not Status.KEPT]
        unknown = [place for place in slots if draws.holes[place].source == UNKNOWN]
        last = min(unknown, default=len(draws.holes))
        by_rule = {place for rank, place in enumerate(slots) if rank in (0, 1, 2, 4, 8, 16, 32) and place <= last}
        for place in sorted({*draws.candidates(), *by_rule, last}):
            other = draws.cut(place, everything)
            exits = {x: sum(row.values()) for x, row in other.counts(chain.rows).items()}
            assert UNKNOWN not in other.holes
            bounds[place] = plain_bound(exits, other.holes, chain.size, log_inverse)
        assert bounds[cut.place] <= min(bounds.values()) * (1 + 1e-9)


def test_the_closed_bound_is_that_of_mixture_without_holes_and_grows_with_each():
    from chainscout.certificates.mixture import bound_from_exits

    exits = {0: 40, 1: 11, 2: 3}
    without = bound_with_holes(exits, {}, 3, 4.0)
    assert without == bound_from_exits([40, 11, 3], 3, 4.0)
    assert plain_bound(exits, {}, 3, 4.0) == pytest.approx(without, rel=1e-9)
    last = without
    for holes in ({0: 1}, {0: 2}, {0: 2, 1: 1}, {0: 2, 1: 1, 2: 5}):
        found = bound_with_holes(exits, holes, 3, 4.0)
        assert found == pytest.approx(plain_bound(exits, holes, 3, 4.0), rel=1e-9)
        assert found > last
        last = found
    assert bound_with_holes({}, {0: 1}, 3, 4.0) == float("inf")
    assert bound_with_holes({0: 0}, {0: 1}, 1, 4.0) == 0.0
