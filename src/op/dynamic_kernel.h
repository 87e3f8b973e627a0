#pragma once
// Kernels for operands of run-time sizes. A prepared kernel (op/kernel.h) is made for certain sizes; finding or making
// it takes longer than work on some dozen elements. A dynamic kernel accepts any sizes, computes the sizes of its
// results, and then the results. Operators have one if loops use them on values that grow, shrink or are cut to pieces.
// A dynamic kernel gives the same bits as the prepared kernel.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "ir/graph.h"
#include "op/kernel.h"
#include "type/tensor.h"

namespace treadle {

// A row-major tensor. `dims` is null if it is left out.
struct DynamicOperand {
  const void* data = nullptr;
  const Dims* dims = nullptr;
  int64_t count = 0;  // elements

  bool present() const { return dims != nullptr; }
  int64_t rank() const { return static_cast<int64_t>(dims->size()); }
  int64_t size(size_t axis) const { return (*dims)[axis]; }
  // A node's axis `given` (negative: counted from the end) as a position; none if there is no such axis.
  std::optional<size_t> axis(int64_t given) const {
    const int64_t found = given < 0 ? given + rank() : given;
    return found >= 0 && found < rank() ? std::optional(static_cast<size_t>(found)) : std::nullopt;
  }
};

// A dynamic kernel returns this, beside 0 and KernelErrors, if it leaves the operands to the prepared kernel. That is
// so for wrong operands, on which the prepared kernel reports the error, and for operands so long that it is faster.
inline constexpr uint32_t kNotDynamic = UINT32_MAX - 1;

// Where to write an output: the tensor of the last call, whose memory is reused if possible.
struct DynamicResult {
  Tensor* tensor = nullptr;  // null: memory is requested each time
  void** address = nullptr;  // the slot with the address of the elements, to be kept right
  ElementType type{};
  size_t width = 0;       // bytes of an element
  bool is_fixed = false;  // its sizes are planned, and the tensor has them
};

class DynamicCall {
 public:
  // Larger operands are left to prepared kernels, which may run on several threads and can be stopped.
  static constexpr size_t kMostBytes = 1 << 16;

  DynamicCall(std::span<const DynamicOperand> operands, std::span<const DynamicResult> results)
      : inputs(operands), results_(results) {}

  const std::span<const DynamicOperand> inputs;

  bool has(size_t i) const { return i < inputs.size() && inputs[i].present(); }
  // Memory for output `i` of these sizes. Null: the kernel has to return kNotDynamic, as for a negative size.
  void* make(size_t i, std::span<const int64_t> dims) {
    int64_t count = 1;
    for (const int64_t size : dims) {
      if (size < 0 || __builtin_mul_overflow(count, size, &count)) return nullptr;
    }
    return make(i, dims, count);
  }
  // The same with the known product of the sizes.
  void* make(size_t i, std::span<const int64_t> dims, int64_t count) {
    const DynamicResult& result = results_[i];
    if (static_cast<size_t>(count) > kMostBytes / result.width) return nullptr;
    const size_t bytes = static_cast<size_t>(count) * result.width;
    bytes_ += bytes;
    Tensor* const old = result.tensor;
    if (!old || old->type() != result.type || (result.is_fixed && !std::ranges::equal(dims, old->dims())) ||
        !old->rewrite(dims, count, bytes)) {
      return make_elsewhere(i, dims);
    }
    return *result.address = old->mutable_raw();
  }
  // Makes output `i` the elements of input `from` under other sizes with the same product. False: as for make().
  bool share(size_t i, size_t from, std::span<const int64_t> dims) {
    // Short values are copied: sharing the memory would keep the next iteration from writing to it.
    constexpr size_t kMostCopied = 4096;
    const size_t bytes = static_cast<size_t>(inputs[from].count) * results_[i].width;
    if (bytes > kMostCopied || is_string(results_[i].type)) return share_memory(i, from, dims);
    void* to = make(i, dims, inputs[from].count);
    if (to && bytes > 0) std::memcpy(to, inputs[from].data, bytes);
    return to != nullptr;
  }
  // Counts bytes of texts that are read or written, beside the elements themselves.
  void count_bytes(size_t bytes) { bytes_ += bytes; }
  // Bytes of all results.
  size_t bytes_made() const { return bytes_; }

 protected:
  ~DynamicCall() = default;

 private:
  virtual void* make_elsewhere(size_t i, std::span<const int64_t> dims) = 0;
  virtual bool share_memory(size_t i, size_t from, std::span<const int64_t> dims) = 0;

  std::span<const DynamicResult> results_;
  size_t bytes_ = 0;
};

struct DynamicKernel {
  uint32_t (*run)(const void* state, DynamicCall& call) = nullptr;  // null: there is none
  const void* state = nullptr;
  bool takes_texts = false;  // there are texts among operands or results
};

// The argument for making a dynamic kernel, once per node: all but the sizes. Element types of inputs are known.
struct DynamicContext {
  const ir::Node& node;
  StateArena& arena;

  const ir::Attributes& attributes() const { return node.attributes; }
  ElementType element(size_t input) const { return node.inputs[input]->type.element; }
};

// A kernel whose state is a T made from `arguments`.
template <class T, auto kRun, class... Args>
DynamicKernel dynamic_kernel(const DynamicContext& context, Args&&... arguments) {
  const auto run = [](const void* state, DynamicCall& call) { return kRun(*static_cast<const T*>(state), call); };
  return {run, context.arena.make<T>(std::forward<Args>(arguments)...), false};
}

// The dynamic kernel of a node. None if the operator has none (for texts: OpDef::dynamic_texts), if an element type is
// unknown, or if an output is left out.
DynamicKernel dynamic_kernel_of(const ir::Node& node, StateArena& arena);

// Helpers of kernels: element k of a list of int32 or int64 (`wide`); a strided copy, with strides in elements.
int64_t index_at(const void* list, bool wide, int64_t k);
void copy_strided(size_t width, std::span<const int64_t> dims, const void* from, std::span<const int64_t> from_strides,
                  void* to, std::span<const int64_t> to_strides);

}  // namespace treadle
