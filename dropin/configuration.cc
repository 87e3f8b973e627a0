#include "configuration.h"

#include <algorithm>
#include <cstdlib>

namespace treadle::dropin {

namespace {

// What a program may set to any value: treadle does it, or no result and no file shows whether it is done.
constexpr std::string_view kKept[] = {
    kFolder,
    "session.disable_prepacking",
    "session.dynamic_block_base",
    "session.force_spinning_stop",
    "session.inter_op.allow_spinning",
    "session.intra_op.allow_spinning",
    "session.load_model_format",
    "session.use_device_allocator_for_initializers",
    "session.use_env_allocators",
    "session.use_ort_model_bytes_directly",
    "session.use_ort_model_bytes_for_initializers",
};
constexpr std::string_view kSaveFormat = "session.save_model_format";
constexpr const char* kModelOptions = "ort_config";  // among a model's properties
constexpr const char* kReadModelOptions = "ORT_LOAD_CONFIG_FROM_MODEL";

bool asks_for_nothing(std::string_view value) {
  return value.empty() || value == "0";
}

bool is_kept(std::string_view key, std::string_view value) {
  return key.starts_with(kOwnPrefix) || asks_for_nothing(value) || std::ranges::find(kKept, key) != std::end(kKept) ||
         (key == kSaveFormat && value == "ONNX");
}

void warn_of(const Logger& logger, const std::string& key, const std::string& value) {
  logger.warn("the configuration entry '" + key + "' = '" + value + "' has no effect in treadle");
}

}  // namespace

void warn_of_session_entries(const Logger& logger, const OrtKeyValuePairs& entries) {
  for (size_t i = 0; i < entries.keys.size(); ++i) {
    if (!is_kept(entries.keys[i], entries.values[i])) warn_of(logger, entries.keys[i], entries.values[i]);
  }
}

void warn_of_run_entries(const Logger& logger, const OrtKeyValuePairs& entries) {
  for (size_t i = 0; i < entries.keys.size(); ++i) {
    if (!asks_for_nothing(entries.values[i])) warn_of(logger, entries.keys[i], entries.values[i]);
  }
}

void warn_of_model_options(const Logger& logger, const treadle_session* session) {
  const char* const asked = std::getenv(kReadModelOptions);
  if (!asked || std::string_view(asked) != "1") return;
  for (size_t i = 0; i < treadle_session_property_count(session); ++i) {
    if (std::string_view(treadle_session_property_key(session, i)) != kModelOptions) continue;
    logger.warn(std::string(kReadModelOptions) + " has no effect in treadle: the options that the model says ('" +
                kModelOptions + "') are not read");
  }
}

}  // namespace treadle::dropin
