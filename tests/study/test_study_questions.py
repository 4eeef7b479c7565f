"""Registered questions: kept up to date exactly, and stopped by (MATH §11)."""

import math
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from study_places import set_clock

import chainscout as cs
from chainscout.errors import ChainscoutError, FileError, InputError, PolicyWarning, StudyFinished
from chainscout.study import StopReason
from chainscout.study.aim import contenders
from chainscout.study.questions import Asked, Registered, shares
from chainscout.study.snapshot import packed_state, unpacked_state
from chainscout.study.state import State

MATRIX = np.array([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.4, 0.0, 0.6]])
QUESTIONS = [
    "reach 2 from 0 within 4",
    "reach 2 before 1 from 0 ever",
    "cost 1=1, 2=3 from 0=0.5, 1=0.5 over 5 steps",
    "cost 2=1 discounted 0.7 given starts alike",
    "time to 2 from 0",
    "share of 2 anchor 0",
]


def one_pass(study, line):
    """The answer to a registered question from the whole log."""
    return cs.answer(study.paths(line.chain), line.question, delta=line.delta, asked=0)


def check(study):
    for line in study.questions():
        found = study.answer(line.chain, line.question)
        try:
            expected = one_pass(study, line)
        except InputError as error:  # there is no bound, and a running study says so beside what is always true
            expected = replace(found, estimate=None, notes=(str(error),))
        assert found == expected


def step(rng, state):
    return int(rng.choice(3, p=MATRIX[state]))


class Crew:
    """Workers, a program that tells plainly, and what goes wrong with them."""

    def __init__(self, study, seed, plain=False):
        self.study, self.plain = study, plain
        self.rng = np.random.default_rng(seed)
        self.workers = [study.worker(f"w{number}", renews=False) for number in range(3)]
        self.held = []
        self.clock = 1000.0

    def act(self):
        """One thing that happens: a lease, a value, a loss, a restart, a plain tell."""
        study, rng = self.study, self.rng
        dice = rng.random()
        if dice < 0.35 and len(self.held) < 3:
            worker = self.workers[rng.integers(3)]
            lease = next(iter([lease for lease in self.held if lease._worker is worker]), None)
            if lease is None:
                self.held.append(worker.lease(100.0, steps=int(rng.integers(1, 4)), wait=0))
        elif dice < 0.88 and self.held:
            lease = self.held[rng.integers(len(self.held))]
            lease.tell(int(rng.integers(3)) if lease.state is None else step(rng, lease.state))
            if not lease.steps:
                self.held.remove(lease)
        elif dice < 0.91 and self.held:
            self.held.pop(rng.integers(len(self.held))).give_back()
        elif dice < 0.93 and self.held:
            self.held.pop(rng.integers(len(self.held))).abandon()
        elif dice < 0.96 and self.held:
            self.held[rng.integers(len(self.held))].restart()
        elif dice < 0.98 and self.held:
            self.clock += 200.0  # all leases run out
            set_clock(study, self.clock)
            self.held.clear()
        elif self.plain and not self.held:
            study.tell("a", int(rng.integers(3)), begin=bool(rng.random() < 0.5))


@pytest.mark.parametrize("seed", range(4))
def test_replays_that_go_on_say_what_one_pass_says(seed):
    """Whoever is slow, whatever is lost: at every moment to the bit."""
    study = cs.Study.create(None, {"a": 3}, questions=QUESTIONS)
    set_clock(study, 1000.0)
    crew = Crew(study, seed, plain=seed == 3)
    for _ in range(12):
        for _ in range(int(crew.rng.integers(1, 60))):
            crew.act()
        check(study)
    assert study.paths("a").lost > 3


