#include "model/annotate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/import.h"
#include "op/op_def.h"
#include "support/model_bytes.h"

namespace treadle::model {
namespace {

using namespace onnx_bytes;

Result<std::string> annotated(const wire::MappedFile& file, const ir::Graph& graph) {
  TREADLE_ASSIGN(wire::Parsed<wire::ModelProto> model, wire::parse_model(file.bytes()));
  TREADLE_ASSIGN(const wire::Pieces pieces, annotate_types(model, file.bytes(), graph));
  return pieces.to_string();
}

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
  // The types that inference would have found.
  const Type type = (*imported)->top().inputs[1]->type;
  ir::for_each_node((*imported)->top(), [&](ir::Node& n) {
    for (ir::Value* output : n.outputs) output->type = type;
  });

  auto written = annotated(*file, **imported);
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  auto again = import_model(wire::MappedFile::own(std::move(*written)));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  const ir::Region& top = (*again)->top();
  EXPECT_EQ(top.outputs[0]->type.to_string(), "tensor(float)[N,3]");
  EXPECT_EQ(top.nodes[0]->op->name, "Relu") << "the function is still there to be inlined";
  EXPECT_EQ(top.nodes[0]->outputs[0]->type.to_string(), "tensor(float)[N,3]");
  const ir::Region& body = *top.nodes[2]->region("then_branch");
  for (const auto& n : body.nodes) EXPECT_EQ(n->outputs[0]->type.to_string(), "tensor(float)[N,3]") << n->name.view();
  EXPECT_EQ(top.nodes[1]->inputs[0]->constant.data<int64_t>()[1], 2);
}

TEST(AnnotateTypes, LeavesAllOtherBytes) {
  // Fields in an odd order, and some unknown fields.
  ProtoBytes g;
  g.message(12, value("y", 1, {"?"})).bytes(500, "unheard").message(11, value("x", 1, {"N"}));
  g.message(1, node("Neg", {"x"}, {"h"})).message(1, node("Neg", {"h"}, {"y"})).bytes(2, "g");
  const std::string graph_bytes = g.str();
  ProtoBytes m;
  m.bytes(600, "before").message(7, g).varint(1, 8).message(8, opset("", 17)).bytes(601, "behind");
  const std::string bytes = m.str();
  auto file = wire::MappedFile::own(bytes);
  auto imported = import_model(file);
  ASSERT_TRUE(imported.ok()) << imported.error().to_string();

  ir::Region& top = (*imported)->top();
  auto untouched = annotated(*file, **imported);
  ASSERT_TRUE(untouched.ok());
  EXPECT_EQ(*untouched, bytes) << "nothing is known that is not in the file";

  for (const auto& n : top.nodes) n->outputs[0]->type = top.inputs[0]->type;
  auto written = annotated(*file, **imported);
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  EXPECT_TRUE(written->starts_with(bytes.substr(0, bytes.find("before") + 6)));
  EXPECT_TRUE(written->ends_with(bytes.substr(bytes.find("behind") - 10)));
  const size_t kept = graph_bytes.find("unheard");
  EXPECT_NE(written->find(graph_bytes.substr(kept)), std::string::npos) << "what stands behind the output's type";
  auto again = import_model(wire::MappedFile::own(*written));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->top().nodes[0]->outputs[0]->type.to_string(), "tensor(float)[N]");
}

}  // namespace
}  // namespace treadle::model
