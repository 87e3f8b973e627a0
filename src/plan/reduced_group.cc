#include "plan/reduced_group.h"

#include <algorithm>

#include "kernels/costs.h"
#include "kernels/error.h"
#include "op/parallel.h"

namespace treadle::plan {

namespace {

// Approximate number of elements of a strip, which stays in first- or second-level cache. Between 1024 and 8192, a sum
// over three operations on a million floats takes the same time up to 5 %; with 16,384 it takes 1.1 times as long
// (measured).
constexpr size_t kStrip = 4096;

// The address that element 0 would have in memory whose first element is `first`.
std::byte* before(std::byte* memory, size_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(memory) - bytes);
}

// The elements of a strip: whole tiles, or lines of several tiles. Operands that repeat begin anew with each strip.
size_t strip_of(const kernels::FusedPlan& plan, size_t line) {
  const auto repeats = [&](const kernels::FusedSpread& spread) {
    return line % static_cast<size_t>(spread.period) == 0;
  };
  const bool fits =
      line <= plan.tile ? plan.tile % line == 0 : std::all_of(plan.once.begin(), plan.once.end(), repeats);
  const size_t unit = std::max(line, plan.tile);
  return fits ? std::min(unit * std::max<size_t>(kStrip / unit, 1), plan.count) : plan.count;
}

}  // namespace

double ReducedGroup::strip_ns() const {
  const double element_ns = costs::kFusedElementNs * static_cast<double>(plan.steps.size() + reductions.size());
  return element_ns * static_cast<double>(strip);
}

size_t ReducedGroup::scratch_bytes() const {
  size_t bytes = (plan.scratch_bytes() + 63) / 64 * 64;
  for (size_t i = 0; i < hidden_bytes.size(); ++i) bytes += strip_bytes(i);
  return bytes;
}

uint32_t ReducedGroup::run_strip(void* const* slots, const uint32_t* operand, std::byte* scratch, size_t first) const {
  std::byte* table[kernels::FusedPlan::kMaxPlaces];
  for (size_t i = 0; i < operands; ++i) table[i] = static_cast<std::byte*>(slots[operand[i]]);
  for (size_t i = 0; i < hidden_bytes.size(); ++i) {
    table[operands + i] = before(scratch, first * hidden_bytes[i]);
    scratch += strip_bytes(i);
  }
  std::byte* reduced[kernels::FusedPlan::kMaxPlaces];
  std::copy_n(table, plan.bound, reduced);
  const size_t last = std::min(first + strip, plan.count);
  if (const uint32_t error = plan.run_elements(table, scratch, first, last)) return error;
  for (const Reduction& one : reductions) {
    const size_t parts = one.plan.parts();
    one.plan.run_parts(reduced[one.place], slots[operand[one.operand]], parts * first / plan.count,
                       parts * last / plan.count);
  }
  return kernels::kOk;
}

ReducedGroup make_reduced_group(FusedGroup& group) {
  ReducedGroup made;
  made.plan = group.builder.finish();
  made.operands = group.inputs.size() + group.outputs.size();
  for (const ElementType type : group.hidden) made.hidden_bytes.push_back(byte_width(type));
  for (const FusedGroup::Reduction& one : group.reductions) {
    made.reductions.push_back({one.plan, group.inputs.size() + one.output, made.operands + made.reductions.size()});
  }
  made.scratch_operand = made.operands + made.reductions.size();
  made.strip = strip_of(made.plan, group.line);
  return made;
}

uint32_t run_reduced_group(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& group = *static_cast<const ReducedGroup*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[group.scratch_operand]]);
  return parallel_kernel(group.strips(), group.strip_ns(), [&](int64_t begin, int64_t end, int worker) -> uint32_t {
    std::byte* own = scratch + static_cast<size_t>(worker) * group.scratch_bytes();
    for (int64_t i = begin; i < end; ++i) {
      if (const uint32_t error = group.run_strip(slots, operands, own, static_cast<size_t>(i) * group.strip)) {
        return error;
      }
    }
    return kernels::kOk;
  });
}

}  // namespace treadle::plan