def test_a_lost_draw_left_the_state_that_its_path_was_in_then():
    """Their workers go on before anybody looks: what was lost are draws out of 0 and not out of 2.

    Three of them have any value. The fourth ends its row, and the answer names it.
    """
    study = cs.Study.create(None, {"a": 3}, questions=QUESTIONS[0])
    workers = [study.worker(f"w{number}", renews=False) for number in range(5)]
    for worker in workers:
        worker.lease().tell(0)
    leases = [worker.lease() for worker in workers]
    leases[-1].tell(1)
    for number, lease in enumerate(leases[:-1]):
        lease.abandon()
        for state in (2, 1, 0, 1):
            workers[number].lease().tell(state)
        check(study)
    found = study.answer("a", QUESTIONS[0])
    assert f"the replay stands still at an exit of 0: its draw {leases[3].token} was lost" in found.notes[0]
    assert "3 draws were lost: the bounds hold whatever the lost states were" in found.notes


def test_plain_tells_and_paths_that_are_left(place):
    study = place.create({"a": 3}, questions=QUESTIONS[:2])
    rng = np.random.default_rng(0)
    for round_ in range(6):
        state = 0
        study.tell("a", state, begin=round_ % 2 == 0)
        for _ in range(int(rng.integers(3, 30))):
            state = step(rng, state)
            study.tell("a", state)
        check(study)
        study = place.reopen(study, continuing=False)
    assert all(line.episodes > 0 for line in study.questions())


def test_plain_tells_side_by_side_are_answered_in_the_order_of_issue():
    """The draw of a path is issued by the tell before it on this path, whatever else is told between."""
    study = cs.Study.create(None, {"a": 3}, questions=[QUESTIONS[0], QUESTIONS[3]])
    rng = np.random.default_rng(0)
    states = [0, 0]
    for number in range(1, 60):
        for path in (1, 2):
            study.tell("a", states[path - 1], path=path, step=number)
            states[path - 1] = step(rng, states[path - 1])
    check(study)
    reach, cost = study.questions()
    assert reach.episodes > 10
    assert cost.notes[0].startswith("the replay waits for the start of a path")


def test_open_states(place):
    study = place.create({"a": []}, open_states=True, questions=["reach up from 5 within 3", "time to up from low"])
    rng = np.random.default_rng(0)
    labels = ["low", "up", 5]
    state = 0
    for number in range(120):
        study.tell("a", labels[state])
        if number % 9 == 0:
            check(study)
        state = step(rng, state)
    study = place.reopen(study)
    check(study)
    assert study.questions()[0].episodes > 0
    assert study.questions()[1].upper == math.inf
    assert "declared complete" in study.questions()[1].notes[0]


def run(study, seed=0, most=10**6, chains=None):
    """Tells until the study is finished; each chain's values depend on the seed alone."""
    streams = {name: np.random.default_rng([seed, k]) for k, name in enumerate(study.names)}
    matrices = chains or dict.fromkeys(study.names, MATRIX)
    last = dict.fromkeys(study.names, 0)
    for _ in range(most):
        if study.finished:
            break
        name = study.ask()
        size = len(matrices[name])
        study.tell(name, last[name])
        last[name] = int(streams[name].choice(size, p=matrices[name][last[name]]))
    return study


def test_a_study_stops_when_every_answer_is_narrow_enough(place):
    study = place.create({"a": 3, "b": 3}, questions=QUESTIONS[0], target_width=0.5)
    run(study)
    assert study.stop_reason is StopReason.TARGET_WIDTH
    assert all(line.met and line.width <= 0.5 and line.delta == 0.025 for line in study.questions())
    assert study.progress().unmet == 0
    for line in study.questions():
        assert (line.lower, line.upper) == (one_pass(study, line).lower, one_pass(study, line).upper)
    with pytest.raises(StudyFinished, match=r"every answer has the target width.*a smaller target width"):
        study.ask()
    before = study.progress().observations
    study.extend(target_width=0.45)
    assert not study.finished
    study = run(place.reopen(study), seed=1)
    assert study.stop_reason is StopReason.TARGET_WIDTH
    assert study.progress().observations > before


