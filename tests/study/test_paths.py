"""Paths: a transition is counted along one unbroken walk by one walker, and never across two of them."""

import random
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from study_checks import check, check_issues, walked_paths
from study_driving import STATES, drive
from study_places import lease, set_clock
from study_rules import RULE

import chainscout as cs
from chainscout.errors import (
    BarePathsWarning,
    Held,
    InputError,
    LeaseLost,
    NothingFree,
    OutOfStep,
    StudyFinished,
)
from chainscout.study import Study

ONE = {"a": 2}


# -- plain tells, and studies that are opened again


def test_a_reopened_study_begins_new_paths(where):
    with Study.create(where, STATES, policy=RULE) as study:
        drive(study, 12)
        before = {name: study.counts(name).total for name in STATES}
    with Study.open(where, RULE) as study:
        place = study.chain("south")
        assert (place.path, place.step, place.last, place.paths) == (2, 1, None, 1)
        for name in STATES:
            study.tell(name, study.states(name)[0])
        assert {name: study.counts(name).total for name in STATES} == before
        assert study.progress().paths == 6
        place = study.chain("south")
        assert (place.path, place.step, place.last, place.paths) == (2, 2, 0, 2)
        study.tell("south", 1)
        assert study.counts("south").total == before["south"] + 1
        check(study, STATES, RULE)
        study.audit()


@pytest.mark.parametrize("batch", [False, True])
def test_a_study_that_continues_counts_the_transition(where, batch):
    with Study.create(where, ONE, policy=RULE) as study:
        study.tell_many([("a", 0), ("a", 1)])
    with Study.open(where, RULE, continuing=True) as study:
        place = study.chain("a")
        assert (place.path, place.step, place.last) == (1, 3, 1)
        study.tell_many([("a", 0)]) if batch else study.tell("a", 0)
        study.tell("a", 0, path=1, step=3)
        assert study.counts("a").transitions.tolist() == [[0, 1], [1, 0]]
        assert study.progress().paths == 1
        check(study, ONE, RULE)


def test_one_chain_is_continued_where_the_others_are_not(where):
    with Study.create(where, {"a": 2, "b": 2}, policy=RULE) as study:
        study.tell_many([("a", 0), ("a", 1), ("b", 0), ("b", 1)])
    with Study.open(where, RULE) as study:
        place = study.continue_path("a")
        assert (place.path, place.step, place.last) == (1, 3, 1)
        study.tell_many([("a", 1), ("b", 1)])
        assert [study.counts(name).total for name in "ab"] == [2, 1]
        assert study.continue_path("b").path == 2  # it walks this one already


