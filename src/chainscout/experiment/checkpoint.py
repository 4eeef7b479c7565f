"""Finished tasks on disk, so that an interrupted experiment goes on where it stopped."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import FileError, InputError
from ..problems import Problem

if TYPE_CHECKING:
    from .tasks import Task

Outcome = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]


class Checkpoint:
    """A directory with one file a finished task, and what they are tasks of."""

    def __init__(
        self,
        path: Path,
        problem: Problem,
        policies: tuple[str, ...],
        budgets: tuple[int, ...],
        settings: Mapping[str, Any],
    ) -> None:
        self.path = path
        run = {
            "problem": [
                [name, chain.matrix.tolist(), chain.initial.tolist()] for name, chain in problem.chains.items()
            ],
            "policies": list(policies),
            "budgets": list(budgets),
            "settings": json.loads(json.dumps(dict(settings))),
        }
        about = path / "run.json"
        try:
            path.mkdir(parents=True, exist_ok=True)
            if about.exists():
                if json.loads(about.read_text(encoding="utf-8")) != run:
                    raise InputError(
                        f"{path} holds another experiment (problem, policies, budgets, settings or versions differ):"
                        " resume it with what it was begun with, or choose another directory"
                    )
            else:
                about.write_text(json.dumps(run), encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path} cannot keep an experiment: {error.strerror or error}") from None
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise FileError(f"{about} is damaged: delete {path} to begin again") from None

    def load(self, task: "Task") -> Outcome | None:
        """The outcome of a task that was finished before."""
        try:
            with np.load(self._file(task), allow_pickle=False) as file:
                return file["loss"], file["pulls"]
        except (OSError, ValueError, KeyError, EOFError):
            return None  # not there, or cut off by a crash: it is run again

    def store(self, task: "Task", outcome: Outcome) -> None:
        """Keeps an outcome; complete or not at all."""
        file = self._file(task)
        partial = file.with_suffix(f".{os.getpid()}.partial")
        try:
            with open(partial, "wb") as stream:
                np.savez(stream, loss=outcome[0], pulls=outcome[1])
            partial.replace(file)
        except OSError as error:
            raise FileError(f"{file} could not be written: {error.strerror or error}") from None

    def _file(self, task: "Task") -> Path:
        return self.path / f"task-{task.place}-{task.start}-{task.stop}.npz"


def forget(path: Path) -> None:
    """Removes the kept tasks of a run whose results are saved elsewhere."""
    for file in path.glob("task-*"):
        file.unlink()
    (path / "run.json").unlink(missing_ok=True)
    path.rmdir()
