#pragma once
// Kernels of nodes whose sizes are known only at run time, prepared once for each combination of sizes: one inline
// cache per node. A loop whose values grow sees as many sizes as it has trips, and sees them again in the next run.

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/memory_account.h"
#include "op/context.h"
#include "op/kernel.h"
#include "run/frame.h"

namespace treadle::run {

// One preparation of a node, for the sizes (and the contents of shape inputs) that it was made for.
struct Prepared {
  std::vector<Operand> in, out;
  std::vector<Tensor> contents;  // of shape inputs; undefined for the rest
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

  // The preparation of a node, `program.dynamic[index]`, for the sizes that its inputs have in the frame; made, where
  // there is none. Errors: those of inference and of preparation.
  Result<Prepared*> prepared_for(uint32_t index);

 private:
  static constexpr size_t kLeast = 4;    // entries that every node may have
  static constexpr size_t kMost = 2048;  // beyond those, of all nodes together

  struct InlineCache {
    std::unordered_map<uint64_t, std::unique_ptr<Prepared>> entries;  // by a digest of the sizes
    std::vector<uint64_t> order;                                      // the oldest entry first
    // The one that follows the sizes it sees; there is one where the kernel can be resized.
    std::unique_ptr<Prepared> elastic;
    Prepared* last = nullptr;  // the one used last
  };
  // What preparation works with; kept so that a miss asks for little memory.
  struct Work {
    std::vector<Type> types, out_types;
    std::vector<const Type*> type_pointers;
    std::vector<const Tensor*> values;
    std::vector<Tensor> tensors;
  };

  uint64_t digest_of_sizes(const plan::DynamicNode& node) const;
  bool matches(const plan::DynamicNode& node, const Prepared& prepared) const;
  bool lies_as(uint32_t s, const Operand& operand) const;
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
  // Counts what preparations hold. They outlive their run, and a later run has a limit of its own.
  std::shared_ptr<MemoryAccount> account_ = MemoryAccount::make();
  std::vector<InlineCache> caches_;  // by node
  size_t count_ = 0;                 // entries of all caches
  Work work_;
};

}  // namespace treadle::run
