// 8-bit convolution by strips: the elements that a strip of output positions reads become panels of bytes whose columns
// are positions, and filters are the rows of a tile. Results lie as the convolution wants them: a row of a tile is a
// piece of an output channel. With x' and w' what the tile multiplies (x without a sign, w with one), each sum still
// owes
//   - (x_zero of x') * sum of the filter's w'
//   - (w_zero of w') * sum over the column of (x' - x_zero)    wherever that zero point is not 0

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/isa/conv/axes.h"
#include "kernels/isa/conv/byte_method.h"
#include "kernels/isa/conv/byte_weights.h"
#include "kernels/isa/qgemm_pack.h"
#include "kernels/isa/qgemm_store.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

namespace {

constexpr int64_t kStripBytes = 192 << 10;  // of panels
constexpr int64_t kMostStripWidth = 1024;
constexpr int64_t kLineRoom = 64;  // bytes that copies of whole vectors may write too many

struct StripLayout {
  explicit StripLayout(const ConvGeometry& g)
      : steps((g.k + 3) / 4), row_bytes(steps * 4), positions(std::max<int64_t>(g.out_channel(), 1)) {
    const int64_t most = std::clamp<int64_t>(kStripBytes / std::max<int64_t>(row_bytes, 1), kIntPanel, kMostStripWidth);
    const int64_t count = (positions + most - 1) / most;
    width = ((positions + count - 1) / count + kIntPanel - 1) / kIntPanel * kIntPanel;
    strips = (positions + width - 1) / width;
  }
  int64_t panels_bytes() const { return width * row_bytes; }
  int64_t lines_bytes() const { return align_up(4 * (width + kLineRoom)); }
  // Panels, lines, and beside each filter what its sums owe, their scale and their bias.
  int64_t scratch_bytes(const ConvGeometry& g) const {
    return align_up(panels_bytes()) + lines_bytes() + 3 * 4 * g.out_per_group;
  }

  int64_t steps, row_bytes;
  int64_t positions;  // of an output channel
  int64_t width, strips;
};

// A filter is a panel of one column; a row of ones follows the filters.
ByteWeightLayout filter_layout(const ConvGeometry& g, bool quads) {
  constexpr int64_t kFewest = 10;  // an overflow in so many pairs takes as long as a second run of the tiles
  const int64_t row_bytes = StripLayout(g).row_bytes, bytes = g.out_per_group * row_bytes;
  const int64_t most =
      std::min<int64_t>(align_up(bytes) / int64_t{sizeof(QOverflow)}, g.out_per_group * g.k / 2 / kFewest);
  return {g.out_per_group, g.out_per_group, bytes, row_bytes, most, quads};
}

bool copy_filters(const QConvShape& shape, const ConvGeometry& g, const uint8_t* weights, int8_t* to, int32_t* sums,
                  StopPoll& stop) {
  const uint8_t flip = shape.w_signed ? 0 : 0x80;
  const int64_t row_bytes = StripLayout(g).row_bytes;
  for (int64_t r = 0; r < g.out_per_group; ++r, to += row_bytes) {
    std::fill(to + g.k, to + row_bytes, int8_t{0});
    int32_t sum = 0;
    const bool goes_on = in_pieces(g.k, kPackedNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) sum += to[p] = static_cast<int8_t>(weights[r * g.k + p] ^ flip);
    });
    if (!goes_on) return false;
    sums[r] = sum;
  }
  std::fill(to + g.k, to + row_bytes, int8_t{0});
  return fill_in_pieces(to, 1, static_cast<size_t>(g.k));
}

// Makes the panels of a strip: [panel][step][position][4].
class StripMaker {
 public:
  StripMaker(const ConvGeometry& g, const StripLayout& layout, const uint8_t* x_end, uint8_t padding, bool flip,
             uint8_t* lines, uint8_t* panels)
      : g_(g), layout_(layout), x_end_(x_end), padding_(padding), flip_(flip), lines_(lines), panels_(panels) {}

