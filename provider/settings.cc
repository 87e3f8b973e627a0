#include "settings.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace treadle::provider {

namespace {

constexpr std::string_view kPrefixes[] = {"ep.treadleexecutionprovider.", "ep.treadle."};
constexpr char kOwnKeys[] = "claim, recurrent_weights, time_limit, iteration_limit, memory_limit";

EngineOptions no_options() {
  treadle_options* options = nullptr;
  check(treadle_options_create(&options));
  return {options, treadle_options_free};
}

template <class Number>
Number number_of(const std::string& key, const std::string& value) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < 0) {
    throw Failure(ORT_INVALID_ARGUMENT, std::string(kName) + ": option '" + key +
                                            "' is a number that is 0 or more, and '" + value + "' was given");
  }
  return number;
}

Claiming claiming_of(const std::string& value) {
  constexpr std::pair<std::string_view, Claiming> kValues[] = {
      {"cost", Claiming::kCost}, {"loops", Claiming::kLoops}, {"all", Claiming::kAll}};
  for (const auto& [name, claiming] : kValues) {
    if (value == name) return claiming;
  }
  throw Failure(ORT_INVALID_ARGUMENT,
                std::string(kName) + ": option 'claim' is 'cost', 'loops' or 'all', and '" + value + "' was given");
}

}  // namespace

Settings::Settings(const OrtSessionOptions* options) : engine(no_options()) {
  // Until the first run learns how many threads onnxruntime's session has (threads.h).
  check(treadle_options_set(engine.get(), "threads", "1"));
  // As onnxruntime does for loops that are not claimed.
  check(treadle_options_set(engine.get(), "loop_condition", "obeyed"));
  OrtKeyValuePairs* entries = nullptr;
  check(ort().GetSessionOptionsConfigEntries(options, &entries));
  const std::unique_ptr<OrtKeyValuePairs, void (*)(OrtKeyValuePairs*)> owned(entries, ort().ReleaseKeyValuePairs);
  const char *const *keys = nullptr, *const *values = nullptr;
  size_t count = 0;
  ort().GetKeyValuePairs(entries, &keys, &values, &count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = keys[i];
    wants_context |= key == "ep.context_enable" && std::string_view(values[i]) == "1";
    for (const std::string_view prefix : kPrefixes) {
      if (key.substr(0, prefix.size()) == prefix) set(std::string(key.substr(prefix.size())), values[i]);
    }
  }
}

void Settings::set(const std::string& key, const std::string& value) {
  if (key == "claim") {
    claiming = claiming_of(value);
  } else if (key == "recurrent_weights") {
    recurrent_weights = number_of<int64_t>(key, value);
  } else if (key == "time_limit") {
    time_limit = number_of<double>(key, value);
  } else if (key == "iteration_limit") {
    iteration_limit = number_of<int64_t>(key, value);
  } else if (key == "memory_limit") {
    memory_limit = number_of<int64_t>(key, value);
  } else {
    try {
      check(treadle_options_set(engine.get(), key.c_str(), value.c_str()));
      own_threads |= key == "threads";
    } catch (const Failure& failure) {
      throw Failure(failure.code,
                    std::string(kName) + ": " + failure.what() + "; the provider's own options are " + kOwnKeys);
    }
  }
}

RunOptions Settings::run_options() const {
  treadle_run_options* options = nullptr;
  if (limits_runs()) {
    check(treadle_run_options_create(&options));
    treadle_run_options_limit_time(options, time_limit);
    treadle_run_options_limit_iterations(options, iteration_limit);
    if (memory_limit > 0) treadle_run_options_limit_memory(options, static_cast<size_t>(memory_limit));
  }
  return {options, treadle_run_options_free};
}

}  // namespace treadle::provider
