#include "model/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/newest_versions.h"
#include "op/registry.h"
#include "support/model_bytes.h"
#include "support/mutations.h"
#include "support/shared_models.h"
#include "support/temp_dir.h"

namespace treadle::model {
namespace {

using namespace onnx_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<std::unique_ptr<ir::Graph>> import(std::string bytes, const ImportOptions& options = {}) {
  auto graph = import_model(wire::MappedFile::own(std::move(bytes)), options);
  if (graph.ok()) {
    const Status verified = ir::verify(**graph);
    EXPECT_TRUE(verified.ok()) << verified.to_string();
  }
  return graph;
}

std::unique_ptr<ir::Graph> import_ok(std::string bytes, const ImportOptions& options = {}) {
  auto graph = import(std::move(bytes), options);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? std::move(*graph) : nullptr;
}

void expect_error(std::string bytes, Code code, std::string_view text, const ImportOptions& options = {}) {
  auto graph = import(std::move(bytes), options);
  ASSERT_FALSE(graph.ok()) << "expected: " << text;
  EXPECT_EQ(graph.error().code(), code) << graph.error().to_string();
  EXPECT_THAT(graph.error().to_string(), HasSubstr(std::string(text)));
}

std::vector<std::string> ops(const ir::Region& region) {
  std::vector<std::string> names;
  ir::for_each_node(region, [&](const ir::Node& n) { names.push_back(n.op->name); });
  return names;
}

std::vector<std::string> paths(const ir::Region& region) {
  std::vector<std::string> names;
  ir::for_each_node(region, [&](const ir::Node& n) { names.push_back(n.name); });
  return names;
}

// y = x + w, with w = [1, 2]
ProtoBytes add_graph() {
  return graph({.nodes = {node("Add", {"x", "w"}, {"y"}, {}, "add")},
                .inputs = {value("x")},
                .outputs = {value("y")},
                .initializers = {tensor("w", 1, {2}, raw_bytes<float>({1, 2}))}});
}

// ---- Graphs and names

TEST(Import, ConnectsNodesByPointer) {
  auto g = import_ok(model_bytes(add_graph()));
  ASSERT_NE(g, nullptr);
  const ir::Region& top = g->top();
  ASSERT_EQ(top.nodes.size(), 1u);
  const ir::Node& add = *top.nodes[0];
  EXPECT_EQ(add.name, "/add");
  EXPECT_EQ(add.op->name, "Add");
  EXPECT_EQ(add.version->since, 14);
  EXPECT_EQ(add.inputs[0], top.inputs[0]);
  ASSERT_TRUE(add.inputs[1]->is_constant());
  EXPECT_EQ(add.inputs[1]->constant.data<float>()[1], 2);
  EXPECT_EQ(top.outputs[0], add.outputs[0]);
  EXPECT_EQ(top.outputs[0]->type.to_string(), "tensor(float)[N]");
}

TEST(Import, KeepsMetadata) {
  auto g = import_ok(model_bytes(add_graph()));
  ASSERT_NE(g, nullptr);
  EXPECT_EQ(g->metadata.producer_name, "hand");
  EXPECT_EQ(g->metadata.ir_version, 8);
  EXPECT_EQ(g->metadata.graph_name, "g");
  EXPECT_THAT(g->metadata.properties, ElementsAre(std::pair<std::string, std::string>("key", "value")));
}

TEST(Import, KeepsTheFileAliveForItsWeights) {
  auto g = import_ok(model_bytes(add_graph()));
  ASSERT_NE(g, nullptr);
  const Tensor w = g->top().nodes[0]->inputs[1]->constant;
  g.reset();
  EXPECT_EQ(w.data<float>()[0], 1);
}

TEST(Import, NodesWithoutNamesGetPathsAndEqualNamesDiffer) {
  auto g = import_ok(
      model_bytes(graph({.nodes = {node("Relu", {"x"}, {"a"}), node("Relu", {"a"}, {"b"}, {}, "same"),
                                   node("Relu", {"b"}, {"c"}, {}, "same"), node("Relu", {"c"}, {"y"}, {}, "/enc/relu")},
                         .inputs = {value("x")},
                         .outputs = {value("y")}})));
  ASSERT_NE(g, nullptr);
  EXPECT_THAT(paths(g->top()), ElementsAre("/Relu_0", "/same", "/same#2", "/enc/relu"));
}

TEST(Import, ConstantsAreNoNodes) {
  auto g = import_ok(model_bytes(graph(
      {.nodes = {node("Constant", {}, {"c"}, {float_attribute("value_float", 2)}),
                 node("Constant", {}, {"d"}, {ints_attribute("value_ints", {3, 4})}), node("Add", {"x", "c"}, {"y"})},
       .inputs = {value("x")},
       .outputs = {value("y"), value("d", 7)}})));
  ASSERT_NE(g, nullptr);
  EXPECT_THAT(ops(g->top()), ElementsAre("Add"));
  EXPECT_EQ(g->top().nodes[0]->inputs[1]->constant.rank(), 0);
  EXPECT_EQ(g->top().outputs[1]->constant.data<int64_t>()[1], 4);
}

TEST(Import, InputsWithInitializersHaveDefaults) {
  for (const int64_t ir_version : {3, 8}) {
    auto g = import_ok(model_bytes(graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                          .inputs = {value("w", 1, {"2"}), value("x")},
                                          .outputs = {value("y")},
                                          .initializers = {tensor("w", 1, {2}, raw_bytes<float>({1, 2}))}}),
                                   {}, {opset("", 17)}, ir_version));
    ASSERT_NE(g, nullptr);
    ASSERT_EQ(g->top().inputs.size(), 2u);
    ASSERT_EQ(g->input_defaults.size(), 2u);
    EXPECT_EQ(g->input_defaults[0].data<float>()[1], 2);
    EXPECT_FALSE(g->input_defaults[1].defined());
    EXPECT_FALSE(g->top().inputs[0]->is_constant());

