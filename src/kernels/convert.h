#pragma once
// Conversion between element types, by ONNX Cast's rules, on contiguous rows.
//
// Memory form: one byte per element for 8 bits and less; int4 and int2 sign-extended, uint4, uint2 and float4e2m1 in
// the low bits.
//
// What the specification leaves open, fixed here for every instruction set:
// - float to int32: truncated; NaN and what does not fit give INT32_MIN. To int64 likewise INT64_MIN.
// - float to narrower integers: the low bits of the conversion to int32. To uint32: the low bits of that to int64.
// - float to uint64: as int64 below 2^63, exact from there to 2^64, otherwise 2^63.
// - float to float rounds to nearest, ties to even, once (double to float16 included); overflow gives infinity.
// - to float8 types: as the table of the specification, by `saturate`. To float8e8m0: the exponent, rounded as asked;
// the
//   sign is ignored; NaN for NaN.
// - to float4e2m1: to nearest even, saturating; NaN gives -0.0's pattern.

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

// Elements per tile: what convert() stages on the stack between two steps.
inline constexpr size_t kTile = 512;

// The steps from one type to another: at most storage -> its compute type -> the other's compute type -> storage.
// No steps: a copy. Complex types convert to themselves and each other only; strings not at all.
TileConverter make_converter(ElementType from, ElementType to, const CastOptions& options = {});
bool can_convert(ElementType from, ElementType to);

// `in` and `out` may be the same memory when both types have the same width. Many elements are converted in pieces,
// between which it asks whether to stop.
void convert(const TileConverter& converter, const void* in, void* out, size_t n);

// One-off form.
void cast(ElementType from, ElementType to, const void* in, void* out, size_t n, const CastOptions& options = {});

}  // namespace treadle::kernels
