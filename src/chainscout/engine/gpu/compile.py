"""The kernel specialised for a policy and a problem's shape, compiled for the device by numba-cuda."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ...compile import Copies, bound
from .devices import is_simulated

#: A launch changes global settings for a while, so launches run one after the other. None takes longer than
#: compilation.
_LAUNCHING = threading.Lock()

#: Device functions that reach no bound name, by precision: all kernels share them.
_SHARED: dict[type, dict[Any, Any]] = {}


class DeviceCopies(Copies):
    """Copies of a rule's functions for the device.

    In single precision every float constant is converted too. Otherwise the arithmetic would be in double precision.
    """

    def __init__(self, names: Mapping[str, Any], real: type) -> None:
        super().__init__(names, compile=True)
        self.real = real
        self.shared = _SHARED.setdefault(real, {})

    def jitted(self, copy: FunctionType) -> Any:
        """A device function."""
        from numba import cuda

        return cuda.jit(device=True, **options(self.real))(copy)

    def code(self, code: CodeType) -> CodeType:
        """The code with its float constants in the requested precision."""
        if self.real is np.float64:
            return code
        constants = tuple(np.float32(value) if type(value) is float else value for value in code.co_consts)
        return code.replace(co_consts=constants)

    def number(self, value: Any, own: bool) -> Any:
        """A global value in the requested precision."""
        if self.real is np.float32:
            if type(value) is float:
                return np.float32(value)
            if type(value) is tuple:
                return tuple(self.number(each, own) for each in value)
        return super().number(value, own)


def options(real: type) -> dict[str, Any]:
    """Compiler options: fast arithmetic in single precision only."""
    return {"fastmath": real is np.float32}


class GpuKernel:
    """A function that is compiled for the device at its first launch.

    In double precision every product and every sum is rounded separately, as on the CPU. This needs two things. The
    compiler is told not to contract a·b + c to one rounding (numba-cuda has no option for this, but the compiler below
    it has). And the linker must not optimise the code again, because it would contract again. numba-cuda 0.30 obeys
    ``lto=False`` only if ``jit`` gets the function in the same call.
    """

    def __init__(self, function: FunctionType, real: type, **division: Any) -> None:
        from numba import cuda

        self.rounds_as_cpu = real is np.float64
        linking = {"lto": False} if self.rounds_as_cpu and not is_simulated() else {}
        self.dispatcher: Any = cuda.jit(function, **division, **linking, **options(real))

    def launch(self, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        """Launches the kernel, without numba's warning that few replications leave most of the device idle."""
        import numba

        with _LAUNCHING:
            config: Any = numba.config
            warns = getattr(config, "CUDA_LOW_OCCUPANCY_WARNINGS", 0)
            config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
            try:
                with _no_contraction() if self.rounds_as_cpu and not is_simulated() else nullcontext():
                    self.dispatcher[blocks, threads](*arguments)
            finally:
                config.CUDA_LOW_OCCUPANCY_WARNINGS = warns


def specialised_kernel(
    function: Callable[..., Any], names: Mapping[str, Any], real: type, all_shared: bool = False
) -> GpuKernel:
    """The kernel, ready to be launched, with ``names`` bound to these values. numba's simulator interprets it.

    Memory that is not shared memory is cache. If the state is ``all_shared``, shared memory decides how many
    replications run at a time. If not, the driver's own division was the fastest, or nearly so, in every case tried.
    """
    if is_simulated():
        return GpuKernel(bound(function, names), real)  # type: ignore[arg-type]
    copy, _ = DeviceCopies(names, real).copy(function, outermost=True)  # type: ignore[arg-type]
    return GpuKernel(copy, real, **({"shared_memory_carveout": "maxshared"} if all_shared else {}))


@contextmanager
def _no_contraction() -> Iterator[None]:
    """Code that is compiled within this context rounds every product separately."""
    from numba.cuda.cudadrv import nvvm

    compile_ir = nvvm.compile_ir
    nvvm.compile_ir = lambda modules, **options: compile_ir(modules, **{**options, "fma": False})
    try:
        yield
    finally:
        nvvm.compile_ir = compile_ir
