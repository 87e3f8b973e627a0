#pragma once
// Models of ONNX text, for tests of what makes models smaller.

#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"
#include "wire/serialize.h"

namespace treadle::reduce {

inline constexpr const char* kHead = R"(<ir_version: 8, opset_import: ["" : 17]>)";

// The bytes of a model. `graph`: its text without the head.
inline std::string bytes_of(const std::string& graph, const std::string& head = kHead) {
  ir::TextStorage storage;
  const std::string text = head + graph;
  auto parsed = ir::parse_text<wire::ModelProto>(text, storage);
  EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
  return std::move(wire::serialize(*parsed).value());
}

}  // namespace treadle::reduce
