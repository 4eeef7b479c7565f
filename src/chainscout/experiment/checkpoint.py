"""Finished tasks on disk, so that an interrupted experiment continues where it stopped."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import FileError, InputError
from ..problems import Problem
from ..problems.schema import document

if TYPE_CHECKING:
    from .tasks import Task

Outcome = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]

#: The file with the settings of the run that the tasks belong to.
ABOUT = "run.json"


class Checkpoint:
    """A directory with one file for each finished task, and the settings of their run."""

    def __init__(self, path: Path, problem: Problem, budgets: tuple[int, ...], settings: Mapping[str, Any]) -> None:
        self.path = path
        self.shape = (len(budgets), len(problem))
        run = json.loads(json.dumps({"problem": document(problem), "budgets": budgets, "settings": settings}))
        about = path / ABOUT
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not about.exists():
                _write(about, json.dumps(run).encode())
                return
            found = json.loads(about.read_bytes())
        except OSError as error:
            raise FileError(f"{path} cannot keep an experiment: {error.strerror or error}") from None
        except ValueError:
            raise FileError(f"{about} is damaged: delete {path} to begin again") from None
        if found != run:
            raise InputError(
                f"{path} holds another experiment (problem, policies, budgets, settings or versions differ):"
                " resume it with what it was begun with, or choose another directory"
            )

    def load(self, task: "Task") -> Outcome | None:
        """The outcome of a task that was finished before."""
        budgets, chains = self.shape
        shape = (budgets, task.stop - task.start, chains)
        try:
            with open(self._file(task), "rb") as stream, np.load(stream, allow_pickle=False) as file:
                loss, pulls = file["loss"], file["pulls"]
        except Exception:  # the reader may raise anything on bytes that are not an archive of arrays
            return None  # missing, or damaged by a crash: the task is run again
        right = loss.shape == pulls.shape == shape and (loss.dtype, pulls.dtype) == (np.float64, np.int64)
        return (loss, pulls) if right else None

    def store(self, task: "Task", outcome: Outcome) -> None:
        """Stores an outcome, completely or not at all."""
        file = self._file(task)
        partial = _partial(file)
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
    for pattern in ("task-*", f"{ABOUT}*"):
        for file in path.glob(pattern):
            file.unlink()
    path.rmdir()


def _write(file: Path, content: bytes) -> None:
    partial = _partial(file)
    partial.write_bytes(content)
    partial.replace(file)


def _partial(file: Path) -> Path:
    return file.with_name(f"{file.name}.{os.getpid()}.partial")
