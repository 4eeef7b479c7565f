"""The generator: published answers, laws of the tables, independence of streams."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from engine_problems import UNLIKE, scaled
from scipy.stats import chi2

import chainscout as cs
from chainscout.engine import Options, run, trace
from chainscout.engine.cpu import State, prepare
from chainscout.errors import InputError
from chainscout.random import Walk, alias
from chainscout.random.splitmix import GOLDEN, MASK, mix, mix_gamma, sample, stream
from chainscout.sources import Environment
from trials import Effort

#: The first outputs of SplitMix64 from the seed 1234567 (Vigna's public-domain C, splitmix64.c).
PUBLISHED = (
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
)


def splitmix64(seed):
    """Steele, Lea & Flood 2014, line by line on 64-bit words of NumPy."""
    state = np.array([seed], dtype=np.uint64)
    while True:
        state += np.uint64(0x9E3779B97F4A7C15)
        z = state.copy()
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        yield int((z ^ (z >> np.uint64(31)))[0])


def test_published_answers():
    assert tuple(mix((1234567 + u * GOLDEN) & MASK) for u in range(1, 6)) == PUBLISHED
    assert tuple(itertools.islice(splitmix64(1234567), 5)) == PUBLISHED


def test_a_word_stays_a_word():
    for z in (0, 1, MASK, GOLDEN, 1 << 63):
        assert 0 <= mix(z) <= MASK
        assert 0 <= mix_gamma(z) <= MASK


def test_gammas_are_odd_and_not_nearly_periodic():
    gammas = [mix_gamma(z) for z in range(3000)]
    assert all(gamma % 2 == 1 for gamma in gammas)
    assert min((gamma ^ (gamma >> 1)).bit_count() for gamma in gammas) >= 24


def test_streams_are_unlike():
    streams = {stream(seed, r, k) for seed in range(4) for r in range(40) for k in range(40)}
    assert len(streams) == 4 * 40 * 40
    assert len({gamma for _, gamma in streams}) == 4 * 40 * 40


def test_compiled_streams_have_the_same_bits():
    states = [
        State(prepare(UNLIKE, cs.policies.get("scout"), 10, Options(engine=engine)), 7, 5, 8)
        for engine in ("python", "cpu")
    ]
    assert (states[0].words == states[1].words).all()
    assert (states[0].prepared.table == states[1].prepared.table).all()
    assert (states[0].prepared.laws == states[1].prepared.laws).all()


def uniforms(seed, replication, chain, length):
    position, gamma = stream(seed, replication, chain)
    return np.array([mix((position + u * gamma) & MASK) for u in range(1, length + 1)]) / 2.0**64


def test_streams_are_uncorrelated_with_each_other_and_with_themselves_shifted():
    length = 4096
    draws = np.array([uniforms(s, r, k, length) for s in range(2) for r in range(6) for k in range(6)]) - 0.5
    draws /= np.sqrt(1 / 12)
    # A mean of ``length`` products of independent uniforms has standard deviation 1/√length; 5 of them over
    # 72·71/2 pairs and 72·8 lags leave a chance of 0.002.
    products = draws @ draws.T / length
    assert np.abs(products[np.triu_indices(len(draws), 1)]).max() < 5 / np.sqrt(length)
    for lag in range(1, 9):
        shifted = (draws[:, lag:] * draws[:, :-lag]).mean(axis=1)
        assert np.abs(shifted).max() < 5 / np.sqrt(length - lag)
        crossed = (draws[1:, lag:] * draws[:-1, :-lag]).mean(axis=1)
        assert np.abs(crossed).max() < 5 / np.sqrt(length - lag)


def test_draws_are_uniform():
    counts = np.histogram(np.concatenate([uniforms(3, r, k, 2000) for r in range(8) for k in range(8)]), 256, (0, 1))[0]
    expected = counts.sum() / 256
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, 255)


@pytest.mark.parametrize(
    "law", [[1.0], [0.5, 0.5], [0.0, 1.0], [0.2, 0.3, 0.5], [1e-9, 1 - 1e-9], [0.0, 0.7, 0.0, 0.3]]
)
def test_an_alias_table_has_its_law(law):
    law = np.array(law)
    size = len(law)
    table = [0] * size
    alias.fill(table, 0, size, 1, size, alias.parts(law).tolist(), [0] * size, [0] * size)
    masses = np.zeros(size)
    for column, word in enumerate(table):
        threshold, other = word >> 32, word & 0xFFFFFFFF
        masses[column] += threshold / 2**32
        masses[other] += 1 - threshold / 2**32
    assert np.abs(masses / size - law).max() <= 2.0**-32
    assert (masses[law == 0] == 0).all()
    # The ends of the generator's range are taken by outcomes that can happen.
    for draw in (0, MASK, *(c << 62 for c in range(4))):
        assert law[sample(draw, size, table, 0)] > 0


#: Laws whose parts, rounded one by one, do not sum to S·2³²: by how much they miss. Outcomes of probability 0 stand
#: first, in the middle and last, and the likeliest is never the first.
UNEVEN = {
    (0.0, 0.2, 0.2, 0.2, 0.2, 0.2): 1,
    (0.0, *[1 / 6] * 6): -2,
    (0.15, 0.0, 0.4, 0.3, 0.15, 0.0): 1,
    (1 / 7, 0.0, 3 / 7, 3 / 7, 0.0): -1,
    (1e-12, 0.0, 0.0, 1 - 1e-12): 0,
    (0.0, 1 / 11, 3 / 11, 2 / 11, 5 / 11, 0.0, 0.0): -1,
}


@pytest.mark.parametrize(("law", "left_over"), UNEVEN.items())
def test_what_rounding_leaves_over_goes_to_the_likeliest_outcome(law, left_over):
    law, size = np.array(law), len(law)
    found = [int(part) for part in alias.parts(law)]
    rounded = [round(Fraction(float(p)) * size * 2**32) for p in law]
    likeliest = int(law.argmax())
    assert size * 2**32 - sum(rounded) == left_over
    assert sum(found) == size * 2**32
    assert [part for y, part in enumerate(found) if y != likeliest] == [
        part for y, part in enumerate(rounded) if y != likeliest
    ]
    assert found[likeliest] == rounded[likeliest] + left_over
    assert all(part == 0 for part, p in zip(found, law, strict=True) if p == 0)


@pytest.mark.parametrize("law", UNEVEN)
def test_an_outcome_of_probability_zero_is_never_drawn(law):
    """Exactly, from the table: each column's threshold, and the rest of it, lead to outcomes that can happen."""
    size = len(law)
    table, parts = [0] * size, [int(part) for part in alias.parts(np.array(law))]
    alias.fill(table, 0, size, 1, size, parts.copy(), [0] * size, [0] * size)
    masses = [0] * size
    for column, word in enumerate(table):
        threshold, other = word >> 32, word & 0xFFFFFFFF
        assert threshold == 0 or law[column] > 0
        assert law[other] > 0
        masses[column] += threshold
        masses[other] += 2**32 - threshold
    assert masses == parts  # the table has the parts, to the last of them


