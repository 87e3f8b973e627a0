#include "kernels/move.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/in_pieces.h"
#include "kernels/costs.h"
#include "kernels/isa/each.h"
#include "kernels/isa/transpose.h"
#include "kernels/types.h"

namespace treadle::kernels {

namespace {

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void copy_line(const std::byte* __restrict in, int64_t in_stride, std::byte* __restrict out, int64_t out_stride,
               int64_t n) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(T));
  if (in_stride == 2 * kWidth && out_stride == kWidth) {  // so that the compiler uses vectors
    for (int64_t i = 0; i < n; ++i) std::memcpy(out + i * kWidth, in + 2 * i * kWidth, sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; ++i, in += in_stride, out += out_stride) std::memcpy(out, in, sizeof(T));
}

auto transpose() {
  return TREADLE_OF_ISA(preferred_isa(), transpose);
}

// Calls f(in, out) at every index of the outer dimensions.
template <class F>
void walk(const CopyPlan& plan, const void* input, void* output, F f) {
  const std::byte* in = static_cast<const std::byte*>(input);
  std::byte* out = static_cast<std::byte*>(output);
  int64_t index[kMaxMoveDims] = {};
  for (;;) {
    f(in, out);
    int d = plan.rank - 1;
    for (; d >= 0; --d) {
      const bool wraps = ++index[d] == plan.dims[d];
      const int64_t steps = wraps ? 1 - plan.dims[d] : 1;
      in += steps * plan.in_strides[d];
      out += steps * plan.out_strides[d];
      if (!wraps) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

void run_nothing(const CopyPlan&, const void*, void*) {}

void run_contiguous(const CopyPlan& plan, const void* input, void* output) {
  std::memcpy(output, input, plan.bytes);
}

// kBytes: bytes of a line if a few instructions copy it; 0: any number.
template <size_t kBytes>
void run_lines(const CopyPlan& plan, const void* input, void* output) {
  walk(plan, input, output,
       [&](const std::byte* in, std::byte* out) { std::memcpy(out, in, kBytes ? kBytes : plan.bytes); });
}

CopyPlan::Run lines_of(size_t bytes) {
  switch (bytes) {
    case 8:
      return run_lines<8>;
    case 16:
      return run_lines<16>;
    case 32:
      return run_lines<32>;
    case 64:
      return run_lines<64>;
    default:
      return run_lines<0>;
  }
}

void run_strided(const CopyPlan& plan, const void* input, void* output) {
  const int line = plan.rank;
  with_width(plan.width, [&](auto zero) {
    walk(plan, input, output, [&](const std::byte* in, std::byte* out) {
      copy_line<decltype(zero)>(in, plan.in_strides[line], out, plan.out_strides[line], plan.dims[line]);
    });
  });
}

// Dimension [rank] is contiguous in the input, [rank + 1] in the output.
void run_transpose(const CopyPlan& plan, const void* input, void* output) {
  const int rows = plan.rank;
  const int columns = plan.rank + 1;
  const auto run = transpose();
  walk(plan, input, output, [&](const std::byte* in, std::byte* out) {
    run(plan.width, in, plan.in_strides[columns], out, plan.out_strides[rows], plan.dims[rows], plan.dims[columns]);
  });
}

// Moves dimension `from` to the last place.
void make_last(CopyPlan* plan, int from, int rank) {
  for (int64_t* values : {plan->dims, plan->in_strides, plan->out_strides}) {
    std::rotate(values + from, values + from + 1, values + rank);
  }
}

// Chooses how to copy. dims and strides are set; `rank` counts all dimensions.
void choose_run(CopyPlan* plan) {
  const int64_t width = plan->width;
  int rank = plan->rank;
  for (int d = 0; d < rank; ++d) {  // walk along the dimension that is contiguous in the output
    if (plan->out_strides[d] == width && d != rank - 1) {
      make_last(plan, d, rank);
      break;
    }
  }
  if (rank == 0) {
    plan->bytes = plan->width;
    plan->run = run_contiguous;
    return;
  }
  const int last = rank - 1;
  if (plan->in_strides[last] == width && plan->out_strides[last] == width) {
    plan->bytes = static_cast<size_t>(plan->dims[last] * width);
    plan->rank = static_cast<uint8_t>(last);
    plan->run = last == 0 ? run_contiguous : lines_of(plan->bytes);
    return;
  }
  for (int d = 0; d < last; ++d) {
    if (plan->in_strides[d] != width || plan->out_strides[last] != width) continue;
    make_last(plan, d, last);
    plan->rank = static_cast<uint8_t>(last - 1);
    plan->inner_rank = 2;
    plan->run = run_transpose;
    return;
  }
  plan->rank = static_cast<uint8_t>(last);
  plan->inner_rank = 1;
  plan->run = run_strided;
}

// Estimated time: memory bounds wide lines, the number of elements bounds narrow ones.
double copy_ns(const CopyPlan& plan, size_t elements) {
  constexpr size_t kWideLine = 64;
  return static_cast<double>(elements) *
         (plan.bytes >= kWideLine ? costs::kMovedByteNs * plan.width : costs::kMovedElementNs);
}

}  // namespace

bool CopyPlan::run_in_pieces(const void* input, void* output, StopPoll& stop) const {
  if (ns <= kShortNs) {
    run(*this, input, output);
    return !stop.after(ns);
  }
  const int dimensions = rank + inner_rank;
  int d = 0;
  while (d < dimensions && dims[d] == 1) ++d;
  if (d == dimensions) return copy_in_pieces(output, input, bytes);
  return in_pieces(dims[d], ns / static_cast<double>(dims[d]), stop, [&](int64_t begin, int64_t end) {
    // A single piece: short, but for rounding
    if (begin == 0 && end == dims[d]) return run(*this, input, output), true;
    return part(d, end - begin)
        .run_in_pieces(static_cast<const std::byte*>(input) + begin * in_strides[d],
                       static_cast<std::byte*>(output) + begin * out_strides[d], stop);
  });
}

Status prepare_copy(CopyPlan* plan, size_t width, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
                    std::span<const int64_t> out_strides) {
  *plan = CopyPlan();
  plan->width = static_cast<uint8_t>(width);
  int rank = 0;
  bool empty = false;
  size_t elements = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    empty |= dims[d] == 0;
    elements *= static_cast<size_t>(dims[d]);
    if (dims[d] == 1) continue;
    const int64_t in = in_strides[d] * static_cast<int64_t>(width);
    const int64_t out = out_strides[d] * static_cast<int64_t>(width);
    const bool merges =
        rank > 0 && plan->in_strides[rank - 1] == in * dims[d] && plan->out_strides[rank - 1] == out * dims[d];
    if (merges) {
      plan->dims[rank - 1] *= dims[d];
    } else if (rank == kMaxMoveDims) {
      return error(Code::kLimit, "a copy over more than {} dimensions that cannot be merged", kMaxMoveDims);
    } else {
      plan->dims[rank++] = dims[d];
    }
    plan->in_strides[rank - 1] = in;
    plan->out_strides[rank - 1] = out;
  }
  plan->rank = static_cast<uint8_t>(rank);
  choose_run(plan);
  plan->ns = copy_ns(*plan, elements);
  if (empty) plan->run = run_nothing;
  return {};
}

Status prepare_transpose(CopyPlan* plan, size_t width, std::span<const int64_t> dims,
                         std::span<const int64_t> permutation) {
  // Merges neighbouring input dimensions that stay neighbours first, so that the limit counts the merged dimensions.
  constexpr size_t kMax = 64;
  if (dims.size() > kMax) return error(Code::kLimit, "a transposition of more than {} dimensions", kMax);
  int64_t strides[kMax];
  int64_t out_dims[kMax];
  int64_t in_strides[kMax];
  int64_t out_strides[kMax];
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d];
  }
  stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(permutation[i]);
    out_dims[i] = dims[d];
    in_strides[i] = strides[d];
    out_strides[i] = stride;
    stride *= dims[d];
  }
  const size_t rank = dims.size();
  return prepare_copy(plan, width, {out_dims, rank}, {in_strides, rank}, {out_strides, rank});
}

