// Convolution of f32, transposed or not, with output channels in the lanes (direct_sums.h). At the end sums are
// transposed to where they belong, while bias and addend are added.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/isa/conv/direct_copy.h"
#include "kernels/isa/conv/direct_sums.h"
#include "kernels/isa/conv/direct_work.h"
#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/implicit_gemm.h"
#include "kernels/isa/conv/method.h"
#include "kernels/isa/gemm_pack.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

namespace {

// Where tiles put results that have their channels last: of a unit's first position and the first channel of its group.
struct ChannelResults {
  using L = Lanes<float>;
  float* y;
  const float *bias, *addend;  // or nullptr
  L::V low, high;
};

struct FloatChannels {
  using L = Lanes<float>;
  using Element = float;
  using Sum = float;
  using V = L::V;
  using Row = L::V;
  using Results = ChannelResults;
  static constexpr int kLanes = L::kCount;
  static constexpr int kPanelVectors = kVectorRegisters == 32 ? 4 : 2;  // of channels in a panel, at most
  static constexpr int kMostPlaces = 8;
  // Output positions in a tile of so many vectors, at most.
  static constexpr int places(int vectors) { return vectors == kPanelVectors ? 6 : kMostPlaces; }
  static V zero() { return L::zero(); }
  static V load(const float* p) { return L::load(p); }
  static Row row(const float* p) { return L::load(p); }
  static V splat(const float* p) { return L::splat(*p); }
  static void add(V& sum, V element, Row row) { sum = L::mul_add(element, row, sum); }
  static void store(float* p, V v) { L::store(p, v); }
  [[gnu::always_inline]] static void put(const ChannelResults& r, int64_t position, int64_t channel, V v) {
    if (r.bias != nullptr) v = L::add(v, L::load(r.bias + channel));
    if (r.addend != nullptr) v = L::add(v, L::load(r.addend + position + channel));
    L::store(r.y + position + channel, L::min(r.high, L::max(r.low, v)));
  }
};
inline constexpr ChannelsForm kFloatForm = {FloatChannels::kLanes, FloatChannels::kPanelVectors};

template <bool kTransposed>
void pack_channels(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  constexpr int64_t kLanes = FloatChannels::kLanes, kPanelChannels = FloatChannels::kPanelVectors * kLanes;
  const ConvGeometry g(plan.shape);
  const int64_t panels = (g.out_per_group + kPanelChannels - 1) / kPanelChannels;
  // Of weights as given, from one channel to the next.
  const int64_t in_step = kTransposed ? g.out_per_group * g.taps : g.taps, out_step = kTransposed ? g.taps : g.k;
  const auto* from = static_cast<const float*>(weights);
  auto* to = static_cast<float*>(packed);
  for (int64_t group = 0; group < plan.shape.groups; ++group, from += g.out_per_group * g.k) {
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int64_t first = panel * kPanelChannels;
      const int64_t count = std::min<int64_t>(kPanelChannels, g.out_per_group - first);
      const int64_t width = (count + kLanes - 1) / kLanes * kLanes;
      for (int64_t tap = 0; tap < g.taps; ++tap) {
        for (int64_t c = 0; c < g.in_per_group; ++c, to += width) {
          if (stop.after(kPackedNs * static_cast<double>(width))) return;
          const float* column = from + first * out_step + c * in_step + tap;
          for (int64_t i = 0; i < count; ++i) to[i] = column[i * out_step];
          std::fill(to + count, to + width, 0.f);
        }
      }
    }
  }
}

// Puts the sums of a unit where they belong.
class ChannelStore {
  using L = Lanes<float>;

 public:
  ChannelStore(const ConvPlan& plan, const ConvGeometry& g, const DirectLayout& layout, const ConvOperands& operands)
      : g_(g), layout_(layout), operands_(operands), low_(L::splat(plan.clamp.low)), high_(L::splat(plan.clamp.high)) {}

  // What tiles may put results by: channels are last and fill vectors.
  bool in_tiles() const {
    const int64_t most = layout_.rows * layout_.width.out * layout_.out_channels;
    return g_.shape.y_nhwc && layout_.phases() == 1 && g_.out_per_group % L::kCount == 0 &&
           most <= std::numeric_limits<int32_t>::max();
  }
  ChannelResults results(const ChannelUnit& unit) const {
    const ChannelAxis &h = layout_.height, &w = layout_.width;
    const int64_t channel = unit.group * g_.out_per_group;
    const int64_t position = (unit.image * h.out + unit.row) * w.out + unit.column;
    float* y = static_cast<float*>(operands_.y) + position * layout_.out_channels + channel;
    const auto* bias = static_cast<const float*>(operands_.bias);
    return {y, bias == nullptr ? nullptr : bias + channel, beside(operands_, y), low_, high_};
  }

