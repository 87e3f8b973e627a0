#pragma once
// Convolution as a matrix product whose B is never built. The part of the input that a band of output rows needs is
// copied once, padded, one plane per phase of the strides. In such a plane, with rows of `pitch` elements, output (r,
// q) of the band is position r * pitch + q, and every tap reads the same positions shifted by a constant: row p of B is
// the band's buffer from offset[p] on. Positions between output.width and pitch are computed and dropped.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/isa/conv/implicit_gemm_layout.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Short rows are the rule here, so these are spelled with masked vectors instead of calls to memset and memcpy.
template <class T>
void fill_zero(T* to, int64_t count) {
  using L = Lanes<T>;
  int64_t i = 0;
  for (; i + L::kCount <= count; i += L::kCount) L::store(to + i, L::zero());
  if (i < count) store_first(to + i, static_cast<int>(count - i), L::zero());
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
    if (count > 0) store_first(to, static_cast<int>(count), L::load(from, L::mask(static_cast<int>(count))));
  } else if (stride == 2 && count >= L::kCount) {
    for (int64_t i = 0; i < count - L::kCount; i += L::kCount) L::store(to + i, load_even<T>(from + 2 * i));
    L::store(to + count - L::kCount, load_even<T>(from + 2 * (count - L::kCount)));
  } else if (stride == 2 && count > 0) {
    store_first(to, static_cast<int>(count), load_even<T>(from, static_cast<int>(count)));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[stride * i];
  }
}

// One band of one group of one image at one outer position.
template <class T>
class ImplicitGemmBand {
  using L = Lanes<T>;

