"""Signals, probabilities, tokens and planes as SVG: the pictures of the pages, and of programs that want one like them.

A picture has no size of its own, so that a phone shows it whole, and its colours are light or dark as the reader prefers.
"""

from __future__ import annotations

import base64
import html
import pathlib
import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np

WIDTH = 480  # of the drawing's coordinates; a page shows it at 320 to 700 pixels
LEFT, RIGHT = 34.0, 472.0  # of what lies along the axis
# Pages may set these colours themselves (tools/site/static/treadle.css).
STYLE = """\
.chart { --ink: #1f2933; --quiet: #5f6b7a; --ours: #0f766e; --theirs: #b8c1cc; --rule: #d5dbe2; --found: #99f6e4; }
@media (prefers-color-scheme: dark) {
.chart { --ink: #e6eaef; --quiet: #9aa5b1; --ours: #2dd4bf; --theirs: #52606d; --rule: #3a4653; --found: #134e4a; } }
.chart text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--ink); }
.chart .name { font-size: 15px; font-weight: 600; }
.chart .quiet { font-size: 13px; fill: var(--quiet); }
.chart .token { font-size: 13px; font-weight: 600; }
.chart .figure { font-size: 15px; font-weight: 700; fill: var(--ours); }
.chart .ours { fill: var(--ours); }
.chart .theirs { fill: var(--theirs); }
.chart .found { fill: var(--found); }
.chart .rule { stroke: var(--rule); stroke-width: 1; }
.chart .even { stroke: var(--quiet); stroke-width: 2; }
.chart .limit { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 4 3; }
.chart .frame { stroke: var(--rule); fill: none; }
.chart .wave { stroke: var(--theirs); stroke-width: 1; fill: none; }
.chart .line { stroke: var(--ours); stroke-width: 1.5; fill: none; }
.chart .other { stroke: var(--theirs); stroke-width: 1; fill: none; }
"""


def text(x: float, y: float, kind: str, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>'


def rule(x1: float, y1: float, x2: float, y2: float, kind: str = "rule") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def whole(title: str, height: float, parts: Iterable[str]) -> str:
    """The drawing; a reader who cannot see it is told the title."""
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" class="chart" role="img" '
        f'aria-label="{html.escape(title)}">\n<style>{STYLE}</style>\n{inside}\n</svg>\n'
    )


def path_of(points: Iterable[tuple[float, float]], kind: str) -> str:
    return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" class="{kind}"/>'


def png(values: np.ndarray) -> str:
    """Numbers from 0 to 1 as one colour that covers more or less, so that the picture is right on light and dark."""
    rows, columns = values.shape
    pixels = np.empty((rows, columns, 4), np.uint8)
    pixels[..., :3] = (20, 148, 136)
    pixels[..., 3] = np.clip(values, 0, 1) * 255
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(file).decode()


