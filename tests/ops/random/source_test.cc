#include "ops/random/source.h"

#include <gtest/gtest.h>

#include <limits>

namespace treadle::random {

namespace {

using Sequence = std::pair<uint64_t, uint64_t>;

Sequence of(const Source& source) {
  const kernels::RandomKey sequence = source.sequence();
  return {sequence.key, sequence.stream};
}

TEST(Source, SeedsMakeTheSameNumbersAgain) {
  ir::Attributes attributes;
  attributes.set(ir::Attribute::of("seed", 1.5f));
  const Source source = Source::of(attributes);
  EXPECT_TRUE(source.seeded);
  EXPECT_EQ(of(source), of(source));
}

TEST(Source, WithoutASeedEveryRunDiffers) {
  const Source free = Source::of({});
  EXPECT_FALSE(free.seeded);
  EXPECT_NE(of(free), of(free));
  ir::Attributes nan;
  nan.set(ir::Attribute::of("seed", std::numeric_limits<float>::quiet_NaN()));
  EXPECT_FALSE(Source::of(nan).seeded);
}

TEST(Source, SeedsOfTheProcessBeginAnew) {
  const Source free = Source::of({});
  set_process_seed(5);
  const Sequence first = of(free), second = of(free);
  set_process_seed(5);
  EXPECT_EQ(of(free), first);
  EXPECT_EQ(of(free), second);
  EXPECT_NE(first, second);
}

TEST(Source, TilesCoverAllElements) {
  for (const size_t count : {size_t{0}, size_t{1}, kernels::kTile, 3 * kernels::kTile + 7}) {
    size_t covered = 0;
    for_each_tile(count, 1, [&](size_t begin, size_t n) {
      EXPECT_EQ(begin % kernels::kRandomGroup, 0);
      covered += n;
    });
    EXPECT_EQ(covered, count);
  }
}

}  // namespace

}  // namespace treadle::random
