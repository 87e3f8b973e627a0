#pragma once
// Conversion between element types on contiguous rows, by the rules of ONNX's Cast.
//
// In memory an element of 8 bits or less takes one byte. int4 and int2 are sign-extended; uint4, uint2 and float4e2m1
// are in the low bits.
//
// The specification leaves these cases open; every instruction set treats them as follows:
// - float to int32: truncated; NaN and values out of range give INT32_MIN. Float to int64: likewise with INT64_MIN.
// - float to narrower integers: the low bits of the conversion to int32. To uint32: the low bits of the conversion to
//   int64.
// - float to uint64: as int64 below 2^63, exact from there to 2^64, otherwise 2^63.
// - float to float: rounded once to nearest, ties to even (double to float16 included); overflow gives infinity.
// - to float8 types: as the specification's table, by `saturate`. To float8e8m0: the exponent, rounded as asked; the
//   sign is ignored; NaN for NaN.
// - to float4e2m1: to nearest even, saturating; NaN gives the pattern of -0.0.

#include <cstddef>
#include <cstdint>

#include "base/float_formats.h"
#include "kernels/table.h"
#include "type/element_type.h"

namespace treadle::kernels {

struct CastOptions {
  bool saturate = true;  // float8 results only
  E8m0Rounding rounding = E8m0Rounding::kUp;
};

// Elements per tile: convert() stages so many on the stack between two steps.
inline constexpr size_t kTile = 512;

// The steps from one type to another, at most: storage -> its compute type -> the target's compute type -> target's
// storage. No steps mean a copy. A complex type converts to itself and to the other complex type only. Strings do not
// convert.
TileConverter make_converter(ElementType from, ElementType to, const CastOptions& options = {});
bool can_convert(ElementType from, ElementType to);

// `in` and `out` may be the same memory if both types have the same width. Many elements are converted in pieces;
// between pieces, convert() asks whether to stop.
void convert(const TileConverter& converter, const void* in, void* out, size_t n);

// make_converter() and convert() in one call.
void cast(ElementType from, ElementType to, const void* in, void* out, size_t n, const CastOptions& options = {});

}  // namespace treadle::kernels