    fix_input_defaults(*g);
    ASSERT_EQ(g->top().inputs.size(), 1u);
    EXPECT_EQ(g->top().inputs[0]->name, "x");
    EXPECT_TRUE(g->top().nodes[0]->inputs[1]->is_constant());
    EXPECT_TRUE(ir::verify(*g).ok());
  }
}

TEST(Import, SparseInitializersAreWrittenOut) {
  const ProtoBytes sparse = ProtoBytes()
                                .message(1, tensor("w", 1, {2}, raw_bytes<float>({5, 7})))
                                .message(2, tensor("", 7, {2, 2}, raw_bytes<int64_t>({0, 1, 1, 2})))
                                .varint(3, 2)
                                .varint(3, 3);
  auto g = import_ok(model_bytes(graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                        .inputs = {value("x")},
                                        .outputs = {value("y")},
                                        .sparse_initializers = {sparse}})));
  ASSERT_NE(g, nullptr);
  const Tensor& w = g->top().nodes[0]->inputs[1]->constant;
  EXPECT_THAT(w.span<float>(), ElementsAre(0, 5, 0, 0, 0, 7));
}

TEST(Import, FillsInDefaultsOfAttributes) {
  auto g = import_ok(
      model_bytes(graph({.nodes = {node("Softmax", {"x"}, {"y"})}, .inputs = {value("x")}, .outputs = {value("y")}})));
  ASSERT_NE(g, nullptr);
  EXPECT_EQ(g->top().nodes[0]->attributes.get_int("axis", 99), -1);
}

// ---- Bodies

ProtoBytes if_node(const ProtoBytes& then_branch, const ProtoBytes& else_branch, std::string_view name = "choose") {
  return node("If", {"c"}, {"y"},
              {graph_attribute("then_branch", then_branch), graph_attribute("else_branch", else_branch)}, name);
}

TEST(ImportBodies, CaptureOuterValues) {
  const ProtoBytes inner_then = graph({.nodes = {node("Add", {"x", "w"}, {"t"}, {}, "deep")}, .outputs = {value("t")}});
  const ProtoBytes inner_else = graph({.outputs = {value("x")}});
  const ProtoBytes then_branch =
      graph({.nodes = {node("If", {"c"}, {"u"},
                            {graph_attribute("then_branch", inner_then), graph_attribute("else_branch", inner_else)},
                            "inner")},
             .outputs = {value("u")}});
  const ProtoBytes else_branch = graph({.nodes = {node("Relu", {"x"}, {"e"})}, .outputs = {value("e")}});
  auto g = import_ok(model_bytes(graph({.nodes = {if_node(then_branch, else_branch)},
                                        .inputs = {value("c", 9, {}), value("x")},
                                        .outputs = {value("y")},
                                        .initializers = {tensor("w", 1, {2}, raw_bytes<float>({1, 2}))}})));
  ASSERT_NE(g, nullptr);
  const ir::Node& outer = *g->top().nodes[0];
  const ir::Region* then_region = outer.region("then_branch");
  ASSERT_NE(then_region, nullptr);
  const ir::Node& inner = *then_region->nodes[0];
  const ir::Node& deep = *inner.region("then_branch")->nodes[0];
  EXPECT_EQ(deep.name, "/choose:then_branch/inner:then_branch/deep");
  EXPECT_EQ(deep.inputs[0], g->top().inputs[1]);
  EXPECT_TRUE(deep.inputs[1]->is_constant());
  EXPECT_EQ(inner.region("else_branch")->outputs[0], g->top().inputs[1]) << "a captured value may be a body's output";
  EXPECT_THAT(ir::captures(*then_region), ElementsAre(g->top().inputs[0], g->top().inputs[1]));
}

