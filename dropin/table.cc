// The one table of functions, and the two symbols by which programs come to it.

#include <string_view>

#include "api.h"

namespace treadle::dropin {

namespace {

// Programs read the numbers of the version; what follows them is for people.
constexpr uint32_t kNewestVersion = 31;
const char* version_text() {
  static const std::string text = std::string("1.31.1+treadle.") + treadle_version();
  return text.c_str();
}

// An entry around a function that throws.
template <auto kFunction>
struct Entry;
template <class Result, class... Parameters, Result (*kFunction)(Parameters...)>
struct Entry<kFunction> {
  static OrtStatus* gives_status(Parameters... parameters) noexcept {
    try {
      kFunction(parameters...);
      return nullptr;
    } catch (...) {
      return status_of_exception();
    }
  }
  // One that has no way to say what failed.
  static Result gives_nothing_on_failure(Parameters... parameters) noexcept {
    try {
      return kFunction(parameters...);
    } catch (...) {
      if constexpr (!std::is_void_v<Result>) return Result{};
    }
  }
};

template <class Result, auto kFunction>
consteval auto entry() {
  if constexpr (std::is_same_v<Result, OrtStatus*>) {
    return &Entry<kFunction>::gives_status;
  } else {
    return &Entry<kFunction>::gives_nothing_on_failure;
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

constexpr OrtApi kTable = {
#define TREADLE_ENTRY_ours(name, result, ...) .name = entry<result, &api::name>(),
#define TREADLE_ENTRY_gives(name, result, ...) .name = &api::name,
#define TREADLE_ENTRY_refused(name, result, ...) .name = +[](__VA_ARGS__) -> result { return refuse<result>(#name); },
#define X(how, ...) TREADLE_ENTRY_##how(__VA_ARGS__)
#include "entries.inc"
#undef X
#undef TREADLE_ENTRY_ours
#undef TREADLE_ENTRY_gives
#undef TREADLE_ENTRY_refused
};

const OrtApi* get_api(uint32_t version) {
  return version >= 1 && version <= kNewestVersion ? &kTable : nullptr;
}

constexpr OrtApiBase kBase = {get_api, version_text};

}  // namespace

}  // namespace treadle::dropin

extern "C" {

const OrtApiBase* OrtGetApiBase() {
  return &treadle::dropin::kBase;
}

// Its results are those of the only provider that there is.
OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions*, int) {
  return nullptr;
}

}  // extern "C"
