"""The program that holds a lease: its mark in the lease's token says whether it still runs.

A program that was killed cannot give its leases back, and they last for a while. The next program ends them at once,
but only if their program is known to be gone. That can be known of programs on the same machine, while it is up.
"""

import hashlib
import os
import platform
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["is_gone", "running"]

#: The marks of what runs in this process.
_RUNNING: set[str] = set()


@contextmanager
def running() -> Iterator[str]:
    """A mark for tokens, of something that runs until the end of the ``with`` block."""
    process = os.getpid()
    mark = f"-{_machine()}-{process}-{_begun(process)}-{secrets.token_hex(8)}"
    _RUNNING.add(mark)
    try:
        yield mark
    finally:
        _RUNNING.discard(mark)


def is_gone(token: str) -> bool:
    """Whether the token has a mark, and its program is known to be gone. A program elsewhere never is."""
    _, dash, rest = token.partition("-")
    if not dash:
        return False
    machine, process, begun, _ = rest.split("-")
    if machine != _machine():
        return False
    if int(process) == os.getpid() and begun == _begun(os.getpid()):
        return dash + rest not in _RUNNING
    return begun != _begun(int(process))


def _machine() -> str:
    """Two programs with the same one see the same processes by the same numbers. It changes when a machine starts."""
    try:
        boot, space = Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")
    except OSError:
        boot, space = platform.node(), str(uuid.getnode())
    return hashlib.blake2b(f"{boot} {space}".encode(errors="replace"), digest_size=8).hexdigest()


def _begun(process: int) -> str:
    """When a process began, in the system's own clock; '0' if that cannot be known, and '' if there is no process."""
    try:
        state, *others = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else others[18]  # a process that has ended, and is not waited for yet
    except OSError:
        pass
    if Path("/proc/self/stat").exists():
        return ""
    if os.name != "posix":  # there, signal 0 would end the process
        return "0"
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass
    return "0"