TEST(ImportBodies, InnerNamesHideOuterOnes) {
  const ProtoBytes then_branch =
      graph({.nodes = {node("Relu", {"x"}, {"z"}), node("Relu", {"z"}, {"x"}), node("Relu", {"x"}, {"out"})},
             .outputs = {value("out")}});
  const ProtoBytes else_branch = graph({.outputs = {value("x")}});
  std::vector<std::string> warnings;
  ImportOptions options;
  options.warnings = &warnings;
  auto g = import_ok(model_bytes(graph({.nodes = {if_node(then_branch, else_branch)},
                                        .inputs = {value("c", 9, {}), value("x")},
                                        .outputs = {value("y")}})),
                     options);
  ASSERT_NE(g, nullptr);
  const ir::Region& body = *g->top().nodes[0]->region("then_branch");
  EXPECT_EQ(body.nodes[0]->inputs[0], g->top().inputs[1]);
  EXPECT_EQ(body.nodes[2]->inputs[0], body.nodes[1]->outputs[0]);
  EXPECT_THAT(warnings, IsEmpty()) << "the checker warns of hidden names";
}

TEST(ImportBodies, NamesOfABodyAreNotSeenOutside) {
  const ProtoBytes branch = graph({.nodes = {node("Relu", {"x"}, {"t"})}, .outputs = {value("t")}});
  expect_error(model_bytes(graph({.nodes = {if_node(branch, branch), node("Relu", {"t"}, {"z"}, {}, "late")},
                                  .inputs = {value("c", 9, {}), value("x")},
                                  .outputs = {value("z")}})),
               Code::kInvalidModel, "/late (Relu-14): nothing defines the input \"t\"");
}

TEST(ImportBodies, InitializersOfOldBodiesAreNoInputs) {
  const ProtoBytes branch = graph({.nodes = {node("Add", {"x", "k"}, {"t"})},
                                   .inputs = {value("k", 1, {"1"})},
                                   .outputs = {value("t")},
                                   .initializers = {tensor("k", 1, {1}, raw_bytes<float>({3}))}});
  auto g = import_ok(model_bytes(
      graph({.nodes = {if_node(branch, branch)}, .inputs = {value("c", 9, {}), value("x")}, .outputs = {value("y")}}),
      {}, {opset("", 11)}, 3));
  ASSERT_NE(g, nullptr);
  const ir::Region& body = *g->top().nodes[0]->region("then_branch");
  EXPECT_TRUE(body.inputs.empty());
  EXPECT_TRUE(body.nodes[0]->inputs[1]->is_constant());
}

// ---- Refused models

TEST(ImportErrors, NameOperatorDomainAndVersion) {
  const auto with = [](const ProtoBytes& n, std::vector<ProtoBytes> opsets = {opset("", 17)}) {
    return model_bytes(graph({.nodes = {n}, .inputs = {value("x")}, .outputs = {value("y")}}), {}, opsets);
  };
  expect_error(with(node("Frobnicate", {"x"}, {"y"}, {}, "f")), Code::kNotImplemented,
               "/f (Frobnicate): operator Frobnicate of domain \"ai.onnx\" (operator set 17) is not implemented");
  expect_error(with(node("Foo", {"x"}, {"y"}, {}, "f", "com.acme"), {opset("", 17), opset("com.acme", 3)}),
               Code::kNotImplemented, "operator Foo of domain \"com.acme\" (operator set 3) is not implemented");
  expect_error(with(node("Foo", {"x"}, {"y"}, {}, "f", "com.acme")), Code::kInvalidModel,
               "imports no operator set of domain \"com.acme\"");
  expect_error(with(node("Relu", {"x"}, {"y"}), {opset("", kNewestOnnxOpset + 1)}), Code::kNotImplemented,
               "operator set " + std::to_string(kNewestOnnxOpset + 1));
  expect_error(with(node("Relu", {"x"}, {"y"}), {opset("", 0)}), Code::kInvalidModel, "1 or more");
  expect_error(with(node("Relu", {"x"}, {"y"}), {opset("", 12), opset("ai.onnx", 13)}), Code::kInvalidModel,
               "imported in versions 12 and 13");
  expect_error(with(node("Relu", {"x"}, {"y"}), {}), Code::kInvalidModel, "imports no operator set");
}

