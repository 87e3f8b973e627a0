"""How load and first run grow with the model, beside onnxruntime where that ends in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

import growth_models
import numpy as np
import onnxruntime
import record
import treadle

SIZES = (1_000, 10_000)
LARGEST = 200_000  # of the kind whose nodes onnxruntime takes in seconds
MOST_BESIDE = 1_000  # nodes with bodies: onnxruntime's time to load them grows with their square


def took(make: Callable[[], object], feed: growth_models.Feed) -> tuple[float, float, np.ndarray]:
    """Milliseconds of processor time to load and to run once, and what came out."""
    start = time.process_time()
    session = make()
    loaded = time.process_time()
    result = session.run(None, feed)[0]
    return 1e3 * (loaded - start), 1e3 * (time.process_time() - loaded), result


def beside(data: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options)


def row(title: str, count: int, make: Callable[[int], tuple[bytes, growth_models.Feed]]) -> None:
    data, feed = make(count)
    load, first, ours = took(lambda: treadle.InferenceSession(data), feed)
    line = f"{title:<28} {count:>7} {load:>9.1f} {first:>9.1f}"
    figures = {"kind": title, "nodes": count, "treadle_load": load / 1e3, "treadle_first_run": first / 1e3}
    if count <= MOST_BESIDE or make is growth_models.chain:
        load, first, theirs = took(lambda: beside(data), feed)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
        line += f" {load:>9.1f} {first:>9.1f}"
        figures |= {"onnxruntime_load": load / 1e3, "onnxruntime_first_run": first / 1e3}
    record.keep("growth", f"{title}, {count}", **figures)
    print(line, flush=True)


def bench_growth(options) -> None:
    print(f"{'milliseconds of a core':<28} {'nodes':>7} {'load':>9} {'first run':>9} {'onnxruntime':>19}")
    for title, make in growth_models.KINDS.items():
        if options.match in title:
            for count in SIZES + ((LARGEST,) if make is growth_models.chain else ()):
                row(title, count, make)
