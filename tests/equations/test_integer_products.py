"""Products of bytes with their scales, biases and quantisation: exact sums, then each float step as the nodes say."""

import numpy as np
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

F = np.float32
PROTO = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8, np.float32: TensorProto.FLOAT}
BYTES = (np.uint8, np.int8)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], **attributes)


def model(nodes, x, y_type, constants):
    inputs = [helper.make_tensor_value_info("x", PROTO[x.dtype.type], list(x.shape))]
    outputs = [helper.make_tensor_value_info("y", PROTO[y_type], None)]
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def run(data, x, optimised=True):
    options = treadle.SessionOptions()
    if not optimised:
        options.graph_optimization_level = treadle.GraphOptimizationLevel.ORT_DISABLE_ALL
    return treadle.InferenceSession(data, options).run(None, {"x": x})[0]


def random_bytes(rng, kind, shape):
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max + 1, shape).astype(kind)


def weights(rng, kind, shape, spread):
    """`spread` of trained weights; 0: the largest there are, side by side."""
    centred = np.full(shape, -128) if spread == 0 else np.clip(np.rint(rng.standard_normal(shape) * spread), -128, 127)
    return (centred + (0 if kind == np.int8 else 128)).astype(kind)


def quantised(value, scale, zero):
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(value / scale) + F(zero), info.min, info.max).astype(zero.dtype)


@pytest.mark.parametrize("spread", [0, 20, 40, 80])
@pytest.mark.parametrize("b_type", BYTES)
@pytest.mark.parametrize("a_type", BYTES)
def test_dynamic_chain(a_type, b_type, spread):
    """MatMulInteger -> Cast -> Mul -> Add -> QuantizeLinear keeps every bit."""
    rng = np.random.default_rng(spread)
    for per_column, with_bias, quantises in np.ndindex(2, 2, 2):
        m, k, n = (int(v) for v in rng.integers(1, 90, 3))
        a, b = random_bytes(rng, a_type, (m, k)), weights(rng, b_type, (k, n), spread)
        constants = {
            "b": b, "az": random_bytes(rng, a_type, ()), "bz": random_bytes(rng, b_type, (n,) if per_column else ()),
            "s": rng.uniform(1e-4, 1e-3, (n,) if per_column else ()).astype(F), "bias": rng.standard_normal(n).astype(F),
            "ys": F(0.037), "yz": np.int8(3),
        }  # fmt: skip
        nodes = [
            node("MatMulInteger", ["x", "b", "az", "bz"], "i"),
            node("Cast", ["i"], "f", to=1),
            node("Mul", ["f", "s"], "v"),
            node("Add", ["v", "bias"], "w") if with_bias else node("Identity", ["v"], "w"),
            node("QuantizeLinear", ["w", "ys", "yz"], "y") if quantises else node("Identity", ["w"], "y"),
        ]
        data = model(nodes, a, np.int8 if quantises else np.float32, constants)
        sums = (a.astype(np.int64) - int(constants["az"])) @ (b.astype(np.int64) - constants["bz"].astype(np.int64))
        expected = sums.astype(F) * constants["s"]
        if with_bias:
            expected = expected + constants["bias"]
        if quantises:
            expected = quantised(expected, constants["ys"], constants["yz"])
        for optimised in (True, False):
            np.testing.assert_array_equal(run(data, a, optimised), expected)


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("y_type", BYTES)
@pytest.mark.parametrize("b_type", BYTES)
@pytest.mark.parametrize("a_type", BYTES)
def test_qlinear_matmul(a_type, b_type, y_type, per_column):
    rng = np.random.default_rng(5)
    for shape in ((7, 33), (2, 3, 5, 18), (1, 64), (29,)):
        k, n = shape[-1], int(rng.integers(2, 70))
        a, b = random_bytes(rng, a_type, shape), weights(rng, b_type, (k, n), 33)
        each = (n,) if per_column else ()
        constants = {
            "as": F(0.013), "az": random_bytes(rng, a_type, ()), "b": b, "bs": rng.uniform(0.01, 0.02, each).astype(F),
            "bz": random_bytes(rng, b_type, each), "ys": F(0.21), "yz": random_bytes(rng, y_type, ()),
        }  # fmt: skip
        data = model([node("QLinearMatMul", ["x", *constants], "y")], a, y_type, constants)
        sums = (a.astype(np.int64) - int(constants["az"])) @ (b.astype(np.int64) - constants["bz"].astype(np.int64))
        expected = quantised(sums.astype(F) * (constants["as"] * constants["bs"]), constants["ys"], constants["yz"])
        for optimised in (True, False):
            np.testing.assert_array_equal(run(data, a, optimised), expected)


def qdq(shape, nodes, constants, x_type):
    """x is quantised, `nodes` read "a" and "w" as floats and give "v", which is quantised and dequantised."""
    return [
        node("QuantizeLinear", ["x", "xs", "xz"], "q"),
        node("DequantizeLinear", ["q", "xs", "xz"], "a"),
        *nodes,
        node("QuantizeLinear", ["v", "ys", "yz"], "u"),
        node("DequantizeLinear", ["u", "ys", "yz"], "y"),
    ]


