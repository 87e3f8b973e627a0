"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, QLinearMatMul, Cast and BitCast against numpy."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from one_node import NUMBERS, PROTO, close, run, schemas, types_of

FLOATS = {np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16)}


def bounds(dtype):
    info = ml_dtypes.iinfo(dtype) if dtype.kind not in "iu" or dtype.itemsize == 0 else np.iinfo(dtype)
    return int(info.min), int(info.max)


def is_integer(dtype):
    return dtype.kind in "iu" or dtype.name in {"int4", "uint4", "int2", "uint2"}


def spread(scale, x, kind, axis, block):
    """The scale of every element of x."""
    if scale.ndim == 0 or scale.size == 1:
        return scale.reshape(())
    if kind == "block":
        return np.repeat(scale, block, axis).take(range(x.shape[axis]), axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    return scale.reshape(shape)


def scale_shape(kind, shape, axis, block):
    if kind == "tensor":
        return ()
    if kind == "axis":
        return (shape[axis],)
    return tuple(-(-n // block) if d == axis % len(shape) else n for d, n in enumerate(shape))


def layouts(version):
    kinds = ["tensor"] + (["axis"] if version >= 13 else []) + (["block"] if version >= 21 else [])
    return [(kind, axis) for kind in kinds for axis in ([0, 1, -1] if kind != "tensor" else [1])]


def attributes_of(kind, axis, block):
    return ({"axis": axis} if kind != "tensor" else {}) | ({"block_size": block} if kind == "block" else {})


@pytest.mark.parametrize("version", [s.since_version for s in schemas("QuantizeLinear")])
def test_quantize_linear(version):
    schema = next(s for s in schemas("QuantizeLinear") if s.since_version == version)
    output = "T2" if version < 23 else "T3"
    rng = np.random.default_rng(1)
    for x_type, to, (kind, axis) in itertools.product(
        types_of(schema, "T1"), types_of(schema, output), layouts(version)
    ):
        if x_type not in FLOATS:
            continue
        x = rng.uniform(-20, 20, (4, 6, 5)).astype(x_type)
        block = 2
        shape = scale_shape(kind, x.shape, axis, block)
        scale_type = x_type if version >= 19 else np.dtype(np.float32)
        scale = rng.choice([0.25, 0.5, 1.0], shape).astype(scale_type)  # exact division: no ties move
        if is_integer(to):
            low, high = bounds(to)
            zero = rng.integers(max(low, -3), min(high, 3) + 1, shape).astype(to)
        else:
            zero = np.zeros(shape, to)
        (y,) = run("QuantizeLinear", version, [x, np.asarray(scale), np.asarray(zero)], [to],
                   attributes_of(kind, axis, block))  # fmt: skip
        quotient = x.astype(np.float32) / spread(np.asarray(scale), x, kind, axis, block).astype(np.float32)
        if is_integer(to):
            shifted = np.rint(quotient) + spread(np.asarray(zero), x, kind, axis, block).astype(np.float32)
            expected = np.clip(shifted, low, high)
        else:
            limit = float(ml_dtypes.finfo(to).max)
            expected = np.clip(quotient, -limit, limit).astype(to).astype(np.float32)
        np.testing.assert_array_equal(y.astype(np.float32), expected, err_msg=f"{x_type} {to} {kind} {axis}")


@pytest.mark.parametrize("version", [s.since_version for s in schemas("DequantizeLinear")])
def test_dequantize_linear(version):
    schema = next(s for s in schemas("DequantizeLinear") if s.since_version == version)
    rng = np.random.default_rng(2)
    scale_types = types_of(schema, "T2") if version >= 19 else [np.dtype(np.float32)]
    quantised = types_of(schema, "T" if version < 19 else "T1")
    for from_type, scale_type, (kind, axis) in itertools.product(quantised, scale_types, layouts(version)):
        if scale_type not in FLOATS:
            continue
        shape, block = (4, 6, 5), 2
        if is_integer(from_type):
            low, high = (max(v, -100) if v < 0 else min(v, 100) for v in bounds(from_type))
            x = rng.integers(low, high + 1, shape).astype(from_type)
            zero = rng.integers(max(low, -2), min(high, 2) + 1, scale_shape(kind, shape, axis, block)).astype(from_type)
        else:
            x = rng.uniform(-4, 4, shape).astype(np.float32).astype(from_type)
            zero = np.zeros(scale_shape(kind, shape, axis, block), from_type)
        scale = rng.choice([0.25, 0.5, 2.0], scale_shape(kind, shape, axis, block)).astype(scale_type)
        (y,) = run("DequantizeLinear", version, [x, np.asarray(scale), np.asarray(zero)], [scale_type],
                   attributes_of(kind, axis, block))  # fmt: skip
        centred = x.astype(np.float64) - spread(np.asarray(zero), x, kind, axis, block).astype(np.float64)
        close(y, centred * spread(np.asarray(scale), x, kind, axis, block).astype(np.float64))


def test_output_dtype_without_zero_point():
    x, scale = np.array([-3.0, 1.5, 400.0], np.float32), np.array(1.0, np.float32)
    (y,) = run("QuantizeLinear", 21, [x, scale], [np.int8], {"output_dtype": PROTO[np.dtype(np.int8)]})
    assert y.tolist() == [-3, 2, 127]
    (y,) = run("QuantizeLinear", 13, [x, scale], [np.uint8])
    assert y.tolist() == [0, 2, 255]
    (y,) = run("DequantizeLinear", 23, [y, scale], [np.float16], {"output_dtype": PROTO[np.dtype(np.float16)]})
    assert y.dtype == np.float16
    assert y.tolist() == [0, 2, 255]


@pytest.mark.parametrize("values", [[-1.0, 0.0, 3.0], [0.0, 0.0], [1.0, 2.0], [-4.0, -1.0], []], ids=str)
def test_dynamic_quantize_linear(values):
    x = np.array(values, np.float32)
    y, scale, zero = run("DynamicQuantizeLinear", 11, [x], [np.uint8, np.float32, np.uint8])
    low, high = min([0.0, *values]), max([0.0, *values])
    assert scale == (np.float32(high - low) / np.float32(255) if high > low else 1)
    assert zero == np.clip(np.rint(-low / scale), 0, 255)
    np.testing.assert_array_equal(y, np.clip(np.rint(x / scale) + zero, 0, 255))


@pytest.mark.parametrize("version", [s.since_version for s in schemas("QuantizeLinear")])
def test_quantize_integers(version):
    """Where int32 is quantised, and where it is the scale."""
    schema = next(s for s in schemas("QuantizeLinear") if s.since_version == version)
    int32 = np.dtype(np.int32)
    x = np.array([-7, 0, 9, 1000], int32)
    scale_types = [int32] if version >= 19 else [np.dtype(np.float32)]  # from 19 on of the type of x
    assert int32 in types_of(schema, "T1")
    for scale_type in scale_types:
        (y,) = run("QuantizeLinear", version, [x, np.array(2, scale_type), np.array(3, np.int8)], [np.int8])
        assert y.tolist() == [-1, 3, 7, 127]


@pytest.mark.parametrize("version", [24, 25, 28])
def test_scales_that_are_powers_of_two(version):
    """float8e8m0 as the type of scales."""
    power = ml_dtypes.float8_e8m0fnu
    x, scale = np.array([-3.0, 0.25, 5.0], np.float32), np.array(0.5).astype(power)
    (y,) = run("QuantizeLinear", version, [x, scale, np.array(0, np.int8)], [np.int8])
    assert y.tolist() == [-6, 0, 10]
    options = {"output_dtype": PROTO[np.dtype(np.float32)]}
    (y,) = run("DequantizeLinear", version, [y, scale, np.array(0, np.int8)], [np.float32], options)
    assert y.tolist() == [-3, 0, 5]


QUANTISED = types_of(schemas("QLinearMatMul")[-1], "T1")


@pytest.mark.parametrize("scale_type", types_of(schemas("QLinearMatMul")[-1], "TS"), ids=str)
@pytest.mark.parametrize("kind", QUANTISED, ids=str)
def test_qlinear_matmul_of_every_type(kind, scale_type):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 3, shape).astype(np.float32).astype(kind) for shape in ((2, 3), (3, 4)))
    one, zero = np.array(1, scale_type), np.array(0).astype(np.float32).astype(kind)
    inputs = [a, one, zero, b, one, zero, one, zero]
    (y,) = run("QLinearMatMul", 21, inputs, [kind])
    if kind.kind in "iu" and scale_type == np.float32:
        np.testing.assert_array_equal(run("QLinearMatMul", 10, inputs, [kind])[0], y)
    np.testing.assert_array_equal(
        y.astype(np.float32), (a.astype(np.float32) @ b.astype(np.float32)).astype(kind).astype(np.float32)
    )


@pytest.mark.parametrize("x_type, w_type, y_type", list(itertools.product([np.int8, np.uint8], repeat=3)))
def test_qlinear_conv_of_every_type(x_type, w_type, y_type):
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 20, (1, 1, 4, 4)).astype(x_type), rng.integers(0, 20, (2, 1, 2, 2)).astype(w_type)
    half, zeros = np.float32(0.5), [np.array(v, t) for v, t in ((3, x_type), (2, w_type), (5, y_type))]
    bias = np.array([4, -4], np.int32)
    inputs = [x, half, zeros[0], w, half, zeros[1], np.float32(8), zeros[2], bias]
    (y,) = run("QLinearConv", 10, [np.asarray(v) for v in inputs], [y_type])
    windows = np.lib.stride_tricks.sliding_window_view(x[0, 0].astype(int) - 3, (2, 2))
    sums = np.einsum("ijkl,fkl->fij", windows, w[:, 0].astype(int) - 2) + bias[:, None, None]
    low, high = bounds(np.dtype(y_type))
    np.testing.assert_array_equal(y[0], np.clip(np.rint(sums * 0.25 / 8) + 5, low, high))