def test_a_study_that_is_opened_anew_stops_at_the_same_observation_with_the_same_answers(place):
    def created():
        return place.create({"a": 3, "b": 3}, questions=QUESTIONS[:1], target_width=0.6)

    whole = run(created())
    parts = created()
    streams = {name: np.random.default_rng([0, k]) for k, name in enumerate(parts.names)}
    last = dict.fromkeys(parts.names, 0)
    while not parts.finished:
        for _ in range(97):
            if parts.finished:
                break
            name = parts.ask()
            parts.tell(name, last[name])
            last[name] = int(streams[name].choice(3, p=MATRIX[last[name]]))
        parts = place.reopen(parts)
    assert parts.allocation() == whole.allocation()
    assert parts.questions() == whole.questions()
    assert [line.chain for line in parts.log()] == [line.chain for line in whole.log()]


def test_two_programs_at_one_study_catch_up_with_each_other(folder):
    where = folder / "lab.db"
    one = cs.Study.create(where, {"a": 3}, questions=QUESTIONS[:3])
    two = cs.Study.open(where)
    rng = np.random.default_rng(0)
    leases = [study.worker(name, renews=False).lease(steps=150) for study, name in ((one, "x"), (two, "y"))]
    for _ in range(280):
        lease = leases[rng.integers(2)]
        if lease.steps:
            lease.tell(0 if lease.state is None else step(rng, lease.state))
    for study in (one, two):
        check(study)
    assert one.questions() == two.questions()
    one.close()
    two.close()


def fails(study, patch, *batch):
    """The batch is not stored, because the disk is full."""

    def full(*_):
        raise RuntimeError("the disk is full")

    with patch.context() as broken:
        broken.setattr(study._keeper.journal, "append", full)
        with pytest.raises(RuntimeError):
            study.tell_many(batch)


def test_what_a_failed_append_showed_is_not_remembered(folder, monkeypatch):
    study = cs.Study.create(folder / "lab.db", {"a": 3}, questions=QUESTIONS[:1])
    rng = np.random.default_rng(0)
    state = 0
    for number in range(200):
        if number % 9 == 5:
            fails(study, monkeypatch, *(("a", int(x)) for x in rng.integers(0, 3, 12)))
        study.tell("a", state)
        state = step(rng, state)
    check(study)
    study.close()


def test_the_audit_looks_at_answers(folder):
    """They are entries, and an entry that was edited or removed is found by its number."""
    study = run(cs.Study.create(folder / "lab.db", {"a": 3}, questions=QUESTIONS[:2]), most=120)
    study.audit()
    number = study.look().answers(2)[-1].number
    study.close()
    for statement in ("UPDATE journal SET more = replace(more, '\"upper\":', '\"upper\":0.0') WHERE number = ?",
                      "DELETE FROM journal WHERE number = ?"):  # fmt: skip
        shutil.copy(folder / "lab.db", folder / "copy.db")
        with closing(sqlite3.connect(folder / "copy.db")) as connection, connection:
            assert connection.execute(statement, (number,)).rowcount == 1
        with pytest.raises(FileError, match=f"entry {number}"):
            cs.Study.open(folder / "copy.db").audit()


def test_a_limit_is_decided(place):
    loaded = {"low": np.array([[0.95, 0.05], [0.5, 0.5]]), "high": np.array([[0.4, 0.6], [0.5, 0.5]])}
    study = place.create({"low": 2, "high": 2}, questions="reach 1 from 0 within 1", limit=0.3)
    run(study, chains=loaded)
    assert study.stop_reason is StopReason.LIMIT
    low, high = study.questions()
    assert low.upper < 0.3 <= high.lower


