"""Every elementwise operator, in every version and element type, against numpy in double precision."""

import math

import ml_dtypes
import numpy as np
import pytest
from one_node import close, run, schemas, types_of

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def elu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def softplus(x):
    return np.logaddexp(0, x)


WIDE = (-3, 3)
# operator: function of one argument, range of the argument, attributes
UNARY = {
    "Abs": (np.abs, WIDE, {}),
    "Acos": (np.arccos, (-1, 1), {}),
    "Acosh": (np.arccosh, (1, 5), {}),
    "Asin": (np.arcsin, (-1, 1), {}),
    "Asinh": (np.arcsinh, WIDE, {}),
    "Atan": (np.arctan, WIDE, {}),
    "Atanh": (np.arctanh, (-0.9, 0.9), {}),
    "Ceil": (np.ceil, WIDE, {}),
    "Celu": (lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2)), WIDE, {"alpha": 2.0}),
    "Cos": (np.cos, WIDE, {}),
    "Cosh": (np.cosh, WIDE, {}),
    "Elu": (lambda x: elu(x, 1.5), WIDE, {"alpha": 1.5}),
    "Erf": (erf, WIDE, {}),
    "Exp": (np.exp, WIDE, {}),
    "Floor": (np.floor, WIDE, {}),
    "Gelu": (lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), (-1, 3), {}),
    "HardSigmoid": (lambda x: np.clip(0.25 * x + 0.5, 0, 1), WIDE, {"alpha": 0.25, "beta": 0.5}),
    "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), WIDE, {}),
    "LeakyRelu": (lambda x: np.where(x < 0, x / 8, x), WIDE, {"alpha": 0.125}),
    "Log": (np.log, (0.1, 5), {}),
    "Mish": (lambda x: x * np.tanh(softplus(x)), WIDE, {}),
    "Neg": (np.negative, WIDE, {}),
    "Reciprocal": (lambda x: 1 / x, (0.5, 4), {}),
    "Relu": (lambda x: np.maximum(x, 0), WIDE, {}),
    "Round": (np.round, WIDE, {}),
    "Selu": (lambda x: 1.25 * elu(x, 1.5), WIDE, {"alpha": 1.5, "gamma": 1.25}),
    "Shrink": (lambda x: np.where(x < -1, x + 1, np.where(x > 1, x - 1, 0)), WIDE, {"lambd": 1.0, "bias": 1.0}),
    "Sigmoid": (sigmoid, WIDE, {}),
    "Sign": (np.sign, WIDE, {}),
    "Sin": (np.sin, WIDE, {}),
    "Sinh": (np.sinh, WIDE, {}),
    "Softplus": (softplus, WIDE, {}),
    "Softsign": (lambda x: x / (1 + np.abs(x)), WIDE, {}),
    "Sqrt": (np.sqrt, (0, 5), {}),
    "Swish": (lambda x: x * sigmoid(0.5 * x), WIDE, {"alpha": 0.5}),
    "Tan": (np.tan, (-1, 1), {}),
    "Tanh": (np.tanh, WIDE, {}),
    "ThresholdedRelu": (lambda x: np.where(x > 0.5, x, 0), WIDE, {"alpha": 0.5}),
}


def divide(a, b):
    return np.trunc(a / b) if np.issubdtype(a.dtype, np.integer) else a / b


BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": divide,
    "Mod": np.mod,
    "Pow": np.power,
    "PRelu": lambda x, slope: np.where(x < 0, x * slope, x),
    "Max": np.maximum,
    "Min": np.minimum,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}
PREDICATES = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor"}


def cases(table, parameter="T"):
    return [
        pytest.param(op, schema.since_version, dtype, id=f"{op}-{schema.since_version}-{dtype}")
        for op in table
        for schema in schemas(op)
        for dtype in types_of(schema, parameter)
    ]


def wide(x):
    """A type in which the element type's arithmetic is exact enough, or wraps as it does."""
    return x if x.dtype.kind in "iub" else x.astype(np.float64)


def draw(rng, shape, dtype, low=-3, high=3):
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "u":
        return rng.integers(max(low, 0), high + 1, shape).astype(dtype)
    if dtype.kind == "i":
        return rng.integers(math.ceil(low), math.floor(high) + 1, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)


