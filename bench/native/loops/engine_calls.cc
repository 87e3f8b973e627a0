// Calls of an engine's C API in a row, so that what is timed is the calls alone.
#include <sys/resource.h>

#include <cstddef>
#include <ctime>

#include "yard.h"

namespace {

int64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

// The kernel stops a thread of a real-time priority that takes all of its processor, by default for 50 ms in each
// second. So there are pauses between calls.
constexpr int64_t kBusy = 8'000'000, kPause = 2'000'000;  // nanoseconds

// Where `times` is not null it gets the nanoseconds of each call, and `counted` the thread's page faults and the
// context switches that it did not ask for and those that it did, pauses aside, during all of them. Null, or what the
// first call that failed has given.
template <class Call>
void* watched(int64_t calls, int64_t* times, int64_t* counted, Call&& call) {
  if (!times) {
    for (int64_t k = 0; k < calls; ++k) {
      if (void* failed = call(k)) return failed;
    }
    return nullptr;
  }
  rusage before, after;
  getrusage(RUSAGE_THREAD, &before);
  int64_t begin = nanoseconds(), rested = begin, pauses = 0;
  for (int64_t k = 0; k < calls; ++k) {
    if (void* failed = call(k)) return failed;
    const int64_t end = nanoseconds();
    times[k] = end - begin;
    begin = end;
    if (end - rested < kBusy) continue;
    const timespec pause = {0, kPause};
    nanosleep(&pause, nullptr);
    ++pauses;
    begin = rested = nanoseconds();
  }
  getrusage(RUSAGE_THREAD, &after);
  counted[0] = after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt;
  counted[1] = after.ru_nivcsw - before.ru_nivcsw;
  counted[2] = after.ru_nvcsw - before.ru_nvcsw - pauses;
  return nullptr;
}

}  // namespace

// As treadle_stream_push.
using Push = void* (*)(void* stream, const void* options, const char* const* names, const void* const* values,
                       size_t count, void** outputs, size_t* hops);

YARDSTICK void* push_repeatedly(int64_t calls, Push push, void* stream, const char* const* names,
                                const void* const* values, int64_t count, void** outputs, int64_t* times,
                                int64_t* counted) {
  return watched(calls, times, counted, [&](int64_t) {
    return push(stream, nullptr, names, values, static_cast<size_t>(count), outputs, nullptr);
  });
}

// As treadle_stream_step.
using Step = void* (*)(void* stream);

YARDSTICK void* step_repeatedly(int64_t calls, Step step, void* stream, int64_t* times, int64_t* counted) {
  return watched(calls, times, counted, [&](int64_t) { return step(stream); });
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

// Runs that hand their states on. `inputs` and `outputs` are those of even runs, then those of odd runs: the outputs of
// one are inputs of the other.
YARDSTICK void* run_in_turns(int64_t calls, Run run, void* session, const char* const* input_names,
                             const void* const* inputs, int64_t input_count, const char* const* output_names,
                             void** outputs, int64_t output_count, int64_t* times, int64_t* counted) {
  return watched(calls, times, counted, [&](int64_t k) {
    const int64_t odd = k % 2;
    return run(session, nullptr, input_names, inputs + odd * input_count, static_cast<size_t>(input_count),
               output_names, static_cast<size_t>(output_count), outputs + odd * output_count);
  });
}