def test_the_worst_chain_is_found(folder):
    loaded = {f"c{k}": np.array([[1 - p, p], [0.5, 0.5]]) for k, p in enumerate((0.1, 0.7, 0.2))}
    for worst, who in (("highest", {"c1"}), ("lowest", {"c0", "c2"})):
        where = None if worst == "lowest" else folder / "lab.db"
        study = cs.Study.create(where, dict.fromkeys(loaded, 2), 9000, questions="reach 1 from 0 within 1", worst=worst)
        run(study, chains=loaded)
        assert study.stop_reason is StopReason.WORST
        left = {line.chain for line in study.questions() if not line.met}
        assert left <= who
        assert len(left) == 1
    told = study.allocation()
    assert told["c1"] < told["c0"]  # what is known not to be the worst is left alone


@pytest.mark.parametrize("aim", [{}, {"target_width": 0.5}, {"limit": 0.3}, {"worst": "highest"}, {"target_loss": 0.1}])
def test_ratio_met_and_done_follow_from_the_entries(aim):
    """Folded whole, or from a snapshot at any place: the state is that of the open study, and the questions too."""
    study = cs.Study.create(None, {"a": 3, "b": 3}, 900, questions=QUESTIONS[0], **aim)
    run(study)
    entries = [entry for page in study._keeper.pages() for entry in page]
    expected = packed_state(study._keeper.state())
    for until in (*range(1, len(entries), 61), len(entries)):
        part = State(study.policy)
        part.apply(entries[:until])
        again = unpacked_state(packed_state(part), study.policy)
        again.apply(entries[until:])
        assert packed_state(again) == expected


def test_contenders_are_those_that_no_other_one_is_known_to_exceed():
    def known(worst, *ends):
        asked = [Asked(number, Registered(number, "", 0.1, *pair)) for number, pair in enumerate(ends)]
        return {one.number for one in contenders(asked, worst)}

    assert known("highest", (0.1, 0.2), (0.2, 0.5), (0.3, 0.4)) == {1, 2}
    assert known("lowest", (0.1, 0.2), (0.2, 0.5), (0.3, 0.4)) == {0, 1}
    assert known("highest", (0.1, 0.2), (0.3, 0.5)) == {1}


def test_delta_is_shared():
    assert shares(0.05, 1, 1) == [0.05]
    assert shares(0.06, 2, 3) == pytest.approx([0.015, 0.005, 0.01])
    for number in range(1, 9):
        assert sum(shares(0.1, 5, number)) == pytest.approx(0.02)
    study = cs.Study.create(None, {"a": 3, "b": 3, "c": 3}, questions={"a": QUESTIONS[:2], "c": [QUESTIONS[0]]})
    assert [line.delta for line in study.questions()] == [0.0125, 0.0125, 0.025]
    assert sum(line.delta for line in study.questions()) == 0.05


def test_without_an_aim_answers_are_computed_when_a_chain_has_grown_by_a_quarter():
    study = cs.Study.create(None, {"a": 3}, questions=QUESTIONS[0])
    looks = set()
    rng, state = np.random.default_rng(0), 0
    for _ in range(1600):
        study.tell("a", state)
        state = step(rng, state)
        looks.add(study.questions()[0].transitions)
    found = sorted(looks)
    assert all(after == max(before + 1, math.ceil(1.25 * before)) for before, after in pairwise(found[1:]))


def test_the_rest_is_answered_when_a_chain_is_set_aside(place):
    study = place.create({"a": 3, "b": 3}, questions=QUESTIONS[0], target_width=0.6)
    rng, state = np.random.default_rng(0), 0
    for _ in range(600):
        study.tell("a", state)
        state = step(rng, state)
    assert not study.finished
    study.set_aside("b", "its rig is broken")
    assert study.stop_reason is StopReason.TARGET_WIDTH_OF_THE_REST
    study.take_up("b")
    assert not study.finished


