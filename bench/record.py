"""What benchmarks have found, as data: bench.py --json writes it, and pages are made from it (tools/site/measured.py)."""

from __future__ import annotations

import json
import math
import pathlib

FOUND: dict[str, dict[str, dict]] = {}  # kind of measurement: {row: its figures}
DIGITS = 4  # that a figure keeps


def rounded(figure):
    """A float with DIGITS significant digits; None for one that was not measured."""
    if isinstance(figure, dict):
        return {name: rounded(inner) for name, inner in figure.items()}
    if not isinstance(figure, float):
        return figure
    return float(f"{figure:.{DIGITS}g}") if math.isfinite(figure) else None


def keep(kind: str, row: str, /, **figures) -> None:
    """Times are in seconds; what a figure is of, its name says."""
    FOUND.setdefault(kind, {}).setdefault(row, {}).update(rounded(figures))


def write(path: pathlib.Path) -> None:
    path.write_text(json.dumps(FOUND, indent=1) + "\n", encoding="utf-8")
