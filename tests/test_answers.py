"""Answers: exact values, replay against a literal reference, bets and sets of rows against brute force."""

import math
import re

import numpy as np
import pytest
from answer_trials import CHAINS, questions, sample
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_answers import BETS, decks, ever_missed, likely, log_wealth, replay

import chainscout as cs
from chainscout.answers import betting, robust
from chainscout.answers._intervals import cap_weight
from chainscout.answers._terms import terms_of
from chainscout.answers.replay import _starts, decks_of, episodes
from chainscout.errors import InputError, NotErgodicError
from chainscout.paths import LOST, PENDING, START, Paths

LABELS = ["idle", "busy", "down"]
MATRIX = np.array([[0.9, 0.08, 0.02], [0.5, 0.4, 0.1], [0.3, 0.0, 0.7]])
CHAIN = cs.MarkovChain(MATRIX, states=LABELS)


def walked(cards=4000, seed=0):
    """A walk of the chain, as paths."""
    rng = np.random.default_rng(seed)
    return Paths.from_walks([[LABELS[x] for x in walk(MATRIX, cards, rng)]], LABELS)


def walk(matrix, steps, rng, x=0):
    cumulative = matrix.cumsum(axis=1)
    found = [x]
    for u in rng.random(steps):
        x = int(min(np.searchsorted(cumulative[x], u, side="right"), len(matrix) - 1))
        found.append(x)
    return found


# -- exact values


@pytest.mark.parametrize("name", CHAINS)
def test_exact_values_are_those_of_simulated_walks(name):
    """To four standard errors of 4,000 walks each, or of 500 for passage times."""
    matrix = CHAINS[name]()
    rng = np.random.default_rng(1)
    cumulative = matrix.cumsum(axis=1)
    for question, truth in questions(name):
        if isinstance(question, cs.LongRunShare):
            law = np.linalg.matrix_power(0.5 * np.eye(len(matrix)) + 0.5 * matrix, 2**20)[0]
            assert truth == pytest.approx(law[list(question.states)].sum(), rel=1e-9)
            continue
        number, horizon = (500, 10**6) if isinstance(question, cs.PassageTime) else (4000, 10**4)
        starts = question.start if isinstance(question.start, tuple) else ((question.start, 1.0),)
        x = rng.choice([s for s, _ in starts], p=[p for _, p in starts], size=number)
        value, alive, weight = np.zeros(number), np.ones(number, dtype=bool), 1.0
        cost = np.zeros(len(matrix))
        if isinstance(question, cs.Cost):
            cost[[s for s, _ in question.costs]] = [c for _, c in question.costs]
            horizon = question.steps or 100
        elif isinstance(question, cs.Reach) and question.within is not None:
            horizon = question.within + 1
        for _ in range(horizon):
            if isinstance(question, cs.Cost):
                value += weight * cost[x]
                weight *= question.discount if question.discount is not None else 1.0
            else:
                arrived = alive & np.isin(x, question.target)
                failed = alive & np.isin(x, getattr(question, "before", None) or ())
                if isinstance(question, cs.Reach):
                    value += arrived
                alive &= ~arrived & ~failed
                if isinstance(question, cs.PassageTime):
                    value += alive
                if not alive.any():
                    break
            x = np.minimum((rng.random(number)[:, None] > cumulative[x]).sum(axis=1), len(matrix) - 1)
        error = value.std() / math.sqrt(number)
        assert abs(value.mean() - truth) <= 4 * error + 1e-9, question


def test_exact_values_by_hand():
    coin = cs.MarkovChain([[0.5, 0.5], [0, 1]])
    assert cs.answer(coin, cs.Reach(1, 0, within=3)).estimate == 7 / 8
    assert cs.answer(coin, cs.Reach(1, 0)).estimate == 1
    assert cs.answer(coin, cs.PassageTime(1, 0)).estimate == 2
    assert cs.answer(coin, cs.PassageTime(0, 1)).estimate == math.inf
    assert cs.answer(coin, cs.Cost({0: 1}, 0, steps=3)).estimate == 1.75
    assert cs.answer(coin, cs.Cost({0: 1}, 0, discount=0.5)).estimate == pytest.approx(4 / 3)
    assert cs.answer(coin, cs.LongRunShare(1)).estimate == 1
    ruin = cs.MarkovChain([[1, 0, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 0, 1]])
    assert cs.answer(ruin, cs.Reach(3, 1, before=0)).estimate == pytest.approx(1 / 3)
    assert cs.answer(ruin, cs.PassageTime(3, 1)).estimate == math.inf
    with pytest.raises(NotErgodicError, match="no single stationary law"):
        cs.answer(ruin, cs.LongRunShare(0))


