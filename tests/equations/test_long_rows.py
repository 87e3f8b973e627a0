"""Rows so long that kernels go through them in pieces, between which they ask whether to stop."""

import numpy as np
import pytest
from one_node import run

N = 6_000_000
X = np.random.default_rng(1).standard_normal(N).astype(np.float32)
WIDE = X.astype(np.float64)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def normalized(x):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("op", "version", "expected"),
    [
        ("ReduceSum", 11, lambda x: x.sum(keepdims=True)),
        ("ReduceLogSumExp", 13, lambda x: np.log(np.exp(x).sum(keepdims=True))),
        ("ReduceMax", 13, lambda x: x.max(keepdims=True)),
        ("Softmax", 13, softmax),
        ("LogSoftmax", 13, lambda x: np.log(softmax(x))),
        ("Tan", 7, np.tan),
        ("Abs", 13, np.abs),
    ],
)
def test_one_row(op, version, expected, dtype):
    x = X.astype(dtype)
    (y,) = run(op, version, [x], [dtype])
    wanted = expected(x.astype(np.float64))
    # A rounding to the type, and for float32 the sum's own. float16 has no numbers between multiples of 6e-8, which elements of
    # so long a softmax are.
    rounding, smallest = (1e-3, 6e-8) if dtype == np.float16 else (1e-6, 0)
    np.testing.assert_allclose(y.astype(np.float64), wanted, rtol=rounding, atol=smallest)


def test_layer_normalization():
    scale = np.linspace(0.5, 2, N).astype(np.float32)
    (y,) = run("LayerNormalization", 17, [X, scale], [np.float32])
    np.testing.assert_allclose(y, normalized(WIDE) * scale, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("op", "expected"), [("ArgMax", np.argmax), ("ArgMin", np.argmin)])
@pytest.mark.parametrize("at", [0, 12345, 1 << 20, N - 1])
def test_where_the_extreme_is(op, expected, at):
    x = X.copy()
    x[at] = 9 if op == "ArgMax" else -9
    assert run(op, 13, [x], [np.int64])[0] == at == expected(x)
    x[[at // 2, N - 1 - at // 3]] = x[at]
    places = np.flatnonzero(x == x[at])
    assert run(op, 13, [x], [np.int64], {"select_last_index": 0})[0] == places[0]
    assert run(op, 13, [x], [np.int64], {"select_last_index": 1})[0] == places[-1]


def test_the_first_nan_is_the_extreme():
    x = X.copy()
    x[[3_000_000, 5_000_000]] = np.nan
    assert run("ArgMax", 13, [x], [np.int64])[0] == 3_000_000


def test_running_sums():
    x = np.random.default_rng(2).integers(-9, 9, N)
    (y,) = run("CumSum", 14, [x, np.array(0)], [np.int64])
    np.testing.assert_array_equal(y, np.cumsum(x))


@pytest.mark.parametrize("shape", [(2, N // 2), (1500, 4000), (3, 2000, 1000), (N,)])
def test_transposed(shape):
    x = X.reshape(shape)
    (y,) = run("Transpose", 13, [x], [np.float32])
    np.testing.assert_array_equal(y, x.T)


def test_largest_in_order():
    (values, places) = run("TopK", 11, [X, np.array([N // 2])], [np.float32, np.int64])
    order = np.argsort(-X, kind="stable")[: N // 2]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, X[order])


def test_unique():
    x = np.round(X, 3)
    found = run("Unique", 11, [x], [np.float32, np.int64, np.int64, np.int64])
    for ours, theirs in zip(found, np.unique(x, True, True, True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
