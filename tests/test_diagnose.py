"""``diagnose``: what checks say of processes that are Markov chains and of processes that are not."""

import json
import math

import numpy as np
import pytest

import chainscout as cs
from chainscout.diagnostics import Kind, rejected_chains
from chainscout.diagnostics._diagnose import likely_change
from chainscout.errors import InputError
from chainscout.paths import LOST, PENDING, START, Paths

STATES = ["idle", "busy", "down"]
MATRIX = np.array([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.5, 0.25, 0.25]])


def walk(length, seed, matrix=MATRIX, start=0):
    rng = np.random.default_rng(seed)
    found = [start]
    while len(found) < length:
        found.append(int(rng.choice(len(matrix), p=matrix[found[-1]])))
    return found


def labelled(positions):
    return [STATES[x] for x in positions]


def remembering(length, seed):
    """After "busy", the next state is the one before "busy" more often than not."""
    rng = np.random.default_rng(seed)
    found = [0, 1]
    while len(found) < length:
        back = found[-1] == 1 and rng.random() < 0.6
        found.append(found[-2] if back else int(rng.choice(3, p=MATRIX[found[-1]])))
    return found


def of_walks(*walks, workers=None):
    return Paths.from_walks([labelled(each) for each in walks], STATES, workers=workers)


def one(diagnosis, kind, by=None, chain=None):
    return next(c for c in diagnosis if c.kind == kind and c.chain == chain and by in (None, c.by))


def test_a_markov_chain_that_does_not_change():
    found = cs.diagnose(of_walks(walk(3000, 1)), reference=cs.MarkovChain(MATRIX, states=STATES))
    assert [(check.kind, check.by) for check in found] == [
        ("order", "predecessor"), ("change", "time"), ("sameness", "age"), ("reference", "known matrix"),
    ]  # fmt: skip
    assert found.against == ()
    assert found.note is None
    assert str(found) == (
        "Nothing speaks against a Markov chain that does not change. That proves nothing: the data may be too few."
    )
    for check in found:
        assert check.chain is None
        assert check.level == pytest.approx(min(1.0, 1 / check.largest)) or check.kind is Kind.CHANGE
        assert check.sentence.endswith("That proves nothing.")
        assert check.history[-1][1] == pytest.approx(math.log(check.e_value))
    assert one(found, "order").cards == 2998
    assert one(found, "change").cards == 2999


def test_memory_beyond_the_state():
    data = of_walks(remembering(3000, 2))
    found = cs.diagnose(data)
    order = one(found, "order")
    assert found.against[0] is order  # also where change is set off too
    assert order.level < 1e-6
    assert order.where[0].state == "busy"
    assert 'after "busy", the next state depends on what came before "busy"' in order.sentence
    assert "memory beyond its state" in order.sentence
    assert found.note.startswith("the bound assumes that the next state depends on the state alone")
    assert "order (predecessor)" in found.note
    # Over pairs of states it is a Markov chain.
    assert cs.diagnose(data.lifted(2)).against == ()