@pytest.mark.parametrize("a_type", [np.int8, np.uint8])
@pytest.mark.parametrize("b_type", [np.int8, np.uint8])
@pytest.mark.parametrize("per_line", [False, True])
@pytest.mark.parametrize("stack", [(), (2,)], ids=str)
def test_qlinear_matmul(a_type, b_type, per_line, stack):
    rng = np.random.default_rng(3)
    a = rng.integers(0, 100, (*stack, 4, 5)).astype(a_type)
    b = rng.integers(0, 100, (5, 6)).astype(b_type)
    lines = (lambda n: (n,)) if per_line and not stack else (lambda n: ())
    a_scale, b_scale = rng.choice([0.5, 0.25], lines(4)), rng.choice([0.5, 0.125], lines(6))
    a_zero, b_zero = rng.integers(0, 9, lines(4)).astype(a_type), rng.integers(0, 9, lines(6)).astype(b_type)
    y_scale, y_zero = np.float32(32.0), np.array(7, np.uint8)
    f32 = [np.asarray(v, np.float32) for v in (a_scale, b_scale, y_scale)]
    (y,) = run("QLinearMatMul", 10, [a, f32[0], np.asarray(a_zero), b, f32[1], np.asarray(b_zero), f32[2], y_zero],
               [np.uint8])  # fmt: skip
    column = (lambda v: v[:, None]) if per_line and not stack else (lambda v: v)
    sums = np.matmul(a.astype(np.int64) - column(np.asarray(a_zero, np.int64)), b.astype(np.int64) - b_zero)
    expected = np.rint(sums * column(f32[0]).astype(np.float64) * f32[1] / 32) + 7
    np.testing.assert_array_equal(y, np.clip(expected, 0, 255))


