"""The aim of a study: ratios, looks, chains that are done, and workers that wait (MATH §16)."""

import itertools
import math
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice

import pytest
from scipy.stats import binom

import chainscout as cs
from chainscout import problems
from chainscout.errors import FileError, Held, InputError, NothingFree, StudyFinished, UndeclaredStatesWarning
from chainscout.report.study_data import StudyReport
from chainscout.sources import simulated
from chainscout.study import StopReason, aim
from chainscout.study.aim import Aim

COINS = {"fair": [0.5, 0.5], "loaded": [0.8, 0.2], "rare": [0.95, 0.05]}


def tosses(seed=0):
    """For each coin its own endless tosses, whatever is asked for."""
    streams = {name: random.Random(f"{name}{seed}") for name in COINS}
    return {name: (lambda n=name: streams[n].choices((0, 1), COINS[n])[0]) for name in COINS}


def run(study, seed=0, watch=lambda study, name: None):
    draw = tosses(seed)
    while not study.finished:
        name = study.ask()
        watch(study, name)
        study.tell(name, draw[name]())
    return study


def line(study, name):
    return study.look().chain(name)


@pytest.mark.parametrize("policy", [None, "scout", "uniform", "ba-mc", "gafs-max", "bayes"])
def test_a_chain_that_is_done_is_never_advanced_again_under_any_rule(policy):
    reached = {}

    def watch(study, name):
        for one in COINS:
            if line(study, one).ratio <= 1:
                reached.setdefault(one, study.chain(one).transitions)
        assert name not in reached

    study = run(cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=0.05, policy=policy), watch=watch)
    assert study.stop_reason is StopReason.TARGET_LOSS
    assert study.certificate().max <= 0.05
    for name, transitions in reached.items():
        assert study.chain(name).transitions == transitions


def test_every_rule_needs_the_same_number_and_the_default_is_the_furthest():
    needed = {}
    for policy in (None, "scout", "uniform", "furthest"):
        study = run(cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=0.05, policy=policy))
        needed[policy] = study.allocation()
    assert needed[None] == needed["furthest"]
    assert all(found == needed[None] for found in needed.values())
    assert cs.Study.create(None, {"a": 2}, target_loss=0.1).policy.name == "furthest"
    assert cs.Study.create(None, {"a": 2}, budget=10).policy.name == "scout"


def test_the_furthest_goes_first():
    """The ratio of the last look, times T_look/T; a chain without a transition before all others."""

    def watch(study, name):
        lines = [line(study, one) for one in COINS]
        if any(one.transitions == 0 for one in lines):
            assert study.chain(name).transitions == 0
            return
        predicted = {one.name: one.ratio * one.looked / one.transitions for one in lines if one.ratio > 1}
        assert predicted[name] == pytest.approx(max(predicted.values()), rel=1e-12)

    run(cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=0.05), watch=watch)


def test_each_chain_may_have_its_own_target():
    targets = {"fair": 0.02, "loaded": 0.05, "rare": 0.2}
    study = run(cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=targets))
    found = study.certificate()
    for name, target in targets.items():
        assert found.loss[name] <= target
        assert line(study, name).ratio == pytest.approx(found.loss[name] / target)
        # Two transitions in a thousand earlier, the look before it was not enough.
        assert found.loss[name] > 0.9 * target
    state = study.progress()
    assert (state.target_loss, state.target_most) == (0.02, 0.2)
    assert "target 0.02 to 0.2" in str(study)
    study.extend(target_loss=targets | {"rare": 0.1})
    assert not study.finished
    assert study.ask() == "rare"
    run(study, seed=1)
    assert study.certificate().loss["rare"] <= 0.1
    for given in ({"fair": 0.1}, targets | {"other": 0.1}):
        with pytest.raises(InputError, match="target_loss must be one number, or one for each chain of the study"):
            cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=given)
    with pytest.raises(InputError, match="target_loss of chain 'fair'"):
        cs.Study.create(None, {"fair": 2}, target_loss={"fair": -1.0})


