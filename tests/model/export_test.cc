#include "model/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/import.h"
#include "op/op_def.h"
#include "op/print.h"
#include "wire/mapped_file.h"

namespace treadle::model {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<ir::Graph> import(std::string bytes) {
  auto graph = import_model(wire::MappedFile::own(std::move(bytes)));
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? std::move(*graph) : nullptr;
}

// A loop that captures values, hides a name, returns a captured value twice, and returns a constant; a function;
// strings.
constexpr const char* kEverything = R"TEXT(<ir_version: 10, opset_import: ["" : 21, "my" : 1], producer_name: "p">
named (int64 n, float[T] x) => (float[T] y, float[?, T] all, string[2] words)
<float[1] half = {0.5}, string[2] words = {"a", "b"}> {
  [sum] t = my.twice (x)
  y, all, c, d = Loop (n, , t) <body = iteration (int64 i, bool go, float[T] t) => (bool go, float[T] next, float[T] x, float[T] x, float[1] half) {
    next = Mul (t, half)
  }>
}
<domain: "my", opset_import: ["" : 21]>
twice (v) => (w) {
  two = Constant <value = float[1] {2}> ()
  w = Mul (v, two)
}
)TEXT";

TEST(Export, ReadsBackAsTheSameGraph) {
  const auto first = import(kEverything);
  ASSERT_TRUE(first);
  const auto bytes = export_model(*first);
  ASSERT_TRUE(bytes.ok()) << bytes.error().to_string();
  const auto second = import(*bytes);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->metadata.producer_name, "p");
  EXPECT_EQ(second->metadata.graph_name, "named");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(second->top().outputs[i]->name, first->top().outputs[i]->name);
  std::vector<std::string> ops;
  ir::for_each_node(second->top(), [&](const ir::Node& node) { ops.push_back(node.op->name); });
  EXPECT_THAT(ops, testing::ElementsAre("Mul", "Loop", "Mul", "Identity", "Identity", "Identity"));
  const auto again = export_model(*second);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(print(*import(*again)), print(*second));
}

TEST(Export, VersionsThatNoOperatorSetHasTogetherAreAnError) {
  const auto graph = import(R"TEXT(<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
g (float[2] x) => (float y, float z) {
  y = my.old (x)
  z = ReduceSum <keepdims = 0> (x)
}
<domain: "my", opset_import: ["" : 12]>
old (v) => (w) { w = ReduceSum <keepdims = 0> (v) }
)TEXT");
  ASSERT_TRUE(graph);
  const auto bytes = export_model(*graph);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().code(), Code::kNotImplemented);
  EXPECT_THAT(bytes.error().message(), HasSubstr("several versions of ai.onnx"));
}

}  // namespace
}  // namespace treadle::model
