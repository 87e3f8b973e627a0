"""What notebooks show of treadle's objects: the parts of a report that are about them. Nothing is run for it."""

from __future__ import annotations

import html
import mmap
import os
from typing import TYPE_CHECKING, Any

from .. import _core
from .._text import parse_model
from ._answers import about
from ._data import FAILURES, profile_of, shown_trace
from ._page import page
from ._tree import TooManyNodes, tree

if TYPE_CHECKING:
    from .._comparison import Comparison
    from .._profile import Profile
    from .._session import InferenceSession
    from .._trace import Trace

# A notebook keeps what it shows in its file.
_MOST_NODES = 2000
_MOST_ROWS, _MOST_COLUMNS = 100, 500  # of a heat map


def framed(text: str, height: int = 640) -> str:
    """A page as a part of another one, from which it is kept apart."""
    return (
        f'<iframe sandbox="allow-scripts" style="width: 100%; height: {height}px; border: 0" '
        f'srcdoc="{html.escape(text, quote=True)}"></iframe>'
    )


def text_html(title: str, text: str, kind: str | None = None) -> str:
    """A text as it is; with `kind`, its first line is the answer ("" or "bad")."""
    first, _, rest = text.partition("\n")
    answers = [] if kind is None else [{"kind": kind, "text": first.partition("  ")[2].strip()}]
    shown = text if kind is None else rest
    lines = shown.count("\n") + 1
    height = min(150 + 60 * len(answers) + 19 * lines, 640)
    return framed(page({"title": title, "text": shown, "answers": answers}), height)


def comparison_html(comparison: Comparison) -> str:
    """Its text, the result first."""
    return text_html("comparison", str(comparison), "" if comparison.agrees else "bad")


def session_html(session: InferenceSession, model: bytes | str | None) -> str:
    """The model's boxes; of a large model its inputs and outputs alone. `model`: its bytes or its path."""
    data: dict[str, Any] = {"title": _title(session, model), "nodes": []}
    try:
        data["nodes"] = _nodes_of(model)
        data["about"] = about(data, session)
    except TooManyNodes:
        found = about(data, session).partition("; ")[2]
        data["about"] = f"more than {_MOST_NODES:,} nodes, which a report shows; {found}"
    except FAILURES:  # the file is gone, or in a format of onnxruntime's own
        data["about"] = about(data, session).partition("; ")[2]
    return framed(page(data), 420 if data["nodes"] else 160)


def _title(session: InferenceSession, model: bytes | str | None) -> str:
    return os.path.basename(model) if isinstance(model, str) else session.get_modelmeta().graph_name or "a model"


def _nodes_of(model: bytes | str | None) -> list[dict[str, Any]]:
    """Read in place: weights are skipped."""
    if model is None:
        return []
    if isinstance(model, str):
        with open(model, "rb") as file:
            contents = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if not _core.is_text(contents[:4096]):
            return tree(contents, _MOST_NODES)
        model = contents[:]
    return tree(parse_model(model) if _core.is_text(model) else model, _MOST_NODES)


def profile_html(profile: Profile) -> str:
    """Where the time went, and memory."""
    times = profile_of(profile)
    shown, rest = times["nodes"][:_MOST_NODES], times["nodes"][_MOST_NODES:]
    if rest:  # the shortest ones, together
        shown.append({"node": "", "op": "", "loop": "", "count": 1, "ns": sum(node["ns"] for node in rest)})
    return framed(page({"title": "profile", "about": repr(profile)[1:-1], "times": {**times, "nodes": shown}}), 560)


def trace_html(trace: Trace) -> str:
    """What was found, and values over iterations; without loops its text."""
    shown = shown_trace(trace, _MOST_ROWS, _MOST_COLUMNS)
    if not shown["map"]:
        return text_html("trace", str(trace))
    return framed(page({"title": "trace", "about": repr(trace)[1:-1], "trace": shown}), 560)
