"""treadle inside onnxruntime, as its execution provider, beside onnxruntime alone: real models, loops, and what a
claimed node costs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import models
import numpy as np
import onnx
import onnxruntime
import record
from bench_real import print_mean, real_models
from engines import Run, bind, open_theirs
from measure import best_of

ROUNDS = 15
# By name, options of the provider; the first are its defaults.
SETTINGS: dict[str, dict[str, str]] = {"default": {}, "claim=loops": {"claim": "loops"}, "claim=all": {"claim": "all"}}
LEAST = 0.95  # of onnxruntime's speed, which no model should fall below
RELU = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'

Model = tuple[str, bytes, dict[str, np.ndarray]]


def open_provided(data: bytes, provider: str, **settings: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = onnxruntime.InferenceSession(data, options, providers=[(provider, settings), "CPUExecutionProvider"])
    session.disable_fallback()
    return session


def share_claimed(session: onnxruntime.InferenceSession, provider: str) -> str:
    """Of the nodes outside of bodies, how many the provider has taken, and in how many claims."""
    graphs = session.get_provider_graph_assignment_info()
    taken = [len(graph.get_nodes()) for graph in graphs if graph.ep_name == provider]
    return f"{sum(taken)} of {sum(len(graph.get_nodes()) for graph in graphs)} in {len(taken)}"


def mean_of(run: Run, count: int) -> float:
    """Processor time of a run, without that of the compiler of loops, which has a thread of its own."""
    begin = time.thread_time()
    for _ in range(count):
        run()
    return (time.thread_time() - begin) / count


def times_of(sessions: list, feeds: dict[str, np.ndarray], seconds: float) -> list[float]:
    """The least of means over series, which sessions take in turns: the processor's clock is too coarse for one run."""
    runs = [bind(session, feeds) for session in sessions]
    for run in runs:
        best_of(run, 0.02)  # plans are made, and caches filled
    counts = [max(int(seconds / ROUNDS / best_of(run, 0.02)), 1) for run in runs]
    found = [[mean_of(*each) for each in zip(runs, counts, strict=True)] for _ in range(ROUNDS)]
    return [min(taken) for taken in zip(*found, strict=True)]


def loops() -> Iterator[Model]:
    for name, loop in models.LOOPS.items():
        built = loop.make(1)
        yield name, built.model(), built.inputs


def measure_model(kind: str, model: Model, provider: str, seconds: float) -> list[float]:
    """Prints a row; how many times as fast as onnxruntime alone the model is with each of SETTINGS."""
    name, data, feeds = model
    sessions = [open_provided(data, provider, **settings) for settings in SETTINGS.values()]
    alone, *inside = times_of([open_theirs(data), *sessions], feeds, seconds)
    ratios = [alone / taken for taken in inside]
    cells = [name, share_claimed(sessions[0], provider), f"{alone * 1e3:.3f}", *(f"{ratio:.2f}" for ratio in ratios)]
    print(f"| {' | '.join(cells)} |", flush=True)
    record.keep(f"provider: {kind}", name, **dict(zip(SETTINGS, ratios, strict=True)))
    return ratios


def measure_models(kind: str, these: Iterator[Model], provider: str, options) -> None:
    print(
        f"| {kind} | claimed | onnxruntime ms | {' | '.join(SETTINGS)} |\n| --- | --- | --- |{' --- |' * len(SETTINGS)}"
    )
    found: list[list[float]] = []
    for model in these:
        if options.match not in model[0]:
            continue
        try:
            found.append(measure_model(kind, model, provider, options.seconds or 0.3))
        except Exception as problem:  # onnxruntime's own kernels may refuse a model
            print(f"| {model[0]} | | | {type(problem).__name__} |{' |' * (len(SETTINGS) - 1)}")
    print()
    for setting, ratios in zip(SETTINGS, zip(*found, strict=True), strict=False):
        print_mean(f"{len(found)} {kind}, {setting}", list(ratios))
        print(f"below {LEAST}: {sum(ratio < LEAST for ratio in ratios)}")
    print_mean("the best of the settings for each", [max(ratios) for ratios in found])
    print()


def bench_provider(options) -> None:
    try:
        import onnxruntime_ep_treadle
    except ImportError as problem:
        print(f"provider: {problem}\n")
        return
    provider = onnxruntime_ep_treadle.get_ep_name()
    onnxruntime.register_execution_provider_library(provider, onnxruntime_ep_treadle.get_library_path())
    relu = onnx.parser.parse_model(RELU).SerializeToString()
    both = [open_theirs(relu), open_provided(relu, provider, claim="all")]
    alone, inside = times_of(both, {"x": np.float32([1, -1, 2, -2])}, options.seconds or 0.3)
    print(f"onnxruntime {onnxruntime.__version__}, one thread")
    print(f"Relu of four floats: onnxruntime {alone * 1e6:.2f} us, as a claimed node {inside * 1e6:.2f} us\n")
    measure_models("models", real_models(), provider, options)
    measure_models("loops", loops(), provider, options)
