"""RNN, LSTM and GRU as operators: milliseconds a run beside onnxruntime and the roof, in alternating pairs; and one step
per call."""

from __future__ import annotations

import dataclasses
import statistics

import engines
import measure
import models
import numpy as np
import roof
import yardsticks
from models.cells import gated_weights
from models.registry import numbers, uniform
from onnx import TensorProto, helper, numpy_helper

PAIRS = 15
SECONDS = 0.01  # of one measurement of one engine


@dataclasses.dataclass
class Found:
    operator: models.Operator
    times: dict[str, list[float]]
    roof: roof.Roof

    def against_theirs(self) -> measure.Ratio:
        return measure.ratio(self.times["onnxruntime"], self.times["native"])

    def against_roof(self) -> measure.Ratio:
        return measure.ratio(self.times["native"], [self.roof.total] * len(self.times["native"]))


def measure_operator(o: models.Operator, pairs: int, seconds: float) -> Found:
    data, feeds = o.build()
    opened = {"onnxruntime": engines.open_theirs, "program": engines.open_ours, "native": engines.open_native}
    runs = {name: engines.bind(open_one(data), feeds) for name, open_one in opened.items()}
    expected = runs["onnxruntime"]()[0]
    for name, run in runs.items():
        if not np.allclose(run()[0], expected, rtol=1e-3, atol=1e-4):
            print(f"NOT THE SAME RESULTS: {o.name}, {name}")
    times = measure.in_turns(list(runs.values()), pairs, seconds)
    return Found(o, dict(zip(runs, times, strict=True)), roof.roof(o))


def print_operator(found: Found) -> None:
    group = found.operator.group
    theirs, peak = found.against_theirs(), found.against_roof()
    cells = [found.operator.name]
    cells += [f"{statistics.median(found.times[name]) * 1e3:.3f}" for name in ("onnxruntime", "program", "native")]
    cells += [f"{found.roof.total * 1e3:.3f}", str(theirs), f"{group.onnxruntime or ''}"]
    cells += [measure.at_least(theirs, group.onnxruntime), str(peak), f"{group.yardstick or ''}"]
    print(f"| {' | '.join([*cells, measure.at_most(peak, group.yardstick)])} |", flush=True)


def bench_operators(options) -> None:
    rate = roof.multiply_add_rate() / 1e9
    print(f"vectors of {roof.vector_bits()} bits; multiply-adds {rate:.0f} Gflop/s; ", end="")
    print(
        ", ".join(
            f"{size >> 10} KiB read at {roof.read_rate(size) / 1e9:.0f} GB/s" for size in (16384, 262144, 1 << 20)
        )
    )
    print("; ".join(f"{op} {roof.activation_seconds(op) * 1e9:.3f} ns" for op in ("Sigmoid", "Tanh")) + " an element\n")
    print(
        "| operator | onnxruntime ms | program ms | native ms | roof ms | onnxruntime / native | target | | native / roof | target | |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for operator in models.operators():
        if options.match in operator.name:
            print_operator(measure_operator(operator, PAIRS, options.seconds or SECONDS))


# --- two threads


def bench_threads(options) -> None:
    print(
        "\n| two threads | one thread ms | two threads ms | ratio | target | |\n| --- | --- | --- | --- | --- | --- |"
    )
    for o in (
        models.Operator("LSTM", 500, 1, 256, models.THREADS),
        models.Operator("LSTM", 100, 1, 256, models.THREADS, 4),
    ):
        data, feeds = o.build()
        runs = [engines.bind(engines.open_native(data, threads), feeds) for threads in (1, 2)]
        one, two = measure.in_turns(runs, PAIRS, options.seconds or SECONDS)
        found, target = measure.ratio(one, two), 1.8
        cells = [o.name, *(f"{statistics.median(t) * 1e3:.3f}" for t in (one, two)), str(found), f"{target}"]
        print(f"| {' | '.join([*cells, measure.at_least(found, target)])} |", flush=True)


# --- one step per call


def step_model(width: int) -> tuple[bytes, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """An LSTM over one step; weights as a hand-written step wants them are given as well."""
    rng = numbers("step per call")
    plain = gated_weights(rng, 4, width)
    weights = {"W": plain["W"].T[None].copy(), "R": plain["R"].T[None].copy()}
    weights["B"] = np.concatenate([plain["bias"], np.zeros(4 * width, np.float32)])[None]
    node = helper.make_node("LSTM", ["X", "W", "R", "B", "", "h", "c"], ["", "h2", "c2"], hidden_size=width)
    value, float32 = helper.make_tensor_value_info, TensorProto.FLOAT
    state = [1, 1, width]
    inputs = [value(name, float32, state) for name in ("X", "h", "c")]
    outputs = [value(name, float32, state) for name in ("h2", "c2")]
    graph = helper.make_graph([node], "g", inputs, outputs, [numpy_helper.from_array(w, n) for n, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), {name: uniform(rng, *state) for name in ("X", "h", "c")}, plain


def bench_steps(options) -> None:
    print(
        "\n| LSTM, a step per call from Python | onnxruntime us | treadle us | C++ us | onnxruntime / treadle | treadle - C++, us |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    calls = 1000
    for width in (64, 256):
        data, feeds, plain = step_model(width)
        runs = [engines.bind(open_one(data), feeds) for open_one in (engines.open_theirs, engines.open_ours)]
        expected = runs[0]()
        if not all(np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(runs[1](), expected, strict=True)):
            print(f"NOT THE SAME RESULTS: a step per call, H={width}")
        arrays = [feeds["X"], plain["W"], plain["R"], plain["bias"]]
        runs.append(
            yardsticks.bind("lstm_step_per_call", (calls, width), arrays, [feeds["h"].copy(), feeds["c"].copy()])
        )
        times = measure.in_turns(runs, PAIRS, options.seconds or SECONDS)
        theirs, ours, hand = (statistics.median(t) * 1e6 for t in times)
        hand /= calls
        print(
            f"| H={width} | {theirs:.2f} | {ours:.2f} | {hand:.2f} | {theirs / ours:.1f} | {ours - hand:.2f} |",
            flush=True,
        )


def bench_rnn(options) -> None:
    bench_operators(options)
    bench_threads(options)
    bench_steps(options)
    print()
