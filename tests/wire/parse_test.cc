#include "wire/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/mutations.h"
#include "support/proto_bytes.h"
#include "support/shared_models.h"
#include "wire/mapped_file.h"
#include "wire/serialize.h"

namespace treadle::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ProtoBytes tensor_type(int elem_type, const ProtoBytes& shape) {
  return ProtoBytes().message(1, ProtoBytes().varint(1, static_cast<uint64_t>(elem_type)).message(2, shape));
}

ProtoBytes value_info(std::string_view name, const ProtoBytes& type) {
  return ProtoBytes().bytes(1, name).message(2, type);
}

// y = If(cond, then: x + w, else: x), with one initializer; has every kind of field.
std::string sample_model() {
  const ProtoBytes rank1 = ProtoBytes().message(1, ProtoBytes().bytes(2, "N"));
  ProtoBytes then_branch;
  then_branch.message(1, ProtoBytes().bytes(1, "x").bytes(1, "w").bytes(2, "a").bytes(3, "add").bytes(4, "Add"))
      .bytes(2, "then")
      .message(12, value_info("a", tensor_type(1, rank1)));
  ProtoBytes else_branch;
  else_branch.message(1, ProtoBytes().bytes(1, "x").bytes(2, "b").bytes(4, "Identity"))
      .bytes(2, "else")
      .message(12, value_info("b", tensor_type(1, rank1)));
  ProtoBytes node;
  node.bytes(1, "cond")
      .bytes(2, "y")
      .bytes(4, "If")
      .message(5, ProtoBytes().bytes(1, "then_branch").message(6, then_branch).varint(20, 5))
      .message(5, ProtoBytes().bytes(1, "else_branch").message(6, else_branch).varint(20, 5));
  ProtoBytes graph;
  graph.message(1, node)
      .bytes(2, "g")
      .message(5, ProtoBytes().varint(1, 2).varint(2, 1).bytes(8, "w").bytes(9, raw_bytes<float>({1.5f, -2})))
      .message(11, value_info("cond", tensor_type(9, ProtoBytes())))
      .message(11, value_info("x", tensor_type(1, rank1)))
      .message(12, value_info("y", tensor_type(1, rank1)));
  return ProtoBytes()
      .varint(1, 8)
      .bytes(2, "hand")
      .message(7, graph)
      .message(8, ProtoBytes().bytes(1, "").varint(2, 17))
      .message(14, ProtoBytes().bytes(1, "k").bytes(2, "v"))
      .str();
}

TEST(ParseModel, ReadsEveryLevel) {
  const std::string bytes = sample_model();
  auto model = parse_model(bytes);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ((*model)->ir_version, 8);
  EXPECT_EQ((*model)->producer_name, "hand");
  ASSERT_EQ((*model)->opset_imports.size(), 1u);
  EXPECT_EQ((*model)->opset_imports[0].version, 17);
  EXPECT_EQ((*model)->metadata_props[0].value, "v");
  ASSERT_NE((*model)->graph, nullptr);
  const GraphProto& graph = *(*model)->graph;
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_THAT(graph.nodes[0].inputs, ElementsAre("cond"));
  const AttributeProto& then_branch = graph.nodes[0].attributes[0];
  EXPECT_EQ(then_branch.type, AttributeProto::kGraph);
  ASSERT_NE(then_branch.g, nullptr);
  EXPECT_THAT(then_branch.g->nodes[0].inputs, ElementsAre("x", "w"));
  EXPECT_EQ(graph.inputs[0].type->tensor->elem_type, 9);
  ASSERT_TRUE(graph.inputs[0].type->tensor->shape.has_value()) << "an empty shape is rank 0, not an unknown rank";
  EXPECT_EQ(graph.inputs[1].type->tensor->shape->dims[0].param, "N");
  EXPECT_FALSE(graph.inputs[1].type->tensor->shape->dims[0].value.has_value());
}

TEST(ParseModel, ViewsPointIntoTheBytes) {
  const std::string bytes = sample_model();
  auto model = parse_model(bytes);
  ASSERT_TRUE(model.ok());
  for (std::string_view view : {(*model)->producer_name, *(*model)->graph->initializers[0].raw_data,
                                (*model)->graph->nodes[0].attributes[0].g->nodes[0].op_type}) {
    EXPECT_GE(view.data(), bytes.data());
    EXPECT_LE(view.data() + view.size(), bytes.data() + bytes.size());
  }
}

TEST(ParseModel, SkipsUnknownFieldsOfEveryWireType) {
  ProtoBytes model;
  model.varint(99, 1).bytes(100, "abc").fixed32(101, 1).fixed64(102, 1).varint(1, 3).varint(1 << 28, 5);
  auto parsed = parse_model(model.str());
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
  EXPECT_EQ((*parsed)->ir_version, 3);
}

