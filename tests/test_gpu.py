"""The GPU engine where there is no GPU: under numba's simulator, and what it says without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import chainscout as cs
from chainscout import engine

SCRIPT = Path(__file__).with_name("gpu_simulated.py")
GENERATED_CODE = Path(__file__).with_name("gpu_generated_code.py")
#: The scripts use the kernels of the trials, which stand beside the package.
WITH_TRIALS = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}


def test_every_policy_under_the_simulator_chooses_as_on_the_cpu() -> None:
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500, env=WITH_TRIALS)
    assert done.stdout == "all agree\n", done.stderr


def test_no_product_is_contracted_in_the_code_that_is_compiled_and_linked() -> None:
    command = [sys.executable, str(GENERATED_CODE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=WITH_TRIALS)
    assert done.stdout == "nothing is contracted\n", done.stderr


def test_without_a_gpu_it_says_so_and_auto_takes_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: False)  # so that it is tested where there is one, too
    problem = cs.problems.get("two-state")
    with pytest.raises(cs.ChainscoutError, match="needs an NVIDIA GPU") as caught:
        cs.compare(problem, ["uniform"], [10], 2, engine="gpu")
    assert caught.value.exit_status == 2
    assert engine.resolved("auto") == "cpu"
    assert cs.compare(problem, ["uniform"], [10], 2, engine="auto").settings["engine"] == "cpu"


#: What happens on a machine that has numba-cuda and no CUDA runtime: the import itself fails.
WITHOUT_RUNTIME = """
import sys

class NoRuntime:
    def find_spec(self, name, path=None, target=None):
        if name == "numba.cuda":
            raise RuntimeError('Failure finding "libcudart.so.13 or libcudart.so.12"')

sys.meta_path.insert(0, NoRuntime())
from chainscout.cli import main
main(sys.argv[1:])
"""


def command_without_runtime(*words: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        WITHOUT_RUNTIME,
        "compare",
        "two-state",
        "--policies",
        "uniform",
        "--budgets",
        "10",
    ]
    return subprocess.run([*command, "--replications", "2", *words], capture_output=True, text=True, check=False)


def test_without_the_cuda_runtime_auto_takes_the_cpu() -> None:
    done = command_without_runtime("--engine", "auto")
    assert done.returncode == 0, done.stderr
    assert "uniform" in done.stdout


def test_without_the_cuda_runtime_the_gpu_is_refused_in_a_sentence() -> None:
    done = command_without_runtime("--engine", "gpu")
    assert done.returncode == 2
    assert "with the CUDA runtime that it works with" in done.stderr
    assert "Traceback" not in done.stderr
