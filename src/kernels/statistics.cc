#include "kernels/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/in_pieces.h"
#include "kernels/convert.h"
#include "kernels/isa/each.h"

namespace treadle::kernels {

// Of elements whose least normal number is `normal`.
TREADLE_IN_EACH_ISA(Statistics statistics_of_floats(const float* x, int64_t count, float normal);)
TREADLE_IN_EACH_ISA(Statistics statistics_of_doubles(const double* x, int64_t count, double normal);)

double Statistics::mean() const {
  return finite() > 0 ? sum / static_cast<double>(finite()) : std::numeric_limits<double>::quiet_NaN();
}

double Statistics::norm() const {
  return std::sqrt(squares);
}

void Statistics::add(const Statistics& other) {
  count += other.count;
  nan += other.nan;
  infinite += other.infinite;
  zero += other.zero;
  denormal += other.denormal;
  low = std::min(low, other.low);
  high = std::max(high, other.high);
  sum += other.sum;
  squares += other.squares;
}

namespace {

// Fewer than a converter is worth making for.
constexpr int64_t kFew = 8;

bool is_common_integer(ElementType type) {
  return type == ElementType::kInt64 || type == ElementType::kInt32 || type == ElementType::kBool ||
         type == ElementType::kUint8;
}

double integer_at(ElementType type, const std::byte* x, int64_t i) {
  if (type == ElementType::kInt64) return static_cast<double>(reinterpret_cast<const int64_t*>(x)[i]);
  if (type == ElementType::kInt32) return reinterpret_cast<const int32_t*>(x)[i];
  return static_cast<double>(std::to_integer<int>(x[i]));
}

Statistics of_part(ElementType type, const std::byte* x, int64_t count) {
  const Isa isa = preferred_isa();
  const double normal = least_normal(type);
  if (type == ElementType::kFloat) {
    return TREADLE_OF_ISA(isa, statistics_of_floats)(reinterpret_cast<const float*>(x), count,
                                                     static_cast<float>(normal));
  }
  const auto run = TREADLE_OF_ISA(isa, statistics_of_doubles);
  if (type == ElementType::kDouble) return run(reinterpret_cast<const double*>(x), count, normal);
  if (count <= kFew && is_common_integer(type)) {
    double few[kFew];
    for (int64_t i = 0; i < count; ++i) few[i] = integer_at(type, x, i);
    return run(few, count, normal);
  }
  const TileConverter converter = make_converter(type, ElementType::kDouble);
  const auto tile = static_cast<int64_t>(kTile);
  const auto width = static_cast<int64_t>(byte_width(type));
  Statistics all;
  double numbers[kTile];
  for (int64_t begin = 0; begin < count; begin += tile) {
    const int64_t size = std::min(tile, count - begin);
    convert(converter, x + begin * width, numbers, static_cast<size_t>(size));
    all.add(run(numbers, size, normal));
  }
  return all;
}

}  // namespace

bool has_statistics(ElementType type) {
  return type != ElementType::kUndefined && !is_string(type);
}

ElementType part_of(ElementType type) {
  if (type == ElementType::kComplex64) return ElementType::kFloat;
  return type == ElementType::kComplex128 ? ElementType::kDouble : type;
}

double least_normal(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kBfloat16:
    case ElementType::kComplex64:
      return 0x1p-126;
    case ElementType::kDouble:
    case ElementType::kComplex128:
      return 0x1p-1022;
    case ElementType::kFloat16:
      return 0x1p-14;
    case ElementType::kFloat8e4m3fn:
      return 0x1p-6;
    case ElementType::kFloat8e4m3fnuz:
      return 0x1p-7;
    case ElementType::kFloat8e5m2:
      return 0x1p-14;
    case ElementType::kFloat8e5m2fnuz:
      return 0x1p-15;
    case ElementType::kFloat4e2m1:
      return 1;
    default:
      return 0;
  }
}

Statistics statistics_of(ElementType type, const void* x, int64_t count) {
  const ElementType part = part_of(type);
  if (part != type) count *= 2;
  constexpr int64_t kAtOnce = 4096;
  if (count <= kAtOnce) return of_part(part, static_cast<const std::byte*>(x), count);
  Statistics all;
  const auto width = static_cast<int64_t>(byte_width(part));
  in_pieces(count, kByteNs * static_cast<double>(width), [&](int64_t begin, int64_t end) {
    all.add(of_part(part, static_cast<const std::byte*>(x) + begin * width, end - begin));
  });
  return all;
}

}  // namespace treadle::kernels