TEST(ParseModel, MergesFieldsGivenTwice) {
  const ProtoBytes first = ProtoBytes().message(7, ProtoBytes().bytes(2, "one").message(1, ProtoBytes().bytes(4, "A")));
  const ProtoBytes second =
      ProtoBytes().message(7, ProtoBytes().bytes(2, "two").message(1, ProtoBytes().bytes(4, "B")));
  const std::string bytes = first.str() + second.str();
  auto model = parse_model(bytes);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ((*model)->graph->name, "two");
  ASSERT_EQ((*model)->graph->nodes.size(), 2u);
  EXPECT_EQ((*model)->graph->nodes[1].op_type, "B");
}

// A model of one node with one attribute.
struct ParsedAttribute {
  explicit ParsedAttribute(const ProtoBytes& attribute)
      : bytes(ProtoBytes().message(7, ProtoBytes().message(1, ProtoBytes().message(5, attribute))).str()),
        model(parse_model(bytes)) {
    EXPECT_TRUE(model.ok()) << model.error().to_string();
  }
  const AttributeProto* operator->() const { return &(*model)->graph->nodes[0].attributes[0]; }

  const std::string bytes;
  const Result<Parsed<ModelProto>> model;
};

TEST(ParseModel, ListsMayBePackedOrNot) {
  ProtoBytes packed;
  packed.bytes(8, ProtoBytes().raw(7).raw(~uint64_t{0}).raw(300).str()).bytes(7, raw_bytes<float>({1, 2.5f}));
  const ParsedAttribute a(packed);
  EXPECT_THAT(a->ints, ElementsAre(7, -1, 300));
  EXPECT_THAT(a->floats, ElementsAre(1, 2.5f));
  ProtoBytes unpacked;
  unpacked.varint(8, 7).fixed32(7, 1).varint(8, ~uint64_t{0}).fixed32(7, 2.5f).varint(8, 300);
  const ParsedAttribute b(unpacked);
  EXPECT_EQ(b->ints, a->ints);
  EXPECT_EQ(b->floats, a->floats);
}

TEST(ParseTensor, TypedDataMayBePackedOrNotOrMixed) {
  ProtoBytes bytes;
  bytes.varint(5, 1).varint(5, ~uint64_t{0}).bytes(5, ProtoBytes().raw(3).raw(400).str()).varint(2, 6).varint(5, 5);
  bytes.bytes(6, "ab").bytes(6, "").bytes(10, raw_bytes<double>({0.5, 2})).fixed64(10, 3);
  auto tensor = parse_tensor(bytes.str());
  ASSERT_TRUE(tensor.ok()) << tensor.error().to_string();
  std::vector<int32_t> ints;
  EXPECT_TRUE((*tensor)->int32_data.for_each([&](int32_t v) { ints.push_back(v); }));
  EXPECT_THAT(ints, ElementsAre(1, -1, 3, 400, 5));
  EXPECT_EQ((*tensor)->int32_data.runs().size(), 3u) << "values side by side make one run";
  std::vector<std::string_view> strings;
  EXPECT_TRUE((*tensor)->string_data.for_each([&](std::string_view v) { strings.push_back(v); }));
  EXPECT_THAT(strings, ElementsAre("ab", ""));
  size_t count = 0;
  EXPECT_TRUE((*tensor)->double_data.count(count));
  EXPECT_EQ(count, 3u);
}

TEST(ParseTensor, PackedVarintsAreCheckedWhenRead) {
  const std::string bytes = ProtoBytes().bytes(7, "\xff\xff").str();
  auto tensor = parse_tensor(bytes);
  ASSERT_TRUE(tensor.ok());
  size_t count = 0;
  EXPECT_FALSE((*tensor)->int64_data.count(count));
}

TEST(ParseErrors, SayByteAndField) {
  ProtoBytes attribute;
  attribute.bytes(1, "axes").tag(8, 2).raw(1000);
  const std::string bytes =
      ProtoBytes().varint(1, 8).message(7, ProtoBytes().message(1, ProtoBytes().message(5, attribute))).str();
  auto model = parse_model(bytes);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code(), Code::kInvalidFile);
  EXPECT_THAT(model.error().to_string(), HasSubstr("byte 14, graph.node[0].attribute[0].ints[0]"));
  EXPECT_THAT(model.error().to_string(), HasSubstr("claims 1000 bytes, but only 0 are left"));
}

