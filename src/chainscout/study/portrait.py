"""The views of a study: one line, a table as text, a table for notebooks, and one that is updated live there."""

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..counts import never_left
from ..errors import ChainscoutError
from ..installation import package_command
from ..markup import MOST, html_table, text_table
from ..numerals import Bound, Given, ends, lower, near, upper
from ..validation import printable, real_number
from .settings import target_text
from .views import StopReason

if TYPE_CHECKING:
    from .look import Look
    from .study import Study

__all__ = ["ending", "following", "html", "line", "live", "text"]

#: A live table takes at most this share of the time.
_SHARE = 0.05


def line(study: "Study") -> str:
    """The study in one line, from what it stores."""
    try:
        return _line(study.look())
    except ChainscoutError as error:  # a repr never raises
        return f"Study({error})"


def _line(look: "Look") -> str:
    state = look.progress
    chains = "1 chain" if state.chains == 1 else f"{state.chains:,} chains"
    end = "" if state.budget is None else f" of {state.budget:,.10g}"
    reason = "going on" if look.ending is None else f"finished ({look.ending})"
    return f"Study({chains}, {state.used:,.10g}{end} {state.unit}, {reason})"


def ending(study: "Study") -> str:
    """A sentence that says why a study has ended, and which chain is the worst if the study aims at that."""
    look = study.look()
    state = look.progress
    if state.stop_reason is None:
        return "The study goes on."
    words = str(look.ending)
    if state.spoilt:
        return f"The study has ended: {words}."
    if state.stop_reason is StopReason.TARGET_WIDTH:
        words = f"every answer is at most {state.target_width:g} wide"
    elif state.stop_reason is StopReason.LIMIT and state.limit is not None:
        below = sum(line.upper < state.limit for line in look.questions)
        words = f"{below} of {state.questions} answers are below {state.limit:g}, and the others are not"
    elif state.stop_reason is StopReason.WORST:
        left = [line for line in look.questions if not (line.met and line.holds)]
        if len(left) == 1 and left[0].holds:
            ends_of = f"{lower(left[0].lower)} to {upper(left[0].upper)}"
            words = f"chain {left[0].chain!r} has the {state.worst} answer: {ends_of}"
    return f"The study has ended: {words}."


def text(study: "Study") -> str:
    """The printed study: its chains, what is known about them, and what is not."""
    try:
        look = study.look()
    except ChainscoutError:
        return line(study)
    columns, rows, notes = _content(look)
    return "\n".join(map(printable, [_line(look), *(f"  {row}" for row in text_table(columns, rows)), *notes]))


def html(study: "Study") -> str:
    """The study as a table for a notebook."""
    try:
        look = study.look()
    except ChainscoutError:
        return html_table(line(study), (), ())
    columns, rows, notes = _content(look)
    return html_table(_line(look), columns, rows, notes)


def _content(look: "Look") -> tuple[list[str], list[tuple[Any, ...]], list[str]]:
    """The headings, the chains with the largest bounds, and the notes below them."""
    state = look.progress
    total, lines = look.page(order="certificate", descending=True, limit=MOST)
    older = any(chain.certified < chain.transitions for chain in lines)
    columns = ["chain", "states", "observations", "loss ≤", "rows"]
    columns[3:3] = ["weighted loss ≤"] * state.weighted
    differ = state.target_loss != state.target_most
    columns[-1:-1] = ["target"] * differ + ["as of transition"] * older
    rows = []
    for chain in sorted(lines, key=lambda one: one.number):
        words = never_left(chain.unknown_rows, chain.states) if chain.unknown_rows else "all were left"
        bounds = (chain.certificate, chain.loss) if state.weighted else (chain.loss,)
        holds = chain.name not in look.doubts
        shown = (Bound(bound) if math.isfinite(bound) and holds else None for bound in bounds)
        rows.append(
            (
                chain.name,
                chain.states,
                chain.observations,
                *shown,
                *[Given(chain.target)] * differ,
                *[chain.certified] * older,
                words,
            )
        )
    notes = [f"{name}: {sentence}" for name, sentence in look.doubts.items()] or [look.promise()]
    if state.target_loss is not None and math.isfinite(state.certificate) and not look.doubts:
        notes[0] = f"{notes[0][:-1]} (target {target_text(state.target_loss, state.target_most)})."
    if total > len(lines):
        notes.append(f"These are the {len(lines)} chains with the largest bounds, of {total:,}.")
    if state.questions and not state.spoilt:
        notes += _answers(look)
    return columns, rows, notes


def _answers(look: "Look") -> list[str]:
    """One line for each registered question: its stored answer, and what the study wants of it."""
    state = look.progress
    wanted = "" if state.target_width is None else f", wanted ≤ {state.target_width:g} wide"
    wanted += "" if state.limit is None else f", limit {state.limit:g}"
    found = []
    for one in look.questions[:MOST]:
        if not one.holds:
            found.append(f"{one.chain}: {one.question}: {one.notes[0]}")
            continue
        known = "no estimate" if one.estimate is None else near(one.estimate)
        found.append(f"{one.chain}: {one.question}: {known} in {ends(one.lower, one.upper)}{wanted}")
    if state.questions > MOST:
        found.append(f"These are the first {MOST} of {state.questions:,} questions.")
    return found


def live(study: "Study", every: float = 1.0) -> None:
    """Shows the study in a notebook, and updates the table until the study is finished or closed.

    ``every``: seconds between two updates.
    """
    real_number(every, "every", above=0.0, meaning="seconds between two looks at the study")
    _show(study, every)


@contextmanager
def following(study: "Study", every: float = 1.0) -> Iterator[None]:
    """Like ``live``, for a ``with`` block. The table at the end of the block shows the study at that moment."""
    update, over = _show(study, every)
    try:
        yield
    finally:
        over.set()
        update(study)


def _show(study: "Study", every: float) -> tuple[Callable[["Study"], None], threading.Event]:
    """Shows the study. Returns a function that updates the table, and an event that ends the updating thread."""
    try:
        from IPython.display import display
    except ImportError:
        raise ChainscoutError(
            f"a live study needs IPython, which is not installed: {package_command('ipython')}"
        ) from None
    over = threading.Event()
    handle = display(study, display_id=True)
    if handle is None:  # this is not a notebook: IPython, if it runs at all, has printed the study once
        return (lambda _: None), over
    arguments = weakref.ref(study), handle.update, over, every
    threading.Thread(target=_follow, args=arguments, name="live study", daemon=True).start()
    return handle.update, over


def _follow(
    reference: "weakref.ref[Study]", update: Callable[["Study"], None], over: threading.Event, every: float
) -> None:
    """Updates the table while the study is in use, and a last time when it is finished."""
    pause = every
    while not over.wait(pause):
        study = reference()
        if study is None:
            return
        begun = time.monotonic()
        try:
            finished = study.finished
        except ChainscoutError:  # it was closed
            return
        update(study)
        if finished:
            return
        pause = max(every, (time.monotonic() - begun) / _SHARE)
        del study  # this thread must not keep the study alive while it sleeps
