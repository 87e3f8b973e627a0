"""Bar charts as SVG: no size of their own, so that a phone shows them whole; light and dark by the reader's settings."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "examples"))

from drawing import WIDTH, rule, text, whole  # noqa: E402

LEFT, RIGHT = 0, WIDTH
BAR, GAP, ROW = 9, 3, 60


@dataclasses.dataclass(frozen=True)
class Bar:
    """Two times of the same work, in one unit; `shown` says both in words."""

    name: str
    theirs: float
    ours: float
    shown: str


def box(x: float, y: float, width: float, kind: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1.5):.1f}" height="{BAR}" rx="2" class="{kind}"/>'


def heading(top: float, name: str, shown: str) -> list[str]:
    """The two texts of a row, which must not meet: letters are at most as wide as DejaVu Sans has them on average."""
    taken = 9.1 * len(name) + 6.7 * len(shown)
    if taken > RIGHT - LEFT - 6:
        raise ValueError(f"a row of a chart has room for {RIGHT - LEFT - 6:.0f} units, {taken:.0f} are taken: {name}")
    return [text(LEFT, top, "name", name), text(RIGHT, top, "quiet", shown, "end")]


def beside(title: str, theirs: str, ours: str, bars: list[Bar], speed) -> str:
    """For each bar the other engine's time above treadle's; `speed` writes how many times as fast treadle is."""
    parts = [
        box(LEFT, 8, 22, "theirs"),
        text(LEFT + 28, 17, "quiet", theirs),
        box(LEFT + 180, 8, 22, "ours"),
        text(LEFT + 208, 17, "quiet", ours),
    ]
    top = 48.0
    for bar in bars:
        longest = max(bar.theirs, bar.ours)
        room = RIGHT - LEFT - 62  # behind the longest bar stands the figure
        parts += heading(top, bar.name, bar.shown)
        parts.append(box(LEFT, top + 8, room * bar.theirs / longest, "theirs"))
        parts.append(box(LEFT, top + 8 + BAR + GAP, room * bar.ours / longest, "ours"))
        figure = room * bar.ours / longest + 7
        parts.append(text(LEFT + figure, top + 10 + 2 * BAR + GAP, "figure", speed(bar.theirs / bar.ours)))
        top += ROW
    return whole(title, top - ROW + 36, parts)


@dataclasses.dataclass(frozen=True)
class Span:
    """How many times as fast: the least, the geometric mean and the greatest of a class of measurements."""

    name: str
    least: float
    mean: float
    most: float


def spans(title: str, rows: list[Span], ticks: tuple[float, ...], speed) -> str:
    """Classes on one logarithmic axis: a bar from the least to the greatest, a dot at the mean, a dark line at 1."""
    low, high = math.log(min(ticks)), math.log(max(ticks))

    def place(value: float) -> float:
        return LEFT + 14 + (RIGHT - LEFT - 40) * (min(max(math.log(value), low), high) - low) / (high - low)

    height = 44 + 42 * len(rows)
    parts = []
    for tick in ticks:
        parts.append(text(place(tick), 14, "quiet", f"{tick:,g}", "middle"))
    top = 40.0
    for row in rows:
        parts += heading(top, row.name, f"{speed(row.mean)} ({speed(row.least)} to {speed(row.most)})")
        for tick in ticks:  # beside the bar alone: a line through a name would cross it out
            kind, x = "even" if tick == 1 else "rule", place(tick)
            parts.append(rule(x, top + 5, x, top + 22, kind))
        start, end = place(row.least), place(row.most)
        parts.append(box(start, top + 9, end - start, "theirs"))
        parts.append(f'<circle cx="{place(row.mean):.1f}" cy="{top + 9 + BAR / 2:.1f}" r="6.5" class="ours"/>')
        top += 42
    return whole(title, height, parts)
