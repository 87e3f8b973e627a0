#include "base/stack.h"

#include <cstdint>

namespace treadle {

namespace {

struct Bounds {
  uintptr_t low = 0, high = 0;  // both 0: unknown
};

// Bounds of the calling thread's stack. Finding them is slow for the first thread of a process.
Bounds find_bounds() {
  Bounds bounds;
#ifdef __linux__
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return bounds;
  void* low = nullptr;
  size_t size = 0, guard = 0;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0) {
    bounds.low = reinterpret_cast<uintptr_t>(low);
    bounds.high = bounds.low + size;
    bounds.low += guard < size ? guard : 0;
  }
  pthread_attr_destroy(&attributes);
#endif
  return bounds;
}

}  // namespace

size_t stack_left() {
  thread_local const Bounds bounds = find_bounds();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > bounds.low && here < bounds.high ? here - bounds.low : SIZE_MAX;
}

bool has_stack_for(size_t levels) {
  const size_t left = stack_left();
  return left == SIZE_MAX || (left > kStackReserve && (left - kStackReserve) / kStackPerLevel >= levels);
}

Status check_stack(size_t levels) {
  return has_stack_for(levels) ? Status() : too_deep(levels);
}

Status too_deep(size_t levels) {
  return error(Code::kLimit, "bodies are nested {} deep: too deep for the {} bytes that the thread's stack has left",
               levels, stack_left());
}

void want_stack(pthread_attr_t& attributes, size_t bytes) {
  size_t usual = 0;
  if (pthread_attr_getstacksize(&attributes, &usual) != 0 || usual >= bytes) return;
  pthread_attr_setstacksize(&attributes, bytes);
}

bool call_on_stack(size_t bytes, void (*fn)(void*), void* context) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  want_stack(attributes, bytes);
  struct Call {
    void (*fn)(void*);
    void* context;
  } call{fn, context};
  const auto run = [](void* given) -> void* {
    const auto& [to_call, with] = *static_cast<Call*>(given);
    to_call(with);
    return nullptr;
  };
  pthread_t thread;
  const bool runs = pthread_create(&thread, &attributes, run, &call) == 0;
  pthread_attr_destroy(&attributes);
  return runs && pthread_join(thread, nullptr) == 0;
}

}  // namespace treadle
