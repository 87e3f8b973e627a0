#include "op/pack_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "base/shared_range.h"

namespace treadle {
namespace {

Operand operand(const std::vector<float>& data, Dims dims) {
  return {ElementType::kFloat, dims, contiguous_strides(dims), data.data()};
}

struct Packer {
  int packed = 0;
  const void* operator()(PackCache& cache, const Operand& weights, uint64_t layout = 1) {
    return cache.get(weights, layout, weights.byte_size(), [&](void* out) {
      ++packed;
      std::memcpy(out, weights.constant, weights.byte_size());
    });
  }
};

TEST(PackCache, PacksOnceForOneSession) {
  const std::vector<float> weights(64, 2);
  PackCache cache;
  Packer pack;
  const void* first = pack(cache, operand(weights, {8, 8}));
  EXPECT_EQ(pack(cache, operand(weights, {8, 8})), first);
  EXPECT_NE(pack(cache, operand(weights, {8, 8}), 2), first);
  EXPECT_NE(pack(cache, operand(weights, {4, 16})), first) << "other sizes are another arrangement";
  EXPECT_EQ(pack.packed, 3);
}

TEST(PackCache, SessionsShareWhatComesFromSharedMemory) {
  const std::vector<float> weights(64, 2);
  const SharedRange range(weights.data(), 256);
  auto one = std::make_unique<PackCache>();
  PackCache other;
  Packer pack;
  const void* first = pack(*one, operand(weights, {8, 8}));
  EXPECT_EQ(pack(other, operand(weights, {8, 8})), first);
  EXPECT_EQ(pack.packed, 1);
  one.reset();
  EXPECT_EQ(static_cast<const float*>(pack(other, operand(weights, {8, 8})))[63], 2);
  PackCache third;
  EXPECT_EQ(pack(third, operand(weights, {8, 8})), first) << "kept by whoever uses it";
  EXPECT_EQ(pack.packed, 1);
}

TEST(PackCache, NothingIsFoundOnceAllSessionsAreGone) {
  const std::vector<float> weights(64, 2);
  const SharedRange range(weights.data(), 256);
  Packer pack;
  for (int i = 0; i < 2; ++i) {
    PackCache cache;
    pack(cache, operand(weights, {8, 8}));
  }
  EXPECT_EQ(pack.packed, 2);
}

TEST(PackCache, OtherContentsAtTheSameAddressAreOthers) {
  std::vector<float> weights(64, 2);
  PackCache one, other;
  Packer pack;
  {
    const SharedRange range(weights.data(), 256);
    pack(one, operand(weights, {8, 8}));
  }
  weights.assign(64, 3);
  const SharedRange range(weights.data(), 256);
  EXPECT_EQ(static_cast<const float*>(pack(other, operand(weights, {8, 8})))[0], 3);
}

TEST(PackCache, MemoryOfOneSessionIsItsOwn) {
  const std::vector<float> weights(64, 2);
  PackCache one, other;
  Packer pack;
  EXPECT_NE(pack(one, operand(weights, {8, 8})), pack(other, operand(weights, {8, 8})));
}

}  // namespace
}  // namespace treadle
