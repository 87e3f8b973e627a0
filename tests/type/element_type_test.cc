#include "type/element_type.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(ElementType, AnUndefinedTypeIsOfNoClass) {
  const ElementType none = ElementType::kUndefined;
  EXPECT_EQ(info(none).type_class, TypeClass::kNone);
  EXPECT_FALSE(is_float(none));
  EXPECT_FALSE(is_integer(none));
  EXPECT_FALSE(is_signed_integer(none));
  EXPECT_FALSE(is_string(none));
  EXPECT_EQ(byte_width(none), 0u);
  EXPECT_EQ(compute_type(none), ComputeType::kNone);
}

TEST(ElementType, EveryOtherTypeHasAClassAndIsFoundByNameAndNumber) {
  for (int i = 1; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    EXPECT_NE(info(type).type_class, TypeClass::kNone) << name(type);
    EXPECT_GT(byte_width(type), 0u) << name(type);
    EXPECT_EQ(element_type_from_name(name(type)), type);
    EXPECT_EQ(element_type_from_number(i), type) << name(type);
  }
  EXPECT_EQ(element_type_from_name("undefined"), ElementType::kUndefined);
  EXPECT_EQ(element_type_from_number(0), ElementType::kUndefined);
  EXPECT_EQ(element_type_from_number(kElementTypeCount), ElementType::kUndefined);
}

}  // namespace
}  // namespace treadle
