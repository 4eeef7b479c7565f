"""The GPUs of this machine, and arrays in their memory."""

from typing import Any

import numpy as np

from ...errors import ChainscoutError, MissingExtraError

#: The arrays of one launch take at most this part of the free device memory.
MEMORY_SHARE = 0.6


class NoDeviceError(ChainscoutError):
    """There is no GPU, or its driver does not answer."""

    exit_status = 2


def is_available() -> bool:
    """Whether the engine ``gpu`` can run here."""
    try:
        arrays()
    except ChainscoutError:
        return False
    return True


def compiler() -> Any:
    """numba's CUDA module, if it has a device to compile for."""
    try:
        import numba_cuda  # noqa: F401  # numba's own CUDA target is no longer maintained
        from numba import cuda
    except ImportError:
        raise MissingExtraError("the engine 'gpu'", "gpu") from None
    except AttributeError:  # this NumPy lacks functions that numba-cuda uses
        raise MissingExtraError("the engine 'gpu', with the NumPy that it works with,", "gpu") from None
    except RuntimeError:  # numba-cuda loads CUDA's runtime library when it is imported, and there is none
        raise MissingExtraError("the engine 'gpu', with the CUDA runtime that it works with,", "gpu") from None
    if not cuda.is_available():
        raise NoDeviceError(
            "the engine 'gpu' needs an NVIDIA GPU and its driver, and none answers; 'cpu' runs everywhere"
        )
    return cuda


def is_simulated() -> bool:
    """Whether numba's simulator replaces the device (NUMBA_ENABLE_CUDASIM): kernels are then interpreted."""
    from numba import config

    return bool(getattr(config, "ENABLE_CUDASIM", False))


def scalars() -> dict[str, Any]:
    """The meaning of ``whole`` and ``signed`` in a kernel: unsigned and signed 64-bit words.

    Under the simulator they are Python's own numbers.
    """
    return {"whole": int, "signed": int} if is_simulated() else {"whole": np.uint64, "signed": np.int64}


def arrays() -> Any:
    """The module whose arrays are in the device's memory: CuPy, or NumPy itself under the simulator."""
    compiler()  # raises the error for a missing device first
    if is_simulated():
        return np
    try:
        import cupy
    except ImportError:
        raise MissingExtraError("the engine 'gpu'", "gpu") from None
    return cupy


def argument(array: Any) -> Any:
    """A CuPy array in the form that a kernel's NamedTuple needs. The simulator takes NumPy arrays as they are."""
    return array if is_simulated() else compiler().as_cuda_array(array)


def number() -> int:
    """How many GPUs there are."""
    return 1 if is_simulated() else len(compiler().gpus)


def use(device: int) -> None:
    """From now on this thread uses the device with this number."""
    if not is_simulated():
        compiler().select_device(device)
        arrays().cuda.Device(device).use()


def free_bytes() -> int:
    """The free memory of this thread's device."""
    if is_simulated():
        return 1 << 40
    device = arrays()
    free, _ = device.cuda.runtime.memGetInfo()
    return int(free) + int(device.get_default_memory_pool().free_bytes())  # freed memory stays in CuPy's pool


def at_home(array: Any) -> Any:
    """The array in the memory of the host."""
    return array if isinstance(array, np.ndarray) else array.get()
