"""Products and convolutions of bytes, one core: billions of operations a second beside onnxruntime and the machine's roof.

TREADLE_ISA picks the instruction set; onnxruntime takes the widest that it knows. The roof is that of the instructions
which treadle takes: those for neural networks with AVX-512, three of AVX2 without.
"""

from __future__ import annotations

import dataclasses
import functools
import os

import engines
import measure
import numpy as np
import quantized
import yardsticks
from onnx import TensorProto, helper
from quantized import encode, levels, node

ROWS = (1, 4, 16, 64, 128)
SIZES = (256, 768)
F = np.float32


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    model: bytes
    feed: np.ndarray
    operations: float


@functools.cache
def roof() -> float:
    """Operations a second."""
    narrow = os.environ.get("TREADLE_ISA") in ("baseline", "avx2")
    quads = 0.0 if narrow else max(yardsticks.number("byte_product_rate", 1, 100_000) for _ in range(20))
    return quads or max(yardsticks.number("byte_product_rate", 0, 100_000) for _ in range(20))


def integer(kind: type, rows: int, size: int) -> Case:
    x = np.random.default_rng(1).integers(0, 255, (rows, size)).astype(np.uint8).view(kind)
    constants = {"w": levels((size, size)), "zero": kind(3)}
    model = encode([node("MatMulInteger", ["x", "w", "zero"], "y")], {"x": x}, TensorProto.INT32, constants)
    return Case(f"MatMulInteger {kind.__name__} x int8", model, x, 2 * rows * size**2)


def linear(rows: int, size: int) -> Case:
    x = np.random.default_rng(1).integers(0, 255, (rows, size)).astype(np.uint8)
    constants = {
        "xs": F(0.02), "xz": np.uint8(3), "w": levels((size, size)), "ws": F(0.01), "wz": np.int8(0),
        "ys": F(0.3), "yz": np.uint8(7),
    }  # fmt: skip
    model = encode([node("QLinearMatMul", ["x", *constants], "y")], {"x": x}, TensorProto.UINT8, constants)
    return Case("QLinearMatMul", model, x, 2 * rows * size**2)


def dynamic(rows: int, size: int) -> Case:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((rows, size)).astype(F)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"]),
        node("MatMulInteger", ["q", "w", "qz"], "sums"),
        node("Cast", ["sums"], "floats", to=TensorProto.FLOAT),
        node("Mul", ["qs", "ws"], "scale"),
        node("Mul", ["floats", "scale"], "scaled"),
        node("Add", ["scaled", "bias"], "y"),
    ]
    constants = {"w": levels((size, size)), "ws": F(0.01), "bias": rng.standard_normal(size).astype(F)}
    return Case("dynamically quantised", encode(nodes, {"x": x}, TensorProto.FLOAT, constants), x, 2 * rows * size**2)


def between_floats(nodes: list, x: np.ndarray, constants: dict[str, object]) -> bytes:
    """`nodes` make "v" of "a" and "w", the dequantised x and weights."""
    constants |= {"xs": F(0.02), "z": np.uint8(128), "ws": F(0.01), "ys": F(0.3)}
    around = [
        node("QuantizeLinear", ["x", "xs", "z"], "q"),
        node("DequantizeLinear", ["q", "xs", "z"], "a"),
        node("DequantizeLinear", ["bytes", "ws"], "w"),
        *nodes,
        node("QuantizeLinear", ["v", "ys", "z"], "u"),
        node("DequantizeLinear", ["u", "ys", "z"], "y"),
    ]
    return encode(around, {"x": x}, TensorProto.FLOAT, constants)


def pairs(rows: int, size: int) -> Case:
    x = np.random.default_rng(1).standard_normal((rows, size)).astype(F)
    model = between_floats([node("MatMul", ["a", "w"], "v")], x, {"bytes": levels((size, size))})
    return Case("QDQ MatMul", model, x, 2 * rows * size**2)


def convolution(name: str, channels: tuple[int, int], kernel: int, plane: int, stride: int = 1, group: int = 1) -> Case:
    x = np.random.default_rng(1).standard_normal((1, channels[0], plane, plane)).astype(F)
    filters = levels((channels[1], channels[0] // group, kernel, kernel))
    attributes = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": group}
    nodes = [node("Conv", ["a", "w"], "v", **attributes)]
    out = (plane + 2 * (kernel // 2) - kernel) // stride + 1
    return Case(f"QDQ Conv {name}", between_floats(nodes, x, {"bytes": filters}), x, 2 * filters.size * out**2)


CONVOLUTIONS = (
    ("3x3 64 @56", (64, 64), 3, 56),
    ("3x3 128 @28", (128, 128), 3, 28),
    ("3x3 256 @14", (256, 256), 3, 14),
    ("1x1 256 @14", (256, 256), 1, 14),
    ("1x1 64-256 @56", (64, 256), 1, 56),
    ("3x3 stride 2 64-128 @56", (64, 128), 3, 56, 2),
    ("7x7 stride 2 3-64 @112", (3, 64), 7, 112, 2),
    ("depthwise 3x3 32 @112", (32, 32), 3, 112, 1, 32),
)
PRODUCTS = (functools.partial(integer, np.uint8), functools.partial(integer, np.int8), linear, dynamic, pairs)


def times_of(model: bytes, feeds: dict[str, np.ndarray], options) -> list[list[float]]:
    """Seconds of treadle's runs and of onnxruntime's."""
    runs = [engines.bind(opened(model), feeds) for opened in (engines.open_ours, engines.open_theirs)]
    return measure.in_turns(runs, options.rounds, options.seconds or 0.005)


def figures(case: Case, options) -> str:
    ours, theirs = times_of(case.model, {"x": case.feed}, options)
    rate = case.operations / min(ours)
    speeds = f"{rate / 1e9:.0f} / {case.operations / min(theirs) / 1e9:.0f}"
    return f"{speeds} ({min(theirs) / min(ours):.2f}, {rate / roof():.0%})"


def bench_products8(options) -> None:
    print(f"\nroof: {roof() / 1e9:.0f} billions of operations a second")
    print("\n| product | N = K |" + "".join(f" M = {m} |" for m in ROWS))
    print("| --- |" + " --- |" * (len(ROWS) + 1))
    for make in PRODUCTS:
        for size in SIZES:
            cases = [make(m, size) for m in ROWS]
            if options.match not in cases[0].name:
                continue
            print(f"| {cases[0].name} | {size} | {' | '.join(figures(c, options) for c in cases)} |", flush=True)
    print("\n| convolution |  |")
    print("| --- | --- |")
    for shape in CONVOLUTIONS:
        case = convolution(*shape)
        if options.match in case.name:
            print(f"| {case.name} | {figures(case, options)} |", flush=True)
    print("\n| model | treadle: us | onnxruntime | ratio |")
    print("| --- | --- | --- | --- |")
    for model in quantized.models():
        if options.match in model.name:
            ours, theirs = (min(times) * 1e6 for times in times_of(model.data, model.feeds, options))
            print(f"| {model.name} | {ours:.1f} | {theirs:.1f} | {theirs / ours:.2f} |", flush=True)
