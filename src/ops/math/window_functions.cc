// HannWindow, HammingWindow and BlackmanWindow: sums of cosines.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/convert.h"
#include "op/op_def.h"
#include "ops/costs.h"

namespace treadle {

namespace {

struct Cosines {
  double constant, first, second;  // constant - first cos(t) + second cos(2t)
};
constexpr Cosines kHann{0.5, 0.5, 0};
constexpr Cosines kHamming{25.0 / 46, 21.0 / 46, 0};
constexpr Cosines kBlackman{0.42, 0.5, 0.08};

Status infer_window(InferContext& ctx) {
  const ElementType type = element_type_from_number(ctx.attributes().get_int("output_datatype", 1));
  if (!types::kNumericBf16.contains(type)) {
    return error(Code::kInvalidModel, "attribute output_datatype is {}, expected a number of a numeric type",
                 ctx.attributes().get_int("output_datatype", 1));
  }
  const auto size = ctx.dims_value(0);
  if (size && size->size() != 1) return error(Code::kInvalidArgument, "size has {} elements, expected 1", size->size());
  if (size && (*size)[0].is_known() && (*size)[0].value() < 0) {
    return error(Code::kInvalidArgument, "size is {}, expected at least 0", (*size)[0].value());
  }
  ctx.set_output(0, type, {size ? (*size)[0] : Dim::unknown()});
  return {};
}

struct Window {
  Cosines cosines;
  double period = 1;

  double at(int64_t i) const {
    const double t = period > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / period : std::numbers::pi;
    return cosines.constant - cosines.first * std::cos(t) + cosines.second * std::cos(2 * t);
  }
};

// Longer windows are computed in every run: a table would take memory that no limit counts.
constexpr int64_t kLongestTable = int64_t{1} << 16;
constexpr int64_t kBlock = 512;

struct WindowState {
  Window window;
  int64_t size = 0;
  std::vector<double> table;  // empty if the window is long
  kernels::TileConverter converter;
  size_t width = 0;  // bytes of an element of the result
};

uint32_t run_window(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const WindowState*>(state);
  auto* to = static_cast<std::byte*>(slots[operands[1]]);
  if (!s.table.empty()) {
    kernels::convert(s.converter, s.table.data(), to, s.table.size());
    return 0;
  }
  parallel_for(s.size, costs::kWindowElementNs, [&](int64_t begin, int64_t end, int) {
    std::array<double, kBlock> block;
    for (int64_t start = begin; start < end; start += kBlock) {
      const int64_t count = std::min(kBlock, end - start);
      for (int64_t i = 0; i < count; ++i) block[static_cast<size_t>(i)] = s.window.at(start + i);
      kernels::convert(s.converter, block.data(), to + static_cast<size_t>(start) * s.width,
                       static_cast<size_t>(count));
    }
  });
  return 0;
}

template <const Cosines& cosines>
Status prepare_window(PrepareContext& ctx) {
  const Operand& y = ctx.outputs[0];
  auto* s = ctx.make_state<WindowState>();
  s->size = y.dims[0];
  const bool periodic = ctx.attributes().get_int("periodic", 1) != 0;
  s->window = {cosines, static_cast<double>(periodic ? s->size : s->size - 1)};
  if (s->size <= kLongestTable) {
    for (int64_t i = 0; i < s->size; ++i) s->table.push_back(s->window.at(i));
  }
  s->converter = kernels::make_converter(ElementType::kDouble, y.type);
  s->width = byte_width(y.type);
  ctx.set_kernel(run_window, s);
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(HannWindow, "") {
  op.since(17)
      .in("size", "T1")
      .out("output", "T2")
      .attr("output_datatype", 1)
      .attr("periodic", 1)
      .type("T1", types::kIndices)
      .type("T2", types::kNumericBf16);
  op.infer(infer_window).prepare(prepare_window<kHann>).shape_inputs({0}).no_axes("its operand is a single number");
}

TREADLE_OP(HammingWindow, "") {
  op.since(17)
      .in("size", "T1")
      .out("output", "T2")
      .attr("output_datatype", 1)
      .attr("periodic", 1)
      .type("T1", types::kIndices)
      .type("T2", types::kNumericBf16);
  op.infer(infer_window).prepare(prepare_window<kHamming>).shape_inputs({0}).no_axes("its operand is a single number");
}

TREADLE_OP(BlackmanWindow, "") {
  op.since(17)
      .in("size", "T1")
      .out("output", "T2")
      .attr("output_datatype", 1)
      .attr("periodic", 1)
      .type("T1", types::kIndices)
      .type("T2", types::kNumericBf16);
  op.infer(infer_window).prepare(prepare_window<kBlackman>).shape_inputs({0}).no_axes("its operand is a single number");
}