@pytest.mark.parametrize("op, version, dtype", cases(UNARY))
def test_unary(op, version, dtype):
    function, (low, high), attributes = UNARY[op]
    x = draw(np.random.default_rng(1), (3, 37), dtype, low, high)
    (y,) = run(op, version, [x], [dtype], attributes)
    expected = function(wide(x))
    if dtype.kind in "iu":
        expected = np.trunc(expected).astype(dtype)  # Erf-9, Shrink
    close(y, expected, units=8)


@pytest.mark.parametrize("op, version, dtype", cases(BINARY))
@pytest.mark.parametrize("shapes", [((2, 3, 21), (2, 3, 21)), ((2, 3, 21), (3, 1)), ((5,), ()), ((), ())], ids=str)
def test_binary(op, version, dtype, shapes):
    rng = np.random.default_rng(2)
    if op in {"Div", "Mod", "Pow"}:
        a, b = draw(rng, shapes[0], dtype, 1, 7), draw(rng, shapes[1], dtype, 1, 4)
    else:
        a, b = draw(rng, shapes[0], dtype), draw(rng, shapes[1], dtype)
    attributes = {}
    legacy = [s for s in schemas(op) if s.since_version == version and "broadcast" in s.attributes]
    if op == "Mod" and version < 28 and dtype.kind in "fV":
        attributes = {"fmod": 1}
    if (legacy or op in {"Max", "Min", "PRelu"}) and version < 7 and shapes[1] == (3, 1):
        b = b[:, 0]  # aligned with axis 1
        attributes = {"axis": 1, "broadcast": 1} if legacy else {}
        if op in {"Max", "Min"}:
            pytest.skip("no broadcasting in this version")
        right = b[:, None]
    else:
        attributes |= {"broadcast": 1} if legacy else {}
        right = b
    result = np.dtype(np.bool_) if op in PREDICATES else dtype
    if op == "Pow" and version >= 12 and dtype.kind in "fV" and shapes[1] == (3, 1):
        b = right = np.array([[2], [1], [3]], np.int64)  # types may differ
    if op == "Pow" and version == 13 and dtype == ml_dtypes.bfloat16 and b.dtype == dtype:
        b = right = b.astype(np.float32)  # this version allows it for the base only
    (y,) = run(op, version, [a, b], [result], attributes)
    expected = BINARY[op](wide(a), wide(right))
    if result.kind in "iu":
        expected = expected.astype(result)
    close(y, expected, units=4)


@pytest.mark.parametrize("op, version, dtype", cases({"Max": 0, "Min": 0, "Sum": 0, "Mean": 0}))
@pytest.mark.parametrize("count", [1, 2, 5])
def test_variadic(op, version, dtype, count):
    rng = np.random.default_rng(3)
    shapes = [(2, 9), (2, 1), (9,), (), (1, 9)] if version >= 8 else [(2, 9)] * 5
    inputs = [draw(rng, s, dtype) for s in shapes[:count]]
    (y,) = run(op, version, inputs, [dtype])
    total = wide(inputs[0])
    for x in inputs[1:]:
        total = {"Max": np.maximum, "Min": np.minimum}.get(op, np.add)(total, wide(x))
    close(y, total / count if op == "Mean" else total)


@pytest.mark.parametrize("op, version, dtype", cases({"Clip": 0}))
@pytest.mark.parametrize("low, high", [(-1, 2), (None, 2), (-1, None), (None, None)])
def test_clip(op, version, dtype, low, high):
    x = draw(np.random.default_rng(4), (4, 33), dtype)
    low = 0 if low is not None and dtype.kind == "u" else low
    if version < 11:
        attributes = {k: float(v) for k, v in (("min", low), ("max", high)) if v is not None}
        (y,) = run(op, version, [x], [dtype], attributes)
    else:
        bounds = [None if v is None else np.array(v).astype(dtype) for v in (low, high)]
        (y,) = run(op, version, [x, *bounds], [dtype])
    expected = wide(x) if low is None else np.maximum(wide(x), low)
    close(y, expected if high is None else np.minimum(expected, high))


