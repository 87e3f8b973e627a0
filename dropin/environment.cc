#include "environment.h"

#include <algorithm>
#include <cstdio>

#include "memory.h"

namespace treadle::dropin {

void Logger::warn(const std::string& message) const {
  if (least > ORT_LOGGING_LEVEL_WARNING) return;
  if (function) {
    function(parameter, ORT_LOGGING_LEVEL_WARNING, "treadle", id.c_str(), "", message.c_str());
  } else {
    std::fprintf(stderr, "[W:treadle:%s] %s\n", id.c_str(), message.c_str());
  }
}

void require_level(int level) {
  if (level >= ORT_LOGGING_LEVEL_VERBOSE && level <= ORT_LOGGING_LEVEL_FATAL) return;
  refuse_argument("the severity of a log is 0 (verbose) to 4 (fatal), and " + std::to_string(level) + " was given");
}

namespace {

// Every CreateEnv returns the same environment, as in onnxruntime. The first call decides how it logs. Clients create
// and release it repeatedly.
struct Shared {
  std::mutex mutex;
  OrtEnv* environment = nullptr;
  int users = 0;
};
Shared& shared() {
  static Shared* const shared = new Shared;  // never destroyed, as code may use it while the process ends
  return *shared;
}

OrtEnv* acquire(Logger logger, int threads) {
  Shared& all = shared();
  const std::lock_guard lock(all.mutex);
  if (!all.environment) {
    all.environment = new OrtEnv;
    all.environment->logger = std::move(logger);
    all.environment->threads = threads;
  }
  ++all.users;
  return all.environment;
}

Logger logger_of(OrtLoggingFunction function, void* parameter, OrtLoggingLevel least, const char* id) {
  require_level(least);
  return {.function = function, .parameter = parameter, .id = id ? id : "", .least = least};
}

int threads_of(const OrtThreadingOptions* options) {
  return options ? options->threads : 0;
}

}  // namespace

namespace api {

void CreateEnv(OrtLoggingLevel least, const char* id, OrtEnv** out) {
  *out = acquire(logger_of(nullptr, nullptr, least, id), 0);
}

void CreateEnvWithCustomLogger(OrtLoggingFunction function, void* parameter, OrtLoggingLevel least, const char* id,
                               OrtEnv** out) {
  *out = acquire(logger_of(function, parameter, least, id), 0);
}

void CreateEnvWithGlobalThreadPools(OrtLoggingLevel least, const char* id, const OrtThreadingOptions* options,
                                    OrtEnv** out) {
  *out = acquire(logger_of(nullptr, nullptr, least, id), threads_of(options));
}

void CreateEnvWithCustomLoggerAndGlobalThreadPools(OrtLoggingFunction function, void* parameter, OrtLoggingLevel least,
                                                   const char* id, const OrtThreadingOptions* options, OrtEnv** out) {
  *out = acquire(logger_of(function, parameter, least, id), threads_of(options));
}

void CreateEnvWithOptions(const OrtEnvCreationOptions* options, OrtEnv** out) {
  require(options, "the options of an environment are missing");
  *out = acquire(logger_of(options->custom_logging_function, options->custom_logging_param,
                           static_cast<OrtLoggingLevel>(options->logging_severity_level), options->log_id),
                 threads_of(options->threading_options));
}

void ReleaseEnv(OrtEnv* environment) {
  if (!environment) return;
  Shared& all = shared();
  const std::lock_guard lock(all.mutex);
  if (--all.users > 0) return;
  delete all.environment;
  all.environment = nullptr;
}

void UpdateEnvWithCustomLogLevel(OrtEnv* environment, OrtLoggingLevel least) {
  require_level(least);
  const std::lock_guard lock(environment->mutex);
  environment->logger.least = least;
}

// treadle sends no telemetry, and the calling language does not matter.
void EnableTelemetryEvents(const OrtEnv*) {}
void DisableTelemetryEvents(const OrtEnv*) {}
void SetLanguageProjection(const OrtEnv*, OrtLanguageProjection) {}

void CreateThreadingOptions(OrtThreadingOptions** out) {
  *out = new OrtThreadingOptions;
}

void ReleaseThreadingOptions(OrtThreadingOptions* options) {
  delete options;
}

void SetGlobalIntraOpNumThreads(OrtThreadingOptions* options, int threads) {
  options->threads = std::max(threads, 0);  // 0 and less: as many as processors
}

// All threads work on operators; they spin only as long as it pays; results do not depend on denormals.
void SetGlobalInterOpNumThreads(OrtThreadingOptions*, int) {}
void SetGlobalSpinControl(OrtThreadingOptions*, int) {}
void SetGlobalDenormalAsZero(OrtThreadingOptions*) {
  throw Failure(ORT_NOT_IMPLEMENTED, "treadle keeps denormal numbers as they are");
}

}  // namespace api

}  // namespace treadle::dropin
