"""Shares as horizontal bars in SVG: one group a chain, one bar a policy, each named beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT = 720, 150, 60
HIGH, BETWEEN, HEAD = 16, 5, 22

STYLE = """
svg.bars { width: 100%; max-width: 60rem; height: auto; display: block; }
svg.bars text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg.bars text.chain { font-weight: 600; font-size: 13px; }
svg.bars .mark { stroke: var(--ink); stroke-width: 2.5; }
svg.bars .level { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 4 3; }
@media (max-width: 40rem) { svg.bars text { font-size: 16px; } }
"""


@dataclass(frozen=True)
class Bar:
    """A share, and what it is held against."""

    label: str
    share: float
    target: float | None
    #: Which of the chart's colours.
    style: int


@dataclass(frozen=True)
class Group:
    """The bars of one chain, and a level that is drawn through all of them."""

    label: str
    level: float | None
    bars: Sequence[Bar]


def bar_chart(title: str, groups: Sequence[Group]) -> str:
    """A figure: dashes are the groups' levels, short strokes the bars' targets."""
    values = (value for g in groups for b in g.bars for value in (b.share, b.target, g.level))
    largest = max((value for value in values if value is not None), default=1.0)
    scale = (WIDTH - LEFT - RIGHT) / (largest or 1.0)
    drawn: list[str] = []
    y = 0
    for group in groups:
        drawn.append(f'<text class=chain x="0" y="{y + 15}">{escape(group.label)}</text>')
        top = y + HEAD
        for place, bar in enumerate(group.bars):
            at = top + place * (HIGH + BETWEEN)
            end = LEFT + bar.share * scale
            drawn.append(f'<text x="{LEFT - 8}" y="{at + 12}" text-anchor="end">{escape(bar.label)}</text>')
            drawn.append(f'<rect class="b{bar.style}" x="{LEFT}" y="{at}" width="{end - LEFT:.1f}" height="{HIGH}"/>')
            if bar.target is not None:
                x = f"{LEFT + bar.target * scale:.1f}"
                drawn.append(f'<line class=mark x1="{x}" x2="{x}" y1="{at - 1}" y2="{at + HIGH + 1}"/>')
            right = max(end, LEFT + (bar.target or 0.0) * scale) + 6
            drawn.append(f'<text x="{right:.1f}" y="{at + 12}">{bar.share:.3f}</text>')
        y = top + len(group.bars) * (HIGH + BETWEEN)
        if group.level is not None:
            x = f"{LEFT + group.level * scale:.1f}"
            drawn.append(f'<line class=level x1="{x}" x2="{x}" y1="{top - 4}" y2="{y}"/>')
        y += 12
    name = escape(title, quote=True)
    picture = f'<svg class=bars role="img" aria-label="{name}" viewBox="0 0 {WIDTH} {max(1, y)}">{"".join(drawn)}</svg>'
    return f"<figure><figcaption>{escape(title)}</figcaption>{picture}</figure>"