def test_a_chain_whose_paths_never_come_to_the_awaited_state_is_set_aside_and_named():
    """It would take the whole budget, because its width stays infinite."""
    study = cs.Study.create(None, {"a": 3, "b": 3}, questions="time to 2 from 0", target_width=9.0)
    rng, state = np.random.default_rng(0), 0
    for _ in range(9000):
        if study.finished or study.chain("b").aside:
            break
        if study.ask() == "b":  # its paths begin in 1 and never leave 1 for 0
            study.tell("b", 1, begin=True)
            study.tell("b", 1)
        else:
            study.tell("a", state)
            state = step(rng, state)
    assert study.chain("b").aside
    reason = next(event.detail["reason"] for event in study.events() if event.kind == "set aside")
    assert reason == "a question waits for an exit of 0, and the last 1,023 transitions brought none"
    assert not study.chain("a").aside
    run_on = np.random.default_rng(1)
    while not study.finished:
        study.tell("a", state)
        state = step(run_on, state)
    assert study.stop_reason is StopReason.TARGET_WIDTH_OF_THE_REST


def test_the_furthest_goes_first_and_what_is_narrow_enough_is_left_alone():
    """The predicted ratio decides: the squared width over the squared target, of the last look, times T_look/T."""
    asked = {"a": QUESTIONS[1], "b": QUESTIONS[0], "c": "reach 1 from 0 within 1"}
    study = cs.Study.create(None, dict.fromkeys("abc", 3), questions=asked, target_width=0.25)
    assert study.policy.name == "furthest"
    streams = [np.random.default_rng([5, k]) for k in range(3)]
    last = [0, 0, 0]
    last_of_done: dict[str, int] = {}
    while not study.finished:
        chosen = study.ask()
        lines = {line.chain: line for line in study.questions()}
        transitions = {name: study.chain(name).transitions for name in "abc"}
        done = {name for name, line in lines.items() if line.met}
        assert chosen not in done
        assert all(last_of_done.setdefault(name, transitions[name]) == transitions[name] for name in done)
        if min(transitions.values()) > 0:
            ratios = {
                name: (lines[name].width / 0.25) ** 2 * lines[name].transitions / transitions[name]
                for name in "abc"
                if name not in done
            }
            assert ratios[chosen] >= max(ratios.values()) * (1 - 1e-12)
        place = "abc".index(chosen)
        study.tell(chosen, last[place])
        last[place] = step(streams[place], last[place])
    assert study.stop_reason is StopReason.TARGET_WIDTH


@pytest.mark.filterwarnings("ignore::chainscout.errors.MixedUnitsWarning")
def test_an_infinite_width_counts_as_the_largest_finite_one():
    """It takes turns with the chain that is furthest: 'a' may be in a trap for ever, and would take all."""
    study = cs.Study.create(None, {"a": 3, "b": 3, "c": 3}, target_width=0.01,
                            questions={"a": "time to 2 from 0", "b": QUESTIONS[0], "c": QUESTIONS[0]})  # fmt: skip
    streams = [np.random.default_rng([5, k]) for k in range(3)]
    last = [0, 0, 0]
    compared = 0
    for _ in range(600):
        chosen = study.ask()
        lines = {line.chain: line for line in study.questions()}
        told = {name: study.chain(name).transitions for name in "abc"}
        if min(told.values()) > 0 and math.isinf(lines["a"].width):
            finite = [name for name in "bc" if math.isfinite(lines[name].width)]
            ratio = {name: lines[name].width ** 2 * lines[name].transitions / told[name] for name in finite}
            leader = max(finite, key=ratio.__getitem__)
            assert chosen == min(("a", leader), key=lambda name: (told[name], name))
            compared += 1
        place = "abc".index(chosen)
        study.tell(chosen, last[place])
        last[place] = 1 if chosen == "a" else step(streams[place], last[place])
    assert compared > 50


def test_pending_observations_make_a_width_smaller():
    study = cs.Study.create(None, {"a": 3, "b": 3}, questions=QUESTIONS[0], target_width=0.01)
    run(study, most=600)
    planned = study.ask(2000)
    assert min(planned.count("a"), planned.count("b")) > 700  # not all of them to the one that is widest now


