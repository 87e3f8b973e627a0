"""treadle inside onnxruntime, as its execution provider, beside onnxruntime alone: real models, and what a claimed node
costs."""

from __future__ import annotations

import time

import numpy as np
import onnx
import onnxruntime
from bench_real import print_mean, real_models
from engines import bind, open_theirs
from measure import in_turns

ROUNDS = 5
LOOPS = {"If", "Loop", "Scan"}
RELU = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'


def open_provided(data: bytes, provider: str, **settings: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = onnxruntime.InferenceSession(data, options, providers=[(provider, settings), "CPUExecutionProvider"])
    session.disable_fallback()
    return session


def claimed(session: onnxruntime.InferenceSession, provider: str) -> set[str]:
    """The operators of the nodes that the provider has taken."""
    graphs = session.get_provider_graph_assignment_info()
    return {node.op_type for graph in graphs if graph.ep_name == provider for node in graph.get_nodes()}


def times_of(sessions: list, feeds: dict[str, np.ndarray], seconds: float) -> list[float]:
    runs = [bind(session, feeds) for session in sessions]
    return [min(taken) for taken in in_turns(runs, ROUNDS, seconds / ROUNDS, time.process_time)]


def bench_provider(options) -> None:
    try:
        import onnxruntime_ep_treadle
    except ImportError as problem:
        print(f"provider: {problem}\n")
        return
    provider = onnxruntime_ep_treadle.get_ep_name()
    onnxruntime.register_execution_provider_library(provider, onnxruntime_ep_treadle.get_library_path())
    seconds = options.seconds or 0.3
    relu = onnx.parser.parse_model(RELU).SerializeToString()
    both = [open_theirs(relu), open_provided(relu, provider, claim="all")]
    alone, inside = times_of(both, {"x": np.float32([1, -1, 2, -2])}, seconds)
    print(f"Relu of four floats: onnxruntime {alone * 1e6:.2f} us, as a claimed node {inside * 1e6:.2f} us\n")
    print("| model | claimed | onnxruntime ms | with treadle inside ms | ratio |\n| --- | --- | --- | --- | --- |")
    ratios: dict[str, list[float]] = {"loops": [], "recurrent operators": []}
    for name, data, feeds in real_models():
        if options.match not in name:
            continue
        try:
            session = open_provided(data, provider)
            taken = claimed(session, provider)
            if not taken:
                continue
            alone, inside = times_of([open_theirs(data), session], feeds, seconds)
        except Exception as problem:  # onnxruntime's own kernels may refuse a model
            print(f"| {name} | | | | {type(problem).__name__} |")
            continue
        kind = "loops" if taken & LOOPS else "recurrent operators"
        ratios[kind].append(alone / inside)
        print(f"| {name} | {kind} | {alone * 1e3:.3f} | {inside * 1e3:.3f} | {alone / inside:.2f} |", flush=True)
    print()
    for kind, found in ratios.items():
        print_mean(f"{len(found)} models with {kind}", found)
    print_mean("all", [ratio for found in ratios.values() for ratio in found])
    print()
