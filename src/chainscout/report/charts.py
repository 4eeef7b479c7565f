"""Charts as SVG: lines over time, and shares as bars. The style sheet gives them their colours and dashes.

matplotlib is an extra, and its colours do not follow the reader's light or dark theme.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from ..numerals import cell
from ..validation import printable
from .tables import Drawing, Series

#: Width and height of a chart, and of one of several side by side.
LARGE, SMALL = (720, 270), (400, 230)
#: The margins around a line chart.
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 14, 42
#: The number of colours.
STYLES = 6
#: The largest number of powers of ten that a logarithmic axis names.
MOST_POWERS = 10


def line_chart(drawing: Drawing, live: bool = False) -> str:
    """A figure: the chart, its caption, its legend and its notes.

    ``live``: the legend has the values of all points too, so that a script can show those under the pointer.
    """
    wide, high = SMALL if drawing.small else LARGE
    points = [_points(line, drawing) for line in drawing.lines]
    drawn = (
        _lines(drawing, points, wide, high) if any(points) else [_centred(wide / 2, high / 2, "nothing to draw yet")]
    )
    latest = "at the end" if drawing.growing else "(latest)"
    legend = ""
    for number, (line, found) in enumerate(zip(drawing.lines, points, strict=True)):
        words = f"{cell(line.y[-1] if line.y else None)} {latest}"
        read = "|".join((*(f"{cell(y)} at {cell(x)}" for x, y in found[:-1]), words)) if live and found else ""
        legend += _entry(f"s{number % STYLES}", line.label, words, read)
    if drawing.level:
        legend += _entry("target", drawing.level_name, f"{drawing.level:g}")
    picture = _picture("chart small" if drawing.small else "chart", drawing.title, wide, high, drawn)
    caption = f"<figcaption><bdi>{escape(drawing.title)}</bdi></figcaption>"
    return f"<figure>{caption}{picture}<ul class=legend>{legend}</ul>{notes(drawing.notes)}</figure>"


def notes(sentences: Iterable[str]) -> str:
    """Sentences below a chart or a table."""
    return "".join(f"<p class=note>{escape(printable(sentence))}</p>" for sentence in sentences)


def _lines(drawing: Drawing, points: list[list[tuple[float, float]]], wide: int, high: int) -> list[str]:
    """The axes and the lines through these points."""
    across = [x for line in points for x, _ in line]
    levels = [y for line in points for _, y in line] + [y for line in drawing.lines for y in line.high]
    levels += [drawing.level] if drawing.level else []
    horizontal = _Axis(min(across) if drawing.growing else 0.0, max(across), LEFT, wide - RIGHT, drawing.growing)
    low, top = min(levels) if drawing.logarithmic else drawing.bottom, drawing.top or max(levels)
    vertical = _Axis(low, top, high - BOTTOM, TOP, drawing.logarithmic)
    drawn = [_centred((LEFT + wide - RIGHT) / 2, high - 6, drawing.across)]
    for value in vertical.ticks():
        at = f"{vertical.place(value):.1f}"
        drawn.append(f'<line class=grid x1="{LEFT}" x2="{wide - RIGHT}" y1="{at}" y2="{at}"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{at}" dy=".35em" text-anchor="end">{value:g}</text>')
    ticks = horizontal.ticks(3 if drawing.small else 5)
    drawn += [_centred(horizontal.place(value), high - BOTTOM + 18, cell(round(value))) for value in ticks]
    for number, (line, found) in enumerate(zip(drawing.lines, points, strict=True)):
        style = number % STYLES
        # The band goes along its upper edge and back along its lower edge, which is cut off at the axis.
        edge = [*zip(line.x, line.high, strict=False), *reversed([*zip(line.x, line.low, strict=False)])]
        for tag, places in ((f'polygon class="band b{style}"', edge), (f'polyline class="curve s{style}"', found)):
            at = " ".join(f"{horizontal.place(x):.1f},{vertical.place(max(y, vertical.low)):.1f}" for x, y in places)
            drawn += [f'<{tag} points="{at}"/>'] if places else []
    if drawing.level:
        at = f"{vertical.place(drawing.level):.1f}"
        drawn.append(f'<line class=target x1="{LEFT}" x2="{wide - RIGHT}" y1="{at}" y2="{at}"/>')
    return drawn


def _centred(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(words)}</text>'


def _points(line: Series, drawing: Drawing) -> list[tuple[float, float]]:
    """The points of a line that its axes can show."""
    return [(x, y) for x, y in zip(line.x, line.y, strict=True) if y > 0 or not drawing.logarithmic]


def _entry(style: str, name: str, words: str, read: str = "") -> str:
    sample = f'<svg viewBox="0 0 40 10" aria-hidden="true"><line class="{style}" x1="0" x2="40" y1="5" y2="5"/></svg>'
    values = f' data-read="{read}"' if read else ""
    return f"<li{values}>{sample}<bdi>{escape(name)}</bdi>: {words}</li>"


def _picture(kind: str, title: str, wide: int, high: int, drawn: list[str]) -> str:
    name = escape(title, quote=True)
    return f'<svg class="{kind}" role="img" aria-label="{name}" viewBox="0 0 {wide} {high}">{"".join(drawn)}</svg>'


class _Axis:
    """From numbers to places."""

    def __init__(self, low: float, high: float, start: float, end: float, logarithmic: bool) -> None:
        self.logarithmic = logarithmic
        self.low, self.high = low, high if high > low else low + (abs(low) or 1.0)
        if logarithmic:
            self.low, self.high = low / 1.1, max(high, low * 1.2) * 1.1
        self.start, self.end = start, end

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        value = min(value, high)
        if self.logarithmic:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """A few round numbers."""
        if self.logarithmic:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            powers = range(first, last + 1, max(1, math.ceil((last - first) / MOST_POWERS)))
            steps = (1.0, 2.0, 5.0) if self.high / self.low < 200 else (1.0,)
            found = [step * 10.0**power for power in powers for step in steps]
        else:
            raw = (self.high - self.low) / wanted
            size = 10.0 ** math.floor(math.log10(raw))
            step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
            found = [step * k for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        return [value for value in found if self.low <= value <= self.high * (1 + 1e-12)]


class Group(NamedTuple):
    """The bars of one chain, and a level that is drawn through all of them."""

    label: str
    level: float | None
    #: Each with its label, its share, and the target that the share is compared with.
    bars: Sequence[tuple[str, float, float | None]]


#: The places where bars begin and end, a bar's height, the space below it, and the height of a group's name.
BAR_LEFT, BAR_RIGHT, BAR_HIGH, BAR_BELOW, GROUP_HEAD = 150, 60, 16, 5, 22


def bar_chart(title: str, groups: Sequence[Group]) -> str:
    """A figure of horizontal bars. Dashes are the groups' levels, short strokes are the bars' targets."""
    compared = (value for _, level, bars in groups for _, *values in bars for value in (*values, level))
    largest = max((value for value in compared if value is not None), default=1.0)
    scale = (LARGE[0] - BAR_LEFT - BAR_RIGHT) / (largest or 1.0)
    drawn: list[str] = []
    y = 0

    def stroke(kind: str, value: float | None, top: int, bottom: int) -> None:
        if value is not None:
            x = f"{BAR_LEFT + value * scale:.1f}"
            drawn.append(f'<line class={kind} x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')

    for name, level, bars in groups:
        drawn.append(f'<text class=chain x="0" y="{y + 15}">{escape(name)}</text>')
        y = top = y + GROUP_HEAD
        for style, (label, share, target) in enumerate(bars):
            size = f'width="{share * scale:.1f}" height="{BAR_HIGH}"'
            drawn.append(f'<text x="{BAR_LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(label)}</text>')
            drawn.append(f'<rect class="b{style % STYLES}" x="{BAR_LEFT}" y="{y}" {size}/>')
            stroke("mark", target, y - 1, y + BAR_HIGH + 1)
            right = BAR_LEFT + max(share, target or 0.0) * scale + 6
            drawn.append(f'<text x="{right:.1f}" y="{y + 12}">{share:.3f}</text>')
            y += BAR_HIGH + BAR_BELOW
        stroke("level", level, top - 4, y)
        y += 12
    picture = _picture("bars", title, LARGE[0], max(1, y), drawn)
    return f"<figure><figcaption>{escape(title)}</figcaption>{picture}</figure>"