  template <class Sums>
  void run(const ChannelUnit& unit, const Sums& sums) {
    if (g_.shape.y_nhwc) return run_nhwc(unit, sums);
    for (int64_t panel = unit.first_panel; panel < unit.last_panel; ++panel) {
      pitch_ = layout_.panel_vectors(panel) * L::kCount;
      for (int64_t v = 0; v < layout_.panel_vectors(panel); ++v) {
        const int64_t inner = panel * layout_.panel_channels() + v * L::kCount;
        channel_ = unit.group * g_.out_per_group + inner;
        count_ = std::min<int64_t>(L::kCount, g_.out_per_group - inner);
        y_ = static_cast<float*>(operands_.y) + (unit.image * g_.shape.out_channels + channel_) * g_.out_plane;
        for (int64_t phase = 0; phase < layout_.height.phases; ++phase) {
          const int64_t across = layout_.width.phases;
          rows(unit, sums.panel(panel, phase * across) + v * L::kCount, phase);
        }
      }
    }
  }

 private:
  // Channels are neighbours in y as in the sums.
  template <class Sums>
  void run_nhwc(const ChannelUnit& unit, const Sums& sums) {
    const ChannelAxis &h = layout_.height, &w = layout_.width;
    for (int64_t panel = unit.first_panel; panel < unit.last_panel; ++panel) {
      pitch_ = layout_.panel_vectors(panel) * L::kCount;
      const int64_t inner = panel * layout_.panel_channels();
      channel_ = unit.group * g_.out_per_group + inner;
      count_ = std::min(pitch_, g_.out_per_group - inner);
      for (int64_t phase = 0; phase < layout_.phases(); ++phase) {
        const float* from = sums.panel(panel, phase);
        for (int64_t r = 0; r < unit.rows; ++r) {
          const int64_t row = (unit.row + r) * h.phases + phase / w.phases;
          for (int64_t q = 0; q < unit.columns; ++q, from += pitch_) {
            const int64_t column = (unit.column + q) * w.phases + phase % w.phases;
            if (row >= h.out || column >= w.out) continue;
            const int64_t position = (unit.image * h.out + row) * w.out + column;
            position_last(from, static_cast<float*>(operands_.y) + position * g_.shape.out_channels + channel_);
          }
        }
      }
    }
  }

  void position_last(const float* sums, float* y) const {
    const auto* bias = static_cast<const float*>(operands_.bias);
    const float* addend = beside(operands_, y);
    for (int64_t c = 0; c < count_; c += L::kCount) {
      const bool whole = count_ - c >= L::kCount;
      const auto mask = L::mask(static_cast<int>(std::min<int64_t>(L::kCount, count_ - c)));
      const auto read = [&](const float* p) { return whole ? L::load(p) : L::load(p, mask); };
      auto value = L::load(sums + c);
      if (bias != nullptr) value = L::add(value, read(bias + channel_ + c));
      if (addend != nullptr) value = L::add(value, read(addend + c));
      value = L::min(high_, L::max(low_, value));
      if (whole) {
        L::store(y + c, value);
      } else {
        L::store(y + c, mask, value);
      }
    }
  }

  // Of one phase of rows and all phases of columns; `sums` of the first one.
  void rows(const ChannelUnit& unit, const float* sums, int64_t phase) {
    const ChannelAxis &h = layout_.height, &w = layout_.width;
    const int64_t first = unit.column * w.phases, length = std::min(unit.columns * w.phases, w.out - first);
    const bool whole = length == w.out && h.phases == 1 && w.phases == 1;
    const int64_t runs = whole ? 1 : unit.rows;
    for (int64_t r = 0; r < runs; ++r, sums += unit.columns * pitch_) {
      const int64_t row = (unit.row + r) * h.phases + phase;
      if (row >= h.out) return;
      line(sums, whole ? unit.positions() : length, y_ + row * w.out + first);
    }
  }

  // `length` neighbours in y of each channel.
  void line(const float* sums, int64_t length, float* y) {
    const int64_t phases = layout_.width.phases;
    if (phases > 2) return scattered(sums, length, y);
    alignas(kVectorBytes) float squares[2][L::kCount * L::kCount];
    for (int64_t at = 0; at < length; at += phases * L::kCount, sums += L::kCount * pitch_) {
      for (int64_t p = 0; p < phases; ++p) {
        transpose_square(sums + p * layout_.panel_sums(), pitch_, squares[p], L::kCount);
      }
      for (int64_t c = 0; c < count_; ++c) {
        float* to = y + c * g_.out_plane + at;
        auto first = L::load(squares[0] + c * L::kCount);
        if (phases == 2) {
          const auto [low, high] = zipped(first, L::load(squares[1] + c * L::kCount));
          if (length - at > L::kCount) put(high, c, length - at - L::kCount, to + L::kCount);
          first = low;
        }
        put(first, c, length - at, to);
      }
    }
  }

  // Strides that lanes are not zipped for.
  void scattered(const float* sums, int64_t length, float* y) {
    const int64_t phases = layout_.width.phases;
    alignas(kVectorBytes) float room[L::kCount];
    for (int64_t c = 0; c < count_; ++c) {
      for (int64_t at = 0; at < length; at += L::kCount) {
        const int64_t lanes = std::min<int64_t>(L::kCount, length - at);
        for (int64_t i = 0; i < lanes; ++i) {
          room[i] = sums[(at + i) % phases * layout_.panel_sums() + (at + i) / phases * pitch_ + c];
        }
        put(L::load(room, L::mask(static_cast<int>(lanes))), c, lanes, y + c * g_.out_plane + at);
      }
    }
  }