def test_many_laws_are_cut_as_each_one_is():
    laws = np.array([[0.0, 0.2, 0.2, 0.2, 0.2, 0.2], [0.7, 0.1, 0.1, 0.1, 0.0, 0.0]])
    assert (alias.parts(laws) == np.array([alias.parts(law) for law in laws])).all()


def test_a_walk_is_what_the_engine_counts():
    _, pulls = run(UNLIKE, "scout", [400], range(3, 4), Options(seed=11))
    prepared = prepare(UNLIKE, cs.policies.get("scout"), 400, Options())
    state = State(prepared, 11, 3, 4)
    state.run(400)
    chains = list(UNLIKE.chains.values())
    for block in prepared.blocks:
        counted = state.counts(block)[0]
        for j in range(block.number):
            k = block.first + j
            path = itertools.islice(Walk(chains[k], k, replication=3, seed=11), int(pulls[0, 0, k]))
            assert (cs.Counts.from_path(path, block.size).transitions == counted[j]).all()


def test_transition_frequencies():
    """Every row's counts against its law: χ² at a total chance of a false alarm of 10⁻⁶."""
    problem = cs.problems.get("dirichlet", chains=6, states=7, concentration=0.5, seed=5)
    prepared = prepare(problem, cs.policies.get("uniform"), 10**6, Options())
    state = State(prepared, 1, 0, 4)
    state.run(scaled(600_000, 40_000))
    total, freedom = 0.0, 0
    for block in prepared.blocks:
        counts = state.counts(block)
        expected = counts.sum(axis=-1, keepdims=True) * block.matrices
        assert (counts[expected == 0] == 0).all()
        used = np.broadcast_to(expected >= 5, counts.shape)
        assert used.mean() > 0.6
        # Cells that are too rare for χ² are merged into one; rows without any have one cell less to spare.
        merged_counts, merged = np.where(used, 0, counts).sum(axis=-1), np.where(used, 0, expected).sum(axis=-1)
        total += ((counts - expected)[used] ** 2 / expected[used]).sum()
        total += ((merged_counts - merged)[merged > 0] ** 2 / merged[merged > 0]).sum()
        freedom += used.sum() + (merged > 0).sum() - np.prod(counts.shape[:-1])
    assert chi2.ppf(1e-6, freedom) < total < chi2.ppf(1 - 1e-6, freedom)


def test_first_states_follow_the_initial_law():
    chain = cs.MarkovChain(np.full((3, 3), 1 / 3), initial=[0.5, 0.0, 0.5])
    first = [next(Walk(chain, replication=replication)) for replication in range(2000)]
    counts = np.bincount(first, minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 1000) < 5 * np.sqrt(500)


# -- seeds and replications as they are given