TEST(ImportErrors, DeprecatedVersionsAreRefused) {
  for (const OpDef* op : all_ops()) {
    if (!op->newest().deprecated) continue;
    const ProtoBytes n = node(op->name, {"x"}, {"y"}, {}, "", op->domain);
    expect_error(model_bytes(graph({.nodes = {n}, .inputs = {value("x")}, .outputs = {value("y")}}), {},
                             {opset(op->domain, op->newest().since)}),
                 Code::kNotImplemented, "deprecated");
  }
}

TEST(ImportErrors, OneDomainHasTwoNames) {
  EXPECT_NE(import_ok(model_bytes(graph({.nodes = {node("Relu", {"x"}, {"y"}, {}, "", "ai.onnx")},
                                         .inputs = {value("x")},
                                         .outputs = {value("y")}}))),
            nullptr);
}

TEST(ImportErrors, BrokenGraphs) {
  const auto with = [](std::vector<ProtoBytes> nodes, std::vector<ProtoBytes> outputs = {value("y")}) {
    return model_bytes(graph({.nodes = std::move(nodes), .inputs = {value("x")}, .outputs = std::move(outputs)}));
  };
  const auto unsorted = with({node("Relu", {"later"}, {"y"}, {}, "first"), node("Relu", {"x"}, {"later"})});
  ASSERT_NE(import_ok(unsorted), nullptr) << "nodes are sorted";
  ImportOptions as_onnx;
  as_onnx.as_onnx = true;
  expect_error(unsorted, Code::kInvalidModel, "/first (Relu-14): \"later\" is used before the node that defines it",
               as_onnx);
  expect_error(with({node("Add", {"x", "y"}, {"y"}, {}, "self")}), Code::kInvalidModel, "in a circle");
  expect_error(with({node("Relu", {"none"}, {"y"})}), Code::kInvalidModel, "nothing defines the input \"none\"");
  expect_error(with({node("Relu", {"x"}, {"y"}), node("Relu", {"x"}, {"y"}, {}, "again")}), Code::kInvalidModel,
               "\"y\" is defined twice");
  expect_error(with({node("Relu", {"x"}, {"x"})}), Code::kInvalidModel, "\"x\" is defined twice");
  expect_error(with({node("Relu", {"x"}, {"y"})}, {value("z")}), Code::kInvalidModel, "output \"z\"");
  expect_error(with({node("Relu", {"x", "x"}, {"y"})}), Code::kInvalidModel, "at most 1 inputs, found 2");
  expect_error(with({node("Add", {"x"}, {"y"})}), Code::kInvalidModel, "at least 2 inputs, found 1");
  expect_error(with({node("Add", {"x", ""}, {"y"})}), Code::kInvalidModel, "input 1 (B) is required");
  expect_error(with({node("Relu", {"x"}, {"y", "z"})}), Code::kInvalidModel, "at most 1 outputs");
  expect_error(with({node("If", {"x"}, {"y"})}), Code::kInvalidModel, "is required, but missing");
  expect_error(with({node("Relu", {"x"}, {"y"}, {int_attribute("alpha", 1)})}), Code::kInvalidModel,
               "no attribute \"alpha\"");
  expect_error(with({node("Softmax", {"x"}, {"y"}, {float_attribute("axis", 1)})}), Code::kInvalidModel,
               "expected int as attribute \"axis\", found float");
  expect_error(with({node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 1), int_attribute("axis", 1)})}),
               Code::kInvalidModel, "given twice");
  expect_error(with({node("Softmax", {"x"}, {"y"}, {reference_attribute("axis", "p", 2)})}), Code::kInvalidModel,
               "is in no function");
  EXPECT_NE(import_ok(with({node("Relu", {"x"}, {"y"}, {string_attribute("__note", "kept by a tool")})})), nullptr);
}

TEST(ImportErrors, BrokenFilesAndVersions) {
  expect_error("", Code::kInvalidFile, "model: expected an ONNX model, found an empty file");
  expect_error(ProtoBytes().varint(1, 8).str(), Code::kInvalidModel, "without a graph");
  expect_error(model_bytes(add_graph(), {}, {opset("", 17)}, 15), Code::kNotImplemented, "IR version 15");
  expect_error(model_bytes(add_graph(), {}, {opset("", 17)}, 0), Code::kInvalidModel, "IR version");
  TempDir dir;
  auto graph = import_model(wire::MappedFile::open(dir.write("broken.onnx", "\x3a\x7f")).value());
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().place(), HasSubstr("broken.onnx: byte 0"));
}

