"""Any program in any language as a source, over two lines of text.

The program reads one request a line from its standard input and answers each with one line on its standard output:

    next      →  the state that the chain is in after one more step (the first time, the state it starts in)
    restart   →  the state of a fresh start

A state is a label or a whole number. The program ends when its input ends. Its standard error is passed through. It is
run with the given words, without a shell. If it dies, answers too late, or answers with an invalid state, it is ended,
its observation is lost, and it is started again for a new path.
"""

import contextlib
import os
import queue
import re
import shutil
import subprocess
import threading
from collections.abc import Hashable, Sequence
from typing import IO

from ..errors import InputError, SourceError, SourceNotStarted
from ..validation import seconds, shown
from .source import Source

__all__ = ["Program"]

#: A line longer than this is not a state.
_LONGEST = 10_000


class Program(Source):
    """A program's process, started when it is first needed."""

    def __init__(self, command: Sequence[str], timeout: float | str = 60.0, directory: str | None = None) -> None:
        """``command``: the words of the command line. ``timeout``: how long an answer may take, in seconds or in
        words such as ``"2min"``.
        """
        if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
            raise InputError(f"a command must be a list of words, as in ['./simulate', '--fast'], not {shown(command)}")
        self.command = list(command)
        self._timeout = seconds(timeout, "timeout", meaning="seconds that an answer may take")
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        self._restart = False

    def check(self) -> None:
        """Raises ``InputError`` if there is no such program, or no such directory."""
        if self._directory is not None and not os.path.isdir(self._directory):
            raise InputError(f"{shown(self.command)} cannot be started: there is no directory {self._directory}")
        program = self.command[0]
        if os.path.dirname(program):  # a path is relative to the directory; a bare name is searched in PATH
            program = os.path.join(self._directory or "", program)
        if shutil.which(program) is None:
            what = "the file" if os.path.isfile(program) else "there is no program"
            why = " cannot be executed" if os.path.isfile(program) else ""
            raise InputError(f"{shown(self.command)} cannot be started: {what} {self.command[0]!r}{why}")
        if re.fullmatch(r"python[\d.]*(\.exe)?", os.path.basename(program)):
            self._check_python()

    def _check_python(self) -> None:
        """Raises ``InputError`` if a Python interpreter would run a module or a script that does not exist."""
        words = iter(self.command[1:])
        for word in words:
            if word in ("-W", "-X", "--check-hash-based-pycs"):
                next(words, None)
            elif word == "-m":
                module = next(words, "")
                looks = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
                # -m puts the current directory first into the search path, and so does -c.
                search = [self.command[0], "-c", looks, module]
                found = subprocess.run(search, cwd=self._directory, capture_output=True, check=False)
                if found.returncode:
                    raise InputError(f"{shown(self.command)} cannot be started: Python finds no module {module!r}")
                return
            elif not word.startswith("-"):
                if not os.path.exists(os.path.join(self._directory or "", word)):
                    raise InputError(f"{shown(self.command)} cannot be started: there is no file {word!r}")
                return
            elif word == "-c" or word == "-":
                return

    def advance(self) -> tuple[Hashable, bool]:
        """The program's next state."""
        if self._process is None:
            self._start()
            return self._ask("next"), True
        if self._restart:
            self._restart = False
            return self._ask("restart"), True
        return self._ask("next"), False

    def restart(self) -> None:
        """The next state comes from a fresh start."""
        self._restart = self._process is not None

    def _start(self) -> None:
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=self._directory,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise SourceNotStarted(f"{shown(self.command)} could not be started: {error.strerror}") from None
        assert process.stdout is not None
        self._process, self._restart, self._answers = process, False, queue.Queue()
        threading.Thread(target=_listen, args=(process.stdout, self._answers), daemon=True).start()

    def _ask(self, request: str) -> str:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request.encode() + b"\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=self._timeout)
        except (OSError, ValueError):
            line = None
        except queue.Empty:
            raise self._failed(f"has not answered for {self._timeout:g} seconds") from None
        if line is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1.0)
            raise self._failed(f"has ended with status {self._process.poll()}")
        try:
            text = line.decode().strip()
        except UnicodeDecodeError:
            text = ""
        if not text or len(line) >= _LONGEST or not text.isprintable():
            raise self._failed(f"answered {shown(line)}, which is no state")
        return text

    def reject(self, state: Hashable) -> SourceError:
        """The error for a state that the chain does not have. The program is ended, because its path is unusable."""
        return self._failed(f"answered {shown(state)}, which is no state of the chain")

    def _failed(self, what: str) -> SourceError:
        self.close()
        return SourceError(f"the program {shown(self.command)} {what}")

    def close(self) -> None:
        """Ends the program: first by ending its input, then by force."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listen(stream: IO[bytes], answers: "queue.Queue[bytes | None]") -> None:
    """Passes the program's lines on, in its own thread, so that a silent program can be given up."""
    with stream, contextlib.suppress(OSError, ValueError):
        while line := stream.readline(_LONGEST):
            answers.put(line)
    answers.put(None)
