#include "op/gemm.h"

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/caches.h"
#include "base/digest.h"
#include "kernels/dispatch.h"
#include "op/parallel.h"

namespace treadle {

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
  parallel_convert(converter, data, scratch + widened, count);
  return scratch + widened;
}

WideConstant::WideConstant(const Operand& operand, ElementType wide) : data_(operand.constant) {
  if (operand.type == wide) return;
  const auto count = static_cast<size_t>(operand.element_count());
  widened_ = std::make_unique_for_overwrite<std::byte[]>(count * byte_width(wide));
  kernels::cast(operand.type, wide, operand.constant, widened_.get(), count);
  data_ = widened_.get();
}

// ---------------------------------------------------------------------------------------------------------------------

namespace {

// Time per multiply-add: that of one core on large matrices, and with few rows the time that B takes to arrive from the
// second-level cache or from memory. `rows`: rows of A for each matrix B; `elements`: elements of all matrices B.
double multiply_add_ns(ElementType type, int64_t rows, int64_t elements) {
  switch (type) {
    case ElementType::kFloat: {
      const bool is_far = elements * int64_t{sizeof(float)} > static_cast<int64_t>(caches().second / 2);
      return std::max(0.02, (is_far ? 0.18 : 0.05) / static_cast<double>(std::max<int64_t>(rows, 1)));
    }
    case ElementType::kInt64:
    case ElementType::kUint64:
      return 0.2;
    default:
      return 0.04;
  }
}

constexpr int64_t kRowBlock = 48;  // so many rows make up for loading the block's columns into the cache

}  // namespace

ProductGrid ProductGrid::cut(int64_t m, int64_t n, double ns, int64_t matrices, int64_t column_unit, int threads) {
  ProductGrid grid{m, n, m, n, 1, 1, ns};
  const int64_t wanted =
      finest_spread(ns * static_cast<double>(matrices), threads).ranges / std::max<int64_t>(matrices, 1);
  if (wanted <= 1 || m == 0 || n == 0) return grid;
  auto blocks = [](int64_t size, int64_t step) { return (size + step - 1) / step; };
  grid.row_blocks = blocks(m, std::max(kRowBlock, blocks(m, wanted)));
  grid.row_step = blocks(m, grid.row_blocks);  // of about equal height
  grid.row_blocks = blocks(m, grid.row_step);
  const int64_t parts = blocks(wanted, grid.row_blocks);
  const auto cut_columns = [&](int64_t into) {
    grid.column_step = blocks(blocks(n, into), column_unit) * column_unit;
    grid.column_blocks = blocks(n, grid.column_step);
    return grid.blocks() * matrices % threads == 0;
  };
  // Gives each thread the same number of blocks, if a few more blocks achieve that.
  int64_t more = 0;
  while (more < threads && !cut_columns(parts + more)) ++more;
  if (more == threads) cut_columns(parts);
  grid.block_ns = ns / static_cast<double>(grid.blocks());
  return grid;
}

kernels::GemmRange ProductGrid::range(int64_t block, int64_t count) const {
  const int64_t row = block / column_blocks * row_step, column = block % column_blocks * column_step;
  return {row, std::min(row + row_step, m), column, std::min(column + count * column_step, n)};
}

Status StackedGemm::prepare(ElementType wide, kernels::GemmShape shape, std::span<const Level> stack,
                            ScratchLayout& scratch, int threads) {
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
  int64_t elements = shape.n * shape.k;
  for (const Level& level : levels) {
    matrices *= level.size;
    if (level.b != 0) elements *= level.size;
  }
  const double ns = multiply_add_ns(wide, shape.m, elements) * static_cast<double>(shape.m) *
                    static_cast<double>(shape.n) * static_cast<double>(shape.k);
  grid = ProductGrid::cut(shape.m, shape.n, ns, matrices, plan.column_step, threads);
  const bool plain = shape.alpha == 1 && shape.low == -__builtin_inff() && shape.high == __builtin_inff();
  single_rows = nullptr;
  if (shape.m == 1 && shape.n > kernels::kGemmDotColumns && shape.b_col == 1 && plain && grid.blocks() == 1 &&
      plan.wanted == nullptr) {
    single_rows = kernels::stacked_rows(compute_type(wide));
  }
  worker_scratch = (plan.scratch_bytes + 63) / 64 * 64;
  gemm_scratch = scratch.add(worker_scratch * scratch_parts(matrices * grid.blocks(), grid.block_ns, threads));
  return {};
}

uint64_t packed_layout(const kernels::GemmPlan& plan, ElementType stored) {
  uint64_t key = 0x6765'6d6d;
  const auto add = [&key](uint64_t part) {
    key = (key ^ part) * 0x9E37'79B9'7F4A'7C15u;
    key ^= key >> 29;
  };
  for (const char letter : plan.packing) add(static_cast<unsigned char>(letter));
  for (int64_t part : {plan.shape.k, plan.shape.n, plan.shape.b_row, plan.shape.b_col, static_cast<int64_t>(stored),
                       static_cast<int64_t>(kernels::preferred_isa())}) {
    add(static_cast<uint64_t>(part));
  }
  return key;
}

