"""What a report shows, as data: the model's nodes, how its loops run, and what runs of it took and made."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, _errors
from .._model import check, model_source
from ._tree import tree

if TYPE_CHECKING:
    from .._session import InferenceSession
    from .._trace import Trace
    from .._types import InputValue, PathOrBytes

# What a model or its runs may be refused with.
FAILURES: tuple[type[Exception], ...] = (*_errors.FAILURES, ValueError, OSError)
_MOST_ROWS, _MOST_COLUMNS = 400, 1500  # of a heat map
_TRACE_MEMORY = 256 << 20
_MOST_PUSHES = 2000


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


def times_of(session: InferenceSession, feeds: Mapping[str, InputValue], runs: int) -> dict[str, Any]:
    """Nodes and loops of a profile, and how long a usual run takes, in nanoseconds."""
    session.run(None, feeds)
    session.wait_compiled()
    usual = []
    for _ in range(max(runs, 3)):
        begin = time.perf_counter_ns()
        session.run(None, feeds)
        usual.append(time.perf_counter_ns() - begin)
    profile = session.profile(feeds, runs=runs)
    nodes = [{key: node[key] for key in ("node", "op", "loop", "count", "ns")} for node in profile.nodes]
    return {
        "usual_ns": float(np.median(usual)),
        "profiled_ns": profile.total_ns,
        "peak_bytes": session.counters()["peak_bytes_last_run"],
        "nodes": nodes,
        "loops": profile.loops,
    }


def map_of(trace: Trace) -> dict[str, Any]:
    """Norms of values over iterations, by the loop around them: for each value one number in each column, in tenths of
    powers of ten; None for 0 or nothing, "nan" and "inf" where such numbers are in it.
    """
    loops: dict[str, dict[str, Any]] = {}
    for name in trace:
        series = trace[name]
        at = series.iterations
        if not at.shape[1] or len(series) < 2:
            continue
        loop = loops.setdefault(name.rpartition(":")[0], {"columns": 0, "values": []})
        if len(loop["values"]) == _MOST_ROWS:
            continue
        step = -(-len(series) // _MOST_COLUMNS)
        bad = [int(b) for b in np.flatnonzero((series.nan > 0) | (series.inf > 0))]
        picked = np.arange(0, len(series), step)
        with np.errstate(divide="ignore"):
            logs = np.log10(series.norm[picked])
        cells: list[int | None] = [int(round(x * 10)) if np.isfinite(x) else None for x in logs]
        marks: dict[int, str] = {}
        for i in bad:
            marks.setdefault(i // step, "nan" if series.nan[i] else "inf")
        loop["columns"] = max(loop["columns"], len(cells))
        loop["step"] = max(loop.get("step", 1), step)
        loop["values"].append(
            {
                "name": name.rpartition("/")[2],
                "cells": cells,
                "marks": marks,
                "first": at[bad[0]].tolist() if bad else None,
                "low": _finite(series.minimum.min()),
                "high": _finite(series.maximum.max()),
            }
        )
    return loops


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def trace_of(session: InferenceSession, feeds: Mapping[str, InputValue]) -> dict[str, Any]:
    """The heat maps, and where the first NaN came from; "left_out" says why there is none."""
    try:
        trace = session.trace(feeds, memory=_TRACE_MEMORY, find="nan")
    except FAILURES as problem:
        return {"left_out": str(problem)}
    found = trace.found or {}
    return {"map": map_of(trace), "found": found if found.get("places") else None, "text": str(trace) if found else ""}


def pushes_of(
    session: InferenceSession, feeds: Mapping[str, Any], options: Mapping[str, Any], rate: float
) -> dict[str, Any]:
    """How long each push of a stream takes, in microseconds; `rate`: samples per second, 0: unknown."""
    time_axes = options.get("time") or {}
    stream = session.stream(**options)
    name, axis = next(iter(time_axes.items()))
    signal = np.asarray(feeds[name])
    axis = axis if isinstance(axis, int) else 0
    hop = int(options.get("hop") or max(signal.shape[axis] // 100, 1))
    others = {key: value for key, value in feeds.items() if key not in stream.state and key != name}
    taken = []
    for begin in range(0, min(signal.shape[axis], hop * _MOST_PUSHES), hop):
        piece = np.take(signal, range(begin, min(begin + hop, signal.shape[axis])), axis)
        at = time.perf_counter_ns()
        stream.push({name: piece, **others})
        taken.append((time.perf_counter_ns() - at) / 1e3)
    return {"us": [round(x, 2) for x in taken], "hop": hop, "rate": rate, "text": str(stream)}


def encoded(data: dict[str, Any]) -> str:
    """JSON that can stand in an HTML element of data, whatever is in its texts."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