TEST(ImportErrors, InitializersSayWhichOne) {
  const auto with = [](const ProtoBytes& initializer) {
    return model_bytes(graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                              .inputs = {value("x")},
                              .outputs = {value("y")},
                              .initializers = {initializer}}));
  };
  expect_error(with(tensor("w", 1, {3}, raw_bytes<float>({1, 2}))), Code::kInvalidModel,
               "initializer \"w\": expected 12 bytes for float[3], found 8");
  expect_error(with(tensor("w", 1, {int64_t{1} << 40, int64_t{1} << 40}, "")), Code::kLimit, "initializer \"w\"");
  expect_error(with(tensor("w", 1, {int64_t{1} << 40}, "")), Code::kInvalidModel, "found 0");
  expect_error(with(tensor("w", 1, {-1}, "")), Code::kInvalidModel, "sizes of 0 or more, found -1");
  expect_error(with(tensor("w", 99, {1}, "")), Code::kInvalidModel, "found number 99");
  expect_error(with(tensor("", 1, {1}, raw_bytes<float>({1}))), Code::kInvalidModel, "has no name");
}

// ---- Functions

ProtoBytes call_graph(const std::vector<ProtoBytes>& nodes) {
  return graph({.nodes = nodes, .inputs = {value("x")}, .outputs = {value("y")}});
}

TEST(ImportFunctions, AreInlined) {
  const ProtoBytes f = function({.name = "f",
                                 .inputs = {"a", "b"},
                                 .outputs = {"r"},
                                 .nodes = {node("Add", {"a", "b"}, {"t"}, {}, "sum"), node("Relu", {"t"}, {"r"})}});
  auto g = import_ok(model_bytes(
      call_graph({node("f", {"x", "x"}, {"h"}, {}, "one", "local"), node("f", {"h", "x"}, {"y"}, {}, "two", "local")}),
      {f}));
  ASSERT_NE(g, nullptr);
  EXPECT_THAT(paths(g->top()), ElementsAre("/one/sum", "/one/Relu_1", "/two/sum", "/two/Relu_1"));
  EXPECT_EQ(g->top().outputs[0]->name, "y");
  EXPECT_EQ(g->top().outputs[0]->type.to_string(), "tensor(float)[N]") << "the caller's declaration";
  EXPECT_EQ(g->top().nodes[2]->inputs[0], g->top().nodes[1]->outputs[0]);
  EXPECT_EQ(g->top().nodes[0]->outputs[0]->name, "/one/t");
}

TEST(ImportFunctions, UseTheirOwnOperatorSets) {
  const ProtoBytes f = function({.name = "f",
                                 .inputs = {"a"},
                                 .outputs = {"r"},
                                 .nodes = {node("Relu", {"a"}, {"r"})},
                                 .opsets = {opset("", 6)}});
  auto g =
      import_ok(model_bytes(call_graph({node("f", {"x"}, {"h"}, {}, "", "local"), node("Relu", {"h"}, {"y"})}), {f}));
  ASSERT_NE(g, nullptr);
  EXPECT_EQ(g->top().nodes[0]->version->since, 6);
  EXPECT_EQ(g->top().nodes[1]->version->since, 14);
}

TEST(ImportFunctions, BindAttributesAlsoInNestedBodies) {
  const ProtoBytes branch =
      graph({.nodes = {node("Softmax", {"a"}, {"s"}, {reference_attribute("axis", "p", 2)})}, .outputs = {value("s")}});
  const ProtoBytes f =
      function({.name = "f",
                .inputs = {"c", "a"},
                .outputs = {"r"},
                .nodes = {node("If", {"c"}, {"r"},
                               {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)})},
                .attribute_defaults = {int_attribute("p", 3)}});
  const ProtoBytes outer =
      function({.name = "outer",
                .inputs = {"c", "a"},
                .outputs = {"r"},
                .nodes = {node("f", {"c", "a"}, {"r"}, {reference_attribute("p", "q", 2)}, "", "local")},
                .attributes = {"q"}});
  auto g =
      import_ok(model_bytes(graph({.nodes = {node("f", {"c", "x"}, {"a"}, {}, "", "local"),
                                             node("f", {"c", "x"}, {"b"}, {int_attribute("p", 1)}, "", "local"),
                                             node("outer", {"c", "x"}, {"d"}, {int_attribute("q", 2)}, "", "local"),
                                             node("outer", {"c", "x"}, {"e"}, {}, "", "local")},
                                   .inputs = {value("c", 9, {}), value("x")},
                                   .outputs = {value("a"), value("b"), value("d"), value("e")}}),
                            {f, outer}));
  ASSERT_NE(g, nullptr);
  std::vector<int64_t> axes;
  ir::for_each_node(g->top(), [&](const ir::Node& n) {
    if (n.op->name == "Softmax" && n.parent->attribute == "then_branch") axes.push_back(n.attributes.get_int("axis"));
  });
  EXPECT_THAT(axes, ElementsAre(3, 1, 2, 3)) << "default, given, through a reference, reference to nothing";
}

