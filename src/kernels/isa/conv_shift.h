#pragma once
// Convolution as a matrix product whose B is never built. The part of the input that a band of output rows needs is
// copied once, padded, one plane per phase of the strides. In such a plane, with rows of `pitch` elements, output (r,
// q) of the band is position r * pitch + q, and every tap reads the same positions shifted by a constant: row p of B is
// the band's buffer from offset[p] on. Positions between output.width and pitch are computed and dropped.
//
// Packed weights: offset[k], then per group tiles of rows, each tile [k][rows].

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/isa/conv_geometry.h"
#include "kernels/isa/gemm_pack.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int64_t kBandBytes = 256 << 10;  // a band stays in the second-level cache
inline constexpr int kMaxTileVectors = 8;

template <class T>
struct ShiftLayout {
  explicit ShiftLayout(const ConvGeometry& g) {
    planes = g.in_per_group * g.outer_taps * g.height.phases() * g.width.phases();
    const int64_t budget = kBandBytes / int64_t{sizeof(T)} / std::max<int64_t>(planes, 1);
    const int64_t full_pitch = g.width.out + g.width.largest_shift();
    rows = std::clamp<int64_t>(budget / full_pitch - g.height.largest_shift(), 1, std::max<int64_t>(g.height.out, 1));
    columns = g.width.out;
    if (rows == 1) {
      columns = budget / (1 + g.height.largest_shift()) - g.width.largest_shift();
      columns = std::clamp<int64_t>(columns, std::min<int64_t>(std::max<int64_t>(g.width.out, 1), 512),
                                    std::max<int64_t>(g.width.out, 1));
    }
    pitch = columns + g.width.largest_shift();
    plane = (rows + g.height.largest_shift()) * pitch;
    row_bands = (g.height.out + rows - 1) / rows;
    column_bands = (g.width.out + columns - 1) / columns;
  }

  int64_t offset(const ConvGeometry& g, int64_t channel, int64_t outer, int64_t y, int64_t x) const {
    const int64_t index =
        ((channel * g.outer_taps + outer) * g.height.phases() + g.height.phase_of(y)) * g.width.phases() +
        g.width.phase_of(x);
    return index * plane + g.height.shift(y) * pitch + g.width.shift(x);
  }
  int64_t staging() const { return kMaxRows<T> * kMaxTileVectors * Lanes<T>::kCount; }
  int64_t buffer() const {
    return planes * plane + kMaxTileVectors * Lanes<T>::kCount;
  }  // the last vector may overhang

  int64_t planes;
  int64_t rows, columns;  // of output in a band
  int64_t pitch, plane;
  int64_t row_bands, column_bands;
};

template <class T>
T* aligned_after(void* base, int64_t bytes) {
  const int64_t rounded = (bytes + int64_t{kKernelAlignment} - 1) & -int64_t{kKernelAlignment};
  return reinterpret_cast<T*>(static_cast<std::byte*>(base) + rounded);
}

template <class T>
void pack_shift(const ConvPlan& plan, const void* weights, void* packed) {
  const ConvGeometry g(plan.shape);
  const ShiftLayout<T> layout(g);
  int64_t* offset = static_cast<int64_t*>(packed);
  for (int64_t c = 0; c < g.in_per_group; ++c) {
    for (int64_t outer = 0; outer < g.outer_taps; ++outer) {
      for (int64_t y = 0; y < g.height.kernel; ++y) {
        for (int64_t x = 0; x < g.width.kernel; ++x) *offset++ = layout.offset(g, c, outer, y, x);
      }
    }
  }
  const T* from = static_cast<const T*>(weights);
  T* to = aligned_after<T>(packed, g.k * int64_t{sizeof(int64_t)});
  const int64_t height = balanced_rows<T>(g.out_per_group);
  for (int64_t group = 0; group < plan.shape.groups; ++group) {
    for (int64_t row = 0; row < g.out_per_group; row += height) {
      const int64_t count = std::min(height, g.out_per_group - row);
      pack_panel(from + (group * g.out_per_group + row) * g.k, 1, g.k, g.k, count, count, to);
      to += g.k * count;
    }
  }
}

// Short rows are the rule here, so these are spelled with masked vectors instead of calls to memset and memcpy.
template <class T>
void fill_zero(T* to, int64_t count) {
  using L = Lanes<T>;
  for (int64_t i = 0; i < count; i += L::kCount) {
    L::store(to + i, L::mask(static_cast<int>(std::min<int64_t>(count - i, L::kCount))), L::zero());
  }
}

