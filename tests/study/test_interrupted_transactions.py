"""Ctrl-C at the moment when a transaction is about to end: nothing stays open, and nobody waits."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from chainscout.store.sql import database
from chainscout.study import Study


def interrupt(at: str) -> Any:
    """A tracer that raises KeyboardInterrupt when a function of this name in ``database`` is entered, once."""
    done = []

    def trace(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if not done and event == "call" and code.co_name == at and code.co_filename == database.__file__:
            done.append(at)
            raise KeyboardInterrupt

    return trace


@pytest.mark.parametrize("at", ["__enter__", "__exit__", "commit", "begin"])
@pytest.mark.parametrize("call", ["read", "tell", "tell_many"])
def test_the_next_call_works_and_nobody_waits(tmp_path: Path, at: str, call: str) -> None:
    where = tmp_path / "study.db"
    with Study.create(where, {"a": 2, "b": 2}) as study, Study.open(where, patience=0.5) as other:
        study.tell("a", 0)
        calls = {
            "read": lambda: study.names,
            "tell": lambda: study.tell("a", 1),
            "tell_many": lambda: study.tell_many([("a", 1), ("b", 0)]),
        }
        sys.settrace(interrupt(at))
        try:
            calls[call]()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        other.tell("b", 1)  # the interrupted transaction holds no lock
        before = study.progress().observations
        study.tell("b", 0)
        assert study.progress().observations == before + 1
        study.audit()
