#include "jit/moves.h"

#include "jit/loop_writer.h"

namespace treadle::jit {

namespace {

// The element of an input at which a vector of a result begins.
struct Run {
  size_t input = 0;
  int64_t first = 0;
};

std::optional<Run> run_at(const plan::MoveCode& code, std::span<const int64_t> from) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] < 0 || from[i] != from[0] + static_cast<int64_t>(i)) return std::nullopt;
  }
  Run run{0, from[0]};
  while (run.first >= code.inputs[run.input].count) run.first -= code.inputs[run.input++].count;
  if (run.first + static_cast<int64_t>(from.size()) > code.inputs[run.input].count) return std::nullopt;
  return run;
}

using Region = plan::MoveCode::Region;

bool is_filled(const Region& region) {
  return region.from == plan::kNoSlot ||
         std::ranges::all_of(region.in_strides, [](int64_t stride) { return stride == 0; });
}

// Leaves out sizes of 1, and merges neighbouring dimensions that one stride walks through.
Region merged(const Region& from) {
  Region to = from;
  to.dims.clear(), to.in_strides.clear(), to.out_strides.clear();
  for (size_t d = 0; d < from.dims.size(); ++d) {
    const int64_t size = from.dims[d], in = from.in_strides[d], out = from.out_strides[d];
    if (size == 1) continue;
    if (!to.dims.empty() && to.in_strides.back() == size * in && to.out_strides.back() == size * out) {
      to.dims.back() *= size;
      to.in_strides.back() = in;
      to.out_strides.back() = out;
      continue;
    }
    to.dims.push_back(size), to.in_strides.push_back(in), to.out_strides.push_back(out);
  }
  return to;
}

}  // namespace

bool moves_vectors(const plan::MoveCode& code, const Chunks& chunks) {
  constexpr size_t kMostVectors = 64;  // all of Moves::kMost with AVX-512
  if (!code.is_listed) return false;
  size_t vectors = 0;
  for (const auto& output : code.outputs) {
    const auto count = static_cast<int64_t>(output.from.size());
    vectors += chunks.size(count);
    if (vectors > kMostVectors) return false;
    for (size_t c = 0; c < chunks.size(count); ++c) {
      if (!run_at(code, std::span(output.from).subspan(c * chunks.full, chunks.lanes(count, c)))) return false;
    }
  }
  return true;
}

bool fits_vectors(const plan::MoveCode& code, const Chunks& chunks) {
  return code.is_listed &&
         std::ranges::all_of(code.inputs, [&](const auto& in) { return chunks.is_short(in.count); }) &&
         std::ranges::all_of(code.outputs,
                             [&](const auto& out) { return chunks.is_short(static_cast<int64_t>(out.from.size())); });
}

bool moves_regions(const plan::MoveCode& code) {
  // The parts of a plane and its eight neighbours: with at most three, `life` and `heat_plane` take 1.3 to 1.5 times as
  // long (bench.py loops).
  constexpr size_t kMostRegions = 9;
  constexpr int64_t kFewElements = 512;  // element by element; no loop of bench.py has more up to 8192
  const auto is_simple = [](const Region& all) {
    const Region region = merged(all);
    if (region.dims.empty()) return true;
    const bool is_run =
        region.out_strides.back() == 1 && (region.in_strides.back() == 1 || region.in_strides.back() == 0);
    return is_run ||
           element_count_unchecked(std::span<const int64_t>(region.dims.data(), region.dims.size())) <= kFewElements;
  };
  return !code.regions.empty() && code.regions.size() <= kMostRegions && std::ranges::all_of(code.regions, is_simple);
}

// Writes dimension d and the dimensions inside it, from elements `in` and `out` on.
void LoopWriter::write_region(const plan::MoveCode& code, const plan::MoveCode::Region& region, size_t d, Value* in,
                              Value* out) {
  auto number = [&](int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); };
  llvm::Type* scalar = element_ir_type(b_.getContext(), code.type);
  auto moved = [&](Value* from, Value* repeat, int64_t by) {
    return b_.CreateAdd(from, b_.CreateMul(repeat, number(by)));
  };
  const bool is_fill = is_filled(region);
  auto copy = [&](int64_t count, Value* from, Value* to) {
    const Lanes lanes = is_fill
                            ? lanes_.splat(filler(code, region), count)
                            : load_numbers(b_.CreateGEP(scalar, pointer(region.from), from), code.type, range(count));
    store_flat(b_.CreateGEP(scalar, pointer(region.to), to), code.type, lanes);
  };
  if (d == region.dims.size()) return copy(1, in, out);
  const int64_t size = region.dims[d], in_stride = region.in_strides[d], out_stride = region.out_strides[d];
  const bool is_run = out_stride == 1 && (is_fill || in_stride == 1);
  if (d + 1 < region.dims.size() || !is_run) {
    return count_to(
        size, [&](Value* i) { write_region(code, region, d + 1, moved(in, i, in_stride), moved(out, i, out_stride)); });
  }
  const int64_t some = 4 * static_cast<int64_t>(chunks_.full), repeats = size / some, rest = size % some;
  count_to(repeats, [&](Value* i) { copy(some, moved(in, i, in_stride * some), moved(out, i, some)); });
  if (rest > 0) copy(rest, moved(in, number(repeats), in_stride * some), moved(out, number(repeats), some));
}