def test_a_batch_has_no_more_than_the_aim_is_expected_to_need():
    study = cs.Study.create(None, {"a": 3, "b": 3}, questions=QUESTIONS[0], target_width=0.3)
    run(study, most=400)
    expected = {name: (line.width / 0.3) ** 2 * line.transitions for line in study.questions() if (name := line.chain)}
    planned = study.ask(100_000)
    assert len(planned) < 100_000
    for name, enough in expected.items():
        assert study.chain(name).transitions + planned.count(name) == math.ceil(enough)


@pytest.mark.parametrize("policy", ["scout", "uniform"])
def test_a_rule_that_does_not_look_at_the_aim_says_so_once(policy):
    with pytest.warns(
        PolicyWarning, match="chooses chains by their counts, and not by how far their answers are"
    ) as one:
        study = cs.Study.create(None, {"a": 3, "b": 3}, questions=QUESTIONS[0], target_width=0.5, policy=policy)
    assert len(one) == 1
    run(study)
    assert study.stop_reason is StopReason.TARGET_WIDTH


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"questions": {"x": "reach 1 from 0 ever"}}, r"questions names chains that the study does not have: \['x'\]"),
        ({"questions": {"a": 5}}, "the questions of chain 'a' must be a question, a line or a list of them, not 5"),
        ({"questions": {"a": [5]}}, "a question must be a Reach, PassageTime, Cost or LongRunShare, or a line of text"),
        ({"questions": "reach 1 frm 0"}, "not 'frm' .did you mean from.. at character 9"),
        ({"questions": "reach 7 from 0 ever"}, "cannot be put to chain 'a': unknown state 7"),
        ({"questions": ["share of 1", "share of 1"]}, "a question of chain 'a' is given twice"),
        ({"target_width": 0.1}, "target_width is about the answers to questions, and the study has none"),
        ({"limit": 0.1}, "limit is about the answers to questions, and the study has none"),
        ({"policy": "furthest"}, "advances the chain that is furthest from a target, and the study has none"),
        ({"questions": "share of 1", "target_width": 0.0}, "target_width .how wide every answer may be"),
        ({"questions": "share of 1", "target_width": 1, "limit": 1}, "one thing, and target_width and limit are given"),
        ({"questions": "share of 1", "target_loss": 1, "limit": 1}, "one thing, and target_loss and limit are given"),
        ({"questions": "share of 1", "worst": "best"}, "worst must be one of"),
        ({"questions": {"a": "share of 1"}, "worst": "lowest"}, "at least two of them must have one question each"),
    ],
)  # fmt: skip
def test_bad_questions_get_a_sentence(options, message):
    with pytest.raises(InputError, match=message):
        cs.Study.create(None, {"a": 2, "b": 2}, **options)


def test_an_aim_of_another_kind_is_refused():
    plain = cs.Study.create(None, {"a": 2})
    with pytest.raises(InputError, match="target_width is about the answers to questions"):
        plain.extend(target_width=0.1)
    asked = cs.Study.create(None, {"a": 2}, questions="share of 1", target_width=0.1)
    with pytest.raises(InputError, match="a study aims at one thing"):
        asked.extend(target_loss=0.1)
    with pytest.raises(ChainscoutError, match="a study aims at one thing"):
        cs.Study.create(None, {"a": 2}, questions="share of 1", target_loss=0.1).extend(target_width=0.1)


def test_an_experiment_has_no_questions():
    with pytest.raises(
        InputError, match="the policy 'furthest' advances the chain that is furthest from a study's target"
    ):
        cs.compare(cs.problems.get("two-state"), policies=["furthest"], budgets=[20], replications=2)