TEST(ImportFunctions, GraphsAsArgumentsBelongToTheCaller) {
  const ProtoBytes f = function(
      {.name = "f",
       .inputs = {"c", "x"},
       .outputs = {"r"},
       .nodes = {node("Relu", {"x"}, {"hidden"}),
                 node("If", {"c"}, {"r"},
                      {reference_attribute("then_branch", "g", 5), reference_attribute("else_branch", "g", 5)})},
       .attributes = {"g"},
       .opsets = {opset("", 11)}});
  const ProtoBytes argument = graph({.nodes = {node("Add", {"x", "w"}, {"s"})}, .outputs = {value("s")}});
  auto g = import_ok(
      model_bytes(graph({.nodes = {node("f", {"c", "z"}, {"y"}, {graph_attribute("g", argument)}, "", "local")},
                         .inputs = {value("c", 9, {}), value("x"), value("z"), value("w")},
                         .outputs = {value("y")}}),
                  {f}));
  ASSERT_NE(g, nullptr);
  const ir::Node& add = *g->top().nodes[1]->region("then_branch")->nodes[0];
  EXPECT_EQ(add.inputs[0], g->top().inputs[1]) << "the caller's x, not the function's";
  EXPECT_EQ(add.inputs[1], g->top().inputs[3]);
  EXPECT_EQ(add.version->since, 14) << "the caller's operator set";
}

TEST(ImportFunctions, ArgumentsMayBeLeftOutAndPassedThrough) {
  const ProtoBytes f = function({.name = "f",
                                 .inputs = {"a", "low", "high"},
                                 .outputs = {"r", "same", "twice"},
                                 .nodes = {node("Clip", {"a", "low", "high"}, {"r"})}});
  const ProtoBytes g_function = function({.name = "g",
                                          .inputs = {"a"},
                                          .outputs = {"a", "b", "c"},
                                          .nodes = {node("Relu", {"a"}, {"b"}), node("Identity", {"b"}, {"c"})}});
  auto g = import_ok(model_bytes(graph({.nodes = {node("f", {"x", "", "hi"}, {"y"}, {}, "", "local"),
                                                  node("g", {"x"}, {"p", "q", ""}, {}, "call", "local")},
                                        .inputs = {value("x"), value("hi", 1, {})},
                                        .outputs = {value("y"), value("p"), value("q")}}),
                                 {f, g_function}));
  ASSERT_NE(g, nullptr);
  const ir::Node& clip = *g->top().nodes[0];
  EXPECT_EQ(clip.inputs[1], nullptr);
  EXPECT_EQ(clip.inputs[2], g->top().inputs[1]);
  EXPECT_EQ(g->top().outputs[1]->name, "p");
  EXPECT_EQ(g->top().outputs[1]->producer->op->name, "Identity");
  EXPECT_EQ(g->top().inputs[0]->name, "x");
  EXPECT_EQ(g->top().outputs[2]->name, "q");
}

TEST(ImportFunctions, AreChosenByOverload) {
  const auto overloaded = [](std::string_view overload, std::string_view op) {
    ProtoBytes f = function({.name = "f", .inputs = {"a"}, .outputs = {"r"}, .nodes = {node(op, {"a"}, {"r"})}});
    return f.bytes(13, overload);
  };
  ProtoBytes call = node("f", {"x"}, {"y"}, {}, "", "local");
  call.bytes(8, "second");
  auto g = import_ok(model_bytes(call_graph({call}), {overloaded("", "Relu"), overloaded("second", "Identity")}));
  ASSERT_NE(g, nullptr);
  EXPECT_THAT(ops(g->top()), ElementsAre("Identity"));
}

