"""What ends a study, and what extends it: budgets and costs, targets, deadlines, chains set aside; in every place."""

import math
import random

import pytest
from study_checks import check
from study_driving import STATES, drive
from study_places import set_clock
from study_rules import RULE

from chainscout.errors import ChainscoutError, InputError, StudyFinished
from chainscout.policies import Policy


def test_a_chain_without_transitions_is_set_aside(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    for _ in range(10):
        assert study.ask() == "a"
        study.tell("a", 0)
        study.restart("a")
    assert study.ask() == "b"
    assert study.progress().aside == 1
    assert study.certificate().aside == ("a",)
    assert "set aside" in study.certificate().notes[-1]
    assert [event.kind for event in study.events()][-1] == "set aside"
    for _ in range(10):
        study.tell("b", 0)
        study.restart("b")
    assert study.stop_reason == "every chain was set aside"
    study.extend(target_loss=0.5)
    assert study.stop_reason == "every chain was set aside"  # no chain is left, and so no target is met
    with pytest.raises(StudyFinished, match="set aside"):
        study.ask()


def test_a_finished_study_and_its_extension(place):
    study = place.create(STATES, budget=8, policy=RULE)
    drive(study, 8)
    for refused in (study.ask, lambda: study.ask(3), lambda: study.lease("w"), lambda: study.tell("south", 1)):
        with pytest.raises(StudyFinished, match="budget"):
            refused()
    with pytest.raises(InputError, match="8 of the budget are used"):
        study.extend(budget=5)
    with pytest.raises(InputError, match="none was given"):
        study.extend()
    study.extend(budget=12)
    assert not study.finished
    study = place.reopen(study, RULE)
    drive(study, 4)
    assert study.stop_reason == "budget"
    assert [event.kind for event in study.events()] == ["created", "finished", "extended", "finished"]


def test_constants_follow_an_extended_budget(place):
    policy = Policy(
        "horizon",
        index=lambda sums, t, constants: constants[0] / t,
        terms=lambda *_: (0.0,),
        constants=lambda setting: (float(setting.budget or -1),),
    )
    study = place.create({"a": 2}, budget=4, policy=policy)
    study.tell_many([("a", 0)] * 3)
    assert study.indices() == {"a": 2.0}
    study.extend(budget=10)
    assert study.indices() == {"a": 5.0}


def test_the_target_stops_the_study_on_fresh_certificates(place):
    study = place.create({"a": 2, "b": 2}, budget=3000, policy=RULE, target_loss=0.6)
    rng = random.Random(3)
    while not study.finished:
        study.tell_many([(name, rng.randrange(2)) for name in study.ask(7)])
    assert study.stop_reason == "target_loss"
    certificate = study.certificate()
    assert certificate.max <= 0.6
    assert study.progress().certificate == certificate.max
    check(study, {"a": 2, "b": 2}, RULE)
    study.extend(target_loss=0.3)
    assert not study.finished


def test_the_deadline_stops_the_study(place):
    study = place.create({"a": 2}, policy=RULE, deadline=5000.0)
    set_clock(study, 4999.0)
    study.tell(study.ask(), 0)
    set_clock(study, 5000.0)
    assert study.stop_reason == "deadline"
    with pytest.raises(StudyFinished, match="deadline"):
        study.ask()
    study.tell("a", 1)  # it was observed in time
    assert study.progress().observations == 2
    with pytest.raises(StudyFinished, match="deadline"):
        study.tell("a", 1)
    study.extend(deadline=6000.0)
    assert study.ask() == "a"


def test_costs_change_how_the_budget_is_counted(place):
    study = place.create({"a": 2, "b": 2}, budget=1.0, policy=RULE, costs={"a": 0.3, "b": 0.1})
    made = []
    while not study.finished:
        name = study.ask()
        made.append(name)
        study.tell(name, 0)
    assert made == ["a", "a", "b", "b", "a"][: len(made)]
    assert study.progress().used <= 1.0 + 1e-9
    assert study.stop_reason == "budget"


def test_a_budget_of_many_small_costs_is_used_up(place):
    study = place.create({"a": 1}, budget=0.3, policy=RULE, costs={"a": 0.1})
    study.tell_many([("a", 0)] * 3)
    assert study.stop_reason == "budget"


def test_the_user_learns_what_happened_in_one_sentence(place):
    study = place.create({"a": 2}, budget=1, policy=RULE)
    study.tell("a", 0)
    with pytest.raises(ChainscoutError) as caught:
        study.ask()
    assert str(caught.value) == "the study is finished (budget); extend it with a larger budget to go on"


def test_a_target_of_the_rest_is_another_reason_to_stop(place):
    study = place.create({"a": 2, "b": 2, "c": 2}, policy=RULE, target_loss=0.6)
    study.set_aside("b", "broken")  # before it has shown a transition
    rng = random.Random(4)
    while not study.finished:
        study.tell(study.ask(), rng.randrange(2))
    assert study.stop_reason == "target_loss_of_the_rest"
    assert study.certificate().loss["b"] == study.certificate().max == study.progress().certificate == math.inf
    assert max(study.certificate().loss[name] for name in "ac") <= 0.6
    words = (
        "the study is finished .the target loss is certified but for the chains set aside.; extend it with a smaller"
    )
    with pytest.raises(StudyFinished, match=words) as caught:
        study.ask()
    assert caught.value.reason == "target_loss_of_the_rest"
    study = place.reopen(study, RULE)
    assert study.stop_reason == "target_loss_of_the_rest"
    study.extend(target_loss=0.3)
    assert study.ask() in ("a", "c")


@pytest.mark.parametrize("told", [8, 300])
def test_a_chain_set_aside_counts_with_what_is_known_of_it(place, told):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    rng = random.Random(told)
    study.tell_many([("b", rng.randrange(2)) for _ in range(told)])
    study.set_aside("b", "broken")
    study.extend(target_loss=0.6)  # only now are certificates stored
    assert study.progress().certificate == study.certificate().max == math.inf  # of a
    while not study.finished:
        study.tell("a", rng.randrange(2))
    certificate = study.certificate()
    assert study.progress().certificate == certificate.max
    assert study.stop_reason == ("target_loss" if certificate.loss["b"] <= 0.6 else "target_loss_of_the_rest")
    assert (certificate.max <= 0.6) == (study.stop_reason == "target_loss") == (told == 300)


def test_chains_set_aside_one_after_the_other_still_have_their_certificates(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE, target_loss=0.01)
    rng = random.Random(1)
    study.tell_many([(name, rng.randrange(2)) for _ in range(205) for name in "ab"])
    study.tell("a", 0)
    study.tell("b", 1)
    assert study.progress().certificate != study.certificate().max  # less than 1 % old
    for name in "ab":
        study.set_aside(name, "broken")
    assert study.progress().certificate == study.certificate().max
    assert study.stop_reason == "every chain was set aside"
    study.extend(target_loss=1.0)
    assert study.stop_reason == "target_loss"
