"""The progress bar of a running study: rate, time left, bound against target; and shares, if there is room."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import nlargest

from rich import get_console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn

from ..numerals import bound
from ..study import Study
from ..study.settings import target_text
from ..study.views import Progress as State
from ..validation import printable

__all__ = ["progress_bar"]

#: Seconds between two looks at the study, which take at most a twentieth of the time.
EVERY = 0.5
SHARE = 20.0
#: The number of chains whose share of the observations is shown.
SHOWN = 4
#: The columns that everything else takes, and the least number of columns for the shares.
NARROW, ROOM = 80, 20


@contextmanager
def progress_bar(study: Study) -> Iterator[Callable[[], None]]:
    """Shows a bar over the budget. Yields the function to call after every observation."""
    console = get_console()
    if console.is_jupyter:  # a notebook shows the study itself
        from ..study.portrait import following

        with following(study):
            yield lambda: None
        return
    done, rate, certificate, shares = (
        TextColumn(f"{{task.fields[{name}]}}") for name in ("done", "rate", "certificate", "shares")
    )
    columns: list[ProgressColumn] = [BarColumn(bar_width=None), done, rate, TimeRemainingColumn(), certificate]
    room = console.width - NARROW
    if room >= ROOM:
        columns.append(shares)
    with Progress(*columns, console=console, transient=True, expand=True) as shown:
        task = shown.add_task("", total=study.progress().budget, done="", rate="", certificate="", shares="")
        bar = _Bar(study, shown, task, room)
        bar.draw()
        yield bar.draw_if_due
        bar.draw()


class _Bar:
    """Looks at the study from time to time."""

    def __init__(self, study: Study, shown: Progress, task: TaskID, room: int) -> None:
        self._study, self._shown, self._task, self._room = study, shown, task, room
        self._begun, self._first = time.monotonic(), study.progress().observations
        self._next = 0.0

    def draw_if_due(self) -> None:
        if time.monotonic() >= self._next:
            self.draw()

    def draw(self) -> None:
        now = time.monotonic()
        look = self._study.look()
        state = look.progress
        most = nlargest(SHOWN, look.chains, key=lambda line: line.observations)
        parts = [f"{printable(line.name)} {line.observations / max(1, state.observations):.0%}" for line in most]
        shares = " ".join([*parts, *(["…"] if state.chains > SHOWN else [])])
        end = "" if state.budget is None else f" of {state.budget:,.6g}"
        self._shown.update(
            self._task, completed=int(state.used), done=f"{state.used:,.6g}{end}", certificate=_known(state),
            rate=f"{(state.observations - self._first) / max(1e-9, now - self._begun):,.0f}/s",
            shares=shares if len(shares) <= self._room else f"{shares[: self._room - 1]}…",
        )  # fmt: skip
        self._next = now + EVERY + SHARE * (time.monotonic() - now)


def _known(state: State) -> str:
    """The last bound against the target, or how many questions are answered."""
    if state.spoilt:
        return "no bound holds"
    if state.target_loss is None and state.questions:
        return f"{state.questions - max(0, state.unmet)} of {state.questions} questions answered"
    known = f"last bound {'—' if math.isinf(state.certificate) else bound(state.certificate)}"
    target = state.target_loss
    return known if target is None else f"{known} (target {target_text(target, state.target_most)})"
