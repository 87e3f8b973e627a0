"""GroupedMatMul of operator set 29, which released onnx packages do not know yet: against its equation in numpy."""

import numpy as np
import onnx
import pytest
import treadle
from onnx import helper

RNG = np.random.default_rng(0)
WAYS = ({}, {"treadle.jit": "always"}, {"treadle.optimize": "0"}, {"treadle.tier": "reference"})


def equation(x, w, groups, bias=None):
    """output[m, i] = input[m] @ weights[group_indices[m, i]] + bias[group_indices[m, i]], in doubles."""
    rows, each = groups.shape
    y = np.zeros((rows, each, w.shape[2]))
    for m in range(rows):
        for i in range(each):
            y[m, i] = x[m].astype(np.float64) @ w[groups[m, i]].astype(np.float64)
            if bias is not None:
                y[m, i] += bias[groups[m, i]]
    return y.astype(x.dtype)


def model_of(arrays, shapes=None):
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape if shapes is None else shapes[name]
        )
        for name, a in arrays.items()
    ]
    y = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(arrays["x"].dtype), None)
    node = helper.make_node("GroupedMatMul", list(arrays), ["y"])
    graph = helper.make_graph([node], "g", inputs, [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 29)], ir_version=14)


def values(rows, depth, columns, groups, each, dtype, index=np.int64, bias=True):
    arrays = {
        "x": RNG.standard_normal((rows, depth)).astype(dtype),
        "w": RNG.standard_normal((groups, depth, columns)).astype(dtype),
        "g": RNG.integers(0, groups, (rows, each)).astype(index),
    }
    if bias:
        arrays["b"] = RNG.standard_normal((groups, columns)).astype(dtype)
    return arrays


def run(model, feeds, entries):
    options = treadle.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    return treadle.InferenceSession(model.SerializeToString(), options).run(None, feeds)[0]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 1e-5), (np.float64, 1e-12), (np.float16, 1e-2)])
@pytest.mark.parametrize(
    "sizes", [(5, 4, 6, 3, 2), (1, 1, 1, 1, 1), (33, 17, 9, 8, 3), (0, 4, 6, 3, 2), (3, 0, 2, 2, 1)]
)
def test_the_equation(sizes, dtype, tolerance, index, bias):
    arrays = values(*sizes, dtype, index, bias)
    expected = equation(*arrays.values())
    results = [run(model_of(arrays), arrays, entries) for entries in WAYS]
    for y in results[:-1]:  # the last is of the reference tier, whose kernels sum in another order
        np.testing.assert_array_equal(y, results[0])
    for y in results:
        assert y.dtype == dtype and y.shape == expected.shape
        np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)


def test_open_sizes_are_inferred():
    arrays = values(4, 3, 5, 2, 2, np.float32)
    shapes = {"x": ["M", 3], "w": [2, 3, 5], "g": ["M", "S"], "b": [2, 5]}
    session = treadle.InferenceSession(model_of(arrays, shapes).SerializeToString())
    assert session.get_outputs()[0].shape == ["M", "S", 5]
    for rows in (4, 7):
        arrays = values(rows, 3, 5, 2, 2, np.float32)
        np.testing.assert_allclose(session.run(None, arrays)[0], equation(*arrays.values()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"x": (5, 3)}, r"weights has shape \[3,4,6\], expected \[G,3,N\]"),
        ({"g": (4, 2)}, r"group_indices has shape \[4,2\], expected \[5,S\]"),
        ({"b": (3, 5)}, r"bias has shape \[3,5\], expected \[3,6\]"),
        ({"w": (4, 6)}, r"weights has shape .*expected \[G,K,N\]"),
    ],
)
def test_operands_that_do_not_fit(change, message):
    arrays = values(5, 4, 6, 3, 2, np.float32)
    for name, shape in change.items():
        arrays[name] = np.zeros(shape, arrays[name].dtype)
    with pytest.raises(treadle.InvalidArgument, match=message):
        treadle.InferenceSession(model_of(arrays).SerializeToString())


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 29, reason="the onnx package does not know the operator")
def test_the_packages_own_reference():
    from onnx.reference import ReferenceEvaluator

    for bias in (False, True):
        arrays = values(6, 5, 4, 3, 2, np.float32, bias=bias)
        (expected,) = ReferenceEvaluator(model_of(arrays)).run(None, arrays)
        np.testing.assert_allclose(run(model_of(arrays), arrays, {}), expected, rtol=1e-5, atol=1e-5)