def test_learning_goes_on_with_a_harder_target_of_one_chain(tmp_path):
    where, targets = tmp_path / "lab.db", {"fair": 0.05, "loaded": 0.05, "rare": 0.2}

    def learned(target_loss, seed):
        sources = {name: iter(draw, None) for name, draw in tosses(seed).items()}
        with cs.learn(
            sources, where=where, states=dict.fromkeys(COINS, 2), target_loss=target_loss, progress=False
        ) as s:
            return s.allocation()

    first = learned(targets, 0)
    again = learned(targets | {"rare": 0.1}, 1)
    assert (again["fair"], again["loaded"]) == (first["fair"], first["loaded"])
    assert again["rare"] > first["rare"]
    with pytest.raises(InputError, match=r"the larger one of 0\.5 was given"):
        learned(targets | {"rare": 0.5}, 2)


def test_a_weight_makes_a_chain_further():
    plain = run(cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=0.1))
    heavy = run(cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=0.1, weights={"rare": 3.0}))
    assert heavy.allocation()["fair"] == plain.allocation()["fair"]
    assert heavy.allocation()["rare"] > 2 * plain.allocation()["rare"]
    assert heavy.certificate().weighted["rare"] <= 0.1


def test_a_chain_with_one_state_is_done_before_it_begins():
    study = cs.Study.create(None, {"fixed": 1, "coin": 2}, target_loss=0.2)
    draw = tosses()["fair"]
    while not study.finished:
        assert study.ask() == "coin"
        study.tell("coin", draw())
    assert study.allocation()["fixed"] == 0
    assert study.stop_reason is StopReason.TARGET_LOSS


# -- looks


def looks(study, steps, source):
    """The T of each look, and the ratio that it found."""
    found = {}
    for state in islice(source, steps):
        study.tell("a", state)
        one = line(study, "a")
        if one.looked:
            found[one.looked] = one.ratio
        if study.finished:
            break
    return found


def test_looks_are_far_apart_while_the_target_is_far_and_close_where_it_is_near():
    """T·clamp(√ratio, 1.01, 2), or the T at which the ratio is expected to be 1, but at least a thousandth more."""
    rng = random.Random(1)
    far = looks(cs.Study.create(None, {"a": 2}, target_loss=1e-9), 20_000, iter(lambda: rng.randrange(2), None))
    assert list(far) == [2**n for n in range(15)]
    near = looks(cs.Study.create(None, {"a": 2}, target_loss=0.01), 20_000, iter(lambda: rng.randrange(2), None))
    seen = {"far": 0, "root": 0, "predicted": 0}
    for (before, ratio), after in itertools.pairwise(zip(near, near.values(), strict=True)):
        growth = max(1.001, min(ratio, max(1.01, min(math.sqrt(ratio), 2.0))))
        assert after[0] == max(before + 1, math.ceil(before * growth))
        seen["far" if growth == 2 else "root" if growth == math.sqrt(ratio) else "predicted"] += 1
    assert min(seen.values()) >= 1
    assert (aim._LEAST, aim._NEAR, aim._FAR) == (1.001, 1.01, 2.0)


def test_without_a_target_bounds_are_for_the_history_only():
    rng = random.Random(1)
    few = looks(cs.Study.create(None, {"a": 2}), 1_000, iter(lambda: rng.randrange(2), None))
    assert list(few) == [100, 125, 157, 197, 247, 309, 387, 484, 605, 757, 947]


def test_done_is_found_within_a_thousandth(monkeypatch):
    """The first T at which the bound meets the target, plus a thousandth of T, or one transition."""
    for target in (0.2, 0.05, 0.02):
        stopped = run(cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=target)).allocation()
        for name, draw in tosses().items():
            counts = cs.Counts(2)
            while True:
                counts.record(draw())
                if counts.total and cs.certify({"a": counts}, 0.05 / 3, "sharp").max <= target:
                    break
            assert counts.total <= stopped[name] - 1 <= max(counts.total + 2, 1.02 * counts.total)


# -- what is computed counts


def test_a_loop_that_plans_comes_to_an_end():
    """A plan that says 'nothing more' and a study that goes on would hang it."""
    for target in (0.3, 0.1, 0.06):
        study, draw = cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=target), tosses()
        study.tell_many([(name, draw[name]()) for _ in range(3) for name in COINS])
        for _ in range(200):
            if study.finished:
                break
            for name, more in study.plan().more.items():
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(Aim, "want", lambda *_: None)  # whatever the schedule says
                    for _ in range(min(int(more), 500)):
                        try:
                            study.tell(name, draw[name]())
                        except StudyFinished:
                            break
        assert study.stop_reason is StopReason.TARGET_LOSS


