"""One seed in several workers breaks every bound: paths that repeat each other are named."""

import contextlib
import itertools
import json
import math
import random
from itertools import combinations, product

import numpy
import pytest
from rich.progress import Progress, TextColumn

import chainscout as cs
from chainscout.errors import FileError, InputError, RepeatedPathsWarning, StudyFinished
from chainscout.learning import _progress_bar
from chainscout.report import studies
from chainscout.report.study_data import StudyReport
from chainscout.report.study_page import study_page
from chainscout.study import StopReason, export, repetition
from chainscout.study.portrait import ending
from chainscout.study.views import EventKind

CHAIN = cs.MarkovChain([[0.6, 0.4, 0.0], [0.3, 0.3, 0.4], [0.5, 0.0, 0.5]])
QUESTION = "reach 2 from 0 within 3"


def walk(seed):
    """A user's own simulator."""
    rng, state = random.Random(seed), 0
    while True:
        yield state
        state = rng.choices(range(3), CHAIN.matrix[state].tolist())[0]


def driven(place, seeds, chain, steps=100):
    study = place.create({"a": chain})
    for number, seed in enumerate(seeds):
        worker, states = study.worker(f"worker {number}", renews=False), seed() if callable(seed) else walk(seed)
        for _ in range(steps):
            worker.lease().tell(next(states))
    return study


def test_workers_of_one_seed_are_named_beside_the_certificate(place):
    study = driven(place, (1, 2, 1), 3)
    (note,) = study.repeated_paths()
    assert "paths 1 and 3 of a begin with the same 64 states" in note
    assert note in study.certificate().notes
    assert note in study.answer("a", "reach 2 from 0 within 3").notes
    assert note.startswith("no bound holds: ")
    assert f"N{note[1:]}." in str(study)
    assert "every loss is at most" not in str(study)


def test_a_source_that_is_begun_again_with_its_seed_is_told(tmp_path):
    """The same program again, as after a crash: `learn` begins a new path, and the source repeats its first one."""
    where = tmp_path / "lab.db"
    cs.learn({"a": walk(1)}, 100, where=where, states={"a": 3}, progress=False).close()
    with pytest.warns(RepeatedPathsWarning, match="no bound holds: paths 1 and 2 of a begin with the same 64"):
        cs.learn({"a": walk(1)}, 200, where=where, states={"a": 3}, progress=False).close()


def spoilt():
    """A finished study: chain a was told one path twice, and chain b was not. Its target would have been reached."""
    study = cs.Study.create(None, {"a": 3, "b": 3}, 800, target_loss=1.0, questions="reach 2 from 0 within 3")
    for chain, seeds in (("a", (1, 1)), ("b", (2, 3))):
        for seed in seeds:
            study.tell_many([(chain, state) for state in itertools.islice(walk(seed), 200)])
            if not study.finished:
                study.restart(chain)
    assert study.stop_reason is StopReason.BUDGET
    return study


def said(tables):
    return "\n".join(str(part) for table in tables for part in (*table.rows, *table.notes))


SHOWN = {
    "certificate": lambda study: str(study.certificate()),
    "one line": lambda study: repr(study.certificate()),
    "in words": lambda study: study.certificate().in_words(),
    "notebook": lambda study: study.certificate()._repr_html_(),
    "print": str,
    "answer": lambda study: str(study.answer("a", "reach 2 from 0 within 4")),
    "registered answer": lambda study: str(study.answer("a", "reach 2 from 0 within 3")),
    "status": lambda study: said(studies.status(study)),
    "status of a chain": lambda study: said([studies.estimate(study, "a")]),
    "plan": lambda study: said([studies.plan(study, 0.001)]),
    "plan of answers": lambda study: said([studies.plan(study, target_width=0.001)]),
    "report": lambda study: study_page(study, "Study"),
    "page of a chain": lambda study: StudyReport(study, "").chain(0).words,
    "card": lambda study: StudyReport(study, "").cards()[0].words,
    "model": lambda study: export.content(study, "prism", chain="a").decode(),
}


