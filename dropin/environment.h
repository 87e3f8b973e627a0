// What all sessions of a process share: where messages go, and how many threads sessions have that bring none.
#pragma once

#include <atomic>
#include <mutex>

#include "api.h"

struct OrtThreadingOptions {
  int threads = 0;
};

namespace treadle::dropin {

struct Logger {
  OrtLoggingFunction function = nullptr;  // none: the standard error output
  void* parameter = nullptr;
  std::string id;
  OrtLoggingLevel least = ORT_LOGGING_LEVEL_WARNING;

  void warn(const std::string& message) const;
};

// Refuses what is no severity of a log.
void require_level(int level);

}  // namespace treadle::dropin

// There is one, whoever asks, for as long as somebody has it.
struct OrtEnv {
  mutable std::mutex mutex;
  treadle::dropin::Logger logger;
  int threads = 0;
  bool telemetry = false;
};
