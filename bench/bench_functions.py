"""Functions of float32, one core, beside onnxruntime: time of an element, and errors in units in the last place.

Errors are those of one float32 in so many from the smallest number on, both signs, against float64. TREADLE_ISA picks the instruction set; onnxruntime takes the widest that it knows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import engines
import measure
import numpy as np
import record
from onnx import TensorProto, helper

ELEMENTS = 98_304
EVERY = 4_001  # one number in so many
Function = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Case:
    op: str
    exact: Function  # in float64
    least: float = -math.inf  # of the numbers whose errors are counted
    most: float = math.inf


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


CASES = (
    Case("Exp", np.exp, -103.0, 88.0),
    Case("Log", np.log, 0.0),
    Case("Tanh", np.tanh),
    Case("Sigmoid", sigmoid, -103.0),
    Case("Erf", erf),
    Case("Gelu", lambda x: 0.5 * x * np.vectorize(math.erfc, otypes=[np.float64])(-x / math.sqrt(2.0)), -3.0),
    Case("Softplus", lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))), -80.0),
    Case("Elu", np.expm1, -math.inf, 0.0),
    Case("Sin", np.sin, -1000.0, 1000.0),
    Case("Cos", np.cos, -1000.0, 1000.0),
    Case("Tan", np.tan, -1000.0, 1000.0),
    Case("Atan", np.arctan),
    Case("Asin", np.arcsin, -1.0, 1.0),
    Case("Acos", np.arccos, -1.0, 1.0),
    Case("Sinh", np.sinh, -89.0, 89.0),
    Case("Cosh", np.cosh, -89.0, 89.0),
)


def model(op: str) -> bytes:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], op, values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return bytes(made.SerializeToString())


def numbers(case: Case) -> np.ndarray:
    """Every so manyth float32 that the case counts."""
    positive = np.arange(1, 0x7F800000, EVERY, dtype=np.uint32)
    x = np.concatenate([positive, positive | np.uint32(1 << 31)]).view(np.float32)
    return x[(x >= case.least) & (x <= case.most)]


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors in units in the last place of float32 at the exact values; subnormal ones have that of the smallest."""
    _, exponent = np.frexp(exact)
    return np.abs(got.astype(np.float64) - exact) / np.ldexp(1.0, np.maximum(exponent - 24, -149))


def bench_functions(options) -> None:
    print("\n| function | ns | onnxruntime | ratio | largest error, ulp | onnxruntime | mean | onnxruntime |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    x = (np.random.default_rng(0).standard_normal(ELEMENTS) * 2).astype(np.float32)
    for case in CASES:
        if options.match not in case.op:
            continue
        data = model(case.op)
        sessions = [engines.open_ours(data), engines.open_theirs(data)]
        feed = {"x": np.abs(x) if case.least == 0 else x}
        runs = [engines.bind(session, feed) for session in sessions]
        times = measure.in_turns(runs, options.rounds, options.seconds or 0.02)
        counted = numbers(case)
        exact = case.exact(counted.astype(np.float64))
        errors = [ulps(session.run(None, {"x": counted})[0], exact) for session in sessions]
        ours, theirs = (f"{min(t) / ELEMENTS * 1e9:.2f}" for t in times)
        largest, mean = ([f"{of(e):.2f}" for e in errors] for of in (np.max, np.mean))
        ratio = measure.ratio(times[1], times[0])
        record.keep("functions", case.op, treadle=min(times[0]) / ELEMENTS, onnxruntime=min(times[1]) / ELEMENTS,
                    error=[float(f"{np.max(e):.2g}") for e in errors])  # fmt: skip
        print(f"| {' | '.join([case.op, ours, theirs, str(ratio), *largest, *mean])} |", flush=True)