void fill(size_t width, const void* value, void* out, size_t count) {
  with_width(width, [&](auto zero) {
    using T = decltype(zero);
    const T element = read<T>(static_cast<const std::byte*>(value));
    std::byte* to = static_cast<std::byte*>(out);
    in_pieces(static_cast<int64_t>(count), kByteNs * sizeof(T), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) std::memcpy(to + static_cast<size_t>(i) * sizeof(T), &element, sizeof(T));
    });
  });
}

void copy_blocks(const void* in, int64_t in_stride, void* out, int64_t out_stride, size_t bytes, size_t count) {
  const std::byte* from = static_cast<const std::byte*>(in);
  std::byte* to = static_cast<std::byte*>(out);
  const auto copy_all = [&](auto size) {
    for (size_t i = 0; i < count; ++i, from += in_stride, to += out_stride) std::memcpy(to, from, size);
  };
  // For a few bytes, a call of memcpy takes longer than the copy.
  switch (bytes) {
    case 4:
      return copy_all(std::integral_constant<size_t, 4>());
    case 8:
      return copy_all(std::integral_constant<size_t, 8>());
    case 16:
      return copy_all(std::integral_constant<size_t, 16>());
    case 32:
      return copy_all(std::integral_constant<size_t, 32>());
    default:
      return copy_all(bytes);
  }
}