def test_many_steps_are_a_power_of_the_matrix():
    few = cs.answer(CHAIN, cs.Reach("down", "idle", within=150)).estimate
    many = cs.answer(CHAIN, cs.Reach("down", "idle", within=10**6)).estimate
    value = np.array([0, 0, 1.0])
    stop = MATRIX.copy()
    stop[2] = [0, 0, 1]
    assert few == pytest.approx((np.linalg.matrix_power(stop, 150) @ value)[0], rel=1e-12)
    assert many == pytest.approx(1.0)
    assert cs.answer(CHAIN, cs.Cost({"down": 1}, "idle", steps=10**6)).estimate == pytest.approx(
        10**6 * cs.answer(CHAIN, cs.LongRunShare("down")).estimate, rel=1e-4
    )


def test_a_start_in_the_target_is_certain_and_a_chain_knows_where_it_starts():
    for data in (CHAIN, walked(50), walked(50).counts()):
        assert cs.answer(data, "reach down from down within 5").lower == 1
        assert cs.answer(data, "time to down from down").upper == 0
        assert cs.answer(data, "reach idle from down within 0").upper == 0
        assert cs.answer(data, "cost down=3 from down over 1 steps").lower == 3
    short = Paths.from_walks([["idle", "busy"]], LABELS)
    assert cs.answer(short, "reach idle before down from down given busy absorbing").upper == 0
    assert cs.answer(short, "time to idle from down given down absorbing").lower == math.inf
    begun = cs.MarkovChain(MATRIX, states=LABELS, initial=[0, 0, 1])
    assert cs.answer(begun, "reach down within 5").estimate == 1


# -- replay


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_replay_is_that_of_the_reference(seed, cap):
    rng = np.random.default_rng(seed)
    number, size = int(rng.integers(1, 80)), 4
    source = rng.integers(START, size, number)
    target = rng.integers(LOST, size, number)
    target[rng.random(number) < 0.8] = rng.integers(0, size)
    told = np.where(target == PENDING, 0, rng.permutation(number) + 1)
    order = np.arange(number)
    paths = Paths(size, path=order, step=order, source=source, target=target, told=told)
    for independent in (False, True):
        stacks = decks_of(paths, independent_losses=independent)
        expected = decks(paths, skip_all_losses=independent)
        for row in range(size + 1):
            cards = stacks.card[stacks.first[row] : stacks.first[row + 1]].tolist()
            assert cards == expected[row if row < size else START]
        for start in (0, None):
            terms = terms_of(cs.Reach(3, start, within=cap, before=2), range(size))
            found = episodes(stacks, terms, cap)
            limit = len(stacks.card) + 1
            where = START if start is None else start
            known = replay(expected, where, {3}, {2}, cap, most=limit)
            assert list(zip(found.result.tolist(), found.length.tolist(), strict=True)) == known


def test_whole_episodes_one_after_the_other_are_counted_directly():
    rng = np.random.default_rng(3)
    walks = []
    for _ in range(200):
        found = walk(MATRIX, 10, rng)
        end = next((place for place, x in enumerate(found) if x == 2), 10)
        walks.append(found[: end + 1])
    answer = cs.answer(Paths.from_walks(walks, 3), cs.Reach(2, 0, within=10), asked=0)
    assert answer.episodes == 200
    assert answer.estimate == sum(found[-1] == 2 for found in walks) / 200
    assert answer.notes == ("the replay waits for an exit of 0",)


def test_the_start_can_be_where_paths_start_or_a_law():
    rng = np.random.default_rng(3)
    paths = Paths.from_walks([walk(MATRIX, 30, rng, x=int(rng.integers(2))) for _ in range(300)], 3)
    whole = 0.5 * cs.answer(cs.MarkovChain(MATRIX), cs.Reach(2, 0, within=5)).lower
    whole += 0.5 * cs.answer(cs.MarkovChain(MATRIX), cs.Reach(2, 1, within=5)).lower
    for start in (None, {0: 0.5, 1: 0.5}):
        answer = cs.answer(paths, cs.Reach(2, start, within=5, starts_alike=start is None))
        assert answer.lower < whole < answer.upper
        assert answer.width < 0.2
    assert cs.answer(paths, cs.Reach(2, within=5, starts_alike=True)).episodes == 300
    assert any(
        note.startswith("the replay waits for the start of a path")
        for note in cs.answer(paths, cs.Reach(2, within=5, starts_alike=True)).notes
    )


