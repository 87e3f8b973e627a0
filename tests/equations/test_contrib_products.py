"""Products and convolutions of com.microsoft with the operations fused into them, against onnxruntime or numpy."""

import numpy as np
import pytest
from contrib import Node, check
from one_node import PROTO, treadle
from onnx import helper, numpy_helper
from test_contrib_norms import BFLOAT, DOUBLE, FLOAT, HALF, draw, maybe, pick, sigmoid, sizes, wide


def stored(rng, shape, transposed, batch):
    """An operand that is read as a stack of matrices of `shape`: its sizes as they are stored."""
    order = list(range(len(shape)))
    if transposed and len(shape) > 1:
        order[-1], order[-2] = order[-2], order[-1]
    if batch and len(shape) > 2:
        order.insert(0, order.pop(-2))
    return tuple(shape[i] for i in order)


def fused_matmul(rng, op="FusedMatMul", activation=None):
    m, k, n = sizes(rng, 3, 9)
    stack = sizes(rng, int(rng.integers(0, 3)), 4)
    trans_a, trans_b = (int(t) for t in rng.integers(0, 2, 2))
    batch_a, batch_b = (int(t) for t in rng.integers(0, 2, 2)) if op != "TransposeMatMul" and stack else (0, 0)
    dtype = pick(rng, FLOAT, FLOAT, HALF, BFLOAT) if op == "FusedMatMul" else FLOAT
    a = draw(rng, stored(rng, (*stack, m, k), trans_a, batch_a), dtype)
    b = draw(rng, stored(rng, (*stack, k, n), trans_b, batch_b), dtype)
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": pick(rng, 1.0, 0.25, -3.0)}
    if op != "TransposeMatMul":
        attributes |= {"transBatchA": batch_a, "transBatchB": batch_b}
    return Node(op, [a, b], [dtype], attributes, symbolic=bool(rng.integers(2)))


def transpose_matmul(rng):
    return fused_matmul(rng, "TransposeMatMul")


def fused_matmul_of_doubles(rng):
    node = fused_matmul(rng)
    node.inputs = [x.astype(np.float64) for x in node.inputs]
    node.outputs = [DOUBLE]
    return node


def vectors(rng):
    k, n = sizes(rng, 2, 9)
    a, b = pick(rng, ((k,), (k, n)), ((n, k), (k,)), ((k,), (k,)))
    return Node("FusedMatMul", [draw(rng, a, FLOAT), draw(rng, b, FLOAT)], [FLOAT], {"alpha": 2.0})


def fused_matmul_activation(rng):
    m, k, n = sizes(rng, 3, 9)
    a, b = draw(rng, (m, k), FLOAT), draw(rng, (n, k), FLOAT)
    y = 0.5 * wide(a) @ wide(b).T
    name, parameters, expected = pick(
        rng,
        ("Relu", {}, np.maximum(y, 0)),
        ("LeakyRelu", {"activation_alpha": 0.25}, np.where(y < 0, 0.25 * y, y)),
        ("Softmax", {"activation_axis": 0}, np.exp(y) / np.exp(y).sum(0)),
        ("HardSigmoid", {"activation_alpha": 0.5, "activation_beta": 0.25}, np.clip(0.5 * y + 0.25, 0, 1)),
        ("Sigmoid", {}, sigmoid(y)),
    )
    attributes = {"alpha": 0.5, "transB": 1, "activation": name, **parameters}
    return Node("FusedMatMulActivation", [a, b], [FLOAT], attributes, expected=[expected])


def fused_gemm(rng):
    m, k, n = sizes(rng, 3, 20)
    trans_a, trans_b = (int(t) for t in rng.integers(0, 2, 2))
    a = draw(rng, (k, m) if trans_a else (m, k), FLOAT)
    b = draw(rng, (n, k) if trans_b else (k, n), FLOAT)
    c = maybe(rng, draw(rng, pick(rng, (n,), (m, n), (1, n), (m, 1), ()), FLOAT))
    activation = pick(
        rng, {"activation": "Relu"}, {"activation": "Tanh"}, {"activation": "Sigmoid"},
        {"activation": "LeakyRelu", "activation_alpha": 0.2}, {"activation": "Elu", "activation_alpha": 0.7},
        {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4}, {"activation": "Softsign"},
        {"activation": "Softplus"}, {"activation": "ThresholdedRelu", "activation_alpha": 0.5},
    )  # fmt: skip
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": pick(rng, 1.0, 0.5), "beta": pick(rng, 1.0, -2.0)}
    return Node("FusedGemm", [a, b, c], [FLOAT], attributes | activation, units=32)


def gemm_fast_gelu(rng):
    k, n = sizes(rng, 2, 12)
    shape = (*sizes(rng, int(rng.integers(1, 3))), k)
    x, w, bias = draw(rng, shape, FLOAT), draw(rng, (k, n), FLOAT, -1, 1), maybe(rng, draw(rng, (n,), FLOAT))
    y = wide(x) @ wide(w) + (0 if bias is None else wide(bias))
    expected = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
    return Node("GemmFastGelu", [x, w, bias], [FLOAT], expected=[expected], units=64)


