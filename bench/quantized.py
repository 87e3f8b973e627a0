"""Models of bytes beside the products: convolutions of integers, chains between bytes, recurrences of quantised weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F = np.float32
SPREAD = 25  # of weights, as training leaves them
BYTES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    data: bytes
    feeds: dict[str, np.ndarray]


def levels(shape: tuple[int, ...]) -> np.ndarray:
    return np.clip(np.rint(np.random.default_rng(0).standard_normal(shape) * SPREAD), -127, 127).astype(np.int8)


def encode(nodes: list, feeds: dict[str, np.ndarray], y_type: int, constants: dict[str, object]) -> bytes:
    inputs = [
        helper.make_tensor_value_info(name, BYTES.get(x.dtype.type, TensorProto.FLOAT), x.shape)
        for name, x in feeds.items()
    ]
    outputs = [helper.make_tensor_value_info("y", y_type, None)]
    tensors = [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    graph = helper.make_graph(nodes, "quantized", inputs, outputs, tensors)
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=domains, ir_version=9).SerializeToString())


def node(op: str, inputs: list[str], output: str, **attributes):
    return helper.make_node(op, inputs, [output], **attributes)


def convolutions(name: str, channels: tuple[int, int], kernel: int, plane: int, group: int = 1) -> Iterator[Model]:
    """ConvInteger, QLinearConv, and Conv and Relu between DequantizeLinear and QuantizeLinear."""
    x = np.random.default_rng(1).integers(0, 255, (1, channels[0], plane, plane)).astype(np.uint8)
    w = levels((channels[1], channels[0] // group, kernel, kernel))
    attributes = {"pads": [kernel // 2] * 4, "group": group}
    integer = [node("ConvInteger", ["x", "w", "z"], "y", **attributes)]
    yield Model(
        f"ConvInteger {name}", encode(integer, {"x": x}, TensorProto.INT32, {"w": w, "z": np.uint8(128)}), {"x": x}
    )
    scales = {"xs": F(0.02), "z": np.uint8(128), "ws": F(0.01), "wz": np.int8(0), "ys": F(0.3)}
    linear = [node("QLinearConv", ["x", "xs", "z", "w", "ws", "wz", "ys", "z"], "y", **attributes)]
    yield Model(f"QLinearConv {name}", encode(linear, {"x": x}, TensorProto.UINT8, {**scales, "w": w}), {"x": x})
    rectified = [
        node("DequantizeLinear", ["x", "xs", "z"], "a"),
        node("DequantizeLinear", ["w", "ws", "wz"], "f"),
        node("Conv", ["a", "f"], "v", **attributes),
        node("Relu", ["v"], "r"),
        node("QuantizeLinear", ["r", "ys", "z"], "y"),
    ]
    yield Model(f"QDQ Conv, Relu {name}", encode(rectified, {"x": x}, TensorProto.UINT8, {**scales, "w": w}), {"x": x})


def gemm(rows: int, size: int) -> Model:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 255, (rows, size)).astype(np.uint8)
    nodes = [
        node("DequantizeLinear", ["x", "xs", "z"], "a"),
        node("DequantizeLinear", ["w", "ws"], "f"),
        node("Gemm", ["a", "f", "bias"], "v", transB=1),
        node("QuantizeLinear", ["v", "ys", "z"], "y"),
    ]
    constants = {
        "xs": F(0.02), "z": np.uint8(128), "w": levels((size, size)), "ws": F(0.01), "ys": F(0.3),
        "bias": rng.standard_normal(size).astype(F),
    }  # fmt: skip
    return Model(f"QDQ Gemm {rows} x {size} x {size}", encode(nodes, {"x": x}, TensorProto.UINT8, constants), {"x": x})


def chain(op: str, shape: tuple[int, ...]) -> Model:
    """`op` of dequantised bytes, of two tensors where it takes two, quantised again."""
    rng = np.random.default_rng(1)
    names = ["x"] if op == "Sigmoid" else ["x", "other"]
    feeds = {name: rng.integers(0, 255, shape).astype(np.uint8) for name in names}
    nodes = [node("DequantizeLinear", [name, f"{name}_scale", "z"], f"{name}_float") for name in names]
    attributes = {"axis": 1} if op == "Concat" else {}
    nodes += [
        node(op, [f"{name}_float" for name in names], "v", **attributes),
        node("QuantizeLinear", ["v", "y_scale", "z"], "y"),
    ]
    constants = {"x_scale": F(0.02), "other_scale": F(0.03), "z": np.uint8(128), "y_scale": F(0.05)}
    size = feeds["x"].size
    return Model(f"QDQ {op} of {size} bytes", encode(nodes, feeds, TensorProto.UINT8, constants), feeds)


def lstm(hidden: int, batch: int, steps: int = 24) -> Model:
    x = np.random.default_rng(1).standard_normal((steps, batch, hidden)).astype(F)
    names = ["x", "w", "r", "bias", "", "", "", "", "ws", "wz", "rs", "rz"]
    nodes = [helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=hidden)]
    weights = levels((1, hidden, 4 * hidden))
    constants = {
        "w": weights, "r": weights, "bias": np.zeros((1, 8 * hidden), F), "ws": np.full(1, 0.004, F),
        "wz": np.zeros(1, np.int8), "rs": np.full(1, 0.004, F), "rz": np.zeros(1, np.int8),
    }  # fmt: skip
    data = encode(nodes, {"x": x}, TensorProto.FLOAT, constants)
    return Model(f"DynamicQuantizeLSTM H={hidden} B={batch}", data, {"x": x})


def models() -> Iterator[Model]:
    yield from convolutions("3x3 64 @56", (64, 64), 3, 56)
    yield from convolutions("1x1 64-256 @56", (64, 256), 1, 56)
    yield from convolutions("3x3 32-64 @56, two filters a group", (32, 64), 3, 56, 32)
    yield from convolutions("depthwise 3x3 96 @28", (96, 96), 3, 28, 96)
    yield from (gemm(rows, 768) for rows in (1, 16, 128))
    yield from (chain(op, (1, 64, 56, 56)) for op in ("Add", "Mul", "Sigmoid", "Concat"))
    yield from (lstm(hidden, batch) for hidden in (64, 128, 256) for batch in (1, 8))
