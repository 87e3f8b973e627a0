#include "wire/serialize.h"

#include <gtest/gtest.h>

#include "support/proto_bytes.h"
#include "wire/parse.h"

namespace treadle::wire {
namespace {

TEST(Serialize, KeepsAnEmptyShape) {
  const std::string scalar = ProtoBytes().message(1, ProtoBytes().varint(1, 7).message(2, ProtoBytes())).str();
  const std::string unknown_rank = ProtoBytes().message(1, ProtoBytes().varint(1, 7)).str();
  for (const std::string& bytes : {scalar, unknown_rank}) {
    auto type = parse_type(bytes);
    ASSERT_TRUE(type.ok());
    auto written = serialize(*type);
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(*written, bytes);
  }
}

TEST(Serialize, WritesTypedDataAsItWas) {
  const std::string bytes = ProtoBytes()
                                .varint(1, 3)
                                .varint(2, 7)
                                .bytes(4, raw_bytes<float>({1, 2}))
                                .varint(7, 1)
                                .varint(7, ~uint64_t{0})
                                .bytes(8, "t")
                                .str();
  auto tensor = parse_tensor(bytes);
  ASSERT_TRUE(tensor.ok());
  auto written = serialize(*tensor);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, bytes);
}

TEST(Serialize, DistinguishesAbsentFromDefault) {
  const std::string zero =
      ProtoBytes().message(7, ProtoBytes().message(1, ProtoBytes().message(5, ProtoBytes().varint(3, 0)))).str();
  auto model = parse_model(zero);
  ASSERT_TRUE(model.ok());
  auto written = serialize(*model);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, zero);
}

TEST(Serialize, KeepsEmptyTextsZerosAndUnknownFields) {
  const ProtoBytes node = ProtoBytes().bytes(4, "Add").bytes(7, "").varint(99, 5).bytes(1000, "later");
  const std::string bytes =
      ProtoBytes().varint(1, 0).bytes(2, "").varint(5, 0).message(7, ProtoBytes().message(1, node)).varint(77, 1).str();
  auto model = parse_model(bytes);
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE((*model)->ir_version.present());
  EXPECT_FALSE((*model)->graph->nodes[0].unknown.empty());
  auto written = serialize(*model);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, bytes);
}

TEST(Serialize, LeavesFieldsOutOfTheMessageItself) {
  const std::string bytes =
      ProtoBytes().bytes(1, "x").bytes(3, "name").message(5, ProtoBytes().bytes(4, "kept")).varint(99, 1).str();
  NodeProto node;
  Arena arena;
  ASSERT_TRUE(merge(bytes, node, arena).ok());
  const uint32_t left_out[] = {1, 3};
  auto written = serialize(node, left_out);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, ProtoBytes().message(5, ProtoBytes().bytes(4, "kept")).varint(99, 1).str());
}

TEST(Serialize, WritesNegativeNumbersAsTenBytes) {
  TensorProto tensor;
  Arena arena;
  tensor.dims.add(arena, -1);
  auto written = serialize(tensor);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, ProtoBytes().varint(1, ~uint64_t{0}).str());
}

TEST(Serialize, RefusesMessagesThatProtobufCannotHold) {
  const std::string block(64 << 20, 'x');
  SequenceProto sequence;
  Arena arena;
  for (int i = 0; i < 32; ++i) sequence.tensors.add(arena).raw_data = block;
  auto written = serialize(sequence);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::kLimit);
}

}  // namespace
}  // namespace treadle::wire