def test_two_objects_that_tell_in_turn_never_count_across_each_other(where):
    first = Study.create(where, ONE, policy=RULE)
    second = Study.open(where, RULE)
    rng = random.Random(1)
    told = {first: [], second: []}
    for study in (first, first, second, second):
        told[study].append(rng.randrange(2))
        study.tell("a", told[study][-1])
    for _ in range(60):
        study = rng.choice((first, second))
        told[study].append(rng.randrange(2))
        study.tell("a", told[study][-1])
    assert walked_paths(first) == {("a", 1): told[first], ("a", 2): told[second]}
    assert first.counts("a", everything=True).total == 62
    check(second, ONE, RULE)
    for study in (first, second):
        study.close()


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
def test_a_path_that_somebody_else_has_walked_is_not_continued(where):
    first = Study.create(where, ONE, policy=RULE)
    first.tell_many([("a", 0), ("a", 1)])
    late = Study.open(where, RULE, continuing=True)  # it stands at 1 …
    second = Study.open(where, RULE, continuing=True)
    second.tell("a", 0)  # … and this one goes on
    first.tell("a", 1)
    late.tell("a", 0)
    assert walked_paths(first) == {("a", 1): [0, 1, 0], ("a", 2): [1], ("a", 3): [0]}
    for number, study in enumerate((second, first, late), start=1):
        assert study.chain("a").path == number
        study.tell("a", 1)
    assert walked_paths(first) == {("a", 1): [0, 1, 0, 1], ("a", 2): [1, 1], ("a", 3): [0, 1]}
    check(first, ONE, RULE)
    for study in (first, late, second):
        study.close()


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
def test_a_retry_moves_nobody(where):
    first = Study.create(where, ONE, policy=RULE)
    first.tell_many([("a", 0), ("a", 1)])
    second = Study.open(where, RULE, continuing=True)
    second.tell("a", 0)
    first.tell("a", 1, path=1, step=2)  # told before; the end of the path is not where this object is
    first.tell("a", 1)
    assert walked_paths(first) == {("a", 1): [0, 1, 0], ("a", 2): [1]}
    with pytest.raises(OutOfStep, match="told by somebody else"):
        second.tell("a", 1, path=2, step=1)
    second.tell("a", 1)
    assert walked_paths(first) == {("a", 1): [0, 1, 0, 1], ("a", 2): [1]}
    first.close()
    second.close()
    with Study.open(where, RULE) as third:
        third.tell("a", 1, path=1, step=4)  # after a crash: told before …
        third.tell("a", 1, path=1, step=5)  # … or not
        third.tell("a", 0)  # that says nothing of where the process is now
        assert walked_paths(third) == {("a", 1): [0, 1, 0, 1, 1], ("a", 2): [1], ("a", 3): [0]}
        check(third, ONE, RULE)


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_a_retry_after_a_crash_adds_or_recognises_one_observation(where, stored, begun):
    """The documented retry, and then the first state of a simulator that was started anew."""
    with Study.create(where, ONE, policy=RULE) as study:
        if begun:
            study.tell("a", 0)
        at = study.chain("a")
        if stored:
            study.tell("a", 1, path=at.path, step=at.step)
    with Study.open(where, RULE) as study:
        study.tell("a", 1, path=at.path, step=at.step)
        study.tell("a", 0)
        assert walked_paths(study) == {("a", 1): [0, 1] if begun else [1], ("a", 2): [0]}
        place = study.chain("a")
        study.tell("a", 1, path=place.path, step=place.step)  # this one was given by the open study: its own path
        study.restart("a")
        place = study.chain("a")
        study.tell("a", 1, path=place.path, step=place.step)
        study.tell("a", 0)
        assert walked_paths(study)["a", 3] == [1, 0]
        check(study, ONE, RULE)


def test_a_step_after_a_crash_names_its_path(where):
    with Study.create(where, ONE, policy=RULE) as study:
        study.tell("a", 0, step=1)
    with Study.open(where, RULE) as study:
        with pytest.raises(InputError, match=r"steps are numbered within a path.* name the path of 'a' too"):
            study.tell("a", 0, step=1)
        study.tell("a", 0, path=1, step=1)
        assert study.progress().observations == 1


def test_a_state_that_begins_a_path_is_told_with_its_beginning_or_not_at_all(place):
    study = place.create(ONE, policy=RULE)
    study.tell_many([("a", 0), ("a", 1)])
    before = study.progress(), study.chain("a")
    with pytest.raises(InputError):
        study.tell("a", 7, begin=True)
    with pytest.raises(InputError, match="has neither path nor step"):
        study.tell("a", 0, path=1, begin=True)
    assert (study.progress(), study.chain("a")) == before
    assert study.tell("a", 0, begin=True) == (2, 2)
    held = lease(study, "w", steps=3)
    held.tell(0)
    with pytest.raises(InputError):
        study.tell("a", 7, token=held.token, begin=True)
    study.tell("a", 1, token=held.token, begin=True)
    assert walked_paths(study) == {("a", 1): [0, 1], ("a", 2): [0], ("a", 3): [0], ("a", 4): [1]}
    check(study, ONE, RULE)


def test_a_process_that_was_started_anew_before_the_first_tell(where):
    """The path of plain tells ends, whoever walked it."""
    with Study.create(where, ONE, policy=RULE) as study:
        study.tell_many([("a", 0), ("a", 1)])
    with Study.open(where, RULE) as study:
        study.restart("a")
        assert study.events()[-1].detail["path"] == 1
    with Study.open(where, RULE, continuing=True) as study:
        assert study.chain("a").last is None
        study.tell("a", 0)
        assert walked_paths(study) == {("a", 1): [0, 1], ("a", 2): [0]}
        check(study, ONE, RULE)


