#include "wire/pieces.h"

#include <gtest/gtest.h>

namespace treadle::wire {
namespace {

TEST(Pieces, NestedFieldsHaveTheLengthsOfTheirContents) {
  const std::string long_text(200, 'x');
  Pieces pieces;
  pieces.add("a");
  const Pieces::Mark outer = pieces.begin_field();
  pieces.add("b");
  const Pieces::Mark inner = pieces.begin_field();
  pieces.add(long_text);
  pieces.end_field(inner, 600);
  pieces.end_field(outer, 1);
  EXPECT_EQ(pieces.to_string(),
            "a\x0a\xcd\x01"
            "b\xc2\x25\xc8\x01" +
                long_text);
  EXPECT_EQ(pieces.size(), pieces.to_string().size());
  std::string copy(pieces.size(), '\0');
  pieces.copy_to(copy.data());
  EXPECT_EQ(copy, pieces.to_string());
}

TEST(Pieces, AnEmptyFieldStays) {
  Pieces pieces;
  const Pieces::Mark field = pieces.begin_field();
  pieces.end_field(field, 2);
  EXPECT_EQ(pieces.to_string(), std::string("\x12\0", 2));
}

TEST(Pieces, GoBackToAMark) {
  Pieces pieces;
  pieces.add("kept");
  const Pieces::Mark before = pieces.mark();
  pieces.add("prefix");
  const Pieces::Mark field = pieces.begin_field();
  pieces.add_copy(std::string("gone"));
  pieces.end_field(field, 1);
  pieces.back_to(before);
  EXPECT_EQ(pieces.to_string(), "kept");
  EXPECT_EQ(pieces.size(), 4u);
}

}  // namespace
}  // namespace treadle::wire