def test_where_paths_start_is_refused_unless_starts_are_declared_alike():
    """Restarts that depend on what was seen choose the starts: such a law of starts was missed in 48 of 50 runs."""
    paths = Paths.from_walks([walk(MATRIX, 30, np.random.default_rng(3)) for _ in range(30)], 3)
    words = "name the start .*'from STATE'.* or declare .*starts_alike=True, 'given starts alike'"
    for question in ("reach 2 within 5", "time to 2", "cost 2=1 over 3 steps", cs.Cost({2: 1}, discount=0.5)):
        for method in (None, "replay"):
            with pytest.raises(InputError, match=words):
                cs.answer(paths, question, method=method)
        with pytest.raises(InputError, match=words):
            cs.Study.create(None, {"a": 3}, questions=question)
    assert cs.answer(paths, "reach 2 within 5 given starts alike").episodes == 30
    assert cs.answer(cs.MarkovChain(MATRIX, [1, 0, 0]), "reach 2 within 5").method == "exact"
    assert cs.answer(paths, "share of 2").method == "replay"
    for call in (lambda: cs.Reach(2, 0, starts_alike=True), lambda: cs.LongRunShare(2, starts_alike=True)):
        with pytest.raises(InputError, match="starts_alike is for a question that names no start"):
            call()


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (
            "idle -> down impossible",
            r"'idle' -> 'down' is declared impossible, and (was seen \d+ times|has probability)",
        ),
        ("down absorbing", r"'down' is declared absorbing, and 'down' -> 'idle' (was seen \d+ times|has probability)"),
    ],
)
@pytest.mark.parametrize(
    "line", ["reach busy from idle within 5", "cost busy=1 from idle over 9 steps", "share of busy"]
)
def test_a_declaration_that_the_data_refute_is_refused_by_every_method(line, fact, words):
    paths, question = walked(4000), f"{line} given {fact}"
    data = [(CHAIN, None), (paths.counts(), None), (paths, None)]
    data += [(paths, method) for method in ("replay", "row-likelihood")]
    for known, method in data:
        with pytest.raises(InputError, match=words):
            cs.answer(known, question, method=method)
    study = cs.Study.create(
        None, {"a": LABELS}, questions=question
    )  # a running study says it beside what is always true
    study.tell_many([("a", LABELS[x]) for x in paths.target])
    found = study.answer("a", question)
    assert (found.lower, found.estimate) == (0, None)
    assert re.search(words, found.notes[0])
    assert study.questions()[0].notes == found.notes


def test_complete_is_refused_if_a_state_was_first_seen_after_the_question():
    paths = Paths.from_walks([["a", "b"] * 50 + ["c", "a"] * 20])
    question = "reach b from a within 1 given complete"
    assert cs.answer(paths, question, asked=101).episodes > 0
    for asked in (0, 60):
        with pytest.raises(InputError, match=r"declared complete, and the state '.' was first seen after the question"):
            cs.answer(paths, question, asked=asked)


def test_two_studies_draw_the_starts_of_one_question_by_different_coins():
    law = cs.Reach(2, {0: 0.5, 1: 0.5}, within=1)
    walks = [walk(MATRIX, 400, np.random.default_rng(3))]

    def starts(paths):
        decks = decks_of(paths)
        return _starts(terms_of(law, range(3)), decks.key, 0, 200).tolist()

    def learned():
        study = cs.Study.create(None, {"a": 3, "b": 3})
        study.tell_many([(name, x) for name in "ab" for x in walks[0]])
        return study

    one, two = learned(), learned()
    assert starts(one.paths("a")) == starts(one.paths("a"))
    assert starts(one.paths("a")) == starts(one.paths("a").after(10))
    found = [starts(study.paths(chain)) for study in (one, two) for chain in "ab"]
    found += [starts(Paths.from_walks(walks, 3, key=key)) for key in ("", "north")]
    assert len(set(map(tuple, found))) == 6


