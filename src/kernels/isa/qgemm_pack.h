#pragma once
// Packed B of 8-bit products: the sums of the columns of B', then panels. kFitted has a head before them, and the
// overflows of weights behind them. B' is B as int8; uint8 becomes int8 by subtracting 128.
//
// kFitted needs neighbouring weights of one sign to add up to at most 128. In trained weights few pairs do not. The
// larger weight of such a pair is cut, and its rest goes into a list, which is added to the sums after the tile. If too
// many pairs do not fit, the panels are those of kPairs, and the head says so.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/in_pieces.h"
#include "kernels/isa/qgemm_tile.h"
#include "kernels/qgemm.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

constexpr int64_t align_up(int64_t bytes) {
  return (bytes + int64_t{kKernelAlignment} - 1) & -int64_t{kKernelAlignment};
}

template <QScheme kScheme>
struct QLayout {
  static constexpr int64_t kSteps = kIntSteps<kScheme>;
  explicit QLayout(const QGemmShape& s)
      : steps((s.k + kSteps - 1) / kSteps),
        panels((s.n + kIntPanel - 1) / kIntPanel),
        sums_bytes(align_up(panels * kIntPanel * 4)),
        panel_bytes(steps * kSteps * kIntPanel),
        a_bytes(align_up(steps * 4)) {}
  int64_t packed_bytes() const { return sums_bytes + panels * panel_bytes; }

  int64_t steps, panels;
  int64_t sums_bytes, panel_bytes;
  int64_t a_bytes;  // bytes of a converted row
};

// Steps of a piece that is too small for a StepPoll; there may be many such pieces.
inline constexpr int64_t kFewSteps = 1024;

// Packs B' into panels at `packed`.
template <QScheme kScheme>
void pack_qpanels(const QGemmShape& s, const void* b, void* packed, int64_t first_panel, int64_t end_panel,
                  StopPoll& stop) {
  const QLayout<kScheme> layout(s);
  constexpr int64_t kSteps = QLayout<kScheme>::kSteps;
  const uint8_t flip = s.b_signed ? 0 : 0x80;
  const uint8_t* from = static_cast<const uint8_t*>(b);
  StepPoll rows(stop, kPackedNs * kIntPanel);
  for (int64_t panel = first_panel; panel < end_panel; ++panel) {
    if (stop.after(kPackedNs * kIntPanel * static_cast<double>(std::min(s.k, kFewSteps)))) return;
    int32_t* sums = static_cast<int32_t*>(packed) + panel * kIntPanel;
    int8_t* to = static_cast<int8_t*>(packed) + layout.sums_bytes + panel * layout.panel_bytes;
    const int64_t columns = std::min<int64_t>(kIntPanel, s.n - panel * kIntPanel);
    fill_in_pieces(to, 0, static_cast<size_t>(layout.panel_bytes));
    std::fill_n(sums, kIntPanel, 0);
    for (int64_t p = 0; p < s.k; ++p) {
      if (rows.after_step()) return;
      const uint8_t* row = from + p * s.b_row + panel * kIntPanel * s.b_col;
      int8_t* at = to + p / kSteps * kIntPanel * kSteps + p % kSteps;
      for (int64_t j = 0; j < columns; ++j) {
        const auto value = static_cast<int8_t>(row[j * s.b_col] ^ flip);
        at[j * kSteps] = value;
        sums[j] += value;
      }
    }
  }
}

// The part of a weight that was cut from its panel.
struct QOverflow {
  uint16_t step;
  uint8_t column;
  int8_t value;
};

// The packed B of kFitted: head, sums and panels, the end of each panel's overflows, overflows.
class FittedLayout {
 public:
  static constexpr int64_t kMostSteps = int64_t{1} << 16;  // the range of QOverflow::step
  struct Head {
    int32_t fits;
  };

