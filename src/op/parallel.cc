#include "op/parallel.h"

#include "kernels/costs.h"

namespace treadle {

void parallel_convert(const kernels::TileConverter& converter, const void* from, void* to, size_t count) {
  parallel_for(static_cast<int64_t>(count), costs::kConvertedElementNs, [&](int64_t begin, int64_t end, int) {
    kernels::convert(converter, static_cast<const std::byte*>(from) + begin * converter.from_width,
                     static_cast<std::byte*>(to) + begin * converter.to_width, static_cast<size_t>(end - begin));
  });
}

void parallel_normalize(const kernels::NormRows& norm, const void* x, const void* scale, const void* bias, void* y,
                        void* mean, void* inv_std) {
  const auto from = static_cast<int64_t>(norm.n * byte_width(norm.type));
  const auto to = static_cast<int64_t>(norm.n * byte_width(norm.scale_type));
  const int64_t statistic = compute_type(norm.type) == ComputeType::kF64 ? 8 : 4;
  const auto at = [](void* results, int64_t offset) {
    return results ? static_cast<std::byte*>(results) + offset : nullptr;
  };
  parallel_for(static_cast<int64_t>(norm.rows), costs::kNormalizedElementNs * static_cast<double>(norm.n),
               [&](int64_t begin, int64_t end, int) {
                 kernels::NormRows part = norm;
                 part.rows = static_cast<size_t>(end - begin);
                 part(static_cast<const std::byte*>(x) + begin * from, scale, bias, at(y, begin * to),
                      at(mean, begin * statistic), at(inv_std, begin * statistic));
               });
}

}  // namespace treadle
