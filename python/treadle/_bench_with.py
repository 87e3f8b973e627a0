"""`treadle bench --with onnxruntime`, which the tool starts (cli/bench.cc): runs of both engines in turns."""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from . import InferenceSession, SessionOptions
from ._command_feeds import feeds_of

_FAILED = 1
_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9, "maximum": 100.0}
_BLOCK_S = 0.05  # of runs of one engine before those of the other
_FEWEST = 3


def percentile(seconds: list[float], percent: float) -> float:
    """The shortest time that `percent` of all times do not exceed; `seconds` are sorted."""
    return seconds[max(math.ceil(percent / 100 * len(seconds)), 1) - 1]


def in_turns(runs: Mapping[str, Callable[[], object]], limit: float) -> dict[str, list[float]]:
    """Sorted times of each engine, whose runs take turns in blocks until each has had `limit` seconds."""
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    spent = dict.fromkeys(runs, 0.0)
    while any(spent[name] < limit or len(times[name]) < _FEWEST for name in runs):
        for name, run in runs.items():
            end = spent[name] + min(_BLOCK_S, limit)
            while True:
                begin = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - begin)
                spent[name] += times[name][-1]
                if spent[name] >= end:
                    break
    return {name: sorted(found) for name, found in times.items()}


def treadle_run(path: str, feeds: dict[str, Any], threads: int, entries: Mapping[str, str]) -> Callable[[], object]:
    """A run of the model in treadle."""
    options = SessionOptions()
    options.intra_op_num_threads = threads
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    session = InferenceSession(path, options)
    return lambda: session.run(None, feeds)


def onnxruntime_run(path: str, feeds: dict[str, Any], threads: int) -> tuple[str, Callable[[], object]]:
    """onnxruntime's version, and a run of the model in it. Errors: ImportError."""
    import importlib  # onnxruntime has no types

    onnxruntime = importlib.import_module("onnxruntime")

    if pathlib.Path(onnxruntime.__file__ or "").is_relative_to(pathlib.Path(__file__).parent):
        raise ImportError("the package onnxruntime that Python finds is treadle in its place (PYTHONPATH)")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return onnxruntime.__version__, lambda: session.run(None, feeds)


def table(times: Mapping[str, list[float]]) -> str:
    """A column for each engine, and how often treadle's time goes into the other's."""
    ours, theirs = times.values()
    is_short = percentile(ours, 50) < 1e-3
    factor, unit = (1e6, "us") if is_short else (1e3, "ms")
    lines = ["".join([" " * 10, *(f"{name:>20}" for name in times), f"{'ratio':>9}"])]
    for label, percent in _PERCENTILES.items():
        mine, other = percentile(ours, percent), percentile(theirs, percent)
        cells = "".join(f"{seconds * factor:>17.3f} {unit}" for seconds in (mine, other))
        lines.append(f"{label:<10}{cells}{other / mine:>9.2f}")
    lines.append(f"{'runs':<10}{len(ours):>20}{len(theirs):>20}")
    return "\n".join(lines)


def as_json(times: Mapping[str, list[float]]) -> str:
    """The same for programs."""
    engines = [
        {"engine": name, "runs": len(found)}
        | {f"{label.replace('.', '_')}_s": percentile(found, percent) for label, percent in _PERCENTILES.items()}
        for name, found in times.items()
    ]
    ours, theirs = (percentile(found, 50) for found in times.values())
    return json.dumps({"engines": engines, "ratio": theirs / ours})


def main(arguments: list[str]) -> int:
    """The exit status."""
    taken = argparse.ArgumentParser(allow_abbrev=False)
    taken.add_argument("model")
    taken.add_argument("--feed", action="append", default=[])  # the name of an input, =, and a file
    taken.add_argument("--seconds", type=float, default=2.0)
    taken.add_argument("--threads", type=int, default=0)
    taken.add_argument("--option", action="append", default=[])  # a name, =, and a value
    taken.add_argument("--json", action="store_true")
    given = taken.parse_args(arguments)
    feeds = feeds_of(given.feed)
    entries = dict(text.split("=", 1) for text in given.option)
    try:
        ours = treadle_run(given.model, feeds, given.threads, entries)
        version, theirs = onnxruntime_run(given.model, feeds, given.threads)
        times = in_turns({"treadle": ours, f"onnxruntime {version}": theirs}, given.seconds)
    except ImportError as problem:
        print(f"treadle: --with onnxruntime needs the package onnxruntime: {problem}", file=sys.stderr)
        return _FAILED
    except Exception as problem:  # noqa: BLE001 - each engine has errors of its own
        print(f"treadle: {problem}", file=sys.stderr)
        return _FAILED
    print(as_json(times) if given.json else table(times))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
