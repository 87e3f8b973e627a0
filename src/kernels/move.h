#pragma once
// Moving elements by their width in bytes (1, 2, 4, 8 or 16), whatever they mean. Strings are moved by their owners.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/stop.h"
#include "kernels/error.h"

namespace treadle::kernels {

// Dimensions that are left after neighbouring ones that both sides walk alike were merged.
inline constexpr int kMaxMoveDims = 16;

// A copy between two strided layouts: transposes, slices (negative steps too), broadcasting (input stride 0), tiling
// (dimensions [r0, d0, r1, d1, ...] with input strides 0 on the repeats), concatenation into a part of an output.
// Plain data.
struct CopyPlan {
  using Run = void (*)(const CopyPlan& plan, const void* input, void* output);

  Run run = nullptr;
  size_t bytes = 0;                       // of a run that is contiguous on both sides
  uint8_t width = 0;                      // of an element
  uint8_t rank = 0;                       // dimensions around the run, line or block that is moved at once
  uint8_t inner_rank = 0;                 // dimensions of that line or block
  double ns = 0;                          // about what it takes
  int64_t dims[kMaxMoveDims] = {};        // [rank] and [rank + 1]: of the line or block
  int64_t in_strides[kMaxMoveDims] = {};  // in bytes
  int64_t out_strides[kMaxMoveDims] = {};

  // `input` and `output` point at the element of index 0 in every dimension. They must not overlap. What takes long
  // asks in between whether to stop.
  void operator()(const void* input, void* output) const {
    if (ns <= kShortNs) return run(*this, input, output);
    StopPoll stop;
    run_in_pieces(input, output, stop);
  }
  // The same in parts(), in any order: positions of the outermost dimension.
  int64_t parts() const { return rank > 0 ? dims[0] : 1; }
  void run_parts(const void* input, void* output, int64_t begin, int64_t end) const {
    if (rank == 0) return (*this)(input, output);
    part(0, end - begin)(static_cast<const std::byte*>(input) + begin * in_strides[0],
                         static_cast<std::byte*>(output) + begin * out_strides[0]);
  }

 private:
  CopyPlan part(int dimension, int64_t size) const {
    CopyPlan made = *this;
    made.dims[dimension] = size;
    made.ns *= static_cast<double>(size) / static_cast<double>(dims[dimension]);
    return made;
  }
  bool run_in_pieces(const void* input, void* output, StopPoll& stop) const;
};

// Strides in elements. Fails on more than kMaxMoveDims dimensions that cannot be merged.
Status prepare_copy(CopyPlan* plan, size_t width, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
                    std::span<const int64_t> out_strides);

// Contiguous output of shape dims[permutation[i]].
Status prepare_transpose(CopyPlan* plan, size_t width, std::span<const int64_t> dims,
                         std::span<const int64_t> permutation);

// count elements of `width` bytes.
void fill(size_t width, const void* value, void* out, size_t count);

// `count` blocks of `bytes`, strides in bytes: the inner loop of Concat and Split.
void copy_blocks(const void* in, int64_t in_stride, void* out, int64_t out_stride, size_t bytes, size_t count);

// out[o, i, :] = data[o, indices[i], :] for data [outer, n, bytes] and `count` indices, negative ones counted from the
// end. kIndexOutOfRange leaves the position of the index in *position (may be null) and `out` partly written.
uint32_t gather(const void* data, size_t outer, int64_t n, size_t bytes, const int32_t* indices, size_t count,
                void* out, size_t* position);
uint32_t gather(const void* data, size_t outer, int64_t n, size_t bytes, const int64_t* indices, size_t count,
                void* out, size_t* position);

enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };

// Padding of a contiguous tensor. Negative pads crop. Plain data.
struct PadPlan {
  PadMode mode{};
  uint8_t width = 0;                   // of an element
  uint8_t rank = 0;                    // dimensions up to the last padded one
  bool empty = false;                  // the result has no elements
  size_t unit = 0;                     // bytes of what follows the last padded dimension
  int64_t offset = 0;                  // in bytes, to the first element that is not cropped
  int64_t in_dims[kMaxMoveDims] = {};  // without what is cropped
  int64_t out_dims[kMaxMoveDims] = {};
  int64_t before[kMaxMoveDims] = {};
  int64_t in_strides[kMaxMoveDims] = {};  // in bytes

  // value: one element; read by kConstant only.
  void operator()(const void* input, const void* value, void* output) const;
  // The element of the input that element `i` of the result is; -1: the value.
  int64_t source(int64_t i) const;
};

// Fails when a result dimension would be negative, when kReflect, kEdge or kWrap pad an axis that has no elements, or
// on too many dimensions. Reflections and wraps may go round more than once.
Status prepare_pad(PadPlan* plan, PadMode mode, size_t width, std::span<const int64_t> dims,
                   std::span<const int64_t> before, std::span<const int64_t> after);

}  // namespace treadle::kernels
