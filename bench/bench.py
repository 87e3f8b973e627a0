"""Measures treadle beside onnxruntime in one process, one thread each, alternating: bench.py [loops] [rnn] [models]
[check].

    loops    small bodies: nanoseconds per trip, as slopes (time at 10 N trips - time at N) / 9 N
    rnn      recurrent operators and cells in a Scan: milliseconds per run
    models   real models of SHARED/models (a folder beside the repository, or $TREADLE_SHARED), where it is there
    check    checking and inferring models, beside the onnx package

Prints medians, the ratio onnxruntime/treadle, and for whole models the time to load and run once.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import statistics
import sys
import time

import numpy as np
import onnx
import onnxruntime
import treadle
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(pathlib.Path(__file__).parent)]

import bench_check  # noqa: E402
import bench_models  # noqa: E402

IDENTITY = '<ir_version: 8, opset_import: ["" : 17]> g (float x) => (float y) { y = Identity(x) }'


def open_ours(data: bytes, jit: str = "off"):
    """The program tier; with `jit` "always" the native tier."""
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.jit", jit)
    return treadle.InferenceSession(data, options)


def open_native(data: bytes):
    return open_ours(data, "always")


def open_theirs(data: bytes):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def bind(session, feeds: dict[str, np.ndarray]):
    return lambda: session.run(None, feeds)


def alternate(runs, seconds: float) -> list[float]:
    """Median seconds of each of `runs`, taken in turns."""
    for run in runs:
        run()
    times: list[list[float]] = [[] for _ in runs]
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times[0]) < 5:
        for run, taken in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def bench_loops(seconds: float) -> None:
    print("| loop | onnxruntime ns/trip | program ns/trip | native ns/trip | program: ratio | native: ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    ratios, native = [], []
    for name, make in bench_models.LOOPS.items():
        per_trip = []
        model, feeds, trips = make(1)
        wide, wide_feeds, wide_trips = make(10)
        for engine in (open_theirs, open_ours, open_native):
            short, long = engine(model), engine(wide)
            fast, slow = alternate([bind(short, feeds), bind(long, wide_feeds)], seconds)
            per_trip.append((slow - fast) / (wide_trips - trips) * 1e9)
        ratios.append(per_trip[0] / per_trip[1])
        native.append(per_trip[0] / per_trip[2])
        print(
            f"| {name} | {per_trip[0]:.0f} | {per_trip[1]:.1f} | {per_trip[2]:.1f} | {ratios[-1]:.0f} | {native[-1]:.0f} |",
            flush=True,
        )
    identity = onnx.parser.parse_model(IDENTITY).SerializeToString()
    call = [bind(engine(identity), {"x": np.array(1, np.float32)}) for engine in (open_theirs, open_ours, open_native)]
    times = [t * 1e9 for t in alternate(call, seconds)]
    print(
        f"| a call of Identity, ns | {times[0]:.0f} | {times[1]:.0f} | {times[2]:.0f} | {times[0] / times[1]:.1f} | |"
    )
    for tier, found in (("program", ratios), ("native", native)):
        print(f"\n{tier}: geometric mean {geometric_mean(found):.0f}, least {min(found):.1f}")
    print()


def bench_rnn(seconds: float) -> None:
    print("| model | onnxruntime ms | treadle ms | ratio |\n| --- | --- | --- | --- |")
    for name, make in bench_models.RECURRENT.items():
        data, feeds = make()
        theirs, ours = open_theirs(data), open_ours(data)
        a, b = alternate([bind(theirs, feeds), bind(ours, feeds)], seconds)
        print(f"| {name} | {a * 1e3:.3f} | {b * 1e3:.3f} | {a / b:.2f} |", flush=True)
    print()


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


def bench_real(seconds: float) -> None:
    shared = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared")) / "models"
    if not shared.is_dir():
        print(f"models: no folder {shared}\n")
        return
    print(
        "| model | onnxruntime ms | treadle ms | ratio | load and first run: ratio | treadle's peak of a run, MiB |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    ratios = []
    for path in sorted(shared.glob("*/model.onnx")):
        data = path.read_bytes()
        feeds = real_feeds(path.parent, onnx.load(path).graph)
        if feeds is None:
            continue
        try:
            theirs, ours = open_theirs(data), open_ours(data)
            a, b = alternate([bind(theirs, feeds), bind(ours, feeds)], seconds)
        except Exception as problem:  # either engine may refuse a model
            print(f"| {path.parent.name} | | | {type(problem).__name__} | | |")
            continue
        load = [statistics.median(first_run(e, data, feeds) for _ in range(3)) for e in (open_theirs, open_ours)]
        ratios.append(a / b)
        print(
            f"| {path.parent.name} | {a * 1e3:.3f} | {b * 1e3:.3f} | {a / b:.2f} | {load[0] / load[1]:.2f} | "
            f"{ours.counters()['peak_bytes_last_run'] / 2**20:.2f} |",
            flush=True,
        )
    print(f"\ngeometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}\n")


def main() -> None:
    kinds = {"loops": bench_loops, "rnn": bench_rnn, "models": bench_real, "check": bench_check.bench_check}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="*", choices=[[], *kinds], default=list(kinds))
    parser.add_argument("--seconds", type=float, default=0.5, help="per measurement")
    arguments = parser.parse_args()
    for kind in arguments.kind:
        kinds[kind](arguments.seconds)


if __name__ == "__main__":
    main()