  // `x`: the group's first channel in one image.
  void make(const uint8_t* x, int64_t first, int64_t count) {
    const int64_t line = layout_.width + kLineRoom;
    const Position place{first / g_.out_plane, first % g_.out_plane / g_.width.out, first % g_.width.out};
    Tap tap{x};
    for (int64_t step = 0; step < layout_.steps; ++step) {
      for (int64_t i = 0; i < 4; ++i) {
        if (4 * step + i < g_.k) {
          fill(tap, place, count, lines_ + i * line);
          next(tap);
        } else {
          std::memset(lines_ + i * line, 0, static_cast<size_t>(layout_.width));
        }
      }
      const int64_t panels = (count + kIntPanel - 1) / kIntPanel;
      for (int64_t panel = 0; panel < panels; ++panel) {
        uint8_t* to = panels_ + (panel * layout_.steps + step) * 4 * kIntPanel;
        for (int64_t at = 0; at < kIntPanel; at += 16) interleave(lines_ + panel * kIntPanel + at, line, to + 4 * at);
      }
    }
  }

 private:
  // 16 bytes of each of four lines.
  void interleave(const uint8_t* from, int64_t line, uint8_t* to) const {
    const auto load = [&](int64_t i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * line)); };
    const __m128i low = _mm_unpacklo_epi8(load(0), load(1)), high = _mm_unpackhi_epi8(load(0), load(1));
    const __m128i next_low = _mm_unpacklo_epi8(load(2), load(3)), next_high = _mm_unpackhi_epi8(load(2), load(3));
    const __m128i flip = _mm_set1_epi8(static_cast<char>(flip_ ? 0x80 : 0));
    const auto store = [&](int i, __m128i v) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, _mm_xor_si128(v, flip));
    };
    store(0, _mm_unpacklo_epi16(low, next_low));
    store(1, _mm_unpackhi_epi16(low, next_low));
    store(2, _mm_unpacklo_epi16(high, next_high));
    store(3, _mm_unpackhi_epi16(high, next_high));
  }

  // An element of the filters, and the channel that it is multiplied by.
  struct Tap {
    const uint8_t* channel;
    int64_t outer = 0, y = 0, x = 0;
  };
  void next(Tap& tap) const {
    if (++tap.x < g_.width.kernel) return;
    tap.x = 0;
    if (++tap.y < g_.height.kernel) return;
    tap.y = 0;
    if (++tap.outer < g_.outer_taps) return;
    tap.outer = 0;
    tap.channel += g_.in_channel();
  }

  // What `tap` meets at `count` positions from `place` on.
  struct Position {
    int64_t outer, row, column;
  };
  void fill(const Tap& tap, Position place, int64_t count, uint8_t* line) const {
    const Axis &h = g_.height, &w = g_.width;
    auto [outer, row, column] = place;
    const Interval whole = inside(w.input_at(0, tap.x), w.stride, w.in, w.out);  // of a row of positions
    while (count > 0) {
      const int64_t n = std::min(count, w.out - column);
      const int64_t plane = g_.outer_plane(outer, tap.outer), y = h.input_at(row, tap.y);
      if (plane < 0 || y < 0 || y >= h.in) {
        std::memset(line, padding_, static_cast<size_t>(n));
      } else {
        const int64_t begin = std::clamp<int64_t>(whole.begin - column, 0, n);
        const int64_t end = std::clamp(whole.end - column, begin, n);
        const uint8_t* from = tap.channel + plane * g_.in_plane + y * w.in + w.input_at(column + begin, tap.x);
        if (end > begin) copy(from, end - begin, line + begin);
        for (int64_t i = 0; i < begin; ++i) line[i] = padding_;
        for (int64_t i = end; i < n; ++i) line[i] = padding_;
      }
      line += n, count -= n;
      column = 0;
      if (++row == h.out) row = 0, ++outer;
    }
  }

  void copy(const uint8_t* from, int64_t n, uint8_t* to) const {
    const int64_t stride = g_.width.stride;
    if (stride == 1) {
      // Copies of a fixed size are single moves; what is too much is overwritten by what follows.
      constexpr int64_t kMove = 32;
      if (x_end_ - from < n + kMove) {
        std::memcpy(to, from, static_cast<size_t>(n));
      } else {
        for (int64_t i = 0; i < n; i += kMove) std::memcpy(to + i, from + i, kMove);
      }
    } else if (stride == 2) {
      for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
    }
  }

  const ConvGeometry& g_;
  const StripLayout& layout_;
  const uint8_t* x_end_;
  const uint8_t padding_;
  const bool flip_;
  uint8_t *lines_, *panels_;
};

