"""Results on disk: netCDF in its classic format, written and read by scipy."""

import hashlib
import json
import os
from typing import Any

import numpy as np
from scipy.io import netcdf_file

from ..errors import FileError, InputError
from ..problems.reading import as_path, of_document, reason
from ..problems.schema import Errors, document
from ..validation import shown
from .results import DIMENSIONS, Results

#: The layout of saved files; a file with another number was made by another version.
FORMAT = 1
#: A variable of the classic format is below 2 GiB.
LARGEST = 1 << 31


def save(results: Results, path: str | os.PathLike[str]) -> None:
    """Writes ``results``, completely or not at all."""
    target = as_path(path)
    if results.loss.nbytes >= LARGEST:
        raise InputError(
            f"a netCDF file of the classic format holds arrays below 2 GiB, and the losses take"
            f" {results.loss.nbytes / 2**30:.1f} GiB: take fewer replications, or in Python write"
            " them by to_xarray().to_netcdf()"
        )
    arrays = {
        "policy": (("policy", "policy_characters"), _characters(results.policies)),
        "chain": (("chain", "chain_characters"), _characters(results.problem.names)),
        "budget": (("budget",), np.array(results.budgets, dtype=">f8")),  # the format has no integers above 2³¹
        "loss": (DIMENSIONS, results.loss.astype(">f8")),
        "pulls": (DIMENSIONS, results.pulls.astype(">i4" if max(results.budgets) < LARGEST else ">f8")),
        "target": (("policy", "chain"), results.targets.astype(">f8")),
    }
    texts = {
        "settings": json.dumps(dict(results.settings)).encode(),
        "problem": json.dumps(document(results.problem)).encode(),
    }
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with netcdf_file(partial, "w", version=2) as file:
            file.format = FORMAT
            for name, text in texts.items():
                setattr(file, name, text)
            file.digest = _digest(texts, {name: array for name, (_, array) in arrays.items()})
            for name, (dimensions, array) in arrays.items():
                for dimension, size in zip(dimensions, array.shape, strict=True):
                    if dimension not in file.dimensions:
                        file.createDimension(dimension, size)
                variable = file.createVariable(name, array.dtype, dimensions)
                variable[:] = array
                if array.dtype.kind == "S":
                    variable._Encoding = b"utf-8"  # tells xarray that the characters are text
        partial.replace(target)
    except (OSError, ValueError) as error:
        raise FileError(f"{target} could not be written: {reason(error)}") from None
    finally:
        partial.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Results:
    """The results in a file that ``save`` wrote."""
    where = as_path(path)
    try:
        with netcdf_file(where, "r", mmap=False) as file:
            made_by = int(file.format)
            texts = {name: getattr(file, name) for name in ("settings", "problem")}
            names = ("policy", "chain", "budget", "loss", "pulls", "target")
            arrays = {name: file.variables[name].data.copy() for name in names}
            intact = made_by != FORMAT or file.digest == _digest(texts, arrays)
    except FileNotFoundError:
        raise FileError(f"there is no file {where}") from None
    except (IsADirectoryError, PermissionError) as error:
        raise FileError(f"{where} cannot be read: {reason(error)}") from None
    except Exception as error:  # the reader may raise anything on bytes that are not netCDF, or not ours
        raise FileError(f"{where} is damaged or is not a saved experiment ({shown(str(error))})") from None
    if made_by != FORMAT:
        raise FileError(f"{where} has format {made_by}, and this version of chainscout reads {FORMAT}")
    if not intact:
        raise FileError(f"{where} is damaged: its contents have changed since they were written")
    errors = Errors(str(where))
    try:  # the check sum detects changes, but does not prove who made the file
        problem = of_document(json.loads(texts["problem"]), errors)
        if problem is None:
            raise FileError("\n".join(errors.lines))
        return Results(
            problem,
            tuple(name.decode() for name in arrays["policy"].view(f"S{arrays['policy'].shape[1]}").ravel()),
            tuple(int(budget) for budget in arrays["budget"]),
            arrays["loss"].astype(np.float64),
            arrays["pulls"].astype(np.int64),
            arrays["target"].astype(np.float64),
            json.loads(texts["settings"]),
        )
    except FileError:
        raise
    except Exception as error:
        raise FileError(f"{where} is damaged or is not a saved experiment ({shown(str(error))})") from None


def _characters(names: tuple[str, ...]) -> Any:
    """Names as an array of single bytes (name, place), the classic format's only text."""
    try:
        encoded = [name.encode() for name in names]
    except UnicodeEncodeError as error:
        raise InputError(f"names in a saved experiment must be valid Unicode, not {shown(error.object)}") from None
    return np.array(encoded).view("S1").reshape(len(names), -1)


def _digest(texts: dict[str, bytes], arrays: dict[str, Any]) -> bytes:
    """A checksum of everything in a file: the format has none."""
    digest = hashlib.sha256()
    for text in texts.values():
        digest.update(text)
    for array in arrays.values():
        digest.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest().encode()
