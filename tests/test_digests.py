"""What a rule is, in 32 bytes: other for another rule, the same in another process, and not moved by a comment."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas
import pytest

import chainscout as cs
from chainscout.compile.digests import digest
from chainscout.errors import InputError
from chainscout.experiment.identity import identity

RULE = """
import math
from functools import lru_cache, partial
import numba
import numpy as np

SCALE = 2.0
TABLE = np.arange(5_000.0)
KINDS = {"alpha", "beta", "gamma", "delta"}

def helper(x):
    return SCALE * math.sqrt(x)

@numba.njit
def decorated(x):
    return x + 1.0

@lru_cache
def cached(x):
    return x + 3.0

def halves(x):
    return x if x < 1.0 else halves(x / 2.0)

class Callable:
    def __init__(self, power):
        self.power = power

    def __call__(self, x):
        return x**self.power

called = Callable(2.0)

class Settings:
    factor = 1.25

    @staticmethod
    def more(x):
        return x + 1.75

    def less(self, x):
        return x - 2.25

    @property
    def half(self):
        return 0.5

    def __add__(self, other):
        return other + 4.25

settings = Settings()
twice = partial(halves, 2.75)
look = {"a": 3.25}.get

def index(sums, transitions, c, *, shift=0.5):
    # a comment
    if transitions in {"one", "two", "three"} or transitions in KINDS:
        return 7.0
    if transitions > 1_000.0:
        return Settings.factor * Settings.more(1.0) * settings.less(2.0) * settings.half * (settings + 1.0)
    if transitions > 100.0:
        return twice() + look("a")
    return helper(transitions) + TABLE[3] + decorated(1.0) + cached(2.0) + halves(9.0) + called(3.0) + shift
