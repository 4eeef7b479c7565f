"""Questions to a study: from its log, in Python and on the command line."""

import heapq
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from study_commands import answer, run
from study_places import set_clock

import chainscout as cs

STATES = ["idle", "busy", "down"]
MATRIX = np.array([[0.9, 0.08, 0.02], [0.5, 0.4, 0.1], [0.3, 0.0, 0.7]])
QUESTION = "reach down from idle within 20"


def told(study, number=600, chain="north", seed=0):
    rng = np.random.default_rng(seed)
    x, batch = 0, []
    for _ in range(number):
        batch.append((chain, STATES[x]))
        x = int(rng.choice(3, p=MATRIX[x]))
    study.tell_many(batch)


def test_an_answer_comes_from_the_log(place):
    study = place.create({"north": STATES, "south": 2}, delta=0.1)
    told(study)
    found = study.answer("north", QUESTION)
    assert found == cs.answer(study.paths("north"), QUESTION, delta=0.1)
    assert (found.method, found.delta) == ("replay", 0.1)
    assert found.lower < cs.answer(cs.MarkovChain(MATRIX, states=STATES), QUESTION).lower < found.upper
    assert study.answer("north", cs.Reach("down", "idle", within=20), delta=0.01).width > found.width
    assert study.answer("south", "reach 1 from 0 within 3").width == 1
    again = place.reopen(study)
    assert replace(again.answer("north", QUESTION), notes=()) == replace(found, notes=())


def test_a_question_is_put_to_all_chains_with_delta_over_their_number(place):
    study = place.create({"north": STATES, "south": STATES}, delta=0.1)
    told(study)
    found = study.answers(QUESTION)
    assert list(found) == ["north", "south"]
    assert {each.delta for each in found.values()} == {0.05}
    assert found["north"] == study.answer("north", QUESTION, delta=0.05)


def test_workers_side_by_side_are_replayed_in_the_order_of_issue():
    """Values that arrive late are waited for: whoever is slow cannot bend the answer."""
    study = cs.Study.create(None, {"a": 2}, delta=0.05)
    rng = np.random.default_rng(1)
    workers = [study.worker(f"w{number}", renews=False) for number in range(4)]
    for worker in workers:
        worker.lease().tell(0)
    for _ in range(150):
        leases = [worker.lease() for worker in workers]
        values = [int(rng.random() < 0.5) for _ in leases]
        for lease, value in sorted(zip(leases, values, strict=True), key=lambda pair: pair[1]):
            lease.tell(value)
    found = study.answer("a", "reach 1 from 0 within 1")
    assert found.method == "replay"
    assert found.lower < 0.5 < found.upper
    assert found.episodes > 200


def test_plain_tells_of_two_paths_are_replayed_in_the_order_of_issue():
    """The draw of a path is issued by the tell before it on this path, whatever else is told between."""
    study = cs.Study.create(None, {"a": 2})
    for step in range(1, 60):
        for path in (1, 2):
            study.tell("a", (step * path) % 2, path=path, step=step)
    found = study.answer("a", "reach 1 from 0 within 3")
    assert found.method == "replay"
    assert found.episodes > 10


@pytest.mark.parametrize("lost", [1, 3, 4])
def test_draws_cancelled_after_a_later_one_may_have_any_value_unless_they_are_vouched_for(lost):
    """A fourth one stops the replay."""
    study = cs.Study.create(None, {"a": 2})
    workers = [study.worker(f"w{number}", renews=False) for number in range(lost + 1)]
    for worker in workers:
        worker.lease().tell(0)
    leases = [worker.lease() for worker in workers]
    leases[-1].tell(1)
    for lease in leases[:-1]:
        lease.give_back()
    for value in (0, 1, 0, 1):
        workers[-1].lease().tell(value)
    found = study.answer("a", "reach 1 from 0 within 1")
    skipped = study.answer("a", "reach 1 from 0 within 1", losses="independent")
    assert skipped.episodes == 3
    if lost == 4:
        assert (found.episodes, found.waiting_for) == (3, 0)
        assert f"the replay stands still at an exit of 0: its draw {leases[3].token} was lost" in found.notes[0]
    else:
        assert found.episodes == 3 + lost
    assert found.lower < skipped.lower
    assert found.upper == 1


