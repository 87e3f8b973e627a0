#pragma once
// Kernels of nodes whose sizes are known only at run time: one inline cache per node holds one prepared kernel for each
// combination of sizes. A loop whose values grow sees new sizes in every iteration, and the same sizes again in the
// next run.

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/memory_account.h"
#include "op/context.h"
#include "op/kernel.h"
#include "run/frame.h"

namespace treadle::run {

// A kernel prepared for certain sizes and contents of shape inputs.
struct Prepared {
  std::vector<Operand> in, out;
  std::vector<Tensor> contents;  // contents of shape inputs; undefined for other inputs
  StateArena states;
  Kernel kernel;
  size_t scratch_bytes = 0;
  std::vector<std::byte> kept;  // PrepareContext::kept_bytes
};

class SizeCache {
 public:
  // All three must outlive the cache.
  SizeCache(const plan::Program& program, const Frame& frame, RunMemory& memory)
      : program_(program), frame_(frame), memory_(memory), caches_(program.dynamic.size()) {}
  SizeCache(const SizeCache&) = delete;
  SizeCache& operator=(const SizeCache&) = delete;

  // The kernel of node `program.dynamic[index]` for the sizes that its inputs have in the frame; prepared if it is not
  // cached. Errors: of inference and of preparation.
  Result<Prepared*> prepared_for(uint32_t index);

 private:
  static constexpr size_t kLeast = 4;    // entries that every node may have
  static constexpr size_t kMost = 2048;  // further entries, of all nodes together

  struct InlineCache {
    std::unordered_map<uint64_t, std::unique_ptr<Prepared>> entries;  // by a digest of the sizes
    std::vector<uint64_t> order;                                      // the oldest entry first
    // A kernel that is resized to each new combination of sizes; null if the kernel cannot be resized.
    std::unique_ptr<Prepared> elastic;
    Prepared* last = nullptr;  // the one used last
  };
  // Buffers of preparation, kept so that a cache miss allocates little.
  struct Work {
    std::vector<Type> types, out_types;
    std::vector<const Type*> type_pointers;
    std::vector<const Tensor*> values;
    std::vector<Tensor> tensors;
  };

  uint64_t digest_of_sizes(const plan::DynamicNode& node) const;
  bool matches(const plan::DynamicNode& node, const Prepared& prepared) const;
  bool has_layout_of(uint32_t s, const Operand& operand) const;
  bool has_contents(const plan::DynamicNode& node, const Prepared& prepared) const;
  bool resize(const plan::DynamicNode& node, Prepared& prepared);
  std::unique_ptr<Prepared> room_in(InlineCache& cache);
  Status prepare_within_limits(const plan::DynamicNode& node, Prepared& made);
  Status prepare(const plan::DynamicNode& node, Prepared& made);
  Status prepare_input(const plan::DynamicNode& node, size_t i, Prepared& made);
  Status prepare_outputs(const plan::DynamicNode& node, Prepared& made);

  const plan::Program& program_;
  const Frame& frame_;
  RunMemory& memory_;
  // Counts the memory of prepared kernels. They outlive their run, so the account is not the run's.
  std::shared_ptr<MemoryAccount> account_ = MemoryAccount::make();
  std::vector<InlineCache> caches_;  // by node
  size_t count_ = 0;                 // entries of all caches
  Work work_;
};

}  // namespace treadle::run
