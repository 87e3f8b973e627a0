#pragma once
// What a caller says of a run, and of when loops become native code.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/limits.h"

namespace treadle {

namespace run {
struct Iterations;
class Profile;
}  // namespace run

// When loops become native code; results are the same to the last bit.
enum class Jit : uint8_t {
  kOff,
  kAuto,      // loops that have taken long enough are compiled in the background
  kAlways,    // before a loop first runs
  kRequired,  // likewise, and a loop that cannot be native code is an error of the run
};

// As options write them: "off", "auto", "always", "required".
std::string_view name(Jit jit);
std::optional<Jit> jit_named(std::string_view name);

// Limits of one run, and who is told how far it is. A limit that is hit is an error kLimit that says which and where;
// cancelling is kCancelled.
struct RunOptions : WorkLimits {
  int64_t iteration_limit = 0;      // iterations of all loops together; 0: none
  run::Profile* profile = nullptr;  // records the run, which is interpreted for it; not in the reference interpreter
  run::Iterations* iterations = nullptr;  // gets those of each loop, also of a run that fails; likewise
  // Told how many iterations the outermost loops have made, and how many they will make (-1: not known), about every
  // 50 ms and when the run has succeeded, from the thread that works; true cancels the run.
  bool (*progress)(void* context, int64_t done, int64_t total) = nullptr;
  void* progress_context = nullptr;
  // Told, perhaps more than once, from the thread that works, before anything that takes more than some 10 us or waits
  // for another thread.
  void (*long_work)(void* context) = nullptr;
  void* long_work_context = nullptr;

  void begin_long_work() const {
    if (long_work) long_work(long_work_context);
  }
};

}  // namespace treadle