class Picture:
    """Panels below each other that share one axis, from 0 to `length`."""

    def __init__(self, title: str, length: float, unit: str):
        self.title, self.length, self.unit = title, length, unit
        self.parts: list[str] = []
        self.top = 0.0

    def x(self, place: float) -> float:
        return LEFT + (RIGHT - LEFT) * place / self.length

    def panel(self, name: str, height: float) -> float:
        """Begins a panel below a line with its name, and gives its upper edge."""
        self.parts.append(text(LEFT, self.top + 15, "name", name))
        upper = self.top + 24
        self.top = upper + height + 10
        return upper

    def wave(self, name: str, samples: np.ndarray, height: float = 60) -> None:
        """The envelope of a signal."""
        upper, peak = self.panel(name, height), float(np.abs(samples).max()) or 1.0
        middle, half = upper + height / 2, height / 2
        columns = np.array_split(samples, int(RIGHT - LEFT))
        strokes = "".join(
            f"M{LEFT + i:.0f},{middle - half * max(c.max(), 0.005 * peak) / peak:.1f}V{middle - half * min(c.min(), 0) / peak:.1f}"
            for i, c in enumerate(columns)
        )
        self.parts.append(f'<path d="{strokes}" class="wave"/>')

    def lines(
        self,
        name: str,
        *curves: Sequence[float] | np.ndarray,
        low: float = 0.0,
        high: float = 1.0,
        limit: float | None = None,
        found: Iterable[tuple[float, float]] = (),
        height: float = 90,
    ) -> None:
        """Curves over the whole axis between `low` and `high`, the last one in colour; `found` are stretches of the axis."""
        upper = self.panel(name, height)

        def y(value: float) -> float:
            return upper + height * (high - min(max(value, low), high)) / (high - low)

        for start, end in found:
            width = self.x(end) - self.x(start)
            self.parts.append(
                f'<rect x="{self.x(start):.1f}" y="{upper:.1f}" width="{width:.1f}" height="{height:.1f}" class="found"/>'
            )
        for value in (low, high):
            self.parts += [
                rule(LEFT, y(value), RIGHT, y(value)),
                text(LEFT - 5, y(value) + 4, "quiet", f"{value:g}", "end"),
            ]
        if limit is not None:
            self.parts += [rule(LEFT, y(limit), RIGHT, y(limit), "limit")]
            self.parts += [text(LEFT - 5, y(limit) + 4, "quiet", f"{limit:g}", "end")]
        for i, curve in enumerate(curves):
            places = (np.arange(len(curve)) + 0.5) * self.length / len(curve)
            points = ((self.x(place), y(float(value))) for place, value in zip(places, curve, strict=True))
            self.parts.append(path_of(points, "line" if i == len(curves) - 1 else "other"))

    def events(self, name: str, places: Sequence[float], words: Sequence[str], pushes: Iterable[float] = ()) -> None:
        """Words at their places; thin lines where pushes end."""
        ends = [-1e9, -1e9, -1e9]  # of what stands in each of three lines
        lines = []
        for place, word in zip(places, words, strict=True):
            x = self.x(place)
            line = min(range(3), key=lambda i: max(ends[i] - x, 0.0) + 0.01 * i)
            ends[line] = x + 8.0 * len(word) + 4
            lines.append(line)
        height = 22 + 19 * max(lines, default=0)
        upper = self.panel(name, height)
        for place in pushes:
            self.parts.append(rule(self.x(place), upper, self.x(place), upper + height))
        for place, word, line in zip(places, words, lines, strict=True):
            self.parts.append(text(self.x(place), upper + 15 + 19 * line, "token", word))

    def planes(self, name: str, planes: Sequence[np.ndarray], captions: Sequence[str]) -> None:
        """Planes of numbers from 0 to 1, beside each other."""
        side = (RIGHT - LEFT - 8 * (len(planes) - 1)) / len(planes)
        upper = self.panel(name, side + 18)
        for i, (plane, caption) in enumerate(zip(planes, captions, strict=True)):
            x = LEFT + i * (side + 8)
            self.parts.append(
                f'<rect x="{x:.1f}" y="{upper:.1f}" width="{side:.1f}" height="{side:.1f}" class="frame"/>'
                f'<image x="{x:.1f}" y="{upper:.1f}" width="{side:.1f}" height="{side:.1f}" '
                f'style="image-rendering: pixelated" href="{png(np.asarray(plane, np.float32))}"/>'
            )
            self.parts.append(text(x + side / 2, upper + side + 15, "quiet", caption, "middle"))

    def axis(self, ticks: int = 6) -> None:
        """Marks of the axis, at round numbers."""
        rough = self.length / ticks
        power = 10.0 ** np.floor(np.log10(rough))
        step = power * min((1, 2, 5, 10), key=lambda m: abs(m * power - rough))
        places = np.arange(0, self.length * (1 + 1e-9), step)
        for i, place in enumerate(places):
            last = i == len(places) - 1
            anchor = "start" if i == 0 else "end" if last and self.x(place) > RIGHT - 20 else "middle"
            self.parts.append(
                text(self.x(place), self.top + 8, "quiet", f"{place:g} {self.unit}" if last else f"{place:g}", anchor)
            )
        self.top += 14

    def save(self, path: str | pathlib.Path) -> None:
        pathlib.Path(path).write_text(whole(self.title, self.top + 4, self.parts), encoding="utf-8")
