#include "base/arena.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace treadle {
namespace {

TEST(Arena, GivesAlignedPiecesThatDoNotOverlap) {
  Arena arena;
  std::vector<std::pair<char*, size_t>> pieces;
  for (size_t i = 0; i < 2000; ++i) {
    const size_t alignment = size_t{1} << (i % 5), size = 1 + i * 7 % 500;
    char* piece = static_cast<char*>(arena.allocate(size, alignment));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % alignment, 0u);
    std::memset(piece, static_cast<int>(i % 251), size);
    pieces.emplace_back(piece, size);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (size_t k = 0; k < pieces[i].second; ++k) {
      ASSERT_EQ(pieces[i].first[k], static_cast<char>(i % 251)) << "piece " << i;
    }
  }
}

TEST(Arena, KeepsTheRestOfABlockBesideALargePiece) {
  Arena arena;
  char* before = arena.room<char>(8);
  arena.room<char>(1 << 20);
  EXPECT_EQ(arena.room<char>(8), before + 8);
}

TEST(Arena, CopiesTexts) {
  Arena arena;
  std::string text = "name";
  const std::string_view copy = arena.copy(text);
  text[0] = 'x';
  EXPECT_EQ(copy, "name");
  EXPECT_NE(arena.copy("").data(), nullptr);  // a text that exists, even if it is empty
}

TEST(Arena, AdoptsTheBlocksOfAnotherArena) {
  Arena arena;
  std::string_view first, second, third;
  {
    Arena other;
    first = other.copy("first");
    other.room<char>(1 << 20);
    arena.adopt(std::move(other));
    second = other.copy("second");  // begins a new block
    arena.adopt(std::move(other));
  }
  third = arena.copy("third");
  EXPECT_EQ(first, "first");
  EXPECT_EQ(second, "second");
  EXPECT_EQ(third, "third");
}

}  // namespace
}  // namespace treadle