SEEDED = {
    "compare": lambda seed: cs.compare(UNLIKE, ["uniform"], [20], 2, seed=seed, engine="python").loss.tolist(),
    "run": lambda seed: run(UNLIKE, "scout", [60], range(2), Options(seed=seed, engine="python"))[1].tolist(),
    "trace": lambda seed: trace(UNLIKE, "scout", 60, options=Options(seed=seed, engine="python"))[0].tolist(),
    "trace, compiled": lambda seed: trace(UNLIKE, "scout", 60, options=Options(seed=seed, engine="cpu"))[0].tolist(),
    "walk": lambda seed: list(itertools.islice(Walk(UNLIKE["chain-0"], seed=seed), 20)),
    "simulated": lambda seed: [cs.simulated(UNLIKE, seed=seed)["chain-0"].advance() for _ in range(2)],
    "learn": lambda seed: [line.state for line in cs.learn(UNLIKE, 30, seed=seed, progress=False).log()],
    "environment": lambda seed: Environment("FrozenLake-v1", seed=seed).advance(),
    "trials": lambda seed: Effort(seed=seed) and None,
}
REPLICATED = {
    "trace": lambda number: trace(UNLIKE, "scout", 60, number, Options(engine="python"))[0].tolist(),
    "trace, compiled": lambda number: trace(UNLIKE, "scout", 60, number, Options(engine="cpu"))[0].tolist(),
    "walk": lambda number: list(itertools.islice(Walk(UNLIKE["chain-0"], replication=number), 20)),
    "simulated": lambda number: [cs.simulated(UNLIKE, replication=number)["chain-0"].advance() for _ in range(2)],
}


@pytest.mark.parametrize("wrong", [-1, 2**64, 2**64 + 5, "x", 1.5, True, [3]], ids=str)
@pytest.mark.parametrize("entry", SEEDED)
def test_what_is_no_seed_is_refused_everywhere_in_the_same_words(entry, wrong):
    limit = "below" if wrong in (2**64, 2**64 + 5) else "a whole number ≥ 0"
    with pytest.raises(InputError, match=rf"^seed \(what all randomness follows from\) must be {limit}.*, not "):
        SEEDED[entry](wrong)


@pytest.mark.parametrize("wrong", [-1, 2**64 + 5, "x", 1.5], ids=str)
@pytest.mark.parametrize("entry", REPLICATED)
def test_what_is_no_replication_is_refused_everywhere_in_the_same_words(entry, wrong):
    with pytest.raises(InputError, match=r"^replication \(the number of a run .*\) must be .*, not "):
        REPLICATED[entry](wrong)
    with pytest.raises(InputError, match=r"^replication .* must be below 2\*\*64"):
        run(UNLIKE, "scout", [20], range(2**64, 2**64 + 2), Options(engine="python"))


@pytest.mark.parametrize("entries", [SEEDED, REPLICATED], ids=["seeds", "replications"])
def test_a_number_is_the_same_however_it_is_written(entries):
    for entry in entries.values():
        assert entry(5.0) == entry(np.int64(5)) == entry(5)
        entry(2**64 - 1)


def test_a_walk_goes_on_behind_any_draw():
    chain = UNLIKE["chain-1"]
    whole = list(itertools.islice(Walk(chain, 1, seed=8), 50))
    for draws in range(50):
        walk = Walk(chain, 1, seed=8)
        next(walk)  # where it stood before does not matter
        walk.resume(draws, whole[draws - 1] if draws else None)
        assert walk.is_fresh == (draws == 0)
        assert list(itertools.islice(walk, 50 - draws)) == whole[draws:]
    chain = cs.MarkovChain(np.eye(3), initial=[0.2, 0.3, 0.5])
    walk = Walk(chain, seed=8)
    starts = []
    for _ in range(40):
        starts.append(next(walk))
        assert not walk.is_fresh
        walk.restart()
    assert set(starts) == {0, 1, 2}
    walk.resume(17, None)
    assert [next(walk)] == starts[17:18]


def test_every_path_of_a_chain_has_a_stream_of_its_own():
    """Path 1 is the experiment's. None of 300 others repeats it or another, and their draws are as good."""
    chain = cs.MarkovChain(np.full((4, 4), 0.25))
    walk, found = Walk(chain, 1, seed=8, replication=2), []
    assert list(itertools.islice(walk, 60)) == list(itertools.islice(Walk(chain, 1, seed=8, replication=2), 60))
    for path in range(1, 301):
        walk.take(path)
        assert walk.is_fresh
        found.append(list(itertools.islice(walk, 60)))
        walk.resume(20, found[-1][19])
        assert list(itertools.islice(walk, 40)) == found[-1][20:]
    assert found[0] == list(itertools.islice(Walk(chain, 1, seed=8, replication=2), 60))
    assert len({tuple(path) for path in found}) == 300
    assert len({tuple(path[20:30]) for path in found} & {tuple(path[30:40]) for path in found}) == 0
    counts = np.bincount(np.ravel(found), minlength=4)
    assert ((counts - 4500) ** 2 / 4500).sum() < chi2.ppf(1 - 1e-6, 3)
