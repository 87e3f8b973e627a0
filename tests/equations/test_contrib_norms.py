"""Fused activations and normalisations of com.microsoft, against onnxruntime or numpy."""

import math

import ml_dtypes
import numpy as np
import pytest
from contrib import Node, check

FLOAT, HALF, DOUBLE, BFLOAT = (np.dtype(t) for t in (np.float32, np.float16, np.float64, ml_dtypes.bfloat16))
ERF = np.vectorize(math.erf, otypes=[np.float64])


def wide(x):
    return x.astype(np.float64)


def draw(rng, shape, dtype, low=-3, high=3):
    return rng.uniform(low, high, shape).astype(np.float32).astype(dtype)


def maybe(rng, value):
    return value if rng.random() < 0.5 else None


def sizes(rng, rank, most=7):
    return tuple(int(n) for n in rng.integers(1, most, rank))


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


def gelu(x):
    return 0.5 * x * (1 + ERF(x / np.sqrt(2)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- Activations


def bias_gelu(rng):
    dtype, shape = pick(rng, FLOAT, HALF, DOUBLE, BFLOAT), sizes(rng, int(rng.integers(1, 5)))
    a, b = draw(rng, shape, dtype), draw(rng, shape[-1:], dtype)
    return Node("BiasGelu", [a, b], [dtype], expected=[gelu(wide((wide(a) + wide(b)).astype(dtype)))])


def bias_gelu_by_onnxruntime(rng):
    shape = sizes(rng, int(rng.integers(1, 5)), 40)
    return Node(
        "BiasGelu", [draw(rng, shape, FLOAT), draw(rng, shape[-1:], FLOAT)], [FLOAT], symbolic=bool(rng.integers(2))
    )


def fast_gelu(rng):
    dtype, shape = pick(rng, FLOAT, HALF, BFLOAT), sizes(rng, int(rng.integers(1, 5)), 20)
    return Node("FastGelu", [draw(rng, shape, dtype), maybe(rng, draw(rng, shape[-1:], dtype))], [dtype], units=24)


def plain_gelu(rng):
    dtype = pick(rng, FLOAT, HALF, BFLOAT)
    return Node("Gelu", [draw(rng, sizes(rng, int(rng.integers(0, 5))), dtype)], [dtype])


def quick_gelu(rng):
    dtype = pick(rng, FLOAT, HALF, BFLOAT)
    attributes = pick(rng, {}, {"alpha": 0.5}, {"alpha": -1.25})
    return Node("QuickGelu", [draw(rng, sizes(rng, int(rng.integers(1, 5))), dtype)], [dtype], attributes)


def bias_add(rng):
    dtype, shape = pick(rng, FLOAT, HALF), sizes(rng, 3)
    x, bias, skip = draw(rng, shape, dtype), draw(rng, shape[-1:], dtype), draw(rng, shape, dtype)
    return Node("BiasAdd", [x, bias, skip], [dtype], expected=[wide(x) + wide(bias) + wide(skip)])


def bias_split_gelu(rng):
    dtype = pick(rng, FLOAT, HALF)
    n, s, half = sizes(rng, 3)
    x, bias = draw(rng, (n, s, 2 * half), dtype), draw(rng, (2 * half,), dtype)
    left, right = np.split(wide((wide(x) + wide(bias)).astype(dtype)), 2, axis=-1)
    return Node("BiasSplitGelu", [x, bias], [dtype], expected=[left * gelu(right)])


def bias_softmax(rng):
    dtype, rank = pick(rng, FLOAT, HALF, DOUBLE), int(rng.integers(1, 5))
    shape, axis, inner = sizes(rng, rank), int(rng.integers(rank)), int(rng.integers(2))
    ones = int(rng.integers(axis + 1))
    repeated = (*shape[: axis - ones], *[1] * ones, *shape[axis:]) if inner else shape[ones:]
    x, bias = draw(rng, shape, dtype), draw(rng, repeated, dtype)
    sums = wide((wide(x) + wide(bias)).astype(dtype)).reshape(int(np.prod(shape[:axis])), -1)
    powers = np.exp(sums - sums.max(-1, keepdims=True))
    expected = (powers / powers.sum(-1, keepdims=True)).reshape(shape)
    axis -= rank * int(rng.integers(2))
    return Node("BiasSoftmax", [x, bias], [dtype], {"axis": axis, "is_inner_broadcast": inner}, expected=[expected])


def gated_add(rng):
    dtype, shape = pick(rng, FLOAT, HALF, BFLOAT), sizes(rng, int(rng.integers(1, 5)))
    x, y, gate = draw(rng, shape, dtype), draw(rng, shape, dtype), draw(rng, (*shape[:-1], 1), dtype)
    return Node("GatedAdd", [x, y, gate], [dtype])


def scaled_silu(rng):
    dtype, other = pick(rng, FLOAT, HALF, BFLOAT), pick(rng, FLOAT, HALF, BFLOAT)
    scale = maybe(rng, draw(rng, (), other))
    x = draw(rng, sizes(rng, int(rng.integers(1, 4))), dtype)
    return Node("ScaledSiLU", [x, scale], [dtype], pick(rng, {}, {"alpha": 0.5}))


# ---- Dropouts that drop nothing


def dropout(rng, op, biased, packed):
    dtype, shape = pick(rng, FLOAT, HALF, DOUBLE, BFLOAT), sizes(rng, int(rng.integers(1, 4)), 12)
    data, bias, residual = (draw(rng, s, dtype) for s in (shape, shape[-1:], shape))
    inputs, total = [data], wide(data)
    if biased:
        residual = maybe(rng, residual)
        inputs += [bias, residual]
        total = wide((total + wide(bias)).astype(dtype)) + (0 if residual is None else wide(residual))
    inputs += [maybe(rng, np.float32(0.4).reshape(())), maybe(rng, np.array(False))]
    count = data.size
    mask = np.ones(shape, bool)
    if packed:
        bits = np.zeros(-(-count // 32) * 32, np.uint8)
        bits[:count] = 1
        mask = np.packbits(bits, bitorder="little").view(np.uint32)
    types = [dtype, np.uint32 if packed else np.bool_]
    return Node(op, inputs, types, pick(rng, {}, {"seed": 3}), expected=[total, mask])


def bias_dropout(rng):
    return dropout(rng, "BiasDropout", True, False)


def bitmask_dropout(rng):
    return dropout(rng, "BitmaskDropout", False, True)


def bitmask_bias_dropout(rng):
    return dropout(rng, "BitmaskBiasDropout", True, True)


# ---- Normalisations


def layer_normalization(rng):
    rank = int(rng.integers(1, 5))
    shape, axis = sizes(rng, rank), int(rng.integers(rank))
    dtype = pick(rng, FLOAT, HALF, BFLOAT)
    scale, bias = draw(rng, shape[axis:], dtype), maybe(rng, draw(rng, shape[axis:], dtype))
    attributes = {"axis": axis - rank * int(rng.integers(2)), "epsilon": pick(rng, 1e-5, 1e-2)}
    return Node(
        "LayerNormalization", [draw(rng, shape, dtype), scale, bias], [dtype, FLOAT, FLOAT], attributes,
        domain="", version=pick(rng, 9, 13, 16),
    )  # fmt: skip


def simplified_layer_normalization(rng):
    rank = int(rng.integers(1, 5))
    shape, axis = sizes(rng, rank, 9), int(rng.integers(rank))
    dtype = pick(rng, FLOAT, HALF, BFLOAT)
    attributes = {"axis": axis - rank * int(rng.integers(2)), "epsilon": pick(rng, 1e-5, 1e-2), "stash_type": 1}
    outputs = pick(rng, [dtype], [dtype, FLOAT])
    inputs = [draw(rng, shape, dtype), draw(rng, shape[axis:], dtype)]
    return Node("SimplifiedLayerNormalization", inputs, outputs, attributes, domain="", version=pick(rng, 11, 17, 21))


def skip_normalization(rng, op, simplified):
    dtype = pick(rng, FLOAT, FLOAT, HALF, BFLOAT)
    shape = sizes(rng, 3, 30)
    if rng.random() < 0.2:
        shape = (2, 5, int(rng.integers(700, 5000)))
    skip = pick(rng, shape, (1, *shape[1:]), shape[1:])
    parameters = [draw(rng, shape[-1:], dtype)]
    if not simplified:
        parameters.append(maybe(rng, draw(rng, shape[-1:], dtype)))
    parameters.append(maybe(rng, draw(rng, shape[-1:], dtype)))
    outputs = pick(rng, [dtype], [dtype, None, None, dtype])
    return Node(
        op, [draw(rng, shape, dtype), draw(rng, skip, dtype), *parameters], outputs,
        pick(rng, {}, {"epsilon": 1e-5}), symbolic=bool(rng.integers(2)), units=32,
    )  # fmt: skip


def skip_layer_normalization(rng):
    return skip_normalization(rng, "SkipLayerNormalization", False)


def skip_simplified_layer_normalization(rng):
    return skip_normalization(rng, "SkipSimplifiedLayerNormalization", True)


def skip_statistics(rng):
    x, skip = draw(rng, (2, 3, 20), FLOAT), draw(rng, (3, 20), FLOAT)
    gamma = np.ones(20, np.float32)
    total = wide(x) + wide(skip)
    mean, inverse = total.mean(-1, keepdims=True), 1 / np.sqrt(total.var(-1, keepdims=True) + 1e-5)
    return Node(
        "SkipLayerNormalization", [x, skip, gamma], [FLOAT] * 4, {"epsilon": 1e-5},
        expected=[(total - mean) * inverse, mean, inverse, total],
    )  # fmt: skip


def embed_layer_normalization(rng):
    dtype = pick(rng, FLOAT, HALF)
    batch, length, hidden = sizes(rng, 3, 12)
    tables = [draw(rng, (n, hidden), dtype) for n in (20, length + 3, 3)]
    ids = rng.integers(0, 20, (batch, length), np.int32)
    segments = rng.integers(0, 3, (batch, length), np.int32)
    positions = maybe(rng, rng.integers(0, length, (pick(rng, 1, batch), length), np.int32))
    mask = maybe(rng, rng.integers(0, 2, (batch, length), np.int32))
    if rng.random() < 0.5:
        segments = tables[2] = None
    gamma, beta = draw(rng, (hidden,), dtype), draw(rng, (hidden,), dtype)
    return Node(
        "EmbedLayerNormalization", [ids, segments, *tables, gamma, beta, mask, positions], [dtype, np.int32, dtype],
        {"epsilon": 1e-5}, units=32,
    )  # fmt: skip


def quantized_embed_layer_normalization(rng):
    dtype = pick(rng, np.uint8, np.int8)
    batch, length, hidden = sizes(rng, 3, 12)
    info = np.iinfo(dtype)

    def quantized(*shape):
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)

    words, positions, segments = quantized(20, hidden), quantized(length + 2, hidden), quantized(3, hidden)
    ids = rng.integers(0, 20, (batch, length), np.int32)
    segment_ids = rng.integers(0, 3, (batch, length), np.int32)
    scales = [np.array(rng.uniform(0.01, 0.1), np.float32) for _ in range(5)]
    zeros = [np.array(quantized(), dtype) for _ in range(5)]
    if rng.random() < 0.5:
        segments = segment_ids = scales[2] = zeros[2] = None
    mask = maybe(rng, rng.integers(0, 2, (batch, length), np.int32))
    return Node(
        "QEmbedLayerNormalization",
        [ids, segment_ids, words, positions, segments, quantized(hidden), quantized(hidden), mask, *scales, *zeros],
        [FLOAT, np.int32], {"epsilon": 1e-5}, units=32,
    )  # fmt: skip


def group_norm(rng, skipped=False):
    dtype, other = pick(rng, FLOAT, HALF), pick(rng, FLOAT, HALF)
    groups, each = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    n, h, w, c = *sizes(rng, 3, 5), groups * each
    x, gamma, beta = draw(rng, (n, h, w, c), dtype), draw(rng, (c,), other), draw(rng, (c,), other)
    last, activation = int(rng.integers(2)), int(rng.integers(2))
    inputs, total = [x, gamma, beta], wide(x)
    if skipped:
        skip, bias = draw(rng, pick(rng, (n, h, w, c), (n, 1, 1, c), (n, c)), dtype), maybe(rng, draw(rng, (c,), dtype))
        inputs += [skip, bias]
        total = wide((total + wide(skip if skip.ndim == 4 else skip[:, None, None])).astype(dtype))
        if bias is not None:
            total = wide((total + wide(bias)).astype(dtype))
    rows = total.reshape(n, h * w, groups, each)
    rows = (rows - rows.mean((1, 3), keepdims=True)) / np.sqrt(rows.var((1, 3), keepdims=True) + 1e-3)
    y = rows.reshape(x.shape) * wide(gamma) + wide(beta)
    y = y * sigmoid(y) if activation else y
    results = [y, total][: 1 + skipped]
    if not last:
        results = [r.transpose(0, 3, 1, 2) for r in results]
        inputs = [np.ascontiguousarray(v.transpose(0, 3, 1, 2)) if v is not None and v.ndim == 4 else v for v in inputs]
    attributes = {"groups": groups, "activation": activation, "channels_last": last, "epsilon": 1e-3}
    name = "SkipGroupNorm" if skipped else "GroupNorm"
    return Node(name, inputs, [dtype] * (1 + skipped), attributes, expected=results)


def skip_group_norm(rng):
    return group_norm(rng, True)


def gated_rms_norm(rng):
    dtype, (heads, size) = pick(rng, FLOAT, HALF, BFLOAT), sizes(rng, 2)
    shape = (*sizes(rng, int(rng.integers(0, 3))), heads * size)
    attributes = {"activation": pick(rng, "silu", "swish", "sigmoid"), "epsilon": 1e-4}
    inputs = [draw(rng, shape, dtype), draw(rng, (size,), dtype), draw(rng, shape, dtype)]
    return Node("GatedRMSNorm", inputs, [dtype], attributes)


def branchwise_rms_norm(rng):
    dtype, other, (branches, size) = pick(rng, FLOAT, HALF, BFLOAT), pick(rng, FLOAT, HALF, BFLOAT), sizes(rng, 2)
    before, flat = sizes(rng, int(rng.integers(0, 3))), bool(rng.integers(2))
    shape = (*before, branches * size) if flat else (*before, branches, size)
    scale = maybe(rng, draw(rng, pick(rng, (branches * size,), (branches, size), (size,)), other))
    attributes = {"num_branches": branches} if flat else {}
    return Node("BranchwiseRMSNorm", [draw(rng, shape, dtype), scale], [dtype], attributes)


MAKERS = [
    bias_gelu, bias_gelu_by_onnxruntime, fast_gelu, plain_gelu, quick_gelu, bias_add, bias_split_gelu, bias_softmax,
    gated_add, scaled_silu, bias_dropout, bitmask_dropout, bitmask_bias_dropout, layer_normalization,
    simplified_layer_normalization, skip_layer_normalization, skip_simplified_layer_normalization, skip_statistics,
    embed_layer_normalization, quantized_embed_layer_normalization, group_norm, skip_group_norm, gated_rms_norm,
    branchwise_rms_norm,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("maker", MAKERS, ids=lambda f: f.__name__)
def test_random_nodes(maker, seed):
    check(maker(np.random.default_rng([seed, MAKERS.index(maker)])))
