#include "ops/random/philox.h"

#include <gtest/gtest.h>

#include <limits>

namespace treadle::random {

namespace {

// The known answers that the authors of the generator publish.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox(0, 0).block(0), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint64_t kOnes = ~uint64_t{0};
  EXPECT_EQ(Philox(kOnes, kOnes).block(kOnes), (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, 0x0370734413198a2e).block(0x85a308d3243f6a88),
            (Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformNumbersLieBelowOne) {
  const Philox generator(7);
  for (uint64_t i = 0; i < 1000; ++i) {
    const double u = generator.uniform(i);
    EXPECT_GE(u, 0);
    EXPECT_LT(u, 1);
    EXPECT_EQ(u, generator.uniforms(i / 2)[i % 2]);
  }
}

TEST(Source, SeedsMakeTheSameNumbersAgain) {
  ir::Attributes attributes;
  attributes.set(ir::Attribute::of("seed", 1.5f));
  const Source source = Source::of(attributes);
  EXPECT_TRUE(source.seeded);
  EXPECT_EQ(source.generator().block(3), source.generator().block(3));
}

TEST(Source, WithoutASeedEveryRunDiffers) {
  const Source free = Source::of({});
  EXPECT_FALSE(free.seeded);
  EXPECT_NE(free.generator().block(0), free.generator().block(0));
  ir::Attributes nan;
  nan.set(ir::Attribute::of("seed", std::numeric_limits<float>::quiet_NaN()));
  EXPECT_FALSE(Source::of(nan).seeded);
}

}  // namespace

}  // namespace treadle::random
