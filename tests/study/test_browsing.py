"""A page of chains is the same from every store."""

import math
import random

import pytest
from study_places import Place, lease

from chainscout.counts import Counts
from chainscout.errors import InputError, UnknownChain
from chainscout.study import Study

NAMES = [*(f"Chain {k:02d}" for k in range(40)), "50%_\\odd", "Übung"]


@pytest.fixture
def study(place: Place) -> Study:
    found = place.create(dict.fromkeys(NAMES, 3), budget=10_000, target_loss=0.5)
    found.tell_many([(NAMES[k], (k * t + t // 3) % 3) for k in range(40) for t in range(k % 11)])
    return found


@pytest.mark.parametrize("order", ["number", "name", "states", "observations", "certificate", "index"])
@pytest.mark.parametrize("descending", [False, True])
def test_orders(study: Study, order: str, descending: bool) -> None:
    total, lines = study.look().page(order=order, descending=descending, limit=100)
    assert total == len(NAMES) == len(lines)
    if order == "name":  # databases sort letters as they please
        assert {line.name for line in lines} == set(NAMES)
    else:
        sign = -1 if descending else 1
        keys = [(sign * getattr(line, order), line.number) for line in lines]
        assert keys == sorted(keys), "equal ones come by their numbers"
    second = study.look().page(order=order, descending=descending, offset=10, limit=5)[1]
    assert second == lines[10:15]


def test_search(study: Study) -> None:
    assert [line.name for line in study.look().page("chain 1")[1]] == NAMES[10:20]
    assert study.look().page("CHAIN", limit=7)[0] == 40
    assert study.look().page("chain", offset=100)[0] == 40
    assert [line.name for line in study.look().page("%_\\")[1]] == ["50%_\\odd"]
    assert study.look().page("_")[0] == 1
    assert study.look().page("nothing") == (0, [])
    assert study.look().page("nul\x00") == (0, [])
    with pytest.raises(UnknownChain, match="has no chain"):
        study.look().chain("nul\x00")
    with pytest.raises(InputError, match="order must be one of"):
        study.look().page(order="size; DROP TABLE chain")


def test_outlines_tell_warm_and_open_chains(place: Place) -> None:
    prior = Counts(2)
    for state in (0, 1, 1):
        prior.record(state)
    study = place.create(
        {"warm": 2, "open": [], "cold": 2}, open_states=["open"], warm_start={"warm": prior}, weights={"cold": 3.0}
    )
    for name, state in (("warm", 0), ("cold", 1), ("cold", 0), ("open", "a"), ("open", "b")):
        study.tell(name, state)
    study.restart("cold")
    study.tell("cold", 1)
    look = study.look()
    assert [(line.states, line.open, line.weight) for line in look.chains] == [
        (2, False, 1.0),
        (2, True, 1.0),
        (2, False, 3.0),
    ]
    assert look.warm == ("warm",)
    assert [line.unknown_rows for line in look.chains] == [0, 1, 1]


def test_lines_are_what_the_study_says(study: Study) -> None:
    indices = study.indices()
    stored = study.look().certificate()
    for line in study.look().page(limit=100)[1]:
        assert line.loss == stored.loss[line.name]
        assert line.certified == stored.moments.get(line.name, line.transitions)
        assert line.index == indices[line.name]
        assert line == study.look().chain(line.number) == study.look().chain(line.name)
    assert study.progress().variability == pytest.approx(
        sum(line.variability for line in study.look().page(limit=100)[1]), rel=1e-12
    )


def test_without_a_target_lines_have_what_is_stored_from_100_transitions_on(place: Place) -> None:
    study = place.create({"a": 3, "b": 3, "c": 3}, budget=600)
    rng = random.Random(0)  # no check speaks against it
    study.tell_many([("a", rng.randrange(3)) for _ in range(101)] + [("b", rng.randrange(3)) for _ in range(100)])
    lines = study.look().chains
    loss = study.certificate().loss
    assert [(line.certificate, line.certified) for line in lines] == [
        (loss["a"], 100),
        (math.inf, 0),
        (math.inf, 0),
    ]
    study.tell_many([("a", rng.randrange(3)) for _ in range(24)])
    assert study.look().chain(0).certified == 100
    study.tell("a", 0)
    assert study.look().chain(0).certified == 125
    study.tell_many([("c", rng.randrange(3)) for _ in range(374)])
    assert study.finished
    loss = study.certificate().loss  # when a small study stops, everything is of the last moment
    assert [line.certificate for line in study.look().page()[1]] == [loss[name] for name in "abc"]


def test_what_is_stored_of_single_probabilities_is_what_was_certified(place: Place) -> None:
    """Those of the last look, which is long ago while a target is far; and all of them when the study stops."""
    for target in (None, 1e-9):
        study = place.create({"a": 2, "b": [], "c": 2}, target_loss=target, open_states=["b"])
        study.tell_many([("a", t % 3 % 2) for t in range(801)] + [("b", str(t % 2)) for t in range(201)])
        study.tell_many([("a", t % 5 % 2) for t in range(8)])
        look, known = study.look(), study.certificate()
        assert look.chain(0).certified == 800  # of a batch; the next look is at a quarter more, or at twice as many
        assert look.certificate().loss["b"] == known.loss["b"] < math.inf
        words = look.certificate([0]).in_words()
        assert words.startswith("As of transition 800, with probability 0.95, each probability")
        assert look.certificate([2]).in_words().endswith("was not kept.")
        study.close()


def test_leases_are_those_that_workers_hold(study: Study) -> None:
    leases = [lease(study, "somebody", 60, steps=2), lease(study, "another", 70)]
    assert [(line.chain, line.path, line.worker, line.promised) for line in study.look().leases] == [
        (leases[0].chain, leases[0].path, "somebody", 2),
        (leases[1].chain, leases[1].path, "another", 1),
    ]
    assert [event.kind for event in study.events()] == ["created"]
