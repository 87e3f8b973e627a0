"""treadle's random numbers in plain numpy: Philox4x32-10, laid down as src/kernels/random.h says, for nodes with a seed."""

from __future__ import annotations

import numpy as np

LOW = np.uint64(0xFFFFFFFF)
HALF_WORD = np.uint64(32)
GROUP = 8  # blocks of the generator
QUARTER_TURN = np.pi / 2
SIGNIFICANT = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


def blocks(seed: float, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The four words of each of the first `count` blocks."""
    index = np.arange(count, dtype=np.uint64)
    c0, c1, c2, c3 = index & LOW, index >> HALF_WORD, np.zeros_like(index), np.zeros_like(index)
    k0, k1 = np.uint64(np.float32(seed).view(np.uint32)), np.uint64(0)
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (b >> HALF_WORD) ^ c1 ^ k0, b & LOW, (a >> HALF_WORD) ^ c3 ^ k1, a & LOW
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & LOW, (k1 + np.uint64(0xBB67AE85)) & LOW
    return c0, c1, c2, c3


def halves(seed: float, count: int, wide: bool) -> tuple[np.ndarray, np.ndarray]:
    """Bits of the elements in the first halves of all groups, and of those in the second halves: [group, element]."""
    groups = -(-count // (2 * GROUP if wide else 4 * GROUP))
    w0, w1, w2, w3 = blocks(seed, groups * GROUP)
    if wide:
        return (w0 | w1 << HALF_WORD).reshape(groups, GROUP), (w2 | w3 << HALF_WORD).reshape(groups, GROUP)
    return tuple(np.stack(pair, axis=1).reshape(groups, 2 * GROUP) for pair in ((w0, w1), (w2, w3)))


def uniform(seed: float, dtype: np.dtype, count: int, low: float, high: float) -> np.ndarray:
    wide = dtype == np.float64
    bits = SIGNIFICANT[dtype.name]
    words = np.concatenate(halves(seed, count, wide), axis=1).ravel()[:count]
    whole = (words >> np.uint64((64 if wide else 32) - bits)).astype(np.float64)
    return (low + (high - low) * 2.0**-bits * whole).astype(dtype)


def normal(seed: float, dtype: np.dtype, count: int, mean: float, scale: float) -> np.ndarray:
    wide = dtype == np.float64
    x, y = halves(seed, count, wide)
    top = 64 if wide else 32
    unit = ((x >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53 if wide else (x + 0.5) * 2.0**-32
    turned = (y << np.uint64(2)) & (np.uint64(0xFFFFFFFFFFFFFFFF) if wide else LOW)
    if wide:
        angle = ((turned >> np.uint64(11)).astype(np.float64) - 2.0**52) * 2.0**-53 * QUARTER_TURN
    else:
        angle = turned.astype(np.uint32).view(np.int32) * 2.0**-32 * QUARTER_TURN
    radius = np.sqrt(-2 * np.log(unit)) * np.where(y >> np.uint64(top - 1), -1.0, 1.0)
    exchanged = ((y >> np.uint64(top - 2)) & np.uint64(1)).astype(bool)
    cosine, sine = np.cos(angle), np.sin(angle)
    pair = radius * np.where(exchanged, sine, cosine), radius * np.where(exchanged, cosine, sine)
    return (mean + scale * np.concatenate(pair, axis=1).ravel()[:count]).astype(dtype)
