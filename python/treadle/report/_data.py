"""What a report shows, as data: the model's nodes, how its loops run, and what runs of it took and made."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, _errors
from .._model import check, model_source
from ._tree import tree

if TYPE_CHECKING:
    from .._profile import Profile
    from .._session import InferenceSession
    from .._trace import Trace
    from .._types import InputValue, PathOrBytes

# What a model or its runs may be refused with.
FAILURES: tuple[type[Exception], ...] = (*_errors.FAILURES, ValueError, OSError)
_MOST_ROWS, _MOST_COLUMNS = 400, 1500  # of a heat map
_TRACE_MEMORY = 256 << 20
_MOST_PUSHES = 2000
_IN_A_BODY = re.compile(r"(.*:\w+)/(.*)", re.DOTALL)  # the path of a value: its body, and its name there
_PERCENTILES = {"p50": 50, "p99": 99, "p99.9": 99.9, "maximum": 100}


def problems_of(model: PathOrBytes) -> list[dict[str, Any]]:
    """What is wrong with the model, each with the node where it is."""
    try:
        return [
            {"level": problem.severity, "where": problem.path, "what": str(problem)}
            for problem in check(model, full=True)
        ]
    except FAILURES as failed:
        return [{"level": "error", "where": "", "what": str(failed)}]


def nodes_of(model: PathOrBytes) -> list[dict[str, Any]]:
    """The nodes of the model with types as far as they can be inferred; none for what is no model."""
    path, data = model_source(model)
    try:
        typed = _core.infer_model(path, data, 2)
        return tree(typed)
    except FAILURES:
        pass
    try:
        return tree(data if data is not None else _core.read_file(path or ""))
    except FAILURES:
        return []


def explanation_of(session: InferenceSession, feeds: Mapping[str, InputValue] | None) -> dict[str, Any]:
    """What `InferenceSession.explain` says, with rewrites by node."""
    found: dict[str, Any] = session.explain(feeds, json=True)
    rewritten: dict[str, list[str]] = {}
    for loop in found.get("loops", []):
        for change in loop.pop("rewrites", []):
            into = f", as {change['into']}" if change.get("into") else ""
            rewritten.setdefault(change["node"], []).append(f"{change['change']}{into}")
    found["rewritten"] = rewritten
    return found


def profile_of(profile: Profile) -> dict[str, Any]:
    """Its nodes, loops and memory."""
    nodes = [{key: node[key] for key in ("node", "op", "loop", "count", "ns")} for node in profile.nodes]
    return {"profiled_ns": profile.total_ns, "nodes": nodes, "loops": profile.loops, "memory": profile.memory}


def times_of(session: InferenceSession, feeds: Mapping[str, InputValue], runs: int) -> dict[str, Any]:
    """What a profile says, and how long a usual run takes, in nanoseconds."""
    session.run(None, feeds)
    session.wait_compiled()
    usual = []
    for _ in range(max(runs, 3)):
        begin = time.perf_counter_ns()
        session.run(None, feeds)
        usual.append(time.perf_counter_ns() - begin)
    return {
        "usual_ns": float(np.median(usual)),
        "peak_bytes": session.counters()["peak_bytes_last_run"],
        **profile_of(session.profile(feeds, runs=runs)),
    }


def map_of(trace: Trace, most_rows: int = _MOST_ROWS, most_columns: int = _MOST_COLUMNS) -> dict[str, Any]:
    """Norms of values over iterations, by the loop around them: for each value one number in each column, in tenths of
    powers of ten; None for 0 or nothing, "nan" and "inf" where such numbers are in it. "at" has the columns' iterations.
    """
    loops: dict[str, dict[str, Any]] = {}
    for name in trace:
        body = _IN_A_BODY.match(name)
        if body is None:
            continue
        loop = loops.setdefault(body[1].removesuffix(":body"), {"columns": 0, "step": 1, "at": [], "values": []})
        if len(loop["values"]) == most_rows:
            continue
        series = trace[name]
        at = series.iterations
        if not at.shape[1] or len(series) < 2:
            continue
        low, high = np.fmin.reduce(series.minimum), np.fmax.reduce(series.maximum)
        if np.isnan(low) and not series.nan.any():  # texts
            continue
        step = -(-len(series) // most_columns)
        bad = [int(b) for b in np.flatnonzero((series.nan > 0) | (series.inf > 0))]
        picked = np.arange(0, len(series), step)
        with np.errstate(divide="ignore"):
            logs = np.log10(series.norm[picked])
        cells: list[int | None] = [int(round(x * 10)) if np.isfinite(x) else None for x in logs]
        marks: dict[int, str] = {}
        for i in bad:
            if marks.get(i // step) != "nan":
                marks[i // step] = "nan" if series.nan[i] else "inf"
        if len(cells) > loop["columns"]:
            loop |= {"columns": len(cells), "step": step, "at": at[picked].tolist()}
        loop["values"].append(
            {
                "name": body[2],
                "cells": cells,
                "marks": marks,
                "first": at[bad[0]].tolist() if bad else None,
                "low": _finite(low),
                "high": _finite(high),
            }
        )
    return {name: loop for name, loop in loops.items() if loop["values"]}


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def trace_of(session: InferenceSession, feeds: Mapping[str, InputValue]) -> Trace | str:
    """The inner values of a run; a text says why there are none."""
    try:
        return session.trace(feeds, memory=_TRACE_MEMORY, find="nan")
    except FAILURES as problem:
        return str(problem)


def shown_trace(trace: Trace, most_rows: int = _MOST_ROWS, most_columns: int = _MOST_COLUMNS) -> dict[str, Any]:
    """Its heat maps, and what was found in it."""
    found = trace.found or {}
    text = str(trace)
    table = text.find("\nvalue  ")  # of ranges, which the heat maps show
    return {
        "map": map_of(trace, most_rows, most_columns),
        "found": found if found.get("places") else None,
        "text": text[:table] if table >= 0 else text,
    }


class Pieces:
    """An input that is pushed to a stream piece by piece: `options` of `InferenceSession.stream`, with its "time"."""

    def __init__(self, session: InferenceSession, feeds: Mapping[str, InputValue], options: Mapping[str, Any]) -> None:
        self.options, self.feeds = options, feeds
        axes: dict[str, int | str] = dict(options.get("time") or {})
        self.name, axis = next(iter(axes.items()), ("", 0))
        if self.name not in feeds:
            raise ValueError(
                f"stream: 'time' names the input '{self.name}', and there is no such input among the values"
            )
        self.signal = np.asarray(feeds[self.name])
        sizes = next((info.shape for info in session.get_inputs() if info.name == self.name), [])
        self.axis = axis if isinstance(axis, int) else sizes.index(axis) if axis in sizes else 0
        self.hop = int(options.get("hop") or max(self.signal.shape[self.axis] // 100, 1))
        context = int(options.get("context") or 0)
        self.are_windows = context > 0
        self.window_size = min(context + self.hop, self.signal.shape[self.axis])

    def window(self) -> dict[str, InputValue]:
        """Inputs of one run, where the model does not take the whole signal at once."""
        return {**self.feeds, self.name: np.take(self.signal, range(self.window_size), self.axis)}

    def push_all(self, session: InferenceSession, rate: float) -> dict[str, Any]:
        """How long each push takes, in microseconds; `rate`: samples per second, 0: unknown."""
        stream = session.stream(**self.options)
        known = {*stream.state, *(self.options.get("bind") or {}), self.name}
        others = {key: value for key, value in self.feeds.items() if key not in known}
        length = self.signal.shape[self.axis]
        taken = []
        for begin in range(0, min(length, self.hop * _MOST_PUSHES), self.hop):
            piece = np.take(self.signal, range(begin, min(begin + self.hop, length)), self.axis)
            at = time.perf_counter_ns()
            stream.push({self.name: piece, **others})
            taken.append((time.perf_counter_ns() - at) / 1e3)
        return {
            "us": [round(x, 2) for x in taken],
            "hop": self.hop,
            "text": str(stream),
            **_summary(taken, self.hop, rate),
        }


def _summary(taken: list[float], hop: int, rate: float) -> dict[str, Any]:
    if not taken:
        return {"percentiles": {}, "summary": "There is nothing to push."}
    found = {name: float(np.percentile(taken, share)) for name, share in _PERCENTILES.items()}
    times = ", ".join(f"{name} {us:,.1f} us" for name, us in found.items())
    text = f"{len(taken):,} pushes of {hop:,} samples: {times}."
    if rate > 0:
        text += f" They take {float(np.mean(taken)) / 1e4 * rate / hop:.2g} % of the time in which the samples come."
    return {"percentiles": found, "summary": text}


def encoded(data: dict[str, Any]) -> str:
    """JSON that can stand in an HTML element of data, whatever is in its texts."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