def crowd(seed, *, expires, delta=0.5, draws=300):
    """Eight workers on one fair coin. A step to 1 takes five times as long as one to 0, and its lease may expire.

    ``expires``: the probability of this. Returns whether an answer of the study ever missed, and whether the last one
    does if the lost draws are left out.
    """
    rng, question, truth = np.random.default_rng(seed), "reach 1 from 0 within 2", 0.75
    study = cs.Study.create(None, {"coin": 2}, delta=delta, questions=question)
    clock, under_way = 0.0, []
    for number in range(8):
        heapq.heappush(under_way, (0.0, number, study.worker(f"w{number}", renews=False), None, 0))
    while study.progress().observations < draws:
        clock, number, worker, lease, value = heapq.heappop(under_way)
        set_clock(study, clock)
        if lease is not None:
            lease.tell(value)
        lease = worker.lease(seconds=20.0)
        begins = lease.state is None
        value = 0 if begins else int(rng.random() < 0.5)
        lost = value == 1 and rng.random() < expires
        heapq.heappush(
            under_way,
            (clock + (30.0 if lost else 1.0 + 4.0 * value), number, worker, None if lost else lease, value),
        )
    (asked,) = study.questions()
    study.answer("coin", question)
    missed = any(not line.lower <= truth <= line.upper for line in study.look().answers(asked.number))
    skipped = study.answer("coin", question, asked=0, losses="independent")
    return missed, not skipped.lower <= truth <= skipped.upper


@pytest.mark.parametrize("expires", [0.0, 0.01, 0.5])
def test_answers_of_a_crowd_hold_although_durations_depend_on_outcomes_and_leases_expire(expires):
    found = [crowd([seed, round(100 * expires)], expires=expires) for seed in range(20)]
    assert sum(missed for missed, _ in found) <= binom.ppf(0.999, 20, 0.25)
    if expires == 0.5:
        assert sum(skipped for _, skipped in found) > binom.ppf(0.999, 20, 0.25), "the mutant leaves lost draws out"


def test_the_command_answers(folder):
    where = folder / "lab.db"
    with cs.Study.create(where, {"north": STATES, "south": 2}) as study:
        told(study)
    with cs.Study.open(where, read_only=True) as study:  # the step after the last tell was not made
        expected = study.answer("north", QUESTION)
    assert run("answer", where, "north", QUESTION).rstrip("\n") == str(expected)
    content = answer("answer", where, "north", QUESTION)
    assert content["chain"] == "north"
    assert (content["lower"], content["upper"]) == (expected.lower, expected.upper)
    assert content["guaranteed"] is True
    endless = answer("answer", where, "south", "time to 1 from 0")
    assert endless["upper"] is None
    assert "the upper bound is infinite" in " ".join(endless["notes"])
    wider = answer("answer", where, "north", QUESTION, "--method", "row-likelihood")
    assert wider["lower"] < content["lower"] < content["upper"] < wider["upper"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["north", "reach dwn from idle"], "unknown state 'dwn' (did you mean down?)"),
        (["north", "reach down frm idle"], "not 'frm' (did you mean from?) at character 12"),
        (["nort", QUESTION], "the study has no chain 'nort' (did you mean north?)"),
        (["north", QUESTION, "--delta", "2"], "delta (the probability with which a guarantee may fail) must be"),
        (["north", QUESTION, "--method", "magic"], "method must be one of"),
    ],
)
def test_the_command_refuses_with_one_sentence(folder, words, message):
    where = folder / "lab.db"
    cs.Study.create(where, {"north": STATES}).close()
    said = run("answer", where, *words, status=2)
    assert message in said
    assert said.count("\n") == 1
