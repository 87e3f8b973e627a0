// Shared by all sessions of a process: the destination of messages, and the number of threads of sessions that do not
// set one.
#pragma once

#include <atomic>
#include <mutex>

#include "api.h"

struct OrtThreadingOptions {
  int threads = 0;
};

namespace treadle::dropin {

struct Logger {
  OrtLoggingFunction function = nullptr;  // none: standard error
  void* parameter = nullptr;
  std::string id;
  OrtLoggingLevel least = ORT_LOGGING_LEVEL_WARNING;

  void warn(const std::string& message) const;
};

// Throws for a number that is not a severity of the log.
void require_level(int level);

}  // namespace treadle::dropin

// The only environment; it exists as long as a client holds it.
struct OrtEnv {
  mutable std::mutex mutex;
  treadle::dropin::Logger logger;
  int threads = 0;
  bool telemetry = false;
};
