"""Models run with and without rewriting give the same bits where rewriting promises them, and close ones elsewhere."""

import numpy as np
import onnx
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper


def _sessions(nodes, inputs, weights, outputs=("y",), opset=17):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in inputs.items()],
        [info(name, TensorProto.UNDEFINED, None) for name in outputs],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    for out in graph.output:
        out.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(next(iter(inputs.values())).dtype)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()
    plain = treadle.SessionOptions()
    plain.graph_optimization_level = treadle.GraphOptimizationLevel.ORT_DISABLE_ALL
    return treadle.InferenceSession(model, plain), treadle.InferenceSession(model)


def _same_bits(nodes, inputs, weights, **kwargs):
    plain, rewritten = _sessions(nodes, inputs, weights, **kwargs)
    for want, found in zip(plain.run(None, inputs), rewritten.run(None, inputs), strict=True):
        np.testing.assert_array_equal(want, found)


# channels in, out, groups, size, kernel, stride
SHAPES = [
    (3, 16, 1, 20, 3, 2),
    (8, 24, 1, 14, 1, 1),
    (16, 16, 16, 17, 3, 1),
    (6, 6, 6, 21, 5, 2),
    (4, 4, 4, 9, 4, 1),
    (12, 8, 4, 11, 3, 1),
    (32, 20, 1, 2, 3, 1),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("tail", ["Relu", "Clip", "Bias Relu", "Add Relu", "Add"])
def test_convolution_and_what_follows(shape, dtype, tail):
    channels, outputs, groups, size, kernel, stride = shape
    rng = np.random.default_rng(sum(shape))

    def random(*dims):
        return rng.standard_normal(dims).astype(dtype)

    weights = {"w": random(outputs, channels // groups, kernel, kernel)}
    inputs = {"x": random(2, channels, size, size)}
    pads = [kernel // 2] * 4
    nodes = [helper.make_node("Conv", ["x", "w"], ["c0"], strides=[stride] * 2, pads=pads, group=groups)]
    out = (size + 2 * (kernel // 2) - kernel) // stride + 1
    for i, step in enumerate(tail.split()):
        more = []
        if step == "Clip":
            weights |= {"low": np.array(-0.5, dtype), "high": np.array(1, dtype)}
            more = ["low", "high"]
        elif step == "Bias":
            weights["bias"] = random(outputs, 1, 1)
            more = ["bias"]
        elif step == "Add":
            inputs["z"] = random(2, outputs, out, out)
            more = ["z"]
        op = "Add" if step in ("Bias", "Add") else step
        nodes.append(helper.make_node(op, [f"c{i}", *more], [f"c{i + 1}"]))
    nodes[-1].output[0] = "y"
    _same_bits(nodes, inputs, weights)


def test_batch_normalization_in_the_weights():
    rng = np.random.default_rng(4)
    inputs = {"x": rng.standard_normal((1, 5, 9, 9)).astype(np.float32)}
    weights = {
        "w": rng.standard_normal((7, 5, 3, 3)).astype(np.float32),
        "b": rng.standard_normal(7).astype(np.float32),
        "scale": rng.standard_normal(7).astype(np.float32),
        "shift": rng.standard_normal(7).astype(np.float32),
        "mean": rng.standard_normal(7).astype(np.float32),
        "variance": rng.uniform(0.5, 2, 7).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    plain, rewritten = _sessions(nodes, inputs, weights)
    np.testing.assert_allclose(plain.run(None, inputs)[0], rewritten.run(None, inputs)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize(
    ("a", "perm_a", "b", "perm_b"),
    [
        ((5, 4), (1, 0), (5, 3), None),
        ((1, 64), None, (37, 64), (1, 0)),
        ((2, 5, 3, 4), (0, 2, 1, 3), (2, 70, 3, 4), (0, 2, 3, 1)),
        ((4, 6, 2), (2, 1, 0), (4, 2, 9), (1, 0, 2)),
        ((1, 1, 8), (0, 2, 1), (5, 1, 1), (0, 2, 1)),
    ],
)
def test_products_of_transposed_operands(dtype, a, perm_a, b, perm_b):
    rng = np.random.default_rng(7)
    inputs = {"a": rng.integers(-9, 9, a).astype(dtype), "b": rng.integers(-9, 9, b).astype(dtype)}
    nodes, names = [], []
    for name, perm in (("a", perm_a), ("b", perm_b)):
        if perm:
            nodes.append(helper.make_node("Transpose", [name], [name + "_t"], perm=perm))
        names.append(name + "_t" if perm else name)
    nodes.append(helper.make_node("MatMul", names, ["y"]))
    _same_bits(nodes, inputs, {})


@pytest.mark.parametrize("scaling", [None, ("Mul", 0.3), ("Div", 8.0), ("Div", 3.0)])
@pytest.mark.parametrize(
    ("stack", "rows", "columns", "inner", "width"),
    [
        ((2, 3), 40, 33, 16, 20),
        ((6,), 300, 1500, 64, 64),
        ((), 33, 1, 5, 1),
        ((1, 2), 64, 2, 3, 9),
        ((2,), 31, 50, 4, 3),
    ],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_softmax_between_products(stack, rows, columns, inner, width, scaling, transposed):
    rng = np.random.default_rng(5)
    shapes = {"q": (rows, inner), "k": (columns, inner) if transposed else (inner, columns), "v": (columns, width)}
    inputs = {name: rng.standard_normal((*stack, *shape)).astype(np.float32) for name, shape in shapes.items()}
    nodes, scores = [], "s"
    if transposed:
        perm = [*range(len(stack)), len(stack) + 1, len(stack)]
        nodes.append(helper.make_node("Transpose", ["k"], ["kt"], perm=perm))
    nodes.append(helper.make_node("MatMul", ["q", "kt" if transposed else "k"], ["s"]))
    if scaling:
        nodes.append(helper.make_node(scaling[0], ["s", "c"], ["scaled"]))
        scores = "scaled"
    nodes.append(helper.make_node("Softmax", [scores], ["w"], axis=-1))
    nodes.append(helper.make_node("MatMul", ["w", "v"], ["y"]))
    _same_bits(nodes, inputs, {"c": np.array(scaling[1], np.float32)} if scaling else {})


def test_a_cast_to_the_type_of_another_value_is_a_cast_to_that_type(tmp_path):
    options = treadle.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[n] x, float16[n] y) => (float16[n] z) {
      like = Neg(y)
      z = CastLike <saturate = 0> (x, like)
    }"""
    x = np.linspace(-3, 3, 5, dtype=np.float32)
    [z] = treadle.InferenceSession(text.encode(), options).run(None, {"x": x, "y": x.astype(np.float16)})
    np.testing.assert_array_equal(z, x.astype(np.float16))
    written = onnx.load(options.optimized_model_filepath)
    assert "CastLike" not in {node.op_type for node in written.graph.node}
    again = treadle.InferenceSession(options.optimized_model_filepath)
    np.testing.assert_array_equal(again.run(None, {"x": x, "y": z})[0], z)