@pytest.mark.parametrize("op", ["MatMul", "MatMulAdd", "Gemm", "GemmTransposed"])
@pytest.mark.parametrize("b_type", BYTES)
@pytest.mark.parametrize("a_type", BYTES)
def test_qdq_products(a_type, b_type, op):
    rng = np.random.default_rng(7)
    for per_column in (False, True):
        m, k, n = 5, 61, 37
        x = rng.standard_normal((m, k)).astype(F)
        turned = op == "GemmTransposed"
        w = weights(rng, b_type, (k, n), 35)
        each = (n,) if per_column else ()
        axis = {"axis": 0 if turned else 1} if per_column else {}
        constants = {
            "xs": F(0.02), "xz": random_bytes(rng, a_type, ()), "w8": w.T.copy() if turned else w,
            "ws": rng.uniform(0.01, 0.02, each).astype(F), "wz": np.zeros(each, b_type), "ys": F(0.11), "yz": np.uint8(120),
            "b32": rng.integers(-2000, 2000, n).astype(np.int32), "bs": F(0.0003), "bias": rng.standard_normal(n).astype(F),
        }  # fmt: skip
        nodes = [node("DequantizeLinear", ["w8", "ws", "wz"], "w", **axis)]
        bias = 0
        if op == "MatMul":
            nodes.append(node("MatMul", ["a", "w"], "v"))
        elif op == "MatMulAdd":
            nodes += [node("MatMul", ["a", "w"], "p"), node("Add", ["bias", "p"], "v")]
            bias = constants["bias"]
        else:
            nodes.append(node("DequantizeLinear", ["b32", "bs"], "b"))
            nodes.append(node("Gemm", ["a", "w", "b"], "v", transB=int(turned)))
            bias = constants["b32"].astype(F) * constants["bs"]
        data = model(qdq(x.shape, nodes, constants, a_type), x, np.float32, constants)
        q = quantised(x, constants["xs"], constants["xz"])
        sums = (q.astype(np.int64) - int(constants["xz"])) @ w.astype(np.int64)
        value = sums.astype(F) * (constants["xs"] * constants["ws"]) + F(bias)
        expected = (quantised(value, constants["ys"], constants["yz"]).astype(F) - 120) * constants["ys"]
        got = run(data, x)
        np.testing.assert_array_equal(got, expected)
        assert np.abs(run(data, x, optimised=False) - got).max() <= constants["ys"] * 1.01


@pytest.mark.parametrize("shape", [
    ((1, 5, 9, 11), (7, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 8, 6, 7), (20, 8, 1, 1), {}),
    ((2, 8, 6, 7), (20, 8, 1, 1), {"strides": [2, 2]}),
    ((1, 12, 8, 8), (12, 1, 3, 3), {"group": 12, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((3, 4, 17), (6, 2, 5), {"group": 2, "pads": [2, 2], "dilations": [2]}),
    ((1, 8, 8, 8), (32, 2, 3, 3), {"group": 4, "pads": [1, 1, 1, 1], "strides": [3, 2]}),
    ((1, 33, 40, 40), (40, 33, 3, 3), {"pads": [0, 1, 2, 1]}),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("w_type", BYTES)
@pytest.mark.parametrize("x_type", BYTES)
def test_qdq_conv(x_type, w_type, shape):
    rng = np.random.default_rng(9)
    x_shape, w_shape, attributes = shape
    for per_channel, quantises in np.ndindex(2, 2):
        x = rng.standard_normal(x_shape).astype(F)
        w = weights(rng, w_type, w_shape, 35)
        channels = w_shape[0]
        each = (channels,) if per_channel else ()
        constants = {
            "xs": F(0.02), "xz": random_bytes(rng, x_type, ()), "w8": w,
            "ws": rng.uniform(0.01, 0.02, each).astype(F), "wz": random_bytes(rng, w_type, each),
            "bias": rng.standard_normal(channels).astype(F), "ys": F(0.11), "yz": np.int8(-5),
        }  # fmt: skip
        nodes = [
            node("DequantizeLinear", ["w8", "ws", "wz"], "w", **({"axis": 0} if per_channel else {})),
            node("Conv", ["a", "w", "bias"], "v", **attributes),
        ]
        nodes = qdq(x.shape, nodes, constants, x_type) if quantises else [*qdq(x.shape, nodes, constants, x_type)[:-2],
                                                                          node("Identity", ["v"], "y")]  # fmt: skip
        data = model(nodes, x, np.float32, constants)
        q = quantised(x, constants["xs"], constants["xz"])
        # Sums of integers are exact in float64, in any order.
        whole = q.astype(np.float64) - float(constants["xz"])
        along = (-1,) + (1,) * (len(w_shape) - 1)
        zero = constants["wz"].astype(np.float64).reshape(along if per_channel else ())
        sums = convolve(whole, w.astype(np.float64) - zero, attributes)
        at = (-1,) + (1,) * (len(x_shape) - 2)
        scale = constants["xs"] * constants["ws"]
        value = sums.astype(F) * (scale.reshape(at) if per_channel else scale) + constants["bias"].reshape(at)
        if quantises:
            value = (quantised(value, constants["ys"], constants["yz"]).astype(F) + 5) * constants["ys"]
        exact = channels >= 4 * attributes.get("group", 1)  # depthwise kernels stay those of floats
        tolerance = 1e-3 if not quantises else constants["ys"] * 1.01
        np.testing.assert_allclose(run(data, x), value, rtol=0, atol=0 if exact else tolerance)


def convolve(x, w, attributes):
    inputs = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in ("x", "w")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)]
    graph = helper.make_graph([node("Conv", ["x", "w"], "y", **attributes)], "g", inputs, outputs)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return treadle.InferenceSession(made.SerializeToString()).run(None, {"x": x, "w": w})[0]


def test_sums_that_saturate_elsewhere():
    """255 * 127 + 255 * 127 leaves 16 bits."""
    a, b = np.full((3, 64), 255, np.uint8), np.full((64, 40), 127, np.int8)
    data = model([node("MatMulInteger", ["x", "b"], "i"), node("Cast", ["i"], "y", to=1)], a, np.float32, {"b": b})
    np.testing.assert_array_equal(run(data, a), np.full((3, 40), 255 * 127 * 64, F))
