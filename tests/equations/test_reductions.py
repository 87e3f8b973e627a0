"""Reductions, softmax and its relatives, running sums: every version and element type against numpy."""

import numpy as np
import pytest
from one_node import close, run, schemas
from test_elementwise import cases, draw, wide


def log_sum_exp(x, axis, keepdims):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


REDUCE = {
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
}


@pytest.mark.parametrize("op, version, dtype", cases(REDUCE))
@pytest.mark.parametrize("axes, keep", [(None, 1), ((1,), 0), ((0, -1), 1), ((2,), 0)], ids=str)
def test_reduce(op, version, dtype, axes, keep):
    x = draw(np.random.default_rng(1), (3, 4, 5), dtype, 1, 2)
    schema = next(s for s in schemas(op) if s.since_version == version)
    attributes, inputs = {"keepdims": keep}, [x]
    if "axes" in schema.attributes:
        attributes |= {} if axes is None else {"axes": axes}
        if version < 11 and axes == (0, -1):
            axes = attributes["axes"] = (0, 2)
    elif axes is not None:
        inputs.append(np.array(axes, np.int64))
    (y,) = run(op, version, inputs, [dtype], attributes)
    values = wide(x)
    if dtype.kind in "iu":
        values = values.astype(np.int64)
    expected = REDUCE[op](values, axis=axes, keepdims=bool(keep))
    if dtype.kind in "iu":
        expected = np.trunc(expected).astype(np.int64).astype(dtype)
    close(y, np.asarray(expected), units=16)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("op", REDUCE)
def test_short_rows_give_the_bits_of_each_row_alone(op, dtype):
    """Rows that do not fill a vector are reduced some at a time; the last ones, behind which nothing may be read, alone."""
    rng = np.random.default_rng(3)
    for columns in range(1, 20):
        x = rng.standard_normal((37, columns)).astype(dtype)
        x[5, 0], x[6, columns - 1] = np.nan, np.inf
        axes = np.array([1], np.int64)
        whole = run(op, 18, [x, axes], [dtype])[0]
        alone = np.concatenate([run(op, 18, [row[None], axes], [dtype])[0] for row in x])
        np.testing.assert_array_equal(whole.view(np.uint8), alone.view(np.uint8), err_msg=f"{columns} columns")


def test_no_axes():
    x = np.array([[1.0, -2.0]], np.float32)
    axes = np.array([], np.int64)
    (y,) = run("ReduceSum", 13, [x, axes], [np.float32], {"noop_with_empty_axes": 1})
    np.testing.assert_array_equal(y, x)
    (y,) = run("ReduceSumSquare", 18, [x], [np.float32], {"noop_with_empty_axes": 1})
    np.testing.assert_array_equal(y, x * x)
    (y,) = run("ReduceSum", 13, [x, axes], [np.float32], {"keepdims": 0})
    assert y == -1


@pytest.mark.parametrize("op, expected", [("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -np.inf)])
def test_of_nothing(op, expected):
    (y,) = run(op, 20 if op == "ReduceMax" else 13, [np.zeros((2, 0), np.float32)], [np.float32],
               {"axes": [1]} if op == "ReduceProd" else {})  # fmt: skip
    assert y.ravel()[0] == expected


@pytest.mark.parametrize("op, version, dtype", cases({"ArgMax": 0, "ArgMin": 0}))
@pytest.mark.parametrize("axis, keep, last", [(0, 1, 0), (1, 0, 1), (-1, 1, 1)])
def test_arg(op, version, dtype, axis, keep, last):
    x = draw(np.random.default_rng(2), (4, 6, 7), dtype, 0, 3)
    last = last if version >= 12 else 0
    axis = axis if version >= 11 else axis % 3
    attributes = {"axis": axis, "keepdims": keep} | ({"select_last_index": last} if version >= 12 else {})
    (y,) = run(op, version, [x], [np.int64], attributes)
    find = np.argmax if op == "ArgMax" else np.argmin
    values = wide(x)
    expected = values.shape[axis] - 1 - find(np.flip(values, axis), axis) if last else find(values, axis)
    np.testing.assert_array_equal(y, np.expand_dims(expected, axis) if keep else expected)


@pytest.mark.parametrize("op, version, dtype", cases({"CumSum": 0, "CumProd": 0}))
@pytest.mark.parametrize("axis, exclusive, reverse", [(0, 0, 0), (1, 1, 0), (-1, 0, 1), (1, 1, 1)])
def test_cumulative(op, version, dtype, axis, exclusive, reverse):
    x = draw(np.random.default_rng(3), (4, 5, 3), dtype, 1, 2)
    attributes = {"exclusive": exclusive, "reverse": reverse}
    (y,) = run(op, version, [x, np.array(axis, np.int64)], [dtype], attributes)
    values = np.flip(wide(x), axis) if reverse else wide(x)
    if exclusive:
        start = np.full_like(np.take(values, [0], axis), 0 if op == "CumSum" else 1)
        values = np.concatenate([start, np.take(values, range(values.shape[axis] - 1), axis)], axis)
    values = (np.cumsum if op == "CumSum" else np.cumprod)(values, axis)
    close(y, np.flip(values, axis) if reverse else values, units=8)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def hardmax(x):
    return np.eye(x.shape[-1])[x.argmax(-1)]


SOFTMAX = {"Softmax": softmax, "LogSoftmax": lambda x: np.log(softmax(x)), "Hardmax": hardmax}


@pytest.mark.parametrize("op, version, dtype", cases(SOFTMAX))
@pytest.mark.parametrize("axis", [0, 1, 2, -1, None])
def test_softmax(op, version, dtype, axis):
    x = draw(np.random.default_rng(4), (3, 4, 5), dtype)
    attributes = {} if axis is None else {"axis": axis % 3 if version < 11 else axis}
    (y,) = run(op, version, [x], [dtype], attributes)
    axis = attributes.get("axis", 1 if version < 13 else -1)
    if version < 13:  # flattened at the axis
        flat = wide(x).reshape(int(np.prod(x.shape[: axis % 3])), -1)
        expected = SOFTMAX[op](flat).reshape(x.shape)
    else:
        expected = np.moveaxis(SOFTMAX[op](np.moveaxis(wide(x), axis, -1)), -1, axis)
    close(y, expected, units=8)


@pytest.mark.parametrize("op, version, dtype", cases({"LpNormalization": 0}))
@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(op, version, dtype, p):
    x = draw(np.random.default_rng(5), (3, 4, 5), dtype)
    x[0, :, 0] = 0
    (y,) = run(op, version, [x], [dtype], {"p": p, "axis": 1})
    norm = np.linalg.norm(wide(x), p, 1, keepdims=True)
    close(y, wide(x) / np.where(norm == 0, 1, norm), units=8)


@pytest.mark.parametrize("op, version, dtype", cases({"MeanVarianceNormalization": 0}))
def test_mean_variance_normalization(op, version, dtype):
    x = draw(np.random.default_rng(6), (2, 3, 4, 5), dtype)
    (y,) = run(op, version, [x], [dtype])
    values, axes = wide(x), (0, 2, 3)
    centred = values - values.mean(axes, keepdims=True)
    close(y, centred / (np.sqrt((centred**2).mean(axes, keepdims=True)) + 1e-9), units=16)