template <QScheme kScheme>
class StripConv {
 public:
  StripConv(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue)
      : shape_(plan.shape),
        g_(plan.shape.conv),
        layout_(g_),
        filters_(filter_layout(g_, kScheme == QScheme::kQuads)),
        operands_(operands),
        epilogue_(epilogue),
        store_(epilogue) {
    auto* scratch = static_cast<uint8_t*>(operands.scratch);
    panels_ = scratch;
    lines_ = scratch + align_up(layout_.panels_bytes());
    owed_ = reinterpret_cast<int32_t*>(lines_ + layout_.lines_bytes());
    scales_ = reinterpret_cast<float*>(owed_ + g_.out_per_group);
    biases_ = scales_ + g_.out_per_group;
    const ConvShape& s = shape_.conv;
    x_end_ = static_cast<const uint8_t*>(operands.x) + s.batch * s.in_channels * g_.in_channel();
    x_zero_ = byte_at(operands.x_zero, shape_.x_signed, 0) + (shape_.x_signed ? 128 : 0);
  }

  void run(int64_t begin, int64_t end) {
    const uint8_t padding = operands_.x_zero == nullptr ? 0 : *static_cast<const uint8_t*>(operands_.x_zero);
    StripMaker maker(g_, layout_, x_end_, padding, shape_.x_signed, lines_, panels_);
    const ConvShape& s = shape_.conv;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % layout_.strips * layout_.width;
      const int64_t image = unit / layout_.strips % s.batch, group = unit / layout_.strips / s.batch;
      const int64_t count = std::min(layout_.width, layout_.positions - first);
      const auto* x = static_cast<const uint8_t*>(operands_.x) +
                      (image * s.in_channels + group * g_.in_per_group) * g_.in_channel();
      maker.make(x, first, count);
      begin_group(group);
      for (int64_t at = 0; at < count; at += kIntPanel) {
        run_panel(panels_ + at * layout_.row_bytes,
                  (image * s.out_channels + channel_) * layout_.positions + first + at,
                  std::min<int64_t>(kIntPanel, count - at));
      }
    }
  }

 private:
  void begin_group(int64_t group) {
    packed_ = static_cast<const std::byte*>(operands_.packed_weights) + group * filters_.bytes;
    channel_ = group * g_.out_per_group;
    halves_ = filters_.form(packed_) == ByteWeightForm::kHalves;
    column_sums_ = false;
    for (int64_t r = 0; r < (shape_.w_zero_per_channel ? g_.out_per_group : 1); ++r) column_sums_ |= w_zero(r) != 0;
    const auto* filters = reinterpret_cast<const int32_t*>(packed_ + filters_.sums_at);
    for (int64_t r = 0; r < g_.out_per_group; ++r) lay_beside(r, filters[r]);
  }

  // What all sums of filter r owe, are multiplied by and get.
  void lay_beside(int64_t r, int32_t filter) {
    const auto x_zero = static_cast<uint32_t>(x_zero_);
    uint32_t owed = static_cast<uint32_t>(w_zero(r)) * x_zero * static_cast<uint32_t>(g_.k);
    owed -= x_zero * static_cast<uint32_t>(filter);
    if (epilogue_.bias != nullptr) owed += static_cast<uint32_t>(epilogue_.bias[channel_ + r]);
    owed_[r] = static_cast<int32_t>(owed);
    if (epilogue_.output == QGemmOutput::kInt32) return;
    const float b_scale = epilogue_.b_scale[epilogue_.b_scale_per_column ? channel_ + r : 0];
    scales_[r] = *epilogue_.a_scale * b_scale / folded_scale(epilogue_);
    biases_[r] = epilogue_.float_bias != nullptr ? epilogue_.float_bias[channel_ + r] : 0;
  }
  int32_t w_zero(int64_t r) const {
    return byte_at(operands_.w_zero, shape_.w_signed, shape_.w_zero_per_channel ? channel_ + r : 0) -
           (shape_.w_signed ? 0 : 128);
  }

  void multiply(const std::byte* rows, int64_t height, const uint8_t* panel, int32_t* sums) const {
    kQtileTable<kScheme, QSide::kPanels>[static_cast<size_t>(height - 1)](
        rows, layout_.row_bytes, reinterpret_cast<const int8_t*>(panel), layout_.steps, sums);
  }

  // `at`: of the first position in the group's first output channel.
  void run_panel(const uint8_t* panel, int64_t at, int64_t columns) {
    alignas(kKernelAlignment) int32_t sums[kIntRows<kScheme> * kIntPanel], ones[kIntPanel];
    const std::byte* rows = packed_ + filters_.panels_at;
    if (column_sums_) multiply(rows + g_.out_per_group * layout_.row_bytes, 1, panel, ones);
    int64_t tiles = (g_.out_per_group + kIntRows<kScheme> - 1) / kIntRows<kScheme>;
    for (int64_t r = 0, height; r < g_.out_per_group; r += height, --tiles) {
      height = (g_.out_per_group - r + tiles - 1) / tiles;
      multiply(rows + r * layout_.row_bytes, height, panel, sums);
      if constexpr (kScheme == QScheme::kFitted) add_more(r, height, panel, sums);
      if (epilogue_.output > QGemmOutput::kScaled && !column_sums_ && columns == kIntPanel) {
        put_bytes(sums, height, r, at + r * layout_.positions);
        continue;
      }
      for (int64_t i = 0; i < height; ++i) {
        finish(load_sums(sums + i * kIntPanel), ones, r + i, at + (r + i) * layout_.positions, columns);
      }
    }
  }

  void add_more(int64_t r, int64_t height, const uint8_t* panel, int32_t* sums) const {
    const std::byte* more = packed_ + filters_.more_at;
    if (halves_) {
      alignas(kKernelAlignment) int32_t others[kIntRows<kScheme> * kIntPanel];
      multiply(more + r * layout_.row_bytes, height, panel, others);
      for (int64_t i = 0; i < height * kIntPanel; i += kIntLanes) {
        (QInts::load(sums + i) + QInts::load(others + i)).store(sums + i);
      }
      return;
    }
    const auto* ends = reinterpret_cast<const int32_t*>(packed_ + filters_.ends_at);
    const auto* overflows = reinterpret_cast<const QOverflow*>(more);
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t at = r + i == 0 ? 0 : ends[r + i - 1]; at < ends[r + i]; ++at) {
        add_overflow(overflows[at], panel, sums + i * kIntPanel);
      }
    }
  }

  static void add_overflow(const QOverflow& overflow, const uint8_t* panel, int32_t* sums) {
    const auto* from = reinterpret_cast<const int32_t*>(panel) + overflow.step / 4 * kIntPanel;
    for (int v = 0; v < kIntPanel; v += kIntLanes) {
      const QInts byte = (QInts::load(from + v) >> (overflow.step % 4 * 8)) & QInts(0xFF);
      (QInts::load(sums + v) + byte * QInts(overflow.value)).store(sums + v);
    }
  }

  // Row r of the group's filters, see the head of this file.
  void finish(QSums sums, const int32_t* ones, int64_t r, int64_t at, int64_t columns) const {
    const QInts owed(owed_[r]), zero(column_sums_ ? w_zero(r) : 0);
    for (size_t v = 0; v < 2; ++v) {
      sums[v] = sums[v] + owed;
      if (column_sums_) sums[v] = sums[v] - QInts::load(ones + v * kIntLanes) * zero;
    }
    if (epilogue_.output == QGemmOutput::kInt32) return store_.sums(sums, columns, operands_.y, at);
    store_.values(scaled(sums, r), columns, operands_.y, at);
  }

  TREADLE_ALWAYS_INLINE QValues scaled(const QSums& sums, int64_t r) const {
    QValues values;
    for (size_t v = 0; v < 2; ++v) {
      values[v] = convert_lanes<float>(sums[v]) * QFloats(scales_[r]);
      if (epilogue_.float_bias != nullptr) values[v] = values[v] + QFloats(biases_[r]);
    }
    return values;
  }

  // Rows from r on that owe nothing beside `owed_`.
  void put_bytes(const int32_t* sums, int64_t height, int64_t r, int64_t at) const {
    auto* y = static_cast<std::byte*>(operands_.y) + at;
    for (const int64_t end = r + height; r < end; ++r, sums += kIntPanel, y += layout_.positions) {
      const QInts owed(owed_[r]);
      QValues values = scaled({QInts::load(sums) + owed, QInts::load(sums + kIntLanes) + owed}, r);
      store_.clamp(values);
      store_.rounding().put(values[0], values[1], y);
    }
  }

  const QConvShape& shape_;
  ConvGeometry g_;
  StripLayout layout_;
  ByteWeightLayout filters_;
  const QConvOperands& operands_;
  const QGemmEpilogue& epilogue_;
  const QStore store_;
  uint8_t *panels_, *lines_;
  const uint8_t* x_end_;
  int32_t x_zero_;
  // Of the group:
  int32_t* owed_;
  float *scales_, *biases_;
  const std::byte* packed_ = nullptr;
  int64_t channel_ = 0;  // its first
  bool halves_ = false, column_sums_ = false;
};