def test_a_worker_object_holds_a_chain_once(place):
    """It has one process a chain: what two of its leases would see of it could not be told apart."""
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    set_clock(study, 10.0)
    worker = study.worker("w", renews=False)
    first, second = worker.lease(5, wait=0), worker.lease(50, wait=0)
    assert {first.chain, second.chain} == {"a", "b"}
    with pytest.raises(Held, match=r"the worker 'w' holds the chain '[ab]' already"):
        worker.lease()
    second.tell(0)
    third = worker.lease()
    assert (third.chain, third.path, third.state) == (second.chain, second.path, 0)
    set_clock(study, 20.0)
    again = worker.lease()  # a lease that ran out is not held
    assert (again.chain, again.path) == (first.chain, first.path + 1)
    check(study, {"a": 2, "b": 2}, RULE)


def test_a_study_opened_for_every_observation_is_warned(where):
    Study.create(where, ONE, policy=RULE).close()
    with Study.open(where, RULE) as study:
        study.tell("a", 0)
    with Study.open(where, RULE) as study:
        with pytest.warns(BarePathsWarning, match=r"'a' .* brought no transition: .* continuing=True") as caught:
            study.tell("a", 1)
        assert caught[0].filename == __file__
        study.tell("a", 1)
    with Study.open(where, RULE) as study, warnings.catch_warnings():
        warnings.simplefilter("error")
        study.tell("a", 0)  # the path before it has a transition
    with Study.open(where, RULE) as study, pytest.warns(BarePathsWarning) as caught:
        study.tell_many([("a", 0)])
    assert caught[0].filename == __file__
    with Study.open(where, RULE, continuing=True) as study:
        study.tell("a", 1)
        assert study.counts("a").total == 2


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
def test_an_observation_of_another_program_is_not_taken_for_ones_own(where):
    """Two programs that have the same place, and see the same state: one of them is heard."""
    first = Study.create(where, ONE, policy=RULE)
    second = Study.open(where, RULE)
    places = [study.chain("a") for study in (first, second)]
    first.tell("a", 0, path=1, step=1)
    for _ in range(2):
        with pytest.raises(OutOfStep, match=r"observation 1 of path 1 .* told by somebody else meanwhile"):
            second.tell("a", 0, path=places[1].path, step=places[1].step)
    first.tell("a", 1, path=1, step=2)
    with pytest.raises(OutOfStep, match="told by somebody else"):
        second.tell("a", 0, path=1, step=1)
    first.tell("a", 0, path=1, step=1)
    first.close()
    second.close()
    with Study.open(where, RULE) as third:  # after a crash: what was there when the study was opened is known again
        third.tell("a", 0, path=1, step=1)
        third.tell("a", 1, path=1, step=2)
        assert third.progress().observations == 2
        check(third, ONE, RULE)


