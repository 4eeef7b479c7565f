"""Values of kinds that are nearly Python's own: NumPy's numbers and texts, and subclasses of ``str``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainscout.errors import InputError
from chainscout.policies import Policy
from chainscout.study import Study


class Name(str):
    """A text of its own kind."""

    __slots__ = ()


def own(kind: Callable[[float], Any]) -> Policy:
    """A policy whose index is a number of this kind: the chain with the fewest transitions first."""
    version: Any = np.int64(2)
    return Policy(Name("own"), lambda s, t, c: kind(1 / (1 + t)), lambda row, n, q, c: (n,), version=version)


@pytest.mark.parametrize("version", ["two", None, 1.5, -1])
def test_a_version_that_is_no_number_is_refused(version: Any) -> None:
    with pytest.raises(InputError, match=r"version \(the number of the rule's version\) must be a whole number"):
        Policy("own", lambda s, t, c: 1.0, lambda row, n, q, c: (n,), version=version)


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        (np.array(["pump", "valve"]), {}),
        ([Name("pump"), Name("valve")], {}),
        (["pump", "valve"], {"certificate": np.str_("sharp"), "paths": Name("shared")}),
        (["pump", "valve"], {"questions": ["reach 1 from 0 within 3"], "worst": np.str_("highest")}),
        (["pump", "valve"], {"policy": own(np.float32)}),
        (["pump", "valve"], {"policy": own(np.float64)}),
    ],
)
def test_a_study_reads_back_what_it_was_given(tmp_path: Path, names: Any, settings: dict[str, Any]) -> None:
    where = tmp_path / "study.db"
    policy = settings.get("policy")
    asked = []
    memory = Study.create(None, dict.fromkeys(names, 2), **settings)
    with Study.create(where, dict.fromkeys(names, 2), **settings) as study:
        worker, other = study.worker("w"), memory.worker("w")
        for t in range(12):
            for one in (worker, other):
                lease = one.lease()
                assert lease is not None
                lease.tell(t % 2)
                asked.append(lease.chain)
    assert asked[::2] == asked[1::2]  # SQLite compares the indices as Python does
    with Study.open(where, policy=policy) as study:
        assert study.progress().observations == 12
        study.audit()
        assert all(type(name) is str for name in study.names)
        assert all(type(index) is float for index in study.indices().values())