  [[gnu::always_inline]] void put(L::V value, int64_t c, int64_t left, float* to) const {
    const auto* bias = static_cast<const float*>(operands_.bias);
    const int lanes = static_cast<int>(std::min<int64_t>(L::kCount, left));
    if (bias != nullptr) value = L::add(value, L::splat(bias[channel_ + c]));
    if (const float* addend = beside(operands_, to)) value = L::add(value, L::load(addend, L::mask(lanes)));
    value = L::min(high_, L::max(low_, value));
    if (lanes == L::kCount) {
      L::store(to, value);
    } else {
      store_first(to, lanes, value);
    }
  }

  const ConvGeometry& g_;
  const DirectLayout& layout_;
  const ConvOperands& operands_;
  const L::V low_, high_;
  int64_t pitch_ = 0;  // of sums, from one position to the next
  int64_t channel_ = 0, count_ = 0;
  float* y_ = nullptr;  // of the first channel
};

inline void copy_input(const ConvPlan& plan, const ConvGeometry& g, const DirectLayout& layout, const ChannelUnit& unit,
                       const float* x, float* buffer, StopPoll& stop) {
  const auto pad = [&](float* to, int64_t count) { fill_zero(to, count * layout.stride); };
  const int64_t channels = plan.shape.in_channels, first = unit.group * g.in_per_group;
  if (plan.shape.x_nhwc) {
    x += unit.image * channels * g.in_plane + first;
    const auto copy = [&](int64_t at, int64_t count, float* to) {
      const float* from = x + at * channels;
      if (layout.stride == channels) return copy_strided(from, 1, count * channels, to);
      for (int64_t i = 0; i < count; ++i) copy_strided(from + i * channels, 1, layout.depth, to + i * layout.stride);
    };
    copy_band(layout, unit, buffer, copy, pad);
  } else {
    x += (unit.image * channels + first) * g.in_plane;
    const auto transpose_into = [&](int64_t at, int64_t count, float* to) {
      constexpr int64_t kTogether = 1024;  // channels, between looks at `stop`
      for (int64_t c = 0; c < layout.depth; c += kTogether) {
        const int64_t channels_now = std::min(kTogether, layout.depth - c);
        if (stop.after(kPackedNs * static_cast<double>(channels_now * count))) return;
        transpose_planes(x + c * g.in_plane + at, g.in_plane, channels_now, count, to + c, layout.stride);
      }
    };
    copy_band(layout, unit, buffer, transpose_into, pad);
  }
}

inline void run_channels(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  const DirectLayout layout(g, kFloatForm);
  auto* sums = static_cast<float*>(operands.scratch);
  float* buffer = sums + layout.sums();
  ChannelSums<FloatChannels> channels(layout, buffer, sums,
                                      reinterpret_cast<PositionOffsets*>(buffer + layout.buffer()), true);
  ChannelStore store(plan, g, layout, operands);
  const bool in_tiles = store.in_tiles();
  StopPoll stop;
  int64_t band = -1;
  for (int64_t i = begin; i < end; ++i) {
    const ChannelUnit unit(layout, i);
    if (unit.band != band) copy_input(plan, g, layout, unit, static_cast<const float*>(operands.x), buffer, stop);
    band = unit.band;
    const float* weights = static_cast<const float*>(operands.packed_weights) + unit.group * layout.group_elements();
    if (!in_tiles) {
      channels.add(unit, weights);
    } else if (const ChannelResults results = store.results(unit); channels.put(unit, weights, &results)) {
      continue;
    }
    store.run(unit, channels);
  }
}

void prepare_channels(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const DirectLayout layout(g, kFloatForm);
  plan.units = layout.units();
  plan.packed_weight_bytes = static_cast<size_t>(layout.groups * layout.group_elements()) * sizeof(float);
  plan.scratch_bytes = static_cast<size_t>(layout.sums() + layout.buffer()) * sizeof(float) +
                       static_cast<size_t>(layout.places()) * sizeof(PositionOffsets);
  plan.run = run_channels;
  plan.packing = plan.shape.transposed ? "direct, transposed" : "direct";
  plan.pack = plan.shape.transposed ? pack_channels<true> : pack_channels<false>;
}

bool fits(const ConvGeometry& g, ComputeType type) {
  return type == ComputeType::kF32 && g.outer_axes == 0 && g.out_plane > 0 && g.in_plane > 0;
}

ConvWork work(const ConvGeometry& g, ComputeType) {
  const DirectLayout layout(g, kFloatForm);
  return DirectWork(g, layout).work([](int64_t vectors) { return FloatChannels::places(static_cast<int>(vectors)); });
}

}  // namespace

constexpr ConvMethod kDirect = {
    .name = "direct",
    .fits = fits,
    .work = work,
    .order = [](const ConvGeometry& g) { return g.taps == 1 ? SumOrder::kWeights : SumOrder::kTaps; },
    .prepare = prepare_channels,
};

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
