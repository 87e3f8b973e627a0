// Products of floats by panels of bytes with a scale for each column.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/gemm/panels.h"
#include "kernels/isa/gemm/tile_choice.h"
#include "kernels/isa/gemm/types.h"
#include "kernels/isa/gemm/widened.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

extern template TileFunction<float> own_tile<float>(const TileChoice&);

namespace {

void pack_byte_panels(const GemmPlan& plan, const void* b, void* packed, StopPoll& stop) {
  const GemmShape& s = plan.shape;
  const auto& from = *static_cast<const ByteColumns*>(b);
  const auto* bytes = static_cast<const uint8_t*>(from.bytes);
  auto* scales = static_cast<float*>(packed);
  const int64_t columns = padded_columns<float>(s);
  for (int64_t j = 0; j < columns; ++j) scales[j] = j < s.n ? from.scales[j * from.scale_step] : 0.0f;
  auto* panels = reinterpret_cast<uint8_t*>(scales + columns);
  for (int64_t j = 0; j < columns; j += kHalfWidth) {
    const int64_t width = half_panel_width(s, j), there = std::min(width, s.n - j);
    for (int64_t p = 0; p < s.k; ++p) {
      if (stop.after(kPackedNs * static_cast<double>(width))) return;
      uint8_t* row = panels + j * s.k + p * width;
      const uint8_t* source = bytes + p * s.b_row + j * s.b_col;
      for (int64_t i = 0; i < there; ++i) row[i] = source[i * s.b_col] ^ from.flipped_bits;
      std::fill_n(row + there, width - there, uint8_t{0});
    }
  }
}

}  // namespace

void use_byte_panels(GemmPlan& plan, std::string_view wanted) {
  const GemmShape& shape = plan.shape;
  const size_t bytes =
      static_cast<size_t>(padded_columns<float>(shape)) * (sizeof(float) + static_cast<size_t>(shape.k));
  use_narrow_panels<ScaledByte>(plan, bytes, "byte-panels", pack_byte_panels, wanted);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
