"""Packs weights of 2, 4 and 8 bits, for onnxruntime's quantisation tools.

The functions have the names of those in `onnxruntime.capi._pybind_state`, and fill the arrays that they are given. The
bytes equal onnxruntime's, also in a byte that has room for more codes than there are weights left.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "quantize_matmul_2bits",
    "quantize_matmul_4bits",
    "quantize_matmul_8bits",
    "quantize_matmul_bnb4",
    "quantize_qdq_matmul_2bits",
    "quantize_qdq_matmul_4bits",
]

_Array = npt.NDArray[Any]
_Floats = npt.NDArray[np.float32]
_Bytes = npt.NDArray[np.uint8]

_BLOCK_SIZES = (16, 32, 64, 128, 256)
_LARGEST = np.finfo(np.float32).max
_AT_ONCE = 1 << 21  # weights that are looked at together: bounds the memory of intermediate results
_SEGMENT = 128  # columns that onnxruntime's kernel of QDQ weights packs together


def _destination(function: str, name: str, array: Any, dtype: Any, count: int) -> _Array:
    """The elements of an array that a function fills, in the order of memory."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"{function}(): expected {name} to be an array of {np.dtype(dtype)}, found {found}")
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise TypeError(f"{function}(): expected {name} to be contiguous and writable, as it is filled")
    if array.size < count:
        raise ValueError(f"{function}(): expected {name} to have at least {count} elements, found {array.size}")
    return array.reshape(-1)[:count]


def _matrix(function: str, weight: Any, scales: Any, rows: int, columns: int) -> _Array:
    """The first rows of the weight, in float32, or in float16 where the scales are so too."""
    found = np.asarray(weight)
    if found.dtype.kind not in "fiub":
        raise TypeError(f"{function}(): expected a weight of numbers, found {found.dtype}")
    if rows < 1 or columns < 1 or found.size < rows * columns:
        raise ValueError(f"{function}(): expected a weight of {rows} rows and {columns} columns, found {found.shape}")
    both_half = found.dtype == np.float16 and getattr(scales, "dtype", None) == np.float16
    found = np.ascontiguousarray(found, np.float16 if both_half else np.float32)
    return found.reshape(-1)[: rows * columns].reshape(rows, columns)


def _check_block(function: str, block: int, allowed: tuple[int, ...] | None) -> None:
    if block < 1 or (allowed and block not in allowed):
        expected = ", ".join(map(str, allowed)) if allowed else "at least 1"
        raise RuntimeError(f"{function}(): expected a block size of {expected}, found {block}")