def test_second_against_third_order():
    rng = np.random.default_rng(3)
    states = [0, 0, 1]
    while len(states) < 3000:
        states.append(states[-3] if rng.random() < 0.5 else int(rng.integers(2)))
    data = Paths.from_walks([states], 2)
    lifted = cs.diagnose(data.lifted(2))
    assert one(lifted, "order").level < 1e-6
    assert one(lifted, "order").where[0].state in [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert cs.diagnose(data.lifted(3)).against == ()


def test_a_change_says_when_and_where():
    other = MATRIX.copy()
    other[2] = [0.05, 0.05, 0.9]
    first = walk(2000, 4)
    states = first + walk(2000, 5, other, first[-1])[1:]
    found = cs.diagnose(of_walks(states))
    change = one(found, "change")
    assert change in found.against
    place = change.where[0]
    assert place.state == "down"
    assert place.first < 2000 + 300 < place.last
    assert abs(place.moment - 2000) < 100  # "down" is left every sixth step before the change
    assert (place.before, place.after) == pytest.approx((0.25, 0.9), abs=0.1)
    assert f"before draw {place.moment}, and {place.after:.0%} from then on" in change.sentence
    assert "memory beyond its state, which sets off this check too" in change.sentence
    assert change.level <= 2 * min(1.0, 1 / change.largest)


def test_a_worker_that_walks_another_chain():
    other = np.array([[0.2, 0.2, 0.6], [0.2, 0.2, 0.6], [0.2, 0.2, 0.6]])
    walks = [walk(150, seed, other if seed % 4 == 3 else MATRIX) for seed in range(24)]
    names = [f"rig {seed % 4}" for seed in range(24)]
    found = cs.diagnose(of_walks(*walks, workers=names))
    worker = one(found, "sameness", "worker")
    assert worker.level < 0.01
    assert worker.where[0].label == "rig 3"
    assert "most clearly for worker rig 3" in worker.sentence
    assert one(found, "sameness", "path").cards == 24 * 149


def test_a_path_that_has_not_warmed_up():
    cold = np.array([[0.98, 0.01, 0.01]] * 3)
    walks = []
    for seed in range(40):
        first = walk(16, seed, cold)
        walks.append(first + walk(60, 100 + seed, MATRIX, first[-1])[1:])
    found = cs.diagnose(of_walks(*walks))
    age = one(found, "sameness", "age")
    assert age.level < 1e-6
    assert {place.label for place in age.where} <= {"steps 1 to 16", "steps 17 to 128"}


def test_other_data_of_the_same_and_of_another_law():
    data, same, other = (of_walks(walk(2000, 6)), of_walks(walk(1500, 7)), of_walks(walk(1500, 8, MATRIX[::-1])))
    assert one(cs.diagnose(data, other=same), "sameness", "other data").level > 0.05
    found = cs.diagnose(data, other=other)
    assert one(found, "sameness", "other data").level < 1e-3
    assert found.kinds == 6
    assert "follow another law than in the other data" in one(found, "sameness", "other data").sentence


def test_a_known_matrix_that_is_not_the_process_s():
    wrong = cs.MarkovChain(0.6 * MATRIX + 0.4 / 3, states=STATES)
    assert one(cs.diagnose(of_walks(walk(2000, 9)), reference=wrong), "reference").level < 1e-6
    # States in another order are the same states; a state that the matrix does not know is impossible.
    turned = cs.MarkovChain(MATRIX[::-1, ::-1], states=STATES[::-1])
    assert one(cs.diagnose(of_walks(walk(2000, 9)), reference=turned), "reference").level > 0.05
    fewer = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["idle", "busy"])
    found = one(cs.diagnose(of_walks(walk(200, 9)), reference=fewer), "reference")
    assert (found.e_value, found.level) == (math.inf, 0.0)
    assert found.to_json()["e_value"] is None


def test_the_most_likely_change():
    assert likely_change(np.array([False] * 5 + [True] * 3)) == (5, 0.0, 1.0)
    assert likely_change(np.array([True])) == (0, 1.0, 1.0)


def test_an_estimate_is_no_reference():
    """A matrix from 1,000 transitions is not the process's: most of 10 processes that did not change are rejected."""
    rejected = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        matrix = rng.dirichlet(np.ones(5), 5)
        states = walk(4000, seed, matrix)
        earlier, later = Paths.from_walks([states[:1000]], 5), Paths.from_walks([states[1000:]], 5)
        estimate = cs.MarkovChain(earlier.counts().matrix())
        found = cs.diagnose(later, reference=estimate, other=earlier)
        rejected += one(found, "reference").level <= 0.05
        assert one(found, "sameness", "other data").level > 0.05 / 20
    assert rejected > 5


# -- several chains


def study_like(walks, order):
    """Paths of several chains whose draws were issued and told in one common order."""
    issued = {name: [j for j, who in enumerate(order, start=1) if who == name] for name in walks}
    found = {}
    for name, states in walks.items():
        number = len(issued[name])
        target = np.array(states[:number])
        source = np.concatenate([[START], target[:-1]])
        found[name] = Paths(
            STATES, path=np.zeros(number, int), step=np.arange(number), source=source, target=target,
            issued=issued[name], told=issued[name],
        )  # fmt: skip
    return found


def test_all_chains_together_and_the_one_to_blame():
    walks = {"north": walk(1500, 11), "south": remembering(1500, 12), "east": walk(1500, 13)}
    order = np.random.default_rng(0).permutation(np.repeat(list(walks), 1500)).tolist()
    found = cs.diagnose(study_like(walks, order))
    together = one(found, "order")
    singles = {name: one(found, "order", chain=name) for name in walks}
    mean = np.mean([check.e_value for check in singles.values()])
    assert together.e_value == pytest.approx(mean, rel=1e-9)
    # The largest of the mean, which is no more than the mean of the largest.
    assert together.largest <= np.mean([check.largest for check in singles.values()]) * (1 + 1e-9)
    assert together.level == pytest.approx(1 / together.largest)
    assert together.cards == sum(check.cards for check in singles.values())
    assert found.blamed[Kind.ORDER, "predecessor"] == ("south",)
    assert "Chains that order (predecessor) speaks against: south." in str(found)
    changes = [one(found, "change", chain=name).level for name in walks]
    assert one(found, "change").level == pytest.approx(min(1.0, 3 * min(changes)))
    assert all(check.chain is None for check in found.against)


