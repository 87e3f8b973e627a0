// 8-bit convolution with output channels in the lanes (direct_sums.h): an element of the input is four channels
// of a position, which a tile multiplies by four weights of each output channel. With x' and w' what the tile
// multiplies (x without a sign, w with one), the sum of a position and a channel still owes
//   - (x_zero of x') * sum of the channel's w'
//   - (w_zero of w') * sum over the position's (x' - x_zero)    wherever that zero point is not 0

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/isa/conv/byte_method.h"
#include "kernels/isa/conv/byte_transpose.h"
#include "kernels/isa/conv/byte_weights.h"
#include "kernels/isa/conv/direct_copy.h"
#include "kernels/isa/qgemm_pack.h"
#include "kernels/isa/qgemm_store.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

namespace {

template <QScheme kScheme>
struct ByteChannels {
  using Element = uint32_t;
  using Sum = int32_t;
  using V = IntVector;
  using Row = IntVector;
  using Results = void;
  static constexpr int kLanes = kIntLanes;
#if defined(__AVX512F__)
  static constexpr int kPanelVectors = 4, kPanelPlaces = 6;
#else
  static constexpr int kPanelVectors = 2, kPanelPlaces = kScheme == QScheme::kQuads ? 6 : 5;
#endif
  static constexpr int kMostPlaces = 8;
  static constexpr int places(int vectors) { return vectors == kPanelVectors ? kPanelPlaces : kMostPlaces; }
  static V zero() { return V::zero(); }
  static V load(const int32_t* p) { return V::load(reinterpret_cast<const int8_t*>(p)); }
  static Row row(const uint32_t* p) { return V::load(reinterpret_cast<const int8_t*>(p)); }
  static V splat(const uint32_t* p) { return V::splat(p); }
  static void add(V& sum, V element, Row row) { add_step<kScheme, QSide::kRows>(sum, element, row); }
  static void store(int32_t* p, V v) { v.store(p); }
  static constexpr ChannelsForm form() { return {kLanes, kPanelVectors, 4, 1024}; }
};

ByteWeightLayout weight_layout(const DirectLayout& layout, bool quads) {
  constexpr int64_t kFewest = 50;  // an overflow in so many weights takes as long as a second run of the tiles
  const int64_t weights = align_up(layout.group_elements() * 4);
  return {layout.vectors * layout.form.lanes, layout.panels, weights, 0, layout.group_elements() * 2 / kFewest, quads};
}

// [panel][tap][element of the input][channel][4]
bool copy_weights(const QConvShape& shape, const ConvGeometry& g, const DirectLayout& layout, const uint8_t* from,
                  int8_t* panels, int32_t* sums, StopPoll& stop) {
  const uint8_t flip = shape.w_signed ? 0 : 0x80;
  std::memset(sums, 0, static_cast<size_t>(layout.vectors * layout.form.lanes * 4));
  fill_in_pieces(panels, 0, static_cast<size_t>(layout.group_elements() * 4));
  StepPoll steps(stop, kPackedNs);
  for (int64_t channel = 0; channel < g.out_per_group; ++channel) {
    const int64_t panel = channel / layout.panel_channels(), column = channel % layout.panel_channels();
    const int64_t width = layout.panel_vectors(panel) * layout.form.lanes * 4;
    int8_t* to = panels + panel * layout.panel_elements() * 4 + column * 4;
    for (int64_t c = 0; c < g.in_per_group; ++c) {
      for (int64_t tap = 0; tap < g.taps; ++tap) {
        if (steps.after_step()) return false;
        const auto value = static_cast<int8_t>(*from++ ^ flip);
        to[(tap * layout.depth + c / 4) * width + c % 4] = value;
        sums[channel] += value;
      }
    }
  }
  return true;
}

// Scratch: sums, copy of the input, room of the copy, sums of positions, places.
struct ByteScratch {
  explicit ByteScratch(const DirectLayout& layout)
      : buffer_at(align_up(layout.sums() * 4)),
        room_at(buffer_at + align_up(layout.buffer() * 4)),
        position_sums_at(room_at + align_up(QuadCopy::room_bytes(layout.depth))),
        places_at(position_sums_at + align_up(layout.places() * 4)),
        bytes(places_at + align_up(layout.places() * int64_t{sizeof(PositionOffsets)})) {}
  int64_t buffer_at, room_at, position_sums_at, places_at, bytes;
};

template <QScheme kScheme>
class ByteConv {
  using Math = ByteChannels<kScheme>;

