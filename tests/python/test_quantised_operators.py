"""Operators on quantised tensors of com.microsoft, and those of ai.onnx that ended with operator set 10, on random
operands against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

OPSETS = {"": 21, "com.microsoft": 1}


def encode(op: str, inputs: list, types: list, domain: str, opsets: dict, **attributes) -> tuple[bytes, dict]:
    """A model of one node, and its feeds; None among `inputs` is left out."""
    fed = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = ["y", "z"][: len(types)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in fed.items()
    ]
    types = [helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in types]
    outputs = [helper.make_tensor_value_info(n, t, None) for n, t in zip(results, types, strict=True)]
    imports = [helper.make_opsetid(d, v) for d, v in opsets.items()]
    graph = helper.make_graph([node], "g", values, outputs)
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString(), fed


def alone(op: str, inputs: list, kind: type, **attributes) -> np.ndarray:
    """treadle's results for one node of com.microsoft."""
    model, fed = encode(op, inputs, [kind], "com.microsoft", OPSETS, **attributes)
    return treadle.InferenceSession(model).run(None, fed)[0]


def both(op: str, inputs: list, types: list, domain: str, opsets: dict, **attributes) -> list[np.ndarray]:
    """onnxruntime's results for one node, then treadle's."""
    model, fed = encode(op, inputs, types, domain, opsets, **attributes)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    reference = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return [*reference.run(None, fed), *treadle.InferenceSession(model).run(None, fed)]