 public:
  ImplicitGemmBand(const ConvPlan& plan, const ConvGeometry& g, const ImplicitGemmLayout<T>& layout,
                   const ConvOperands& operands)
      : plan_(plan),
        g_(g),
        layout_(layout),
        operands_(operands),
        offset_(static_cast<const int64_t*>(operands.table)),
        weights_(static_cast<const T*>(operands.packed_weights)),
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
    const T* weights = weights_ + group * g_.out_per_group * g_.k;
    const T* bias = bias_ == nullptr ? nullptr : bias_ + group * g_.out_per_group;
    y += row * g_.width.out + column;
    switch (layout_.walk) {
      case ImplicitGemmLayout<T>::kByRow:
        return by_row(weights, bias, y);
      case ImplicitGemmLayout<T>::kFlat:
        return flat(weights, bias, y);
      case ImplicitGemmLayout<T>::kGathered:
        return gathered(weights, bias, y);
    }
  }

 private:
  struct Segment {
    int from, count;
    int64_t to;  // kFlat: within the output plane of the band; kGathered: where it comes from in the buffer
  };

  template <TileMode kMode>
  static TileFunction<T> tile_for(int64_t height, int vectors, bool tail) {
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
    if (tail) return (vectors == 2 ? kTileTable<T, 2, kMode, true> : kTileTable<T, 1, kMode, true>)[height - 1];
    return (vectors == 2 ? kTileTable<T, 2, kMode, false> : kTileTable<T, 1, kMode, false>)[height - 1];
  }

  void fill_buffer(const T* x, int64_t outer) {
    T* to = buffer_;
    const int64_t channel = g_.outer_taps * g_.height.phases() * g_.width.phases() * layout_.plane;
    for (int64_t c = 0; c < g_.in_per_group; ++c) {
      if (stop_.after(kPackedNs * static_cast<double>(channel))) return;
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

  void by_row(const T* weights, const T* bias, T* y) {
    const int most = tile_vectors(balanced_rows<T>(g_.out_per_group));
    for (int64_t r = 0; r < rows_; ++r, y += g_.width.out) {
      for (int64_t q = 0; q < columns_;) {
        // Tiles of more than two vectors are whole.
        int vectors = most;
        while (vectors > 2 && q + vectors * L::kCount > columns_) vectors /= 2;
        if (vectors == 2 && q + L::kCount >= columns_) vectors = 1;
        const int64_t count = std::min<int64_t>(vectors * L::kCount, columns_ - q);
        TileArgs<T> t;
        t.b = buffer_ + r * layout_.pitch + q;
        t.b_offset = offset_;
        t.b_panel = 2 * L::kCount;
        in_place<TileMode::kIndirectB>(t, vectors, count, weights, bias, y + q);
        q += count;
      }
    }
  }

  void gathered(const T* weights, const T* bias, T* y) {
    const int64_t positions = rows_ * columns_;
    for (int64_t at = 0; at < positions; at += 2 * L::kCount) {
      const int64_t count = std::min<int64_t>(2 * L::kCount, positions - at);
      plan_runs(at, count);
      TileArgs<T> t;
      t.b_step = 2 * L::kCount;
      in_place<TileMode::kColumnA>(t, count > L::kCount ? 2 : 1, count, weights, bias, y + at);
    }
  }

  // Positions [at, at + count), counted without the gaps between rows, as runs of the buffer. Whole vectors are moved:
  // what overhangs a run is overwritten by the run, or the row of B, that comes after it.
  void plan_runs(int64_t at, int64_t count) {
    segment_count_ = 0;
    int64_t r = at / columns_, q = at % columns_;
    for (int64_t i = 0; i < count; ++r, q = 0) {
      const int64_t kept = std::min(columns_ - q, count - i);
      for (int64_t v = 0; v < kept; v += L::kCount) {
        segments_[segment_count_++] = {static_cast<int>(i + v), L::kCount, r * layout_.pitch + q + v};
      }
      i += kept;
    }
  }

  // Of these positions the rows [begin, begin + count) of B.
  void gather(int64_t begin, int64_t count) {
    const int64_t* const offset = offset_ + begin;
    switch (segment_count_) {
      case 2:
        return gather_runs<2>(offset, count);
      case 3:
        return gather_runs<3>(offset, count);
      case 4:
        return gather_runs<4>(offset, count);
      default:
        break;
    }
    T* row = staging_;
    for (int64_t p = 0; p < count; ++p, row += 2 * L::kCount) {
      const T* const source = buffer_ + offset[p];
      for (int s = 0; s < segment_count_; ++s) L::store(row + segments_[s].from, L::load(source + segments_[s].to));
    }
  }

  // With the places of the runs in registers.
  template <int kRuns>
  void gather_runs(const int64_t* offset, int64_t count) {
    std::array<int64_t, kRuns> from, to;
    for (int s = 0; s < kRuns; ++s) {
      from[s] = segments_[s].to;
      to[s] = segments_[s].from;
    }
    T* row = staging_;
    const T* const buffer = buffer_;
    for (int64_t p = 0; p < count; ++p, row += 2 * L::kCount) {
      const T* const source = buffer + offset[p];
      for (int s = 0; s < kRuns; ++s) L::store(row + to[s], L::load(source + from[s]));
    }
  }

  // Tiles over all output channels, stored where they belong, in blocks of steps: what tiles share of B stays in the
  // first-level cache, sums wait where they will be stored.
  template <TileMode kMode>
  void in_place(TileArgs<T>& t, int vectors, int64_t count, const T* weights, const T* bias, T* y) {
    Epilogue<T> epilogue;
    epilogue.bias_row = 1;
    epilogue.bias_col = 0;
    epilogue.clamps = clamps(plan_.clamp);
    epilogue.low = static_cast<T>(plan_.clamp.low);
    epilogue.high = static_cast<T>(plan_.clamp.high);
    t.epilogue = &epilogue;
    t.c_row = t.sum_row = g_.out_channel();
    t.last_lanes = static_cast<int>(count - (vectors - 1) * L::kCount);
    const int64_t steps = layout_.steps;
    for (int64_t p = 0; p < g_.k; p += steps) {
      t.k = std::min(steps, g_.k - p);
      t.partial = p + t.k < g_.k;
      t.b_offset = offset_ + p;
      if (kMode != TileMode::kIndirectB) {
        gather(p, t.k);
        t.b = staging_;
      }
      each_tile<T>(g_.out_per_group, [&](int64_t row, int64_t rows) {
        t.a = weights + p * g_.out_per_group + row * t.k;
        t.a_col = rows;
        t.c = y + row * t.c_row;
        t.sum = p == 0 ? nullptr : t.c;
        epilogue.bias = bias == nullptr ? nullptr : bias + row;
        epilogue.addend = beside(operands_, t.c);
        tile_for<kMode>(rows, vectors, t.last_lanes < L::kCount)(t);
      });
      if (counts(vectors, t.k)) return;
    }
  }

  void flat(const T* weights, const T* bias, T* y) {
    const int64_t positions = (rows_ - 1) * layout_.pitch + columns_;
    const int most = tile_vectors(balanced_rows<T>(g_.out_per_group));
    for (int64_t at = 0; at < positions;) {
      const int64_t left = (positions - at + L::kCount - 1) / L::kCount;
      int vectors = most;
      while (vectors > 1 && vectors > left) vectors /= 2;
      plan_segments(at, std::min<int64_t>(vectors * L::kCount, positions - at));
      flat_tiles(at, vectors, weights, bias, y);
      at += vectors * L::kCount;
      if (counts(vectors, g_.k)) return;
    }
  }

  // Counts the work of tiles over all output channels. Whether to end early.
  bool counts(int vectors, int64_t steps) {
    return stop_.after(kProductNs * static_cast<double>(g_.out_per_group * vectors * L::kCount * steps));
  }

  // Which of positions [at, at + count) are outputs, and where they go.
  void plan_segments(int64_t at, int64_t count) {
    segment_count_ = 0;
    int64_t r = at / layout_.pitch, q = at % layout_.pitch;
    for (int64_t i = 0; i < count; ++r, q = 0) {
      const int64_t run = std::min(layout_.pitch - q, count - i);
      const int64_t kept = std::min(columns_ - q, run);
      if (kept > 0) {
        segments_[segment_count_++] = {static_cast<int>(i), static_cast<int>(kept), r * g_.width.out + q};
      }
      i += run;
    }
  }

  void flat_tiles(int64_t at, int vectors, const T* weights, const T* bias, T* y) {
    TileArgs<T> t;
    t.b = buffer_ + at;
    t.b_offset = offset_;
    t.b_panel = 2 * L::kCount;
    t.k = g_.k;
    t.c = staging_;
    t.c_row = vectors * L::kCount;
    t.last_lanes = L::kCount;
    t.partial = true;
    each_tile<T>(g_.out_per_group, [&](int64_t row, int64_t count) {
      t.a = weights + row * g_.k;
      t.a_col = count;
      tile_for<TileMode::kIndirectB>(count, vectors, false)(t);
      for (int64_t r = 0; r < count; ++r) {
        store_row(staging_ + r * t.c_row, bias == nullptr ? T(0) : bias[row + r], y + (row + r) * g_.out_channel());
      }
    });
  }

  void store_row(const T* sums, T bias, T* y) {
    const T* beside_y = beside(operands_, y);
    const auto addend = L::splat(bias), low = L::splat(static_cast<T>(plan_.clamp.low)),
               high = L::splat(static_cast<T>(plan_.clamp.high));
    for (int s = 0; s < segment_count_; ++s) {
      const Segment& segment = segments_[s];
      for (int i = 0; i < segment.count; i += L::kCount) {
        const int lanes = std::min(segment.count - i, L::kCount);
        auto value = L::load(sums + segment.from + i, L::mask(lanes));
        if (bias_ != nullptr) value = L::add(value, addend);
        if (beside_y != nullptr) value = L::add(value, L::load(beside_y + segment.to + i, L::mask(lanes)));
        L::store(y + segment.to + i, L::mask(lanes), L::min(high, L::max(low, value)));
      }
    }
  }

  const ConvPlan& plan_;
  const ConvGeometry& g_;
  const ImplicitGemmLayout<T>& layout_;
  const ConvOperands& operands_;
  const int64_t* offset_;
  const T* weights_;
  const T* bias_;
  T* staging_;
  T* buffer_;
  int64_t row_ = 0, column_ = 0, rows_ = 0, columns_ = 0;
  int segment_count_ = 0;
  StopPoll stop_;
  Segment segments_[kMaxTileVectors * L::kCount];
};

template <class T, typename ImplicitGemmLayout<T>::Walk kWalk>
void run_implicit_gemm(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  const ImplicitGemmLayout<T> layout(g, kWalk);
  ImplicitGemmBand<T> band(plan, g, layout, operands);
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

template <class T, typename ImplicitGemmLayout<T>::Walk kWalk>
void prepare_implicit_gemm(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const ImplicitGemmLayout<T> layout(g, kWalk);
  plan.units = plan.shape.batch * plan.shape.groups * g.outer_out * layout.row_bands * layout.column_bands;
  plan.scratch_bytes = static_cast<size_t>(layout.staging() + layout.buffer()) * sizeof(T);
  plan.packed_weight_bytes = static_cast<size_t>(plan.shape.out_channels * g.k) * sizeof(T);
  plan.table_bytes = static_cast<size_t>(g.k) * sizeof(int64_t);
  plan.run = run_implicit_gemm<T, kWalk>;
  plan.packing = kWalk == ImplicitGemmLayout<T>::kFlat ? "implicit-gemm" : "implicit-gemm, in blocks";
  plan.pack = kWalk == ImplicitGemmLayout<T>::kFlat ? pack_implicit_gemm<T, true> : pack_implicit_gemm<T, false>;
  plan.make_table = make_shift_table<T>;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