def test_a_law_is_drawn_by_coins_that_are_never_drawn_again():
    paths = walked(3000)
    terms = terms_of(cs.Reach("down", {"idle": 0.5, "busy": 0.5}, within=5), LABELS)
    whole = episodes(decks_of(paths), terms, 5)
    part = episodes(decks_of(Paths.from_walks([paths.target[:2000]], 3)), terms, 5)
    assert len(part.result) < len(whole.result)
    assert (part.length == whole.length[: len(part.length)]).all()


# -- bets


@settings(max_examples=40)
@given(st.integers(1, 60), st.floats(0, 1), st.floats(0.001, 0.5), st.integers(0, 2**32))
def test_both_ends_are_where_the_wealth_reaches_its_level(number, p, share, seed):
    values = (np.random.default_rng(seed).random(number) < p).astype(float)
    level = math.log(1 / share)
    points, counts = np.unique(values, return_counts=True)
    low = betting.least_mean(points, counts.astype(float), level)
    high = betting.most_mean_within(points, counts.astype(float), level)
    assert 0 <= low <= values.mean() <= high <= 1
    if low > 0:
        assert log_wealth(values, low)[-1] >= level
        assert log_wealth(values, low * (1 + 1e-6))[-1] < level + 1e-5
    if high < 1:
        assert log_wealth(1 - values, 1 - high)[-1] >= level
    assert len(BETS) == betting.BETS


def test_bets_whose_values_have_a_bound_that_depends_on_the_data():
    values, counts = np.array([1.0, 3.0, 50.0]), np.array([400.0, 300.0, 5.0])
    mean = float(values @ counts / counts.sum())
    level = math.log(40)
    ends = [betting.most_mean_above(values, counts, largest, 16.0, level) for largest in (50.0, 100.0, 1000.0)]
    assert mean < ends[0] < ends[1] < ends[2] <= 1000
    # By hand at the first end: the bets that stay, and their wealth.
    kept = [g / 16 for g in BETS if g / 16 * (50 - ends[0]) <= 0.999]
    wealth = [sum(n * math.log(1 - lam * (v - ends[0])) for v, n in zip(values, counts, strict=True)) for lam in kept]
    assert np.logaddexp.reduce(wealth) - math.log(44) == pytest.approx(level, abs=1e-6)
    assert betting.most_mean_above(values, counts, math.inf, 16.0, level) == math.inf
    assert betting.most_mean_above(values[:0], counts[:0], 7.0, 16.0, level) == 7.0


def test_the_least_share_is_where_the_wealth_of_cycles_reaches_its_level():
    inside, outside, early = np.array([1.0, 2.0, 4.0]), np.array([3.0, 0.0, 8.0]), np.array([0.0, 0.0, 1.0])
    counts, level = np.array([200.0, 100.0, 3.0]), math.log(50)
    low = betting.least_share(inside, outside, early, counts, 20.0, 8.0, level)
    kept = [g / 8 for g in BETS if g / 8 * 28 <= 0.999]
    loss = outside + early * 20
    wealth = [float(counts @ np.log(1 + lam * (inside * (1 / low - 1) - loss))) for lam in kept]
    assert np.logaddexp.reduce(wealth) - math.log(44) == pytest.approx(level, abs=1e-6)
    assert 0 < low < (inside @ counts) / (inside @ counts + outside @ counts)
    assert betting.least_share(inside, outside, early, counts, math.inf, 8.0, level) == 0
    assert betting.least_share(0 * inside, outside, early, counts, 20.0, 8.0, level) == 0


def test_the_weights_of_all_caps_sum_to_one():
    assert sum(cap_weight(k) for k in range(10**5)) == pytest.approx(1, abs=2e-5)
    assert cap_weight(0) == 1 / 2


# -- the split of δ, by hand: a test for each number that the bounds' validity depends on


DELTA = 0.1


def lower_end(values, share):
    """The lower end for values ≥ 0 by the reference's wealth, to seven digits."""
    values = np.asarray(values, dtype=float)
    if not values.any():
        return 0.0
    low, high = 1e-9 * values.mean(), values.mean()
    for _ in range(60):
        middle = math.sqrt(low * high)
        rejected = log_wealth(values, middle)[-1] >= math.log(1 / share)
        low, high = (middle, high) if rejected else (low, middle)
    return low


