"""Products with weights of few bits, against onnxruntime."""

import numpy as np
import pytest
from contrib import Node, check
from test_contrib_norms import BFLOAT, FLOAT, HALF, draw, maybe, pick, sizes


def packed(values, bits):
    """[..., count] as bytes [..., count * bits / 8], the first in the lowest bits."""
    values = values.reshape(*values.shape[:-1], -1, 8 // bits).astype(np.uint8)
    return np.bitwise_or.reduce(values << (np.arange(8 // bits) * bits).astype(np.uint8), axis=-1).astype(np.uint8)


def nbits(rng):
    dtype, bits, block = pick(rng, FLOAT, FLOAT, HALF), pick(rng, 4, 4, 8), pick(rng, 16, 32, 64, 128)
    k, n = int(rng.integers(1, 260)), int(rng.integers(1, 80))
    rows = pick(rng, (1,), (1, 2), (1, 1), (2, 3), (7,), (97,), (200,))
    blocks = -(-k // block)
    a, scales = draw(rng, (*rows, k), dtype), draw(rng, (n, blocks), dtype, -0.5, 0.5)
    b = packed(rng.integers(0, 2**bits, (n, blocks, block)), bits)
    zeros = None
    if rng.integers(2):
        padded = -(-blocks * bits // 8) * 8 // bits
        zeros = packed(rng.integers(0, 2**bits, (n, padded)), bits)
    bias = maybe(rng, draw(rng, (n,), dtype))
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    constants = pick(rng, (1, 2, 3), (1, 2, 3), ())
    return Node("MatMulNBits", [a, b, scales, zeros, None, bias], [dtype], attributes, constants=constants, units=64)


def nbits_by_group(rng):
    """By the definition: onnxruntime takes packed zero points of other blocks."""
    k, n, block, bits = 64, int(rng.integers(1, 20)), 16, pick(rng, 2, 4, 8)
    a, scales = draw(rng, (3, k), FLOAT), draw(rng, (n, k // block), FLOAT)
    values = rng.integers(0, 2**bits, (n, k // block, block))
    groups = rng.integers(0, k // block, k).astype(np.int32)
    zeros = maybe(rng, rng.integers(0, 2**bits, (n, k // block)))
    middle = np.full((n, k // block), 2 ** (bits - 1)) if zeros is None else zeros
    weights = (values.reshape(n, k) - middle[:, groups]) * scales.astype(np.float64)[:, groups]
    zeros = None if zeros is None else packed(zeros, bits)
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    inputs = [a, packed(values, bits), scales, zeros, groups]
    expected = [a.astype(np.float64) @ weights.T]
    return Node("MatMulNBits", inputs, [FLOAT], attributes, expected, constants=(1, 2, 3, 4), units=64)


def float_zeros(rng):
    """Zero points that are no integers, and weights of 2 bits: the judge gets the weights as floats."""
    dtype, bits, block = pick(rng, FLOAT, HALF, BFLOAT), pick(rng, 2, 4, 8), pick(rng, 16, 32)
    k, n = int(rng.integers(1, 100)), int(rng.integers(1, 50))
    blocks = -(-k // block)
    a, scales = draw(rng, (pick(rng, 1, 5), k), dtype), draw(rng, (n, blocks), dtype)
    values = rng.integers(0, 2**bits, (n, blocks, block))
    zeros = maybe(rng, draw(rng, (n, blocks), dtype, 0, 2**bits))
    middle = np.full((n, blocks), 2 ** (bits - 1)) if zeros is None else zeros.astype(np.float64)
    weights = ((values - middle[..., None]) * scales.astype(np.float64)[..., None]).reshape(n, -1)[:, :k]
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    inputs = [a, packed(values, bits), scales, zeros]
    return Node("MatMulNBits", inputs, [dtype], attributes, [a.astype(np.float64) @ weights.T], units=64)


def bnb4(rng):
    block, kind = pick(rng, 16, 32), int(rng.integers(2))
    k, n = int(rng.integers(1, 5)) * block, int(rng.integers(1, 20))
    transposed = 1
    a = draw(rng, (*sizes(rng, int(rng.integers(1, 3))), k if transposed else n), FLOAT)
    b = rng.integers(0, 256, (n * k + 1) // 2).astype(np.uint8)
    absmax = draw(rng, (-(-n * k // block),), FLOAT, 0, 1)
    attributes = {"K": k, "N": n, "block_size": block, "quant_type": kind, "transB": transposed}
    return Node("MatMulBnb4", [a, b, absmax], [FLOAT], attributes, constants=(1, 2), units=64)


MAKERS = [nbits, nbits_by_group, float_zeros, bnb4]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("maker", MAKERS, ids=lambda f: f.__name__)
def test_random_nodes(maker, seed):
    check(maker(np.random.default_rng([seed, MAKERS.index(maker)])))
