"""A second reading of the fold: it knows what today's study knows, after every step of a random program."""

import pytest
from fold_twins import Twins
from study_rules import BLOCKS, FLOOR, ROW_BLOCKS, RULE, TWO_TERMS

from chainscout import policies
from chainscout.counts import Counts
from chainscout.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")

CHAINS = {"a": 2, "b": ["x", "y", "z"], "c": 1, "d": 3}
STUDIES = {
    "rule": {"policy": RULE},
    "two terms": {"policy": TWO_TERMS},
    "summary in blocks": {"policy": BLOCKS},
    "rows in blocks": {"policy": ROW_BLOCKS},
    "floor": {"policy": FLOOR},
    "scout": {"policy": "scout", "budget": 150},
    "shared": {"policy": RULE, "paths": "shared"},
    "priced": {"policy": "scout", "budget": 150.0, "costs": {"a": 1.3, "b": 0.7}, "weights": {"a": 2.0}},
    "target": {"target_loss": 0.05},
    "targets": {"target_loss": {"a": 0.1, "b": 0.05, "c": 0.1, "d": 0.2}, "weights": {"a": 2.0}},
    "target of scout": {"target_loss": 0.1, "policy": "scout"},
    "open": {"policy": "scout", "open_states": ["o"]},
    "warm": {"policy": "scout", "warm_start": {"a": Counts.from_path([0, 0, 1, 0, 1, 1, 0], 2)}},
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["rule", "scout", "shared"])
def test_it_knows_the_same_after_it_was_opened_again(name, seed, folder):
    twins = Twins(seed, CHAINS, folder / "study.db", **STUDIES[name])
    for _ in range(120):
        twins.step()
        twins.give_bounds()
        twins.compare()
    twins.compare_order()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", STUDIES)
def test_the_fold_knows_what_todays_study_knows(name, seed):
    chains = CHAINS | ({"o": ["p"]} if name == "open" else {})
    twins = Twins(seed, chains, **STUDIES[name])
    for _ in range(150):
        twins.step()
        twins.give_bounds()
        twins.compare()
    twins.compare_order()
    assert twins.kept.state.observations > 15


def settings(policy):
    """What a study needs for a built-in rule; None: the rule is not for studies."""
    if policy in ("oracle", "oracle-max"):
        return None
    name = "static:weights=1/2/3/4" if policy == "static" else policy
    try:
        return {"policy": policies.for_study(name), "budget": 1_000}
    except InputError:
        return None


@pytest.mark.parametrize("policy", [name for name in [*policies.names(), "scout:loss=kl"] if settings(name)])
def test_it_asks_for_the_same_chains_by_every_rule(policy):
    twins = Twins(1, {"a": 2, "b": 3, "c": 2, "d": 3}, **settings(policy))
    for _ in range(120):
        twins.tell()
    twins.compare()


@pytest.mark.parametrize("name", ["rule", "target"])
def test_it_asks_for_the_same_chains_as_todays_study(name):
    twins = Twins(0, CHAINS, **STUDIES[name])
    for _ in range(150):
        twins.tell()
        twins.give_bounds()
    twins.compare()
    twins.compare_order()