namespace {

template <class Index, class T>
uint32_t gather_elements(const std::byte* data, int64_t n, const Index* indices, size_t count, std::byte* out,
                         size_t* position) {
  for (size_t i = 0; i < count; ++i) {
    int64_t index = indices[i];
    if (index < 0) index += n;
    if (index < 0 || index >= n) [[unlikely]] {
      if (position != nullptr) *position = i;
      return kIndexOutOfRange;
    }
    std::memcpy(out + i * sizeof(T), data + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  }
  return kOk;
}

template <class Index>
uint32_t gather_blocks(const std::byte* data, int64_t n, size_t bytes, const Index* indices, size_t count,
                       std::byte* out, size_t* position) {
  for (size_t i = 0; i < count; ++i, out += bytes) {
    int64_t index = indices[i];
    if (index < 0) index += n;
    if (index < 0 || index >= n) [[unlikely]] {
      if (position != nullptr) *position = i;
      return kIndexOutOfRange;
    }
    std::memcpy(out, data + static_cast<size_t>(index) * bytes, bytes);
  }
  return kOk;
}

template <class Index>
uint32_t gather_outer(const void* data, size_t outer, int64_t n, size_t bytes, const Index* indices, size_t count,
                      void* out, size_t* position) {
  const std::byte* from = static_cast<const std::byte*>(data);
  std::byte* to = static_cast<std::byte*>(out);
  for (size_t o = 0; o < outer; ++o, from += static_cast<size_t>(n) * bytes, to += count * bytes) {
    uint32_t error = kOk;
    if (bytes == 4) {
      error = gather_elements<Index, uint32_t>(from, n, indices, count, to, position);
    } else if (bytes == 8) {
      error = gather_elements<Index, uint64_t>(from, n, indices, count, to, position);
    } else {
      error = gather_blocks(from, n, bytes, indices, count, to, position);
    }
    if (error != kOk) return error;
  }
  return kOk;
}

}  // namespace

uint32_t gather(const void* data, size_t outer, int64_t n, size_t bytes, const int32_t* indices, size_t count,
                void* out, size_t* position) {
  return gather_outer(data, outer, n, bytes, indices, count, out, position);
}

uint32_t gather(const void* data, size_t outer, int64_t n, size_t bytes, const int64_t* indices, size_t count,
                void* out, size_t* position) {
  return gather_outer(data, outer, n, bytes, indices, count, out, position);
}

}  // namespace treadle::kernels