TEST(ImportFunctions, RecursionIsAnErrorThatNamesTheCycle) {
  const auto calls = [](std::string_view name, std::string_view callee) {
    return function(
        {.name = name, .inputs = {"a"}, .outputs = {"r"}, .nodes = {node(callee, {"a"}, {"r"}, {}, "", "local")}});
  };
  expect_error(model_bytes(call_graph({node("f", {"x"}, {"y"}, {}, "", "local")}),
                           {calls("f", "g"), calls("g", "h"), calls("h", "g")}),
               Code::kInvalidModel, "functions must not be recursive: local.g -> local.h -> local.g");
  const ProtoBytes body = graph({.nodes = {node("s", {"a"}, {"r"}, {}, "", "local")}, .outputs = {value("r")}});
  const ProtoBytes self =
      function({.name = "s",
                .inputs = {"a"},
                .outputs = {"r"},
                .nodes = {node("If", {"a"}, {"r"},
                               {graph_attribute("then_branch", body), graph_attribute("else_branch", body)})}});
  expect_error(model_bytes(call_graph({node("s", {"x"}, {"y"}, {}, "", "local")}), {self}), Code::kInvalidModel,
               "recursive: local.s -> local.s");
}

TEST(ImportFunctions, GrowthIsLimited) {
  std::vector<std::string> names;
  for (int i = 0; i < 31; ++i) names.push_back("f" + std::to_string(i));
  std::vector<ProtoBytes> functions;
  for (size_t i = 0; i < 30; ++i) {
    functions.push_back(function({.name = names[i],
                                  .inputs = {"a"},
                                  .outputs = {"r"},
                                  .nodes = {node(names[i + 1], {"a"}, {"t"}, {}, "", "local"),
                                            node(names[i + 1], {"t"}, {"r"}, {}, "", "local")}}));
  }
  functions.push_back(
      function({.name = names[30], .inputs = {"a"}, .outputs = {"r"}, .nodes = {node("Relu", {"a"}, {"r"})}}));
  ImportOptions options;
  options.max_inlined_nodes = 10'000;
  expect_error(model_bytes(call_graph({node("f0", {"x"}, {"y"}, {}, "", "local")}), functions), Code::kLimit,
               "more than 10000 nodes", options);
  // The limit is noticed before anything is inlined, and so is the place.
  expect_error(model_bytes(call_graph({node("f0", {"x"}, {"y"}, {}, "", "local")}), functions), Code::kLimit,
               "/f0_0 (local.f0): inlining", options);
}

TEST(ImportFunctions, ListsAndBodiesOfArgumentsCountToo) {
  const ProtoBytes body =
      graph({.nodes = std::vector<ProtoBytes>(1, node("Relu", {"x"}, {"r"})), .outputs = {value("r")}});
  const ProtoBytes f = function(
      {.name = "f",
       .inputs = {"c"},
       .outputs = {"r"},
       .nodes = {node("If", {"c"}, {"r"},
                      {reference_attribute("then_branch", "g", 5), reference_attribute("else_branch", "g", 5)})},
       .attributes = {"g"}});
  const std::string bytes =
      model_bytes(graph({.nodes = {node("f", {"c"}, {"y"}, {graph_attribute("g", body)}, "", "local")},
                         .inputs = {value("c", 9, {}), value("x")},
                         .outputs = {value("y")}}),
                  {f});
  ImportOptions options;
  options.max_inlined_nodes = 4;  // the call, If, and Relu twice
  EXPECT_NE(import_ok(bytes, options), nullptr);
  options.max_inlined_nodes = 3;
  expect_error(bytes, Code::kLimit, "more than 3 nodes", options);
}

