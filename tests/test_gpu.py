"""The GPU engine where there is no GPU: under numba's simulator, and what it says without one."""

import subprocess
import sys
from pathlib import Path

import pytest
from numba import cuda

import chainscout as cs
from chainscout import engine

SCRIPT = Path(__file__).with_name("gpu_simulated.py")


def test_every_policy_under_the_simulator_chooses_as_on_the_cpu() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False, timeout=500)
    assert done.stdout == "all agree\n", done.stderr


def test_without_a_gpu_it_says_so_and_auto_takes_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "is_available", lambda: False)  # so that it is tested where there is one, too
    problem = cs.problems.get("two-state")
    with pytest.raises(cs.ChainscoutError, match="needs an NVIDIA GPU") as caught:
        cs.compare(problem, ["uniform"], [10], 2, engine="gpu")
    assert caught.value.exit_status == 2
    assert engine.resolved("auto") == "cpu"
    assert cs.compare(problem, ["uniform"], [10], 2, engine="auto").settings["engine"] == "cpu"