Status StackedGemm::pack(const Operand& b, PackCache& packs, ElementType wide) {
  const int64_t matrix = plan.shape.k * plan.shape.n;
  if (!b.constant || matrix == 0) return {};
  // Matrices of B are packed one after the other; the plan's strides are those of one matrix.
  const int64_t count = b.element_count() / matrix;
  kernels::GemmShape shape = plan.shape;
  shape.b_packed = true;
  const kernels::GemmPlan packing = kernels::prepare_gemm(plan.type, shape);
  if (packing.scratch_bytes > plan.scratch_bytes || !packing.pack) return {};
  const size_t bytes = packing.packed_b_bytes * static_cast<size_t>(count);
  const auto pack = [&](void* out) {
    const WideConstant source(b, wide);
    StopPoll stop;
    for (int64_t i = 0; i < count; ++i) {
      kernels::pack_b(packing, static_cast<const std::byte*>(source.data()) + static_cast<size_t>(i * matrix) * width,
                      static_cast<std::byte*>(out) + static_cast<size_t>(i) * packing.packed_b_bytes, stop);
    }
  };
  TREADLE_ASSIGN(const void* const made, packs.get(b, packed_layout(packing, b.type), bytes, pack));
  packed = static_cast<const std::byte*>(made);
  plan = packing;
  return {};
}

namespace {

// The bits to flip so that bytes less their zero point are int8, if all columns have the same zero point: the lowest
// value of the bytes' type flips to that of int8 (0 for int8, 128 for uint8). None if bytes less their zero point may
// need nine bits.
std::optional<uint8_t> flipped_bits(const DequantizedOperand& b) {
  const bool is_signed = b.bytes.type == ElementType::kInt8;
  if (!b.zero.present()) return is_signed ? std::optional<uint8_t>(0) : std::nullopt;
  const uint8_t middle = is_signed ? 0 : 0x80;
  const auto* zeros = static_cast<const uint8_t*>(b.zero.constant);
  const bool fits = std::all_of(zeros, zeros + b.zero.element_count(), [&](uint8_t zero) { return zero == middle; });
  return fits ? std::optional(middle) : std::nullopt;
}

// The matrix in floats, in the layout of the bytes.
std::unique_ptr<float[]> dequantized(const DequantizedOperand& b, const kernels::GemmShape& shape) {
  auto made = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(b.bytes.element_count()));
  const bool is_signed = b.bytes.type == ElementType::kInt8;
  const auto* bytes = static_cast<const uint8_t*>(b.bytes.constant);
  const auto* scales = static_cast<const float*>(b.scale.constant);
  const auto* zeros = static_cast<const uint8_t*>(b.zero.constant);
  const int64_t scale_step = b.scale.element_count() > 1, zero_step = b.zero.element_count() > 1;
  const auto value = [&](uint8_t byte) { return is_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte}; };
  StopPoll stop;
  StepPoll steps(stop, kernels::kPackedNs);
  for (int64_t j = 0; j < shape.n; ++j) {
    const float scale = scales[j * scale_step];
    const int32_t zero = zeros ? value(zeros[j * zero_step]) : 0;
    for (int64_t p = 0; p < shape.k; ++p) {
      if (steps.after_step()) return made;
      const auto at = static_cast<size_t>(p * shape.b_row + j * shape.b_col);
      made[at] = static_cast<float>(value(bytes[at]) - zero) * scale;
    }
  }
  return made;
}

// A digest of the scale or zero points of a matrix of bytes, for the key of its packed form.
uint64_t digest_of(const Operand& operand) {
  if (!operand.present()) return 0;
  Digester digester;
  digester.add({static_cast<const std::byte*>(operand.constant), operand.byte_size()});
  uint64_t digest = 0;
  std::memcpy(&digest, digester.finish().data(), sizeof digest);
  return digest;
}

}  // namespace

Status StackedGemm::pack(const DequantizedOperand& b, PackCache& packs) {
  kernels::GemmShape shape = plan.shape;
  shape.b_packed = true;
  const auto flipped = flipped_bits(b);
  // A byte takes more instructions than a float. Bytes pay when the floats would come from beyond the second-level
  // cache.
  const auto float_bytes = static_cast<size_t>(shape.n * shape.k) * sizeof(float);
  shape.b_bytes = flipped && shape.n > kernels::kGemmDotColumns && float_bytes > caches().second;
  const kernels::GemmPlan packing = kernels::prepare_gemm(plan.type, shape);
  const uint64_t key = packed_layout(packing, b.bytes.type) ^ digest_of(b.scale) ^ digest_of(b.zero) * 3;
  const auto pack = [&](void* out) {
    if (shape.b_bytes) {
      const kernels::ByteColumns columns{b.bytes.constant, *flipped, static_cast<const float*>(b.scale.constant),
                                         b.scale.element_count() > 1 ? 1 : 0};
      kernels::pack_b(packing, &columns, out);
    } else {
      kernels::pack_b(packing, dequantized(b, shape).get(), out);
    }
  };
  TREADLE_ASSIGN(const void* const made, packs.get(b.bytes, key, packing.packed_b_bytes, pack));
  packed = static_cast<const std::byte*>(made);
  plan = packing;
  return {};
}

