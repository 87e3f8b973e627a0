#include "kernels/conv_folded.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "kernels/isa/conv/folded.h"

namespace treadle::kernels {

namespace {

// The cost of folding, in products, where a plain convolution reads its input and stores its results in place: each
// result is copied to its position, and each value of an input with several channels is copied into a row.
constexpr int64_t kStoreWork = 28, kCopyWork = 10;
constexpr double kWorthwhile = 0.8;  // safety margin: counts of products are not times

// A plain convolution copies its input or its results too if there are few positions, or one channel with long strides.
bool plain_copies(const ConvShape& shape) {
  constexpr int64_t kFewPositions = 8, kLongStride = 8;
  const auto positions =
      std::accumulate(shape.output.begin(), shape.output.begin() + shape.axes, int64_t{1}, std::multiplies<>());
  return positions <= kFewPositions ||
         (shape.in_channels == 1 && shape.stride[static_cast<size_t>(shape.axes) - 1] >= kLongStride);
}

int64_t taps_of(const ConvShape& shape) {
  return std::accumulate(shape.kernel.begin(), shape.kernel.begin() + shape.axes, int64_t{1}, std::multiplies<>());
}

}  // namespace

bool may_fold(const ConvShape& shape) {
  if (shape.transposed || shape.groups != 1) return false;
  const auto is_long = [](int64_t size) { return size > 1; };
  return std::count_if(shape.kernel.begin(), shape.kernel.begin() + shape.axes, is_long) == 1 &&
         may_fold(shape.out_channels, shape.in_channels, taps_of(shape));
}

Fold fold_weights(ComputeType type, const ConvShape& shape, const void* weights) {
  const int64_t filters = shape.out_channels, channels = shape.in_channels, taps = taps_of(shape);
  if (type == ComputeType::kF64) return fold_filters(static_cast<const double*>(weights), filters, channels, taps).fold;
  return fold_filters(static_cast<const float*>(weights), filters, channels, taps).fold;
}

bool pays(const Fold& fold, const ConvShape& shape) {
  if (fold.split_count == 0) return false;
  if (const std::string_view wanted = ScopedConvMethod::current(); !wanted.empty()) return wanted == kFoldedMethod;
  int64_t work = fold.work;
  if (!plain_copies(shape)) {
    work += kStoreWork * fold.filters;
    if (fold.channels > 1) work += kCopyWork * fold.channels * fold.lists[0].length;
  }
  return static_cast<double>(work) < kWorthwhile * static_cast<double>(fold.plain_work);
}

void fold_conv(ConvPlan& plan, const Fold& fold) {
  return TREADLE_OF_ISA(preferred_isa(), fold_conv)(plan, fold);
}

void make_folded_table(const ConvPlan& plan, const Fold& fold, void* table) {
  return TREADLE_OF_ISA(preferred_isa(), make_folded_table)(plan, fold, table);
}

}  // namespace treadle::kernels
