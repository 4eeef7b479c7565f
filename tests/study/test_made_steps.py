"""A step that was made does not vanish: it is told in its place, or it is a hole (MATH §15, rule 1).

The programs here are naive: they lose, restart, correct or leave exactly when a coin shows 1. If such a step vanished
without a hole, only zeros would be counted, and the bound would be false.
"""

import itertools
import random

import pytest

import chainscout as cs
from chainscout.errors import ChainscoutError, OutOfStep
from chainscout.study import Study

COIN = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
STEPS = 150


def broken_loop(place, coin):
    """The loop over leases is left by an exception after the step."""
    study = Study.create(place, {"c": 2})
    for _ in range(STEPS):
        try:
            with study.worker("w") as worker:
                for lease in worker:
                    outcome = coin()
                    if outcome and lease.state is not None:
                        raise TimeoutError
                    lease.tell(outcome)
                    if study.progress().observations > STEPS:
                        return study
        except TimeoutError:
            if study.chain("c").aside:
                study.take_up("c")
    return study


def left_loop(place, coin):
    """The same without ``with``, and by ``break``."""
    study = Study.create(place, {"c": 2})
    for number in range(STEPS // 4):
        for lease in study.worker(f"w {number}", renews=False):
            outcome = coin()
            if outcome and lease.state is not None:
                break
            lease.tell(outcome)
    return study


def one_program_a_step(place, coin, first=True):
    """A program for each observation; its process outlives it. While it makes a slow step, a worker takes another one.

    ``first``: whether all programs say that they go on; else only every second one does, and the others begin anew.
    """
    study = Study.create(place, {"c": 2})
    worker, outcome = study.worker("w", renews=False), 0
    for number in range(STEPS):
        with Study.open(place, continuing=first or number % 2 == 1) as program:
            if first or number % 2 == 0:
                program.tell("c", outcome)
                outcome = coin()
                if not first:
                    continue
            else:
                outcome = coin()  # the step is made after the program was opened
                if outcome:
                    worker.lease(chain="c").tell(coin())
                program.tell("c", outcome)
                continue
        if outcome:
            worker.lease(chain="c").tell(coin())
    return study


def some_go_on(place, coin):
    """Every second program begins a path, and the one after it goes on."""
    return one_program_a_step(place, coin, first=False)


def begun_anew(place, coin):
    """The rig breaks down on one outcome, and the next state begins a path."""
    study = Study.create(place, {"c": 2})
    study.tell("c", 0)
    for number in range(STEPS):
        if study.chain("c").aside:
            study.take_up("c")
        if coin() == 0:
            study.tell("c", 0)
        elif number % 2:
            study.tell("c", 0, begin=True)
        else:
            study.restart("c")
            study.tell("c", 0)
    return study


def corrected(place, coin):
    """The first state of a path is taken back whenever the next step goes to 1."""
    study = Study.create(place, {"c": 2})
    for _ in range(STEPS):
        path, step = study.tell("c", 0, begin=study.progress().observations > 0)
        if coin():
            study.correct("c", path, step - 1, "misread")
        else:
            study.tell("c", 0)
    return study


@pytest.mark.parametrize("program", [broken_loop, left_loop, one_program_a_step, some_go_on, begun_anew, corrected])
def test_what_a_naive_program_loses_is_a_hole(program, tmp_path):
    for seed in range(2):
        rng = random.Random(seed)
        with program(tmp_path / f"{seed}.db", lambda: int(rng.random() < 0.5)) as study:  # noqa: B023
            counts, bound = study.counts("c"), study.certificate().loss["c"]
            assert not counts.total or cs.loss(COIN, counts) <= bound
            estimate = study.estimate("c")
            assert ((estimate.lower <= 0.5) & (estimate.upper >= 0.5)).all()
            study.audit()


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
def test_a_path_goes_on_only_if_its_next_step_was_asked_for(tmp_path):
    """A step that began after later ones were asked for has no place: neither tell nor tell_many makes one up."""
    place = tmp_path / "lab.db"
    study = Study.create(place, {"c": 2})
    with Study.open(place) as first:
        first.tell_many([("c", 0), ("c", 1)])
    lease = study.worker("w").lease(chain="c", steps=9)
    for tell in (lambda one: one.tell("c", 1), lambda one: one.tell_many([("c", 1)])):
        lease.tell(0)
        lease.tell(1)
        with Study.open(place) as again:
            place_of_next = again.continue_path("c")
            assert place_of_next.last is None
            tell(again)
            assert [line.step for line in again.log()][-1] == 1
    with pytest.raises(OutOfStep, match=r"path 1 of the chain 'c' (has no observation 3|was closed)"):
        study.tell("c", 1, path=1, step=3)


class Process:
    """A process of one chain: it makes a step when it is told to. ``asked``: the study's last entry when it did."""

    def __init__(self):
        self.step, self.asked = None, 0


@pytest.mark.filterwarnings("ignore::chainscout.errors.BarePathsWarning")
@pytest.mark.parametrize("seed", range(8))
def test_every_step_is_told_in_its_place_or_is_a_hole(seed, tmp_path):
    """Whatever two programs and two workers do: a told step has a slot that is older than it, the others are holes."""
    rng, place = random.Random(seed), tmp_path / "lab.db"
    root = Study.create(place, {"c": 3})
    made: list[tuple[int, int]] = []  # steps that were made and told: when they were made, and the entry that told them
    open_steps = 0

    def head():
        return root._keeper.state().head.number

    programs = {number: (Study.open(place), Process()) for number in range(2)}
    workers = {number: (root.worker(f"w {number}", renews=False), Process(), None) for number in range(2)}
    walking = {0: 0, 1: 0}  # the path of each program; 0: its next state begins one
    for _ in range(150):
        number = rng.randrange(2)
        if rng.random() < 0.6:
            study, process = programs[number]
            act = rng.random()
            if process.step is None and walking[number] and act < 0.5:
                process.step, process.asked = rng.randrange(3), head()
            elif act < 0.8:
                is_step = process.step is not None
                state = process.step if is_step else rng.randrange(3)
                if not is_step and walking[number]:
                    continue
                if rng.random() < 0.7:
                    study.tell("c", state)
                else:
                    study.tell_many([("c", state)])
                if is_step:
                    made.append((process.asked, head()))
                process.step, walking[number] = None, study.chain("c").path
            elif act < 0.9:
                if walking[number]:
                    open_steps += process.step is not None
                    study.restart("c")
                    process.step, walking[number] = None, 0
            elif process.step is None or rng.random() < 0.5:
                newest = root._keeper.state().names["c"].newest.get("main")
                goes_on = process.step is None and walking[number] == newest and rng.random() < 0.7
                crash = process.step is not None or rng.random() < 0.3
                open_steps += process.step is not None
                study._keeper.close() if crash else study.close()
                programs[number] = Study.open(place, continuing=goes_on), Process()
                begun = programs[number][0].chain("c")
                walking[number] = begun.path if goes_on and begun.last is not None else 0
            continue
        worker, process, lease = workers[number]
        if lease is None:
            lease = worker.lease(chain="c", wait=0)
            workers[number] = worker, process, lease
        elif process.step is None and rng.random() < 0.5:
            process.step, process.asked = rng.randrange(3), head()
        else:
            is_first = lease.state is None
            try:
                if process.step is None:
                    lease.give_back()
                elif rng.random() < 0.7:
                    lease.tell(process.step)
                    if not is_first:
                        made.append((process.asked, head()))
                else:
                    lease.abandon() if rng.random() < 0.5 else lease.restart()
                    open_steps += not is_first
                    if lease.status.value == "held":
                        lease.abandon()
            except ChainscoutError:
                open_steps += process.step is not None and not is_first
            process.step = None
            workers[number] = worker, process, None
        if root.chain("c").aside:
            root.take_up("c")
    state = root._keeper.recorded()
    chain = state.names["c"]
    cards = {card.told: card for card in chain.draws.cards or ()}
    for asked, told in made:
        assert cards[max(entry for entry in itertools.chain(cards) if entry <= told)].number <= asked
    pending = sum(process.step is not None for _, process in programs.values())
    pending += sum(
        p.step is not None and lease is not None and lease.state is not None for _, p, lease in workers.values()
    )
    assert open_steps + pending <= sum(hole.steps for hole in chain.draws.holes if hole.is_slot)
    root.audit()
