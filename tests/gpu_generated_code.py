"""The code that the GPU engine generates, compiled where there is no GPU: run by a test.

It is a program of its own because it puts something else in place of what only a machine with a GPU has: the device
that numba-cuda asks for its generation, the memory, the linker and the launch. The compiler (libnvvm) is the real one.
"""

import os

os.environ["NUMBA_FORCE_CUDA_CC"] = "9.0"

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from cuda.pathfinder import load_nvidia_dynamic_lib
from numba import config, cuda
from numba.cuda import codegen, decorators, dispatcher
from numba.cuda.cudadrv import driver, nvvm

import chainscout as cs
from chainscout import engine
from chainscout.engine import gpu
from chainscout.engine.gpu import devices, launch

#: What the linker of every kernel was given, in their order: its kind and its text.
LINKED: list[tuple[str, str]] = []
PRODUCT = re.compile(r"\b(fma|mad|mul)(?:\.rn)?\.f64\b")


class Linker:
    """Keeps what it is given to link."""

    info_log = ""

    def __init__(self, *, lto, **options):
        self.lto = lto

    def add_ptx(self, code):
        LINKED.append(("ptx", code.decode()))

    def add_ltoir(self, code):
        LINKED.append(("ltoir", ""))

    def complete(self):
        return b""


class Event:
    """Stands for a moment on the device."""

    def record(self):
        pass

    synchronize = record


def without_a_device() -> None:
    library = Path(load_nvidia_dynamic_lib("nvvm").abs_path).parent.parent
    nvvm.LibDevice._cache_ = next(library.glob("**/libdevice.10.bc")).read_bytes()
    codegen.CUDACodeLibrary._ensure_cc = lambda self, cc: (9, 0)
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
    dispatcher._Kernel.bind = lambda self: self._codelibrary.get_cubin()
    dispatcher._Kernel.launch = lambda *arguments, **options: None
    driver._Linker = Linker
    decorators._have_nvjitlink = lambda: True  # so that link-time optimisation is what numba-cuda does by itself
    cuda.is_available = lambda: True
    cuda.event = Event
    memory = SimpleNamespace(**{**vars(np), "empty": np.zeros})
    launch.arrays = devices.arrays = lambda: memory
    launch.argument = lambda array: array
    launch.free_bytes = lambda: 1 << 30


def products(code: str) -> dict[str, int]:
    """How many double-precision multiplications there are of each kind."""
    found = PRODUCT.findall(code)
    return {kind: found.count(kind) for kind in ("fma", "mad", "mul")}


def contractible(out, a, b, c):
    out[0] = a * b + c


def main() -> None:
    without_a_device()
    arguments = (np.zeros(1), 1.0, 2.0, 3.0)
    gpu.specialised_kernel(contractible, {}, np.float64).launch(1, 1, arguments)
    kind, code = LINKED.pop()
    assert (kind, products(code)) == ("ptx", {"fma": 0, "mad": 0, "mul": 1})
    # It takes both: the linker gets code to optimise again unless it is told otherwise, and the compiler contracts.
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    cuda.jit(contractible)[1, 1](*arguments)
    assert LINKED.pop()[0] == "ltoir"
    cuda.jit(contractible, lto=False)[1, 1](*arguments)
    assert products(LINKED.pop()[1])["fma"] == 1
    problem = cs.problems.get("dirichlet:chains=3,states=3,seed=0")
    large = cs.problems.get("dirichlet:chains=50,states=10,seed=0")
    for policy, each in (("ba-mc", problem), ("ba-mc", large), ("scout:block=0.1", problem)):
        engine.run(each, policy, [400], range(64), engine.Options(seed=0, engine="gpu"))
        kind, code = LINKED.pop()
        found = products(code)
        assert (kind, found["fma"], found["mad"]) == ("ptx", 0, 0), policy
        assert found["mul"] > 0
    # Its logarithms are sums and products too: nothing of the device's own library is left that rounds differently.
    engine.run(problem, "certifier", [400], range(64), engine.Options(engine="gpu"))
    kind, code = LINKED.pop()
    assert (kind, products(code)["fma"]) == ("ptx", 0)
    engine.run(problem, "ba-mc", [400], range(64), engine.Options(seed=0, engine="gpu:float32"))
    assert LINKED.pop()[0] == "ltoir"
    print("nothing is contracted")


if __name__ == "__main__":
    main()
