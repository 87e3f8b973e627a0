#pragma once
// Packed weights of bytes. Without VNNI neighbouring weights have to fit 16 bits together (qgemm_pack.h). What weights
// lack is listed as overflows, which are added behind the tiles; where there are too many, each weight is cut into two
// halves, which fit, and tiles run twice.

#include <cstdint>
#include <cstring>

#include "kernels/isa/qgemm_pack.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

enum class ByteWeightForm : int32_t { kWhole, kHalves };

// Of one group: head, sums of the weights of each output channel, where each panel's overflows end, panels, then
// overflows or second halves.
struct ByteWeightLayout {
  // `weights`: bytes of panels; `beside`: bytes that follow them and are no weights.
  ByteWeightLayout(int64_t channels, int64_t of_panels, int64_t weights, int64_t beside, int64_t of_overflows,
                   bool quads)
      : panels(of_panels),
        weight_bytes(weights),
        sums_at(kKernelAlignment),
        ends_at(sums_at + align_up(channels * 4)),
        panels_at(ends_at + align_up(panels * 4)),
        more_at(panels_at + align_up(weights + beside)),
        most_overflows(quads ? 0 : of_overflows),
        bytes(more_at + (quads ? 0 : align_up(weights))) {}

  ByteWeightForm form(const std::byte* packed) const {
    ByteWeightForm found;
    std::memcpy(&found, packed, sizeof found);
    return found;
  }

  int64_t panels, weight_bytes;
  int64_t sums_at, ends_at, panels_at, more_at, most_overflows, bytes;
};

// Packs one group. `copy(panels, sums)` writes weights as they are, all of them with a sign, and their sums; false: it
// was told to stop. A panel is `steps` times four weights of width_of(panel) columns. `quads`: tiles hold all sums.
template <class Copy, class WidthOf>
void pack_byte_weights(const ByteWeightLayout& at, int64_t steps, const WidthOf& width_of, bool quads, const Copy& copy,
                       std::byte* packed, StopPoll& stop) {
  auto* panels = reinterpret_cast<int8_t*>(packed + at.panels_at);
  auto* sums = reinterpret_cast<int32_t*>(packed + at.sums_at);
  auto form = ByteWeightForm::kWhole;
  if (!copy(panels, sums)) return;
  if (!quads && cut_overflows(panels, at.panels, steps, width_of, reinterpret_cast<int32_t*>(packed + at.ends_at),
                              reinterpret_cast<QOverflow*>(packed + at.more_at), at.most_overflows, stop) < 0) {
    form = ByteWeightForm::kHalves;
    if (!copy(panels, sums)) return;
    auto* other = reinterpret_cast<int8_t*>(packed + at.more_at);
    StepPoll weights(stop, kPackedNs);
    for (int64_t i = 0; i < at.weight_bytes; ++i) {
      if (weights.after_step()) return;
      other[i] = static_cast<int8_t>(panels[i] / 2);
      panels[i] = static_cast<int8_t>(panels[i] - other[i]);
    }
  }
  std::memcpy(packed, &form, sizeof form);
}

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