// A last vector that is not full is copied twice in part rather than under a mask, where there is a full one: loads
// soon after a masked store have to wait for it.
template <class T>
void copy_strided(const T* from, int64_t stride, int64_t count, T* to) {
  using L = Lanes<T>;
  if (stride == 1 && count >= L::kCount) {
    for (int64_t i = 0; i < count - L::kCount; i += L::kCount) L::store(to + i, L::load(from + i));
    L::store(to + count - L::kCount, L::load(from + count - L::kCount));
  } else if (stride == 1) {
    const auto mask = L::mask(static_cast<int>(count));
    L::store(to, mask, L::load(from, mask));
  } else if (stride == 2 && count >= L::kCount) {
    for (int64_t i = 0; i < count - L::kCount; i += L::kCount) L::store(to + i, load_even<T>(from + 2 * i));
    L::store(to + count - L::kCount, load_even<T>(from + 2 * (count - L::kCount)));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[stride * i];
  }
}

// One band of one group of one image at one outer position.
template <class T>
class ShiftBand {
  using L = Lanes<T>;

 public:
  ShiftBand(const ConvPlan& plan, const ConvGeometry& g, const ShiftLayout<T>& layout, const ConvOperands& operands)
      : plan_(plan),
        g_(g),
        layout_(layout),
        offset_(static_cast<const int64_t*>(operands.packed_weights)),
        weights_(aligned_after<const T>(const_cast<void*>(operands.packed_weights), g.k * int64_t{sizeof(int64_t)})),
        bias_(static_cast<const T*>(operands.bias)),
        staging_(static_cast<T*>(operands.scratch)),
        buffer_(staging_ + layout.staging()) {}

  // x and y: first channel of the group.
  void run(const T* x, T* y, int64_t group, int64_t outer, int64_t row, int64_t column) {
    row_ = row;
    column_ = column;
    rows_ = std::min(layout_.rows, g_.height.out - row);
    columns_ = std::min(layout_.columns, g_.width.out - column);
    fill_buffer(x, outer);
    y += outer * g_.out_plane;
    const int64_t positions = (rows_ - 1) * layout_.pitch + columns_;
    const int64_t height = balanced_rows<T>(g_.out_per_group);
    const int most = tile_vectors(height);
    for (int64_t at = 0; at < positions;) {
      const int64_t left = (positions - at + L::kCount - 1) / L::kCount;
      int vectors = most;
      while (vectors > 1 && vectors > left) vectors /= 2;
      plan_segments(at, std::min<int64_t>(vectors * L::kCount, positions - at));
      tiles_down(group, at, vectors, height, y);
      at += vectors * L::kCount;
    }
  }

 private:
  struct Segment {
    int from, count;
    int64_t to;  // within a channel of the output's inner plane
  };

  static int tile_vectors(int64_t height) {
    constexpr bool kLong = kVectorRegisters == 32;
    return height == 1 ? 8 : height == 2 ? (kLong ? 8 : 4) : height <= 4 && kLong ? 4 : 2;
  }

  static TileFunction<T> tile_for(int64_t height, int vectors) {
    constexpr auto kMode = TileMode::kIndirectB;
    if (vectors == 8) {
      if constexpr (kVectorRegisters == 32) {
        if (height == 2) return tile<T, 2, 8, kMode, false>;
      }
      return tile<T, 1, 8, kMode, false>;
    }
    if (vectors == 4) {
      if constexpr (kVectorRegisters == 32) {
        if (height == 3) return tile<T, 3, 4, kMode, false>;
        if (height == 4) return tile<T, 4, 4, kMode, false>;
      }
      return height == 1 ? tile<T, 1, 4, kMode, false> : tile<T, 2, 4, kMode, false>;
    }
    return (vectors == 2 ? tile_table<T, 2, kMode, false> : tile_table<T, 1, kMode, false>)[height - 1];
  }

  void fill_buffer(const T* x, int64_t outer) {
    T* to = buffer_;
    for (int64_t c = 0; c < g_.in_per_group; ++c) {
      for (int64_t tap = 0; tap < g_.outer_taps; ++tap) {
        const int64_t index = g_.outer_plane(outer, tap);
        const T* plane = index < 0 ? nullptr : x + c * g_.in_channel() + index * g_.in_plane;
        for (int64_t phase_y = 0; phase_y < g_.height.phases(); ++phase_y) {
          for (int64_t phase_x = 0; phase_x < g_.width.phases(); ++phase_x, to += layout_.plane) {
            fill_plane(plane, g_.height.residue(phase_y), g_.width.residue(phase_x), to);
          }
        }
      }
    }
  }