TEST(Import, ManyNodesOfOneLongNameStaySmallAndApart) {
  const std::string name(100'000, 'n');
  std::vector<std::string> outputs;
  for (int i = 0; i < 50; ++i) outputs.push_back(std::to_string(i));
  std::vector<ProtoBytes> nodes;
  for (const std::string& output : outputs) nodes.push_back(node("Relu", {"x"}, {output}, {}, name));
  auto g = import_ok(model_bytes(graph({.nodes = nodes, .inputs = {value("x")}, .outputs = {value("7")}})));
  ASSERT_NE(g, nullptr);
  std::vector<std::string> all = paths(g->top());
  for (const std::string& path : all) EXPECT_LE(path.size(), 1000u);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

TEST(ImportFunctions, DepthIsLimited) {
  std::vector<std::string> names;
  for (int i = 0; i < 1001; ++i) names.push_back("f" + std::to_string(i));
  std::vector<ProtoBytes> functions;
  for (size_t i = 0; i < 1000; ++i) {
    functions.push_back(function({.name = names[i],
                                  .inputs = {"a"},
                                  .outputs = {"r"},
                                  .nodes = {node(names[i + 1], {"a"}, {"r"}, {}, "", "local")}}));
  }
  expect_error(model_bytes(call_graph({node("f0", {"x"}, {"y"}, {}, "", "local")}), functions), Code::kLimit, "deep");
}

TEST(ImportFunctions, BrokenCalls) {
  const ProtoBytes f =
      function({.name = "f", .inputs = {"a"}, .outputs = {"r"}, .nodes = {node("Relu", {"a"}, {"other"})}});
  expect_error(model_bytes(call_graph({node("f", {"x"}, {"y"}, {}, "", "local")}), {f}), Code::kInvalidModel,
               "nothing in function local.f defines its output \"r\"");
  expect_error(model_bytes(call_graph({node("f", {"x", "x"}, {"y"}, {}, "", "local")}), {f}), Code::kInvalidModel,
               "has 1 inputs and 1 outputs, the call 2 and 1");
  expect_error(model_bytes(call_graph({node("f", {"x"}, {"y"}, {}, "", "local")}), {f, f}), Code::kInvalidModel,
               "defined twice");
  const ProtoBytes captures =
      function({.name = "f", .inputs = {"a"}, .outputs = {"r"}, .nodes = {node("Add", {"a", "x"}, {"r"}, {}, "add")}});
  expect_error(model_bytes(call_graph({node("f", {"x"}, {"y"}, {}, "call", "local")}), {captures}), Code::kInvalidModel,
               "/call/add (Add-14): nothing defines the input \"x\"");
}

// ---- Bad bytes

std::string model_with_everything() {
  const ProtoBytes branch =
      graph({.nodes = {node("Softmax", {"a"}, {"s"}, {reference_attribute("axis", "p", 2)})}, .outputs = {value("s")}});
  const ProtoBytes f =
      function({.name = "f",
                .inputs = {"c", "a"},
                .outputs = {"r"},
                .nodes = {node("If", {"c"}, {"r"},
                               {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)})},
                .attribute_defaults = {int_attribute("p", 0)}});
  return model_bytes(graph({.nodes = {node("Constant", {}, {"k"},
                                           {tensor_attribute("value", tensor("", 1, {1}, raw_bytes<float>({2})))}),
                                      node("Add", {"x", "w"}, {"t"}), node("Add", {"t", "k"}, {"u"}),
                                      node("f", {"c", "u"}, {"y"}, {}, "", "local")},
                            .inputs = {value("c", 9, {}), value("x")},
                            .outputs = {value("y")},
                            .initializers = {tensor("w", 1, {2}, raw_bytes<float>({1, 2}))}}),
                     {f});
}

TEST(ImportErrors, NoTruncationOrBitFlipCrashes) {
  const std::string bytes = model_with_everything();
  ASSERT_NE(import_ok(bytes), nullptr);
  size_t failed = 0;
  const auto attempt = [&](std::string_view broken) {
    auto graph = import_model(wire::MappedFile::borrow(broken));
    if (graph.ok()) {
      EXPECT_TRUE(ir::verify(**graph).ok());
    } else {
      ++failed;
      EXPECT_NE(graph.error().code(), Code::kInternal) << graph.error().to_string();
    }
  };
  for_each_truncation(bytes, 1, attempt);
  EXPECT_GT(failed, bytes.size() / 2);
  for_each_bit_flip(bytes, 1, attempt);
  EXPECT_GT(failed, bytes.size());
}

TEST(ImportRealModels, SurviveBitFlips) {
  const auto models = shared_models(12000);
  if (models.empty()) GTEST_SKIP() << "no real models beside the repository";
  for (const auto& path : models) {
    auto file = wire::MappedFile::open(path.string());
    ASSERT_TRUE(file.ok());
    const std::string_view bytes = (*file)->bytes();
    const auto attempt = [&](std::string_view broken) {
      auto graph = import_model(wire::MappedFile::borrow(broken));
      if (graph.ok()) {
        EXPECT_TRUE(ir::verify(**graph).ok());
      }
    };
    for_each_truncation(bytes, 1 + bytes.size() / 200, attempt);
    for_each_bit_flip(bytes, 1 + bytes.size() / 200, attempt);
  }
}

// Every real model is imported, or refused because of a missing operator.
TEST(ImportRealModels, AreImported) {
  const auto models = shared_models();
  if (models.empty()) GTEST_SKIP() << "no real models beside the repository";
  for (const auto& path : models) {
    auto file = wire::MappedFile::open(path.string());
    ASSERT_TRUE(file.ok());
    auto graph = import_model(*file);
    if (graph.ok()) {
      EXPECT_TRUE(ir::verify(**graph).ok()) << path;
    } else {
      EXPECT_EQ(graph.error().code(), Code::kNotImplemented) << graph.error().to_string();
      EXPECT_THAT(graph.error().message(), HasSubstr("is not implemented"));
    }
  }
}

}  // namespace
}  // namespace treadle::model
