#include "ops/quant/rows.h"

#include <algorithm>

namespace treadle::quant {

namespace {

constexpr size_t kTile = kernels::kTile;

bool is_byte(ElementType type) {
  return type == ElementType::kUint8 || type == ElementType::kInt8;
}

}  // namespace

LevelRange levels_of(ElementType type) {
  const int bits = info(type).file_bits;
  if (!is_signed_integer(type)) return {0, (int32_t{1} << bits) - 1};
  const int32_t half = int32_t{1} << (bits - 1);
  return {-half, half - 1};
}

QuantizeRows::QuantizeRows(ElementType x, ElementType to_type, ElementType precision, bool saturate)
    : to(to_type),
      widen(kernels::make_converter(x, ElementType::kFloat)),
      rows(&kernels::quantize_kernels()),
      integers(is_integer(to_type)),
      bytes(x == ElementType::kFloat && is_byte(to_type)),
      rounds(precision == ElementType::kFloat16 || precision == ElementType::kBfloat16),
      x_width(byte_width(x)),
      out_width(byte_width(to_type)) {
  if (rounds) {
    round = kernels::make_converter(ElementType::kFloat, precision);
    unround = kernels::make_converter(precision, ElementType::kFloat);
  }
  if (integers) {
    narrow = kernels::make_converter(ElementType::kInt32, to);
    const LevelRange range = levels_of(to);
    low = static_cast<float>(range.low);
    high = static_cast<float>(range.high);
  } else {
    narrow = kernels::make_converter(ElementType::kFloat, to, {.saturate = saturate});
  }
}

void QuantizeRows::operator()(const void* x, const RowScale& row, void* out, size_t n) const {
  if (bytes && !rounds && row.step == 0) {
    return rows->to_bytes(static_cast<const float*>(x), *row.scale, row.zero ? *row.zero : 0, to == ElementType::kInt8,
                          out, n);
  }
  alignas(64) float values[kTile];
  alignas(64) int32_t levels[kTile];
  uint16_t rounded[kTile];
  for (size_t begin = 0; begin < n; begin += kTile) {
    const size_t count = std::min(kTile, n - begin);
    const size_t at = begin * row.step;
    void* result = static_cast<std::byte*>(out) + begin * out_width;
    kernels::convert(widen, static_cast<const std::byte*>(x) + begin * x_width, values, count);
    rows->divide(values, row.scale + at, row.step, values, count);
    if (rounds) {
      kernels::convert(round, values, rounded, count);
      kernels::convert(unround, rounded, values, count);
    }
    if (!integers) {
      kernels::convert(narrow, values, result, count);
      continue;
    }
    rows->round(values, row.zero ? row.zero + at : nullptr, row.step, low, high, levels, count);
    kernels::convert(narrow, levels, result, count);
  }
}

DequantizeRows::DequantizeRows(ElementType x, ElementType to)
    : widen(kernels::make_converter(x, is_integer(x) ? ElementType::kInt32 : ElementType::kFloat)),
      narrow(kernels::make_converter(ElementType::kFloat, to)),
      rows(&kernels::quantize_kernels()),
      integers(is_integer(x)),
      bytes(is_byte(x) && to == ElementType::kFloat),
      is_signed(x == ElementType::kInt8),
      x_width(byte_width(x)),
      out_width(byte_width(to)) {}

void DequantizeRows::operator()(const void* x, const RowScale& row, void* out, size_t n) const {
  if (bytes && row.step == 0) {
    return rows->from_bytes(x, *row.scale, row.zero ? *row.zero : 0, is_signed, static_cast<float*>(out), n);
  }
  alignas(64) float values[kTile];
  alignas(64) int32_t levels[kTile];
  for (size_t begin = 0; begin < n; begin += kTile) {
    const size_t count = std::min(kTile, n - begin);
    const size_t at = begin * row.step;
    const void* source = static_cast<const std::byte*>(x) + begin * x_width;
    if (integers) {
      kernels::convert(widen, source, levels, count);
      rows->centre(levels, row.zero ? row.zero + at : nullptr, row.step, values, count);
    } else {
      kernels::convert(widen, source, values, count);
    }
    rows->multiply(values, row.scale + at, row.step, values, count);
    kernels::convert(narrow, values, static_cast<std::byte*>(out) + begin * out_width, count);
  }
}

}  // namespace treadle::quant
