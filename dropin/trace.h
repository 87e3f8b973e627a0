// What a session that profiles writes down.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace treadle::dropin {

// Nanoseconds of the steady clock.
int64_t steady_ns();

// Loading, runs, and the nodes of runs, as onnxruntime's profiler writes them. Written when the session is asked to end
// it, or else when it goes.
class Trace {
 public:
  explicit Trace(std::string prefix);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  uint64_t start_ns() const { return start_ns_; }
  // Of the steady clock, as the times of `add` are.
  int64_t origin_ns() const { return origin_ns_; }
  void add(const char* name, int64_t begin_ns, int64_t end_ns);
  // A JSON array of events.
  void add_nodes(std::string_view events);
  // The name of the file.
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
