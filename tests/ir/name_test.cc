#include "ir/name.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace treadle::ir {
namespace {

TEST(Name, BorrowsUntilItIsCopied) {
  char text[] = "abc";
  const Name borrowed = Name::borrow(text);
  const Name copy = borrowed;
  text[0] = 'x';
  EXPECT_EQ(borrowed, "xbc");
  EXPECT_EQ(copy, "abc");
}

TEST(Name, TakesPartInTexts) {
  const Name name = "Loop_3";
  EXPECT_EQ(name + ":body", "Loop_3:body");
  EXPECT_EQ("/" + name, "/Loop_3");
  EXPECT_EQ(fmt::format("[{}]", name), "[Loop_3]");
  const std::string text = name;
  EXPECT_EQ(text, name);
  EXPECT_TRUE(Name().empty());
}

TEST(Name, KeepsItsCharactersWhenItIsMoved) {
  Name name = std::string("a name that is longer than a short one");
  const char* characters = name.data();
  const Name moved = std::move(name);
  EXPECT_EQ(moved.data(), characters);
}

}  // namespace
}  // namespace treadle::ir
