#include <algorithm>
#include <cstring>

#include "base/in_pieces.h"
#include "kernels/costs.h"
#include "kernels/move.h"
#include "kernels/types.h"

namespace treadle::kernels {

namespace {

// The index from which index i, outside [0, n), is filled; -1: the constant.
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

// Pads a line of the last padded dimension. `from`: index 0 in the input.
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
    in_pieces(count, costs::kPaddedElementNs + kByteNs * static_cast<double>(plan.unit), stop,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = first + begin; i < first + end; ++i, to += plan.unit) {
                  std::memcpy(to, from + source_index(plan.mode, i, n) * static_cast<int64_t>(plan.unit), plan.unit);
                }
              });
  };
  border(-before, before);
  copy_in_pieces(to, from, static_cast<size_t>(n) * plan.unit);
  to += static_cast<size_t>(n) * plan.unit;
  border(n, after);
}

// Copies up to 64 bytes whose number is unknown to the compiler: a part from each end; the parts may overlap.
[[gnu::always_inline]] inline void copy_few(std::byte* to, const std::byte* from, size_t bytes) {
  const auto from_both_ends = [=]<size_t kPart>(std::integral_constant<size_t, kPart>) {
    std::byte first[kPart], last[kPart];
    std::memcpy(first, from, kPart);
    std::memcpy(last, from + bytes - kPart, kPart);
    std::memcpy(to, first, kPart);
    std::memcpy(to + bytes - kPart, last, kPart);
  };
  if (bytes >= 32) return from_both_ends(std::integral_constant<size_t, 32>());
  if (bytes >= 16) return from_both_ends(std::integral_constant<size_t, 16>());
  if (bytes >= 8) return from_both_ends(std::integral_constant<size_t, 8>());
  if (bytes >= 4) return from_both_ends(std::integral_constant<size_t, 4>());
  for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

// Writes the result in its order, dimension by dimension.
class PadWalk {
 public:
  PadWalk(const PadPlan& plan, const void* value, std::byte* to) : plan_(plan), value_(value), to_(to) {
    const int last = plan.rank - 1;
    size_t bytes = plan.unit;
    for (int d = last; d >= 0; --d) {
      block_[d] = bytes;
      bytes *= static_cast<size_t>(plan.out_dims[d]);
    }
    n_ = plan.in_dims[last];
    before_ = plan.before[last];
    after_ = plan.out_dims[last] - before_ - n_;
    const bool repeats = plan.mode != PadMode::kConstant;
    is_short_ = plan.unit == plan.width && plan.width <= 8 && before_ <= kBorder && after_ <= kBorder &&
                plan.out_dims[last] <= kShortLine;
    for (int64_t i = 0; is_short_ && repeats && i < before_; ++i) first_[i] = source_index(plan.mode, i - before_, n_);
    for (int64_t i = 0; is_short_ && repeats && i < after_; ++i) behind_[i] = source_index(plan.mode, n_ + i, n_);
  }

  // Writes the positions of dimension d and of the dimensions inside it. `from`: the first position in the input. False
  // if told to stop.
  bool along(int d, const std::byte* from) {
    if (d == plan_.rank - 1) return line(from);
    const int64_t n = plan_.in_dims[d], before = plan_.before[d], stride = plan_.in_strides[d];
    const int64_t after = plan_.out_dims[d] - before - n;
    const auto border = [&](int64_t first, int64_t count) {
      if (plan_.mode == PadMode::kConstant) return constant(static_cast<size_t>(count) * block_[d]);
      for (int64_t i = first; i < first + count; ++i) {
        if (!along(d + 1, from + source_index(plan_.mode, i, n) * stride)) return false;
      }
      return true;
    };
    if (!border(-before, before)) return false;
    for (int64_t i = 0; i < n; ++i) {
      if (!along(d + 1, from + i * stride)) return false;
    }
    return border(n, after);
  }

 private:
  static constexpr int64_t kBorder = 32, kShortLine = 4096;

  bool constant(size_t bytes) {
    const bool goes_on = in_pieces(
        static_cast<int64_t>(bytes / plan_.width), kByteNs * plan_.width, stop_, [&](int64_t begin, int64_t end) {
          fill(plan_.width, value_, to_ + static_cast<size_t>(begin) * plan_.width, static_cast<size_t>(end - begin));
        });
    to_ += bytes;
    return goes_on;
  }

  bool line(const std::byte* from) {
    const size_t bytes = static_cast<size_t>(plan_.out_dims[plan_.rank - 1]) * plan_.unit;
    if (!is_short_) {
      pad_line(plan_, from, value_, to_, stop_);
    } else {
      with_width(plan_.width, [&](auto zero) { short_line<decltype(zero)>(from); });
    }
    to_ += bytes;
    return !stop_.after(kByteNs * static_cast<double>(bytes));
  }

  template <class T>
  void short_line(const std::byte* from) const {
    const auto border = [&](std::byte* to, const int64_t* sources, int64_t count) {
      if (plan_.mode == PadMode::kConstant) {
        T value;
        std::memcpy(&value, value_, sizeof(T));
        for (int64_t i = 0; i < count; ++i, to += sizeof(T)) std::memcpy(to, &value, sizeof(T));
        return;
      }
      for (int64_t i = 0; i < count; ++i, to += sizeof(T))
        std::memcpy(to, from + sources[i] * int64_t{sizeof(T)}, sizeof(T));
    };
    constexpr size_t kFew = 64;
    const size_t bytes = static_cast<size_t>(n_) * sizeof(T);
    std::byte* const middle = to_ + static_cast<size_t>(before_) * sizeof(T);
    border(to_, first_, before_);
    if (bytes <= kFew) {
      copy_few(middle, from, bytes);
    } else {
      std::memcpy(middle, from, bytes);
    }
    border(middle + bytes, behind_, after_);
  }

  const PadPlan& plan_;
  const void* value_;
  std::byte* to_;
  StopPoll stop_;
  size_t block_[kMaxMoveDims] = {};         // bytes of the result at one position of a dimension
  int64_t n_ = 0, before_ = 0, after_ = 0;  // sizes of a line
  bool is_short_ = false;
  int64_t first_[kBorder], behind_[kBorder];  // sources of a short line's borders
};

}  // namespace

void PadPlan::operator()(const void* input, const void* value, void* output) const {
  if (empty) return;
  const std::byte* base = static_cast<const std::byte*>(input) + offset;
  if (rank == 0) {
    copy_in_pieces(output, base, unit);
    return;
  }
  PadWalk(*this, value, static_cast<std::byte*>(output)).along(0, base);
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
  size_t rank = 0;  // dimensions up to the last one that changes
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
      return error(Code::kRuntime, "pads take {} elements off axis {}, expected at most its size {}",
                   crop_before + crop_after, d, dims[d]);
    const bool grows = before[d] > 0 || after[d] > 0;
    if (size == 0 && grows && mode != PadMode::kConstant) {
      return error(Code::kRuntime, "Pad repeats elements of an axis that has none, expected at least one");
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
