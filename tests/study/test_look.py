"""A look at a study: one frozen record of one moment, which equals what the entries of the journal say."""

import dataclasses
import itertools
import json
import math
import random
import time
from collections import deque
from typing import Any

import pytest
from fold_programs import Program
from study_places import Place, lease

from chainscout import Policy, Study
from chainscout.errors import ChainscoutError, UnknownChain
from chainscout.journal.entry import Kind
from chainscout.study import EventKind, commands
from chainscout.study.look import Look, Shares, look_at
from chainscout.study.past import EVENTS
from chainscout.study.snapshot import packed_state, unpacked_state
from chainscout.study.state import State


def looked(state: State) -> Look:
    return look_at(state, state.head.time, (), Shares(None))


def busy(place: Place, *, events: bool = True) -> Study:
    """A study in which something of everything has happened."""
    study = place.create(
        {"a": 3, "b": ["x", "y"], "c": []}, target_loss=0.01, open_states=["c"], weights={"b": 2.0}, budget=5_000
    )
    rng = random.Random(3)
    for _ in range(60):
        chains = ("a", range(3)), ("b", "xy"), ("c", "pqr")
        study.tell_many([(name, rng.choice(states)) for _ in range(5) for name, states in chains])
    if events:
        study.restart("a", lost=True)
        study.tell("a", 1)
        held = lease(study, "rig")
        study.worker("another").lease(wait=0).give_back()
        study.set_aside("b" if held.chain != "b" else "a", "out of order")
        study.extend(budget=6_000)
    return study


def test_a_look_is_of_one_moment(place: Place) -> None:
    study = busy(place)
    look = study.look()
    before = look.to_dict(), look.history(None), look.history(2), look.promise(), look.certificate()
    study.tell_many([("c", state) for state in "pqrpqr" * 100])
    study.certificate()
    study.extend(budget=7_000)
    assert (look.to_dict(), look.history(None), look.history(2), look.promise(), look.certificate()) == before
    later = study.look()
    assert later.progress.observations == look.progress.observations + 600
    assert later.history(2, after=look.history(2)[-1].number) == later.history(2)[len(look.history(2)) :] != []


def test_a_look_says_what_the_study_says(place: Place) -> None:
    study = busy(place)
    look = study.look()
    assert look.progress == study.progress()
    assert [line.name for line in look.chains] == study.names
    assert {line.name: line.index for line in look.chains} == study.indices()
    assert {line.name: line.observations for line in look.chains} == study.allocation()
    assert sum(line.share for line in look.chains) == pytest.approx(1.0)
    assert sum(line.plug_in for line in look.chains) == pytest.approx(1.0)
    assert list(look.aside) == [line.name for line in look.chains if line.aside]
    assert set(look.aside.values()) == {("out of order", False)}
    (held,) = look.leases
    assert (held.worker, held.promised) == ("rig", 1)
    assert look.chain(held.number) == look.chain(held.chain)
    for line in look.chains:
        progress, counts = study.chain(line.name), study.counts(line.name)
        assert (line.states, line.open, line.paths) == (progress.states, progress.open, progress.paths)
        assert line.transitions == line.observations - line.paths
        assert line.beyond == study.counts(line.name, everything=True).total - counts.total
    with pytest.raises(UnknownChain, match="the study has no chain 'd'"):
        look.chain("d")
    with pytest.raises(UnknownChain, match="numbers 0 to 2, and there is no 3"):
        look.chain(3)


def test_a_look_is_frozen(place: Place) -> None:
    look = busy(place, events=False).look()
    for record, field in ((look, "ending"), (look.progress, "budget"), (look.chains[0], "name"), (look.pace, "rate")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, field, None)


