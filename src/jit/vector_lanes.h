#pragma once
// A few elements in vectors, and picking any of them by their numbers. Broadcasts, transposes, slices and the steps of
// reductions are all lists of numbers that are known when code is written. LLVM turns them into permutations.

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "jit/chunks.h"

namespace treadle::jit {

// Element i is in vector i / chunks.full, lane i % chunks.full. A vector of one lane is a scalar.
struct Lanes {
  llvm::Type* scalar = nullptr;
  int64_t count = 0;
  std::vector<llvm::Value*> vectors;
};

// How many elements a vector or a scalar has.
unsigned lanes_in(llvm::Value* vector);

using Numbers = std::vector<int64_t>;

// The numbers first, first + step, ...; `count` of them.
Numbers range(int64_t count, int64_t first = 0, int64_t step = 1);

class LaneBuilder {
 public:
  LaneBuilder(llvm::IRBuilder<>& builder, const Chunks& chunks) : b_(builder), chunks_(chunks) {}

  const Chunks& chunks() const { return chunks_; }
  llvm::IRBuilder<>& ir() const { return b_; }
  llvm::Value* element(const Lanes& from, int64_t number) const;
  // Element i of the result is element numbers[i] of `from`; below 0: anything.
  Lanes pick(const Lanes& from, std::span<const int64_t> numbers) const;
  Lanes splat(llvm::Value* scalar, int64_t count) const;
  // One element from each scalar.
  Lanes of(llvm::ArrayRef<llvm::Value*> elements) const;
  // Calls fn(one vector of each argument, lanes) for each vector; all arguments have the same length.
  using Fn = std::function<llvm::Value*(llvm::ArrayRef<llvm::Value*>, unsigned lanes)>;
  Lanes map(std::initializer_list<const Lanes*> arguments, const Fn& fn) const;
  // The elements of `a` followed by those of `b`.
  Lanes join(const Lanes& a, const Lanes& b) const;

 private:
  llvm::Value* pick_vector(const Lanes& from, std::span<const int64_t> numbers) const;
  llvm::Value* widened(llvm::Value* vector) const;
  llvm::Value* placed(const Lanes& from, size_t chunk, std::span<const int64_t> numbers) const;

  llvm::IRBuilder<>& b_;
  const Chunks& chunks_;
};

}  // namespace treadle::jit
