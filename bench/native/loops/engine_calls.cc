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

// As the entries Run and ReleaseValue of onnxruntime's function table.
using Run = void* (*)(void* session, const void* options, const char* const* input_names, const void* const* inputs,
                      size_t input_count, const char* const* output_names, size_t output_count, void** outputs);
using ReleaseValue = void (*)(void* value);

// Null, or what the first run that failed has given. Each run makes its outputs anew.
YARDSTICK void* run_repeatedly(int64_t calls, Run run, ReleaseValue release, void* session,
                               const char* const* input_names, const void* const* inputs, int64_t input_count,
                               const char* const* output_names, int64_t output_count, void** outputs) {
  for (int64_t k = 0; k < calls; ++k) {
    for (int64_t i = 0; i < output_count; ++i) outputs[i] = nullptr;
    if (void* failed = run(session, nullptr, input_names, inputs, static_cast<size_t>(input_count), output_names,
                           static_cast<size_t>(output_count), outputs)) {
      return failed;
    }
    for (int64_t i = 0; i < output_count; ++i) release(outputs[i]);
  }
  return nullptr;
}
