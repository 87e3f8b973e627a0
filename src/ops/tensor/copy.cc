#include "ops/tensor/copy.h"

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/move.h"
#include "op/elementwise.h"
#include "op/moves.h"

namespace treadle::tensor_ops {

namespace {

// One copy between an input and an output, from byte `in_offset` to byte `out_offset`.
struct StridedCopy {
  kernels::CopyPlan plan;
  uint32_t input = 0;  // operand indices
  uint32_t output = 0;
  int64_t in_offset = 0;
  int64_t out_offset = 0;

  // Not worth a thread.
  bool is_small() const { return plan.ns < 2 * kMinThreadNs; }

  void run(void* const* slots, const uint32_t* operands) const {
    const char* from = static_cast<const char*>(slots[operands[input]]) + in_offset;
    char* to = static_cast<char*>(slots[operands[output]]) + out_offset;
    if (is_small()) return plan(from, to);
    parallel_for(plan.parts(), plan.ns / static_cast<double>(plan.parts()),
                 [&](int64_t begin, int64_t end, int) { plan.run_parts(from, to, begin, end); });
  }
};

uint32_t run_nothing(const void*, void* const*, const uint32_t*) {
  return 0;
}

uint32_t run_copy(const void* state, void* const* slots, const uint32_t* operands) {
  static_cast<const StridedCopy*>(state)->run(slots, operands);
  return 0;
}

uint32_t run_copies(const void* state, void* const* slots, const uint32_t* operands) {
  for (const StridedCopy& copy : *static_cast<const std::vector<StridedCopy>*>(state)) copy.run(slots, operands);
  return 0;
}

// Whether the part is all of output 0, in order.
bool is_whole(const PrepareContext& c, const CopiedPart& part) {
  const Operand& out = c.outputs[part.output];
  return part.input == 0 && part.output == 0 && part.out_start == 0 && std::ranges::equal(part.dims, out.dims) &&
         std::ranges::equal(part.out_strides, out.strides);
}

void say_regions(PrepareContext& c, std::span<const CopiedPart> parts) {
  if (!c.form || c.most_moves == 0) return;
  const auto dims_of = [](std::span<const int64_t> from) { return Dims(from.begin(), from.end()); };
  auto regions = std::make_shared<std::vector<CopiedRegion>>();
  for (const CopiedPart& part : parts) {
    if (element_count_unchecked(part.dims) == 0) continue;
    CopiedRegion& region = regions->emplace_back();
    region.input = part.input;
    region.output = part.output;
    region.in_start = c.inputs[part.input].start + part.in_start;
    region.out_start = part.out_start;
    region.dims = dims_of(part.dims);
    region.in_strides = dims_of(part.in_strides);
    region.out_strides = dims_of(part.out_strides);
  }
  c.form->regions = std::move(regions);
}

}  // namespace

Status set_copy_kernel(PrepareContext& c, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
                       std::span<const int64_t> out_strides, int64_t in_start) {
  const CopiedPart whole{0, 0, dims, in_strides, out_strides, in_start, 0};
  return set_copies_kernel(c, {&whole, 1});
}

Status set_copies_kernel(PrepareContext& c, std::span<const CopiedPart> parts) {
  const size_t width = byte_width(c.inputs[0].type);
  Moves* moves = moves_of(c);
  if (c.form && parts.size() == 1 && is_whole(c, parts[0])) {
    c.form->view = {parts[0].in_start, Dims(parts[0].in_strides.begin(), parts[0].in_strides.end())};
  }
  say_regions(c, parts);
  std::vector<StridedCopy> copies;
  for (const CopiedPart& part : parts) {
    const auto& [input, output, dims, in_strides, out_strides, in_start, out_start] = part;
    if (element_count_unchecked(dims) == 0) continue;
    StridedCopy& copy = copies.emplace_back();
    copy.input = static_cast<uint32_t>(input);
    copy.output = static_cast<uint32_t>(c.inputs.size() + output);
    copy.in_offset = (c.inputs[input].start + in_start) * static_cast<int64_t>(width);
    copy.out_offset = out_start * static_cast<int64_t>(width);
    TREADLE_TRY(kernels::prepare_copy(&copy.plan, width, dims, in_strides, out_strides));
    if (moves) moves->copy(input, output, dims, in_strides, out_strides, in_start, out_start);
    c.cost_ns += copy.plan.ns;
  }
  if (copies.empty()) {
    c.set_kernel(run_nothing, nullptr);
  } else if (copies.size() == 1) {
    c.set_kernel(run_copy, c.make_state<StridedCopy>(copies[0]));
  } else {
    c.set_kernel(run_copies, c.make_state<std::vector<StridedCopy>>(std::move(copies)));
  }
  return {};
}

}  // namespace treadle::tensor_ops
