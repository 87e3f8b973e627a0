"""RNN, LSTM and GRU as operators: milliseconds a run beside onnxruntime and the roof, in alternating pairs; two
threads; weights in float16; and one step per call."""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics

import c_stream
import engines
import measure
import models
import numpy as np
import record
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
    runs = engines.runs_by_all(o.name, *o.build())
    times = measure.in_turns(list(runs.values()), pairs, seconds)
    return Found(o, dict(zip(runs, times, strict=True)), roof.roof(o))


def print_operator(found: Found) -> None:
    group = found.operator.group
    theirs, peak = found.against_theirs(), found.against_roof()
    medians = {name: statistics.median(times) for name, times in found.times.items()}
    record.keep("rnn", found.operator.name, **medians, roof=found.roof.total, onnxruntime_over_native=theirs.mean)
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
    for o, target in (
        (models.Operator("LSTM", 500, 1, 256, models.THREADS), 1.8),
        (models.Operator("LSTM", 100, 1, 256, models.THREADS, 4), 1.8),
        (models.Operator("LSTM", 100, 16, 256, models.THREADS), 1.7),
        (models.Operator("GRU", 100, 16, 256, models.THREADS), 1.7),
    ):
        data, feeds = o.build()
        runs = [engines.bind(engines.open_native(data, threads), feeds) for threads in (1, 2)]
        one, two = measure.in_turns(runs, PAIRS, options.seconds or SECONDS)
        found = measure.ratio(one, two)
        record.keep("threads", o.name, one=statistics.median(one), two=statistics.median(two))
        cells = [o.name, *(f"{statistics.median(t) * 1e3:.3f}" for t in (one, two)), str(found), f"{target}"]
        print(f"| {' | '.join([*cells, measure.at_least(found, target)])} |", flush=True)


# --- weights in float16


def step_seconds(short: list[float], long: list[float], steps: int) -> list[float]:
    return [(b - a) / steps for a, b in zip(short, long, strict=True)]


def bench_half_weights(options) -> None:
    """A step's slope over the length, on inputs of a few columns: the recurrent part alone."""
    print(
        "\n| f16 weights, a step | f32 us | f16 us | ratio | target | | outputs off by at most |"
        "\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    target, lengths = 1.7, (20, 100)
    for op, width in itertools.product(("LSTM", "GRU"), (512, 1024)):
        runs = []
        for weights, steps in itertools.product(("f32", "f16"), lengths):
            data, feeds = models.Operator(op, steps, 1, width, models.HALF, inputs=8).build()
            runs.append(engines.bind(engines.open_ours(data, "always", weights=weights), feeds))
        off = np.abs(runs[1]()[0] - runs[3]()[0]).max()
        times = measure.in_turns(runs, PAIRS, options.seconds or SECONDS)
        whole, half = (step_seconds(*times[i : i + 2], lengths[1] - lengths[0]) for i in (0, 2))
        found = measure.ratio(whole, half)
        cells = [f"{op} H={width}", *(f"{statistics.median(t) * 1e6:.1f}" for t in (whole, half)), str(found)]
        cells += [f"{target}", measure.at_least(found, target), f"{off:.1e}"]
        print(f"| {' | '.join(cells)} |", flush=True)


# --- one step per call


STATES = {"h": "h2", "c": "c2"}


def step_model(width: int, *more: str) -> tuple[bytes, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """An LSTM over one step, with outputs beside the states; weights as a hand-written step wants them are given too."""
    rng = numbers("step per call")
    plain = gated_weights(rng, 4, width)
    weights = {"W": plain["W"].T[None].copy(), "R": plain["R"].T[None].copy()}
    weights["B"] = np.concatenate([plain["bias"], np.zeros(4 * width, np.float32)])[None]
    outputs = ["y" if "y" in more else "", "h2", "c2"]
    node = helper.make_node("LSTM", ["X", "W", "R", "B", "", "h", "c"], outputs, hidden_size=width)
    value, float32 = helper.make_tensor_value_info, TensorProto.FLOAT
    state = [1, 1, width]
    inputs = [value(name, float32, state) for name in ("X", "h", "c")]
    results = [value(name, float32, [1, *state] if name == "y" else state) for name in outputs if name]
    graph = helper.make_graph([node], "g", inputs, results, [numpy_helper.from_array(w, n) for n, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), {name: uniform(rng, *state) for name in ("X", "h", "c")}, plain


STEPS = 100  # in a call of what is written in C++, or in C


def step_runs(width: int) -> dict[str, engines.Run]:
    """One step each, but for those from C and in C++."""
    data, feeds, plain = step_model(width)
    runs = {"onnxruntime": engines.bind(engines.open_theirs(data), feeds)}
    runs["run"] = engines.bind(engines.open_ours(data), feeds)
    if not all(np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(*(run() for run in runs.values()), strict=True)):
        print(f"NOT THE SAME RESULTS: a step per call, H={width}")
    streamed, chunk = step_model(width, "y")[0], {"X": feeds["X"]}
    stream = engines.open_ours(streamed).stream(state=STATES)
    runs["push"] = lambda: stream.push(X=feeds["X"])
    if c_stream.LIBRARY.exists():
        from_c = c_stream.CStream(streamed, STATES, chunk)
        runs["push from C"] = lambda: from_c.push(STEPS)
    arrays = [feeds["X"], plain["W"], plain["R"], plain["bias"]]
    runs["C++"] = yardsticks.bind("lstm_step_per_call", (STEPS, width), arrays, [feeds["h"].copy(), feeds["c"].copy()])
    return runs


def bench_steps(options) -> None:
    """Against onnxruntime, whose states go through Python each time; and what is above the hand-written step."""
    print(
        "\n| LSTM, a step per call | onnxruntime us | treadle us | C++ us | onnxruntime / treadle | target | "
        "treadle - C++, us | treadle / C++ |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    for width in (64, 256):
        runs = step_runs(width)
        found = dict(zip(runs, measure.in_turns(list(runs.values()), PAIRS, options.seconds or SECONDS), strict=True))
        us = {name: statistics.median(times) * 1e6 for name, times in found.items()}
        for name in ("push from C", "C++"):
            us[name] = us.get(name, math.nan) / STEPS
        theirs, hand = us["onnxruntime"], us["C++"]
        for name, target in (("run", 6), ("push", 6), ("push from C", 8)):
            ours = us[name]
            record.keep("steps", f"H={width}, {name}", onnxruntime=theirs / 1e6, treadle=ours / 1e6, hand=hand / 1e6)
            cells = [f"H={width}, {name}", f"{theirs:.2f}", f"{ours:.2f}", f"{hand:.2f}", f"{theirs / ours:.1f}"]
            cells += [f"{target if width == 64 else ''}", f"{ours - hand:.2f}", f"{ours / hand:.2f}"]
            print(f"| {' | '.join(cells)} |", flush=True)


def bench_rnn(options) -> None:
    bench_operators(options)
    bench_threads(options)
    bench_half_weights(options)
    bench_steps(options)
    print()
