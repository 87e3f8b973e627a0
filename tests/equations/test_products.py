"""MatMul, Gemm, Einsum and their 8-bit relatives against numpy, every version and element type."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from one_node import close, run, schemas, treadle, types_of
from onnx import helper
from test_elementwise import cases, draw, wide

SHAPES = [
    ((3, 5), (5, 7)), ((5,), (5, 7)), ((3, 5), (5,)), ((5,), (5,)), ((2, 3, 5), (5, 7)), ((2, 3, 5), (2, 5, 7)),
    ((4, 1, 3, 5), (2, 5, 1)), ((1, 5), (4, 5, 7)), ((2, 1, 5), (1, 5, 4)), ((0, 5), (5, 3)), ((3, 0), (0, 2)),
    ((1, 300), (300, 70)), ((40, 33), (33, 65)),
]  # fmt: skip


@pytest.mark.parametrize("op, version, dtype", cases({"MatMul": 0}))
@pytest.mark.parametrize("a, b", SHAPES, ids=str)
def test_matmul(op, version, dtype, a, b):
    rng = np.random.default_rng(1)
    x, w = draw(rng, a, dtype), draw(rng, b, dtype)
    (y,) = run(op, version, [x, w], [dtype])
    close(y, np.matmul(wide(x), wide(w)), units=32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int64], ids=str)
@pytest.mark.parametrize("a, b", SHAPES, ids=str)
def test_constant_weights_give_the_same_bits(dtype, a, b):
    rng = np.random.default_rng(2)
    x, w = draw(rng, a, np.dtype(dtype)), draw(rng, b, np.dtype(dtype))
    (expected,) = run("MatMul", 13, [x, w], [dtype])
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "constant",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(x.dtype), None)],
        [onnx.numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (y,) = treadle.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("op, version, dtype", cases({"Gemm": 0}))
@pytest.mark.parametrize("trans_a, trans_b", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("bias", [(4, 6), (6,), (4, 1), (1,), None], ids=str)
def test_gemm(op, version, dtype, trans_a, trans_b, bias):
    if bias is None and version < 11:
        pytest.skip("C is required")
    rng = np.random.default_rng(3)
    a, b = draw(rng, (5, 4) if trans_a else (4, 5), dtype), draw(rng, (6, 5) if trans_b else (5, 6), dtype)
    c = None if bias is None else draw(rng, bias, dtype)
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": 2.0, "beta": 3.0}
    if version < 7:
        attributes["broadcast"] = 1
    (y,) = run(op, version, [a, b] + ([] if c is None else [c]), [dtype], attributes)
    product = np.matmul(wide(a).T if trans_a else wide(a), wide(b).T if trans_b else wide(b))
    expected = 2 * product + (0 if c is None else 3 * wide(c))
    close(y, expected.astype(dtype) if dtype.kind in "iu" else expected, units=32)


EQUATIONS = [
    ("ij,jk->ik", [(3, 4), (4, 5)]), ("ij,jk", [(3, 4), (4, 5)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("bij,bjk->kbi", [(2, 3, 4), (2, 4, 5)]), ("ii->i", [(4, 4)]), ("ii", [(4, 4)]), ("ij->ji", [(3, 4)]),
    ("ij->", [(3, 4)]), ("i,j->ij", [(3,), (4,)]), ("i,i->", [(5,), (5,)]), ("ij,ij->ij", [(3, 4), (3, 4)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]), ("...ij,...jk", [(2, 1, 3, 4), (3, 4, 5)]),
    ("abcd,cdef->abef", [(2, 3, 4, 5), (4, 5, 2, 3)]), ("abcd,dcef->abef", [(2, 3, 4, 5), (5, 4, 2, 3)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]), ("i,ij,j->", [(3,), (3, 4), (4,)]), ("ij,k->i", [(3, 4), (5,)]),
    ("bhwc,hkc->bhwk", [(2, 3, 4, 5), (3, 6, 5)]), ("iij,jk->ik", [(3, 3, 4), (4, 2)]), (" i j , j -> i ", [(3, 4), (4,)]),
    ("ij,jk->ik", [(3, 1), (4, 5)]), ("bsnh,btnh->bnst", [(2, 3, 2, 4), (2, 5, 2, 4)]), ("->", [()]), ("i->i", [(3,)]),
    ("ba,Ab->aA", [(2, 3), (4, 2)]), ("ab,bA", [(2, 3), (3, 4)]),
]  # fmt: skip


def numpy_einsum(equation, *operands):
    """numpy.einsum; sizes of 1 broadcast against others of the same label."""
    terms = equation.replace(" ", "").split("->")[0].split(",")
    sizes = {}
    for term, x in zip(terms, operands, strict=True):
        if "." not in term:
            for label, size in zip(term, x.shape, strict=True):
                sizes[label] = max(size, sizes.get(label, 1))
    spread = [
        x if "." in t else np.broadcast_to(x, [sizes[label] for label in t])
        for t, x in zip(terms, operands, strict=True)
    ]
    return np.einsum(equation.replace(" ", ""), *spread)


@pytest.mark.parametrize("equation, shapes", EQUATIONS, ids=str)
@pytest.mark.parametrize("dtype", types_of(schemas("Einsum")[-1]), ids=str)
def test_einsum(equation, shapes, dtype):
    rng = np.random.default_rng(4)
    inputs = [draw(rng, s, dtype, 0, 2) for s in shapes]
    version = 28 if dtype == ml_dtypes.bfloat16 else 12
    (y,) = run("Einsum", version, inputs, [dtype], {"equation": equation})
    close(y, np.asarray(numpy_einsum(equation, *[wide(x) for x in inputs])), units=32)


@pytest.mark.parametrize("equation, shapes", [("ij->ik", [(2, 3)]), ("ij,jk", [(2, 3), (4, 5)]), ("i", [(2, 3)])])
def test_einsum_refuses(equation, shapes):
    with pytest.raises(Exception, match="Einsum"):
        run("Einsum", 12, [np.ones(s, np.float32) for s in shapes], [np.float32], {"equation": equation})


@pytest.mark.parametrize("a_type", [np.int8, np.uint8])
@pytest.mark.parametrize("b_type", [np.int8, np.uint8])
@pytest.mark.parametrize("a, b", SHAPES, ids=str)
@pytest.mark.parametrize("zeros", ["none", "scalar", "line"])
def test_matmul_integer(a_type, b_type, a, b, zeros):
    rng = np.random.default_rng(5)

    def whole_range(shape, dtype):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, np.dtype(dtype), endpoint=True)

    x, w = whole_range(a, a_type), whole_range(b, b_type)
    inputs, x_zero, w_zero = [x, w], np.zeros((), a_type), np.zeros((), b_type)
    if zeros == "scalar":
        x_zero, w_zero = whole_range((), a_type), whole_range((), b_type)
    elif zeros == "line":
        if len(a) < 2 or len(b) < 2:
            pytest.skip("lines of matrices only")
        x_zero, w_zero = whole_range((a[-2],), a_type), whole_range((b[-1],), b_type)
    if zeros != "none":
        inputs += [x_zero, w_zero]
    (y,) = run("MatMulInteger", 10, inputs, [np.int32])
    rows = x_zero.astype(np.int64)[:, None] if zeros == "line" else x_zero.astype(np.int64)
    np.testing.assert_array_equal(y, np.matmul(x.astype(np.int64) - rows, w.astype(np.int64) - w_zero))
