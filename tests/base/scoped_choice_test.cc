#include "base/scoped_choice.h"

#include <gtest/gtest.h>

#include <string_view>
#include <thread>

namespace treadle {
namespace {

struct WordChoice {
  using Value = std::string_view;
  static Value of_process() { return "process"; }
};
using ScopedWord = ScopedChoice<WordChoice>;

TEST(ScopedChoice, TheInnermostObjectOfTheThreadCounts) {
  EXPECT_EQ(ScopedWord::current(), "process");
  {
    const ScopedWord outer("outer");
    EXPECT_EQ(ScopedWord::current(), "outer");
    {
      const ScopedWord inner("inner");
      EXPECT_EQ(ScopedWord::current(), "inner");
    }
    EXPECT_EQ(ScopedWord::current(), "outer");
  }
  EXPECT_EQ(ScopedWord::current(), "process");
}

TEST(ScopedChoice, AnEmptyNameIsAChoice) {
  const ScopedWord none("");
  EXPECT_EQ(ScopedWord::current(), "");
}

TEST(ScopedChoice, OtherThreadsKeepTheChoiceOfTheProcess) {
  const ScopedWord here("here");
  std::string_view there;
  std::thread([&] { there = ScopedWord::current(); }).join();
  EXPECT_EQ(there, "process");
  EXPECT_EQ(ScopedWord::current(), "here");
}

struct OtherChoice {
  using Value = std::string_view;
  static Value of_process() { return "other"; }
};

TEST(ScopedChoice, AnotherChoiceIsLeftAlone) {
  const ScopedWord here("here");
  EXPECT_EQ(ScopedChoice<OtherChoice>::current(), "other");
}

}  // namespace
}  // namespace treadle
