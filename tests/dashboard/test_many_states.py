"""Chains with very many states: parts of their matrices, and refusals before anything is begun."""

import math
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dashboard_servers import Running

from chainscout.counts import Counts
from chainscout.dashboard.application import matrix_lines
from chainscout.errors import InputError
from chainscout.report import studies
from chainscout.report.study_data import StudyReport
from chainscout.report.study_page import study_page
from chainscout.study import Study
from chainscout.study.export import FORMATS, content, problem


def many_states(where: Path | None, size: int, *, is_open: bool) -> Study:
    study = Study.create(where, {"many": size}, open_states=is_open)
    study.tell_many([("many", state) for state in (*range(0, size, 1 + size // 2_000), 17, 18, 0)])
    return study


def test_parts_are_those_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    counts = Counts.from_transitions(rng.poisson(0.7, (9, 9)))
    study = Study.create(None, {"closed": 9, "open": []}, open_states=["open"], warm_start={"closed": counts})
    study.tell_many([("open", state) for state in rng.integers(0, 3, 60).tolist()])
    for name, states in (("closed", 9), ("open", 3)):
        found = study.estimate(name)
        part = found.window(range(1, 3), range(1, 100))
        for kind in ("transitions", "matrix", "lower", "upper"):
            assert np.array_equal(getattr(part, kind), getattr(found, kind)[1:3, 1:states])
        assert np.array_equal(found.widths(), (found.upper - found.lower).max(axis=1))


def test_a_chain_that_has_shown_no_state() -> None:
    study = Study.create(None, {"open": []}, open_states=True)
    found = study.estimate("open")
    parts = (found.transitions, found.matrix, found.lower, found.upper, *found.window(range(3), range(3)))
    assert all(part.shape == (0, 0) for part in parts)
    assert found.widths().shape == (0,)
    assert StudyReport(study, "x").chain(0).window.rows == ()
    assert b'"open"' in content(study, "json")


@pytest.mark.parametrize("size", [10_000])
def test_the_view_of_a_chain_with_many_open_states_is_quick(size: int) -> None:
    study = many_states(None, size, is_open=True)
    report = StudyReport(study, "many")
    report.overview()
    begun = time.process_time()
    view = report.chain(0, row=17, column=18)
    assert time.process_time() - begun < 1.0
    assert view.line.states == size
    assert view.window.transitions[0][0] >= 1  # 17 → 18
    assert view.window.upper[0][1] == 1.0
    assert view.never + view.rarely == size


PROGRAM = """
import itertools, re, sys
from pathlib import Path
from chainscout.dashboard.application import matrix_lines
from chainscout.study import Study
with Study.open(sys.argv[1], read_only=True) as study:
    lines = matrix_lines(study, study.names[0])
    entries = sum(part.count(b"\\n") for part in itertools.islice(lines, 11))
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(entries, int(peak[1]) // 1024)
"""


def test_a_matrix_is_streamed(tmp_path: Path) -> None:
    """Row by row: memory does not depend on how much was read."""
    where = tmp_path / "many.db"
    many_states(where, 10_000, is_open=True).close()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(where)], capture_output=True, text=True, check=True)
    entries, memory = map(int, done.stdout.split())
    assert entries == 100_001
    assert memory < 300


class Download:
    """A matrix, as ``chainscout serve`` sends it, and the largest memory of that process so far."""

    def __init__(self, where: Path, most: float = math.inf) -> None:
        """``most``: the download is broken off after so many bytes."""
        self.size = self.lines = 0
        #: (bytes received, MB of memory), first after 5 MB.
        self.memory: list[tuple[int, int]] = []
        server = Running(where)
        peak = re.compile(r"VmHWM:\s+(\d+) kB")
        next_look = 5_000_000
        try:
            with server.client() as client, client.stream("GET", "/download/0/matrix.csv") as answer:
                assert answer.status_code == 200
                for part in answer.iter_raw():
                    self.size += len(part)
                    self.lines += part.count(b"\n")
                    self.end = part[-200:]
                    if self.size >= next_look:
                        time.sleep(0.2)  # a server that did not wait for the reader would fill its memory now
                        status = Path(f"/proc/{server.process.pid}/status").read_text()
                        found = peak.search(status)
                        assert found is not None
                        self.memory.append((self.size, int(found[1]) // 1024))
                        next_look += min(50_000_000, next_look)
                    if self.size >= most:
                        break
        finally:
            server.end()


def test_memory_does_not_grow_with_what_was_sent(tmp_path: Path) -> None:
    """10,000 open states are 10⁸ entries and 3.3 GB: the first 80 MB of them."""
    many_states(tmp_path / "many.db", 10_000, is_open=True).close()
    found = Download(tmp_path / "many.db", most=80e6)
    (_, first), *_, (size, last) = found.memory
    assert size >= 80e6
    assert last < 300
    assert last <= first + 8


def test_a_download_has_every_entry(tmp_path: Path) -> None:
    with many_states(tmp_path / "many.db", 300, is_open=True) as study:
        expected = b"".join(matrix_lines(study, "many"))
    found = Download(tmp_path / "many.db")
    assert (found.lines, found.size) == (300**2 + 1, len(expected))
    assert expected.endswith(found.end)
    assert found.end.splitlines()[-1].startswith(b"299,299,")


@pytest.mark.soak
def test_a_whole_matrix_of_four_thousand_states(tmp_path: Path) -> None:
    """16 million entries, half a gigabyte."""
    many_states(tmp_path / "many.db", 4_000, is_open=True).close()
    found = Download(tmp_path / "many.db")
    assert found.lines == 4_000**2 + 1
    assert found.end.splitlines()[-1].startswith(b"3999,3999,")
    (_, first), *_, (size, last) = found.memory
    assert size > 400e6
    assert last < 300
    assert last <= first + 8


def test_a_hundred_thousand_states_are_shown_in_parts_or_refused() -> None:
    study = many_states(None, 100_000, is_open=False)
    assert "100,000" in study_page(study, "many")
    matrices = [kind for kind in FORMATS if kind != "jsonl"]  # which has the entries of the journal
    refused: list[Callable[[], object]] = [lambda kind=kind: content(study, kind) for kind in matrices]  # type: ignore[misc]
    for refuse in (*refused, lambda: problem(study)):
        with pytest.raises(InputError, match=r"every entry of every matrix.* have 10,000,000,000"):
            refuse()
    with pytest.raises(InputError, match="at most 1,000 states"):
        studies.estimate(study, "many")