def test_finished_and_the_certificate_do_not_contradict_each_other(tmp_path, monkeypatch):
    study, draw = cs.Study.create(tmp_path / "lab.db", {"fair": 2, "rare": 2}, target_loss=0.1), tosses()
    monkeypatch.setattr(Aim, "want", lambda *_: None)
    while study.certificate().max > 0.1:
        for _ in range(20):
            study.tell("fair", draw["fair"]())
            study.tell("rare", draw["rare"]())
    assert study.finished
    assert study.stop_reason is StopReason.TARGET_LOSS


QUESTION = "reach 1 from 0 within 3"


@pytest.mark.parametrize("seed", [11, 12])
def test_a_loop_that_plans_for_answers_comes_to_an_end(seed):
    """A plan that says 'nothing more' and a study that goes on would hang it."""
    rng, laws = random.Random(seed), {"a": 0.1, "b": 0.3}
    study = cs.Study.create(None, dict.fromkeys(laws, 2), questions=QUESTION, target_width=0.15)
    study.tell_many([(name, int(rng.random() < law)) for _ in range(6) for name, law in laws.items()])
    for _ in range(200):
        for name, more in study.plan().more.items():
            for _ in range(5 if math.isnan(more) else int(min(more, 200))):
                if not study.finished:
                    study.tell(name, int(rng.random() < laws[name]))
        if study.finished:
            break
    assert study.stop_reason is StopReason.TARGET_WIDTH


@pytest.mark.parametrize("aim", [{"target_width": 0.15}, {"limit": 0.5}, {"worst": "highest"}])
def test_an_answer_that_was_computed_counts(aim, monkeypatch):
    """It never says that the aim is reached while the study goes on."""
    rng, laws = random.Random(5), {"a": 0.05, "b": 0.4}
    study = cs.Study.create(None, dict.fromkeys(laws, 2), questions=QUESTION, **aim)
    monkeypatch.setattr(Aim, "want", lambda *_: None)
    for _ in range(200):
        study.tell_many([(name, int(rng.random() < law)) for _ in range(20) for name, law in laws.items()])
        found = [study.answer(name, QUESTION) for name in laws]
        if study.finished:
            break
        reached = {
            "target_width": all(one.upper - one.lower <= 0.15 for one in found),
            "limit": all(one.upper < 0.5 or one.lower >= 0.5 for one in found),
            "worst": found[0].upper < found[1].lower,
        }
        assert not reached[next(iter(aim))]
    assert study.finished


def test_what_is_only_read_says_that_it_is_as_of_the_last_look(tmp_path, monkeypatch):
    where, draw = tmp_path / "lab.db", tosses()
    with cs.Study.create(where, {"fair": 2}, target_loss=0.1) as study:
        monkeypatch.setattr(Aim, "want", lambda *_: None)
        study.tell_many([("fair", draw["fair"]()) for _ in range(500)])
    with cs.Study.open(where, read_only=True) as study:
        found = study.certificate()
        assert found.max <= 0.1
        assert not study.finished
        assert any("the study is only read here: whether it has ended is as of the last look" in n for n in found.notes)
    with cs.Study.open(where) as study:
        assert not any("only read" in note for note in study.certificate().notes)
        assert study.finished


def test_who_tells_more_than_was_asked_for_changes_nothing_of_a_chain_that_is_done():
    """Its counts, its bound and its estimate are those of the cut where it reached the target (MATH §15)."""
    study = cs.Study.create(None, {"coin": 3, "other": 2}, target_loss=0.05)
    draw = tosses()["fair"]
    while line(study, "coin").ratio > 1:
        study.tell("coin", draw())
    before, counts = line(study, "coin"), study.counts("coin")
    assert study.ask() == "other"
    study.tell_many([("coin", 2), ("coin", 2)])  # the first exit of a row that was never left
    one = line(study, "coin")
    assert (one.loss, one.ratio, one.looked) == (before.loss, before.ratio, before.looked)
    assert (study.counts("coin").total, study.counts("coin", everything=True).total) == (counts.total, one.transitions)
    assert one.transitions == before.transitions + 2
    assert study.progress().behind == 1


