#include "jit/moves.h"

#include "jit/loop_writer.h"

namespace treadle::jit {

namespace {

// Where a vector of a result begins: at an element of an input.
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

}  // namespace

bool moves_vectors(const plan::MoveCode& code, const Chunks& chunks) {
  constexpr size_t kMostVectors = 64;
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
  // Operands, then constants, each from a whole vector on.
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