@pytest.mark.parametrize("op, version, dtype", cases({"Clip": 0}))
@pytest.mark.parametrize("low, high", [(np.nan, 1), (-1, np.nan), (np.nan, np.nan), (np.nan, None), (None, np.nan)])
def test_clip_with_a_bound_of_nan(op, version, dtype, low, high):
    """NaN throughout: the specification says Min(max, Max(input, min)), and its Max and Min are those of numpy, which
    hand NaN on. So do onnx.reference and numpy.clip; onnxruntime ignores such a bound."""
    if dtype.kind in "iu" or version < 11:
        return
    for length in (0, 1, 3, 33):
        x = np.resize(np.array([np.nan, np.inf, -np.inf, 5, -5, 0, 0.5]), (2, length)).astype(dtype)
        bounds = [None if v is None else np.array(v).astype(dtype) for v in (low, high)]
        (y,) = run(op, version, [x, *bounds], [dtype])
        assert y.shape == x.shape and np.isnan(wide(y)).all()


@pytest.mark.parametrize("op, version, dtype", cases({"Clip": 0}))
def test_clip_without_a_bound(op, version, dtype):
    """The specification has numeric_limits::lowest() and max() there, so results are finite, as onnxruntime's are;
    onnx.reference leaves infinities alone."""
    if dtype.kind in "iu" or version < 11:
        return
    x = np.array([np.inf, -np.inf, np.nan, 5, -5, 0.5]).astype(dtype)
    largest = wide(np.array(ml_dtypes.finfo(dtype).max, dtype))
    for low, high in ((1, None), (None, 1), (None, None)):
        bounds = [None if v is None else np.array(v).astype(dtype) for v in (low, high)]
        (y,) = run(op, version, [x, *bounds], [dtype])
        expected = np.maximum(wide(x), -largest if low is None else low)
        np.testing.assert_array_equal(wide(y), np.minimum(expected, largest if high is None else high))


@pytest.mark.parametrize("version", [11, 28])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shift(version, direction):
    schema = next(s for s in schemas("BitShift") if s.since_version == version)
    for dtype in types_of(schema):
        bits = dtype.itemsize * 8
        rng = np.random.default_rng(5)
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, (6, 11), dtype, endpoint=True)
        shift = rng.integers(0, bits, (6, 11)).astype(dtype)
        (y,) = run("BitShift", version, [x, shift], [dtype], {"direction": direction})
        np.testing.assert_array_equal(y, x << shift if direction == "LEFT" else x >> shift)


@pytest.mark.parametrize("op, version, dtype", cases({"IsNaN": 0, "IsInf": 0}, "T1"))
def test_predicates(op, version, dtype):
    x = np.array([1, np.nan, np.inf, -np.inf, 0, -2]).astype(dtype)
    attributes = {"detect_negative": 0} if op == "IsInf" else {}
    (y,) = run(op, version, [x], [np.bool_], attributes)
    values = x.astype(np.float64)
    np.testing.assert_array_equal(y, np.isnan(values) if op == "IsNaN" else values == np.inf)


@pytest.mark.parametrize("version", [9, 16])
def test_where(version):
    schema = next(s for s in schemas("Where") if s.since_version == version)
    rng = np.random.default_rng(6)
    condition = rng.random((4, 1, 5)) < 0.5
    for dtype in types_of(schema):
        x, y = draw(rng, (3, 5), dtype), draw(rng, (4, 3, 1), dtype)
        (z,) = run("Where", version, [condition, x, y], [dtype])
        close(z, np.where(condition, wide(x), wide(y)))
    x, y = np.array(["a", "bc"], object), np.array([["d"], ["éf"]], object)
    mask = np.array([True, False])
    (z,) = run("Where", version, [mask, x, y], [np.dtype(object)])
    assert z.tolist() == [["a", "d"], ["a", "éf"]]


def test_equal_strings():
    x, y = np.array(["a", "b"], object), np.array([["a"], ["b"]], object)
    (z,) = run("Equal", 19, [x, y], [np.bool_])
    assert z.tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize("op, dtype", [("Div", np.int32), ("Mod", np.int64), ("Div", np.uint8)])
def test_integer_division_by_zero_is_an_error(op, dtype):
    with pytest.raises(Exception, match="division by zero"):
        run(op, 14, [np.array([1, 2, 3], dtype), np.array([1, 0, 1], dtype)], [dtype])


def test_integers_wrap():
    x = np.array([127, -128], np.int8)
    (y,) = run("Add", 14, [x, np.array([1, -1], np.int8)], [np.int8])
    assert y.tolist() == [-128, 127]