"""


def rule(source: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": "rule"}
    exec(compile(source, "rule.py", "exec"), names)
    found: Callable[..., Any] = names["index"]
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2.0", "SCALE = 2.5"),
        ("math.sqrt(x)", "math.log(x)"),
        ("np.arange(5_000.0)", "np.concatenate([np.arange(2_500.0), 1 + np.arange(2_500.0, 5_000.0)])"),
        ('"delta"}', '"epsilon"}'),
        ('"three"}', '"four"}'),
        ("return x + 1.0", "return x + 1.5"),
        ("return x + 3.0", "return x + 3.5"),
        ("halves(x / 2.0)", "halves(x / 4.0)"),
        ("Callable(2.0)", "Callable(3.0)"),
        ("return x**self.power", "return x * self.power"),
        ("shift=0.5", "shift=0.75"),
        ("factor = 1.25", "factor = 1.5"),
        ("return x + 1.75", "return x + 1.5"),
        ("return x - 2.25", "return x - 2.5"),
        ("return 0.5", "return 0.25"),
        ("return other + 4.25", "return other + 4.5"),
        ("partial(halves, 2.75)", "partial(halves, 2.5)"),
        ("partial(halves, 2.75)", "partial(helper, 2.75)"),
        ('"a": 3.25', '"a": 3.5'),
        ("return 7.0", "return 8.0"),
    ],
)
def test_another_rule_has_another_digest(old: str, new: str) -> None:
    assert RULE.count(old) == 1
    assert digest(rule(RULE.replace(old, new))) != digest(rule(RULE))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a comment", "# another comment\n    # of two lines"),
        ("sums", "values"),
        ("index(", "index(  "),
        ("SCALE = ", "\n\nSCALE = "),
    ],
)
def test_comments_blanks_and_names_of_variables_do_not_matter(old: str, new: str) -> None:
    plain = "SCALE = 2.0\ndef index(sums, t):\n    # a comment\n    z = sums[0] * SCALE\n    return z / t\n"
    assert old in plain
    assert digest(rule(plain.replace(old, new))) == digest(rule(plain))


def test_values_that_are_nested_too_deeply_are_one_sentence() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputError, match="nested a thousand deep"):
        digest(lambda sums, transitions, c: len(deep))
    while deep:  # piece by piece: Python's own end of such a list would be as deep
        deep = deep[0]


def test_a_library_is_known_by_its_names() -> None:
    frame = pandas.DataFrame({"a": [1.0, 2.0]})

    def index(sums: Any, transitions: float, c: Any) -> float:
        return float(frame.loc[0, "a"])

    assert digest(index) == digest(index)
    before, frame = digest(index), pandas.DataFrame({"a": [1.5, 2.0]})
    assert digest(index) != before


def test_every_process_finds_the_same() -> None:
    program = (
        "import sys\nfrom chainscout.compile.digests import digest\nnames = {'__name__': 'rule'}\n"
        "exec(compile(sys.stdin.read(), 'elsewhere.py', 'exec'), names)\nprint(digest(names['index']).hex())\n"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program], input=RULE, capture_output=True, text=True, check=True, env=_seeded(seed)
        )
        assert found.stdout.strip() == digest(rule(RULE)).hex()


def _seeded(seed: str) -> dict[str, str]:
    """The environment with another order of sets."""
    return {**os.environ, "PYTHONHASHSEED": seed}


def test_nothing_is_compiled_for_it() -> None:
    @numba.njit
    def helper(x: float) -> float:
        return x + 1.0

    digest(lambda sums, transitions, c: helper(transitions))
    assert not helper.signatures


def test_values_that_reach_themselves_or_cannot_be_copied() -> None:
    around: list[Any] = [1.0]
    around.append(around)
    lines = (line for line in ())

    def early() -> Any:
        return late

    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    assert digest(early) == digest(early)  # before there is such a variable
    late = Silent()
    assert digest(early) == digest(early)
    assert digest(lambda: around) == digest(lambda: around)
    assert digest(lambda: lines) == digest(lambda: lines)
    assert digest(functools.partial(max, 1.0)) != digest(functools.partial(max, 2.0))
    assert digest(np.float64(1.0)) != digest(np.float64(1.5))


# ---------------------------------------------------------------- policies and their checkpoints


def own(index: Callable[..., float], **options: Any) -> cs.Policy:
    return cs.Policy("mine", index=index, terms=lambda row, exits, squares, c: (0.0,), **options)


OTHERS: dict[str, tuple[cs.Policy, cs.Policy]] = {
    "index": (own(lambda s, t, c: 1 / t), own(lambda s, t, c: t)),
    "a constant of index": (own(lambda s, t, c: 1 / (t + 1.0)), own(lambda s, t, c: 1 / (t + 2.0))),
    "constants": (
        own(lambda s, t, c: c[0] / t, constants=lambda setting: (1.0 + setting.chain,)),
        own(lambda s, t, c: c[0] / t, constants=lambda setting: (2.0 + setting.chain,)),
    ),
    "power": (own(lambda s, t, c: 1 / t), own(lambda s, t, c: 1 / t, power=0.5)),
    "floor": (own(lambda s, t, c: 1 / t), own(lambda s, t, c: 1 / t, floor=lambda t: t / 4)),
}


@pytest.mark.parametrize("pair", OTHERS.values(), ids=OTHERS)
def test_a_checkpoint_of_another_rule_of_the_same_name_is_refused(
    pair: tuple[cs.Policy, cs.Policy], tmp_path: Path
) -> None:
    run: dict[str, Any] = {"problem": cs.problems.get("unlike"), "budgets": [60], "replications": 4, "engine": "python"}
    first = cs.compare(**run, policies=[pair[0]], checkpoint=tmp_path)
    with pytest.raises(InputError, match="holds another experiment"):
        cs.compare(**run, policies=[pair[1]], checkpoint=tmp_path)
    assert np.array_equal(cs.compare(**run, policies=[pair[0]], checkpoint=tmp_path).loss, first.loss)


def test_the_form_without_a_horizon_counts_where_it_is_used() -> None:
    problem = cs.problems.get("unlike")
    forms = [own(lambda s, t, c: 1 / t, endless=own(end)) for end in (lambda s, t, c: 1 / t, lambda s, t, c: t)]
    assert identity("mine", forms[0], problem, [100]) == identity("mine", forms[1], problem, [100])
    assert identity("mine", forms[0], problem, [None]) != identity("mine", forms[1], problem, [None])


@pytest.mark.parametrize("name", cs.policies.names())
def test_every_built_in_policy_has_an_identity_of_its_own(name: str) -> None:
    problem = cs.problems.get("unlike")
    policy = cs.policies.get(name, weights=(1, 2, 3)) if name == "static" else cs.policies.get(name)
    found = identity(name, policy, problem, [1_000])
    assert found == identity(name, policy, problem, [1_000])
    assert len(found["rule"]) == 64
