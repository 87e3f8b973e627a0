// Sessions: treadle's, and what clients ask about them.
#pragma once

#include <mutex>

#include "options.h"

namespace treadle::dropin {

// Runs in the trace format that browsers show. Written when the session is asked to end it, or else when it goes.
class Trace {
 public:
  Trace(std::string prefix, uint64_t now_ns);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  uint64_t start_ns() const { return start_ns_; }
  void add(const char* name, uint64_t begin_ns, uint64_t end_ns);
  // Nodes of one run, once.
  bool wants_nodes();
  void add_nodes(std::string trace);
  // The name of the file.
  std::string write();

 private:
  std::mutex mutex_;
  std::string path_, events_, nodes_;
  uint64_t start_ns_;
  bool has_nodes_ = false, written_ = false;
};

}  // namespace treadle::dropin

struct OrtSession {
  using Engine = std::unique_ptr<treadle_session, void (*)(treadle_session*)>;

  // What loading asks whether it shall go on; planning for later runs does not.
  struct Loading {
    std::shared_ptr<std::atomic<bool>> cancelled;
    std::atomic<bool> ended{false};
  };

  Loading loading;
  treadle::dropin::EngineOptions options{nullptr, treadle_options_free};
  Engine engine{nullptr, treadle_session_free};
  treadle::dropin::Logger logger;
  std::unique_ptr<treadle::dropin::Trace> trace;

  // Values of results: where `outputs[i]` is given it is written in place; else a new value.
  void run(const OrtRunOptions* run_options, const char* const* names, const OrtValue* const* inputs, size_t count,
           const char* const* output_names, size_t output_count, OrtValue** outputs) const;
};
