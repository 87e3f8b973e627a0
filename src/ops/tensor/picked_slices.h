#pragma once
// Slices of a tensor that depend on its data, for NonZero, Compress and Unique.

#include <cstdint>
#include <optional>
#include <span>

#include "base/unset.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle::tensor_ops {

using Positions = UnsetVector<int64_t>;

// A tensor as `count` slices, each of `outer` runs of `inner` elements, along one axis; without an axis every element
// is a slice.
struct Slices {
  int64_t outer = 1, count = 1, inner = 1;

  Slices(const Dims& dims, std::optional<int64_t> axis) {
    for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
      const int64_t size = dims[static_cast<size_t>(i)];
      (!axis || i == *axis ? count : i < *axis ? outer : inner) *= size;
    }
  }
};

inline Result<std::optional<int64_t>> optional_axis(const ir::Attributes& attributes, int64_t rank) {
  const ir::Attribute* axis = attributes.find("axis");
  if (!axis) return std::optional<int64_t>();
  TREADLE_ASSIGN(const int64_t a, normalize_axis(axis->as_int(), rank));
  return std::optional<int64_t>(a);
}

// Output 0: the slices of `in` that `which` names, in that order.
inline Status pick_slices(ComputeContext& c, const Tensor& in, std::optional<int64_t> axis,
                          std::span<const int64_t> which) {
  const auto count = static_cast<int64_t>(which.size());
  Dims dims{count};
  if (axis) {
    dims = in.dims();
    dims[static_cast<size_t>(*axis)] = count;
  }
  TREADLE_ASSIGN(Tensor * out, c.allocate(0, in.type(), std::move(dims)));
  if (out->element_count() == 0) return {};
  const Slices s(in.dims(), axis);
  const size_t width = byte_width(in.type());
  int64_t to = 0;
  StopPoll stop;
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t slice : which) {
      const int64_t from = (o * s.count + slice) * s.inner;
      if (is_string(in.type())) {
        for (int64_t i = 0; i < s.inner; ++i) {
          out->mutable_data<String>()[to + i] = in.data<String>()[from + i];
          if (stop.after(text_ns(in.data<String>()[from + i]))) return stopped();
        }
      } else {
        const auto bytes = static_cast<size_t>(s.inner) * width;
        copy_in_pieces(out->mutable_data<char>() + static_cast<size_t>(to) * width,
                       in.data<char>() + static_cast<size_t>(from) * width, bytes);
        if (stop.after(costs::kSelectedElementNs + kByteNs * static_cast<double>(bytes))) return stopped();
      }
      to += s.inner;
    }
  }
  return {};
}

}  // namespace treadle::tensor_ops
