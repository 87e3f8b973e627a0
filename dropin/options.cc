#include "options.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "configuration.h"
#include "custom_operators.h"

namespace treadle::dropin {

namespace {

EngineOptions no_options() {
  treadle_options* options = nullptr;
  check(treadle_options_create(&options));
  return {options, treadle_options_free};
}

// Without a buffer, returns the length with the zero byte; otherwise copies the text.
void give_sized(const std::string& text, char* out, size_t* size) {
  const size_t needed = text.size() + 1;
  if (out && *size < needed) {
    *size = needed;
    refuse_argument("the text takes " + std::to_string(needed) + " bytes");
  }
  *size = needed;
  if (out) text.copy(out, text.size()), out[text.size()] = 0;
}

}  // namespace

}  // namespace treadle::dropin

OrtSessionOptions::OrtSessionOptions(const OrtSessionOptions& other)
    : threads(other.threads),
      own_threads(other.own_threads),
      level(other.level),
      mode(other.mode),
      memory_pattern(other.memory_pattern),
      log_id(other.log_id),
      profile_prefix(other.profile_prefix),
      optimized_model(other.optimized_model),
      profiles(other.profiles),
      severity(other.severity),
      logging(other.logging),
      logging_parameter(other.logging_parameter),
      entries(other.entries),
      sizes(other.sizes),
      denoted_sizes(other.denoted_sizes),
      files(other.files),
      domains(other.domains),
      load_cancelled(other.load_cancelled) {
  for (const auto& [name, value] : other.initializers) initializers.emplace(name, value.share());
}

treadle::dropin::EngineOptions OrtSessionOptions::engine(const OrtEnv* environment) const {
  using treadle::dropin::check;
  treadle::dropin::EngineOptions made = treadle::dropin::no_options();
  const int wanted = own_threads || !environment ? threads : environment->threads;
  check(treadle_options_set(made.get(), "threads", std::to_string(wanted).c_str()));
  check(treadle_options_set(made.get(), "optimize", level == ORT_DISABLE_ALL ? "0" : "1"));
  check(treadle_options_set(made.get(), "loop_condition", "obeyed"));  // as in onnxruntime
  for (const auto& [name, size] : sizes) check(treadle_options_set_dimension(made.get(), name.c_str(), size));
  for (const auto& [word, size] : denoted_sizes) {
    check(treadle_options_set_denoted_dimension(made.get(), word.c_str(), size));
  }
  for (const auto& [name, value] : initializers) {
    treadle::dropin::Feeds feed;
    feed.add(&value);
    check(treadle_options_set_initializer(made.get(), name.c_str(), feed.values()[0]));
  }
  for (const auto& [name, bytes] : files) {
    check(treadle_options_set_external_file(made.get(), name.c_str(), bytes.data(), bytes.size()));
  }
  for (const OrtCustomOpDomain* domain : domains) treadle::dropin::add_operators(made.get(), *domain);
  for (size_t i = 0; i < entries.keys.size(); ++i) {
    const std::string_view key = entries.keys[i];
    if (key == treadle::dropin::kDenormals && entries.values[i] == "1") {
      check(treadle_options_set(made.get(), "denormals", "flush"));
    }
    if (!key.starts_with(treadle::dropin::kOwnPrefix)) continue;
    const std::string own(key.substr(treadle::dropin::kOwnPrefix.size()));
    check(treadle_options_set(made.get(), own.c_str(), entries.values[i].c_str()));
  }
  return made;
}

OrtRunOptions::OrtRunOptions() : engine(nullptr, treadle_run_options_free) {
  treadle_run_options* options = nullptr;
  treadle::dropin::check(treadle_run_options_create(&options));
  engine.reset(options);
}

