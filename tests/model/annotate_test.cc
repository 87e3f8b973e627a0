#include "model/annotate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/import.h"
#include "op/op_def.h"
#include "support/model_bytes.h"

namespace treadle::model {
namespace {

using namespace onnx_bytes;

TEST(AnnotateTypes, WritesTypesOfValuesOutputsAndBodies) {
  const ProtoBytes branch = graph(
      {.nodes = {node("Relu", {"h"}, {"r"}), node("Relu", {"r"}, {"t"})}, .outputs = {ProtoBytes().bytes(1, "t")}});
  const ProtoBytes f =
      function({.name = "f", .inputs = {"a"}, .outputs = {"b"}, .nodes = {node("Relu", {"a"}, {"b"})}});
  const std::string bytes = model_bytes(
      graph({.nodes = {node("f", {"x"}, {"h"}, {}, "", "local"),
                       node("Constant", {}, {"k"}, {ints_attribute("value_ints", {1, 2})}),
                       node("Add", {"k", "k"}, {"kk"}),
                       node("If", {"c"}, {"y"},
                            {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)})},
             .inputs = {value("c", 9, {}), value("x", 1, {"N", "3"})},
             .outputs = {ProtoBytes().bytes(1, "y")}}),
      {f});
  auto file = wire::MappedFile::own(bytes);
  auto imported = import_model(file);
  ASSERT_TRUE(imported.ok()) << imported.error().to_string();
  // What inference would have found.
  const Type type = (*imported)->top().inputs[1]->type;
  ir::for_each_node((*imported)->top(), [&](ir::Node& n) {
    for (ir::Value* output : n.outputs) output->type = type;
  });

  auto written = annotate_types(*file, **imported);
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  auto again = import_model(wire::MappedFile::own(std::move(*written)));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  const ir::Region& top = (*again)->top();
  EXPECT_EQ(top.outputs[0]->type.to_string(), "tensor(float)[N,3]");
  EXPECT_EQ(top.nodes[0]->op->name, "Relu") << "the function is still there to be inlined";
  EXPECT_EQ(top.nodes[0]->outputs[0]->type.to_string(), "tensor(float)[N,3]");
  const ir::Region& body = *top.nodes[2]->region("then_branch");
  for (const auto& n : body.nodes) EXPECT_EQ(n->outputs[0]->type.to_string(), "tensor(float)[N,3]") << n->name;
  EXPECT_EQ(top.nodes[1]->inputs[0]->constant.data<int64_t>()[1], 2);
}

}  // namespace
}  // namespace treadle::model