def test_set_aside_and_taken_up_are_counted():
    study = cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=0.1)
    assert (study.progress().behind, study.progress().missed) == (3, 0)
    study.set_aside("rare", "its rig is broken")
    assert (study.progress().behind, study.progress().missed) == (2, 1)
    draw = tosses()
    while not study.finished:
        name = study.ask()
        study.tell(name, draw[name]())
    assert study.stop_reason is StopReason.TARGET_LOSS_OF_THE_REST
    study.take_up("rare")
    assert (study.progress().behind, study.progress().missed) == (1, 0)
    run(study, seed=1)
    assert study.stop_reason is StopReason.TARGET_LOSS
    study.audit()


def test_learning_says_once_what_declaring_the_states_would_save():
    with pytest.warns(
        UndeclaredStatesWarning, match="states of 2 chains are not declared.*takes up to twice as many observations"
    ) as told:
        study = cs.learn({"a": independent(1), "b": independent(2)}, 50, target_loss=0.5, progress=False)
    assert len(told) == 1
    assert any("the states of 2 chains were not declared" in note for note in StudyReport(study, "").overview().notes)


# -- workers


class Slow:
    """A coin that takes as long as a chain of two states with a question may take."""

    def __init__(self, p):
        self.p = p

    def __call__(self):
        return int(random.random() < self.p)