@pytest.mark.parametrize("medium", SHOWN)
def test_no_medium_promises_a_bound_of_a_spoilt_study(medium):
    text = SHOWN[medium](spoilt())
    assert "no bound holds: paths 1 and 2 of a begin with the same 128 states" in text.replace("No bound", "no bound")
    for promise in ("With probability at least", "probability 0.9", "probability ≥", "is certified"):
        # On the report, the card of chain b still promises its own answer, with its share of δ.
        assert promise not in text.replace("wide with probability 0.975", "")


def test_a_spoilt_study_ends_without_a_certificate():
    study = spoilt()
    assert not study.certificate().guaranteed
    assert study.certificate().max == study.look().certificate().max == study.progress().certificate == math.inf
    assert study.certificate().largest_error() == math.inf
    assert all(line.certificate == math.inf for line in study.look().page()[1])
    for question in ("reach 2 from 0 within 3", "reach 2 from 0 within 4"):
        answer = study.answer("a", question)
        assert not answer.guaranteed
        assert answer.notes == study.repeated_paths("a")  # and nothing about when its bounds hold
    assert "with probability 0.95" in str(study.answer("b", "reach 2 from 0 within 4"))  # its paths differ
    assert study.repeated_paths("b") == ()
    words = "the budget is spent, but no bound holds"
    assert f"finished ({words})" in repr(study)
    assert ending(study) == f"The study has ended: {words}."
    report = StudyReport(study, "")
    assert report.overview().state_words == f"finished: {words}"
    assert report.events()[-1].detail == f"reason {words}"
    assert report.chain(1).sure == "but no bound holds"  # an interval holds for all chains at once, or is no promise
    with pytest.raises(StudyFinished, match=words):
        study.ask()


def test_a_registered_question_about_a_repeated_chain_is_not_answered():
    study = cs.Study.create(None, {"a": 3, "b": 3}, 800, target_width=0.9, questions=QUESTION)
    for chain, seeds in (("a", (1, 1)), ("b", (2, 3))):
        for seed in seeds:
            study.tell_many([(chain, state) for state in itertools.islice(walk(seed), 200)])
            if not study.finished:
                study.restart(chain)
    of_a, of_b = study.questions()
    assert (of_a.met, of_a.notes) == (False, study.repeated_paths("a"))
    assert of_b.met  # its paths differ
    assert not any("no bound holds" in note for note in of_b.notes)


def test_an_export_of_a_spoilt_study_has_no_certificate():
    document = json.loads(export.content(spoilt(), "json"))
    assert document["certificate"]["max"] is None
    assert any(note.startswith("no bound holds") for note in document["certificate"]["notes"])
    assert [chain["certificate"] for chain in document["chains"].values()] == [None, None]


def test_the_progress_bar_of_a_spoilt_study_shows_no_bound():
    with Progress(TextColumn("{task.fields[certificate]}"), disable=True) as shown:
        task = shown.add_task("", certificate="")
        _progress_bar._Bar(spoilt(), shown, task, 80).draw()
        assert shown.tasks[0].fields["certificate"] == "no bound holds"


@pytest.mark.parametrize("aim", [{"target_loss": 1e-6}, {"target_width": 1e-6}, {"limit": 0.4}, {"worst": "highest"}])
def test_a_study_whose_aim_cannot_be_reached_any_more_stops_unless_it_has_another_end(place, aim):
    study = place.create({"a": 3, "b": 3}, questions=None if "target_loss" in aim else QUESTION, **aim)
    study.tell_many([("a", state) for state in itertools.islice(walk(1), 40)])
    study.restart("a")
    for state in itertools.islice(walk(1), 40):
        study.tell("a", state)
        if study.finished:
            break
    assert (study.stop_reason, study.progress().observations) == (StopReason.REPEATED, 40 + 32)
    repeated, finished = study.events()[-2:]
    assert (repeated.kind, repeated.detail) == (EventKind.REPEATED, {"path": 2, "repeats": 1, "states": 32})
    assert finished.kind is EventKind.FINISHED
    study = place.reopen(study)
    words = r"\(paths repeat each other, so no bound can hold\); extend it with a budget or a deadline to go on"
    with pytest.raises(StudyFinished, match=words):
        study.ask()
    if "target_loss" in aim:
        study.extend(target_loss=1.0)
        assert study.stop_reason is StopReason.REPEATED
    study.extend(budget=500)
    assert study.ask() in ("a", "b")
    study.audit()


