"""A report about a model on one page: is it fast and what would help, its loops and nodes, where the time goes, values over
iterations. `treadle report` on the command line.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._answers import about, answers
from ._data import FAILURES, Pieces, explanation_of, nodes_of, problems_of, shown_trace, times_of, trace_of
from ._netron import Knowledge, model_for, with_metadata
from ._notebook import framed
from ._page import page

if TYPE_CHECKING:
    from .._session import InferenceSession
    from .._trace import Trace
    from .._types import InputValue, PathOrBytes

__all__ = ["Report", "report"]


class Report:
    """A page; in notebooks it shows itself."""

    def __init__(self, data: dict[str, Any], model: PathOrBytes, trace: Trace | None) -> None:
        """Not for callers: `report` makes reports."""
        self.data = data
        """What the page shows."""
        self._model, self._trace = model, trace

    @property
    def html(self) -> str:
        """The page: one file that needs no network."""
        return page(self.data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page; OSError where the file cannot be written."""
        pathlib.Path(path).write_text(self.html, encoding="utf-8")

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Writes the model with what the report knows of each node as metadata, which Netron shows.

        Entries of `metadata_props` are "treadle.time_us" and "treadle.share" (of a run, with all that is inside),
        "treadle.range" (of what the node makes, over all iterations; "treadle.range.0" of the first of several outputs),
        "treadle.rewritten", and of loops "treadle.iterations", "treadle.tier" and "treadle.why_not_native". The model
        computes what it did. OSError where the file cannot be written; ValueError for another folder than that of weights
        in files.
        """
        pathlib.Path(path).write_bytes(with_metadata(model_for(self._model, path), Knowledge(self.data, self._trace)))

    def _repr_html_(self) -> str:
        return framed(self.html)

    def __repr__(self) -> str:
        """The first answer."""
        return f"<treadle.report.Report: {self.data['title']}>"

    def __str__(self) -> str:
        """The answers at its top."""
        return "\n".join(answer["text"] for answer in self.data["answers"])


def _runs(session: InferenceSession, feeds: Mapping[str, InputValue]) -> bool:
    try:
        session.run(None, feeds)
    except FAILURES:
        return False
    return True


def report(
    model: PathOrBytes,
    input_feed: Mapping[str, InputValue] | None = None,
    *,
    session: InferenceSession | None = None,
    stream: Mapping[str, Any] | None = None,
    rate: float = 0,
    runs: int = 5,
    title: str = "",
) -> Report:
    """A report about a model (a path or bytes), and, with `input_feed`, about runs with these inputs.

    `session`: the session to ask, else one is opened; a model that cannot be opened gets a report with its problems.
    `stream`: arguments of `InferenceSession.stream` (`time`, `hop`, `state`, ...) with which the input that is cut along
    time is pushed piece by piece; `rate`: its samples per second. Times and values are of one run over all of it or, of a
    model that takes windows with context or cannot take all at once, over the first window. `runs`: of the profile.
    """
    name = title or (os.fspath(model) if isinstance(model, (str, os.PathLike)) else "a model")
    problems = problems_of(model)
    data: dict[str, Any] = {
        "title": os.path.basename(str(name)) or str(name),
        "problems": problems,
        "nodes": nodes_of(model),
    }
    data |= {"explanation": None, "times": None, "trace": None, "pushes": None}
    refused, trace = "", None
    try:
        if session is None:
            from .._session import InferenceSession as Opened

            source = os.fspath(model) if isinstance(model, os.PathLike) else model
            session = Opened(source)
        pieces = Pieces(session, input_feed, stream) if input_feed is not None and stream is not None else None
        looked_at = input_feed
        if pieces is not None and (pieces.are_windows or not _runs(session, pieces.feeds)):
            looked_at = pieces.window()
            data["window"] = pieces.window_size
        if looked_at is not None:
            data["times"] = times_of(session, looked_at, runs)
            trace = trace_of(session, looked_at)
            data["trace"] = {"left_out": trace} if isinstance(trace, str) else shown_trace(trace)
        data["explanation"] = explanation_of(session, looked_at)
        if pieces is not None:  # last: other sizes may change plans
            data["pushes"] = pieces.push_all(session, rate)
    except FAILURES as problem:
        refused = str(problem)
    data["about"] = about(data, session)
    data["answers"] = answers(data, refused)
    return Report(data, model, None if isinstance(trace, str) else trace)
