"""Loops and branches that onnxscript writes: onnxscript's eager mode says what each model has to give.

Runs where onnxscript is installed, under pytest alone (onnxruntime) or under `python -m treadle.as_onnxruntime -m pytest`.
"""

# ruff: noqa: F821, SIM108 (annotations name sizes, and onnxscript reads statements)

import numpy as np
import onnxruntime
import pytest
from onnxscript import FLOAT, INT64, script
from onnxscript import opset18 as op


@script()
def counted(x: FLOAT["N"], n: INT64) -> FLOAT["N"]:
    y = op.Identity(x)
    for i in range(n):
        y = y * 2.0 + op.CastLike(i, y)
    return y


@script()
def broken(x: FLOAT["N"], limit: FLOAT) -> FLOAT:
    n = op.Squeeze(op.Shape(x))
    total = op.Constant(value_float=0.0)
    for i in range(n):
        total = total + op.Gather(x, i)
        over = total > limit
        if over:
            break
    return total


@script()
def repeated(x: FLOAT["N"], limit: FLOAT) -> FLOAT["N"]:
    y = op.Identity(x)
    again = op.ReduceSum(y, keepdims=0) < limit
    while again:
        y = y * 1.5
        again = op.ReduceSum(y, keepdims=0) < limit
    return y


@script()
def counted_and_repeated(x: FLOAT["N"], n: INT64, limit: FLOAT) -> FLOAT["N"]:
    y = op.Identity(x)
    for _ in range(n):
        y = y + 1.0
        again = op.ReduceMax(y, keepdims=0) < limit
        while again:
            y = y * 2.0
            again = op.ReduceMax(y, keepdims=0) < limit
    return y


@script()
def chosen(x: FLOAT["N"], n: INT64) -> FLOAT["N"]:
    y = op.Identity(x)
    for i in range(n):
        if op.Mod(i, 2) == 0:
            y = op.Neg(y)
        else:
            y = y + x
    return y


X = np.array([0.5, 1.0, 2.0, 4.0], np.float32)


def number(value, dtype=np.float32):
    return np.array(value, dtype)


CASES = {
    **{f"counted-{n}": (counted, (X, number(n, np.int64))) for n in (0, 1, 5)},
    **{f"broken-{limit}": (broken, (X, number(limit))) for limit in (0.1, 1.4, 3.0, 100.0)},
    **{f"repeated-{limit}": (repeated, (X, number(limit))) for limit in (1.0, 30.0)},
    **{f"nested-{n}": (counted_and_repeated, (X, number(n, np.int64), number(50.0))) for n in (0, 1, 4)},
    **{f"chosen-{n}": (chosen, (X, number(n, np.int64))) for n in (0, 1, 6)},
}


@pytest.mark.parametrize("name", CASES)
def test_equals_eager_mode(name):
    function, values = CASES[name]
    want = function(*values)
    model = function.to_model_proto().SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    feeds = {node.name: value for node, value in zip(session.get_inputs(), values, strict=True)}
    [got] = session.run(None, feeds)
    np.testing.assert_allclose(got, np.asarray(want), rtol=1e-6)
