// Options of sessions and of runs.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "environment.h"
#include "pairs.h"
#include "values.h"

namespace treadle::dropin {
using EngineOptions = std::unique_ptr<treadle_options, void (*)(treadle_options*)>;
using EngineRunOptions = std::unique_ptr<treadle_run_options, void (*)(treadle_run_options*)>;
}  // namespace treadle::dropin

struct OrtSessionOptions {
  OrtSessionOptions() : load_cancelled(std::make_shared<std::atomic<bool>>(false)) {}
  OrtSessionOptions(const OrtSessionOptions& other);
  OrtSessionOptions& operator=(const OrtSessionOptions&) = delete;

  // As options of treadle; `environment` may be nullptr.
  treadle::dropin::EngineOptions engine(const OrtEnv* environment) const;
  const std::string* entry(const char* key) const { return entries.find(key); }

  int threads = 0;
  bool own_threads = true;
  GraphOptimizationLevel level = ORT_ENABLE_ALL;
  ExecutionMode mode = ORT_SEQUENTIAL;
  bool memory_pattern = true;
  std::string log_id, profile_prefix, optimized_model;
  bool profiles = false;
  int severity = -1;
  OrtLoggingFunction logging = nullptr;
  void* logging_parameter = nullptr;
  OrtKeyValuePairs entries;
  std::vector<std::pair<std::string, int64_t>> sizes, denoted_sizes;
  std::map<std::string, OrtValue> initializers;
  std::map<std::string, std::string_view> files;  // external data; the bytes are the client's
  std::vector<const OrtCustomOpDomain*> domains;  // of operators; the client's, read when a session is made
  // Stops the making of sessions with these options. Copies of the options share it.
  std::shared_ptr<std::atomic<bool>> load_cancelled;
};

struct OrtRunOptions {
  OrtRunOptions();

  treadle::dropin::EngineRunOptions engine;
  std::string tag;
  int verbosity = 0;
  int severity = -1;
  OrtKeyValuePairs entries;
  mutable std::atomic<bool> has_untold{false};  // there are entries that no run has warned about yet
};