def upper_end(values, share):
    return 1 - lower_end(1 - np.asarray(values, dtype=float), share)


def ended(paths, cap, start=0, failed=(), arrived=(2,)):
    """[(how it ended, steps)] by the reference's replay."""
    return replay(decks(paths), start, set(arrived), set(failed), cap)


CAPS = [(4**k, 1 / ((k + 1) * (k + 2))) for k in range(12)]


def short_walk():
    return Paths.from_walks([walk(MATRIX, 600, np.random.default_rng(4))], 3)


def test_each_end_of_a_probability_has_half_of_delta():
    ones = np.array([end == 1 for end, _ in ended(short_walk(), 5)])
    answer = cs.answer(short_walk(), cs.Reach(2, 0, within=5), delta=DELTA)
    assert answer.lower == pytest.approx(lower_end(ones, DELTA / 2), rel=1e-6)
    assert answer.upper == pytest.approx(upper_end(ones, DELTA / 2), rel=1e-6)


def test_each_cap_has_its_weight_of_delta():
    answer = cs.answer(short_walk(), cs.Reach(2, 0, before=1), delta=DELTA)
    lows, highs = [0.0], [1.0]
    for cap, weight in CAPS[:6]:
        ends = np.array([end for end, _ in ended(short_walk(), cap, failed=[1])])
        lows.append(lower_end(ends == 1, DELTA * weight / 2))
        highs.append(upper_end(ends != 2, DELTA * weight / 2))
    assert answer.lower == pytest.approx(max(lows), rel=1e-6)
    assert answer.upper == pytest.approx(min(highs), rel=1e-6)


def test_each_end_of_a_cost_has_half_of_delta():
    rng = np.random.default_rng(4)
    paths = Paths.from_walks([walk(MATRIX, 3, rng) for _ in range(150)], 3)  # whole episodes, so that they are counted
    answer = cs.answer(paths, cs.Cost({1: 2, 2: 8}, 0, steps=4), delta=DELTA)
    costs = np.array([0.0, 2.0, 8.0])[paths.target].reshape(-1, 4).sum(axis=1)
    assert answer.episodes == 150
    assert answer.lower == pytest.approx(32 * lower_end(costs / 32, DELTA / 2), rel=1e-6)
    assert answer.upper == pytest.approx(32 * upper_end(costs / 32, DELTA / 2), rel=1e-6)


def longest_by_hand(paths, target, delta):
    """M: a fifth of δ over the caps, the other states and two bounds."""
    found = []
    for cap, weight in CAPS[:6]:
        share = 0.2 * delta * weight / (2 * 2)
        parts, rests = [], []
        for x in {0, 1, 2} - {target}:
            episodes_from = ended(paths, cap, start=x, arrived=[target])
            parts.append(cap * upper_end([steps / cap for _, steps in episodes_from], share))
            rests.append(upper_end([end != 1 for end, _ in episodes_from], share))
        if max(rests) < 1:
            found.append(max(parts) / (1 - max(rests)))
    return min(found)


def test_a_passage_time_spends_a_fifth_of_delta_on_m_and_two_fifths_on_each_end():
    paths = short_walk()
    answer = cs.answer(paths, cs.PassageTime(2, 0), delta=DELTA)
    whole = ended(paths, 10**9)
    stacks = decks_of(paths)
    running = episodes(stacks, terms_of(cs.PassageTime(2, 0), range(3)), 2**62).running
    times = [steps for _, steps in whole] + [running] * bool(running)
    assert answer.lower == pytest.approx(lower_end(times, 0.4 * DELTA), rel=1e-6)
    bound = longest_by_hand(paths, 2, DELTA)
    uppers = [bound]
    for cap, weight in CAPS[:6]:
        times = np.array([steps if end == 1 else cap + bound for end, steps in ended(paths, cap)])
        level = math.log(1 / (0.4 * DELTA * weight))
        low, high = times.mean(), cap + bound
        for _ in range(60):
            middle = (low + high) / 2
            kept = [g / cap for g in BETS if g / cap * (cap + bound - middle) <= 0.999]
            logs = [np.log1p(-bet * (times - middle)).sum() for bet in kept]
            rejected = len(kept) and np.logaddexp.reduce(logs) - math.log(44) >= level
            low, high = (low, middle) if rejected else (middle, high)
        uppers.append(high)
    assert answer.upper == pytest.approx(min(uppers), rel=1e-6)


