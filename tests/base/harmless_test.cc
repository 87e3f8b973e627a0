// Texts of models for people.
#include "base/harmless.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(Harmless, LeavesTextsAsTheyAre) {
  for (const char* text : {"", "/Scan_1:body/q", "a\\b \"c\" ~", "größe", "層/重み", "\xf0\x9f\x99\x82"}) {
    EXPECT_EQ(harmless(text), text);
    EXPECT_EQ(harmless_lines(text), text);
    EXPECT_TRUE(is_harmless(text));
  }
}

TEST(Harmless, ShowsWhatTerminalsObey) {
  EXPECT_EQ(harmless("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_FALSE(is_harmless("a\x1b[31mb"));
  EXPECT_EQ(harmless(std::string_view("\0\x07\x7f", 3)), "\\x00\\x07\\x7f");
  EXPECT_EQ(harmless("\xc2\x9b"
                     "1m"),
            "\\u009b1m");  // the same as ESC [ on some terminals
  EXPECT_EQ(harmless("a\xe2\x80\xae"
                     "b\xe2\x81\xa7\xd8\x9c\xe2\x80\x8f"),
            "a\\u202eb\\u2067\\u061c\\u200f");
  EXPECT_EQ(harmless("\xe2\x80\xa8\xef\xbb\xbf"), "\\u2028\\ufeff");
}

TEST(Harmless, ShowsBytesThatAreNoText) {
  EXPECT_EQ(harmless("a\xff\xc3"), "a\\xff\\xc3");
}

TEST(Harmless, KeepsLinesWhereTheyAreWanted) {
  EXPECT_EQ(harmless("a\n\tb"), "a\\x0a\\x09b");
  EXPECT_EQ(harmless_lines("a\n\tb\x1b\r"), "a\n\tb\\x1b\\x0d");
}

}  // namespace
}  // namespace treadle