AIMS = {
    StopReason.TARGET_LOSS: {"target_loss": 1.0},
    StopReason.TARGET_WIDTH: {"target_width": 0.9, "questions": QUESTION},
    StopReason.LIMIT: {"limit": 0.01, "questions": QUESTION},
    StopReason.WORST: {"worst": "highest", "questions": QUESTION},
}


@pytest.mark.parametrize("reason", AIMS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_spoilt_study_goes_on_where_another_one_has_reached_its_aim(place, reason, seed):
    study = place.create({"a": 3, "b": 3}, 5000, **AIMS[reason])
    for number in (1, seed):
        study.tell_many([("a", state) for state in itertools.islice(walk(number), 400)])
        study.restart("a")
    circle = itertools.cycle((0, 2, 1))  # chain b is always in state 2 in the end
    while not study.finished:
        study.tell_many([("b", next(circle)) for _ in range(100)])
    assert study.stop_reason is (reason if seed == 2 else StopReason.BUDGET)


def test_a_study_that_stopped_by_its_target_before_its_paths_repeated_promises_nothing(place):
    """Leases may be told after the end."""
    study = place.create({"a": 3}, target_loss=1.0, certificate="mixture")
    held = [study.worker(f"worker {number}", renews=False).lease(steps=1000) for number in range(2)]
    for state in itertools.islice(walk(1), 1000):
        held[0].tell(state)
    assert study.stop_reason is StopReason.TARGET_LOSS
    for state in itertools.islice(walk(1), 64):
        held[1].tell(state)
    words = "the target loss was reached, but no bound holds"
    assert study.repeated_paths()
    assert ending(study) == f"The study has ended: {words}."
    assert StudyReport(study, "").events()[-2].detail == f"reason {words}"


def has_unlikely_pair(study, lease):
    """Whether the path that was told last begins as another one of its chain does, and that is unlikely."""
    if lease.step - 1 not in repetition.CHECKPOINTS:
        return False
    paths = {}
    for line in study.log(lease.chain):
        paths.setdefault(line.path, []).append(line.state)
    own = paths.pop(lease.path)
    alike = [number for number, states in paths.items() if states[: len(own)] == own]
    if not alike:
        return False
    needed = repetition.needed_surprise(3, max(min(alike), lease.path))
    return repetition.surprise(iter(own)) >= needed


@pytest.mark.parametrize("seed", range(3))
def test_a_study_is_spoilt_from_the_observation_on_at_which_a_search_finds_it(place, seed):
    """Paths of many lengths, told in turn, of a chain that is dense, sticky or still."""
    rng = random.Random(seed)
    study = place.create({"a": 3, "b": 3, "c": 3}, paths="own")
    laws = {"a": CHAIN.matrix, "b": [[0.9, 0.1, 0], [0.1, 0.9, 0], [0, 0, 1]], "c": numpy.eye(3)}
    same = {name: states_of(numpy.array(law), 600, numpy.random.default_rng(seed)) for name, law in laws.items()}
    walks = []
    for number, name in enumerate("abc" * 3):
        own = states_of(numpy.array(laws[name]), 600, numpy.random.default_rng((seed, number)))
        states = same[name] if number >= 3 and rng.random() < 0.4 else own
        lease = study.worker(f"worker {number}", renews=False).lease(steps=600, without=set("abc") - {name})
        walks.append((lease, iter(states)))
    was_spoilt, found = set(), False
    for _ in range(1500):
        lease, states = rng.choice(walks)
        with contextlib.suppress(StopIteration):
            lease.tell(next(states))
        found = found or has_unlikely_pair(study, lease)
        assert study.progress().spoilt == found == bool(study.repeated_paths())
        was_spoilt.add(found)
    study.audit()
    assert was_spoilt == {False, True}


def test_an_audit_finds_a_study_that_says_wrongly_whether_its_paths_repeat():
    study = spoilt()
    study.audit()
    study._keeper.state().repeated.clear()
    with pytest.raises(FileError, match="what this process knows of it is not what its entries say"):
        study.audit()


def test_an_answer_is_doubted_however_many_pairs_other_chains_have(place):
    study, same = place.create({"a": 3, "b": 3}), list(itertools.islice(walk(1), 64))
    for chain, number in (("a", repetition.MOST_NAMED + 2), ("b", 2)):
        for _ in range(number):
            study.tell_many([(chain, state) for state in same])
            study.restart(chain)
    assert not any("of b" in note for note in study.repeated_paths())
    assert "paths 1 and 2 of b" in study.answer("b", "reach 2 from 0 within 3").notes[0]


def test_workers_of_different_seeds_are_not(place):
    assert driven(place, range(5), 3).repeated_paths() == ()


def test_a_chain_that_hardly_ever_moves_repeats_itself_by_chance(place):
    study = driven(place, [lambda: iter([0] * 1000)] * 3, 3)
    assert study.repeated_paths() == ()


def test_pairs_that_are_likely_hide_no_other(place):
    """Thirty pairs of a chain that hardly ever moves come before the one that matters."""
    study = place.create({"a": 3, "b": 3})
    for number in range(30):
        held = study.worker(f"still {number}", renews=False).lease(steps=64, without={"b"})
        for _ in range(64):
            held.tell(0)
    for number in range(2):
        held, states = study.worker(f"seeded {number}", renews=False).lease(steps=64, without={"a"}), walk(1)
        for _ in range(64):
            held.tell(next(states))
    (note,) = study.repeated_paths()
    assert "paths 1 and 2 of b" in note


def test_simulated_chains_have_a_stream_for_every_path(place):
    study = place.create({"a": 3})
    for number in range(4):
        source = cs.simulated({"a": CHAIN}, seed=7)["a"]
        worker = study.worker(f"worker {number}", renews=False)
        lease = worker.lease(steps=200)
        source.resume(cs.sources.Place(lease.path, lease.step, lease.state))
        for _ in range(200):
            lease.tell(source.advance()[0])
    assert study.repeated_paths() == ()
    counts = study.counts("a")
    assert counts.paths == 4
    estimate = study.estimate("a").matrix
    assert estimate == pytest.approx(CHAIN.matrix, abs=0.15)  # 800 steps, at least 200 exits a row: 4 standard errors


# -- laws of every kind, and paths of every length

CIRCLE = numpy.roll(numpy.eye(100), 1, axis=1)
LAWS = {
    "dense": CHAIN.matrix,
    "many states": numpy.full((150, 150), 1 / 150),
    "sticky": numpy.array([[0.99, 0.01], [0.01, 0.99]]),
    "very sticky": numpy.array([[0.999, 0.001], [0.002, 0.998]]),
    "nearly a circle": 0.99 * CIRCLE + 0.01 / 100,
    "circle": CIRCLE,
    "still": numpy.eye(3),
}
#: After how many states two workers of one seed are noticed.
LENGTHS = {"dense": 64, "many states": 128, "sticky": 1024, "very sticky": 8192, "nearly a circle": 1024}


def states_of(law, length, rng):
    """The states of one path from state 0."""
    edges = numpy.cumsum(law, axis=1)
    state, found = 0, []
    for draw in rng.random(length):
        found.append(state)
        state = min(int(numpy.searchsorted(edges[state], draw, side="right")), len(law) - 1)
    return found


def told(study, *paths):
    """A study of one chain after these paths, one after another."""
    for states in paths:
        study.tell_many([("a", state) for state in states])
        study.restart("a")
    return study


@pytest.mark.parametrize("law", LENGTHS)
def test_one_seed_is_noticed_whatever_the_law_is(law):
    for seed in range(5):
        one, other = (numpy.random.default_rng((seed, k)) for k in range(2))
        same = states_of(LAWS[law], LENGTHS[law], one)
        study = told(cs.Study.create(None, {"a": len(LAWS[law])}), same, states_of(LAWS[law], 100, other), same)
        (note,) = study.repeated_paths()
        assert f"paths 1 and 3 of a begin with the same {LENGTHS[law]} states" in note


@pytest.mark.parametrize("law", LAWS)
def test_independent_paths_are_not_named(law):
    """Five paths for each of 20 seeds: 200 pairs, which chance names with probability 2e-5 at most."""
    begun_alike = 0
    for seed in range(20):
        rng = numpy.random.default_rng(seed)
        paths = [states_of(LAWS[law], 300, rng) for _ in range(5)]
        study = told(cs.Study.create(None, {"a": len(LAWS[law])}, certificate="mixture"), *paths)
        assert study.repeated_paths() == ()
        begun_alike += any(one[:16] == other[:16] for one, other in combinations(paths, 2))
    assert (begun_alike > 10) == (law not in ("dense", "many states"))  # or the test says nothing


def test_what_is_needed_is_never_found_by_chance_whatever_the_law_is():
    """Σ P(w)² over the words of 14 states that are unlikely enough, exactly, for laws from even to nearly certain."""
    words = numpy.array(list(product((0, 1), repeat=14)))
    found = numpy.array([repetition.surprise(iter(word)) for word in words.tolist()])
    before, after = words[:, :-1], words[:, 1:]
    for change, change_back in product((0.5, 0.3, 0.1, 0.03, 0.01, 0.001), repeat=2):
        leave = numpy.where(before == 0, change, change_back)
        chances = numpy.where(before != after, leave, 1 - leave).prod(axis=1)
        chances[words[:, 0] == 1] = 0.0  # all begin in state 0
        assert chances.sum() == pytest.approx(1.0)
        assert (chances <= numpy.exp(-found) * (1 + 1e-12)).all()  # no law makes a word more likely than that
        for nats in (1.0, 3.0, 6.0, 9.0):
            assert (chances[found >= nats] ** 2).sum() <= math.exp(-nats)


def test_the_chances_of_all_pairs_are_one_in_a_million_together():
    for chains in (1, 7):
        alone = sum((j - 1) * math.exp(-repetition.needed_surprise(chains, j)) for j in range(2, 200_000))
        assert chains * alone == pytest.approx(1e-6, rel=1e-5)


def test_the_surprise_is_that_of_the_best_law():
    states = states_of(CHAIN.matrix, 500, numpy.random.default_rng(1))
    counts = numpy.zeros((3, 3))
    numpy.add.at(counts, (states[:-1], states[1:]), 1)
    best = counts / counts.sum(axis=1, keepdims=True)
    expected = -sum(n * math.log(p) for n, p in zip(counts.flat, best.flat, strict=True) if n)
    assert repetition.surprise(iter(states)) == pytest.approx(expected, rel=1e-12)
    enough = repetition.surprise(iter(states), 20.0)
    assert 20.0 <= enough < 20.0 + math.log(500) + 1


def test_what_is_needed_to_be_named_is_what_is_documented(place):
    """A pair that is unlikely enough in a study of one chain, and not in one of two chains: ε is 1e-6 / (2·K)."""
    rng = numpy.random.default_rng(0)
    least, most = (math.log(2 * chains / 1e-6) for chains in (1, 2))
    candidates = (states_of(CHAIN.matrix, 33, rng) for _ in itertools.count())
    same = next(states for states in candidates if least < repetition.surprise(iter(states[:32])) < most)
    (note,) = told(place.create({"a": 3}), same, same).repeated_paths()
    assert "paths 1 and 2 of a begin with the same 32 states" in note
    assert told(place.create({"a": 3, "b": 3}), same, same).repeated_paths() == ()
    # A third path needs more: ε is 1e-6 / 12.
    rng = numpy.random.default_rng(1)
    other = states_of(CHAIN.matrix, 33, rng)
    assert told(place.create({"a": 3}), same, other, same).repeated_paths() == ()


def test_paths_of_fewer_than_64_states_are_noticed(place):
    same = states_of(CHAIN.matrix, 40, numpy.random.default_rng(5))
    study = told(place.create({"a": 3, "b": 3}), same, same[:39])
    (note,) = study.repeated_paths()
    assert "paths 1 and 2 of a begin with the same 32 states" in note
    assert note in study.certificate().notes
    study = place.reopen(study)
    assert study.repeated_paths() == (note,)
    study.audit()


def test_what_is_not_told_is_not_kept(place):
    """A batch that fails at its end has kept no prefix."""
    study = place.create({"a": 2})
    with pytest.raises(InputError):
        study.tell_many([("a", t % 2) for t in range(20)] + [("a", 2)])
    study.tell_many([("a", 0)] * 20)
    (chain,) = study._keeper.state().chains
    assert [length for length, _ in chain.prefixes] == [16]
    study.audit()