@pytest.mark.parametrize(("anchor", "part"), [(0, 1.0), (None, 1 / 3)])
def test_a_share_spends_a_fifth_of_delta_on_m_and_two_fifths_on_each_end(anchor, part):
    paths = Paths.from_walks([walk(MATRIX, 3000, np.random.default_rng(4))], 3)
    answer = cs.answer(paths, cs.LongRunShare(2, anchor=anchor), delta=DELTA)
    lows = []
    for place in [anchor] if anchor is not None else range(3):
        bound = longest_by_hand(paths, place, DELTA * part)
        for cap, weight in CAPS[:7]:
            gains = cycles_by_hand(paths, place, cap)
            level = math.log(1 / (0.4 * DELTA * part * weight))
            kept = [g / cap for g in BETS if g / cap * (cap + bound) <= 0.999]
            low, high = 1e-6, 1.0
            for _ in range(60):
                middle = (low + high) / 2
                moves = np.array([a * (1 / middle - 1) - b - early * bound for a, b, early in gains])
                logs = [np.log1p(bet * moves).sum() for bet in kept]
                rejected = len(kept) and np.logaddexp.reduce(logs) - math.log(44) >= level
                low, high = (middle, high) if rejected else (low, middle)
            lows.append(low)
    assert answer.lower == pytest.approx(max(lows), rel=1e-5)


def cycles_by_hand(paths, anchor, cap):
    """(time in state 2, time elsewhere, stopped early) of each cycle."""
    stacks = {row: cards[::-1] for row, cards in decks(paths).items()}
    found = []
    while True:
        x, inside, outside = anchor, int(anchor == 2), int(anchor != 2)
        while True:
            if not stacks.get(x):
                return found
            x = stacks[x].pop()
            if x == anchor:
                found.append((inside, outside, 0))
                break
            if x != 2 and outside >= cap:
                found.append((inside, outside, 1))
                break
            inside, outside = inside + (x == 2), outside + (x != 2)


def test_a_row_has_its_part_of_delta():
    """Of two states: the largest probability of the set has exactly the least likelihood allowed."""
    table = np.array([[30, 5], [2, 9]])
    rows = robust.rows_of(cs.Counts.from_transitions(table), terms_of(cs.Reach(0, 1), range(2)), DELTA)
    value = np.array([0.0, 1.0])
    for upper in (True, False):
        found = robust.extremes(rows, value, np.ones(2, dtype=bool), upper=upper)
        for x in range(2):
            p = np.array([1 - found[x], found[x]])
            n = table[x]
            mixture = (
                math.lgamma(1) - math.lgamma(n.sum() + 1) + sum(math.lgamma(k + 0.5) - math.lgamma(0.5) for k in n)
            )
            assert mixture - float(n @ np.log(p)) == pytest.approx(math.log(2 / DELTA), abs=1e-6)


# -- counts without their order


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32))
def test_the_worst_row_of_a_set_is_the_worst_of_all_likely_rows(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 8, (3, 3))
    counts = cs.Counts.from_transitions(table)
    value = rng.random(3)
    delta = 0.05
    rows = robust.rows_of(counts, terms_of(cs.Reach(0, 1), range(3)), delta)
    wanted = np.ones(3, dtype=bool)
    high, low = (robust.extremes(rows, value, wanted, upper=upper) for upper in (True, False))
    step = 60
    simplex = [(i / step, j / step, (step - i - j) / step) for i in range(step + 1) for j in range(step + 1 - i)]
    for x in range(3):
        inside = [np.dot(p, value) for p in simplex if likely(p, table[x], math.log(3 / delta))]
        assert low[x] <= min(inside)
        assert max(inside) <= high[x]
        assert high[x] - max(inside) < 0.05  # as near as the grid is fine
        assert min(inside) - low[x] < 0.05


@pytest.mark.parametrize("name", ["dense", "rare failure"])
def test_sets_of_rows_hold_the_truth_and_are_wider_than_replay(name):
    paths = sample(CHAINS[name](), 0, 8_000, np.random.default_rng(8))
    for question, truth in questions(name):
        ordered, unordered = cs.answer(paths, question), cs.answer(paths.counts(), question)
        assert ordered.lower <= truth <= ordered.upper
        assert unordered.lower <= truth <= unordered.upper
        assert (ordered.method, unordered.method) == ("replay", "row-likelihood")
        assert ordered.guaranteed
        assert unordered.guaranteed
    assert cs.answer(paths.counts(), cs.LongRunShare(0)).width == 1


