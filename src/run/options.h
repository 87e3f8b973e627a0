#pragma once
// Options of a run, and of when loops become native code.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/limits.h"

namespace treadle {

namespace run {
struct Iterations;
class Observer;
class Profile;
}  // namespace run

// When loops become native code; results are the same to the last bit.
enum class Jit : uint8_t {
  kOff,
  kAuto,      // loops that have taken long enough are compiled in the background
  kAlways,    // a loop is compiled before it first runs
  kRequired,  // as kAlways, and a loop that cannot be native code is an error of the run
};

// The names that options use: "off", "auto", "always", "required".
std::string_view name(Jit jit);
std::optional<Jit> jit_named(std::string_view name);

// Limits of one run, and the function that is told its progress. A limit that is reached is an error kLimit that says
// which limit and where; a cancelled run is kCancelled.
struct RunOptions : WorkLimits {
  int64_t iteration_limit = 0;      // iterations of all loops together; 0: none
  run::Profile* profile = nullptr;  // records the run, which is then interpreted; the reference interpreter ignores it
  run::Observer* observer = nullptr;      // told of each instruction (run/observer.h); then nothing is profiled
  run::Iterations* iterations = nullptr;  // gets the iterations of each loop, also of a run that fails; the reference
                                          // interpreter ignores it
  // Called about every 50 ms, and when the run has succeeded, on the thread that runs. `done`: how many iterations the
  // outermost loops have made; `total`: how many they will make (-1: not known). Returning true cancels the run.
  bool (*progress)(void* context, int64_t done, int64_t total) = nullptr;
  void* progress_context = nullptr;
  // Called on the thread that runs before work that takes more than some 10 us or waits for another thread; possibly
  // more than once.
  void (*long_work)(void* context) = nullptr;
  void* long_work_context = nullptr;

  // Whether nothing bounds, stops or watches the run.
  bool is_plain() const {
    return !cancel && !interrupted && time_limit_s <= 0 && memory_limit == 0 && iteration_limit <= 0 && !profile &&
           !observer && !iterations && !progress;
  }
  bool is_cancelled() const { return cancel && cancel->load(std::memory_order_relaxed); }
  void begin_long_work() const {
    if (long_work) long_work(long_work_context);
  }
};

}  // namespace treadle