def fused_conv(rng, last=False):
    axes = int(rng.integers(1, 3))
    group, each, filters = pick(rng, 1, 1, 2), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    n, space, kernel = int(rng.integers(1, 3)), tuple(rng.integers(5, 9, axes)), tuple(rng.integers(1, 4, axes))
    x = draw(rng, (n, group * each, *space), FLOAT)
    w = draw(rng, (group * filters, each, *kernel), FLOAT, -1, 1)
    bias = maybe(rng, draw(rng, (group * filters,), FLOAT))
    attributes = {"group": group, "kernel_shape": [int(k) for k in kernel]}
    attributes |= pick(rng, {}, {"pads": [1] * 2 * axes}, {"auto_pad": "SAME_UPPER"}, {"strides": [2] * axes})
    activation = pick(
        rng, {}, {"activation": "Relu"}, {"activation": "Sigmoid"}, {"activation": "Tanh"},
        {"activation": "LeakyRelu", "activation_params": [0.1]},
        {"activation": "Clip", "activation_params": [-1.0, 2.0]},
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
    )  # fmt: skip
    return Node("FusedConv", [x, w, bias], [FLOAT], attributes | activation, units=32)


def fused_conv_and_addend(rng):
    n, c, size = 1, int(rng.integers(1, 5)), int(rng.integers(3, 7))
    x, w = draw(rng, (n, c, size, size), FLOAT), draw(rng, (2, c, 3, 3), FLOAT, -1, 1)
    z = draw(rng, (n, 2, size, size), FLOAT)
    bias = maybe(rng, draw(rng, (2,), FLOAT))
    attributes = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3], "activation": "Relu"}
    return Node("FusedConv", [x, w, bias, z], [FLOAT], attributes, units=32)


def conv_last(rng):
    n, c, m, h, w = sizes(rng, 5, 5)
    x, filters, bias = draw(rng, (n, h, w, c), FLOAT), draw(rng, (m, c, 1, 1), FLOAT), draw(rng, (m,), FLOAT)
    y = wide(x) @ wide(filters[:, :, 0, 0]).T + wide(bias)
    if rng.integers(2):
        return Node("NhwcConv", [x, filters, bias], [FLOAT], expected=[y])
    z = draw(rng, y.shape, FLOAT)
    expected = np.maximum(y + wide(z), 0)
    return Node("NhwcFusedConv", [x, filters, bias, z], [FLOAT], {"activation": "Relu"}, expected=[expected])


def max_pool_last(rng):
    dtype = pick(rng, np.uint8, np.int8)
    x = rng.integers(0, 100, (2, *rng.integers(4, 9, 2), 3)).astype(dtype)
    attributes = {"kernel_shape": [3, 2], "strides": [2, 1]}
    attributes |= pick(rng, {}, {"pads": [1, 0, 1, 1]}, {"ceil_mode": 1}, {"auto_pad": "SAME_LOWER"})
    return Node("NhwcMaxPool", [x], [dtype], attributes)


def sparse_product(rng, how):
    """A model whose operand A is a sparse initialiser, which onnxruntime takes as a value of a run alone."""
    dtype = pick(rng, FLOAT, DOUBLE, np.int32, np.int64, np.uint32, np.uint64)
    m, k, n = sizes(rng, 3, 9)
    a = (rng.integers(0, 9, (m, k)) * (rng.random((m, k)) < 0.3)).astype(dtype)
    b = rng.integers(0, 9, (*sizes(rng, int(rng.integers(0, 2)), 3), k, n)).astype(dtype)
    alpha, trans_a, trans_b = float(rng.integers(1, 4)), *(int(t) for t in rng.integers(0, 2, 2))
    expected = a @ b * np.array(alpha, dtype)
    stored_a = a.T if trans_a else a
    fed = np.ascontiguousarray(np.swapaxes(b, -1, -2)) if trans_b else b
    places = np.flatnonzero(stored_a) if how == "linear" else np.argwhere(stored_a)
    values = numpy_helper.from_array(stored_a[stored_a != 0], "a")
    indices = numpy_helper.from_array(places.astype(np.int64), "places")
    node = helper.make_node("SparseToDenseMatMul", ["a", "b"], ["y"], domain="com.microsoft", alpha=alpha,
                            transA=trans_a, transB=trans_b)  # fmt: skip
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info("b", PROTO[fed.dtype], fed.shape)],
        [helper.make_tensor_value_info("y", PROTO[fed.dtype], None)],
        sparse_initializer=[helper.make_sparse_tensor(values, indices, stored_a.shape)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), fed, expected


MAKERS = [
    fused_matmul, fused_matmul_of_doubles, transpose_matmul, vectors, fused_matmul_activation, fused_gemm,
    gemm_fast_gelu, fused_conv, fused_conv_and_addend, conv_last, max_pool_last,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("maker", MAKERS, ids=lambda f: f.__name__)
def test_random_nodes(maker, seed):
    check(maker(np.random.default_rng([seed, MAKERS.index(maker)])))


@pytest.mark.parametrize("how", ["linear", "coordinates"])
@pytest.mark.parametrize("seed", range(16))
def test_sparse_products(seed, how):
    model, fed, expected = sparse_product(np.random.default_rng(seed), how)
    made = treadle.InferenceSession(model).run(None, {"b": fed})[0]
    np.testing.assert_array_equal(made, expected, strict=True)
