"""Real models beside onnxruntime: milliseconds a run, and the time to load and run once."""

from __future__ import annotations

import math
import os
import pathlib
import statistics
import time
from collections.abc import Iterator

import numpy as np
import onnx
import record
from engines import bind, open_ours, open_theirs
from measure import alternate
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[1]


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap"}


def has_control_flow(graph: onnx.GraphProto) -> bool:
    return any(node.op_type in CONTROL_FLOW for node in graph.node)


def print_mean(kind: str, ratios: list[float]) -> None:
    if ratios:
        print(f"{kind}: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


def first_run(engine, data: bytes, feeds: dict) -> float:
    start = time.perf_counter()
    engine(data).run(None, feeds)
    return time.perf_counter() - start


def real_feeds(folder: pathlib.Path, graph: onnx.GraphProto) -> dict[str, np.ndarray] | None:
    feeds = {}
    for path in sorted((folder / "test_data_set_0").glob("input_*.pb")):
        value = graph.input[int(path.stem.split("_")[1])]
        if not value.type.HasField("tensor_type"):
            return None
        tensor = onnx.TensorProto.FromString(path.read_bytes())
        feeds[value.name] = numpy_helper.to_array(tensor)
    return feeds


def real_models() -> Iterator[tuple[str, bytes, dict[str, np.ndarray]]]:
    """Name, model and inputs of those that take tensors alone; none where the folder is not there."""
    shared = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared")) / "models"
    if not shared.is_dir():
        print(f"models: no folder {shared}\n")
    for path in sorted(shared.glob("*/model.onnx")):
        feeds = real_feeds(path.parent, onnx.load(path).graph)
        if feeds is not None:
            yield path.parent.name, path.read_bytes(), feeds


def bench_real(options) -> None:
    print(
        "| model | onnxruntime ms | treadle ms | ratio | load and first run: ratio | treadle's peak of a run, MiB |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for name, data, feeds in real_models():
        try:
            theirs, ours = open_theirs(data), open_ours(data)
            a, b = alternate([bind(theirs, feeds), bind(ours, feeds)], options.seconds or 0.5)
        except Exception as problem:  # either engine may refuse a model
            print(f"| {name} | | | {type(problem).__name__} | | |")
            record.keep("models", name, control_flow=has_control_flow(onnx.load_from_string(data).graph))
            continue
        load = [statistics.median(first_run(e, data, feeds) for _ in range(3)) for e in (open_theirs, open_ours)]
        loops = has_control_flow(onnx.load_from_string(data).graph)
        peak = ours.counters()["peak_bytes_last_run"]
        ratios[loops].append(a / b)
        record.keep("models", name, control_flow=loops, onnxruntime=a, treadle=b, load_and_first_run=load[0] / load[1],
                    peak_bytes=peak)  # fmt: skip
        print(
            f"| {name} | {a * 1e3:.3f} | {b * 1e3:.3f} | {a / b:.2f} | {load[0] / load[1]:.2f} | {peak / 2**20:.2f} |",
            flush=True,
        )
    print()
    print_mean("with control flow", ratios[True])
    print_mean("others", ratios[False])
    print()
