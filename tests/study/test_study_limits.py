"""What a study cannot hold is refused in one sentence, before anything is made or changed, wherever it is kept."""

import math
import os
import subprocess
import sys

import pytest

from chainscout import policies
from chainscout.counts import MOST_STATES, MOST_TRANSITIONS
from chainscout.errors import InputError
from chainscout.policies import Policy
from chainscout.study import Study

#: What Python makes of a byte that is no UTF-8, in an argument or in a name of a file.
HALF = os.fsdecode(b"\xff")

REFUSED = {
    "states": (
        {"chains": {"a": MOST_STATES + 1}},
        "the states of chain 'a' .* must be at most 1000000000, not 1000000001",
    ),
    "states of an open chain": (
        {"chains": {"a": MOST_STATES + 1}, "open_states": True},
        "the states of chain 'a' .* must be at most 1000000000",
    ),
    "half a state of an open chain": (
        {"chains": {"a": 2.5}, "open_states": True},
        "must be a whole number ≥ 0, not 2.5",
    ),
    "budget": ({"budget": MOST_TRANSITIONS + 1}, "budget .* must be at most 9007199254740992, not 9007199254740993"),
    "costs": (
        {"budget": 1e300, "costs": {"a": 1e-300}},
        r"the budget 1e\+300 pays for inf observations at 1e-300 each, and at most 9007199254740992 can be counted",
    ),
    "delta": ({"delta": 0}, "delta .* must be a finite number > 0 and ≤ 0.5, not 0"),
    "label": ({"chains": {"a": ["up", HALF]}}, r"a state's label must be text that UTF-8 can hold, not '\\udcff'"),
    "name": ({"chains": {HALF: 2}}, r"a chain's name must be text that UTF-8 can hold, not '\\udcff'"),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_what_a_new_study_cannot_hold(place, options, words):
    with pytest.raises(InputError, match=words) as caught:
        place.create(**({"chains": {"a": 2}} | options))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("delta", [1e-15, 1e-300])
@pytest.mark.parametrize("policy", ["scout", "certifier", "gini-ucb:delta=1e-14"])
def test_a_guarantee_may_fail_as_rarely_as_one_likes(place, policy, delta):
    study = place.create({"a": 2, "b": 2}, 200, policies.get(policy), delta, target_loss=0.06)
    for number in range(40):
        study.tell(study.ask(), number // 3 % 2)
    study = place.reopen(study)
    assert study.progress().delta == delta
    estimate = study.estimate("a")
    assert ((estimate.lower >= 0) & (estimate.lower < estimate.upper) & (estimate.upper <= 1)).all()
    assert 0 < study.certificate().max < math.inf


def test_the_largest_study(place):
    """As many states and observations as there may be; nothing takes room in proportion to them."""
    study = place.create({"a": MOST_STATES}, MOST_TRANSITIONS)
    for state in (0, MOST_STATES - 1, 0):
        study.tell("a", state)
    study = place.reopen(study)
    assert study.counts("a").exits_of(MOST_STATES - 1) == 1
    for policy in ("certifier", "gini-ucb", "ba-mc"):
        assert place.create({"a": MOST_STATES}, 1_000, policies.get(policy)).ask() == "a"


def test_what_an_existing_study_cannot_hold(place):
    study = place.create({"a": 2, "b": ["up", "down"], "c": []}, 10.0, costs={"a": 1e-3}, open_states=["c"])
    changes = {
        "the budget 1e.14 pays for 1e.17 observations at 0.001 each": lambda: study.extend(budget=1e14),
        "does not pay for one observation": lambda: study.extend(budget=1e-4),
        "a worker's name must be text that UTF-8 can hold": lambda: study.worker(HALF),
        r"no chain '\\udcff'": lambda: study.tell(HALF, 0),
        r"unknown state '\\udcff' of the chain 'b'": lambda: study.tell("b", HALF),
        "a state's label must be text that UTF-8 can hold": lambda: study.tell("c", HALF),
    }
    for words, change in changes.items():
        with pytest.raises(InputError, match=words):
            change()
    assert study.progress().observations == 0
    assert study.progress().budget == 10
    assert study.states("c") == []


def test_a_place_or_a_policy_that_is_no_text(folder):
    with pytest.raises(InputError, match="where must be text that UTF-8 can hold"):
        Study.create(folder / f"{HALF}.db", {"a": 2})
    with pytest.raises(InputError, match="where must be text that UTF-8 can hold"):
        Study.open(f"postgresql://{HALF}/lab")
    assert not list(folder.iterdir())
    with pytest.raises(InputError, match="a policy's name must be text that UTF-8 can hold"):
        Policy(HALF, lambda s, t, c: 0.0, lambda r, n, q, c: ())


def test_any_other_text_that_is_none_is_refused_before_it_is_stored(place):
    study = place.create({"a": 2})
    study.tell("a", 0)
    for change in (
        lambda: study.set_aside("a", HALF),
        lambda: study.correct("a", 1, 1, HALF),
        lambda: study.tell("a", 1, key=HALF),
    ):
        with pytest.raises(InputError, match="must be text that UTF-8 can hold"):
            change()
    with pytest.raises(InputError, match="a key must be a string, not 3"):
        study.tell("a", 1, key=3)
    study.tell("a", 1)
    assert study.progress().observations == 2


# ---------------------------------------------------------------- the command line


def command(folder, *words, stdin=b"", environment=None):
    """As a shell would call it, bytes and all."""
    return subprocess.run(
        [sys.executable, "-m", "chainscout", *words],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, **(environment or {})},
    )


def is_one_sentence(done, words):
    told = done.stderr.decode()
    return done.returncode == 2 and words in told and len(told.splitlines()) == 1 and done.stdout == b""


WRONG = {
    "states": (["new", "z.db", "--chain", "a=10000000000"], "must be at most 1000000000"),
    "cost": (["new", "z.db", "--chain", "a=2", "--budget", "1e300", "--cost", "a=1e-300"], "can be counted"),
    "budget": (["new", "z.db", "--chain", "a=2", "--budget", "1e300"], "must be at most 9007199254740992"),
    "label": (["new", "z.db", "--chain", b"a=\xff,b"], "a state's label must be text that UTF-8 can hold"),
    "name": (["new", "z.db", "--chain", b"\xff=2"], "a chain's name must be text that UTF-8 can hold"),
    "file": (["new", b"\xff.db", "--chain", "a=2"], "where must be text that UTF-8 can hold"),
    "delta": (["new", "z.db", "--chain", "a=2", "--delta", "0"], "must be a finite number > 0 and ≤ 0.5"),
}


@pytest.mark.parametrize(("words", "sentence"), WRONG.values(), ids=WRONG)
def test_new_refuses_in_one_sentence(folder, words, sentence):
    assert is_one_sentence(command(folder, *words), sentence)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("encoding", ["utf-8:surrogateescape", "utf-8:strict"])
def test_tell_refuses_bytes_that_are_no_text(folder, encoding):
    Study.create(folder / "lab.db", {"a": 2}).close()
    how = {"PYTHONIOENCODING": encoding}
    words = "no chain" if "escape" in encoding else "standard input must be text in utf-8, and byte 0xff in it is not"
    assert is_one_sentence(command(folder, "tell", "lab.db", "-", stdin=b"a 1\n\xff\xfe 0\n", environment=how), words)
    assert is_one_sentence(command(folder, "tell", "lab.db", b"\xff", "0"), "no chain")
    assert is_one_sentence(command(folder, "tell", "lab.db", "a", b"\xff"), "a state of the chain 'a' must be")
    assert is_one_sentence(command(folder, "ask", "lab.db", "--lease", b"\xff"), "a worker's name must be text")
    with Study.open(folder / "lab.db") as study:
        assert study.progress().observations == 0


def test_a_file_whose_name_cannot_be_printed(folder):
    Study.create(folder / "lab.db", {"a": 2}).close()
    how = {"PYTHONIOENCODING": "utf-8:strict"}
    done = command(folder, "export", "lab.db", "--out", b"\xff.json", environment=how)
    assert done.returncode == 1
    assert done.stderr.decode().strip() == r"chainscout: '\udcff' cannot be written in utf-8"
    assert (folder / f"{HALF}.json").exists()  # what was asked for is done