TEST(ParseErrors, WrongBytesAreNamed) {
  const struct {
    std::string bytes, expected;
  } cases[] = {
      {"", "empty file"},
      {ProtoBytes().fixed32(1, 1).str(), "expected a varint value in field 1, found a 32-bit one"},
      {ProtoBytes().varint(7, 1).str(), "expected a length-delimited value in field 7"},
      {std::string(11, '\xff'), "longer than ten bytes"},
      {ProtoBytes().tag(1, 0).append(std::string(11, '\xff')).str(), "longer than ten bytes"},
      {std::string(1, '\0'), "impossible tag 0"},
      {ProtoBytes().tag(1, 3).str(), "wire type 3"},
      {ProtoBytes().tag(9, 1).append("abc").str(), "cut off"},
      {ProtoBytes().tag(2, 2).raw(uint64_t{1} << 63).str(), "claims 9223372036854775808 bytes"},
      {ProtoBytes().tag(2, 2).raw(uint64_t{1} << 32 | 1).append("x").str(), "claims 4294967297 bytes"},
      {"<!DOCTYPE html><html>", "field 7 has wire type 4"},
  };
  for (const auto& [bytes, expected] : cases) {
    auto model = parse_model(bytes);
    ASSERT_FALSE(model.ok()) << expected;
    EXPECT_EQ(model.error().code(), Code::kInvalidFile);
    EXPECT_THAT(model.error().to_string(), HasSubstr(expected));
  }
}

TEST(ParseErrors, NestingIsLimited) {
  ProtoBytes graph;
  for (int i = 0; i < 10000; ++i) {
    graph = ProtoBytes().message(1, ProtoBytes().message(5, ProtoBytes().message(6, graph)));
  }
  auto model = parse_model(ProtoBytes().message(7, graph).str());
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code(), Code::kLimit);
  EXPECT_THAT(model.error().message(), HasSubstr("more than 256 deep"));
}

TEST(ParseErrors, TypesNestWithinTheLimitOnly) {
  const auto nested = [](int depth) {
    ProtoBytes type = tensor_type(1, ProtoBytes());
    for (int i = 0; i < depth; ++i) type = ProtoBytes().message(4, ProtoBytes().message(1, type));
    return type.str();
  };
  EXPECT_TRUE(parse_type(nested(100)).ok());
  EXPECT_FALSE(parse_type(nested(200)).ok());
}

TEST(ParseErrors, StructureIsLimitedBeforeItIsAllocated) {
  std::string nodes;
  for (int i = 0; i < 1000; ++i) nodes += std::string("\x0a\x00", 2);
  const std::string bytes = ProtoBytes().bytes(7, nodes).str();
  Limits limits;
  limits.structure_bytes = 100 * sizeof(NodeProto);
  auto model = parse_model(bytes, limits);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code(), Code::kLimit);
  EXPECT_TRUE(parse_model(bytes).ok());
}

TEST(ParseErrors, EveryTruncationOfASampleFailsOrStopsBetweenFields) {
  const std::string bytes = sample_model();
  size_t failed = 0;
  for_each_truncation(bytes, 1, [&](std::string_view cut) { failed += parse_model(cut).ok() ? 0 : 1; });
  // Only truncations between the five top-level fields leave a readable file.
  EXPECT_EQ(failed, bytes.size() - 4);
}

TEST(ParseErrors, NoBitFlipOfASampleCrashes) {
  const std::string bytes = sample_model();
  size_t failed = 0;
  for_each_bit_flip(bytes, 1, [&](std::string_view flipped) {
    auto model = parse_model(flipped);
    if (!model.ok()) {
      ++failed;
      EXPECT_THAT(model.error().place(), HasSubstr("byte "));
    }
  });
  EXPECT_GT(failed, bytes.size());
}

TEST(RealModels, SurviveTruncationAndBitFlips) {
  const auto models = shared_models(12000);
  if (models.empty()) GTEST_SKIP() << "no real models beside the repository";
  for (const auto& path : models) {
    auto file = MappedFile::open(path.string());
    ASSERT_TRUE(file.ok());
    const std::string_view bytes = (*file)->bytes();
    ASSERT_TRUE(parse_model(bytes).ok()) << path;
    for_each_truncation(bytes, 1 + bytes.size() / 2000, [&](std::string_view cut) { (void)parse_model(cut).ok(); });
    for_each_bit_flip(bytes, 1 + bytes.size() / 500, [&](std::string_view flip) { (void)parse_model(flip).ok(); });
  }
}

TEST(RealModels, AreWrittenAsTheyWereRead) {
  const auto models = shared_models(4 << 20);
  if (models.empty()) GTEST_SKIP() << "no real models beside the repository";
  for (const auto& path : models) {
    auto file = MappedFile::open(path.string());
    ASSERT_TRUE(file.ok());
    auto model = parse_model((*file)->bytes());
    ASSERT_TRUE(model.ok()) << path << model.error().to_string();
    auto once = serialize(*model);
    ASSERT_TRUE(once.ok());
    auto again = parse_model(*once);
    ASSERT_TRUE(again.ok()) << path << again.error().to_string();
    EXPECT_EQ((*again)->graph->nodes.size(), (*model)->graph->nodes.size());
    EXPECT_EQ((*again)->graph->initializers.size(), (*model)->graph->initializers.size());
    auto twice = serialize(*again);
    ASSERT_TRUE(twice.ok());
    EXPECT_EQ(*twice, *once) << path;
  }
}

}  // namespace
}  // namespace treadle::wire
