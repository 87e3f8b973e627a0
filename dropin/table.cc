// The table of functions, and the two symbols by which programs reach it.

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "api.h"
#include "arguments.h"
#include "version.h"

namespace treadle::dropin {

namespace {

// Programs parse the numbers of the version; the text behind them is for people.
constexpr uint32_t kNewestVersion = table_version(kOnnxruntimeVersion);
// A program that was built for one of the next few versions also gets the table: mostly it calls functions that the
// table has.
constexpr uint32_t kNewestServed = kNewestVersion + 16;
const char* version_text() {
  static const std::string text = kOnnxruntimeVersion + std::string("+treadle.") + treadle_version();
  return text.c_str();
}

struct Description {
  const char* name;
  const char* parameters;  // its parameters' types, as text
};
constexpr Description kDescriptions[] = {
#define X(how, name, result, ...) {#name, #__VA_ARGS__},
#include "entries.inc"
#undef X
};
enum Position : size_t {
#define X(how, name, ...) kAt##name,
#include "entries.inc"
#undef X
};

[[gnu::cold]] OrtStatus* refuse_missing(size_t entry, const Missing& argument) {
  const Description& description = kDescriptions[entry];
  return make_status(ORT_INVALID_ARGUMENT,
                     std::string(description.name) + ": " + say_missing(description.parameters, argument));
}

// Arguments that may also be NULL in onnxruntime: names for a log, and handles that a caller need not take.
consteval unsigned optional_arguments(size_t entry) {
  constexpr std::pair<size_t, unsigned> kOptional[] = {
      {kAtCreateEnv, 2},
      {kAtCreateEnvWithCustomLogger, 4},
      {kAtCreateEnvWithGlobalThreadPools, 2},
      {kAtCreateEnvWithCustomLoggerAndGlobalThreadPools, 4},
      {kAtRunOptionsSetRunTag, 2},
      {kAtRegisterCustomOpsLibrary, 3},
      {kAtCreateSharedAllocator, 6},
  };
  for (const auto& [function, argument] : kOptional) {
    if (function == entry) return 1u << argument;
  }
  return 0;
}

// Wraps a function that throws.
template <size_t kEntry, auto kFunction>
struct Entry;
template <size_t kEntry, class Result, class... Parameters, Result (*kFunction)(Parameters...)>
struct Entry<kEntry, kFunction> {
  static OrtStatus* gives_status(Parameters... parameters) noexcept {
    try {
      const Missing missing = missing_argument<optional_arguments(kEntry)>(parameters...);
      if (missing) return refuse_missing(kEntry, missing);
      kFunction(parameters...);
      return nullptr;
    } catch (...) {
      return status_of_exception();
    }
  }
  // For a function that cannot report an error.
  static Result gives_nothing_on_failure(Parameters... parameters) noexcept {
    try {
      if (!missing_argument<optional_arguments(kEntry)>(parameters...)) return kFunction(parameters...);
    } catch (...) {
    }
    if constexpr (!std::is_void_v<Result>) return Result{};
  }
};

template <class Result, size_t kEntry, auto kFunction>
consteval auto entry() {
  if constexpr (std::is_same_v<Result, OrtStatus*>) {
    return &Entry<kEntry, kFunction>::gives_status;
  } else {
    return &Entry<kEntry, kFunction>::gives_nothing_on_failure;
  }
}

template <class Result>
Result refuse(const char* name) {
  if constexpr (std::is_same_v<Result, OrtStatus*>) {
    return make_status(ORT_NOT_IMPLEMENTED,
                       std::string("treadle does not implement ") + name + " of onnxruntime's C API");
  } else if constexpr (!std::is_void_v<Result>) {
    return Result{};
  }
}

constexpr OrtApi kKnown = {
#define TREADLE_ENTRY_ours(name, result, ...) .name = entry<result, kAt##name, &api::name>(),
#define TREADLE_ENTRY_gives(name, result, ...) .name = &api::name,
#define TREADLE_ENTRY_refused(name, result, ...) .name = +[](__VA_ARGS__) -> result { return refuse<result>(#name); },
#define X(how, ...) TREADLE_ENTRY_##how(__VA_ARGS__)
#include "entries.inc"
#undef X
#undef TREADLE_ENTRY_ours
#undef TREADLE_ENTRY_gives
#undef TREADLE_ENTRY_refused
};

// Takes the place of entries that later versions add behind those of kNewestVersion.
[[gnu::cold]] OrtStatus* refuse_unknown(size_t entry) {
  return make_status(ORT_NOT_IMPLEMENTED, "function " + std::to_string(entry) +
                                              " of onnxruntime's C API is not among those of version " +
                                              std::to_string(kNewestVersion) + ", the newest that treadle knows");
}
template <size_t kEntry>
OrtStatus* unknown_entry() {
  return refuse_unknown(kEntry);
}

using Unknown = OrtStatus* (*)();
constexpr size_t kUnknown = 512;  // three times as many as the last sixteen versions added

struct Table {
  OrtApi known;
  std::array<Unknown, kUnknown> unknown;
};
constexpr size_t kKnownEntries = sizeof(OrtApi) / sizeof(Unknown);

template <size_t... kEntries>
consteval std::array<Unknown, kUnknown> unknown_entries(std::index_sequence<kEntries...>) {
  return {&unknown_entry<kKnownEntries + kEntries>...};
}

constexpr Table kTable = {kKnown, unknown_entries(std::make_index_sequence<kUnknown>())};

const OrtApi* get_api(uint32_t version) {
  if (version >= 1 && version <= kNewestServed) return &kTable.known;
  std::fprintf(stderr, "treadle: version %u of onnxruntime's C API was asked for, expected 1 to %u\n", version,
               kNewestServed);
  return nullptr;
}

constexpr OrtApiBase kBase = {get_api, version_text};

}  // namespace

}  // namespace treadle::dropin

extern "C" {

const OrtApiBase* OrtGetApiBase() {
  return &treadle::dropin::kBase;
}

// Does nothing: the CPU is the only provider.
OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions*, int) {
  return nullptr;
}

}  // extern "C"