 public:
  ByteConv(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue)
      : shape_(plan.shape),
        g_(plan.shape.conv),
        layout_(g_, Math::form()),
        weights_at_(weight_layout(layout_, kScheme == QScheme::kQuads)),
        operands_(operands),
        epilogue_(epilogue),
        store_(epilogue) {
    const ByteScratch scratch(layout_);
    auto* bytes = static_cast<std::byte*>(operands.scratch);
    sums_ = reinterpret_cast<int32_t*>(bytes);
    buffer_ = reinterpret_cast<uint32_t*>(bytes + scratch.buffer_at);
    room_ = reinterpret_cast<uint32_t*>(bytes + scratch.room_at);
    position_sums_ = reinterpret_cast<int32_t*>(bytes + scratch.position_sums_at);
    places_ = reinterpret_cast<PositionOffsets*>(bytes + scratch.places_at);
    x_zero_ = static_cast<uint8_t>(byte_at(operands.x_zero, shape_.x_signed, 0) + (shape_.x_signed ? 128 : 0));
  }

  void run(int64_t begin, int64_t end) {
    ChannelSums<Math> sums(layout_, buffer_, sums_, places_, x_zero_ == 0);
    int64_t band = -1;
    for (int64_t i = begin; i < end; ++i) {
      const ChannelUnit unit(layout_, i);
      begin_group(unit.group);
      if (unit.band != band) copy(unit);
      band = unit.band;
      const auto* weights = reinterpret_cast<const uint32_t*>(packed_ + weights_at_.panels_at);
      sums.add(unit, weights);
      if (kScheme == QScheme::kFitted) add_more(unit, sums);
      for (int64_t panel = unit.first_panel; panel < unit.last_panel; ++panel) {
        for (int64_t v = 0; v < layout_.panel_vectors(panel); ++v) finish(unit, sums.panel(panel, 0), panel, v);
      }
    }
  }

 private:
  // Of channel i of the group.
  int32_t w_zero(int64_t i) const {
    return byte_at(operands_.w_zero, shape_.w_signed, shape_.w_zero_per_channel ? channel_ + i : 0) -
           (shape_.w_signed ? 0 : 128);
  }

  void begin_group(int64_t group) {
    packed_ = static_cast<const std::byte*>(operands_.packed_weights) + group * weights_at_.bytes;
    channel_ = group * g_.out_per_group;
    sums_positions_ = false;
    for (int64_t i = 0; i < (shape_.w_zero_per_channel ? g_.out_per_group : 1); ++i) sums_positions_ |= w_zero(i) != 0;
  }

  void copy(const ChannelUnit& unit) {
    const ConvShape& s = shape_.conv;
    const auto* x = static_cast<const uint8_t*>(operands_.x);
    const uint8_t* first = x + (unit.image * s.in_channels + unit.group * g_.in_per_group) * g_.in_plane;
    const QuadCopy quads{.planes = first,
                         .end = x + s.batch * s.in_channels * g_.in_plane,
                         .plane = g_.in_plane,
                         .channels = g_.in_per_group,
                         .depth = layout_.depth,
                         .stride = layout_.stride,
                         .flip = shape_.x_signed,
                         .padding = x_zero_};
    copy_band(
        layout_, unit, buffer_, [&](int64_t at, int64_t count, uint32_t* to) { quads.copy(at, count, room_, to); },
        [&](uint32_t* to, int64_t count) { quads.pad(count, to); });
    if (sums_positions_) sum_positions(unit);
  }

  // Of x' - x_zero, over what a position reads.
  void sum_positions(const ChannelUnit& unit) {
    const auto taken = static_cast<int32_t>(g_.k * x_zero_);
    int32_t* sum = position_sums_;
    for (int64_t r = 0; r < unit.rows; ++r) {
      for (int64_t q = 0; q < unit.columns; ++q, ++sum) {
        const uint32_t* at = buffer_ + (r * g_.height.stride * layout_.pitch + q * g_.width.stride) * layout_.stride;
        *sum = -taken;
        for (int64_t tap = 0; tap < g_.taps; ++tap) *sum += sum_bytes(at + tap_at(tap), layout_.depth);
      }
    }
  }
  static int32_t sum_bytes(const uint32_t* quads, int64_t count) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(quads);
    int32_t sum = 0;
    for (int64_t i = 0; i < 4 * count; ++i) sum += bytes[i];
    return sum;
  }
  // Where a tap's elements lie behind a position's first one.
  int64_t tap_at(int64_t tap) const {
    const int64_t y = tap / g_.width.kernel * g_.height.dilation, x = tap % g_.width.kernel * g_.width.dilation;
    return (y * layout_.pitch + x) * layout_.stride;
  }

