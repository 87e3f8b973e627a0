// Calls of models that were compiled from C, in a row, and the stack that a call needs.
#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>

#include "yard.h"

// As a model's <prefix>_run: structures of pointers. Gives the first error.
using RunModel = int (*)(const void* inputs, const void* outputs, void* scratch);

YARDSTICK int64_t run_model_repeatedly(int64_t calls, RunModel run, const void* inputs, const void* outputs,
                                       void* scratch) {
  for (int64_t k = 0; k < calls; ++k) {
    if (const int error = run(inputs, outputs, scratch)) return error;
  }
  return 0;
}

using RunArrays = void (*)(void** arrays);

YARDSTICK int64_t run_arrays_repeatedly(int64_t calls, RunArrays run, void** arrays) {
  for (int64_t k = 0; k < calls; ++k) run(arrays);
  return 0;
}

namespace {

struct Call {
  void* function;
  void* first;
  void* second;
  void* third;
};

void* made(void* of) {
  const auto* call = static_cast<const Call*>(of);
  if (call->second) {
    reinterpret_cast<RunModel>(call->function)(call->first, call->second, call->third);
  } else {
    reinterpret_cast<RunArrays>(call->function)(static_cast<void**>(call->first));
  }
  return nullptr;
}

}  // namespace

// Bytes of stack of one call, on a thread whose stack was all zeros; -1: there is no such thread. Without `outputs`
// the function takes arrays.
YARDSTICK int64_t stack_of_call(void* function, void* inputs, void* outputs, void* scratch) {
  constexpr size_t kSize = size_t{1} << 30;
  void* stack = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) return -1;
  Call call{function, inputs, outputs, scratch};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kSize);
  const auto deepest = [&](void* (*body)(void*)) -> int64_t {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, body, &call)) return -1;
    pthread_join(thread, nullptr);
    const auto* words = static_cast<const uint64_t*>(stack);
    size_t zeros = 0;
    while (zeros < kSize / sizeof(uint64_t) && words[zeros] == 0) ++zeros;
    madvise(stack, kSize, MADV_DONTNEED);
    return static_cast<int64_t>(kSize - zeros * sizeof(uint64_t));
  };
  const int64_t empty = deepest([](void*) -> void* { return nullptr; });
  const int64_t used = deepest(made);
  pthread_attr_destroy(&attributes);
  munmap(stack, kSize);
  return empty < 0 || used < 0 ? -1 : used - empty;
}
