"""Whether answers hold at all times, and whether what would break them is noticed (MATH §11).

Chains are sampled as hostile as the theory allows: restarts that depend on values, copies side by side whose delays
depend on values, draws that are cancelled after looking at later ones. Answers are looked at after every episode.
Mutants, each with one rule of the method broken, must miss far more often than δ.
"""

import math

import numpy as np
import pytest
from answer_trials import ASKED, CHAINS, early, questions, sample
from reference_answers import BETS, decks, ever_missed, log_wealth, replay
from scipy.stats import binom

import chainscout as cs
from chainscout.answers import betting
from chainscout.answers._intervals import PART_OF_AN_END, cap_weight
from chainscout.answers._terms import ARRIVED, ON, terms_of
from chainscout.answers.replay import cycles, decks_of, episodes, returns
from chainscout.errors import NothingFree
from chainscout.paths import LOST

#: How a chain is sampled.
WAYS = {
    "one walker": {},
    "four walkers": {"walkers": 4},
    "cancelled draws": {"walkers": 4, "cancels": True},
    "chosen rows": {"walkers": 2, "adaptive": True},
}


def most_misses(delta, runs):
    """The largest number of misses that a probability ≤ δ has with 99.9 %."""
    return int(binom.ppf(0.999, runs, delta))


def above(values, truth, scale, largest):
    """The largest log wealth against 'the mean is the truth' with fixed bets, looked at after every episode."""
    kept = np.array([gamma / scale for gamma in BETS if gamma / scale * (largest - truth) <= 0.999])
    if not len(values) or not len(kept):
        return -math.inf
    logs = np.cumsum(np.log1p(-kept[:, None] * (values - truth)), axis=1)
    return np.logaddexp.reduce(logs, axis=0).max() - math.log(len(BETS))


def share_above(found, truth, scale, rest):
    """The largest log wealth of cycles against 'the share is the truth'."""
    kept = np.array([gamma / scale for gamma in BETS if gamma / scale * (scale + rest) <= 0.999])
    gains = found.inside * (1 / truth - 1) - found.outside - found.early * rest
    if not len(gains) or not len(kept):
        return -math.inf
    logs = np.cumsum(np.log1p(kept[:, None] * gains), axis=1)
    return np.logaddexp.reduce(logs, axis=0).max() - math.log(len(BETS))


def below(values, truth):
    """The largest log wealth for values ≥ 0 against 'the mean is at most the truth'."""
    return log_wealth(values, truth).max() if len(values) and truth > 0 else -math.inf


def excess(matrix, stacks, question, truth):
    """The answer was wrong after some episode if and only if this is at least log(1/δ).

    It is the largest log wealth against the truth, less the log of what δ is divided by. M is the true one, the least
    that is valid.
    """
    terms = terms_of(question, range(len(matrix)))
    caps = [(4**k, 1 / cap_weight(k)) for k in range(7)]
    if isinstance(question, cs.Reach) and question.within is not None:
        found = episodes(stacks, terms, question.within).result == ARRIVED
        return max(below(found, truth), below(1 - found, 1 - truth)) - math.log(2)
    if isinstance(question, cs.Reach):
        largest = -math.inf
        for cap, parts in caps:
            found = episodes(stacks, terms, cap).result
            failed = (found != ARRIVED) & (found != ON)
            wealth = max(below(found == ARRIVED, truth), below(failed, 1 - truth))
            largest = max(largest, wealth - math.log(2 * parts))
        return largest
    if isinstance(question, cs.Cost):
        found = returns(stacks, terms, question.steps, question.discount).value
        length = question.steps or 1 / (1 - question.discount)
        span, start = length * (terms.largest - terms.least), length * terms.least
        values, mean = np.clip((found - start) / span, 0, 1), (truth - start) / span
        return max(below(values, mean), below(1 - values, 1 - mean)) - math.log(2)
    anchor = terms.anchor
    others = [x for x in range(len(matrix)) if x != (question.target[0] if anchor is None else anchor)]
    inner = matrix[np.ix_(others, others)]
    longest = float(np.linalg.solve(np.eye(len(others)) - inner, np.ones(len(others))).max())
    largest = -math.inf
    if anchor is None:
        largest = below(episodes(stacks, terms, 2**62).length, truth) - math.log(1 / PART_OF_AN_END)
    for cap, parts in caps:
        if anchor is None:
            found = episodes(stacks, terms, cap)
            times = np.where(found.result == ARRIVED, found.length, cap + longest)
            wealth = above(times, truth, cap, cap + longest)
        else:
            wealth = max(
                share_above(cycles(stacks, terms, anchor, cap, complement=complement), share, cap, longest)
                for complement, share in ((False, truth), (True, 1 - truth))
            )
        largest = max(largest, wealth - math.log(parts / PART_OF_AN_END))
    return largest


