#include "ops/tensor/copy.h"

#include <vector>

namespace treadle::tensor_ops {

namespace {

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

}  // namespace

Status set_copy_kernel(PrepareContext& c, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
                       std::span<const int64_t> out_strides, int64_t in_start) {
  if (element_count_unchecked(dims) == 0) {
    c.set_kernel(run_nothing, nullptr);
    return {};
  }
  const size_t width = byte_width(c.inputs[0].type);
  auto* copy = c.make_state<StridedCopy>();
  copy->output = static_cast<uint32_t>(c.inputs.size());
  copy->in_offset = in_start * static_cast<int64_t>(width);
  TREADLE_TRY(kernels::prepare_copy(&copy->plan, width, dims, in_strides, out_strides));
  c.cost_ns = copy->plan.ns;
  c.set_kernel(run_copy, copy);
  return {};
}

void set_copies_kernel(PrepareContext& c, std::span<const StridedCopy> copies) {
  if (copies.empty()) return c.set_kernel(run_nothing, nullptr);
  if (copies.size() == 1) return c.set_kernel(run_copy, c.make_state<StridedCopy>(copies[0]));
  c.set_kernel(run_copies, c.make_state<std::vector<StridedCopy>>(copies.begin(), copies.end()));
}

}  // namespace treadle::tensor_ops
