"""Results on disk: NumPy's archive of arrays (``.npz``), whose members have check sums."""

import json
import os

import numpy as np

from ..errors import FileError
from ..problems.reading import as_path, of_document, reason
from ..problems.schema import Errors, document
from ..validation import shown
from .results import Results

#: The layout of saved files; a file with another number was made by another version.
FORMAT = 2


def save(results: Results, path: str | os.PathLike[str]) -> None:
    """Writes ``results``, completely or not at all."""
    target = as_path(path)
    about = {
        "format": FORMAT,
        "policies": results.policies,
        "budgets": results.budgets,
        "settings": dict(results.settings),
        "problem": document(results.problem),
    }
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            np.savez(file, about=json.dumps(about), loss=results.loss, pulls=results.pulls, targets=results.targets)
        partial.replace(target)
    except (OSError, ValueError) as error:
        raise FileError(f"{target} could not be written: {reason(error)}") from None
    finally:
        partial.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Results:
    """The results in a file that ``save`` wrote."""
    where = as_path(path)
    try:
        with open(where, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            if about["format"] != FORMAT:
                raise FileError(f"{where} has format {about['format']}, and this version of chainscout reads {FORMAT}")
            errors = Errors(str(where))
            problem = of_document(about["problem"], errors)
            if problem is None:
                raise FileError("\n".join(errors.lines))
            policies, budgets = tuple(map(str, about["policies"])), tuple(map(int, about["budgets"]))
            loss, pulls, targets = (file[name] for name in ("loss", "pulls", "targets"))
            shape = (len(policies), len(budgets), loss.shape[2], len(problem))
            if loss.shape != shape or pulls.shape != shape or targets.shape != (shape[0], shape[3]):
                raise ValueError("the arrays do not have the sizes that the file names")
            return Results(problem, policies, budgets, loss, pulls, targets, about["settings"])
    except FileNotFoundError:
        raise FileError(f"there is no file {where}") from None
    except (IsADirectoryError, PermissionError) as error:
        raise FileError(f"{where} cannot be read: {reason(error)}") from None
    except FileError:
        raise
    except Exception as error:  # the reader may raise anything on bytes that are no archive, or not ours
        raise FileError(f"{where} is damaged or is not a saved experiment ({shown(str(error))})") from None