def coverage(name, runs, cards, deltas, seed=0):
    """Misses for each question and δ; the ways of sampling take turns."""
    matrix, asked = CHAINS[name](), questions(name)
    found = {(str(question)[:12], delta): 0 for question, _ in asked for delta in deltas}
    for run in range(runs):
        rng = np.random.default_rng([seed, run, list(CHAINS).index(name)])
        way = list(WAYS)[run % len(WAYS)]
        stacks = decks_of(sample(matrix, ASKED[name][0], cards, rng, **WAYS[way]))
        for question, truth in asked:
            worst = excess(matrix, stacks, question, truth)
            for delta in deltas:
                found[str(question)[:12], delta] += worst >= math.log(1 / delta)
    return found


@pytest.mark.parametrize("name", CHAINS)
def test_answers_hold_at_all_times(name):
    runs = 24
    for (question, delta), misses in coverage(name, runs, 300, (0.05, 0.5)).items():
        assert misses <= most_misses(delta, runs), (question, delta)


@pytest.mark.soak
@pytest.mark.parametrize("name", CHAINS)
def test_answers_hold_in_two_thousand_runs(name, record_property):
    runs = 2000
    found = coverage(name, runs, 800, (0.05, 0.5), seed=1)
    lines = (f"{question}…, δ = {delta}: {misses} of {runs}" for (question, delta), misses in found.items())
    record_property("misses", "; ".join(lines))
    for (question, delta), misses in found.items():
        assert misses <= most_misses(delta, runs), (question, delta)


def looked_at(name, way, runs, cards, delta, looks, seed=0):
    """Misses of whole answers, with M from the data, at some looks."""
    matrix, asked = CHAINS[name](), questions(name)
    found = {str(question)[:12]: 0 for question, _ in asked}
    for run in range(runs):
        rng = np.random.default_rng([seed, run, 7, list(CHAINS).index(name)])
        paths = sample(matrix, ASKED[name][0], cards, rng, **WAYS[way])
        last = int(paths.told.max())
        for question, truth in asked:
            wrong = False
            for moment in np.unique(np.geomspace(20, last, looks).astype(int)):
                answer = cs.answer(early(paths, moment), question, delta=delta)
                wrong |= not answer.lower - 1e-9 <= truth <= answer.upper + 1e-9
            found[str(question)[:12]] += wrong
    return found


@pytest.mark.parametrize("name", ["dense", "sticky"])
def test_whole_answers_hold_wherever_one_looks(name):
    for misses in looked_at(name, "four walkers", 4, 600, 0.5, 3).values():
        assert misses <= most_misses(0.5, 4)


@pytest.mark.soak
@pytest.mark.parametrize("name", CHAINS)
def test_whole_answers_hold_in_many_runs(name, record_property):
    runs = 100
    found = looked_at(name, "four walkers", runs, 800, 0.5, 4, seed=2)
    record_property(
        "misses", "; ".join(f"{question}…, δ = 0.5: {misses} of {runs}" for question, misses in found.items())
    )
    for question, misses in found.items():
        assert misses <= most_misses(0.5, runs), question


# -- studies that stop by their answers

SLOW, QUICK = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.3, 0.4, 0.3], [0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])
LINES = {
    "slow": ["reach 1 from 0 within 2"],
    "quick": ["reach 2 before 1 from 0 ever", "cost 1=1, 2=2 from 0 over 3 steps"],
}


def lease_if_free(worker):
    """A lease; None if the worker is to wait for the other one, which is told in the same turn."""
    try:
        return worker.lease(wait=0)
    except NothingFree:
        return None