// The element that fills the region.
LoopWriter::Value* LoopWriter::filler(const plan::MoveCode& code, const plan::MoveCode::Region& region) {
  if (region.from != plan::kNoSlot) return element(region.from, code.type, region.in_start);
  llvm::Type* scalar = element_ir_type(b_.getContext(), code.type);
  auto* bits = b_.getIntN(scalar->getScalarSizeInBits(), region.bits);
  return scalar->isIntegerTy() ? bits : llvm::ConstantExpr::getBitCast(bits, scalar);
}

void LoopWriter::write_vectors(const plan::MoveCode& code) {
  for (const auto& output : code.outputs) {
    const auto count = static_cast<int64_t>(output.from.size());
    Lanes result{element_ir_type(b_.getContext(), code.type), count, {}};
    for (size_t c = 0; c < chunks_.size(count); ++c) {
      const auto from = std::span(output.from).subspan(c * chunks_.full, chunks_.lanes(count, c));
      const Run run = *run_at(code, from);
      const auto& input = code.inputs[run.input];
      const Numbers numbers = range(static_cast<int64_t>(from.size()), run.first);
      result.vectors.push_back(read_numbers(input.slot, code.type, input.count, numbers).vectors[0]);
    }
    write_flat(output.slot, code.type, result);
  }
}

void LoopWriter::write_other(const plan::MoveCode& code) {
  if (moves_vectors(code, chunks_)) return write_vectors(code);
  if (!fits_vectors(code, chunks_)) {
    for (const Region& all : code.regions) {
      const Region region = merged(all);
      write_region(code, region, 0, b_.getInt64(static_cast<uint64_t>(region.in_start)),
                   b_.getInt64(static_cast<uint64_t>(region.out_start)));
    }
    return;
  }
  // Operands, then constants; each begins with a whole vector.
  Lanes all{element_ir_type(b_.getContext(), code.type), 0, {}};
  Numbers places;
  auto append = [&](const Lanes& flat) {
    const auto first = static_cast<int64_t>(all.vectors.size()) * chunks_.full;
    for (int64_t i = 0; i < flat.count; ++i) places.push_back(first + i);
    all.vectors.insert(all.vectors.end(), flat.vectors.begin(), flat.vectors.end());
  };
  for (const auto& input : code.inputs) append(read_flat(input.slot, code.type, input.count));
  const auto moved = static_cast<int64_t>(places.size());
  if (!code.constants.empty()) append(constants(code));
  std::vector<Lanes> results;
  for (const auto& output : code.outputs) {
    Numbers numbers;
    for (const int64_t from : output.from) {
      numbers.push_back(places[static_cast<size_t>(from >= 0 ? from : moved - 1 - from)]);
    }
    results.push_back(lanes_.pick(all, numbers));
  }
  for (size_t i = 0; i < results.size(); ++i) write_flat(code.outputs[i].slot, code.type, results[i]);
}

Lanes LoopWriter::constants(const plan::MoveCode& code) {
  llvm::Type* scalar = element_ir_type(b_.getContext(), code.type);
  const auto count = static_cast<int64_t>(code.constants.size());
  Lanes flat{scalar, count, {}};
  for (size_t c = 0; c < chunks_.size(count); ++c) {
    llvm::SmallVector<llvm::Constant*, 16> lanes;
    for (size_t i = 0; i < chunks_.lanes(count, c); ++i) {
      auto* bits = b_.getIntN(scalar->getScalarSizeInBits(), code.constants[c * chunks_.full + i]);
      lanes.push_back(scalar->isIntegerTy() ? bits : llvm::ConstantExpr::getBitCast(bits, scalar));
    }
    flat.vectors.push_back(lanes.size() == 1 ? lanes[0] : llvm::ConstantVector::get(lanes));
  }
  return flat;
}

}  // namespace treadle::jit