def within_one(expected: np.ndarray, found: np.ndarray) -> None:
    """onnxruntime multiplies by the quotient of scales where treadle divides: a result between two levels is either."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert np.max(np.abs(found.astype(int) - expected.astype(int)), initial=0) <= 1


class Draw:
    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.type = (np.uint8, np.int8)[seed % 2]

    def bytes(self, *shape: int, dtype=None) -> np.ndarray:
        info = np.iinfo(dtype or self.type)
        return self.random.integers(info.min, info.max + 1, shape, dtype=info.dtype)

    def scale(self, *shape: int, low=0.01, high=0.05) -> np.ndarray:
        return self.random.uniform(low, high, shape).astype(np.float32)

    def operand(self, *shape: int) -> list[np.ndarray]:
        return [self.bytes(*shape), self.scale(), self.bytes()]

    def quantised(self, op: str, inputs: list, **attributes) -> None:
        within_one(*both(op, inputs, [self.type], "com.microsoft", OPSETS, **attributes))


SEEDS = pytest.mark.parametrize("seed", range(6))


@SEEDS
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_of_two(op, seed):
    d = Draw(seed)
    shapes = [((3, 4), (3, 4)), ((2, 3, 5), (5,)), ((4, 1), (1, 3))][seed % 3]
    d.quantised(op, [*d.operand(*shapes[0]), *d.operand(*shapes[1]), d.scale(), d.bytes()])


@SEEDS
def test_of_one(seed):
    d = Draw(seed)
    d.quantised("QLinearSigmoid", [*d.operand(3, 7), d.scale(low=0.004, high=0.01), d.bytes()])
    d.quantised("QLinearLeakyRelu", [*d.operand(3, 7), d.scale(), d.bytes()], alpha=0.2)


@SEEDS
def test_softmax(seed):
    d = Draw(seed)
    lowest = np.array(np.iinfo(d.type).min, d.type)
    inputs = [*d.operand(2, 3, 4), np.array(1 / 256, np.float32), lowest]
    d.quantised("QLinearSoftmax", inputs, axis=(-1, 1)[seed % 2], opset=(13, 11)[seed // 2 % 2])


@SEEDS
def test_where_and_concat(seed):
    d = Draw(seed)
    condition = d.random.random((3, 4)) < 0.5
    d.quantised("QLinearWhere", [condition, *d.operand(3, 4), *d.operand(4), d.scale(), d.bytes()])
    d.quantised("QLinearConcat", [d.scale(), d.bytes(), *d.operand(2, 3), *d.operand(2, 5)], axis=1)


@SEEDS
def test_pools(seed):
    d = Draw(seed)
    last = seed // 2 % 2
    shape = (2, 7, 6, 3) if last else (2, 3, 7, 6)
    result = [d.scale(), d.bytes()]
    windows = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    counted = seed % 3 == 0
    d.quantised(
        "QLinearAveragePool",
        [*d.operand(*shape), *result],
        channels_last=last,
        count_include_pad=int(counted),
        **windows,
    )
    d.quantised("QLinearGlobalAveragePool", [*d.operand(*shape), *result], channels_last=last)


@SEEDS
def test_products(seed):
    d = Draw(seed)
    # onnxruntime has no product of signed bytes with unsigned ones.
    right = d.type if seed % 2 else (np.uint8, np.int8)[seed // 2 % 2]
    # Sums of two products that leave 16 bits are wrong in onnxruntime on processors without VNNI.
    middle = 0 if right == np.int8 else 128
    a, b = d.bytes(4, 6), d.random.integers(middle - 64, middle + 64, (6, 5), dtype=right)
    b_scale = d.scale(5) if seed % 3 else d.scale()
    b_zero = d.bytes(*b_scale.shape, dtype=right)
    bias = d.scale(5) if seed % 2 else None
    inputs = [a, b, d.scale(), b_scale, d.bytes(), b_zero, bias]
    expected, found = both("MatMulIntegerToFloat", inputs, [np.float32], "com.microsoft", OPSETS)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    x = d.random.standard_normal((4, 6), np.float32)
    expected, found = both(
        "DynamicQuantizeMatMul", [x, b, b_scale, b_zero, bias], [np.float32], "com.microsoft", OPSETS
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@SEEDS
@pytest.mark.parametrize("keepdims", [0, 1])
def test_means(seed, keepdims):
    """onnxruntime has no kernel for this operator."""
    d = Draw(seed)
    axes = [[1], [0, 2], [-1], [0, 1, 2]][seed % 4]
    inputs = [*d.operand(2, 3, 5), d.scale(low=0.004), d.bytes()]
    if seed >= 4:
        inputs[2] = inputs[4] = None
    zeros = [0 if z is None else int(z) for z in (inputs[2], inputs[4])]
    mean = ((inputs[0].astype(np.float32) - zeros[0]) * inputs[1]).mean(tuple(axes), keepdims=bool(keepdims))
    info = np.iinfo(d.type)
    expected = np.clip(np.rint(mean / inputs[3]) + zeros[1], info.min, info.max).astype(d.type)
    within_one(expected, alone("QLinearReduceMean", inputs, d.type, axes=axes, keepdims=keepdims))


@SEEDS
@pytest.mark.parametrize("last", [0, 1])
def test_convolutions(seed, last):
    d = Draw(seed)
    group = (1, 2, 6)[seed % 3]
    weights_type = d.type if d.type == np.int8 else (np.uint8, np.int8)[seed // 2 % 2]
    middle = 0 if weights_type == np.int8 else 128
    # Sums of two products that leave 16 bits are wrong in onnxruntime on processors without VNNI.
    w = d.random.integers(middle - 60, middle + 60, (6, 6 // group, 3, 2), dtype=weights_type)
    w_scale = d.scale(6) if seed % 2 else d.scale()
    w_zero = np.full(w_scale.shape, middle, weights_type)
    bias = d.random.integers(-500, 500, 6, dtype=np.int32) if seed % 3 else None
    x = d.operand(*((2, 7, 9, 6) if last else (2, 6, 7, 9)))
    inputs = [*x, w, w_scale, w_zero, d.scale(low=0.05, high=0.2), d.bytes(), bias]
    windows = {"strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2], "kernel_shape": [3, 2]}
    d.quantised("QLinearConv", inputs, channels_last=last, group=group, **(windows if seed % 2 else {}))


@SEEDS
@pytest.mark.parametrize("quantises", [False, True])
def test_gemm(seed, quantises):
    d = Draw(seed)
    right = d.type if d.type == np.int8 else (np.uint8, np.int8)[seed // 2 % 2]
    middle = 0 if right == np.int8 else 128
    turned = {"transA": seed % 2, "transB": seed // 2 % 2}
    a = d.bytes(*((7, 4) if turned["transA"] else (4, 7)))
    b = d.random.integers(middle - 60, middle + 60, (5, 7) if turned["transB"] else (7, 5), dtype=right)
    b_scale = d.scale(5) if seed % 3 else d.scale()
    b_zero = np.full(b_scale.shape, middle, right)
    bias = d.random.integers(-500, 500, [(5,), (4, 5), (1, 5)][seed % 3], dtype=np.int32) if seed != 4 else None
    inputs = [a, d.scale(), d.bytes(), b, b_scale, b_zero, bias]
    attributes = {**turned, "alpha": (1.0, 0.5)[seed % 2]}
    if quantises:
        d.quantised("QGemm", [*inputs, d.scale(low=0.05, high=0.2), d.bytes()], **attributes)
    else:
        expected, found = both("QGemm", inputs, [np.float32], "com.microsoft", OPSETS, **attributes)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@SEEDS
def test_attention(seed):
    d = Draw(2 * seed)  # onnxruntime takes unsigned inputs alone
    batch, length, size, heads, past = 2, 5, 8, 2, 3
    kind = (np.uint8, np.int8)[seed % 2]
    middle = 0 if kind == np.int8 else 128
    w = d.random.integers(middle - 60, middle + 60, (size, 3 * size), dtype=kind)
    w_scale = d.scale(3 * size) if seed % 3 == 1 else d.scale()
    w_zero = np.full(w_scale.shape if w_scale.shape else (), middle, kind)
    masks = [None, d.random.integers(1, length + 1, batch), d.random.integers(0, 2, (batch, length))]
    mask = None if seed >= 3 else masks[seed]
    inputs = [
        d.bytes(batch, length, size, dtype=np.uint8),
        w,
        d.random.standard_normal(3 * size, np.float32),
        d.scale(),
        w_scale,
        None if mask is None else mask.astype(np.int32),
        d.bytes(dtype=np.uint8),
        w_zero,
    ]
    if seed >= 4:
        inputs.append(d.random.standard_normal((2, batch, heads, past, size // heads), np.float32))
    attributes = {"num_heads": heads, "unidirectional": seed // 2 % 2}
    types = [np.float32] * (2 if seed >= 4 else 1)
    results = both("QAttention", inputs, types, "com.microsoft", OPSETS, **attributes)
    for expected, found in zip(results[: len(types)], results[len(types) :], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("a_type", "b_type"), [(a, b) for a in (np.int16, np.uint16) for b in (np.int16, np.uint16)])
def test_products_of_words(a_type, b_type):
    d = Draw(3)
    a, b = d.bytes(2, 3, 6, dtype=a_type), d.bytes(6, 4, dtype=b_type)
    both_unsigned = a_type == b_type == np.uint16
    sums = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.uint32 if both_unsigned else np.int32)
    np.testing.assert_array_equal(alone("MatMulInteger16", [a, b], sums.dtype), sums)
    if a_type == b_type == np.int16:
        expected, found = both("MatMulInteger16", [a, b], [np.int32], "com.microsoft", OPSETS)
        np.testing.assert_array_equal(found, expected)


@SEEDS
def test_integers(seed):
    """onnxruntime has no kernels for these two."""
    d = Draw(seed)
    a, b = d.bytes(3, 1, 4), d.bytes(2, 4)
    zeros = [d.bytes() if seed % 3 else None, d.bytes() if seed % 2 else None]
    product = (a.astype(np.int32) - int(zeros[0] or 0)) * (b.astype(np.int32) - int(zeros[1] or 0))
    np.testing.assert_array_equal(alone("MulInteger", [a, zeros[0], b, zeros[1]], np.int32), product)
    axes, keeps = [[0], [1, 2], [-1]][seed % 3], seed // 2 % 2
    x = d.bytes(3, 4, 50)
    sums = x.astype(np.int64).sum(tuple(axes), keepdims=bool(keeps))
    kind = np.int32 if d.type == np.int8 else np.uint32
    np.testing.assert_array_equal(alone("ReduceSumInteger", [x], kind, axes=axes, keepdims=keeps), sums.astype(kind))


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_scales_of_four_bits(kind, axis):
    """As onnxruntime's operators of ai.onnx, whose formulas are the same; numpy has no elements of four bits."""
    d = Draw(1)
    x = d.random.standard_normal((3, 5), np.float32)
    shape = () if axis is None else (x.shape[axis],)
    low, high = (-8, 8) if kind == TensorProto.INT4 else (0, 16)
    zero = d.random.integers(low, high, shape)
    tensors = [
        numpy_helper.from_array(d.scale(*shape, low=0.1, high=0.3), "scale"),
        helper.make_tensor("zero", kind, list(shape), zero.ravel().tolist()),
    ]
    named = {} if axis is None else {"axis": axis}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], domain="com.microsoft", **named),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], domain="com.microsoft", **named),
    ]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n in "xy"]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], tensors)
    imports = [helper.make_opsetid(d, v) for d, v in OPSETS.items()]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()
    scale = numpy_helper.to_array(tensors[0])
    along = (slice(None), None) if axis == 0 else (Ellipsis,)
    levels = np.clip(np.rint(x / scale[along]) + zero[along], low, high - 1)
    expected = (levels - zero[along]).astype(np.float32) * scale[along]
    np.testing.assert_array_equal(treadle.InferenceSession(model).run(None, {"x": x})[0], expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_scales(dtype, axis):
    d = Draw(0)
    x = d.random.standard_normal((3, 4), np.float32)
    shape = () if axis is None else (x.shape[axis],)
    scale, zero = d.scale(*shape), d.bytes(*shape, dtype=dtype)
    named = {} if axis is None else {"axis": axis}
    expected, found = both("QuantizeLinear", [x, scale, zero], [dtype], "com.microsoft", OPSETS, **named)
    np.testing.assert_array_equal(found, expected)
    inputs = [d.bytes(3, 4, dtype=dtype), scale, zero]
    expected, found = both("DequantizeLinear", inputs, [np.float32], "com.microsoft", OPSETS, **named)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# ---- experiments

EARLY = {"": 8}
IMAGE = np.random.default_rng(1).standard_normal((2, 3, 6, 7), np.float32)
EXPERIMENTS = [
    ("Affine", [IMAGE], {"alpha": 1.5, "beta": -0.5}),
    ("Affine", [IMAGE], {}),
    ("Scale", [IMAGE], {"scale": 2.5}),
    ("ParametricSoftplus", [IMAGE], {"alpha": 1.5, "beta": 0.7}),
    ("ScaledTanh", [IMAGE], {"alpha": 1.5, "beta": 0.7}),
    ("ThresholdedRelu", [IMAGE], {"alpha": 0.3}),
    ("ImageScaler", [IMAGE], {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}),
    ("Crop", [IMAGE], {"border": [1, 2, 3, 1]}),
    ("Crop", [IMAGE], {"border": [0, 0, 0, 0]}),
    ("Crop", [IMAGE], {"border": [1, 2, 3, 1], "scale": [2, 4]}),
    ("DynamicSlice", [IMAGE, np.int64([1, -3]), np.int64([2, 100])], {}),
    ("DynamicSlice", [IMAGE, np.int32([1, -3]), np.int32([2, -1]), np.int32([1, -1])], {}),
    *[
        ("MeanVarianceNormalization", [IMAGE], {"across_channels": across, "normalize_variance": variance})
        for across in (0, 1)
        for variance in (0, 1)
    ],
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), EXPERIMENTS)
def test_experiments(op, inputs, attributes):
    expected, found = both(op, inputs, [np.float32], "", EARLY, **attributes)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_experiments_ended_with_operator_set_10():
    text = '<ir_version: 8, opset_import: ["" : 10]> g (float[n] x) => (float[n] y) { y = Affine(x) }'
    with pytest.raises(Exception, match="Affine"):
        treadle.InferenceSession(text.encode())
