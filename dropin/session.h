// Sessions of treadle, and the functions that ask about them.
#pragma once

#include "options.h"
#include "trace.h"

struct OrtSession {
  using Engine = std::unique_ptr<treadle_session, void (*)(treadle_session*)>;

  // Decides whether loading goes on. Planning in later runs does not ask.
  struct Loading {
    std::shared_ptr<std::atomic<bool>> cancelled;
    std::atomic<bool> ended{false};
  };

  Loading loading;
  treadle::dropin::EngineOptions options{nullptr, treadle_options_free};
  Engine engine{nullptr, treadle_session_free};
  treadle::dropin::Logger logger;
  std::unique_ptr<treadle::dropin::Trace> trace;

  // Runs the model. A given `outputs[i]` is overwritten in place; otherwise it becomes a new value.
  void run(const OrtRunOptions* run_options, const char* const* names, const OrtValue* const* inputs, size_t count,
           const char* const* output_names, size_t output_count, OrtValue** outputs) const;
};