  explicit FittedLayout(const QGemmShape& s)
      : panels_at(align_up(sizeof(Head))),
        ends_at(panels_at + QLayout<QScheme::kFitted>(s).packed_bytes()),
        overflows_at(ends_at + align_up(QLayout<QScheme::kFitted>(s).panels * 4)),
        most_overflows(s.k * s.n / 2 * kMostOfThousand / 1000) {}
  int64_t packed_bytes() const { return overflows_at + align_up(most_overflows * int64_t{sizeof(QOverflow)}); }

  int64_t panels_at, ends_at, overflows_at;
  int64_t most_overflows;

 private:
  // With at least so many pairs in a thousand that do not fit, kPairs is as fast.
  static constexpr int64_t kMostOfThousand = 25;
};

// Cuts the larger of two neighbouring weights that do not fit together. Returns the part that was cut, or 0 if they
// fit.
inline int cut_pair(int8_t* pair, int& larger) {
  constexpr int kLargest = 128;
  const int sum = pair[0] + pair[1];
  if (std::abs(sum) <= kLargest || (pair[0] < 0) != (pair[1] < 0)) return 0;
  larger = std::abs(int{pair[1]}) > std::abs(int{pair[0]}) ? 1 : 0;
  const int rest = sum > 0 ? sum - kLargest : sum + kLargest;
  pair[larger] = static_cast<int8_t>(pair[larger] - rest);
  return rest;
}

// Cuts the weights that do not fit from `panels` contiguous panels of `steps` times width_of(panel) columns of four
// weights. Returns the number of overflows, or -1 if there are more than `most`.
template <class WidthOf>
int64_t cut_overflows(int8_t* pair, int64_t panels, int64_t steps, const WidthOf& width_of, int32_t* ends,
                      QOverflow* overflows, int64_t most, StopPoll& stop) {
  int64_t count = 0;
  StepPoll pairs(stop, kPackedNs);
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int64_t width = width_of(panel);
    for (int64_t i = 0; i < steps * width * 2; ++i, pair += 2) {
      if (pairs.after_step()) return -1;
      int larger = 0;
      const int rest = cut_pair(pair, larger);
      if (rest == 0) continue;
      if (count == most) return -1;
      overflows[count++] = {static_cast<uint16_t>(i / (2 * width) * 4 + i % 2 * 2 + larger),
                            static_cast<uint8_t>(i / 2 % width), static_cast<int8_t>(rest)};
    }
    ends[panel] = static_cast<int32_t>(count);
  }
  return count;
}

inline void pack_fitted(const QGemmShape& s, const void* b, void* packed, StopPoll& stop) {
  const FittedLayout layout(s);
  const QLayout<QScheme::kFitted> inner(s);
  auto* bytes = static_cast<std::byte*>(packed);
  std::byte* panels = bytes + layout.panels_at;
  pack_qpanels<QScheme::kFitted>(s, b, panels, 0, inner.panels, stop);
  if (was_stopped()) return;
  const int64_t overflows = cut_overflows(
      reinterpret_cast<int8_t*>(panels + inner.sums_bytes), inner.panels, inner.panel_bytes / (4 * kIntPanel),
      [](int64_t) { return int64_t{kIntPanel}; }, reinterpret_cast<int32_t*>(bytes + layout.ends_at),
      reinterpret_cast<QOverflow*>(bytes + layout.overflows_at), layout.most_overflows, stop);
  const FittedLayout::Head head{overflows >= 0 ? 1 : 0};
  std::memcpy(packed, &head, sizeof head);
  if (head.fits == 0) pack_qpanels<QScheme::kPairs>(s, b, panels, 0, inner.panels, stop);
}

// Adds a[row][overflow.step] * overflow.value to the sums of a tile's rows.
inline void add_overflows(const QOverflow* overflow, const QOverflow* end, const uint8_t* a, int64_t a_row,
                          int64_t rows, int32_t* sums) {
  for (; overflow != end; ++overflow) {
    const uint8_t* from = a + overflow->step;
    int32_t* to = sums + overflow->column;
    for (int64_t r = 0; r < rows; ++r, from += a_row, to += kIntPanel) {
      *to = static_cast<int32_t>(static_cast<uint32_t>(*to) + static_cast<uint32_t>(*from * overflow->value));
    }
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
