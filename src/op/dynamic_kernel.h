#pragma once
// Kernels for operands whose sizes only the run knows. A prepared kernel (op/kernel.h) is made for the sizes of its
// operands; finding or making the one for the sizes at hand takes longer than work on some dozen elements. A dynamic
// kernel takes whatever sizes come, finds those of the results and computes these. Operators that loops use on values
// which grow, shrink or are cut to pieces have one; it gives the same bits as the prepared kernel.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "ir/graph.h"
#include "op/kernel.h"
#include "type/tensor.h"

namespace treadle {

// A tensor at hand, row-major. One that was left out has no dims.
struct DynamicOperand {
  const void* data = nullptr;
  const Dims* dims = nullptr;
  int64_t count = 0;  // elements

  bool present() const { return dims != nullptr; }
  int64_t rank() const { return static_cast<int64_t>(dims->size()); }
  int64_t size(size_t axis) const { return (*dims)[axis]; }
  // The axis that a node calls `given`, counted from the end where it is negative; none where there is no such axis.
  std::optional<size_t> axis(int64_t given) const {
    const int64_t found = given < 0 ? given + rank() : given;
    return found >= 0 && found < rank() ? std::optional(static_cast<size_t>(found)) : std::nullopt;
  }
};

// What a dynamic kernel returns, beside 0 and a KernelError, where these operands are none for it: they are wrong, so
// that the prepared kernel has to say how, or they are long enough for a prepared kernel to be the better one.
inline constexpr uint32_t kNotDynamic = UINT32_MAX - 1;

// Where an output goes: the tensor that the last call made there, whose memory the next one writes anew where it can.
struct DynamicResult {
  Tensor* tensor = nullptr;  // null: memory has to be looked for each time
  void** address = nullptr;  // of the elements, for those who look there; kept right
  ElementType type{};
  size_t width = 0;       // bytes of an element
  bool is_fixed = false;  // its sizes are planned: the tensor that is there has them
};

class DynamicCall {
 public:
  // Operands of more bytes are better off with a prepared kernel, which may run on several threads and be stopped.
  static constexpr size_t kMostBytes = 1 << 16;

  DynamicCall(std::span<const DynamicOperand> operands, std::span<const DynamicResult> results)
      : inputs(operands), results_(results) {}

  const std::span<const DynamicOperand> inputs;

  bool has(size_t i) const { return i < inputs.size() && inputs[i].present(); }
  // Memory for output `i` of these sizes; null where the kernel is to return kNotDynamic, as it is for a size below 0.
  void* make(size_t i, std::span<const int64_t> dims) {
    int64_t count = 1;
    for (const int64_t size : dims) {
      if (size < 0 || __builtin_mul_overflow(count, size, &count)) return nullptr;
    }
    return make(i, dims, count);
  }
  // The same where it is known what the sizes multiply to.
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
  // Makes output `i` the elements of input `from` under other sizes of equal count. False: as above.
  bool share(size_t i, size_t from, std::span<const int64_t> dims) {
    // Short values are copied: whoever shares memory keeps the next trip from writing to it.
    constexpr size_t kMostCopied = 4096;
    const size_t bytes = static_cast<size_t>(inputs[from].count) * results_[i].width;
    if (bytes > kMostCopied || is_string(results_[i].type)) return share_memory(i, from, dims);
    void* to = make(i, dims, inputs[from].count);
    if (to && bytes > 0) std::memcpy(to, inputs[from].data, bytes);
    return to != nullptr;
  }
  // Counts bytes that are read or written beside the elements themselves: those of texts.
  void count_bytes(size_t bytes) { bytes_ += bytes; }
  // Bytes of all that was made.
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
  bool takes_texts = false;  // texts are among its operands or results
};

// What a dynamic kernel is made of, once for a node: all but the sizes. Element types of inputs are known.
struct DynamicContext {
  const ir::Node& node;
  StateArena& arena;

  const ir::Attributes& attributes() const { return node.attributes; }
  ElementType element(size_t input) const { return node.inputs[input]->type.element; }
};

// A kernel without state but for T, which `arguments` make.
template <class T, auto kRun, class... Args>
DynamicKernel dynamic_kernel(const DynamicContext& context, Args&&... arguments) {
  const auto run = [](const void* state, DynamicCall& call) { return kRun(*static_cast<const T*>(state), call); };
  return {run, context.arena.make<T>(std::forward<Args>(arguments)...), false};
}

// The dynamic kernel of a node; none where the operator has none (for texts: OpDef::dynamic_texts), an element type is
// unknown, or an output is left out.
DynamicKernel dynamic_kernel_of(const ir::Node& node, StateArena& arena);

// What kernels share: element k of a list of int32 or int64; a strided copy, strides in elements.
int64_t index_at(const void* list, bool wide, int64_t k);
void copy_strided(size_t width, std::span<const int64_t> dims, const void* from, std::span<const int64_t> from_strides,
                  void* to, std::span<const int64_t> to_strides);

}  // namespace treadle