  void add_more(const ChannelUnit& unit, ChannelSums<Math>& sums) {
    const std::byte* more = packed_ + weights_at_.more_at;
    if (weights_at_.form(packed_) == ByteWeightForm::kHalves) {
      return sums.add(unit, reinterpret_cast<const uint32_t*>(more), true);
    }
    const auto* ends = reinterpret_cast<const int32_t*>(packed_ + weights_at_.ends_at);
    const auto* overflows = reinterpret_cast<const QOverflow*>(more);
    for (int64_t panel = unit.first_panel; panel < unit.last_panel; ++panel) {
      int32_t* to = sums_ + (sums.panel(panel, 0) - sums_);
      for (int64_t i = panel == 0 ? 0 : ends[panel - 1]; i < ends[panel]; ++i) {
        add_overflow(unit, overflows[i], layout_.panel_vectors(panel) * kIntLanes, to);
      }
    }
  }

  void add_overflow(const ChannelUnit& unit, const QOverflow& overflow, int64_t width, int32_t* sums) const {
    const int64_t tap = overflow.step / (4 * layout_.depth), byte = overflow.step % (4 * layout_.depth);
    const auto* x = reinterpret_cast<const uint8_t*>(buffer_ + tap_at(tap)) + byte;
    const int64_t step = g_.width.stride * layout_.stride * 4;
    int32_t* to = sums + overflow.column;
    for (int64_t r = 0; r < unit.rows; ++r, x += g_.height.stride * layout_.pitch * layout_.stride * 4) {
      for (int64_t q = 0; q < unit.columns; ++q, to += width) *to += x[q * step] * overflow.value;
    }
  }

  // What the channels of a vector owe and are multiplied by.
  struct Beside {
    QInts owed, zeros;
    QFloats scale, bias;
  };
  Beside beside(int64_t first, int64_t count) const {
    int32_t owed[kIntLanes] = {}, zeros[kIntLanes] = {};
    float scale[kIntLanes] = {}, bias[kIntLanes] = {};
    const auto* sums = reinterpret_cast<const int32_t*>(packed_ + weights_at_.sums_at) + first;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t channel = channel_ + first + i;
      const uint32_t plain = epilogue_.bias == nullptr ? 0 : static_cast<uint32_t>(epilogue_.bias[channel]);
      owed[i] = static_cast<int32_t>(plain - x_zero_ * static_cast<uint32_t>(sums[i]));
      zeros[i] = w_zero(first + i);
      if (epilogue_.output == QGemmOutput::kInt32) continue;
      const float b_scale = epilogue_.b_scale[epilogue_.b_scale_per_column ? channel : 0];
      scale[i] = *epilogue_.a_scale * b_scale / folded_scale(epilogue_);
      if (epilogue_.float_bias != nullptr) bias[i] = epilogue_.float_bias[channel];
    }
    return {QInts::load(owed), QInts::load(zeros), QFloats::load(scale), QFloats::load(bias)};
  }

  // The sums of vector v of a panel, to where they belong.
  void finish(const ChannelUnit& unit, const int32_t* sums, int64_t panel, int64_t v) {
    const int64_t first = panel * layout_.panel_channels() + v * kIntLanes;
    const int64_t count = std::min<int64_t>(kIntLanes, g_.out_per_group - first);
    const Beside channels = beside(first, count);
    const bool whole = unit.columns == g_.width.out;
    const int64_t runs = whole ? 1 : unit.rows, length = whole ? unit.positions() : unit.columns;
    const int64_t pitch = layout_.panel_vectors(panel) * kIntLanes;
    int64_t y = (unit.image * shape_.conv.out_channels + channel_ + first) * g_.out_plane + unit.row * g_.width.out +
                unit.column;
    for (int64_t r = 0, position = 0; r < runs; ++r, y += g_.width.out) {
      for (int64_t at = 0; at < length; at += kTransposed) {
        const int64_t n = std::min<int64_t>(kTransposed, length - at);
        finish_positions(channels, sums + position * pitch + v * kIntLanes, pitch, position, n, y + at, count);
        position += n;
      }
    }
  }

  // Of `n` positions, to rows of y for `count` channels.
  void finish_positions(const Beside& channels, const int32_t* sums, int64_t pitch, int64_t position, int64_t n,
                        int64_t y, int64_t count) {
    const auto corrected = [&](int64_t i) {
      QInts sum = QInts::load(sums + i * pitch) + channels.owed;
      if (sums_positions_) sum = sum - channels.zeros * QInts(position_sums_[position + i]);
      return sum;
    };
    const auto value = [&](int64_t i) {
      QFloats v = convert_lanes<float>(corrected(i)) * channels.scale;
      if (epilogue_.float_bias != nullptr) v = v + channels.bias;
      return v;
    };
    if (epilogue_.output > QGemmOutput::kScaled) return put_bytes(value, n, y, count);
    for (int64_t i = 0; i < n; ++i) {
      if (epilogue_.output == QGemmOutput::kInt32) {
        from_bits_of<QFloats>(to_bits(corrected(i))).store(finished_ + i * kIntLanes);
      } else {
        QFloatRow<1> row{value(i)};
        store_.clamp(row);
        row[0].store(finished_ + i * kIntLanes);
      }
    }
    put_transposed_words(finished_, count, n, static_cast<float*>(operands_.y) + y, g_.out_plane);
  }

  template <class Value>
  TREADLE_ALWAYS_INLINE void put_bytes(const Value& value, int64_t n, int64_t y, int64_t count) const {
    const auto quads = [&](int64_t first) {
      QFloatRow<4> row;
      for (int64_t i = 0; i < 4; ++i) row[static_cast<size_t>(i)] = value(std::min(first + i, n - 1));
      store_.clamp(row);
      return store_.rounding().quads(row[0], row[1], row[2], row[3]);
    };
    put_transposed_quads(quads(0), quads(4), quads(8), quads(12), count, n, static_cast<uint8_t*>(operands_.y) + y,
                         g_.out_plane);
  }

  const QConvShape& shape_;
  ConvGeometry g_;
  DirectLayout layout_;
  ByteWeightLayout weights_at_;
  const QConvOperands& operands_;
  const QGemmEpilogue& epilogue_;
  const QStore store_;
  int32_t* sums_;
  uint32_t *buffer_, *room_;
  int32_t* position_sums_;
  PositionOffsets* places_;
  uint8_t x_zero_;                                                      // of x'
  alignas(kVectorBytes) float finished_[kTransposed * kIntLanes] = {};  // where results are words
  // Of the group:
  const std::byte* packed_ = nullptr;
  int64_t channel_ = 0;  // its first
  bool sums_positions_ = false;
};