def _round(x: _Floats) -> _Floats:
    """To whole numbers, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.copysign((np.abs(x - whole) >= 0.5).astype(np.float32), x)


def _reciprocal(scale: _Array) -> _Floats:
    wide = scale.astype(np.float32)
    return np.divide(np.float32(1), wide, out=np.zeros_like(wide), where=wide != 0)


def _extremes(blocks: _Floats) -> tuple[_Floats, _Floats]:
    """The smallest and the largest weight along axis 1, of equal ones the first: zeros have signs. NaN does not count."""
    low = np.where(blocks < _LARGEST, blocks, _LARGEST)
    high = np.where(blocks > -_LARGEST, blocks, -_LARGEST)
    first_low, first_high = low.argmin(1)[:, None], high.argmax(1)[:, None]
    return np.take_along_axis(low, first_low, 1)[:, 0], np.take_along_axis(high, first_high, 1)[:, 0]


def _symmetric_scale(blocks: _Floats, half_range: int, dtype: Any) -> _Array:
    low, high = _extremes(blocks)
    largest = np.where(np.abs(high) > np.abs(low), high, low)
    return (-largest / np.float32(half_range)).astype(dtype)


def _scale_and_zero(blocks: _Floats, most: int, dtype: Any) -> tuple[_Array, _Bytes]:
    """Scales, and the codes that mean zero, of blocks whose codes go from 0 to `most`."""
    low, high = _extremes(blocks)
    low, high = np.minimum(low, np.float32(0)), np.maximum(high, np.float32(0))
    scale = (high - low) / np.float32(most)
    zero = np.divide(-low, scale, out=np.zeros_like(low), where=scale != 0)
    return scale.astype(dtype), _round(np.clip(np.nan_to_num(zero), 0, most)).astype(np.uint8)


def _column_groups(weight: _Array, block: int) -> Iterator[tuple[slice, _Floats]]:
    """Some columns at a time, as [blocks, rows of a block, columns]; rows that the last block lacks are NaN."""
    rows, columns = weight.shape
    step = max(1, _AT_ONCE // rows)
    for begin in range(0, columns, step):
        part = slice(begin, min(begin + step, columns))
        padded = np.full((-(-rows // block) * block, part.stop - begin), np.nan, np.float32)
        padded[:rows] = weight[:, part]
        yield part, padded.reshape(-1, block, part.stop - begin)


def _pack(codes: _Bytes, bits: int) -> _Bytes:
    """Puts codes along the last axis into bytes, the first code lowest."""
    each = 8 // bits
    grouped = codes.reshape(*codes.shape[:-1], -1, each) << (np.arange(each, dtype=np.uint8) * bits)
    packed: _Bytes = np.bitwise_or.reduce(grouped, axis=-1)
    return packed


def _fill_last_byte(codes: _Bytes, rows: int, each: int, block: int) -> _Bytes:
    """Rows of codes up to a whole byte: the codes of the byte before come again where its blocks share bytes with these."""
    used = -(-rows // each) * each
    codes[:, rows:used] = 0
    if (used - each) % (block * each) != 0:
        codes[:, rows:used] = codes[:, rows - each : used - each]
    return codes[:, :used]


@dataclass(frozen=True)
class _Call:
    """What a function was given: a weight in blocks down its columns, and the arrays that the function fills."""

    function: str
    source: _Array  # [rows, columns]
    block: int
    packed: Any
    scales: Any
    zeros: Any
    symmetric: bool  # then zeros stay as they are

    @property
    def blocks(self) -> int:
        rows: int = self.source.shape[0]
        return -(-rows // self.block)

    def packed_bytes(self, count: int) -> _Bytes:
        return _destination(self.function, "the packed weight", self.packed, np.uint8, count)

    def scale_of_blocks(self) -> _Array:
        """In the order of memory."""
        count = self.blocks * self.source.shape[1]
        return _destination(self.function, "the scales", self.scales, self.source.dtype, count)

    def zero_bytes(self, count: int) -> _Bytes:
        return _destination(self.function, "the zero points", self.zeros, np.uint8, count)


def _quantize_columns(bits: int, call: _Call) -> None:
    """Blocks down the columns; the packed weight is [columns, blocks, bytes of a block]."""
    source, block, blocks = call.source, call.block, call.blocks
    rows, columns = source.shape
    each, most = 8 // bits, (1 << bits) - 1
    packed = call.packed_bytes(columns * blocks * block // each)
    scales = call.scale_of_blocks().reshape(columns, blocks)
    zeros = None if call.symmetric else call.zero_bytes(columns * -(-blocks // each)).reshape(columns, -1)
    for part, values in _column_groups(source, block):
        zero = np.full((-(-blocks // each) * each, values.shape[2]), 1 << (bits - 1), np.uint8)
        if zeros is None:
            scale = _symmetric_scale(values, 1 << (bits - 1), source.dtype)
        else:
            scale, zero[:blocks] = _scale_and_zero(values, most, source.dtype)
            zeros[part] = _pack(zero.T, bits)
        scales[part] = scale.T
        exact = values * _reciprocal(scale)[:, None] + zero[:blocks, None].astype(np.float32)
        codes = np.clip(np.nan_to_num(_round(exact), nan=0), 0, most).astype(np.uint8)
        codes = codes.reshape(blocks * block, -1).T.copy()
        filled = _pack(_fill_last_byte(codes, rows, each, block), bits)
        packed.reshape(columns, -1)[part, : filled.shape[1]] = filled


def _half_byte_pairs(codes: _Array, columns: int, out: _Bytes, apart: int) -> None:
    """Packs codes of 4 bits in the order of memory, two to a byte.

    Where a row, or 128 columns of it, ends within a byte, its two codes come one after the other, with `apart` bits each.
    """
    at = np.arange(codes.size)
    column = at % columns
    begins, ends = column % _SEGMENT == 0, (column % _SEGMENT == _SEGMENT - 1) | (column == columns - 1)
    alone = np.append(np.where(at % 2, begins, ends), [False] * (codes.size % 2))[::2]
    low, high = codes[::2], np.append(codes[1::2], [0] * (codes.size % 2)).astype(np.uint8)
    mask, last = (1 << apart) - 1, codes.size % 2
    kept = np.full(out.size, 0xFF & ~(mask | mask << apart), np.uint8)
    kept[out.size - last :] |= mask << apart & 0xFF
    separate = out & kept | low & mask | (high & mask) << apart
    out[:] = np.where(alone, separate, low & 15 | high << 4)


def _quantize_rows(apart: int, call: _Call) -> bool:
    """Blocks down the columns, where codes of 4 bits stay in the weight's order. Symmetric codes have a sign.

    Gives whether they do.
    """
    source, block, blocks = call.source, call.block, call.blocks
    rows, columns = source.shape
    packed = call.packed_bytes((rows * columns + 1) // 2)
    scales = call.scale_of_blocks().reshape(blocks, columns)
    codes = np.empty((rows, columns), np.uint8)
    zero = np.zeros((blocks, columns), np.uint8)
    for part, values in _column_groups(source, block):
        if call.symmetric:
            scales[:, part] = _symmetric_scale(values, 8, source.dtype)
        else:
            scales[:, part], zero[:, part] = _scale_and_zero(values, 15, source.dtype)
        exact = _round(values * _reciprocal(scales[:, part])[:, None])
        exact = np.where(np.abs(exact) < 2.0**31, exact, -(2.0**31)) + zero[:, None, part].astype(np.float64)
        least = -8 if call.symmetric else 0
        codes[:, part] = np.clip(exact, least, least + 15).astype(np.int8).reshape(blocks * block, -1)[:rows] & 15
    _half_byte_pairs(codes.reshape(-1), columns, packed, apart)
    if not call.symmetric:
        _half_byte_pairs(zero.reshape(-1), columns, call.zero_bytes((blocks * columns + 1) // 2), apart)
    return call.symmetric


# For each kind (0: FP4, 1: NF4): the least normalised weight of each next code, and the codes. A weight is normalised by
# the largest of its block.
_FP4_STEPS = (0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333)
_FP4_CODES = np.array([0, 1, 6, 7, 4, 5, 2, 3], np.uint8)
_NF4_STEPS = (
    -0.8480964004993439, -0.6106329262256622, -0.4599952697753906, -0.33967943489551544, -0.23460740596055984,
    -0.13791173323988914, -0.045525018125772476, 0.03979014977812767, 0.1202552504837513, 0.2035212516784668,
    0.2920137718319893, 0.3893125355243683, 0.5016634166240692, 0.6427869200706482, 0.8614784181118011,
)  # fmt: skip


def _code_of_4_bits(x: _Floats, kind: int) -> _Bytes:
    steps = np.array(_NF4_STEPS if kind else _FP4_STEPS, np.float32)
    number = np.where(np.isnan(x), 0, np.searchsorted(steps, x if kind else np.abs(x)))
    return number.astype(np.uint8) if kind else _FP4_CODES[number] + np.where(x < 0, 8, 0).astype(np.uint8)


def quantize_matmul_bnb4(
    packed: Any, weight: Any, absmax: Any, block_size: int, quant_type: int, columns: int, rows: int
) -> None:
    """Codes of 4 bits, of FP4 (`quant_type` 0) or NF4 (1), for blocks of the weight as it lies in memory."""
    function = "quantize_matmul_bnb4"
    block, kind = operator.index(block_size), operator.index(quant_type)
    _check_block(function, block, _BLOCK_SIZES)
    if kind not in (0, 1):
        raise RuntimeError(f"{function}(): expected quant_type 0 (FP4) or 1 (NF4), found {kind}")
    source = _matrix(function, weight, absmax, operator.index(rows), operator.index(columns)).reshape(-1)
    packed = _destination(function, "the packed weight", packed, np.uint8, (source.size + 1) // 2)
    absmax = _destination(function, "the largest weights", absmax, source.dtype, -(-source.size // block))
    step = _AT_ONCE // block * block
    for begin in range(0, source.size, step):
        part = source[begin : begin + step].astype(np.float32)
        values = np.append(part, np.zeros(-part.size % block, np.float32)).reshape(-1, block)
        largest = np.fmax.reduce(np.abs(values), axis=1, initial=0)
        absmax[begin // block :][: largest.size] = largest
        with np.errstate(invalid="ignore"):
            codes = _code_of_4_bits(values * _reciprocal(largest)[:, None], kind).reshape(-1)
        pairs = codes[::2] << 4 | codes[1::2]
        packed[begin // 2 :][: (part.size + 1) // 2] = pairs[: (part.size + 1) // 2]


def _named(
    bits: int, quantize: Callable[[int, _Call], Any], name: str, block_sizes: tuple[int, ...] | None
) -> Callable[..., Any]:
    def function(
        packed: Any, weight: Any, scales: Any, zeros: Any, block_size: int, columns: int, rows: int, symmetric: bool
    ) -> Any:
        block, width, height = map(operator.index, (block_size, columns, rows))
        _check_block(name, block, block_sizes)
        with np.errstate(all="ignore"):
            source = _matrix(name, weight, scales, height, width)
            return quantize(bits, _Call(name, source, block, packed, scales, zeros, bool(symmetric)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = quantize.__doc__
    return function


quantize_matmul_2bits = _named(2, _quantize_columns, "quantize_matmul_2bits", _BLOCK_SIZES)
quantize_matmul_4bits = _named(4, _quantize_columns, "quantize_matmul_4bits", _BLOCK_SIZES)
quantize_matmul_8bits = _named(8, _quantize_columns, "quantize_matmul_8bits", _BLOCK_SIZES)
# onnxruntime's function for 2 bits makes codes of 4 bits too; it is named here because programs ask for it.
quantize_qdq_matmul_2bits = _named(2, _quantize_rows, "quantize_qdq_matmul_2bits", None)
quantize_qdq_matmul_4bits = _named(4, _quantize_rows, "quantize_qdq_matmul_4bits", None)
