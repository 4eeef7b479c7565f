"""Line charts as SVG: themed by the page's style sheet, lines told apart by dashes as well as by colour."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .cells import cell

WIDTH, HEIGHT = 720, 300
#: Of one of several charts side by side.
SMALL_WIDTH, SMALL_HEIGHT = 400, 230
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 14, 42

#: Okabe and Ito's colours, which colour-blind readers tell apart; darker or lighter ones where the contrast needs it.
STYLE = """
svg.chart { width: 100%; max-width: 60rem; height: auto; display: block; }
svg.chart text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg.chart.small { max-width: 30rem; }
@media (max-width: 40rem) { svg.chart:not(.small) text { font-size: 19px; } }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 0 1.5rem; }
svg.chart .grid { stroke: var(--line); stroke-width: 1; }
svg.chart .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg.chart .band { stroke: none; opacity: .18; }
.b0 { fill: #0072b2; } .b1 { fill: #b84e00; } .b2 { fill: #00785a; }
.b3 { fill: #a8467f; } .b4 { fill: #8a6500; } .b5 { fill: #5b4fc4; }
.target { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 2 4; }
.s0 { stroke: #0072b2; } .s1 { stroke: #b84e00; } .s2 { stroke: #00785a; }
.s3 { stroke: #a8467f; } .s4 { stroke: #8a6500; } .s5 { stroke: #5b4fc4; }
.s1 { stroke-dasharray: 9 4; } .s2 { stroke-dasharray: 3 3; } .s3 { stroke-dasharray: 12 4 3 4; }
.s4 { stroke-dasharray: 6 6; } .s5 { stroke-dasharray: 1 3; }
@media (prefers-color-scheme: dark) {
  .s0 { stroke: #56b4e9; } .s1 { stroke: #ff9a52; } .s2 { stroke: #35c49c; }
  .s3 { stroke: #e79cc6; } .s4 { stroke: #e6b93d; } .s5 { stroke: #a99cff; }
  .b0 { fill: #56b4e9; } .b1 { fill: #ff9a52; } .b2 { fill: #35c49c; }
  .b3 { fill: #e79cc6; } .b4 { fill: #e6b93d; } .b5 { fill: #a99cff; }
}
ul.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; font-size: .9rem; }
ul.legend li { overflow-wrap: anywhere; min-width: 0; }
ul.legend svg { width: 2.4rem; height: .8rem; vertical-align: middle; margin-right: .4rem; }
ul.legend line { stroke-width: 2.5; }
"""
STYLES = 6
#: Powers of ten that a logarithmic axis names.
MOST_POWERS = 10


@dataclass(frozen=True)
class Series:
    """One line; None breaks it. With ``low`` and ``high`` it has a band."""

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def line_chart(
    title: str,
    across: str,
    series: Sequence[Series],
    *,
    logarithmic: bool = False,
    target: float | None = None,
    top: float | None = None,
    small: bool = False,
    growing: bool = False,
    level: str = "target",
) -> str:
    """A figure: the chart, its legend and its caption.

    ``target``: a level that is called ``level``; ``top``: where the axis ends; ``growing``: ``across`` is logarithmic.
    """
    caption = f"<figcaption><bdi>{escape(title)}</bdi></figcaption>"
    wide, high = (SMALL_WIDTH, SMALL_HEIGHT) if small else (WIDTH, HEIGHT)
    points = [(x, y) for one in series for x, y in zip(one.x, one.y, strict=True) if y is not None]
    if logarithmic:
        points = [(x, y) for x, y in points if y > 0]
    if not points:
        return f"<figure>{caption}<p class=note>nothing to draw yet</p></figure>"
    levels = [y for _, y in points] + ([target] if target else []) + [y for one in series for y in one.high]
    first = min(x for x, _ in points) if growing else 0.0
    horizontal = _Axis(first, max(x for x, _ in points), LEFT, wide - RIGHT, growing)
    low = min(levels) if logarithmic else 0.0
    vertical = _Axis(low, max(levels) if top is None else top, high - BOTTOM, TOP, logarithmic)
    drawn = []
    for value in vertical.ticks():
        at = f"{vertical.place(value):.1f}"
        drawn.append(f'<line class=grid x1="{LEFT}" x2="{wide - RIGHT}" y1="{at}" y2="{at}"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{at}" dy=".35em" text-anchor="end">{value:g}</text>')
    for value in horizontal.ticks(3 if small else 5):
        at = f"{horizontal.place(value):.1f}"
        drawn.append(f'<text x="{at}" y="{high - BOTTOM + 18}" text-anchor="middle">{cell(round(value))}</text>')
    drawn.append(f'<text x="{(LEFT + wide - RIGHT) / 2}" y="{high - 6}" text-anchor="middle">{escape(across)}</text>')
    for number, one in enumerate(series):
        if one.low:
            drawn.append(f'<polygon class="band b{number % STYLES}" points="{_band(one, horizontal, vertical)}"/>')
        drawn += [
            f'<polyline class="curve s{number % STYLES}" points="{path}"/>'
            for path in _paths(one, horizontal, vertical)
        ]
    if target:
        at = f"{vertical.place(target):.1f}"
        drawn.append(f'<line class=target x1="{LEFT}" x2="{wide - RIGHT}" y1="{at}" y2="{at}"/>')
    name = escape(title, quote=True)
    kind = "chart small" if small else "chart"
    latest = "at the end" if growing else "now"
    legend = "".join(
        f'<li><svg viewBox="0 0 40 10" aria-hidden="true">'
        f'<line class="s{number % STYLES}" x1="0" x2="40" y1="5" y2="5"/>'
        f"</svg><bdi>{escape(one.label)}</bdi>: {_latest(one)} {latest}</li>"
        for number, one in enumerate(series)
    )
    if target:
        legend += (
            '<li><svg viewBox="0 0 40 10" aria-hidden="true"><line class="target" x1="0" x2="40" y1="5" y2="5"/></svg>'
            f"{escape(level)}: {target:g}</li>"
        )
    return (
        f'<figure>{caption}<svg class="{kind}" role="img" aria-label="{name}" '
        f'viewBox="0 0 {wide} {high}">{"".join(drawn)}</svg><ul class=legend>{legend}</ul></figure>'
    )


def _latest(one: Series) -> str:
    return cell(next((y for y in reversed(one.y) if y is not None), None))


def _band(one: Series, horizontal: "_Axis", vertical: "_Axis") -> str:
    """Along the upper edge and back along the lower; what lies below the axis is cut off."""
    edge = [*zip(one.x, one.high, strict=True), *reversed(list(zip(one.x, one.low, strict=True)))]
    return " ".join(f"{horizontal.place(x):.1f},{vertical.place(max(y, vertical.low)):.1f}" for x, y in edge)


def _paths(one: Series, horizontal: "_Axis", vertical: "_Axis") -> list[str]:
    """Unbroken runs of points."""
    paths: list[list[str]] = [[]]
    for x, y in zip(one.x, one.y, strict=True):
        if y is None or (vertical.logarithmic and y <= 0):
            paths.append([])
        else:
            paths[-1].append(f"{horizontal.place(x):.1f},{vertical.place(y):.1f}")
    return [" ".join(path) for path in paths if path]


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
