"""The normalisation operators against numpy, every version and element type."""

import ml_dtypes
import numpy as np
import pytest
from one_node import close, run, schemas, types_of
from test_elementwise import cases, draw, wide

EPS = float(np.float32(1e-5))


def per_channel(v, rank):
    return wide(v).reshape((1, -1) + (1,) * (rank - 2))


@pytest.mark.parametrize("op, version, dtype", cases({"BatchNormalization": 0}))
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (4, 3), (1, 3, 7)], ids=str)
def test_batch_normalization(op, version, dtype, shape):
    rng = np.random.default_rng(1)
    x = draw(rng, shape, dtype)
    scale, bias, mean, var = (draw(rng, (3,), dtype, *r) for r in ((1, 2), (-1, 1), (-1, 1), (0.5, 2)))
    attributes = {"consumed_inputs": [0, 0]} if version == 1 else {}
    (y,) = run(op, version, [x, scale, bias, mean, var], [dtype], attributes)
    s, b, m, v = (per_channel(p, x.ndim) for p in (scale, bias, mean, var))
    close(y, (wide(x) - m) / np.sqrt(v + EPS) * s + b, units=16)


@pytest.mark.parametrize("version", [14, 15])
def test_batch_normalization_training(version):
    rng = np.random.default_rng(2)
    x = draw(rng, (4, 3, 5), np.dtype(np.float16))
    parameter = np.dtype(np.float16 if version == 14 else np.float32)
    scale, bias = draw(rng, (3,), parameter, 1, 2), draw(rng, (3,), parameter)
    mean, var = draw(rng, (3,), np.dtype(np.float32)), draw(rng, (3,), np.dtype(np.float32), 1, 2)
    y, running_mean, running_var = run(
        "BatchNormalization", version, [x, scale, bias, mean, var], [np.float16, np.float32, np.float32],
        {"training_mode": 1, "momentum": 0.75},
    )  # fmt: skip
    values = wide(x)
    m, v = values.mean((0, 2)), values.var((0, 2))
    expected = (values - per_channel(m, 3)) / np.sqrt(per_channel(v, 3) + EPS)
    close(y, expected * per_channel(scale, 3) + per_channel(bias, 3), units=8)
    close(running_mean, wide(mean) * 0.75 + m * 0.25)
    close(running_var, wide(var) * 0.75 + v * 0.25)


def test_batch_normalization_per_place():
    rng = np.random.default_rng(3)
    dtype = np.dtype(np.float32)
    x = draw(rng, (2, 3, 4), dtype)
    scale, bias, mean, var = (draw(rng, (3, 4), dtype, 0.5, 2) for _ in range(4))
    (y,) = run("BatchNormalization", 7, [x, scale, bias, mean, var], [dtype], {"spatial": 0})
    close(y, (wide(x) - mean) / np.sqrt(wide(var) + EPS) * scale + bias, units=16)


def normalised(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPS)


@pytest.mark.parametrize("op, version, dtype", cases({"InstanceNormalization": 0}))
def test_instance_normalization(op, version, dtype):
    rng = np.random.default_rng(4)
    x, scale, bias = draw(rng, (2, 3, 4, 5), dtype), draw(rng, (3,), dtype), draw(rng, (3,), dtype)
    (y,) = run(op, version, [x, scale, bias], [dtype])
    close(y, normalised(wide(x), (2, 3)) * per_channel(scale, 4) + per_channel(bias, 4), units=16)


@pytest.mark.parametrize("dtype", types_of(schemas("GroupNormalization")[-1]), ids=str)
@pytest.mark.parametrize("version", [18, 21])  # 18 is deprecated, and has a scale per group
def test_group_normalization(version, dtype):
    rng = np.random.default_rng(5)
    n = 2 if version == 18 else 6
    x, scale, bias = draw(rng, (2, 6, 4, 5), dtype), draw(rng, (n,), dtype), draw(rng, (n,), dtype)
    (y,) = run("GroupNormalization", version, [x, scale, bias], [dtype], {"num_groups": 2})
    scale, bias = scale.repeat(6 // n), bias.repeat(6 // n)
    rows = normalised(wide(x).reshape(2, 2, -1), (2,)).reshape(x.shape)
    close(y, rows * per_channel(scale, 4) + per_channel(bias, 4), units=16)


@pytest.mark.parametrize("dtype", types_of(schemas("LayerNormalization")[-1]), ids=str)
@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("stash", [np.float32, ml_dtypes.bfloat16], ids=str)
def test_layer_normalization(dtype, axis, has_bias, stash):
    rng = np.random.default_rng(6)
    x = draw(rng, (3, 4, 35), dtype)
    scale, bias = draw(rng, x.shape[axis:], dtype), draw(rng, (35,), dtype)  # the bias broadcasts
    attributes = {"axis": axis, "stash_type": 1 if stash is np.float32 else 16}
    y, mean, inverse = run("LayerNormalization", 17, [x, scale] + ([bias] if has_bias else []), [dtype, stash, stash],
                           attributes)  # fmt: skip
    axes = tuple(range(axis % 3, 3))
    values = wide(x)
    expected = normalised(values, axes) * wide(scale) + (wide(bias) if has_bias else 0)
    close(y, expected, units=16)
    close(mean, values.mean(axes, keepdims=True), units=8)
    close(inverse, 1 / np.sqrt(values.var(axes, keepdims=True) + EPS), units=8)


@pytest.mark.parametrize("dtype", types_of(schemas("RMSNormalization")[-1]), ids=str)
@pytest.mark.parametrize("out", types_of(schemas("RMSNormalization")[-1], "V"), ids=str)
@pytest.mark.parametrize("axis", [-1, 1])
def test_rms_normalization(dtype, out, axis):
    rng = np.random.default_rng(7)
    x, scale = draw(rng, (3, 4, 5), dtype), draw(rng, (3, 4, 5)[axis:], out)
    (y,) = run("RMSNormalization", 23, [x, scale], [out], {"axis": axis})
    axes, values = tuple(range(axis % 3, 3)), wide(x)
    expected = values / np.sqrt((values**2).mean(axes, keepdims=True) + EPS) * wide(scale)
    # Narrow floats are normalised in float, with a result of their own precision.
    units = {"float32": 1 << 12, "float64": 1 << 32}.get(out.name, 16) if dtype.itemsize < out.itemsize else 16
    close(y, expected, units)


@pytest.mark.parametrize("op, version, dtype", cases({"LRN": 0}))
@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_lrn(op, version, dtype, size):
    x = draw(np.random.default_rng(8), (2, 7, 4, 5), dtype)
    (y,) = run(op, version, [x], [dtype], {"size": size, "alpha": 0.5, "beta": 0.75, "bias": 1.5})
    values = wide(x)
    total = np.zeros_like(values)
    for c in range(7):
        window = slice(max(0, c - (size - 1) // 2), min(7, c + (size - 1) // 2 + (size - 1) % 2 + 1))
        total[:, c] = (values[:, window] ** 2).sum(1)
    close(y, values / (1.5 + 0.5 / size * total) ** 0.75, units=16)
