"""The kernel specialised for a policy and a problem's shape, compiled for the device by numba-cuda."""

import threading
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ...compile import Copies, bound
from .devices import is_simulated

#: What a launch changes for its time is everybody's: one launch after the other. None lasts longer than compilation.
_LAUNCHING = threading.Lock()

#: Device functions that no bound name reaches, by precision: all kernels share them.
_SHARED: dict[type, dict[Any, Any]] = {}


class DeviceCopies(Copies):
    """Copies of a rule's functions for the device. In single precision every float constant is one too, or the
    arithmetic would be done in double precision."""

    def __init__(self, names: Mapping[str, Any], real: type) -> None:
        super().__init__(names, compile=True)
        self.real = real
        self.shared = _SHARED.setdefault(real, {})

    def jitted(self, copy: FunctionType) -> Any:
        """A device function."""
        from numba import cuda

        return cuda.jit(device=True, **options(self.real))(copy)

    def code(self, code: CodeType) -> CodeType:
        """The code with its float constants in the precision that is asked for."""
        if self.real is np.float64:
            return code
        constants = tuple(np.float32(value) if type(value) is float else value for value in code.co_consts)
        return code.replace(co_consts=constants)

    def number(self, value: Any, own: bool) -> Any:
        """A global value likewise."""
        if type(value) is float and self.real is np.float32:
            return np.float32(value)
        return super().number(value, own)


def options(real: type) -> dict[str, Any]:
    """Compiler options: fast arithmetic in single precision only."""
    return {"fastmath": real is np.float32}


def kernel(
    function: Callable[..., Any], names: Mapping[str, Any], real: type, all_shared: bool, contracted: bool = True
) -> Any:
    """The kernel, ready to be launched. Under numba's simulator it is interpreted.

    What is not shared memory is cache. If the state is ``all_shared``, shared memory decides how many replications run
    at a time; if not, the driver's own division was the fastest or near it in every case that was tried. A kernel that
    is not to be ``contracted`` is not optimised again when it is linked: that would contract it after all.
    """
    from numba import cuda

    if is_simulated():
        return cuda.jit(bound(function, names))
    copy, _ = DeviceCopies(names, real).copy(function, outermost=True)  # type: ignore[arg-type]
    division = {"shared_memory_carveout": "maxshared"} if all_shared else {}
    linking = {} if contracted else {"lto": False}
    return cuda.jit(**division, **linking, **options(real))(copy)


def launch(ready: Any, blocks: int, threads: int, arguments: Sequence[Any], contracted: bool = True) -> None:
    """Launches a kernel, which is compiled when it is launched for the first time.

    Without numba's warning that few replications leave most of the device idle; and if a·b + c may not be contracted
    to one rounding, with the compiler told so: numba-cuda has no option for that, though what is below it has.
    """
    import numba

    with _LAUNCHING:
        config: Any = numba.config
        warns = getattr(config, "CUDA_LOW_OCCUPANCY_WARNINGS", 0)
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        restore = None if contracted or is_simulated() else _forbid_contraction()
        try:
            ready[blocks, threads](*arguments)
        finally:
            config.CUDA_LOW_OCCUPANCY_WARNINGS = warns
            if restore is not None:
                restore()


def _forbid_contraction() -> Callable[[], None]:
    from numba.cuda.cudadrv import nvvm

    compile_ir = nvvm.compile_ir
    nvvm.compile_ir = lambda modules, **options: compile_ir(modules, **{**options, "fma": False})

    def restore() -> None:
        nvvm.compile_ir = compile_ir

    return restore
