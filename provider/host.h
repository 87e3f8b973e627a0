// The onnxruntime that has opened this library: its functions, its statuses, and the abilities of its version.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "interface.h"
#include "treadle/treadle.h"

namespace treadle::provider {

constexpr uint32_t kOldestVersion = 23;  // version of onnxruntime's interface: the first with such libraries

struct Host {
  const OrtApi* api = nullptr;
  const OrtEpApi* ep_api = nullptr;
  int release = 0;  // 32 for "1.32.0"

  // Older versions lack the entries for these questions.
  bool tells_unknown_rank() const { return release >= 24; }
  bool lends_sizes() const { return release >= 27; }
  // Whether a fused node has the values that bodies capture as inputs.
  bool wires_captures() const { return release >= 27; }
  // Whether constants of a branch that onnxruntime moves out of its If point to freed memory.
  bool loses_constants_of_branches() const { return release >= 24 && release <= 27; }
  // Whether a body knows its node, and claims in different graphs of one model get different names.
  bool tells_graphs_apart() const { return release >= 24; }
};

// Throws unless `base` is recent enough.
void open_host(const OrtApiBase* base);
const Host& host();
inline const OrtApi& ort() {
  return *host().api;
}

struct Failure : std::runtime_error {
  Failure(OrtErrorCode number, const std::string& message) : std::runtime_error(message), code(number) {}
  OrtErrorCode code;
};

// Throw the error of a status of onnxruntime or treadle, if it is one; free the status.
void check(OrtStatus* status);
void check(treadle_status* status);

// A status for the exception that is being handled.
OrtStatus* status_of_exception(const OrtApi& api) noexcept;

template <class Action>
OrtStatus* guarded(Action action) noexcept {
  try {
    action();
    return nullptr;
  } catch (...) {
    return status_of_exception(ort());
  }
}

// A list that onnxruntime returns by a function for the count and a function that fills an array.
template <class Element, class Owner>
std::vector<Element> list_of(OrtStatus* (*count)(const Owner*, size_t*),
                             OrtStatus* (*fill)(const Owner*, Element*, size_t), const Owner* owner) {
  size_t size = 0;
  check(count(owner, &size));
  std::vector<Element> elements(size);
  check(fill(owner, elements.data(), size));
  return elements;
}

void warn(const OrtLogger* logger, const std::string& message);

}  // namespace treadle::provider
