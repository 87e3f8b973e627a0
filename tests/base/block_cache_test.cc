#include "base/block_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/buffer.h"

namespace treadle {
namespace {

constexpr size_t kMegabyte = 1 << 20;

Block new_block(size_t bytes) {
  return Block(std::aligned_alloc(Block::kAlignment, bytes), bytes);
}

TEST(BlockCache, GivesBackWhatFits) {
  BlockCache cache(4 * kMegabyte);
  const Block block = new_block(kMegabyte);
  EXPECT_EQ(block.size(), kMegabyte);
  EXPECT_TRUE(cache.give(block));
  EXPECT_EQ(cache.held(), kMegabyte);
  EXPECT_FALSE(cache.take(kMegabyte + 1));      // too small
  EXPECT_FALSE(cache.take(3 * kMegabyte / 4));  // more than a quarter too large
  const Block again = cache.take(kMegabyte - 1000);
  EXPECT_EQ(again.data(), block.data());
  EXPECT_EQ(again.size(), kMegabyte);
  EXPECT_EQ(cache.held(), 0u);
  EXPECT_FALSE(cache.take(kMegabyte));
  std::free(block.data());
}

TEST(BlockCache, HoldsNoMoreThanItsLimit) {
  BlockCache cache(2 * kMegabyte);
  Block blocks[3];
  for (Block& block : blocks) block = new_block(kMegabyte);
  EXPECT_TRUE(cache.give(blocks[0]));
  EXPECT_TRUE(cache.give(blocks[1]));
  EXPECT_FALSE(cache.give(blocks[2]));
  EXPECT_EQ(cache.held(), 2 * kMegabyte);
  for (const Block& block : blocks) std::free(block.data());
}

TEST(BlockCache, GivesUpAllThatItHolds) {
  BlockCache cache(4 * kMegabyte);
  ASSERT_TRUE(cache.give(new_block(kMegabyte)));
  ASSERT_TRUE(cache.give(new_block(2 * kMegabyte)));
  size_t dropped = 0;
  cache.clear([&](Block block) {
    dropped += block.size();
    std::free(block.data());
  });
  EXPECT_EQ(dropped, 3 * kMegabyte);
  EXPECT_EQ(cache.held(), 0u);
  EXPECT_FALSE(cache.take(kMegabyte));
}

// A buffer of any size is aligned, writable to its end, and reports the size that was asked for.
TEST(Buffer, OfAnySize) {
  for (int round = 0; round < 2; ++round) {
    for (const size_t bytes :
         {size_t{0}, size_t{1}, size_t{100'000}, size_t{300'001}, 2 * kMegabyte - 1, 3 * kMegabyte, 40 * kMegabyte}) {
      const BufferRef buffer = BufferRef::allocate(bytes);
      ASSERT_TRUE(buffer);
      EXPECT_EQ(buffer->size(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kBufferAlignment, 0u);
      if (bytes) buffer->data()[0] = buffer->data()[bytes - 1] = std::byte{1};
    }
  }
  EXPECT_FALSE(BufferRef::allocate(SIZE_MAX - 10));
}

}  // namespace
}  // namespace treadle