def test_a_program_that_works_beside_another_is_not_warned(where):
    first, second = Study.create(where, ONE, policy=RULE), Study.open(where, RULE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for study in (first, second, first, second):
            study.tell("a", 0)
    first.close()
    second.close()


def test_learning_is_not_warned(where):
    with Study.create(where, ONE, budget=2) as study:
        study.tell("a", 0)
    rng = random.Random(1)
    sources = {"a": lambda: rng.randrange(2)}
    with warnings.catch_warnings(), ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("error")
        cs.learn(sources, 2, where=where, progress=False).close()
        cs.learn(sources, 3, where=where, executor=pool, progress=False).close()


def test_a_worker_object_for_every_observation_is_warned(place):
    study = place.create(ONE, policy=RULE)
    study.worker("w").lease().tell(0)
    with pytest.warns(BarePathsWarning, match=r"'a' .* keep one for all leases.*\(continuing=True\)") as caught:
        study.worker("w").lease().tell(1)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.worker("w").lease(continuing=True).tell(0)
        study.worker("v").lease().tell(0)
        study.worker("w").lease().tell(0)  # the path before it has a transition
    with pytest.raises(InputError, match="continuing must be True, False or a set of names of chains, not 'a'"):
        study.worker("w").lease(continuing="a")


# -- workers


def test_a_worker_of_the_same_name_begins_a_new_path(place):
    study = place.create(ONE, policy=RULE)
    first = study.worker("w", renews=False)
    for state in (0, 1):
        first.lease().tell(state)
    second = study.worker("w", renews=False)
    held = second.lease()
    assert (held.path, held.step, held.state) == (2, 1, None)
    held.tell(1)
    third = study.worker("w", renews=False)
    held = third.lease(continuing=True)
    assert (held.path, held.step, held.state) == (2, 2, 1)
    held.tell(0)
    held = second.lease()  # somebody has walked its path: it does not know where
    assert (held.path, held.state) == (3, None)
    held.tell(0)
    held = first.lease(continuing=True)  # it walks a path already, and continues that one
    assert (held.path, held.step, held.state) == (1, 3, 1)
    held.tell(1)
    other = study.worker("v", renews=False).lease(continuing=True)
    assert (other.path, other.state) == (4, None)
    assert walked_paths(study) == {("a", 1): [0, 1, 1], ("a", 2): [1, 0], ("a", 3): [0]}
    check(study, ONE, RULE)


def test_a_path_under_a_lease_is_not_continued_by_another_of_its_name(place):
    study = place.create(ONE, policy=RULE)
    worker = study.worker("w", renews=False)
    worker.lease().tell(0)
    held = worker.lease()
    assert (held.path, held.state) == (1, 0)
    other = study.worker("w", renews=False).lease(continuing=True)
    assert (other.path, other.state) == (2, None)
    with pytest.raises(OutOfStep, match="held by a lease"):
        study.tell("a", 1, path=1, step=2)
    check(study, ONE, RULE)


def test_a_path_that_was_given_back_empty_hides_no_other(place):
    study = place.create(ONE, policy=RULE)
    worker = study.worker("w", renews=False)
    worker.lease().tell(0)
    worker.lease().tell(1)
    for number in (2, 3):  # two processes that were asked for nothing in the end
        held = study.worker("w", renews=False).lease()
        assert (held.path, held.state) == (number, None)
        held.give_back()
    held = study.worker("w", renews=False).lease(continuing=True)
    assert (held.path, held.step, held.state) == (1, 3, 1)
    held.tell(0)
    assert walked_paths(study) == {("a", 1): [0, 1, 0]}
    # After a path that has ended there is nothing to continue. A number that was given back stays free.
    held = study.worker("w", renews=False).lease(continuing=True)
    held.abandon()
    held = study.worker("w", renews=False).lease(continuing=True)
    assert (held.path, held.state) == (4, None)
    # While somebody holds an empty path of the name, nobody knows who walks the one before it.
    other = study.worker("w", renews=False).lease(continuing=True)
    assert (other.path, other.state) == (5, None)
    check(study, ONE, RULE)


def test_a_plain_tell_goes_on_with_no_path_of_a_worker(place):
    study = place.create(ONE, policy=RULE)
    held = study.worker("w", renews=False).lease()
    held.tell(0)
    with pytest.raises(OutOfStep, match="belongs to a worker"):
        study.tell("a", 1, path=held.path, step=2)
    assert study.progress().observations == 1
    study.audit()


@pytest.mark.parametrize("workers", [8, 16])
def test_each_path_is_what_its_worker_wrote_down(place, workers):
    """Threads on one study object, or with a connection each; every worker has a simulator of its own."""
    sizes = {"a": 2, "b": 3, "c": 2}
    budget = 40 * workers
    study = place.create(sizes, budget=budget, policy=RULE)
    where = place.where(study)
    written: dict[tuple[str, int], list[int]] = {}
    failures = []

    def work(number):
        rng = random.Random(number)
        own = study if where is None else Study.open(where, RULE)
        try:
            with own.worker(f"w{number}") as worker:
                states = {}
                while held := worker.lease(steps=rng.choice((1, 1, 3))):
                    if states.get(held.chain) is None or held.state is None:
                        assert held.state is None
                    else:
                        assert held.state == states[held.chain]
                    while held.steps:
                        states[held.chain] = rng.randrange(sizes[held.chain])
                        held.tell(states[held.chain])
                        written.setdefault((held.chain, held.path), []).append(states[held.chain])
                        if rng.random() < 0.02 and held.steps:
                            held.restart()
        except BaseException as error:
            failures.append(error)
        finally:
            if own is not study:
                own.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert walked_paths(study) == written
    assert (study.progress().observations, study.progress().leases) == (budget, 0)
    assert study.stop_reason == "budget"
    check(study, sizes, RULE)
    study.audit()


def test_what_is_acknowledged_in_a_race_to_a_target_is_what_is_kept(place):
    """Eight workers until the target is met: four under leases, of which some run out, and four with plain tells."""
    sizes = {"a": 2, "b": 3, "c": 2}
    study = place.create(sizes, target_loss=0.15, policy=RULE, certificate="mixture")
    where = place.where(study)
    written: dict[tuple[str, int], list[int]] = {}
    failures = []
    late = study.worker("late", renews=False).lease(0.001)
    time.sleep(0.002)

    def tell_under_leases(own, rng, number):
        worker = own.worker(f"w{number}", renews=False)
        while held := worker.lease(rng.choice((0.001, 60.0, 60.0)), steps=3):
            if held.seconds < 1:
                time.sleep(0.002)
            while held.steps:
                state = rng.randrange(sizes[held.chain])
                try:
                    held.tell(state)
                except LeaseLost:
                    break
                written.setdefault((held.chain, held.path), []).append(state)

    def tell_plainly(own, rng, number):
        while True:
            try:
                name = own.ask()
                state = rng.randrange(sizes[name])
                told = own.tell(name, state)
            except StudyFinished:
                return
            except NothingFree:  # the draws under way are expected to be enough
                time.sleep(0.001)
                continue
            written.setdefault((name, told.path), []).append(state)

    def work(number):
        own = opened[number]
        try:
            (tell_under_leases if number % 2 else tell_plainly)(own, random.Random(number), number)
        except BaseException as error:
            failures.append(error)
        finally:
            if own is not study:
                own.close()

    numbers = range(8) if where is not None else (0, 1, 3, 5, 7)  # plain tells of one open study walk one path
    opened = {number: Study.open(where, RULE) if where is not None else study for number in numbers}
    threads = [threading.Thread(target=work, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert walked_paths(study) == written
    assert study.stop_reason == "target_loss"
    assert study.certificate().max <= 0.15
    assert study.progress().observations == sum(map(len, written.values())) > 150
    with pytest.raises(LeaseLost, match="nothing was changed"):
        late.tell(0)
    assert walked_paths(study) == written
    study.audit()


# -- the order of issue


def test_draws_are_numbered_by_the_entries_that_asked_for_them(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    set_clock(study, 100.0)
    study.tell("a", 0)  # it asks for the next draw of its path, which is told later
    asked = study._keeper.state().head.number
    first = lease(study, "one", steps=2)
    second = lease(study, "two", seconds=10, steps=2)
    third = lease(study, "three")
    second.tell(0)  # … and asks for its second draw
    first.tell(0)
    third.tell(1)
    study.tell("a", 1)
    first.give_back()  # its second draw is never made
    fourth = lease(study, "four", steps=2)
    issued = [asked, second.token, first.token, third.token, asked, fourth.token]
    fourth.tell(0)
    fourth.restart()  # its second draw is lost with the path, and the new lease asks for another one
    issued.append(fourth.token)
    fourth.tell(0)
    set_clock(study, 110.0)
    lease(study, "five").give_back()  # ends the second one and its draw; its own is not made
    assert [line.issued for line in study.log()] == issued
    known = [event.kind for event in study.events()]
    kinds = {"lease given back", "path ended", "lease expired"}
    assert [kind for kind in known if kind in kinds] == [
        "lease given back", "path ended", "lease expired", "lease given back"
    ]  # fmt: skip
    study.restart("a")
    assert study.events()[-1].kind == "path ended"
    check_issues(study)
    check(study, {"a": 2, "b": 2}, RULE)


def test_paths_of_one_seed_are_found_alike_in_every_place(place):
    study = place.create({"a": 2, "b": 2}, policy=RULE)
    rng = random.Random(0)
    states = [rng.randrange(2) for _ in range(70)]
    study._keeper.settle = lambda: False  # whoever compares the paths notes only the first pair
    for name, seeds in (("b", 3), ("a", 2)):
        for _ in range(seeds):
            study.tell_many([(name, state) for state in states])
            study.restart(name)
        study.tell_many([(name, 1 - state) for state in states])
        study.restart(name)
        study.tell_many([(name, state) for state in states[:60]])
        study.restart(name)
    state = study._keeper.state()
    found = {(twins.chain, twins.first, twins.second, twins.length) for twins in state.twins}
    alike = {(1, 1, 2), (1, 1, 3), (0, 1, 2)}
    assert {twins for twins in found if twins[3] == 64} == {(*pair, 64) for pair in alike}
    assert {twins[:3] for twins in found} == alike | {(1, 1, 5), (0, 1, 4)}
    for chain, paths in zip(state.chains, (4, 5), strict=True):
        assert len(chain.prefixes) == 6
        assert sum(map(len, chain.prefixes.values())) == 3 * paths - 1
    study.audit()