std::string_view StackedGemm::method(bool has_bias) const {
  return takes_single_rows(has_bias) ? "stacked-rows" : plan.walk;
}

const void* StackedGemm::matrix_b(const void* b, int64_t offset) const {
  if (!packed) return static_cast<const std::byte*>(b) + offset * static_cast<int64_t>(width);
  return packed + static_cast<size_t>(offset / (plan.shape.k * plan.shape.n)) * plan.packed_b_bytes;
}

// Steps through the matrices of a stack; offsets are in elements.
class StackedGemm::Walk {
 public:
  Walk(std::span<const Level> levels, int64_t matrix) : levels_(levels) {
    for (size_t d = levels.size(); d-- > 0;) {
      index_[d] = matrix % levels[d].size;
      matrix /= levels[d].size;
      a += index_[d] * levels[d].a, b += index_[d] * levels[d].b, c += index_[d] * levels[d].c;
    }
  }
  void next() {
    for (size_t d = levels_.size(); d-- > 0;) {
      const Level& level = levels_[d];
      const bool wraps = ++index_[d] == level.size;
      const int64_t steps = wraps ? 1 - level.size : 1;
      a += steps * level.a, b += steps * level.b, c += steps * level.c;
      if (!wraps) return;
      index_[d] = 0;
    }
  }

  int64_t a = 0, b = 0, c = 0;

 private:
  std::span<const Level> levels_;
  int64_t index_[kMaxLevels] = {};
};

void StackedGemm::run_single_rows(const void* a, const void* b, void* c) const {
  const kernels::GemmShape& s = plan.shape;
  const Level inner = levels.empty() ? Level{1, 0, 0, 0} : levels.back();
  const auto bytes = static_cast<int64_t>(width);
  parallel_for(matrices, grid.block_ns, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const Walk at(levels, begin);
      const int64_t count = std::min(end - begin, inner.size - begin % inner.size);
      single_rows({count, inner.a, inner.b, inner.c, s.k, s.n, s.a_col, s.b_row},
                  static_cast<const std::byte*>(a) + at.a * bytes, static_cast<const std::byte*>(b) + at.b * bytes,
                  static_cast<std::byte*>(c) + at.c * bytes);
      begin += count;
    }
  });
}

namespace {

// Whether this run reads B backwards: every other run does.
bool takes_turn_backward(void* kept) {
  if (!kept) return false;
  auto& turn = *static_cast<uint8_t*>(kept);
  turn ^= 1;
  return turn == 0;
}

}  // namespace

void StackedGemm::run(const void* a, const void* b, const void* bias, void* c, std::byte* scratch, void* kept) const {
  if (takes_single_rows(bias != nullptr)) return run_single_rows(a, b, c);
  const int64_t blocks = grid.blocks();
  const bool backward = takes_turn_backward(kept);
  // In the step of a small recurrence, finding the block would take as long as its sums.
  if (matrices * blocks == 1) {
    const void* const only = packed ? static_cast<const void*>(packed) : b;
    return kernels::run_gemm_range(plan, {a, only, bias, c, scratch + gemm_scratch, nullptr, backward},
                                   {0, grid.m, 0, grid.n});
  }
  parallel_for(matrices * blocks, grid.block_ns, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = scratch + gemm_scratch + static_cast<size_t>(worker) * worker_scratch;
    const auto bytes = static_cast<int64_t>(width);
    int64_t block = begin % blocks;
    for (Walk at(levels, begin / blocks); begin < end;) {
      const int64_t count = grid.in_one_row(block, end - begin);
      kernels::run_gemm_range(plan,
                              {static_cast<const std::byte*>(a) + at.a * bytes, matrix_b(b, at.b), bias,
                               static_cast<std::byte*>(c) + at.c * bytes, own, nullptr, backward},
                              grid.range(block, count));
      begin += count;
      block += count;
      if (block < blocks) continue;
      block = 0;
      at.next();
    }
  });
}

void StackedGemm::run_rows(int64_t rows, const void* a, const void* b, const void* bias, void* c, std::byte* scratch,
                           void* kept) const {
  const int64_t row_blocks = grid.row_step == 0 ? 0 : (rows + grid.row_step - 1) / grid.row_step;
  const bool backward = takes_turn_backward(kept);
  parallel_for(row_blocks * grid.column_blocks, grid.block_ns, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = scratch + gemm_scratch + static_cast<size_t>(worker) * worker_scratch;
    for (int64_t count = 0; begin < end; begin += count) {
      count = grid.in_one_row(begin, end - begin);
      kernels::GemmRange range = grid.range(begin, count);
      range.row_end = std::min(range.row_end, rows);
      kernels::run_gemm_range(plan, {a, matrix_b(b, 0), bias, c, own, nullptr, backward}, range);
    }
  });
}

}  // namespace treadle