  void fill_plane(const T* plane, int64_t residue_y, int64_t residue_x, T* to) {
    const Axis& h = g_.height;
    const Axis& w = g_.width;
    const int64_t pitch = layout_.pitch;
    const int64_t first_x = column_ * w.stride + residue_x - w.pad;
    const auto [begin, end] = inside(first_x, w.stride, w.in, pitch);
    for (int64_t r = 0; r < rows_ + h.largest_shift(); ++r, to += pitch) {
      const int64_t y = (row_ + r) * h.stride + residue_y - h.pad;
      if (plane == nullptr || y < 0 || y >= h.in) {
        fill_zero(to, pitch);
        continue;
      }
      fill_zero(to, begin);
      copy_strided(plane + y * w.in + first_x + begin * w.stride, w.stride, end - begin, to + begin);
      fill_zero(to + end, pitch - end);
    }
  }

  // Which of positions [at, at + count) are outputs, and where they go.
  void plan_segments(int64_t at, int64_t count) {
    segment_count_ = 0;
    if (layout_.pitch == g_.width.out) {
      segments_[segment_count_++] = {0, static_cast<int>(count), row_ * g_.width.out + at};
      return;
    }
    int64_t r = at / layout_.pitch, q = at % layout_.pitch;
    for (int64_t i = 0; i < count; ++r, q = 0) {
      const int64_t run = std::min(layout_.pitch - q, count - i);
      const int64_t kept = std::min(columns_ - q, run);
      if (kept > 0) {
        segments_[segment_count_++] = {static_cast<int>(i), static_cast<int>(kept),
                                       (row_ + r) * g_.width.out + column_ + q};
      }
      i += run;
    }
  }

  void tiles_down(int64_t group, int64_t at, int vectors, int64_t height, T* y) {
    TileArgs<T> t;
    t.b = buffer_ + at;
    t.b_offset = offset_;
    t.b_panel = 2 * L::kCount;
    t.k = g_.k;
    t.c = staging_;
    t.c_row = vectors * L::kCount;
    t.last_lanes = L::kCount;
    t.partial = true;
    const T* weights = weights_ + group * g_.out_per_group * g_.k;
    for (int64_t row = 0; row < g_.out_per_group; row += height) {
      const int64_t count = std::min(height, g_.out_per_group - row);
      t.a = weights + row * g_.k;
      t.a_col = count;
      tile_for(count, vectors)(t);
      for (int64_t r = 0; r < count; ++r) {
        const T bias = bias_ == nullptr ? T(0) : bias_[group * g_.out_per_group + row + r];
        store_row(staging_ + r * t.c_row, bias, y + (row + r) * g_.out_channel());
      }
    }
  }

  void store_row(const T* sums, T bias, T* y) {
    const auto addend = L::splat(bias), low = L::splat(static_cast<T>(plan_.clamp.low)),
               high = L::splat(static_cast<T>(plan_.clamp.high));
    for (int s = 0; s < segment_count_; ++s) {
      const Segment& segment = segments_[s];
      for (int i = 0; i < segment.count; i += L::kCount) {
        const int lanes = std::min(segment.count - i, L::kCount);
        auto value = L::load(sums + segment.from + i, L::mask(lanes));
        if (bias_ != nullptr) value = L::add(value, addend);
        L::store(y + segment.to + i, L::mask(lanes), L::min(high, L::max(low, value)));
      }
    }
  }

  const ConvPlan& plan_;
  const ConvGeometry& g_;
  const ShiftLayout<T>& layout_;
  const int64_t* offset_;
  const T* weights_;
  const T* bias_;
  T* staging_;
  T* buffer_;
  int64_t row_ = 0, column_ = 0, rows_ = 0, columns_ = 0;
  int segment_count_ = 0;
  Segment segments_[kMaxTileVectors * L::kCount];
};

template <class T>
void run_shift(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  const ShiftLayout<T> layout(g);
  ShiftBand<T> band(plan, g, layout, operands);
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t rest = unit;
    const auto next = [&](int64_t count) {
      const int64_t index = rest % count;
      rest /= count;
      return index;
    };
    const int64_t column = next(layout.column_bands), row = next(layout.row_bands), outer = next(g.outer_out);
    const int64_t group = next(plan.shape.groups), image = rest;
    band.run(
        static_cast<const T*>(operands.x) + (image * plan.shape.in_channels + group * g.in_per_group) * g.in_channel(),
        static_cast<T*>(operands.y) + (image * plan.shape.out_channels + group * g.out_per_group) * g.out_channel(),
        group, outer, row * layout.rows, column * layout.columns);
  }
}

template <class T>
void prepare_shift(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const ShiftLayout<T> layout(g);
  plan.units = plan.shape.batch * plan.shape.groups * g.outer_out * layout.row_bands * layout.column_bands;
  plan.scratch_bytes = static_cast<size_t>(layout.staging() + layout.buffer()) * sizeof(T);
  plan.packed_weight_bytes = static_cast<size_t>(g.k) * sizeof(int64_t) + kKernelAlignment +
                             static_cast<size_t>(plan.shape.out_channels * g.k) * sizeof(T);
  plan.run = run_shift<T>;
  plan.pack = pack_shift<T>;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
