"""The progress bar of a running experiment: steps, rate, time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Task as Line
from rich.text import Text


class Rate(ProgressColumn):
    """Millions of steps a second."""

    def render(self, task: Line) -> Text:
        """The text of the column."""
        return Text("" if task.speed is None else f"{task.speed / 1e6:,.1f} M steps/s")


@contextmanager
def bar(total: int) -> Iterator[Callable[[int], None]]:
    """A bar over ``total`` steps on standard error. Yields the function that advances it. A pipe gets no output."""
    console = Console(stderr=True)
    columns = (TextColumn("simulating"), BarColumn(), TaskProgressColumn(), Rate(), TimeRemainingColumn())
    if not (console.is_terminal or console.is_jupyter):
        yield lambda steps: None
        return
    with Progress(*columns, console=console, transient=True) as shown:
        line = shown.add_task("", total=total)
        yield lambda steps: shown.advance(line, steps)