template <QScheme kScheme>
void run_strips(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue, int64_t begin,
                int64_t end) {
  StripConv<kScheme>(plan, operands, epilogue).run(begin, end);
}

template <QScheme kScheme>
void pack_for_strips(const QConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape.conv);
  constexpr bool kQuads = kScheme == QScheme::kQuads;
  const ByteWeightLayout at = filter_layout(g, kQuads);
  for (int64_t group = 0; group < plan.shape.conv.groups; ++group) {
    if (stop.after(kPackedNs * static_cast<double>(std::min(g.out_per_group * g.k, kFewSteps)))) return;
    const auto* from = static_cast<const uint8_t*>(weights) + group * g.out_per_group * g.k;
    const auto copy = [&](int8_t* to, int32_t* sums) { return copy_filters(plan.shape, g, from, to, sums, stop); };
    const auto width_of = [](int64_t) { return int64_t{1}; };
    pack_byte_weights(at, StripLayout(g).steps, width_of, kQuads, copy,
                      static_cast<std::byte*>(packed) + group * at.bytes, stop);
  }
}

template <QScheme kScheme>
void prepare_as(QConvPlan& plan) {
  const ConvShape& shape = plan.shape.conv;
  const ConvGeometry g(shape);
  const StripLayout layout(g);
  plan.units = g.out_channel() == 0 ? 0 : shape.groups * shape.batch * layout.strips;
  plan.scratch_bytes = static_cast<size_t>(layout.scratch_bytes(g));
  plan.packed_weight_bytes = static_cast<size_t>(shape.groups * filter_layout(g, kScheme == QScheme::kQuads).bytes);
  plan.run = run_strips<kScheme>;
  plan.pack = pack_for_strips<kScheme>;
}

}  // namespace

constexpr ByteConvMethod kByteStrips = {
    .name = "byte-strips",
    .fits = [](const ConvGeometry& g) { return g.k <= FittedLayout::kMostSteps; },
    .pays = [](const ConvGeometry&) { return true; },
    .prepare =
        [](QConvPlan& plan) { has_quads() ? prepare_as<QScheme::kQuads>(plan) : prepare_as<QScheme::kFitted>(plan); },
};

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