def stopped(runs, delta, width, seed=0):
    """Studies in which any answer was wrong at any look. Two workers a chain, whose larger values take longer."""
    chains = {"slow": SLOW, "quick": QUICK}
    truths = {
        (name, line): cs.answer(cs.MarkovChain(matrix), line).lower
        for name, matrix in chains.items()
        for line in LINES[name]
    }
    missed = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        study = cs.Study.create(None, {"slow": 2, "quick": 3}, 3000, delta=delta, questions=LINES, target_width=width)
        workers = [study.worker(name, renews=False) for name in ("one", "two")]
        while not study.finished:
            leases = [lease for worker in workers if (lease := lease_if_free(worker)) is not None]
            values = []
            for lease in leases:
                law = chains[lease.chain]
                values.append(int(rng.choice(len(law), p=law[0 if lease.state is None else lease.state])))
            for value, lease in sorted(zip(values, leases, strict=True), key=lambda pair: pair[0]):
                if not study.finished:
                    lease.tell(value)
        look = study.look()
        missed += any(
            not line.lower - 1e-12 <= truths[asked.chain, asked.question] <= line.upper + 1e-12
            for asked in study.questions()
            for line in look.answers(asked.number)
        )
    return missed


@pytest.mark.filterwarnings("ignore::chainscout.errors.MixedUnitsWarning")
def test_all_answers_of_studies_that_stop_hold_together():
    assert stopped(12, 0.5, 0.8) <= most_misses(0.5, 12)


@pytest.mark.filterwarnings("ignore::chainscout.errors.MixedUnitsWarning")
@pytest.mark.soak
def test_all_answers_of_studies_that_stop_hold_together_in_two_thousand_runs(record_property):
    for delta in (0.05, 0.5):
        misses = stopped(1000, delta, 0.7, seed=1)
        record_property(f"misses at {delta}", f"{misses} of 1000")
        assert misses <= most_misses(delta, 1000)


# -- mutants: each breaks one rule, and must be caught


COIN = np.array([[0.5, 0.5], [0.5, 0.5]])
#: From 0 to 1 or 2 alike; 1 and 2 lead to 3 (the target) or to 4 with different probabilities; both lead back.
FORK = np.array([[0, 0.5, 0.5, 0, 0], [0, 0, 0, 0.8, 0.2], [0, 0, 0, 0.2, 0.8], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]])
RUNS, DELTA = 60, 0.05
LEVEL = math.log(2 / DELTA)


def missed_runs(returns_of, truth, runs=RUNS):
    """How many of the runs had an end that was ever wrong."""
    return sum(ever_missed(returns_of(np.random.default_rng(run)), truth, LEVEL) for run in range(runs))


def one_step(paths, **options):
    """The returns of 'reach 1 from 0 within 1'."""
    return [end == 1 for end, _ in replay(decks(paths, **options), 0, {1}, set(), 1)]


def side_by_side(rng, walkers=200):
    """Many walkers draw from one row at once, and a one takes longer than a zero."""
    values = (rng.random(walkers) < 0.5).astype(int)
    told = np.empty(walkers, dtype=int)
    told[np.argsort(values, kind="stable")] = np.arange(1, walkers + 1)
    order = np.arange(walkers)
    return cs.Paths(2, path=order, step=order + 1, source=0 * order, target=values, told=told)


def test_mutant_cards_in_the_order_of_arrival():
    """Looked at whenever a value arrives."""

    def wrong(rng, arrival):
        paths = side_by_side(rng)
        for moment in range(10, len(paths) + 1, 10):
            known = early(paths, moment)
            order = [place for place in np.argsort(known.told, kind="stable") if known.told[place]]
            if ever_missed(one_step(known, order=order if arrival else None), 0.5, LEVEL):
                return True
        return False

    def misses(arrival):
        return sum(wrong(np.random.default_rng(run), arrival) for run in range(RUNS))

    assert misses(arrival=False) <= most_misses(DELTA, RUNS)
    assert misses(arrival=True) > 2 * most_misses(DELTA, RUNS)


