// Calls of an engine's C API in a row, so that what is timed is the calls alone.
#include <cstddef>

#include "yard.h"

// As treadle_stream_push.
using Push = void* (*)(void* stream, const void* options, const char* const* names, const void* const* values,
                       size_t count, void** outputs, size_t* hops);

// Null, or what the first call that failed has given.
YARDSTICK void* push_repeatedly(int64_t calls, Push push, void* stream, const char* const* names,
                                const void* const* values, int64_t count, void** outputs) {
  for (int64_t k = 0; k < calls; ++k) {
    if (void* failed = push(stream, nullptr, names, values, static_cast<size_t>(count), outputs, nullptr))
      return failed;
  }
  return nullptr;
}
