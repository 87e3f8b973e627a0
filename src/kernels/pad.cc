#include <algorithm>
#include <cstring>

#include "base/in_pieces.h"
#include "kernels/move.h"

namespace treadle::kernels {

namespace {

// Where index i, which lies outside [0, n), is read from; -1 for the constant.
int64_t source_index(PadMode mode, int64_t i, int64_t n) {
  switch (mode) {
    case PadMode::kConstant:
      return -1;
    case PadMode::kEdge:
      return i < 0 ? 0 : n - 1;
    case PadMode::kWrap: {
      const int64_t rest = i % n;
      return rest < 0 ? rest + n : rest;
    }
    case PadMode::kReflect: {
      if (n == 1) return 0;
      const int64_t period = 2 * (n - 1);
      int64_t rest = i % period;
      if (rest < 0) rest += period;
      return rest < n ? rest : period - rest;
    }
  }
  return -1;
}

int64_t source_index_anywhere(PadMode mode, int64_t i, int64_t n) {
  return i >= 0 && i < n ? i : source_index(mode, i, n);
}

// About what it takes to find the place of an element of the border.
constexpr double kRepeatedNs = 6;

// The last padded dimension: `from` is its index 0 in the input, null where everything is constant.
void pad_line(const PadPlan& plan, const std::byte* from, const void* value, std::byte* to, StopPoll& stop) {
  const int last = plan.rank - 1;
  const int64_t n = plan.in_dims[last];
  const int64_t before = plan.before[last];
  const int64_t after = plan.out_dims[last] - before - n;
  const size_t unit_elements = plan.unit / plan.width;
  const auto constant = [&](int64_t count) {
    fill(plan.width, value, to, static_cast<size_t>(count) * unit_elements);
    to += static_cast<size_t>(count) * plan.unit;
  };
  const auto border = [&](int64_t first, int64_t count) {
    if (plan.mode == PadMode::kConstant) return constant(count);
    in_pieces(count, kRepeatedNs + kByteNs * static_cast<double>(plan.unit), stop, [&](int64_t begin, int64_t end) {
      for (int64_t i = first + begin; i < first + end; ++i, to += plan.unit) {
        std::memcpy(to, from + source_index(plan.mode, i, n) * static_cast<int64_t>(plan.unit), plan.unit);
      }
    });
  };
  if (from == nullptr) return constant(plan.out_dims[last]);
  border(-before, before);
  copy_in_pieces(to, from, static_cast<size_t>(n) * plan.unit);
  to += static_cast<size_t>(n) * plan.unit;
  border(n, after);
}

}  // namespace

void PadPlan::operator()(const void* input, const void* value, void* output) const {
  if (empty) return;
  const std::byte* base = static_cast<const std::byte*>(input) + offset;
  std::byte* to = static_cast<std::byte*>(output);
  if (rank == 0) {
    copy_in_pieces(to, base, unit);
    return;
  }
  StopPoll stop;
  const size_t line = static_cast<size_t>(out_dims[rank - 1]) * unit;
  int64_t index[kMaxMoveDims] = {};
  for (;;) {
    const std::byte* from = base;
    for (int d = 0; d < rank - 1 && from != nullptr; ++d) {
      const int64_t i = source_index_anywhere(mode, index[d] - before[d], in_dims[d]);
      from = i < 0 ? nullptr : from + i * in_strides[d];
    }
    pad_line(*this, from, value, to, stop);
    if (stop.after(kByteNs * static_cast<double>(line))) return;
    to += line;
    int d = rank - 2;
    for (; d >= 0 && ++index[d] == out_dims[d]; --d) index[d] = 0;
    if (d < 0) return;
  }
}

int64_t PadPlan::source(int64_t i) const {
  const auto unit_elements = static_cast<int64_t>(unit / width);
  int64_t from = offset / width + i % unit_elements;
  i /= unit_elements;
  for (int d = rank; d-- > 0; i /= out_dims[d]) {
    const int64_t at = source_index_anywhere(mode, i % out_dims[d] - before[d], in_dims[d]);
    if (at < 0) return -1;
    from += at * in_strides[d] / width;
  }
  return from;
}

Status prepare_pad(PadPlan* plan, PadMode mode, size_t width, std::span<const int64_t> dims,
                   std::span<const int64_t> before, std::span<const int64_t> after) {
  *plan = PadPlan();
  plan->mode = mode;
  plan->width = static_cast<uint8_t>(width);
  size_t rank = 0;  // up to the last dimension that changes
  for (size_t d = 0; d < dims.size(); ++d) {
    if (before[d] != 0 || after[d] != 0) rank = d + 1;
  }
  if (rank > kMaxMoveDims) return error(Code::kLimit, "Pad of more than {} dimensions", kMaxMoveDims);
  plan->rank = static_cast<uint8_t>(rank);
  int64_t stride = static_cast<int64_t>(width);
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] + before[d] + after[d] == 0) plan->empty = true;
    if (d >= rank) {
      stride *= dims[d];
      plan->unit = static_cast<size_t>(stride);
      continue;
    }
    const int64_t crop_before = std::max<int64_t>(-before[d], 0);
    const int64_t crop_after = std::max<int64_t>(-after[d], 0);
    const int64_t size = dims[d] - crop_before - crop_after;
    if (size < 0)
      return error(Code::kRuntime, "Pad takes {} elements off an axis of {}", crop_before + crop_after, dims[d]);
    const bool grows = before[d] > 0 || after[d] > 0;
    if (size == 0 && grows && mode != PadMode::kConstant) {
      return error(Code::kRuntime, "Pad repeats elements of an axis that has none");
    }
    plan->in_dims[d] = size;
    plan->before[d] = std::max<int64_t>(before[d], 0);
    plan->out_dims[d] = size + plan->before[d] + std::max<int64_t>(after[d], 0);
    plan->in_strides[d] = stride;
    plan->offset += crop_before * stride;
    stride *= dims[d];
  }
  if (rank == dims.size()) plan->unit = width;
  return {};
}

}  // namespace treadle::kernels
