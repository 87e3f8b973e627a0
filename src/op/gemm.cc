#include "op/gemm.h"

#include <memory>

#include "kernels/dispatch.h"

namespace treadle {

ElementType gemm_type(ElementType type) {
  switch (compute_type(type)) {
    case ComputeType::kF32:
      return ElementType::kFloat;
    case ComputeType::kI32:
      return ElementType::kInt32;
    case ComputeType::kU32:
      return ElementType::kUint32;
    default:
      return type;
  }
}

Status WideOperand::prepare(const Operand& operand, ElementType wide, ScratchLayout& scratch) {
  strides = operand.strides;
  widen = operand.type != wide;
  if (!widen) return {};
  count = static_cast<size_t>(operand.element_count());
  const Dims row_major = contiguous_strides(operand.dims);
  gather = !is_contiguous(operand.dims, operand.strides);
  if (gather) {
    TREADLE_TRY(kernels::prepare_copy(&copy, byte_width(operand.type), operand.dims, operand.strides, row_major));
    gathered = scratch.add(count * byte_width(operand.type));
  }
  converter = kernels::make_converter(operand.type, wide);
  widened = scratch.add(count * byte_width(wide));
  strides = row_major;
  return {};
}

const void* WideOperand::get(const void* data, std::byte* scratch) const {
  if (!widen) return data;
  if (gather) {
    copy(data, scratch + gathered);
    data = scratch + gathered;
  }
  kernels::convert(converter, data, scratch + widened, count);
  return scratch + widened;
}

// ---------------------------------------------------------------------------------------------------------------------

Status StackedGemm::prepare(ElementType wide, kernels::GemmShape shape, std::span<const Level> stack,
                            ScratchLayout& scratch) {
  width = byte_width(wide);
  for (const Level& level : stack) {
    if (level.size == 1) continue;
    if (!levels.empty()) {
      Level& outer = levels.back();
      const auto nested = [&](int64_t o, int64_t i) { return o == i * level.size; };
      if (nested(outer.a, level.a) && nested(outer.b, level.b) && nested(outer.c, level.c)) {
        outer = {outer.size * level.size, level.a, level.b, level.c};
        continue;
      }
    }
    levels.push_back(level);
  }
  while (!levels.empty()) {
    const Level& inner = levels.back();
    const bool a_rows = shape.m == 1 || inner.a == shape.m * shape.a_row;
    if (inner.b != 0 || !a_rows || inner.c != shape.m * shape.n) break;
    if (shape.m == 1) shape.a_row = inner.a;
    shape.m *= inner.size;
    levels.pop_back();
  }
  if (levels.size() > kMaxLevels) {
    return error(Code::kNotImplemented, "a product of {} stacked dimensions, at most {} are supported", levels.size(),
                 kMaxLevels);
  }
  shape.c_row = shape.n;
  plan = kernels::prepare_gemm(compute_type(wide), shape);
  gemm_scratch = scratch.add(plan.scratch_bytes);
  return {};
}

namespace {

// Distinguishes the forms that one constant may be packed in.
uint64_t layout_key(const kernels::GemmPlan& plan, ElementType stored) {
  uint64_t key = 0x6765'6d6d;
  for (int64_t part : {plan.shape.k, plan.shape.n, plan.shape.b_row, plan.shape.b_col, static_cast<int64_t>(stored),
                       static_cast<int64_t>(kernels::preferred_isa())}) {
    key = (key ^ static_cast<uint64_t>(part)) * 0x9E37'79B9'7F4A'7C15u;
    key ^= key >> 29;
  }
  return key;
}

}  // namespace

void StackedGemm::pack(const Operand& b, PackCache& packs, ElementType wide) {
  const int64_t matrix = plan.shape.k * plan.shape.n;
  if (!b.constant || matrix == 0) return;
  // What lies behind each other in B is packed behind each other; the plan's strides are those of one matrix.
  const int64_t matrices = b.element_count() / matrix;
  kernels::GemmShape shape = plan.shape;
  shape.b_packed = true;
  const kernels::GemmPlan packing = kernels::prepare_gemm(plan.type, shape);
  if (packing.scratch_bytes > plan.scratch_bytes || !packing.pack) return;
  const size_t bytes = packing.packed_b_bytes * static_cast<size_t>(matrices);
  packed = static_cast<const std::byte*>(packs.get(b.constant, layout_key(packing, b.type), bytes, [&](void* out) {
    const auto count = static_cast<size_t>(b.element_count());
    std::unique_ptr<std::byte[]> widened;
    const void* source = b.constant;
    if (b.type != wide) {
      widened = std::make_unique<std::byte[]>(count * width);
      kernels::cast(b.type, wide, source, widened.get(), count);
      source = widened.get();
    }
    for (int64_t i = 0; i < matrices; ++i) {
      kernels::pack_b(packing, static_cast<const std::byte*>(source) + static_cast<size_t>(i * matrix) * width,
                      static_cast<std::byte*>(out) + static_cast<size_t>(i) * packing.packed_b_bytes);
    }
  }));
  plan = packing;
}

void StackedGemm::run_one(const void* a, const void* b, int64_t b_offset, const void* bias, void* c,
                          std::byte* scratch) const {
  if (packed) {
    const int64_t matrix = b_offset / (plan.shape.k * plan.shape.n);
    b = packed + static_cast<size_t>(matrix) * plan.packed_b_bytes;
  } else {
    b = static_cast<const std::byte*>(b) + b_offset * static_cast<int64_t>(width);
  }
  kernels::run_gemm(plan, a, b, bias, c, scratch + gemm_scratch);
}

void StackedGemm::run(const void* a, const void* b, const void* bias, void* c, std::byte* scratch) const {
  if (levels.empty()) return run_one(a, b, 0, bias, c, scratch);
  int64_t index[kMaxLevels] = {}, a_at = 0, b_at = 0, c_at = 0;
  for (const Level& level : levels) {
    if (level.size == 0) return;
  }
  const auto bytes = static_cast<int64_t>(width);
  for (;;) {
    run_one(static_cast<const std::byte*>(a) + a_at * bytes, b, b_at, bias, static_cast<std::byte*>(c) + c_at * bytes,
            scratch);
    size_t d = levels.size();
    for (; d > 0; --d) {
      const Level& level = levels[d - 1];
      a_at += level.a, b_at += level.b, c_at += level.c;
      if (++index[d - 1] < level.size) break;
      a_at -= level.a * level.size, b_at -= level.b * level.size, c_at -= level.c * level.size;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace treadle