# Values that every pair of types holds or saturates alike.
def castable(dtype, rng):
    if dtype.kind == "b":
        return rng.random(40) < 0.5
    if is_integer(dtype):
        low, high = bounds(dtype)
        return rng.integers(max(low, -8), min(high, 7) + 1, 40).astype(dtype)
    if dtype.name.startswith("float8_e8m0"):
        return rng.choice([0.5, 1.0, 2.0, 4.0], 40).astype(dtype)
    return rng.choice([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0], 40).astype(dtype)


@pytest.mark.parametrize("version", [s.since_version for s in schemas("Cast")])
def test_cast(version):
    schema = next(s for s in schemas("Cast") if s.since_version == version)
    rng = np.random.default_rng(4)
    names = {np.dtype(v): k for k, v in NUMBERS.items()}
    for source, to in itertools.product(types_of(schema, "T1"), types_of(schema, "T2")):
        x = castable(source, rng)
        if to.name.startswith("float8_e8m0"):
            x = np.where(x.astype(np.float32) > 0, x.astype(np.float32), 1).astype(source)
        attribute = names[to].upper() if version < 6 else PROTO[to]
        (y,) = run("Cast", version, [x], [to], {"to": attribute})
        values = x.astype(np.float64)
        if to.kind == "b":
            expected = values != 0
        elif is_integer(to):
            whole = np.trunc(values).astype(np.int64)
            low, high = bounds(to)
            narrow = to.itemsize < 8
            expected = (whole - low) % (high - low + 1) + low if narrow else whole.astype(to).astype(np.float64)
        elif to.name.startswith("float8_e8m0"):
            expected = 2.0 ** np.ceil(np.log2(values))
        else:
            limit = float(ml_dtypes.finfo(to).max)
            expected = np.clip(values, -limit, limit).astype(to).astype(np.float64)
        np.testing.assert_array_equal(y.astype(np.float64), expected, err_msg=f"{source} to {to}")