@pytest.mark.parametrize("seed", range(8))
def test_a_look_is_what_the_entries_say(seed: int) -> None:
    """However they are cut into batches, and with a snapshot in between."""
    kept = Program(seed, target_loss=0.3).run(150).kept
    again, rng = State(kept.policy, recording=True), random.Random(seed)
    at = 0
    while at < len(kept.entries):
        size = rng.randint(1, 20)
        again.apply(kept.entries[at : at + size])
        at += size
        if rng.random() < 0.1:
            unpacked = unpacked_state(packed_state(again), kept.policy, recording=True)
            assert unpacked is not None
            assert looked(unpacked) == looked(again)
            again = unpacked
        shown = looked(again).chains  # what it keeps of holes is as good as new
        cuts = [again.chosen_cut(chain) for chain in again.chains]
        assert [line.beyond for line in shown] == [sum(cut.without.values()) for cut in cuts]
        assert [line.holes for line in shown] == [sum(cut.holes.values()) for cut in cuts]
    look, other = looked(kept.state), looked(again)
    assert look == other
    assert look.to_dict() == other.to_dict()
    for chain in (None, 0, 1):
        assert look.history(chain) == other.history(chain)


@pytest.mark.parametrize("seed", range(8))
def test_events_follow_from_the_entries(seed: int) -> None:
    kept = Program(seed, budget=60).run(400).kept
    state = State(kept.policy)
    state.past.events = deque()
    state.apply(kept.entries)
    events = list(state.past.events)
    assert state.past.happened == kept.state.past.happened == len(events)
    assert list(kept.state.past.events) == events[-EVENTS:]
    numbers = [event.number for event in events]
    assert numbers == sorted(numbers)
    of_entry = {
        Kind.EXPIRED: EventKind.LEASE_EXPIRED, Kind.ABANDONED: EventKind.LEASE_ABANDONED,
        Kind.GIVEN_BACK: EventKind.LEASE_GIVEN_BACK, Kind.PATH_ENDED: EventKind.PATH_ENDED,
        Kind.CORRECTED: EventKind.CORRECTED, Kind.CREATED: EventKind.CREATED,
    }  # fmt: skip
    for kind, event_kind in of_entry.items():
        of_kind = [entry.number for entry in kept.entries if entry.kind is kind]
        found = [event.number for event in events if event.kind is event_kind]
        assert set(of_kind) <= set(found), kind
    over = False
    for event in events:  # a study ends once, and again only after somebody has let it go on
        if event.kind is EventKind.FINISHED:
            assert not over
        over = event.kind is EventKind.FINISHED or (over and event.kind not in (EventKind.EXTENDED, EventKind.TAKEN_UP))


def test_older_events_are_read_from_the_journal(place: Place) -> None:
    study = place.create({"a": 2}, budget=1_000)
    for _ in range(EVENTS):
        study.tell_many([("a", 0), ("a", 1)])
        study.restart("a")
    study.tell_many([("a", 0)] * (1_000 - 2 * EVENTS))
    events = study.events()
    assert [event.kind for event in events] == ["created", *["path ended"] * EVENTS, "finished"]
    assert study.look().progress.events == EVENTS + 2
    assert study.events() == [*study.events(limit=5), *study.events(after=events[4].number)]
    assert study.events(after=-3) == events[-3:] == study.events(after=events[-4].number)
    assert list(study.look().events) == events[-EVENTS:]
    assert study.events(after=events[-1].number) == []


def test_a_study_that_goes_on_may_end_again(place: Place) -> None:
    study = place.create({"a": 2, "b": 2}, budget=4)
    study.tell_many([("a", 0), ("a", 1)] * 2)
    study.extend(budget=6)
    study.tell_many([("b", 0), ("b", 1)])
    found = [(event.kind, event.detail.get("reason"), event.detail.get("budget")) for event in study.events()]
    assert found == [
        ("created", None, None), ("finished", "budget", None), ("extended", None, 6), ("finished", "budget", None),
    ]  # fmt: skip
    assert study.look().ending == "the budget is spent"


def test_barren_chains_are_events_too(place: Place) -> None:
    study = place.create({"a": 2, "b": 2}, budget=1_000)
    for _ in range(10):
        study.tell("a", 0, begin=True)
    study.restart("a")
    kinds = [event.kind for event in study.events()]
    assert kinds[-2:] == ["path ended", "set aside"]
    assert study.look().aside["a"].reason == study.events()[-1].detail["reason"]
    study.take_up("a")
    assert study.events()[-1].kind == "taken up"
    assert study.look().aside == {}