def test_impossible_transitions_narrow_the_sets():
    counts = walked(2000).counts()
    plain = cs.answer(counts, "time to down from idle")
    told = cs.answer(counts, "time to down from idle given down -> busy impossible, busy -> busy impossible".replace(
        ", busy -> busy impossible", ""))  # fmt: skip
    assert told.width <= plain.width
    with pytest.raises(InputError, match=r"'busy' -> 'busy' is declared impossible, and was seen \d+ times"):
        cs.answer(counts, "reach down from idle within 5 given busy -> busy impossible")


# -- what is not known is said


def test_a_passage_time_through_a_state_that_was_never_left_is_not_bounded():
    paths = Paths.from_walks([["a", "b"] * 200], ["a", "b", "c"])
    answer = cs.answer(paths, "time to b from a")
    assert answer.upper == math.inf
    assert "no exit of the state 'c' is known, and it may be a trap" in answer.notes[0]
    bounded = cs.answer(paths, "time to b from a given a -> c impossible")
    assert 1 <= bounded.upper < 1.2
    assert "is declared absorbing and may be reached" in cs.answer(paths, "time to b from a given c absorbing").notes[0]
    assert cs.answer(paths, "share of a").width == 1


def test_open_states_bound_no_passage_time_unless_they_are_complete():
    paths = Paths.from_walks([["a", "b"] * 200])
    assert cs.answer(paths, "time to b from a").upper == math.inf
    assert cs.answer(paths, "time to b from a given complete").upper < 2
    assert cs.answer(paths, "share of a").width == 1
    assert cs.answer(paths, "share of a given complete").width < 0.2
    assert cs.answer(paths, "reach b from a within 1").lower > 0.9
    unknown = cs.answer(paths, "reach b from z within 1")
    assert (unknown.lower, unknown.upper, unknown.waiting_for) == (0, 1, "z")
    assert cs.answer(paths, "reach z from a within 3").upper < 0.1
    assert cs.answer(paths.counts(), "reach b from a within 1").width == 1


def test_a_closed_set_that_is_not_declared_leaves_episodes_undecided():
    rng = np.random.default_rng(0)
    walks = [["s", "win"] if rng.random() < 0.5 else ["s", *["trap"] * 200] for _ in range(300)]
    paths = Paths.from_walks(walks, ["s", "win", "trap"])
    plain = cs.answer(paths, "reach win from s")
    assert plain.upper == 1
    assert "of the episodes were not decided" in " ".join(plain.notes)
    told = cs.answer(paths, "reach win from s given trap absorbing")
    assert told.upper < 0.65
    assert told.lower > 0.3


def test_a_draw_that_was_given_up_late_stops_its_row():
    source, target = [START, 0, 0, 0], [0, LOST, 1, 1]
    paths = Paths(2, path=[0] * 4, step=range(4), source=source, target=target, told=[1, 2, 2, 3])
    answer = cs.answer(paths, cs.Reach(1, 0, within=1))
    assert (answer.episodes, answer.waiting_for) == (0, 0)
    notes = " ".join(answer.notes)
    assert "the replay stands still at an exit of 0: a draw of it was given up" in notes
    assert "unless losses='independent' is declared (--losses independent)" in notes
    assert "1 draw was given up, because a path ended before its next state was told" in notes  # not an observation
    assert cs.answer(paths, cs.Reach(1, 0, within=1), losses="independent").episodes == 2


def test_a_question_asked_late_reads_only_later_cards():
    paths = walked(2000)
    late = cs.answer(paths, "reach down from idle within 5", asked=1500)
    whole = cs.answer(paths, "reach down from idle within 5")
    assert late.episodes < whole.episodes / 2
    assert not any("beforehand" in note for note in late.notes)
    assert any("as if asked beforehand" in note for note in whole.notes)


def test_several_questions_share_delta():
    found = cs.answer(walked(500), ["reach down from idle within 5", "reach busy from idle within 5"], delta=0.1)
    assert [answer.delta for answer in found] == [0.1 / 2, 0.1 / 6]