def test_mutant_episodes_that_wait_are_given_up():
    def returns_of(rng, skip):
        walks = []
        for _ in range(300):  # whoever comes to 2 is restarted, so that 2 is hardly ever left
            x = int(1 + (rng.random() < 0.5))
            walks.append([0, x] if x == 2 and rng.random() < 0.95 else [0, x, int(rng.choice(5, p=FORK[x]))])
        stacks = decks(cs.Paths.from_walks(walks, 5))
        return [end == 1 for end, _ in replay(stacks, 0, {3}, {4}, 10, skip_waiting=skip)]

    assert missed_runs(lambda rng: returns_of(rng, skip=False), 0.5) <= most_misses(DELTA, RUNS)
    assert missed_runs(lambda rng: returns_of(rng, skip=True), 0.5) > 2 * most_misses(DELTA, RUNS)


def test_mutant_broken_episodes_are_dropped():
    def walks_of(rng):
        found = []
        for _ in range(300):  # half of those who come to 2 are restarted there
            x = int(1 + (rng.random() < 0.5))
            found.append([0, x] if x == 2 and rng.random() < 0.5 else [0, x, int(rng.choice(5, p=FORK[x]))])
        return found

    def kept(rng):
        stacks = decks(cs.Paths.from_walks(walks_of(rng), 5))
        return [end == 1 for end, _ in replay(stacks, 0, {3}, {4}, 10)]

    def dropped(rng):
        return [walk[-1] == 3 for walk in walks_of(rng) if len(walk) == 3]

    assert missed_runs(kept, 0.5) <= most_misses(DELTA, RUNS)
    assert missed_runs(dropped, 0.5) > 2 * most_misses(DELTA, RUNS)


def cancelled(rng, blocks=1000):
    """Two draws of one row at a time; the second arrives first, and then the first one is cancelled, or it is not.

    The question is 'reach 1 from 0 within 2'. Whoever cancels knows whether the replay has read a zero already, and
    keeps the first draw only where the second would complete two zeros.
    """
    source, target, told = [], [], []
    waits = False  # the replay has read one zero of an episode
    for block in range(blocks):
        first, second = (int(rng.random() < 0.5) for _ in range(2))
        keeps = waits and second == 0
        source += [0, 0]
        target += [first if keeps else LOST, second]
        told += [2 * block + (2 if keeps else 1), 2 * block + 1]
        waits = second == 0
    order = np.arange(len(source))
    return cs.Paths(2, path=order, step=order + 1, source=source, target=target, told=told)


def test_mutant_a_cancelled_card_is_skipped():
    def returns_of(rng, skips):
        stacks = decks_of(cancelled(rng), independent_losses=skips)
        return episodes(stacks, terms_of(cs.Reach(1, 0, within=2), range(2)), 2).result == ARRIVED

    assert missed_runs(lambda rng: returns_of(rng, skips=False), 0.75) <= most_misses(DELTA, RUNS)
    assert missed_runs(lambda rng: returns_of(rng, skips=True), 0.75) > 2 * most_misses(DELTA, RUNS)


def test_mutant_bets_that_move_with_the_bound_m():
    """One bet whose size follows M can be aimed after looking; one that is fixed cannot. δ = ½."""
    runs, steps = 200, 2000
    fixed, moving = 0, 0
    number = np.arange(1, steps + 1)
    for run in range(runs):
        ones = np.cumsum(np.random.default_rng(run).random(steps) < 0.5)
        wealth = [
            np.log1p(-bet * 0.5) * ones + np.log1p(bet * 0.5) * (number - ones)
            for bet in 0.999 / (2.0 ** (np.arange(60) / 2) - 0.5)  # M from 0 to 2³⁰, beside values in {0, 1}
        ]
        moving += np.max(wealth) >= math.log(2)
        fixed += np.max(wealth[0]) >= math.log(2)
    assert fixed <= most_misses(0.5, runs)
    assert moving > most_misses(0.5, runs)


def test_a_larger_m_never_gives_a_smaller_end():
    """Bets that move with M would break this, and with it the proof."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = np.sort(rng.integers(1, 16, 5)).astype(float)
        counts = rng.integers(1, 200, 5).astype(float)
        ends = [betting.most_mean_above(values, counts, 16 + m, 16.0, 3.0) for m in np.geomspace(1, 1e4, 9)]
        assert (np.diff(ends) >= -1e-8).all()