namespace treadle::dropin::api {

namespace {

// -1: the environment's severity.
void require_severity(int severity) {
  if (severity != -1) require_level(severity);
}

void require_size(int64_t size) {
  if (size >= 0) return;
  refuse_argument("a size is 0 or more, and " + std::to_string(size) + " was given");
}

}  // namespace

void CreateSessionOptions(OrtSessionOptions** out) {
  *out = new OrtSessionOptions;
}

void CloneSessionOptions(const OrtSessionOptions* options, OrtSessionOptions** out) {
  *out = new OrtSessionOptions(*options);
}

void ReleaseSessionOptions(OrtSessionOptions* options) {
  delete options;
}

void SetIntraOpNumThreads(OrtSessionOptions* options, int threads) {
  options->threads = std::max(threads, 0);  // 0 and less: as many as processors
}

// Threads share the work of operators; treadle itself finds nodes that can run at the same time.
void SetInterOpNumThreads(OrtSessionOptions*, int) {}

void SetSessionExecutionMode(OrtSessionOptions* options, ExecutionMode mode) {
  if (mode != ORT_SEQUENTIAL && mode != ORT_PARALLEL) {
    refuse_argument("the mode of execution is 0 (sequential) or 1 (parallel), and " + std::to_string(mode) +
                    " was given");
  }
  options->mode = mode;
}

void GetSessionExecutionMode(const OrtSessionOptions* options, ExecutionMode* out) {
  *out = options->mode;
}

void SetSessionGraphOptimizationLevel(OrtSessionOptions* options, GraphOptimizationLevel level) {
  constexpr int kLevels[] = {ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_LAYOUT, ORT_ENABLE_ALL};
  if (std::ranges::find(kLevels, static_cast<int>(level)) == std::end(kLevels)) {
    refuse_argument("there is no level " + std::to_string(level) + " of rewriting graphs");
  }
  options->level = level;
}

// Memory is planned before a run and kept for the next, with any setting.
void EnableMemPattern(OrtSessionOptions* options) {
  options->memory_pattern = true;
}
void DisableMemPattern(OrtSessionOptions* options) {
  options->memory_pattern = false;
}
void GetMemPatternEnabled(const OrtSessionOptions* options, int* out) {
  *out = options->memory_pattern ? 1 : 0;
}
void EnableCpuMemArena(OrtSessionOptions*) {}
void DisableCpuMemArena(OrtSessionOptions*) {}

// Results do not depend on the number of threads in any case.
void SetDeterministicCompute(OrtSessionOptions*, bool) {}

void DisablePerSessionThreads(OrtSessionOptions* options) {
  options->own_threads = false;
}

void SetOptimizedModelFilePath(OrtSessionOptions* options, const char* path) {
  options->optimized_model = path;
}

void EnableProfiling(OrtSessionOptions* options, const char* prefix) {
  options->profiles = true;
  options->profile_prefix = prefix;
}

void DisableProfiling(OrtSessionOptions* options) {
  options->profiles = false;
}

void SetSessionLogId(OrtSessionOptions* options, const char* id) {
  options->log_id = id;
}

void SetSessionLogVerbosityLevel(OrtSessionOptions*, int) {}

void SetSessionLogSeverityLevel(OrtSessionOptions* options, int severity) {
  require_severity(severity);
  options->severity = severity;
}

void SetUserLoggingFunction(OrtSessionOptions* options, OrtLoggingFunction function, void* parameter) {
  options->logging = function;
  options->logging_parameter = parameter;
}

void AddFreeDimensionOverride(OrtSessionOptions* options, const char* denotation, int64_t size) {
  require_size(size);
  options->denoted_sizes.emplace_back(denotation, size);
}

void AddFreeDimensionOverrideByName(OrtSessionOptions* options, const char* name, int64_t size) {
  require_size(size);
  options->sizes.emplace_back(name, size);
}

void AddSessionConfigEntry(OrtSessionOptions* options, const char* key, const char* value) {
  require(key && *key && value, "a configuration entry has a name and a value");
  options->entries.set(key, value);
}

void HasSessionConfigEntry(const OrtSessionOptions* options, const char* key, int* out) {
  *out = options->entry(key) ? 1 : 0;
}

void GetSessionConfigEntry(const OrtSessionOptions* options, const char* key, char* out, size_t* size) {
  const std::string* const value = options->entry(key);
  if (!value) refuse_argument("there is no configuration entry '" + std::string(key) + "'");
  give_sized(*value, out, size);
}

void GetSessionOptionsConfigEntries(const OrtSessionOptions* options, OrtKeyValuePairs** out) {
  *out = new OrtKeyValuePairs(options->entries);
}

void AddInitializer(OrtSessionOptions* options, const char* name, const OrtValue* value) {
  require(name && *name && value, "an initializer has a name and a value");
  if (!value->is_tensor()) refuse_argument("expected a tensor for initializer '" + std::string(name) + "'");
  if (!options->initializers.emplace(name, value->share()).second) {
    refuse_argument("initializer '" + std::string(name) + "' was added before");
  }
}

void AddExternalInitializers(OrtSessionOptions* options, const char* const* names, const OrtValue* const* values,
                             size_t count) {
  for (size_t i = 0; i < count; ++i) AddInitializer(options, names[i], values[i]);
}

void AddExternalInitializersFromFilesInMemory(OrtSessionOptions* options, const char* const* names,
                                              char* const* buffers, const size_t* sizes, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    require(names[i] && buffers[i], "a file of external data has a name and bytes");
    options->files[names[i]] = {buffers[i], sizes[i]};
  }
}

void SessionOptionsSetLoadCancellationFlag(OrtSessionOptions* options, bool cancel) {
  options->load_cancelled->store(cancel, std::memory_order_relaxed);
}

void SessionOptionsAppendExecutionProvider(OrtSessionOptions*, const char* name, const char* const*, const char* const*,
                                           size_t) {
  const std::string_view wanted = name ? name : "";
  if (wanted == "CPU" || wanted == "CPUExecutionProvider") return;
  refuse_argument("there is no execution provider '" + std::string(wanted) +
                  "': treadle runs on the processor (CPUExecutionProvider)");
}

// There is only one device to select.
void SessionOptionsSetEpSelectionPolicy(OrtSessionOptions*, OrtExecutionProviderDevicePolicy) {}

// --- options of runs

void CreateRunOptions(OrtRunOptions** out) {
  *out = new OrtRunOptions;
}

void ReleaseRunOptions(OrtRunOptions* options) {
  delete options;
}

void RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options, int level) {
  options->verbosity = level;
}
void RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options, int* out) {
  *out = options->verbosity;
}
void RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options, int level) {
  require_severity(level);
  options->severity = level;
}
void RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options, int* out) {
  *out = options->severity;
}
void RunOptionsSetRunTag(OrtRunOptions* options, const char* tag) {
  options->tag = tag ? tag : "";
}
void RunOptionsGetRunTag(const OrtRunOptions* options, const char** out) {
  *out = options->tag.c_str();
}

void RunOptionsSetTerminate(OrtRunOptions* options) {
  treadle_run_options_cancel(options->engine.get(), true);
}
void RunOptionsUnsetTerminate(OrtRunOptions* options) {
  treadle_run_options_cancel(options->engine.get(), false);
}

void AddRunConfigEntry(OrtRunOptions* options, const char* key, const char* value) {
  require(key && *key && value, "a configuration entry has a name and a value");
  options->entries.set(key, value);
  options->has_untold.store(true, std::memory_order_relaxed);
}

const char* GetRunConfigEntry(const OrtRunOptions* options, const char* key) {
  return GetKeyValue(&options->entries, key);
}

}  // namespace treadle::dropin::api