template <QScheme kScheme>
void run_byte_channels(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue,
                       int64_t begin, int64_t end) {
  ByteConv<kScheme>(plan, operands, epilogue).run(begin, end);
}

template <QScheme kScheme>
void pack_byte_channels(const QConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape.conv);
  const DirectLayout layout(g, ByteChannels<kScheme>::form());
  constexpr bool kQuads = kScheme == QScheme::kQuads;
  const ByteWeightLayout at = weight_layout(layout, kQuads);
  const auto width_of = [&](int64_t panel) { return layout.panel_vectors(panel) * layout.form.lanes; };
  for (int64_t group = 0; group < layout.groups; ++group) {
    if (stop.after(kPackedNs * static_cast<double>(std::min(g.out_per_group * g.k, kFewSteps)))) return;
    const auto* from = static_cast<const uint8_t*>(weights) + group * g.out_per_group * g.k;
    const auto copy = [&](int8_t* panels, int32_t* sums) {
      return copy_weights(plan.shape, g, layout, from, panels, sums, stop);
    };
    pack_byte_weights(at, layout.steps, width_of, kQuads, copy, static_cast<std::byte*>(packed) + group * at.bytes,
                      stop);
  }
}

template <QScheme kScheme>
void prepare_as(QConvPlan& plan) {
  const ConvGeometry g(plan.shape.conv);
  const DirectLayout layout(g, ByteChannels<kScheme>::form());
  plan.units = g.out_plane == 0 ? 0 : layout.units();
  plan.scratch_bytes = static_cast<size_t>(ByteScratch(layout).bytes);
  plan.packed_weight_bytes =
      static_cast<size_t>(layout.groups * weight_layout(layout, kScheme == QScheme::kQuads).bytes);
  plan.run = run_byte_channels<kScheme>;
  plan.pack = pack_byte_channels<kScheme>;
}

DirectLayout layout_of(const ConvGeometry& g) {
  return {g, has_quads() ? ByteChannels<QScheme::kQuads>::form() : ByteChannels<QScheme::kFitted>::form()};
}

bool fits(const ConvGeometry& g) {
  return g.outer_axes == 0 && layout_of(g).steps * 4 < FittedLayout::kMostSteps;
}

// Whether most lanes and most bytes of elements are filled, by enough steps to pay for sums that wait in scratch.
// Depends on nothing but channels and kernels: weights are packed once for inputs of any size.
bool pays(const ConvGeometry& g) {
  constexpr int64_t kFewestSteps = 24;
  const DirectLayout layout = layout_of(g);
  const int64_t lanes = layout.vectors * layout.form.lanes;
  return layout.steps >= kFewestSteps && 3 * layout.depth <= g.in_per_group && lanes * 2 <= g.out_per_group * 3;
}

}  // namespace

constexpr ByteConvMethod kByteDirect = {
    .name = "byte-direct",
    .fits = fits,
    .pays = pays,
    .prepare =
        [](QConvPlan& plan) { has_quads() ? prepare_as<QScheme::kQuads>(plan) : prepare_as<QScheme::kFitted>(plan); },
};

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
