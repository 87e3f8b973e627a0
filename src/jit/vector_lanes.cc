#include "jit/vector_lanes.h"

#include <algorithm>

#include "jit/ir_lanes.h"

namespace treadle::jit {

using llvm::Value;

Numbers range(int64_t count, int64_t first, int64_t step) {
  Numbers numbers(static_cast<size_t>(count));
  for (int64_t& number : numbers) number = std::exchange(first, first + step);
  return numbers;
}

unsigned lanes_in(Value* vector) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
  return type ? type->getNumElements() : 1;
}

Value* LaneBuilder::element(const Lanes& from, int64_t number) const {
  Value* vector = from.vectors[static_cast<size_t>(number / chunks_.full)];
  if (!vector->getType()->isVectorTy()) return vector;
  return b_.CreateExtractElement(vector, static_cast<uint64_t>(number % chunks_.full));
}

Lanes LaneBuilder::splat(Value* scalar, int64_t count) const {
  Lanes result{scalar->getType(), count, {}};
  for (size_t c = 0; c < chunks_.size(count); ++c) {
    const unsigned lanes = chunks_.lanes(count, c);
    result.vectors.push_back(lanes == 1 ? scalar : b_.CreateVectorSplat(lanes, scalar));
  }
  return result;
}

Lanes LaneBuilder::of(llvm::ArrayRef<Value*> elements) const {
  const auto count = static_cast<int64_t>(elements.size());
  Lanes result{elements[0]->getType(), count, {}};
  for (size_t c = 0; c < chunks_.size(count); ++c) {
    const unsigned lanes = chunks_.lanes(count, c);
    const auto here = elements.slice(c * chunks_.full, lanes);
    Value* vector = lanes == 1 ? here[0] : llvm::PoisonValue::get(lanes_of(result.scalar, lanes));
    for (unsigned lane = 0; lane < lanes && lanes > 1; ++lane) {
      vector = b_.CreateInsertElement(vector, here[lane], lane);
    }
    result.vectors.push_back(vector);
  }
  return result;
}

Lanes LaneBuilder::map(std::initializer_list<const Lanes*> arguments, const Fn& fn) const {
  const Lanes& first = **arguments.begin();
  Lanes result{nullptr, first.count, {}};
  for (size_t c = 0; c < first.vectors.size(); ++c) {
    llvm::SmallVector<Value*, 3> one;
    for (const Lanes* argument : arguments) one.push_back(argument->vectors[c]);
    result.vectors.push_back(fn(one, lanes_in(first.vectors[c])));
  }
  result.scalar = result.vectors[0]->getType()->getScalarType();
  return result;
}

Lanes LaneBuilder::join(const Lanes& a, const Lanes& b) const {
  // Whole vectors of `a` stay as they are; the elements behind them are permuted.
  Lanes both{a.scalar, 0, a.vectors};
  both.vectors.insert(both.vectors.end(), b.vectors.begin(), b.vectors.end());
  const auto first = static_cast<int64_t>(a.vectors.size()) * chunks_.full;
  Numbers numbers = range(a.count);
  for (int64_t i = 0; i < b.count; ++i) numbers.push_back(first + i);
  return pick(both, numbers);
}

Lanes LaneBuilder::pick(const Lanes& from, std::span<const int64_t> numbers) const {
  const auto count = static_cast<int64_t>(numbers.size());
  Lanes result{from.scalar, count, {}};
  for (size_t c = 0; c < chunks_.size(count); ++c) {
    result.vectors.push_back(pick_vector(from, numbers.subspan(c * chunks_.full, chunks_.lanes(count, c))));
  }
  return result;
}

Value* LaneBuilder::widened(Value* vector) const {
  const unsigned lanes = lanes_in(vector);
  if (lanes == chunks_.full) return vector;
  if (lanes == 1) {
    auto* type = llvm::FixedVectorType::get(vector->getType(), chunks_.full);
    return b_.CreateInsertElement(llvm::PoisonValue::get(type), vector, uint64_t{0});
  }
  llvm::SmallVector<int, 16> mask(chunks_.full, -1);
  for (unsigned i = 0; i < lanes; ++i) mask[i] = static_cast<int>(i);
  return b_.CreateShuffleVector(vector, mask);
}

// Moves the elements of one vector to their positions in the result; other lanes may hold anything.
Value* LaneBuilder::placed(const Lanes& from, size_t chunk, std::span<const int64_t> numbers) const {
  llvm::SmallVector<int, 16> mask;
  bool same = true;
  for (const int64_t number : numbers) {
    const bool here = number >= 0 && static_cast<size_t>(number / chunks_.full) == chunk;
    const int lane = here ? static_cast<int>(number % chunks_.full) : -1;
    same &= !here || lane == static_cast<int>(mask.size());
    mask.push_back(lane);
  }
  Value* vector = from.vectors[chunk];
  if (same && lanes_in(vector) == mask.size()) return vector;
  return b_.CreateShuffleVector(lanes_in(vector) == 1 ? widened(vector) : vector, mask);
}

Value* LaneBuilder::pick_vector(const Lanes& from, std::span<const int64_t> numbers) const {
  llvm::SmallVector<size_t, 8> chunks;
  for (const int64_t number : numbers) {
    const auto chunk = static_cast<size_t>(number / chunks_.full);
    if (number >= 0 && !llvm::is_contained(chunks, chunk)) chunks.push_back(chunk);
  }
  llvm::Type* type = lanes_of(from.scalar, static_cast<unsigned>(numbers.size()));
  if (chunks.empty()) return llvm::PoisonValue::get(type);
  if (numbers.size() == 1) return element(from, numbers[0]);
  const bool one = std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == numbers[0]; });
  if (one) return b_.CreateVectorSplat(static_cast<unsigned>(numbers.size()), element(from, numbers[0]));
  Value* result = placed(from, chunks[0], numbers);
  for (size_t k = 1; k < chunks.size(); ++k) {
    Value* next = placed(from, chunks[k], numbers);
    llvm::SmallVector<int, 16> blend;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const bool takes = numbers[i] >= 0 && static_cast<size_t>(numbers[i] / chunks_.full) == chunks[k];
      blend.push_back(static_cast<int>(takes ? i + numbers.size() : i));
    }
    result = b_.CreateShuffleVector(result, next, blend);
  }
  return result;
}

}  // namespace treadle::jit
