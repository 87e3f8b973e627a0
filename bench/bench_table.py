"""Calls by the function table of libonnxruntime.so, treadle's and onnxruntime's own: an Identity, and real models beside
the same models through Python."""

from __future__ import annotations

import time

import numpy as np
import onnx
import record
from bench_loops import IDENTITY
from bench_real import geometric_mean, real_models
from c_table import OURS, THEIRS, TableSession
from engines import bind, open_ours, open_theirs
from measure import in_turns

SHORT = 0.001  # seconds that calls in a row take together
ROUNDS = 5


def calls_of(session: TableSession) -> int:
    session.run()
    start = time.process_time()
    session.run()
    return max(1, round(SHORT / max(time.process_time() - start, 1e-7)))


def through_table(model: bytes, feeds: dict[str, np.ndarray], seconds: float) -> list[float]:
    """Seconds of processor time a call, by onnxruntime and by treadle."""
    sessions = [TableSession(library, model, feeds) for library in (THEIRS, OURS)]
    counts = [calls_of(session) for session in sessions]
    runs = [lambda s=session, n=count: s.run(n) for session, count in zip(sessions, counts, strict=True)]
    times = in_turns(runs, ROUNDS, seconds / ROUNDS, time.process_time)
    return [min(taken) / count for taken, count in zip(times, counts, strict=True)]


def through_python(model: bytes, feeds: dict[str, np.ndarray], seconds: float) -> list[float]:
    runs = [bind(open_one(model), feeds) for open_one in (open_theirs, lambda data: open_ours(data, "auto"))]
    return [min(taken) for taken in in_turns(runs, ROUNDS, seconds / ROUNDS, time.process_time)]


def bench_table(options) -> None:
    if THEIRS is None or not OURS.exists():
        print("table: needs build/lib/onnxruntime/libonnxruntime.so and onnxruntime's own library\n")
        return
    seconds = options.seconds or 0.5
    identity = onnx.parser.parse_model(IDENTITY).SerializeToString()
    theirs, ours = through_table(identity, {"x": np.array(1, np.float32)}, seconds)
    print("| a call by the function table | onnxruntime | treadle | ratio | ratio through Python |")
    print("| --- | --- | --- | --- | --- |")
    print(f"| Identity, ns | {theirs * 1e9:.0f} | {ours * 1e9:.0f} | {theirs / ours:.2f} | |")
    record.keep("table", "Identity", onnxruntime=theirs, treadle=ours)
    ratios: list[tuple[float, float]] = []
    for name, data, feeds in real_models():
        try:
            theirs, ours = through_table(data, feeds, seconds)
            python = through_python(data, feeds, seconds)
        except Exception as problem:  # either library may refuse a model
            print(f"| {name} | | | {type(problem).__name__} | |")
            continue
        ratios.append((theirs / ours, python[0] / python[1]))
        record.keep(
            "table", name, onnxruntime=theirs, treadle=ours, python_onnxruntime=python[0], python_treadle=python[1]
        )
        print(f"| {name}, us | {theirs * 1e6:.2f} | {ours * 1e6:.2f} | {ratios[-1][0]:.2f} | {ratios[-1][1]:.2f} |")
    if ratios:
        table, python = (geometric_mean(list(column)) for column in zip(*ratios, strict=True))
        print(f"\ngeometric mean {table:.2f}, through Python {python:.2f}\n")
