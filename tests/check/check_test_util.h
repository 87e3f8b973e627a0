#pragma once
// The check's results for models written by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "check/checker.h"
#include "support/model_bytes.h"

namespace treadle {

inline Report check_bytes(std::string bytes, const CheckOptions& options = {}) {
  return check_model(wire::MappedFile::own(std::move(bytes)), options);
}

// The names of the problems, in order.
inline std::vector<std::string> codes(const Report& report) {
  std::vector<std::string> result;
  for (const Diagnostic& d : report.diagnostics) result.emplace_back(info(d.problem).name);
  return result;
}

// A model of nodes over a float input x[2] whose last node makes the output y.
inline std::string model_of(const std::vector<ProtoBytes>& nodes, const std::vector<ProtoBytes>& initializers = {}) {
  using namespace onnx_bytes;  // NOLINT(google-build-using-namespace)
  return model_bytes(graph({.nodes = nodes,
                            .inputs = {value("x", 1, {"2"})},
                            .outputs = {value("y", 1, {"2"})},
                            .initializers = initializers}));
}

}  // namespace treadle
