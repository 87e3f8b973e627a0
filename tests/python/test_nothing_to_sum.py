"""Sums, products and convolutions over an axis of size 0, and nodes whose outputs nothing makes.

A process of its own computes the results: there fresh memory is filled, so that an element that no kernel writes is not
zero by chance. tests/equations/test_every_operator.py tries all operators; the sizes here are those at which products
take each of their forms.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
import treadle
from onnx import TensorProto, helper

HEAD = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'
PRODUCTS = {  # of sizes N, K = 0, M
    "MatMul": "g (T[N,K] a, T[K,M] b) => (y) { y = MatMul (a, b) }",
    "MatMul of stacks": "g (T[2,N,K] a, T[2,K,M] b) => (y) { y = MatMul (a, b) }",
    "Gemm": "g (T[N,K] a, T[K,M] b) => (y) { y = Gemm (a, b) }",
    "Gemm, B transposed": "g (T[N,K] a, T[M,K] b) => (y) { y = Gemm <transB = 1> (a, b) }",
    "Gemm, both transposed": "g (T[K,N] a, T[M,K] b) => (y) { y = Gemm <transA = 1, transB = 1> (a, b) }",
    "MatMul of Transpose": "g (T[N,K] a, T[M,K] b) => (y) { t = Transpose <perm = [1, 0]> (b) y = MatMul (a, t) }",
    "Einsum": 'g (T[N,K] a, T[M,K] b) => (y) { y = Einsum <equation = "ik,jk->ij"> (a, b) }',
}
FLOATS = {
    "FusedMatMul": "g (T[N,K] a, T[M,K] b) => (y) { y = com.microsoft.FusedMatMul <transB = 1> (a, b) }",
    "ConvTranspose": "g (T[1,K,5] a, T[K,M,3] b) => (y) { y = ConvTranspose (a, b) }",
    "ConvTranspose of images": "g (T[1,K,5,5] a, T[K,M,3,3] b) => (y) { y = ConvTranspose <strides = [2, 2]> (a, b) }",
    "a history": """g (T[N,K] a, T[K,M] b, T[N,1] c, T[1,M] d) => (y) {
      n = Constant <value_int = 3> () first = Constant <value_int = 0> ()
      p, q, all = Loop (n, , a, b) <body = s (int64 i, bool go, T[N,P] p, T[Q,M] q) => (bool go, T[N,P2] p2, T[Q2,M] q2, T[N,M] r) {
        r = MatMul (p, q) p2 = Concat <axis = 1> (p, c) q2 = Concat <axis = 0> (q, d) }>
      y = Gather <axis = 0> (all, first) }""",
}
SIZES = ((3, 3000), (33, 7), (33, 33), (1, 40), (40, 1))
TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "int32": np.int32, "uint64": np.uint64}
TIERS = ({}, {"tier": "reference"}, {"jit": "always"})


def session(model: bytes, options: dict):
    settings = treadle.SessionOptions()
    for key, value in options.items():
        settings.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession(model, settings)


def dirty(text: str, element: str, n: int, m: int, options: dict) -> str:
    """The elements of the result that are not zero."""
    made = session(treadle.parse_model(f"{HEAD} {text.replace('T[', element + '[')}"), options)
    sizes = {"N": n, "K": 0, "M": m}
    shapes = {i.name: [sizes.get(d, d) for d in i.shape] for i in made.get_inputs()}
    y = made.run(None, {name: np.ones(shape, TYPES[element]) for name, shape in shapes.items()})[0]
    assert y.size > 0
    return f"{y.dtype}{y.shape} {y[y != 0][:4]}" if np.any(y != 0) else ""


def check_products() -> None:
    for element in TYPES:
        for name, text in (PRODUCTS | (FLOATS if element == "float" else {})).items():
            for n, m in SIZES:
                for options in TIERS:
                    found = dirty(text, element, n, m, options)
                    assert not found, f"{name} of {element}, {n} rows, {m} columns, {options}: {found}"


@pytest.mark.parametrize("isa", ["avx512", "avx2", "baseline"])
def test_products_over_nothing_are_zeros(isa):
    environment = os.environ | {"TREADLE_FILL_MEMORY": "90", "TREADLE_ISA": isa}
    run = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


def one_node(op: str, inputs: list, outputs: int, **attributes) -> bytes:
    names = [f"x{i}" for i in range(len(inputs))]
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
    ]
    results = [f"y{i}" for i in range(outputs)]
    domain = attributes.pop("domain", "")
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    made = [helper.make_tensor_value_info(y, TensorProto.UNDEFINED, None) for y in results]
    for y in made:
        y.ClearField("type")
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", values, made)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def run(model: bytes, inputs: list, options: dict) -> list:
    return session(model, options).run(None, {f"x{i}": x for i, x in enumerate(inputs)})


@pytest.mark.parametrize("options", TIERS, ids=str)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64])
def test_extremes_over_nothing_fit_their_type(dtype, options):
    x, limits = np.zeros((0, 4), dtype), np.iinfo(dtype)
    for op, expected in (("ReduceMax", limits.min), ("ReduceMin", limits.max)):
        [y] = run(one_node(op, [x, np.array([0])], 1, keepdims=0), [x, np.array([0])], options)
        assert y.tolist() == [expected] * 4


@pytest.mark.parametrize("options", TIERS, ids=str)
@pytest.mark.parametrize(
    ("x", "w", "group"),
    [((1, 1, 5, 5), (0, 1, 3, 3), 1), ((1, 2, 5, 5), (0, 1, 3, 3), 2), ((1, 1, 5, 5, 5), (0, 1, 3, 3, 3), 1)],
)
def test_convolutions_without_output_channels(x, w, group, options):
    inputs = [np.ones(x, np.float32), np.ones(w, np.float32)]
    [y] = run(one_node("Conv", inputs, 1, group=group), inputs, options)
    assert y.shape == (1, 0, *[size - 2 for size in x[2:]])


@pytest.mark.parametrize("options", TIERS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_of_no_channels_give_the_bias(axes, options):
    bias = np.arange(5, dtype=np.float32) - 2
    inputs = [np.ones((2, 0, *[6] * axes), np.float32), np.ones((5, 0, *[3] * axes), np.float32), bias]
    [y] = run(one_node("Conv", inputs, 1), inputs, options)
    np.testing.assert_array_equal(y, np.broadcast_to(bias.reshape(5, *[1] * axes), (2, 5, *[4] * axes)))
    model = one_node("FusedConv", inputs, 1, domain="com.microsoft", activation="Relu")
    np.testing.assert_array_equal(run(model, inputs, options)[0], np.maximum(y, 0))


@pytest.mark.parametrize("options", TIERS, ids=str)
def test_convolutions_of_bytes_without_channels_give_the_zero_point(options):
    scale, zero = np.array(0.1, np.float32), np.array(128, np.uint8)
    inputs = [np.ones((2, 0, 9, 8), np.uint8), scale, zero, np.ones((5, 0, 3, 3), np.uint8), scale, zero, scale, zero]
    [y] = run(one_node("QLinearConv", inputs, 1, group=5), inputs, options)
    assert y.shape == (2, 5, 7, 6) and np.all(y == 128)


@pytest.mark.parametrize("options", TIERS, ids=str)
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_a_kernel_of_no_elements_is_refused(op, options):
    inputs = [np.ones((2, 5, 9), np.float32), np.ones((5, 5, 0), np.float32)]
    with pytest.raises(treadle.InvalidArgument, match=r"weights have shape \[5,5,0\], expected at least 1 element on"):
        run(one_node(op, inputs, 1), inputs, options)


@pytest.mark.parametrize("options", TIERS, ids=str)
def test_heads_of_size_0_attend_to_all_keys_alike(options):
    values = np.random.default_rng(1).random((2, 3, 20, 8), np.float32)
    inputs = [np.ones((2, 3, 9, 0), np.float32), np.ones((2, 3, 20, 0), np.float32), values]
    [y] = run(one_node("Attention", inputs, 1), inputs, options)
    np.testing.assert_allclose(y, np.broadcast_to(values.mean(2, keepdims=True), (2, 3, 9, 8)), rtol=1e-5)


@pytest.mark.parametrize("options", TIERS, ids=str)
@pytest.mark.parametrize("at", [8, 9, 10, 11])
def test_scales_of_a_quantised_lstm_are_lists(at, options):
    scale, zero = np.full(1, 0.1, np.float32), np.full(1, 3, np.uint8)
    weights = [np.ones((1, n, 24), np.uint8) for n in (5, 6)]
    inputs = [np.ones((4, 2, 5), np.float32), *weights, np.ones((1, 48), np.float32), np.full(2, 4, np.int32)]
    inputs += [np.zeros((1, 2, 6), np.float32)] * 2 + [np.zeros((1, 18), np.float32), scale, zero, scale, zero]
    names = ["W_scale", "W_zero_point", "R_scale", "R_zero_point"]
    inputs[at] = inputs[at].reshape(())
    model = one_node("DynamicQuantizeLSTM", inputs, 3, domain="com.microsoft", hidden_size=6)
    with pytest.raises(treadle.InvalidArgument, match=rf"{names[at - 8]} has shape \[\], expected \[1\] or \[1,24\]"):
        run(model, inputs, options)


@pytest.mark.parametrize("options", TIERS, ids=str)
def test_an_output_that_nothing_makes_is_refused_by_name(options):
    def ones(*shape):
        return np.ones(shape, np.float32)

    inputs = [ones(1, 1, 32), ones(1, 1, 16), ones(1, 1, 16), ones(1, 1, 3, 16), ones(1, 1, 3, 16)]
    inputs += [np.full(1, 3, np.int32), np.array(4, np.int32)]
    model = one_node("GroupQueryAttention", inputs, 4, domain="com.microsoft", num_heads=2, kv_num_heads=1)
    with pytest.raises(treadle.NotImplemented, match=r"output 3 \(output_qk\) is named, but the node does not make it"):
        run(model, inputs, options)


@pytest.mark.parametrize("options", TIERS, ids=str)
def test_places_to_scatter_to_are_one_for_each_entry(options):
    inputs = [np.zeros((2, 4, 3), np.float32), np.ones((2, 1, 3), np.float32), np.zeros(0, np.int64)]
    model = one_node("TensorScatter", inputs, 1)
    with pytest.raises(treadle.InvalidArgument, match=r"write_indices has shape \[0\], expected \[2\]"):
        run(model, inputs, options)


if __name__ == "__main__":
    check_products()
