// The profile of a session.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace treadle::dropin {

// Nanoseconds of the steady clock.
int64_t steady_ns();

// Events of loading, runs, and the nodes of runs, in the format of onnxruntime's profiler. Written when the session is
// told to end profiling, or is freed.
class Trace {
 public:
  explicit Trace(std::string prefix);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  uint64_t start_ns() const { return start_ns_; }
  // In nanoseconds of the steady clock, as the times of `add`.
  int64_t origin_ns() const { return origin_ns_; }
  void add(const char* name, int64_t begin_ns, int64_t end_ns);
  // A JSON array of events.
  void add_nodes(std::string_view events);
  // Returns the name of the file.
  std::string write();

 private:
  std::mutex mutex_;
  void append(std::string_view events);

  std::string path_, events_;
  uint64_t start_ns_;
  int64_t origin_ns_;
  bool written_ = false;
};

}  // namespace treadle::dropin
