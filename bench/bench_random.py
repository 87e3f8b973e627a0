"""Random operators: nanoseconds a number of both tiers beside onnxruntime, one thread, in turns. Results cannot be
compared between engines, as nothing but the distribution is promised."""

from __future__ import annotations

import dataclasses
import os
import statistics
from collections.abc import Callable

import engines
import measure
import numpy as np
import onnx

SECONDS = 0.01  # of one measurement of one engine
NUMBERS = 65_536
HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    text: str
    feeds: dict[str, np.ndarray]
    numbers: int
    target: float | None = None  # nanoseconds a number


def drawn(name: str, node: str, made: str, target: float | None = None, **feeds: np.ndarray) -> Row:
    """One node that makes NUMBERS elements, as the type `made`."""
    types = {"float32": "float", "bool": "bool"}
    inputs = ", ".join(f"{types[str(v.dtype)]}{list(v.shape) or ''} {k}" for k, v in feeds.items())
    return Row(name, f"{HEAD} g ({inputs}) => ({made} y) {{ y = {node} }}", feeds, NUMBERS, target)


def in_loop(operator: str, width: int, target: float | None = None) -> Row:
    """A walk: each iteration adds `width` numbers to the state."""
    iterations = max(NUMBERS // width, 2000)
    vector = f"float[{width}]"
    text = f"""{HEAD} g (int64 iterations, {vector} x) => ({vector} y) {{
      y = Loop <body = b (int64 i, bool go, {vector} s) => (bool on, {vector} s2) {{
        on = Identity(go)
        z = {operator} <shape = [{width}]> ()
        s2 = Add(s, z) }}> (iterations, , x) }}"""
    feeds = {"iterations": np.array(iterations), "x": np.zeros(width, np.float32)}
    return Row(f"{operator} in a Loop, {width} an iteration", text, feeds, iterations * width, target)


def rows() -> list[Row]:
    shape = f"shape = [{NUMBERS}]"
    x, few = np.full(NUMBERS, 0.3, np.float32), np.zeros((1, 8), np.float32)
    training = {"x": x, "ratio": np.array(0.3, np.float32), "training": np.array(True)}
    floats, doubles = f"float[{NUMBERS}]", f"double[{NUMBERS}]"
    return [
        drawn("RandomUniform float32", f"RandomUniform <{shape}> ()", floats, 1.5),
        drawn("RandomNormal float32", f"RandomNormal <{shape}> ()", floats, 4),
        drawn("RandomUniform float64", f"RandomUniform <{shape}, dtype = 11> ()", doubles),
        drawn("RandomNormal float64", f"RandomNormal <{shape}, dtype = 11> ()", doubles),
        drawn("RandomNormalLike float32", "RandomNormalLike (x)", floats, 4, x=x),
        drawn("Bernoulli float32", "Bernoulli (x)", floats, x=x),
        drawn("Dropout in training, float32", "Dropout (x, ratio, training)", floats, **training),
        drawn("Multinomial, 8 classes", f"Multinomial <sample_size = {NUMBERS}> (x)", f"int32[1, {NUMBERS}]", x=few),
        in_loop("RandomUniform", 1024, 1.5),
        in_loop("RandomNormal", 1024, 4),
        in_loop("RandomUniform", 1),
        in_loop("RandomNormal", 1),
    ]


def measure_row(row: Row, rounds: int, seconds: float) -> list[float]:
    """Nanoseconds a number of onnxruntime, the program and native code."""
    data = onnx.parser.parse_model(row.text).SerializeToString()
    opened: list[Callable] = [engines.open_theirs, engines.open_ours, engines.open_native]
    runs = [engines.bind(open_one(data), row.feeds) for open_one in opened]
    times = measure.in_turns(runs, rounds, seconds)
    return [statistics.median(taken) / row.numbers * 1e9 for taken in times]


def bench_random(options) -> None:
    print(f"\nInstruction set: {os.environ.get('TREADLE_ISA', 'the widest of this machine')}.\n")
    print("| ns a number | onnxruntime | program | native | onnxruntime / native | target | |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows():
        if options.match not in row.name:
            continue
        theirs, program, native = measure_row(row, options.rounds, options.seconds or SECONDS)
        verdict = "" if row.target is None else "ok" if max(program, native) <= row.target else "missed"
        cells = [row.name, f"{theirs:.2f}", f"{program:.2f}", f"{native:.2f}", f"{theirs / native:.1f}"]
        cells += [f"{row.target or ''}", verdict]
        print(f"| {' | '.join(cells)} |", flush=True)
    print()