@pytest.mark.parametrize(
    ("data", "question", "options", "words"),
    [
        (CHAIN, "reach dwn from idle", {}, r"unknown state 'dwn' \(did you mean down\?\)"),
        (CHAIN, 7, {}, "a question must be a Reach"),
        (7, "reach down", {}, "a question is answered for a MarkovChain, Paths or Counts, not for 7"),
        (CHAIN, "reach down from idle", {"method": "replay"}, "the answer for a known matrix is exact"),
        (CHAIN, "reach down from idle", {"delta": 1}, "delta .* must be a finite number > 0 and ≤ 0.5, not 1"),
        (CHAIN, "reach down from idle", {"method": "magic"}, "method must be one of"),
        (CHAIN, "reach down from idle", {"losses": "some"}, "losses must be one of"),
        (CHAIN, "reach down from idle", {"asked": -1}, "asked .* must be a whole number ≥ 0"),
        (walked(9).counts(), "reach down from idle", {"method": "replay"}, "counts have no order"),
        (walked(9).counts(), "reach down", {}, "do not say where paths start"),
        (cs.Counts(2, correlated=True), "reach 1 from 0", {}, "overlap in time"),
        (Paths.from_walks([["a", "b"]]), "share of a anchor z", {}, "the anchor 'z' is a state that was not seen"),
    ],
)
def test_bad_input_gets_one_sentence(data, question, options, words):
    with pytest.raises(InputError, match=words):
        cs.answer(data, question, **options)


def test_unordered_paths_get_the_wider_bound_and_say_why():
    paths = walked(500)
    arrays = {name: getattr(paths, name) for name in ("path", "step", "source", "target", "issued", "told")}
    unordered = Paths(LABELS, **arrays, unordered="nobody knows")
    answer = cs.answer(unordered, "reach down from idle within 5")
    assert (answer.method, answer.notes[0]) == ("row-likelihood", "not replayed: nobody knows")
    with pytest.raises(InputError, match="these paths cannot be replayed: nobody knows"):
        cs.answer(unordered, "reach down from idle within 5", method="replay")


def test_data_that_are_no_chain_are_noticed():
    """Half of the cards of a row are ones, then zeros: no interval is left that holds at all times."""
    assert ever_missed([1.0] * 2000 + [0.0] * 2000, 0.9, math.log(40))


def test_an_answer_prints_as_a_person_wants_to_read_it():
    text = str(cs.answer(walked(4000), "reach down from idle within 5", asked=0))
    assert text.splitlines()[0].startswith("reach down from idle within 5: 0.1")
    assert "with probability 0.95 (replay, " in text
    assert str(cs.answer(CHAIN, "time to down from idle")) == "time to down from idle: 34 (exact)"
    assert cs.answer(Paths.from_walks([["a"]], ["a", "b"]), "time to b from a").width == math.inf


def test_an_answer_as_a_data_frame():
    import pandas as pd

    paths = Paths.from_walks([np.random.default_rng(0).integers(2, size=180)], 2)
    answers = [cs.answer(paths, line, delta=0.1) for line in ("reach 1 from 0 within 2", "time to 1 from 0")]
    table = pd.concat([found.to_pandas() for found in answers], ignore_index=True)
    assert list(table["question"]) == ["reach 1 from 0 within 2", "time to 1 from 0"]
    assert list(table["upper"]) == [found.upper for found in answers]
    assert list(table["width"]) == [found.width for found in answers]
    assert list(table["waiting_for"]) == [found.waiting_for for found in answers]
    assert bool(table["guaranteed"].all())


def test_a_state_that_was_never_seen_is_named():
    """A slip of the pen in a question about a chain whose states are not all known looks like a rare event."""
    paths = cs.Paths.from_walks([["up", "failed"] * 20])
    found = cs.answer(paths, "reach fail from up within 5")
    assert "the state 'fail' has never been seen (did you mean failed?)" in found.notes
    assert not any("never been seen" in note for note in cs.answer(paths, "reach failed from up within 5").notes)


def test_a_question_without_a_start_says_what_it_waits_for():
    found = cs.answer(cs.Paths.from_walks([["up", "failed"] * 20]), "reach failed within 5 given starts alike")
    waits = "the replay waits for the start of a path; no start was named, so that only the first states of paths count"
    assert waits in found.notes
