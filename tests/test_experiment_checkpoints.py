"""Experiments that are interrupted, that fail, and that go on from a checkpoint."""

import math
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiment_bits import same

import chainscout as cs
from chainscout.errors import ChainscoutError, FileError, InputError
from chainscout.experiment import Interrupted, comparison, forget


class Interrupting(Executor):
    """Runs tasks when they are submitted, until somebody presses Ctrl-C."""

    def __init__(self, tasks: int) -> None:
        self.left = tasks

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> "Future[Any]":
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **options))
        return future


def test_an_interruption_carries_what_all_policies_have_finished(
    unlike: cs.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Eight at most are sent before one is collected, then one for one: the eleventh task is not sent any more.
    monkeypatch.setattr("chainscout.experiment.tasks.MOST_WAITING", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    whole = cs.compare(unlike, ["uniform", "scout"], [100], 40)
    assert len(comparison._cuts(40, 100, "cpu")) == 10
    with pytest.raises(Interrupted) as caught:
        cs.compare(unlike, ["uniform", "scout"], [100], 40, executor=Interrupting(11))
    part = caught.value.results
    assert part is not None
    assert 0 < part.replications < 40
    assert part.replications % 4 == 0
    assert np.array_equal(part.loss, whole.loss[:, :, : part.replications])
    assert part.summary()
    # Its settings repeat what was done.
    assert part.settings["replications"] == part.replications
    assert same(part, cs.compare(unlike, ["uniform", "scout"], [100], part.settings["replications"]))
    with pytest.raises(KeyboardInterrupt) as nothing:
        cs.compare(unlike, ["uniform"], [100], 40, executor=Interrupting(0))
    assert isinstance(nothing.value, Interrupted)
    assert nothing.value.results is None


def test_a_checkpoint_gives_the_same_bits_and_runs_nothing_twice(
    unlike: cs.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainscout.experiment.tasks.MOST_WAITING", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    tasks = tmp_path / "deep" / "tasks"
    run: dict[str, Any] = {"policies": ["uniform", "scout"], "budgets": [40, 100], "replications": 40}
    whole = cs.compare(unlike, **run)
    with pytest.raises(Interrupted):
        cs.compare(unlike, **run, checkpoint=tasks, executor=Interrupting(9))
    files = sorted(tasks.glob("*.npz"))
    assert 0 < len(files) <= 9
    executor = Interrupting(10**6)
    assert same(whole, cs.compare(unlike, **run, checkpoint=tasks, executor=executor))
    assert 10**6 - executor.left == 20 - len(files)
    # Everything is there now: nothing is run.
    assert same(whole, cs.compare(unlike, **run, checkpoint=tasks, executor=Interrupting(0)))
    forget(tasks)
    assert not tasks.exists()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty", "other shape", "a text"])
def test_damaged_tasks_are_run_again(unlike: cs.Problem, tmp_path: Path, damage: str) -> None:
    run: dict[str, Any] = {"policies": ["uniform"], "budgets": [100], "replications": 16, "checkpoint": tmp_path}
    whole = cs.compare(unlike, **run)
    file = sorted(tmp_path.glob("*.npz"))[1]
    content = bytearray(file.read_bytes())
    if damage == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        place = content.index(np.float64(whole.loss[0, 0, 4, 0]).tobytes())
        content[place] ^= 1
        file.write_bytes(content)
    elif damage == "foreign":
        np.savez(file, other=np.zeros(3))
    elif damage == "other shape":
        np.savez(file, loss=np.zeros((1, 1, 3)), pulls=np.zeros((1, 1, 3), np.int64))
    else:
        file.write_bytes(b"" if damage == "empty" else b"not a zip file")
    executor = Interrupting(1)
    assert same(whole, cs.compare(unlike, **run, executor=executor))
    assert executor.left == 0
    assert same(whole, cs.compare(unlike, **run, executor=Interrupting(0)))  # it was mended


@pytest.mark.parametrize(
    "change",
    [
        {"policies": ["scout"]},
        {"policies": ["uniform:block=0.1"]},
        {"budgets": [101]},
        {"replications": 9},
        {"seed": 1},
        {"batch": 2},
        {"delta": 0.1},
        {"problem": cs.problems.get("two-state")},
        {"policies": [cs.Policy("uniform", lambda s, t, c: 1 / t, lambda r, n, q, c: (0.0,), version=2)]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_checkpoint_of_another_experiment_is_refused(
    unlike: cs.Problem, tmp_path: Path, change: dict[str, Any]
) -> None:
    run: dict[str, Any] = {"problem": unlike, "policies": ["uniform"], "budgets": [100], "replications": 8}
    cs.compare(**run, checkpoint=tmp_path)
    with pytest.raises(InputError, match="holds another experiment"):
        cs.compare(**(run | change), checkpoint=tmp_path)


def test_a_checkpoint_that_cannot_be_read_or_written(unlike: cs.Problem, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(FileError, match=r"run\.json is damaged"):
        cs.compare(unlike, ["uniform"], [50], 4, checkpoint=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot keep an experiment"):
        cs.compare(unlike, ["uniform"], [50], 4, checkpoint=tmp_path / "file")


def test_an_error_in_a_task_is_told_and_finished_tasks_are_kept(unlike: cs.Problem, tmp_path: Path) -> None:
    strange = cs.Policy("strange", lambda sums, t, constants: math.nan, lambda row, n, q, c: (0.0,))
    with pytest.raises(ChainscoutError, match="'strange' gave an index that is not a number"):
        cs.compare(unlike, ["uniform", strange], [100], 8, engine="python", checkpoint=tmp_path)
    assert list(tmp_path.glob("task-0-*.npz"))