def test_the_largest_of_the_mean_is_taken_in_the_common_order():
    """Chain a rises and falls before chain b moves, or after: the mean of both at one moment, whatever each reached."""
    walks = {"a": remembering(800, 14) + walk(3200, 15), "b": remembering(800, 16) + walk(3200, 17)}
    orders = {"together": ["a", "b"] * 4000, "one after the other": ["a"] * 4000 + ["b"] * 4000}
    found = {name: cs.diagnose(study_like(walks, order)) for name, order in orders.items()}
    for each in found.values():
        assert one(each, "order").e_value == pytest.approx(one(found["together"], "order").e_value, rel=1e-9)
    both = [one(each, "order").history for each in found.values()]
    assert both[0] != both[1]
    tops = [one(found["together"], "order", chain=name).largest for name in walks]
    for each in found.values():
        assert max(tops) / 2 * (1 - 1e-9) <= one(each, "order").largest <= sum(tops) / 2 * (1 + 1e-9)


def test_chains_without_a_common_order_are_averaged_as_they_stand():
    data = {"a": of_walks(remembering(600, 18) + walk(1400, 19)), "b": of_walks(walk(2000, 20))}
    found = cs.diagnose(data)
    together = one(found, "order")
    assert together.largest == max(1.0, together.e_value)
    assert together.e_value == pytest.approx(np.mean([one(found, "order", chain=name).e_value for name in data]))
    assert any("no common order of issue" in remark for remark in found.remarks)


def test_chains_that_join_later_share_what_was_set_aside():
    walks = {"a": walk(300, 21), "b": walk(300, 22), "c": walk(300, 23)}
    data = study_like(walks, ["a", "b"] * 200 + ["c"] * 300 + ["a", "b"] * 100)
    found = cs.diagnose(data, later=["b", "c"])
    values = {name: one(found, "order", chain=name).e_value for name in walks}
    # 1/2 for the first, 1/2·1/2 and 1/2·1/6 for those that joined; what joins later still has its share.
    assert one(found, "order").e_value == pytest.approx(values["a"] / 2 + values["b"] / 4 + values["c"] / 12)
    changes = {name: one(found, "change", chain=name).level for name in walks}
    expected = min(1.0, 2 * changes["a"], 4 * changes["b"], 12 * changes["c"])
    assert one(found, "change").level == pytest.approx(expected)


def test_which_chains_are_named():
    assert rejected_chains({"a": 60.0}, 0.05) == ("a",)
    assert rejected_chains({"a": 60.0, "b": 0.1}, 0.05) == ("a",)
    assert rejected_chains({"a": 30.0, "b": 0.1}, 0.05) == ()  # the mean of both is below 20
    assert rejected_chains({"a": 1000.0, "b": 25.0, "c": 0.0}, 0.05) == ("a",)
    assert rejected_chains({"a": 1000.0, "b": 40.0, "c": 1.0}, 0.05) == ("a", "b")
    by_hand = {"a": 90.0, "b": 70.0, "c": 1.0, "d": 0.5}
    for name in by_hand:
        rest = [value for other, value in by_hand.items() if other != name]
        subsets = [[r for j, r in enumerate(rest) if bits >> j & 1] for bits in range(8)]
        expected = all(np.mean([by_hand[name], *some]) >= 20 for some in subsets)
        assert (name in rejected_chains(by_hand, 0.05)) == expected


# -- the queue


def with_targets(targets, told=None, states=None):
    """One path over two workers' draws, given by sources and targets; the source is the last known state."""
    number = len(targets)
    targets = np.array(targets)
    return Paths(
        3, path=np.arange(number) % 2, step=np.arange(number) // 2,
        source=[START, START, *([0, 1] * number)[: number - 2]], target=targets, told=told,
    )  # fmt: skip


def test_nothing_is_judged_behind_a_pending_draw():
    targets = [0, 1] * 20
    all_known = cs.diagnose(with_targets(targets))
    targets[21] = PENDING
    found = cs.diagnose(with_targets(targets))
    assert found.waiting == 18
    assert "18 transitions wait: draw 22 is pending." in found.remarks
    assert one(all_known, "change").cards == 38
    assert one(found, "change").cards == 19
    assert one(found, "order").cards == 17


