"""Convolutions of bytes beside exact sums in numpy: types with a sign and without, zero points for each channel, weights that
do not fit 16 bits in pairs, groups, few channels and many; and their quantised results beside onnxruntime's."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

SEEDS = range(80)
CHANNELS = [1, 2, 3, 4, 6, 7, 8, 12, 16, 17, 31, 32, 48, 64, 70]
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


class Drawn:
    """A convolution of bytes of random sizes, with its attributes."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        rank = int(rng.choice([1, 2, 2, 2, 3]))
        self.groups = int(rng.choice([1, 1, 1, 2, 4]))
        channels, filters = (int(rng.choice(CHANNELS)) * self.groups for _ in range(2))
        if rng.random() < 0.2:  # depthwise
            self.groups, filters = channels, channels * int(rng.integers(1, 3))
        kernel = rng.integers(1, 5 if rank < 3 else 3, rank)
        self.strides, self.dilations = (
            (np.ones(rank, int), np.ones(rank, int))
            if rng.random() < 0.5
            else (rng.integers(1, 4, rank), rng.integers(1, 3, rank))
        )
        sizes = rng.integers(1, (60, 24, 7)[rank - 1], rank)
        self.pads = rng.integers(0, kernel.repeat(2).reshape(rank, 2).T.ravel())
        reach = (kernel - 1) * self.dilations + 1
        self.pads[rank:] += np.maximum(reach - (sizes + self.pads[:rank] + self.pads[rank:]), 0)
        self.x = self.draw(rng, (int(rng.integers(1, 3)), channels, *sizes), wide=True)
        self.w = self.draw(rng, (filters, channels // self.groups, *kernel), wide=rng.random() < 0.5)
        limits = np.iinfo(self.x.dtype)
        zero = rng.integers(limits.min, limits.max + 1) if rng.random() < 0.7 else 0
        self.x_zero = self.x.dtype.type(zero)
        self.rng = rng

    @staticmethod
    def draw(rng: np.random.Generator, shape: tuple, wide: bool) -> np.ndarray:
        kind = rng.choice([np.uint8, np.int8])
        centre = 128 if kind is np.uint8 else 0
        if wide:
            return (rng.integers(-128, 128, shape) + centre).astype(kind)
        return np.asarray(np.clip(np.rint(rng.standard_normal(shape) * 25), -127, 127) + centre).astype(kind)

    def zeros_of_weights(self, per_channel: bool) -> np.ndarray:
        shape = (self.w.shape[0],) if per_channel else ()
        return (self.rng.integers(-3, 4, shape) + (128 if self.w.dtype == np.uint8 else 0)).astype(self.w.dtype)

    def attributes(self) -> dict:
        names = ("strides", "dilations", "pads")
        return {"group": self.groups, **{n: getattr(self, n).tolist() for n in names}}

    def sums(self, w_zero: np.ndarray) -> np.ndarray:
        rank = len(self.strides)
        x = self.x.astype(np.int64) - int(self.x_zero)
        w = self.w.astype(np.int64) - w_zero.astype(np.int64).reshape(-1, *[1] * (self.w.ndim - 1))
        x = np.pad(x, [(0, 0), (0, 0), *zip(self.pads[:rank], self.pads[rank:], strict=True)])
        kernel = self.w.shape[2:]
        out = [(n - (k - 1) * d - 1) // s + 1
               for n, k, d, s in zip(x.shape[2:], kernel, self.dilations, self.strides, strict=True)]  # fmt: skip
        y = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
        inside, outside = w.shape[1], w.shape[0] // self.groups
        for group in range(self.groups):
            part = x[:, group * inside : (group + 1) * inside]
            filters = slice(group * outside, (group + 1) * outside)
            for tap in itertools.product(*map(range, kernel)):
                window = tuple(
                    slice(t * d, t * d + (n - 1) * s + 1, s)
                    for t, d, n, s in zip(tap, self.dilations, out, self.strides, strict=True)
                )
                y[:, filters] += np.einsum("bi...,oi->bo...", part[(..., *window)], w[filters][(..., *tap)])
        return y


def encode(node: onnx.NodeProto, drawn: Drawn, constants: dict, y_type: int) -> bytes:
    x = helper.make_tensor_value_info("x", TYPES[drawn.x.dtype.type], drawn.x.shape)
    tensors = [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info("y", y_type, None)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return bytes(model.SerializeToString())


def run(model: bytes, feeds: dict, threads: int) -> np.ndarray:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    return treadle.InferenceSession(model, options).run(None, feeds)[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_are_exact(seed):
    drawn = Drawn(seed)
    # Zero points of weights are one in the specification; where there are several, it says nothing of their order.
    w_zero = drawn.zeros_of_weights(per_channel=False) if seed % 2 else np.asarray(drawn.w.dtype.type(0))
    node = helper.make_node("ConvInteger", ["x", "w", "x_zero", "w_zero"], ["y"], **drawn.attributes())
    constants = {"w": drawn.w, "x_zero": drawn.x_zero, "w_zero": w_zero}
    model = encode(node, drawn, constants, TensorProto.INT32)
    ours = run(model, {"x": drawn.x}, threads=1)
    np.testing.assert_array_equal(ours, drawn.sums(w_zero))
    np.testing.assert_array_equal(run(model, {"x": drawn.x}, threads=2), ours)


@pytest.mark.parametrize("seed", SEEDS)
def test_results_are_rounded_to_bytes(seed):
    drawn = Drawn(1000 + seed)
    filters = drawn.w.shape[0]
    w_zero = drawn.zeros_of_weights(per_channel=True)
    bias = drawn.rng.integers(-3000, 3000, filters).astype(np.int32)
    constants = {
        "xs": np.float32(0.02), "xz": drawn.x_zero, "w": drawn.w,
        "ws": drawn.rng.uniform(0.001, 0.02, filters).astype(np.float32), "wz": w_zero,
        "ys": np.float32(0.4), "yz": drawn.x.dtype.type(9), "b": bias,
    }  # fmt: skip
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"], **drawn.attributes())
    model = encode(node, drawn, constants, TYPES[drawn.x.dtype.type])
    ours = run(model, {"x": drawn.x}, threads=1)
    sums = drawn.sums(w_zero) + bias.reshape(-1, *[1] * len(drawn.strides))
    scale = constants["xs"] * constants["ws"].reshape(-1, *[1] * len(drawn.strides)) / constants["ys"]
    limits = np.iinfo(ours.dtype)
    expected = np.clip(np.rint(sums.astype(np.float32) * scale) + 9, limits.min, limits.max)
    np.testing.assert_array_equal(ours, expected.astype(ours.dtype))
    np.testing.assert_array_equal(run(model, {"x": drawn.x}, threads=2), ours)


def test_beside_onnxruntime():
    rng = np.random.default_rng(7)
    x, w = rng.integers(0, 256, (2, 24, 19, 13)).astype(np.uint8), rng.integers(-60, 60, (40, 24, 3, 3)).astype(np.int8)
    constants = {
        "xs": np.float32(0.02), "xz": np.uint8(120), "w": w, "ws": np.float32(0.01), "wz": np.int8(0),
        "ys": np.float32(0.7), "yz": np.uint8(100),
    }  # fmt: skip
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"], pads=[1, 1, 1, 1], strides=[2, 1])
    tensors = [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    values = [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)]
    results = [helper.make_tensor_value_info("y", TensorProto.UINT8, None)]
    graph = helper.make_graph([node], "g", values, results, tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    model = made.SerializeToString()
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    np.testing.assert_array_equal(run(model, {"x": x}, threads=1), theirs)


CLAMPS = {
    "none": ([], -np.inf, np.inf),
    "Relu": ([helper.make_node("Relu", ["v"], ["c"])], 0, np.inf),
    "Clip": ([helper.make_node("Clip", ["v", "low", "high"], ["c"])], -4, 6),
}


@pytest.mark.parametrize("clamp", CLAMPS)
@pytest.mark.parametrize("channels", [(16, 24, 1), (20, 40, 2), (12, 12, 12), (1, 5, 1)], ids=str)
def test_what_stands_between_a_convolution_and_its_quantisation(clamp, channels):
    """Steps between a convolution and its quantisation are rounded as floats."""
    rng = np.random.default_rng(3)
    inside, outside, group = channels
    between, least, most = CLAMPS[clamp]
    x = rng.integers(0, 256, (1, inside, 11, 9)).astype(np.uint8)
    w = rng.integers(-60, 60, (outside, inside // group, 3, 3)).astype(np.int8)
    constants = {
        "xs": np.float32(0.03), "xz": np.uint8(113), "w": w, "ws": rng.uniform(0.001, 0.01, outside).astype(np.float32),
        "wz": np.zeros(outside, np.int8), "ys": np.float32(0.07), "yz": np.uint8(90),
        "b": rng.standard_normal(outside).astype(np.float32), "low": np.float32(-4), "high": np.float32(6),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["f"], axis=0),
        helper.make_node("Conv", ["a", "f", "b"], ["v"], pads=[1, 1, 1, 1], group=group),
        *between,
        helper.make_node("QuantizeLinear", ["c" if between else "v", "ys", "yz"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in (("x", x.shape), ("y", None))]
    tensors = [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    ours = run(made.SerializeToString(), {"x": x}, threads=1).astype(int)
    padded = np.pad(x.astype(np.int64) - 113, [(0, 0), (0, 0), (1, 1), (1, 1)])
    sums = np.zeros((1, outside, 11, 9), np.int64)
    each, made_each = inside // group, outside // group
    for i, j, g in itertools.product(range(3), range(3), range(group)):
        window = padded[:, g * each : (g + 1) * each, i : i + 11, j : j + 9]
        filters = slice(g * made_each, (g + 1) * made_each)
        sums[:, filters] += np.einsum("bihw,oi->bohw", window, w[filters, :, i, j].astype(np.int64))
    scale = (constants["xs"] * constants["ws"]).reshape(-1, 1, 1)
    v = np.clip(sums.astype(np.float32) * scale + constants["b"].reshape(-1, 1, 1), least, most)
    expected = np.clip(np.rint(v.astype(np.float32) / np.float32(0.07)) + 90, 0, 255).astype(int)
    if group < inside:
        np.testing.assert_array_equal(ours, expected)
    else:  # depthwise kernels sum floats
        np.testing.assert_allclose(ours, expected, atol=1)
