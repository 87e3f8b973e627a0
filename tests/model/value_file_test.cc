#include "model/value_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/model_bytes.h"
#include "support/mutations.h"

namespace treadle::model {
namespace {

Tensor floats(std::vector<float> values) {
  return Tensor::of_float(values);
}

Tensor strings(const std::vector<std::string>& values) {
  Tensor tensor = Tensor::allocate(ElementType::kString, {static_cast<int64_t>(values.size())}).value();
  std::copy(values.begin(), values.end(), tensor.mutable_data<String>());
  return tensor;
}

Tensor bytes_of(ElementType type, std::vector<uint8_t> values) {
  Tensor tensor = Tensor::allocate(type, {static_cast<int64_t>(values.size())}).value();
  std::copy(values.begin(), values.end(), tensor.mutable_data<uint8_t>());
  return tensor;
}

AnyValue round_trip(const AnyValue& value, const Type& type) {
  auto bytes = write_value(value, "v");
  EXPECT_TRUE(bytes.ok()) << bytes.error().to_string();
  auto again = read_value(wire::MappedFile::own(std::move(*bytes)), type);
  EXPECT_TRUE(again.ok()) << again.error().to_string();
  return again.ok() ? std::move(*again) : AnyValue();
}

void expect_round_trip(const AnyValue& value, const Type& type) {
  EXPECT_TRUE(identical(round_trip(value, type), value)) << type.to_string();
}

const Type kFloats = Type::tensor(ElementType::kFloat);

TEST(ValueFile, WritesTensorsAsOthersReadThem) {
  auto bytes = write_value(AnyValue(floats({1, 2})), "t");
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, onnx_bytes::tensor("t", 1, {2}, raw_bytes<float>({1, 2})).str());
  auto text = write_value(AnyValue(strings({"a", ""})), "t");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, ProtoBytes().varint(1, 2).varint(2, 8).bytes(6, "a").bytes(6, "").bytes(8, "t").str());
  auto narrow = write_value(AnyValue(bytes_of(ElementType::kInt4, {0xff, 0xf8, 7})));
  ASSERT_TRUE(narrow.ok());
  EXPECT_EQ(*narrow, ProtoBytes().varint(1, 3).varint(2, 22).bytes(9, "\x8f\x07").str());
}

TEST(ValueFile, TensorsComeBack) {
  expect_round_trip(floats({1, 2, 3}), kFloats);
  expect_round_trip(floats({}), kFloats);
  expect_round_trip(floats({4}).reshaped({}), kFloats);
  expect_round_trip(strings({"x", "", std::string("\0z", 2)}), Type::tensor(ElementType::kString));
  expect_round_trip(bytes_of(ElementType::kInt4, {1, 0xff, 0xf8}), Type::tensor(ElementType::kInt4));
  expect_round_trip(bytes_of(ElementType::kUint2, {1, 2, 3, 0, 1}), Type::tensor(ElementType::kUint2));
  expect_round_trip(bytes_of(ElementType::kFloat6e3m2, {1, 63, 32, 5, 7}), Type::tensor(ElementType::kFloat6e3m2));
  expect_round_trip(bytes_of(ElementType::kBool, {1, 0}), Type::tensor(ElementType::kBool));
}

TEST(ValueFile, SequencesComeBack) {
  const Type type = Type::sequence(kFloats);
  expect_round_trip(AnyValue(Sequence(kFloats, {floats({1}), floats({2, 3})})), type);
  const AnyValue empty = round_trip(AnyValue(Sequence(kFloats)), type);
  EXPECT_EQ(empty.sequence().size(), 0u);
  EXPECT_TRUE(same_structure(empty.sequence().element_type(), kFloats));
  const Sequence inner(kFloats, {floats({1})});
  expect_round_trip(AnyValue(Sequence(type, {inner, inner})), Type::sequence(type));
}

TEST(ValueFile, OptionalsComeBack) {
  const Type type = Type::optional(kFloats);
  expect_round_trip(AnyValue(Optional{kFloats, std::make_shared<const AnyValue>(floats({1}))}), type);
  const AnyValue empty = round_trip(AnyValue(Optional{kFloats, nullptr}), type);
  ASSERT_EQ(empty.kind(), AnyValue::Kind::kOptional);
  EXPECT_EQ(empty.optional().value, nullptr);
  const AnyValue sequence(Sequence(kFloats, {floats({1})}));
  expect_round_trip(AnyValue(Optional{Type::sequence(kFloats), std::make_shared<const AnyValue>(sequence)}),
                    Type::optional(Type::sequence(kFloats)));
}

TEST(ValueFile, MapsComeBack) {
  const int64_t keys[] = {3, -1};
  const Type of_ints = Type::map(ElementType::kInt64, kFloats);
  expect_round_trip(AnyValue(Map{Tensor::of_int64(keys), floats({1, 2})}), of_ints);
  const Map words{strings({"a", "b"}), strings({"x", "y"})};
  const Type of_words = Type::map(ElementType::kString, Type::tensor(ElementType::kString));
  expect_round_trip(AnyValue(words), of_words);
  expect_round_trip(AnyValue(Sequence(of_words, {AnyValue(words), AnyValue(words)})), Type::sequence(of_words));
}

TEST(ValueFile, ElementTypeOfASequenceIsFoundWhereNoneIsDeclared) {
  const AnyValue value(Sequence(kFloats, {floats({1}), floats({2, 3})}));
  const AnyValue again = round_trip(value, Type::sequence(Type()));
  EXPECT_EQ(again.sequence().element_type().to_string(), "tensor(float)[?]");
}

TEST(ValueFile, NothingCannotBeWritten) {
  EXPECT_FALSE(write_value(AnyValue()).ok());
}

TEST(ValueFile, NoTruncationOrBitFlipCrashes) {
  const Type of_words = Type::map(ElementType::kString, kFloats);
  const AnyValue map(Map{strings({"a", "b"}), floats({1, 2})});
  const AnyValue sequence(Sequence(of_words, {map, map}));
  const Type type = Type::optional(Type::sequence(of_words));
  auto bytes =
      write_value(AnyValue(Optional{type.child ? *type.child : Type(), std::make_shared<const AnyValue>(sequence)}));
  ASSERT_TRUE(bytes.ok());
  size_t failed = 0;
  const auto attempt = [&](std::string_view broken) {
    failed += read_value(wire::MappedFile::borrow(broken), type).ok() ? 0 : 1;
  };
  for_each_truncation(*bytes, 1, attempt);
  EXPECT_GT(failed, bytes->size() / 2);
  for_each_bit_flip(*bytes, 1, attempt);
}

}  // namespace
}  // namespace treadle::model
