"""``learn``: the loop that runs sources until a study is finished."""

import collections
import io
import itertools
import random
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
import rich.console

import chainscout as cs
from chainscout import sources
from chainscout.errors import InputError, SetAsideWarning
from chainscout.learning import _progress_bar, read_study_file
from chainscout.learning.learn import run
from chainscout.problems import get
from chainscout.sources import Recorded, simulated
from chainscout.study import Study


def test_learning_simulated_chains_is_an_experiments_replication():
    problem = get("unlike")
    study = cs.learn(problem, 300, seed=5, progress=False)
    again = Study.create(None, {n: list(c.states) for n, c in problem.chains.items()}, budget=300)
    sources = simulated(problem, seed=5)
    while not again.finished:
        name = again.ask()
        again.tell(name, sources[name].advance()[0])
    assert [(line.chain, line.state) for line in study.log()] == [(line.chain, line.state) for line in again.log()]


def test_learning_goes_on_where_it_stopped(folder):
    problem = get("unlike")
    whole = cs.learn(problem, 200, seed=5, progress=False)
    where = folder / "s.db"
    first = cs.learn(problem, 90, where=where, seed=5, progress=False)
    first.extend(budget=200)
    first.close()
    study = cs.learn(problem, where=where, seed=5, progress=False)
    assert study.progress().observations == 200
    assert [(line.chain, line.state) for line in study.log()] == [(line.chain, line.state) for line in whole.log()]
    assert study.indices() == whole.indices()
    study.close()


def test_a_callable_begins_a_path_when_a_study_is_resumed(folder):
    where = folder / "s.db"
    cs.learn({"a": lambda: 0}, 5, where=where, states={"a": 1}, progress=False).close()
    with Study.open(where) as study:
        study.extend(budget=10)
    with cs.learn({"a": lambda: 0}, where=where, states={"a": 1}, progress=False) as study:
        assert study.counts("a").paths == 2


def test_states_that_nobody_gave_are_discovered():
    rng = random.Random(0)
    with pytest.warns(SetAsideWarning, match=r"1 chain was set aside \('b': all 4 .*take_up\(chain\)") as caught:
        study = cs.learn({"a": lambda: rng.choice("xyz"), "b": Recorded([0, 1, 0, 1])}, 30, progress=False)
    assert [warning.filename for warning in caught] == [__file__]
    assert sorted(study.states("a")) == ["x", "y", "z"]
    assert study.states("b") == [0, 1]
    assert study.certificate().aside == ("b",)
    aside = next(event for event in study.events() if event.kind == "set aside")
    assert "all 4 recorded states were given" in aside.detail["reason"]


def test_the_states_of_a_recording_are_open_unless_they_are_given(folder):
    """Those that occur are chosen by the data (MATH §7): a certificate must hold whatever others there are."""
    path = np.random.default_rng(0).integers(0, 2, 501).tolist()
    pairs = collections.Counter(itertools.pairwise(path))
    transitions = [(x, y, number) for (x, y), number in pairs.items()]
    opened = cs.certify({"a": cs.Counts.from_pairs(transitions, 2, open_states=True)}).max
    closed = cs.certify({"a": cs.Counts.from_pairs(transitions, 2)}).max
    assert opened > closed
    (folder / "paths.csv").write_text("chain,state\n" + "".join(f"a,{state}\n" for state in path))
    text = 'where = "%s.db"\nbudget = 501\n[chains.a]\nrecorded = "paths.csv"\n%s'
    for name, states, certificate in (("open", None, opened), ("closed", {"a": 2}, closed)):
        with cs.learn({"a": Recorded(path)}, 501, states=states, progress=False) as study:
            assert study.certificate().max == certificate
            assert study.look().chain(0).open == (states is None)
        file = folder / f"{name}.toml"
        file.write_text(text % (name, "states = [0, 1]\n" if states else ""))
        found = read_study_file(file)
        with cs.learn(
            found.sources, where=found.where, states=found.states, progress=False, **found.settings.given()
        ) as study:
            assert study.certificate().max == certificate


def test_a_study_needs_an_end_and_sources_for_all():
    with pytest.raises(InputError, match="needs an end"):
        cs.learn({"a": lambda: 0})
    with pytest.raises(InputError, match="sources must be"):
        cs.learn({}, 5)
    with pytest.raises(InputError, match="no source"):
        cs.learn({"a": lambda: 0}, 5, states={"b": 1})


def test_a_study_that_exists_can_have_a_later_end_but_no_other_rule(folder):
    where, sources, options = folder / "study.db", {"a": lambda: 0}, {"states": {"a": 2}, "progress": False}
    cs.learn(sources, 10, where=where, **options).close()
    with pytest.raises(InputError, match=r"the study has the budget 10, and the smaller one of 5 was given: .*extend"):
        cs.learn(sources, 5, where=where, **options)
    for budget in (10, None):
        with cs.learn(sources, budget, where=where, **options) as study:
            assert study.progress().observations == 10
            assert len(study.events()) == 2  # created and finished
    with cs.learn(sources, 25, where=where, **options) as study:
        assert study.progress().observations == 25
    with cs.learn(sources, where=where, target_loss=0.02, **options) as study:
        assert study.stop_reason == "budget"
        assert study.progress().target_loss == 0.02
    with pytest.raises(InputError, match="created with the policy scout: it cannot go on with 'uniform'"):
        cs.learn(sources, 30, where=where, policy="uniform", **options)
    with pytest.raises(InputError, match=r"created with the delta 0\.05: it cannot go on with 0\.1"):
        cs.learn(sources, 30, 0.1, where=where, **options)
    with Study.open(where) as study:
        assert study.progress().budget == 25


