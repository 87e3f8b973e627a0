"""Nodes between DequantizeLinear and QuantizeLinear compute on bytes: each step as numpy does it in float32."""

import numpy as np
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

F = np.float32
PROTO = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}
SEEDS = pytest.mark.parametrize("seed", range(12))


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], **attributes)


class Chain:
    """Nodes between bytes, and random operands of random types, scales and zero points."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.feeds, self.constants = [], {}, {}

    def kind(self):
        return self.rng.choice([np.uint8, np.int8])

    def bytes(self, kind, shape=()):
        return self.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)

    def operand(self, *shape: int, kind=None, scale=None, zero=None) -> tuple[str, np.ndarray]:
        """The name of dequantised bytes, and the floats."""
        name, kind = f"x{len(self.feeds)}", kind or self.kind()
        scale = F(self.rng.uniform(0.01, 0.1)) if scale is None else scale
        zero = self.bytes(kind) if zero is None else zero
        self.feeds[name] = x = self.bytes(kind, shape)
        self.constants |= {name + "s": scale, name + "z": zero}
        self.nodes.append(node("DequantizeLinear", [name, name + "s", name + "z"], name + "f"))
        return name + "f", (x.astype(np.int32) - int(zero)).astype(F) * scale

    def add(self, op: str, inputs: list[str], **attributes) -> str:
        self.nodes.append(node(op, inputs, f"v{len(self.nodes)}", **attributes))
        return str(self.nodes[-1].output[0])

    def check(self, name: str, value: np.ndarray, scale=None, zero=None) -> None:
        """Checks that the quantised `name` has the levels of `value`, by any way that treadle takes."""
        scale = F(self.rng.uniform(0.02, 0.1)) if scale is None else scale
        zero = self.bytes(self.kind()) if zero is None else zero
        self.constants |= {"ys": scale, "yz": zero}
        self.nodes.append(node("QuantizeLinear", [name, "ys", "yz"], "y"))
        inputs = [helper.make_tensor_value_info(n, PROTO[x.dtype.type], x.shape) for n, x in self.feeds.items()]
        output = helper.make_tensor_value_info("y", PROTO[zero.dtype.type], None)
        tensors = [numpy_helper.from_array(np.asarray(v), n) for n, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, "g", inputs, [output], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        info = np.iinfo(zero.dtype)
        expected = np.clip(np.rint(value.astype(F) / scale) + int(zero), info.min, info.max).astype(zero.dtype)
        for level in ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL"):
            options = treadle.SessionOptions()
            options.graph_optimization_level = getattr(treadle.GraphOptimizationLevel, level)
            session = treadle.InferenceSession(model.SerializeToString(), options)
            found = session.run(None, self.feeds)[0]
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected, err_msg=level)


@SEEDS
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_pairs(op, seed):
    c = Chain(seed)
    left, right = [
        ((150, 130), (150, 130)), ((150, 130), (130,)), ((3, 1, 70, 80), (1, 5, 1, 1)), ((7, 1), (1, 9)), ((), (33,)),
        ((2, 40, 300), ()), ((4, 1), (4, 1200)),
    ][seed % 7]  # fmt: skip
    (a, x), (b, y) = c.operand(*left), c.operand(*right)
    value = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op](x, y)
    name = c.add(op, [a, b])
    if seed % 3 == 1:
        name, value = c.add("Relu", [name]), np.maximum(value, F(0))
    if seed % 3 == 2:
        c.constants |= {"low": F(-1.5), "high": F(0.75)}
        name, value = c.add("Clip", [name, "low", "high"]), np.clip(value, F(-1.5), F(0.75))
    c.check(name, value)


@SEEDS
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_bytes_and_floats(op, seed):
    c = Chain(seed)
    left, right = [
        ((90, 130), (90, 130)),
        ((20, 33), (33,)),
        ((3, 1500), (3, 1)),
        ((1, 9), (40, 1)),
        ((2, 5, 7), (5, 1)),
    ][seed % 5]
    a, x = c.operand(*left)
    f = c.rng.standard_normal(right).astype(F)
    f.flat[:4] = [np.inf, -np.inf, np.nan, 1e30][: f.size]
    c.constants["f"] = f
    function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op]
    with np.errstate(invalid="ignore"):
        value = function(f, x) if seed % 2 else function(x, f)
    value[np.isnan(value)] = F(-1e30)  # NaN becomes the lowest level
    c.check(c.add(op, ["f", a] if seed % 2 else [a, "f"]), value)


def test_pairs_whose_sums_lie_between_two_levels():
    c = Chain(3)
    scale = F(0.037)
    (a, x), (b, y) = (c.operand(200, 200, scale=scale) for _ in range(2))
    c.check(c.add("Add", [a, b]), x + y, scale=2 * scale)


@SEEDS
def test_functions(seed):
    c = Chain(seed)
    a, x = c.operand(*[(33, 40), (5,), (), (2, 3, 500)][seed % 4])
    c.constants |= {"half": F(0.5), "third": np.full((1,), 1 / 3, F)}
    name, value = c.add("Mul", [a, "half"]), x * F(0.5)
    name, value = c.add("Add", [name, "third"]), value + F(1 / 3)
    if seed % 2:
        name, value = c.add("Mul", [name, a]), value * x
        name, value = c.add("Abs", [name]), np.abs(value)
        name, value = c.add("Sqrt", [name]), np.sqrt(value)
    c.check(name, value)


@SEEDS
def test_moves(seed):
    c = Chain(seed)
    kind = c.kind()
    scale, zero = F(0.05), c.bytes(kind)
    same = {"kind": kind, "scale": scale, "zero": zero} if seed % 2 else {}
    (a, x), (b, y) = c.operand(2, 3, 4, **same), c.operand(2, 5, 4, **same)
    name, value = c.add("Concat", [a, b], axis=1), np.concatenate([x, y], 1)
    name, value = c.add("Transpose", [name], perm=[1, 0, 2]), value.transpose(1, 0, 2)
    c.constants |= {
        "shape": np.int64([8, -1]), "starts": np.int64([1]), "ends": np.int64([7]), "axes": np.int64([1]),
        "picks": np.int64([3, 0, 5]),
    }  # fmt: skip
    name, value = c.add("Reshape", [name, "shape"]), value.reshape(8, -1)
    name, value = c.add("Slice", [name, "starts", "ends", "axes"]), value[:, 1:7]
    name, value = c.add("Gather", [name, "picks"]), value[[3, 0, 5]]
    c.check(name, value, scale=scale, zero=zero)


@SEEDS
def test_largest_of_windows(seed):
    c = Chain(seed)
    a, x = c.operand(1, 2, 8, 6)
    name = c.add("MaxPool", [a], kernel_shape=[2, 2], strides=[2, 2])
    c.check(name, x.reshape(1, 2, 4, 2, 3, 2).max((3, 5)))


def test_padding_is_no_level():
    c = Chain(5)
    a, x = c.operand(3, 4, zero=np.uint8(100), kind=np.uint8)
    c.constants["pads"] = np.int64([1, 1, 1, 1])
    c.check(c.add("Pad", [a, "pads"]), np.pad(x, 1))


@pytest.mark.parametrize("scale", [1e-45, 1e30, -0.05])
def test_scales_out_of_the_ordinary(scale):
    c = Chain(6)
    (a, x), (b, y) = (c.operand(3, 400, scale=F(scale)) for _ in range(2))
    c.check(c.add("Add", [a, b]), x + y, scale=F(abs(scale)))