def test_a_pending_first_state_holds_nobody_up():
    data = of_walks(walk(50, 1))
    more = Paths(
        STATES, path=[1, *data.path], step=[0, *data.step], source=[START, *data.source],
        target=[PENDING, *data.target],
    )  # fmt: skip
    assert cs.diagnose(more).waiting == 0


@pytest.mark.parametrize("late", [False, True])
def test_a_lost_draw_is_skipped_unless_a_later_one_was_known(late):
    targets = [0, 1] * 20
    targets[21] = LOST
    told = np.arange(1, 41)
    told[22:] -= 1
    told[21] = 25 if late else 21  # how many values were known when it was given up
    found = cs.diagnose(with_targets(targets, told=told))
    assert found.waiting == (18 if late else 0)
    assert any("given up after a later one was known" in remark for remark in found.remarks) == late
    assert [(rate.state, rate.lost, rate.draws) for rate in found.losses] == [(1, 1, 19)]
    assert "1 of 19 draws from state 1 were lost: this cannot show whether losses depend on the lost value." in str(
        found
    )


def test_the_queue_of_all_chains_ends_at_the_first_pending_draw_of_any():
    data = study_like({"a": walk(300, 24), "b": walk(300, 25)}, ["a", "b"] * 300)
    a = data["a"]
    target = a.target.copy()
    target[100] = PENDING
    pending = Paths(
        STATES, path=a.path, step=a.step, source=a.source, target=target, issued=a.issued,
        told=np.where(target == PENDING, 0, a.told),
    )  # fmt: skip
    found = cs.diagnose({"a": pending, "b": data["b"]})
    assert one(found, "order", chain="b").cards == 298
    assert one(found, "order").cards == 2 * 98 + 0
    assert any("draw 201 is pending" in remark for remark in found.remarks)


def test_an_order_that_is_not_known_guarantees_nothing():
    data = of_walks(remembering(2000, 26))
    names = ("path", "step", "source", "target")
    unordered = Paths(STATES, **{name: getattr(data, name) for name in names}, unordered="nobody noted it")
    found = cs.diagnose(unordered)
    assert found.against == ()
    assert all(check.level == 1.0 for check in found)
    assert "nobody noted it" in str(found)


def test_labels_that_were_left_out_are_counted():
    walks = [walk(4, seed) for seed in range(200)]
    found = cs.diagnose(of_walks(*walks))
    path = one(found, "sameness", "path")
    assert path.left_out > 0
    assert path.cards + path.left_out == 600
    assert any(f"{path.left_out} transitions were left out of a check" in remark for remark in found.remarks)


def test_as_plain_data():
    found = cs.diagnose(of_walks(remembering(2000, 27)), delta=0.01)
    content = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert content["delta"] == 0.01
    assert content["checks"][0]["kind"] == "order"
    assert content["checks"][0]["where"][0]["state"] == "busy"
    assert content["note"] == found.note
    assert len(found) == len(content["checks"])
    assert list(found[:1]) == [found[0]]


def test_no_transitions_are_no_evidence():
    found = cs.diagnose(of_walks([0]))
    assert [(check.e_value, check.level, check.cards) for check in found] == [(1.0, 1.0, 0), (1.0, 1.0, 0)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"paths": [0, 1, 0]}, "paths must be Paths, or Paths by the chain's name, not"),
        ({"paths": {}}, "paths must be Paths, or Paths by the chain's name, not"),
        ({"reference": MATRIX}, "reference must be MarkovChain, or MarkovChain by the chain's name, not"),
        ({"reference": {"x": cs.MarkovChain(MATRIX)}}, "reference names the chain 'x': the data have no names"),
        ({"later": ["x"]}, "later must be names of chains, each once, not"),
        ({"delta": 2}, "delta"),
    ],
)
def test_bad_input(given, message):
    arguments = {"paths": of_walks(walk(10, 1)), **given}
    with pytest.raises(InputError, match=message):
        cs.diagnose(**arguments)


def test_all_chains_cannot_join_later():
    data = study_like({"a": walk(10, 1), "b": walk(10, 2)}, ["a", "b"] * 10)
    with pytest.raises(InputError, match="at least one must have been there from the start"):
        cs.diagnose(data, later=["a", "b"])
    with pytest.raises(InputError, match="other names the chain 'z': the chains are a, b"):
        cs.diagnose(data, other={"z": data["a"]})