def test_a_deadline_without_an_entry_is_in_the_ending_only(place: Place) -> None:
    study = place.create({"a": 2}, budget=10, deadline=time.time() + 0.2)
    study.tell("a", 0)
    time.sleep(0.3)
    assert study.look().ending == "the deadline has passed"
    assert [event.kind for event in study.events()] == ["created"]


def test_lines_over_time_are_those_of_the_bounds(place: Place) -> None:
    study = busy(place, events=False)
    look = study.look()
    bounds = [entry for page in study._keeper.pages() for entry in page if entry.kind is Kind.BOUND]
    for line in look.chains:
        lines = look.history(line.number)
        assert {one.number for one in lines} <= {entry.number for entry in bounds if entry.chain == line.number}
        assert (lines[-1].certificate, lines[-1].variability) == (line.certificate, line.variability)
        assert [one.own for one in lines] == sorted(one.own for one in lines)
        assert {one.chain for one in lines} == {line.number}
    whole = look.history(None)
    assert all(before.observations < after.observations for before, after in itertools.pairwise(whole))
    assert all(one.own == one.observations for one in whole)


def test_a_look_is_plain_data_that_json_keeps(place: Place) -> None:
    study = busy(place)
    for look in (study.look(), place.create({"a": 2, "b": 2}).look()):
        data = look.to_dict()
        assert json.loads(json.dumps(data, allow_nan=False)) == data
        assert data["progress"]["finished"] is look.progress.finished
        assert [one["name"] for one in data["chains"]] == [line.name for line in look.chains]
    assert data["progress"]["certificate"] is None  # infinite
    fields = {field.name for field in dataclasses.fields(Look) if not field.name.startswith("_")}
    assert set(data) == fields


def test_the_shares_of_a_policy_with_an_aim() -> None:
    study = Study.create(None, {"a": 2, "b": 3}, budget=1_000, policy="scout")
    rng = random.Random(0)
    study.tell_many([(name, rng.randrange(size)) for _ in range(100) for name, size in (("a", 2), ("b", 3))])
    shares = study.look().shares()
    assert list(shares) == [0, 1]
    assert sum(shares.values()) == pytest.approx(1.0)
    study.tell("a", 0)
    assert study.look().shares() is shares  # until 1 % more was observed
    study.tell_many([("a", 0)] * 3)
    assert study.look().shares() is not shares
    assert Study.create(None, {"a": 2, "b": 3}, budget=10, policy="uniform").look().shares() == {0: 0.5, 1: 0.5}


def test_a_rule_that_fails_is_shown_all_the_same() -> None:
    def terms(row: Any, exits: float, *_: Any) -> tuple[float, ...]:
        return (1 / (2 - exits),)

    broken = Policy("broken", index=lambda sums, t, _: math.nan, terms=terms)
    study = Study.create(None, {"a": 2}, budget=10, policy=broken)
    study.tell_many([("a", 0), ("a", 0), ("a", 0)])
    with pytest.raises((ChainscoutError, ZeroDivisionError)):
        study.ask()
    assert study.look().chains[0].index == math.inf
    assert study.look().chains[0].transitions == 2


def test_the_pace_is_that_of_the_last_observations() -> None:
    kept = Program(0, {"a": 2}, checks=False).kept
    assert (looked(kept.state).pace.last, looked(kept.state).pace.rate) == (None, None)
    for _ in range(2_000):
        kept.now += 100
        kept.tell("a", 0)
    pace = looked(kept.state).pace
    assert pace.last == kept.now / 1000
    assert pace.rate == pytest.approx(10.0)
    later = look_at(kept.state, kept.now + 100_000, (), Shares(None))
    assert later.pace.rate == pytest.approx(5.0)
    assert commands.ask(kept.state, kept.now) == "a"


def test_a_look_at_many_chains_is_cheap() -> None:
    study = Study.create(None, {f"chain {k}": 3 for k in range(1_000)}, budget=100_000)
    study.tell_many([(f"chain {k}", t % 3) for t in range(3) for k in range(1_000)])
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        study.look()
        times.append(time.perf_counter() - begun)
    assert min(times) <= 0.02