@pytest.mark.parametrize("question", [QUESTIONS[place] for place in (0, 1, 4, 5)])
def test_three_kills_hardly_widen_an_answer(question):
    """What was under way is lost, and everything else is read."""

    def learned(kills):
        study = cs.Study.create(None, {"a": 3}, questions=question)
        rng, lease = np.random.default_rng(3), None
        for number in range(3_000):
            if lease is None or not lease.steps:
                lease = study.worker(f"w{number}", renews=False).lease(steps=100 if number in kills else 1_000)
            lease.tell(0 if lease.state is None else step(rng, lease.state))
            if number in kills:
                lease.abandon()
                lease = None
        return study.answer("a", question)

    whole, killed = learned(()), learned((200, 700, 1_500))
    assert "3 draws were lost: the bounds hold whatever the lost states were" in killed.notes
    assert killed.episodes > 0.97 * whole.episodes
    assert killed.width <= 1.1 * whole.width


@pytest.mark.parametrize("lost", [3, 4])
def test_a_row_that_is_blocked_for_ever_takes_no_budget(lost):
    """Three lost draws may have any value. No answer can go past a fourth one of its row, and the rest goes on."""
    rng, matrix = random.Random(0), [[0.7, 0.3], [0.5, 0.5]]
    study = cs.Study.create(None, {"a": 2, "b": 2}, questions=cs.Reach([1], start=0, within=1), target_width=0.2)
    worker, told, dead = study.worker("one", renews=False), 0, []
    while not study.finished:
        assert told < 5_000, "the chain that cannot be answered takes everything"
        lease = worker.lease(steps=1)
        state = rng.choices((0, 1), [1, 0] if lease.state is None else matrix[lease.state])[0]
        if len(dead) < lost and told >= 100 * (len(dead) + 1):
            dead.append(study.worker(f"dead {told}", renews=False).lease(steps=2, chain="a"))
            dead[-1].tell(0)
        lease.tell(state)
        told += 1
        if dead and told == 100 * len(dead) + 20:
            dead[-1].abandon()
    reason = StopReason.TARGET_WIDTH if lost == 3 else StopReason.TARGET_WIDTH_OF_THE_REST
    assert study.stop_reason is reason
    if lost == 4:
        aside = study.look().aside["a"].reason
        assert aside == f"a question waits for an exit of 0, whose draw {dead[-1].token + 1} was lost"


def test_looks_are_at_the_replays_own_pace_after_a_warm_start():
    """Counts from before are not replayed, so that they must not put off the answers."""
    used = []
    for warm in (None, {"a": cs.Counts.from_transitions([[700_000, 300_000], [500_000, 500_000]])}):
        rng, matrix, state = random.Random(0), [[0.7, 0.3], [0.5, 0.5]], 0
        study = cs.Study.create(
            None, {"a": 2}, questions="reach 1 from 0 within 1", target_width=0.2, budget=15_000, warm_start=warm
        )
        while not study.finished:
            study.tell("a", state)
            state = rng.choices((0, 1), matrix[state])[0]
        assert study.stop_reason is StopReason.TARGET_WIDTH
        used.append(study.progress().observations)
    assert used[1] < 1.2 * used[0]


def test_no_question_is_asked_beforehand_of_states_that_are_only_those_seen():
    with pytest.raises(InputError, match=r"'complete' in the question .* says that no other states"):
        cs.Study.create(
            None, {"a": []}, open_states=True, questions="time to up from down given complete", target_width=1
        )


def test_states_that_a_failed_append_had_discovered_are_forgotten(folder, monkeypatch):
    """The label at a place may be another one afterwards, and an answer over the old one would be wrong."""
    study = cs.Study.create(
        folder / "lab.db", {"k": ["a", "b"]}, open_states=True, questions="reach c from a within 1", target_width=0.01
    )
    for _ in range(10):
        study.tell("k", "a")
        study.tell("k", "b")
    fails(study, monkeypatch, *(("k", state) for _ in range(40) for state in ("a", "c")))
    study.tell_many([("k", state) for _ in range(200) for state in ("a", "d")])
    (kept,) = study.questions()
    once = cs.answer(study.paths("k"), "reach c from a within 1", delta=kept.delta)
    assert (kept.lower, kept.upper) == (once.lower, once.upper)
    study.close()