def test_what_is_no_state_is_refused_with_the_name_of_the_chain():
    with pytest.raises(InputError, match=r"^a state of the chain 'a' must be a string or a whole number, not None$"):
        cs.learn({"a": lambda: None}, 5, progress=False)
    with pytest.raises(InputError, match=r"^a state of the chain 'a' that is a whole number must be below 2\*\*1024"):
        cs.learn({"a": lambda: 2**2000}, 5, progress=False)


def test_a_wrong_state_from_a_callable_is_the_users_slip():
    with pytest.raises(InputError, match="from 0 to 1"):
        cs.learn({"a": lambda: 7}, 5, states={"a": 2}, progress=False)


def test_an_exception_of_a_source_names_its_chain_and_the_study_goes_on(folder):
    where = folder / "lab.db"

    def press():
        press.calls += 1
        if press.calls == 8:
            raise RuntimeError("the press is on fire")
        return 0

    press.calls = 0
    processes = {"press": press, "robot": lambda: 0}
    arguments = {"where": where, "states": {"press": 1, "robot": 1}, "policy": "uniform", "progress": False}
    with pytest.raises(RuntimeError, match="on fire") as caught:
        cs.learn(processes, 30, **arguments)
    assert caught.value.__notes__ == [
        "The source of the chain 'press' raised this.",
        "The study has kept 14 observations: the same call of learn continues it.",
    ]
    with Study.open(where, read_only=True) as study:
        assert study.allocation() == {"press": 7, "robot": 7}
        assert study.progress().lost == 1  # it may have failed because of its state
    with cs.learn(processes, 30, **arguments) as study:
        study.audit()
        assert study.progress().observations == 30
        assert study.stop_reason == "budget"


def test_an_exception_reaches_the_user_also_if_the_study_is_gone(folder):
    where = folder / "lab.db"

    def press():
        for file in folder.glob("lab.db*"):  # the disk is damaged
            file.write_bytes(b"x" * file.stat().st_size)
        raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError, match="the power is gone") as caught:
        cs.learn({"press": press}, 30, where=where, states={"press": 1}, progress=False)
    assert "The study cannot be read now" in caught.value.__notes__[-1]


@pytest.mark.parametrize("pool", [nullcontext, lambda: ThreadPoolExecutor(1)], ids=["one at a time", "threads"])
def test_an_exception_reaches_the_user_also_if_its_path_cannot_be_ended(folder, pool):
    where = folder / "lab.db"
    states = iter("abab")

    def press():
        if (state := next(states, None)) is None:
            where.unlink()
            raise RuntimeError("the power is gone")
        return state

    with pool() as executor, pytest.raises(RuntimeError, match="the power is gone") as caught:
        cs.learn({"press": press}, 30, where=where, executor=executor, progress=False)
    assert "The study could not be told" in caught.value.__notes__[1]


def test_an_exception_at_the_first_state_has_lost_nothing(folder):
    with pytest.raises(ZeroDivisionError):
        cs.learn({"a": lambda: 1 // 0}, 20, where=folder / "lab.db", states={"a": 1}, progress=False)
    with Study.open(folder / "lab.db", read_only=True) as study:
        assert (study.progress().observations, study.progress().lost) == (0, 0)


@pytest.mark.parametrize("broken", ["resume", "restart"])
def test_an_exception_of_a_resume_or_restart_names_its_chain(broken, monkeypatch):
    source = sources.Recorded([0, 0, 0])
    for name in ("resume", "restart"):
        monkeypatch.setattr(source, name, lambda *_, name=name: 1 // 0 if name == broken else False)
    with Study.create(None, {"rig": 1}, budget=5) as study:
        with study._program(frozenset()) as make:  # another call has left the path
            make("learn").lease().tell(0)
        with pytest.raises(ZeroDivisionError) as caught:
            run(study, {"rig": source}, progress=False)
        assert study.progress().leases == 0
    assert caught.value.__notes__ == ["The source of the chain 'rig' raised this."]


def test_the_progress_bar(capsys):
    cs.learn({"a": lambda: 0, "b": lambda: 1}, 50, states={"a": 1, "b": 2}, target_loss=1e-6).close()
    with pytest.raises(KeyboardInterrupt):
        cs.learn({"a": _interrupt}, 50, states={"a": 1})


@pytest.mark.parametrize("width", [80, 140])
def test_the_progress_bar_fits_the_terminal(width, monkeypatch):
    """Each time it is drawn, on one line: how much, how fast, how long, and the bound against the target, uncut."""
    monkeypatch.setenv("TERM", "xterm")  # a terminal that is not named is taken for one that cannot move its cursor
    screen = rich.console.Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr(_progress_bar, "get_console", lambda: screen)
    chains = {
        f"a chain with a rather long name {number}": cs.MarkovChain([[0.5, 0.5], [0.2, 0.8]]) for number in range(5)
    }
    cs.learn(chains, 1_000, target_loss=1e-6, certificate="mixture").close()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "\n", screen.file.getvalue())
    frames = [line for line in text.splitlines() if line.strip()]
    assert max(map(len, frames)) <= width
    assert re.search(r"^[━╸╺ ]+ 1,000 of 1,000 [\d,]+/s 0:00:00 last bound [\d.]+ \(target 1e-06\)", frames[-1])
    assert ("a chain with" in frames[-1]) == (width > 100)


def _interrupt():
    raise KeyboardInterrupt
