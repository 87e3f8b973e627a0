#include "configuration.h"

#include <cstdlib>

#include "quiet_entries.h"

namespace treadle::dropin {

namespace {

constexpr const char* kModelOptions = "ort_config";  // key among a model's properties
constexpr const char* kReadModelOptions = "ORT_LOAD_CONFIG_FROM_MODEL";

void warn_of_entries(const Logger& logger, Owner owner, const OrtKeyValuePairs& entries) {
  for (size_t i = 0; i < entries.keys.size(); ++i) {
    const std::string &key = entries.keys[i], &value = entries.values[i];
    if (is_quiet(owner, key, value)) continue;
    logger.warn("the configuration entry '" + key + "' = '" + value + "' has no effect in treadle");
  }
}

}  // namespace

void warn_of_session_entries(const Logger& logger, const OrtKeyValuePairs& entries) {
  warn_of_entries(logger, Owner::kSession, entries);
}

void warn_of_run_entries(const Logger& logger, const OrtKeyValuePairs& entries) {
  warn_of_entries(logger, Owner::kRun, entries);
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