@pytest.mark.parametrize("version", [9, 13, 28])
def test_cast_strings(version):
    text = np.array(["1.5", " -2e3 ", "+INF", "NaN", "inf", "0"], object)
    for dtype in (np.float32, np.float64, np.float16) + ((ml_dtypes.bfloat16,) if version >= 13 else ()):
        (y,) = run("Cast", version, [text], [dtype], {"to": PROTO[np.dtype(dtype)]})
        assert y.dtype == dtype
        np.testing.assert_array_equal(y.astype(np.float64), [1.5, -2000, np.inf, np.nan, np.inf, 0])
    (y,) = run("Cast", version, [np.array(["12", "-7", "3.9"], object)], [np.int32], {"to": PROTO[np.dtype(np.int32)]})
    assert y.tolist() == [12, -7, 3]
    for x, expected in [
        (np.array([0.1, 1, 1e-5, np.nan, -np.inf], np.float32), ["0.1", "1", "9.9999997e-06", "NaN", "-INF"]),
        (np.array([0.1, 2.5], np.float16), ["0.099975586", "2.5"]),
        (np.array([2**63 + 1], np.uint64), ["9223372036854775809"]),
        (np.array([-5], np.int8), ["-5"]),
        (np.array([True, False]), ["1", "0"]),
    ]:
        (y,) = run("Cast", version, [x], [np.dtype(object)], {"to": 8})
        assert y.tolist() == expected
    with pytest.raises(Exception, match="is 'one', expected the text of a number"):
        run("Cast", version, [np.array(["one"], object)], [np.float32], {"to": 1})


def test_cast_like():
    x, like = np.array([1.7, -1.7], np.float32), np.zeros((), np.int16)
    (y,) = run("CastLike", 15, [x, like], [np.int16])
    assert y.tolist() == [1, -1]


def test_bit_cast():
    x = np.array([1.0, -0.0], np.float32)
    (y,) = run("BitCast", 26, [x], [np.uint32], {"to": PROTO[np.dtype(np.uint32)]})
    np.testing.assert_array_equal(y, x.view(np.uint32))
    x = np.array([-1, 7, -8], ml_dtypes.int4)
    (y,) = run("BitCast", 26, [x], [ml_dtypes.uint4], {"to": PROTO[np.dtype(ml_dtypes.uint4)]})
    assert y.astype(int).tolist() == [15, 7, 8]
    with pytest.raises(Exception, match="expected equal widths"):
        run("BitCast", 26, [np.zeros(2, np.float32)], [np.int64], {"to": PROTO[np.dtype(np.int64)]})
