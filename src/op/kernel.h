#pragma once
// A prepared operator: a function, and the state that preparation computed from attributes, shapes and constants.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace treadle {

// Why a kernel failed. Kernels build no strings. They return a KernelError and leave a few numbers (kernel_failure), of
// which kernel_status() makes a message.
enum class KernelError : uint32_t {
  kNone = 0,
  kDivisionByZero,    // integer division or modulo
  kIndexOutOfRange,   // detail: index, size of the axis
  kNegativeExponent,  // detail: exponent
  kInvalidValue,      // detail: value
  kShapeMismatch,     // data led to a shape other than the prepared one
  kSequenceLength,    // detail: length, longest, batch entry
  kStopped,           // the run was told to stop (base/stop.h)
};

struct KernelFailure {
  int64_t found = 0;
  int64_t limit = 0;
  int64_t position = 0;
};
KernelFailure& kernel_failure();  // of the calling thread

inline uint32_t fail(KernelError code, int64_t found = 0, int64_t limit = 0, int64_t position = 0) {
  kernel_failure() = {found, limit, position};
  return static_cast<uint32_t>(code);
}
// The message for `code` and the numbers of the failing kernel.
Status kernel_status(uint32_t code);

// `operands` are indices into `slots`: the node's inputs, then its outputs, then scratch and kept memory if the kernel
// asked for them (PrepareContext). An operand that is left out refers to a null slot. Returns 0 or a KernelError.
using KernelFn = uint32_t (*)(const void* state, void* const* slots, const uint32_t* operands);

struct ResizeContext;  // op/resize.h
// Adapts the state of a prepared kernel to other sizes. False, with the state unchanged, if that is not possible: the
// sizes need another kernel, or do not fit each other.
using ResizeFn = bool (*)(void* state, ResizeContext& ctx);

struct Kernel {
  KernelFn run = nullptr;
  const void* state = nullptr;
  ResizeFn resize = nullptr;  // null: the kernel is prepared anew for other sizes
  std::string_view method;    // how it computes, where there are several ways (a literal); empty: there is one
};

// Memory for kernel state. It is freed as a whole, after running destructors.
class StateArena {
 public:
  StateArena() = default;
  StateArena(StateArena&&) noexcept = default;
  StateArena& operator=(StateArena&&) noexcept = default;
  StateArena(const StateArena&) = delete;
  ~StateArena() { clear(); }

  void* allocate(size_t bytes, size_t alignment = 64);
  template <class T, class... Args>
  T* make(Args&&... args) {
    T* object = new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
    if constexpr (!std::is_trivially_destructible_v<T>) {
      cleanups_.push_back({[](void* p) { static_cast<T*>(p)->~T(); }, object});
    }
    return object;
  }
  void clear();

 private:
  struct Cleanup {
    void (*destroy)(void*);
    void* object;
  };
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    size_t size;
  };
  std::vector<Block> blocks_;
  std::vector<Cleanup> cleanups_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace treadle
