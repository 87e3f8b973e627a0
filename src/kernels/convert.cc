#include "kernels/convert.h"

#include <algorithm>
#include <cstring>

#include "base/in_pieces.h"
#include "base/status.h"
#include "kernels/costs.h"
#include "kernels/dispatch.h"
#include "kernels/isa/tables.h"

namespace treadle::kernels {

namespace {

bool is_complex(ElementType type) {
  return type == ElementType::kComplex64 || type == ElementType::kComplex128;
}

ConvertRow store_row(const KernelTable& table, ElementType to, const CastOptions& options) {
  const auto at = static_cast<int>(to);
  if (to == ElementType::kFloat8e8m0) {
    return table.store_e8m0[options.saturate ? 1 : 0][static_cast<int>(options.rounding)];
  }
  const bool unsaturated = !options.saturate && table.store_unsaturated[at] != nullptr;
  return unsaturated ? table.store_unsaturated[at] : table.store[at];
}

void add_step(TileConverter* converter, ConvertRow step) {
  if (step != nullptr) converter->steps[converter->step_count++] = step;
}

}  // namespace

bool can_convert(ElementType from, ElementType to) {
  if (from == to || (is_complex(from) && is_complex(to))) return !is_string(from);
  return compute_type(from) != ComputeType::kNone && compute_type(to) != ComputeType::kNone;
}

TileConverter make_converter(ElementType from, ElementType to, const CastOptions& options) {
  TREADLE_ASSERT(can_convert(from, to));
  TileConverter converter;
  converter.from_width = static_cast<uint8_t>(byte_width(from));
  converter.to_width = static_cast<uint8_t>(byte_width(to));
  if (from == to) return converter;
  const KernelTable& table = kernels();
  if (is_complex(from)) {
    add_step(&converter, to == ElementType::kComplex128 ? table.complex64_to_128 : table.complex128_to_64);
    return converter;
  }
  const ComputeType source = compute_type(from);
  const ComputeType target = compute_type(to);
  const ConvertRow store = store_row(table, to, options);
  add_step(&converter, table.load[static_cast<int>(from)]);
  const bool twice_rounded = source == ComputeType::kF64 && target == ComputeType::kF32 && store != nullptr;
  add_step(&converter,
           twice_rounded ? table.f64_to_f32_odd : table.cast[static_cast<int>(source)][static_cast<int>(target)]);
  add_step(&converter, store);
  converter.direct = table.direct[static_cast<int>(from)][static_cast<int>(to)];
  return converter;
}

namespace {

// Two or three steps, through buffers on the stack.
template <size_t kElements>
void convert_by_tiles(const TileConverter& converter, const std::byte* from, std::byte* to, size_t n) {
  alignas(64) std::byte first[kElements * 8];
  alignas(64) std::byte second[kElements * 8];
  for (; n > 0; n -= std::min(n, kElements)) {
    const size_t count = std::min(n, kElements);
    converter.steps[0](from, first, count);
    if (converter.step_count == 2) {
      converter.steps[1](first, to, count);
    } else {
      converter.steps[1](first, second, count);
      converter.steps[2](second, to, count);
    }
    from += count * converter.from_width;
    to += count * converter.to_width;
  }
}

}  // namespace

void convert(const TileConverter& converter, const void* in, void* out, size_t n) {
  constexpr auto kMany = static_cast<size_t>(kShortNs / costs::kConvertedElementNs);
  if (n > kMany) [[unlikely]] {
    in_pieces(static_cast<int64_t>(n), costs::kConvertedElementNs, [&](int64_t begin, int64_t end) {
      convert(converter, static_cast<const std::byte*>(in) + begin * converter.from_width,
              static_cast<std::byte*>(out) + begin * converter.to_width, static_cast<size_t>(end - begin));
    });
    return;
  }
  if (converter.direct != nullptr) return converter.direct(in, out, n);
  if (converter.step_count == 1) return converter.steps[0](in, out, n);
  if (converter.step_count == 0) {
    if (in != out && n != 0) std::memcpy(out, in, n * converter.from_width);  // memcpy forbids null even for 0 bytes
    return;
  }
  const std::byte* from = static_cast<const std::byte*>(in);
  std::byte* to = static_cast<std::byte*>(out);
  if (n <= 16) return convert_by_tiles<16>(converter, from, to, n);
  convert_by_tiles<kTile>(converter, from, to, n);
}

void cast(ElementType from, ElementType to, const void* in, void* out, size_t n, const CastOptions& options) {
  convert(make_converter(from, to, options), in, out, n);
}

}  // namespace treadle::kernels
