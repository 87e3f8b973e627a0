#pragma once
// Moving elements of 1, 2, 4, 8 or 16 bytes, of any type. The owners of strings move strings.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/stop.h"
#include "kernels/error.h"

namespace treadle::kernels {

// Limit of dimensions, after neighbouring dimensions were merged that both sides walk with one stride.
inline constexpr int kMaxMoveDims = 16;

// A copy between two strided layouts: transposes, slices (negative steps too), broadcasting (input stride 0), tiling
// (dimensions [r0, d0, r1, d1, ...] with input strides 0 on the repeats), concatenation into a part of an output.
// Plain data.
struct CopyPlan {
  using Run = void (*)(const CopyPlan& plan, const void* input, void* output);

  Run run = nullptr;
  size_t bytes = 0;                       // bytes of a run that is contiguous on both sides
  uint8_t width = 0;                      // bytes of an element
  uint8_t rank = 0;                       // number of dimensions around the run, line or block that is copied at once
  uint8_t inner_rank = 0;                 // dimensions of that line or block
  double ns = 0;                          // estimated time
  int64_t dims[kMaxMoveDims] = {};        // dims[rank] and dims[rank + 1]: sizes of the line or block
  int64_t in_strides[kMaxMoveDims] = {};  // in bytes
  int64_t out_strides[kMaxMoveDims] = {};

  // `input` and `output` point at the element of index 0 in every dimension. They must not overlap. A long copy asks in
  // between whether to stop.
  void operator()(const void* input, void* output) const {
    if (ns <= kShortNs) return run(*this, input, output);
    StopPoll stop;
    run_in_pieces(input, output, stop);
  }
  // Copies a range of parts(), in any order. A part is a position of the outermost dimension.
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

// Strides are in elements. Errors: more than kMaxMoveDims dimensions remain after merging.
Status prepare_copy(CopyPlan* plan, size_t width, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
                    std::span<const int64_t> out_strides);

// The output is contiguous and has the shape dims[permutation[i]].
Status prepare_transpose(CopyPlan* plan, size_t width, std::span<const int64_t> dims,
                         std::span<const int64_t> permutation);

// Writes `count` copies of an element of `width` bytes.
void fill(size_t width, const void* value, void* out, size_t count);

// Copies `count` blocks of `bytes`; strides are in bytes. The inner loop of Concat and Split.
void copy_blocks(const void* in, int64_t in_stride, void* out, int64_t out_stride, size_t bytes, size_t count);

// out[o, i, :] = data[o, indices[i], :] for data [outer, n, bytes] and `count` indices. Negative indices count from the
// end. Error kIndexOutOfRange: *position (may be null) is the position of the bad index, and `out` is partly written.
uint32_t gather(const void* data, size_t outer, int64_t n, size_t bytes, const int32_t* indices, size_t count,
                void* out, size_t* position);
uint32_t gather(const void* data, size_t outer, int64_t n, size_t bytes, const int64_t* indices, size_t count,
                void* out, size_t* position);

enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };

// Padding of a contiguous tensor. Negative pads crop. A plain struct.
struct PadPlan {
  PadMode mode{};
  uint8_t width = 0;                   // bytes of an element
  uint8_t rank = 0;                    // dimensions up to the last padded one
  bool empty = false;                  // the result has no elements
  size_t unit = 0;                     // bytes behind the last padded dimension: the unit that is copied
  int64_t offset = 0;                  // bytes to the first element that is not cropped
  int64_t in_dims[kMaxMoveDims] = {};  // sizes without cropped elements
  int64_t out_dims[kMaxMoveDims] = {};
  int64_t before[kMaxMoveDims] = {};
  int64_t in_strides[kMaxMoveDims] = {};  // in bytes

  // `value`: one element; only kConstant reads it.
  void operator()(const void* input, const void* value, void* output) const;
  // The index of the input element that becomes element `i` of the result; -1: the value.
  int64_t source(int64_t i) const;
};

// Errors: a result dimension would be negative; kReflect, kEdge or kWrap pad an axis without elements; too many
// dimensions. Reflections and wraps may repeat.
Status prepare_pad(PadPlan* plan, PadMode mode, size_t width, std::span<const int64_t> dims,
                   std::span<const int64_t> before, std::span<const int64_t> after);

}  // namespace treadle::kernels