@pytest.mark.parametrize("executor", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_obeys_the_rule(executor):
    """One question on one chain: the others get next to nothing, with three workers as with one."""
    chains = dict.fromkeys(("press", "robot", "oven"), 2)
    with executor(3) as pool:
        study = cs.learn(
            {name: Slow(0.3) for name in chains}, 6_000, states=chains, executor=pool, workers=3, progress=False,
            questions={"press": "reach 1 from 0 within 1"}, target_width=0.2,
        )  # fmt: skip
    told = study.allocation()
    assert study.stop_reason is StopReason.TARGET_WIDTH
    assert max(told["robot"], told["oven"]) <= 10


def level_rule(*levels):
    """A rule whose indices never change."""
    return cs.Policy(
        "level", lambda sums, t, c: c[0], lambda row, n, q, c: (0.0,), lambda setting: (levels[setting.chain],)
    )


def test_a_worker_waits_unless_its_chain_is_close_to_the_first():
    """0.95 of the largest index, chains at work included."""
    chains = {"a": 2, "b": 2}
    for ahead, waits in ((1.02, False), (1.2, True)):
        study = cs.Study.create(None, chains, policy=level_rule(ahead, 1.0))
        for name in chains:
            study.tell_many([(name, n % 2) for n in range(101)])
        first, second = study.worker("one"), study.worker("two")
        lease = first.lease()
        assert lease.chain == "a"
        if waits:
            with pytest.raises(NothingFree, match="'a' comes before 'b', and is at work"):
                second.lease(wait=0, without={"a"})
        else:
            assert second.lease(wait=0, without={"a"}).chain == "b"


def test_a_worker_that_waits_for_itself_is_told_so():
    """It would wait for ever: nobody else can tell what its own lease is for."""
    study = cs.Study.create(None, {"a": 2, "b": 2}, policy=level_rule(2.0, 1.0))
    for name in ("a", "b"):
        study.tell_many([(name, n % 2) for n in range(101)])
    worker = study.worker("one")
    worker.lease()
    with pytest.raises(Held, match="the worker 'one' holds 'a', which come first: it must tell them before 'b'"):
        worker.lease()


def test_a_chain_that_its_draws_under_way_are_expected_to_finish_is_not_leased():
    """It waits for them, and for the look that says whether it is done."""
    study = cs.Study.create(None, {"fair": 2}, target_loss=0.05)
    draw = tosses()["fair"]
    while (one := line(study, "fair")).ratio > 1.1 or one.looked != one.transitions:
        study.tell("fair", draw())
    missing = math.ceil(one.ratio * one.looked) - one.transitions
    assert missing > 1
    lease = study.worker("one").lease(steps=missing)
    with pytest.raises(NothingFree):
        study.ask()
    with pytest.raises(NothingFree):
        study.worker("two").lease(wait=0)
    lease.tell(draw())
    lease.give_back()
    assert study.ask() == "fair"  # the draws will not come, so somebody else makes them


# -- problems


@pytest.mark.parametrize("name", problems.names())
def test_the_default_never_needs_more_than_taking_turns(name):
    """Taking turns until each chain's own bound meets the target; at most 1 % more for the schedule of looks."""
    problem = problems.get(name)
    target = 0.02 * problem.variability
    with cs.learn(simulated(problem, seed=3), target_loss=target, progress=False) as study:
        told = study.allocation()
        assert study.stop_reason is StopReason.TARGET_LOSS
    sources, turns = simulated(problem, seed=3), 0
    for chain, known in problem.chains.items():
        counts = cs.Counts(known.states)
        while counts.total == 0 or cs.certify({chain: counts}, 0.05 / len(problem), "sharp").max > target:
            for _ in range(1 + counts.total // 200):
                counts.record(sources[chain].advance()[0])
        turns = max(turns, counts.observations)
    assert sum(told.values()) <= 1.01 * len(problem) * turns + len(problem)


# -- bounds that do not hold


def remembering(seed):
    """Two steps of memory: it goes on as it did before, nine times in ten."""
    rng, before, now = random.Random(seed), 0, 0
    while True:
        yield now
        stays = rng.random() < (0.9 if before == now else 0.1)
        before, now = now, now if stays else 1 - now


def independent(seed):
    rng = random.Random(seed)
    while True:
        yield int(rng.random() < 0.3)


AIMS = [{"target_loss": 0.003}, {"questions": "reach 1 from 0 within 1", "target_width": 0.05}]


@pytest.mark.filterwarnings("ignore::chainscout.errors.SetAsideWarning")
@pytest.mark.parametrize("aim", AIMS)
def test_no_study_stops_on_a_bound_whose_assumption_was_rejected(aim):
    states = {"memory": 2, "coin": 2}
    sources = {"memory": remembering(1), "coin": independent(2)}
    study = cs.learn(sources, states=states, progress=False, **aim)
    assert study.stop_reason.leaves_out
    reason = next(event.detail["reason"] for event in study.events() if event.kind == "set aside")
    assert reason.startswith("no bound holds: the check of order (predecessor) rejects since draw ")
    assert study.chain("memory").aside
    assert "\nmemory: no bound holds: the check of order (predecessor) rejects since draw " in str(study)
    shown = str(study).split("\n")[2].split()
    assert (shown[0], shown[3]) == ("memory", "—")  # and no bound on its loss


@pytest.mark.filterwarnings("ignore::chainscout.errors.SetAsideWarning")
@pytest.mark.parametrize("aim", AIMS)
def test_a_study_of_which_no_bound_holds_ends_with_a_code(aim):
    study = cs.learn({"memory": remembering(1)}, states={"memory": 2}, progress=False, **aim)
    assert study.stop_reason is StopReason.NO_BOUND
    certificate = study.certificate()
    assert (certificate.max, certificate.guaranteed) == (math.inf, False)
    assert str(certificate).startswith("memory: no bound holds: the check of order")
    assert StudyReport(study, "").overview().certificate is None
    assert "nothing helps memory: no bound holds" in str(study.plan())
    assert study.stop_reason == "no_bound"
    with pytest.raises(
        StudyFinished, match=r"no bound holds: a check rejects .* no observation helps this study: make one without"
    ):
        study.ask()


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_the_study_knows_how_many_chains_are_left(place, seed):
    """Told, set aside, taken up, extended, opened again: the totals are those of the chains, and done ones rest."""
    rng, draw = random.Random(seed), tosses(seed)
    study = place.create(dict.fromkeys(COINS, 2), target_loss=0.4, weights={"rare": 2.0})
    for step in range(300):
        dice = rng.random()
        name = rng.choice(list(COINS))
        if dice < 0.02:
            study.set_aside(name, "out of order")
        elif dice < 0.04:
            study.take_up(name)
        elif dice < 0.05:
            study.extend(target_loss=0.9 * study.progress().target_loss)
        elif dice < 0.07:
            study = place.reopen(study)
        elif study.finished:
            study.extend(target_loss=0.8 * study.progress().target_loss)
        elif dice < 0.1:
            study.tell(name, draw[name]())  # whether it is done or not
        else:
            study.tell(chosen := study.ask(), draw[chosen]())
        if step % 10 == 0:
            study.audit()
        lines = study.look().chains
        left = [one for one in lines if one.ratio > 1]
        state = study.progress()
        assert (state.behind, state.missed) == (
            sum(not one.aside for one in left), sum(one.aside for one in left)
        )  # fmt: skip
        if not study.finished:
            assert not line(study, study.ask()).aside
            assert line(study, study.ask()).ratio > 1


def test_an_audit_finds_a_wrong_number_of_chains_that_are_left():
    study = cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=0.1)
    study.audit()
    study._keeper.state().aim.behind += 1
    with pytest.raises(FileError):
        study.audit()


def test_stopping_chain_by_chain_keeps_the_promise():
    """At δ = 1/2, looked at after every observation, chain by chain at δ/K: how often a loss is above its bound."""
    runs, delta, missed = 40, 0.5, 0
    problem = cs.Problem({name: cs.MarkovChain([law, law[::-1]]) for name, law in COINS.items()})
    for run_number in range(runs):
        sources = simulated(problem, seed=run_number)
        study = cs.Study.create(None, dict.fromkeys(COINS, 2), target_loss=0.1, delta=delta)
        wrong = False
        while not study.finished:
            name = study.ask()
            study.tell(name, sources[name].advance()[0])
            one = line(study, name)
            if one.looked == one.transitions > 0:
                counts = study.counts(name)
                truth = cs.loss(problem[name], counts)
                wrong = wrong or truth > one.loss
        missed += wrong
    assert missed <= int(binom.ppf(0.999, runs, delta))
    assert missed < runs / 4  # the bounds are above what is needed


@pytest.mark.filterwarnings("ignore::chainscout.errors.SetAsideWarning")
@pytest.mark.parametrize("short", [1, 2, 3])
def test_a_budget_that_ends_just_before_the_aim_certifies_no_rejected_chain(short):
    """The looks of the last moment find the aim reached, and the checks of the last moment reject."""
    for seed in range(6):
        whole = cs.learn({"memory": remembering(seed)}, states={"memory": 2}, target_loss=0.02, progress=False)
        budget = whole.progress().observations - short
        study = cs.learn({"memory": remembering(seed)}, budget, states={"memory": 2}, target_loss=0.02, progress=False)
        doubts = study.look().doubts
        assert not (doubts and study.stop_reason is StopReason.TARGET_LOSS)


@pytest.mark.filterwarnings("ignore::chainscout.errors.SetAsideWarning")
def test_the_worst_chain_is_undecided_if_those_that_may_be_it_are_set_aside():
    sources = {"a": iter([0, 1] * 40), "b": iter([0, 1] * 40), "c": independent(1)}
    asked = dict.fromkeys("abc", "reach 1 from 0 within 1")
    study = cs.learn(sources, states=dict.fromkeys("abc", 2), questions=asked, worst="highest", progress=False)
    assert study.stop_reason is StopReason.UNDECIDED
    assert "cannot be decided without the chains set aside" in str(study)


@pytest.mark.filterwarnings("ignore::chainscout.errors.SetAsideWarning")
def test_a_question_that_the_data_refute_takes_no_budget():
    asked = {"a": "reach 1 from 0 within 2 given 0 -> 1 impossible", "b": "reach 1 from 0 within 2"}
    sources = {"a": independent(1), "b": independent(2)}
    study = cs.learn(sources, states=dict.fromkeys("ab", 2), questions=asked, target_width=0.2, progress=False)
    assert study.stop_reason is StopReason.TARGET_WIDTH_OF_THE_REST
    assert study.allocation()["a"] < 100


def test_a_study_of_chains_with_one_state_is_finished_when_it_is_made():
    study = cs.Study.create(None, {"fixed": 1}, target_loss=0.05)
    assert study.stop_reason is StopReason.TARGET_LOSS
    assert study.certificate().loss == {"fixed": 0.0}
    two = cs.Study.create(None, {"fixed": 1, "coin": 2}, target_loss=0.05)
    assert two.certificate().loss["fixed"] == 0.0
    assert two.progress().behind == 1


def test_a_worker_does_not_stay_with_a_chain_that_is_done():
    """Thirty workers under a rule of counts, whose index does not know that a chain is done."""
    names = [f"coin {k}" for k in range(6)]
    study = cs.Study.create(None, dict.fromkeys(names, 2), target_loss=0.05, policy="uniform")
    rng, workers = random.Random(1), []
    while not study.finished:
        if len(workers) < 30:
            workers.append(study.worker(f"worker {len(workers)}", renews=False))
        try:
            lease = rng.choice(workers).lease(wait=0)
        except NothingFree:
            continue
        if lease is not None:
            assert line(study, lease.chain).ratio > 1
            lease.tell(int(rng.random() < 0.05 + 0.08 * names.index(lease.chain)))


def test_asking_for_the_certificate_of_repeated_paths_changes_nothing():
    targets, states = {"a": 0.2, "b": 0.001}, list(islice(independent(1), 80))
    study = cs.Study.create(None, {"a": 2, "b": 2}, 2_000, target_loss=targets)
    draw = independent(3)
    while line(study, "a").ratio > 1:
        study.tell("a", next(draw))
    for _ in range(2):
        study.tell("b", states[0], begin=True)
        for state in states[1:]:
            study.tell("b", state)
    assert study.progress().spoilt
    before = study.progress().behind, study.ask()
    study.certificate()
    assert (study.progress().behind, study.ask()) == before


def test_plain_tells_of_two_programs_on_one_chain_are_paths_of_their_own(tmp_path):
    """Each has its slots, so the bound holds, whatever the steps take."""
    where = tmp_path / "lab.db"
    with cs.Study.create(where, {"a": 2}) as one, cs.Study.open(where) as two:
        for state in (0, 1, 1, 0):
            one.tell("a", state)
            two.tell("a", state)
        two.tell("a", 1)
        assert one.counts("a", everything=True).total == 7
        (step,) = one.certificate().open_steps
        assert (step.chain, step.path, step.walker, step.later) == ("a", 1, "main", 1)


# -- checks beside chains that rest


def late(seed, after):
    """A coin that gets a memory of two steps."""
    yield from islice(independent(seed), after)
    yield from remembering(seed)


def by_hand(study, sources):
    while not study.finished:
        name = study.ask()
        study.tell(name, next(sources[name]))
    return study


@pytest.mark.parametrize("policy", [None, "uniform", "scout"])
@pytest.mark.parametrize("batch", [1, 7])
def test_a_chain_that_rests_does_not_stop_the_checks_of_the_others(policy, batch):
    """Nobody asks for its next draw, so nobody waits for it."""
    sources = {"easy": independent(1), "bad": late(2, 300)}
    study = cs.Study.create(None, dict.fromkeys(sources, 2), target_loss={"easy": 0.3, "bad": 0.002}, policy=policy)
    while not study.finished:
        study.tell_many([(name, next(sources[name])) for name in study.ask(batch)])
    assert study.stop_reason is StopReason.TARGET_LOSS_OF_THE_REST
    assert study.chain("bad").aside
    assert study.checks().doubt("easy") is None
    study.audit()


def test_a_rejected_chain_does_not_stop_the_checks_of_the_others():
    sources = {"memory": remembering(1), "late": late(2, 1_000), "coin": independent(3)}
    study = by_hand(cs.Study.create(None, dict.fromkeys(sources, 2), target_loss=0.003), sources)
    assert study.stop_reason is StopReason.TARGET_LOSS_OF_THE_REST
    assert study.chain("memory").aside
    assert study.chain("late").aside
    assert not study.chain("coin").aside
    study.audit()


def test_the_checks_go_on_when_a_chain_is_asked_for_again(place):
    """After a harder target, after being taken up, and if somebody tells more than was asked for."""
    sources = {"fair": independent(1), "other": independent(2)}
    study = by_hand(place.create(dict.fromkeys(sources, 2), target_loss=0.05), sources)
    study.extend(target_loss=0.02)
    by_hand(study, sources)
    study.extend(target_loss={"fair": 0.02, "other": 0.005})
    for _ in range(50):
        study.tell("fair", next(sources["fair"]))  # although it is done
        study.tell(study.ask(), next(sources["other"]))
    by_hand(study, sources)
    assert study.checks().waiting == 0
    assert study.diagnose().waiting == 0
    study.audit()
