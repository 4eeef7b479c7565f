"""The progress bar of a running study: rate, time left, bound against target; and shares, if there is room."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import get_console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from ..numerals import bound
from ..study import Study
from ..study.settings import target_text
from ..validation import printable

#: Seconds between two reads of the study. Certificates and allocation take at most a twentieth of the time.
EVERY = 0.5
SHARE = 20.0
#: The number of chains whose share of the observations is shown.
SHOWN = 4
#: The columns that everything else takes, and the least number of columns for the shares.
NARROW, ROOM = 80, 20


@contextmanager
def progress_bar(study: Study) -> Iterator[Callable[[], None]]:
    """Shows a bar over the budget. Yields the function to call after every observation."""
    columns: tuple[ProgressColumn, ...] = (
        BarColumn(bar_width=None),
        TextColumn("{task.fields[done]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[certificate]}"),
    )
    console = get_console()
    if console.is_jupyter:  # a notebook shows the study itself
        from ..study.portrait import following

        with following(study):
            yield _nothing
        return
    room = console.width - NARROW
    if room >= ROOM:
        columns = (*columns, TextColumn("{task.fields[allocation]}"))
    with Progress(*columns, console=console, transient=True, expand=True) as shown:
        state = study.progress()
        line = shown.add_task(
            "", total=state.budget, completed=int(state.used), done="", rate="", certificate="", allocation=""
        )
        look = _Look(study, lambda **fields: shown.update(line, **fields), room)
        look(force=True)
        yield look
        look(force=True)


class _Look:
    """Reads the study from time to time."""

    def __init__(self, study: Study, update: Callable[..., None], room: int) -> None:
        self._study = study
        self._update = update
        self._room = room
        self._begun = time.monotonic()
        self._first = study.progress().observations
        self._next = self._next_whole = 0.0

    def __call__(self, force: bool = False) -> None:
        now = time.monotonic()
        if now < self._next and not force:
            return
        self._next = now + EVERY
        state = self._study.progress()
        rate = (state.observations - self._first) / max(1e-9, now - self._begun)
        end = "" if state.budget is None else f" of {state.budget:,.6g}"
        self._update(completed=int(state.used), done=f"{state.used:,.6g}{end}", rate=f"{rate:,.0f}/s")
        if now >= self._next_whole or force:
            largest = state.certificate
            counts = self._study.allocation()
            total = max(1, sum(counts.values()))
            most = sorted(counts, key=lambda name: -counts[name])[:SHOWN]
            shares = " ".join(f"{printable(name)} {counts[name] / total:.0%}" for name in most)
            more = " …" if len(counts) > SHOWN else ""
            known = f"last bound {'—' if math.isinf(largest) else bound(largest)}"
            if state.target_loss is not None:
                known += f" (target {target_text(state.target_loss, state.target_most)})"
            elif state.questions:
                known = f"{state.questions - max(0, state.unmet)} of {state.questions} questions answered"
            if state.spoilt:
                known = "no bound holds"
            self._update(certificate=known, allocation=_cut(shares + more, self._room))
            self._next_whole = now + EVERY + SHARE * (time.monotonic() - now)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _nothing() -> None:
    pass
