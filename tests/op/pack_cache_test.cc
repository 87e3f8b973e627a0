#include "op/pack_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/memory_account.h"
#include "base/shared_range.h"
#include "base/thread_pool.h"

namespace treadle {
namespace {

Operand operand(const std::vector<float>& data, Dims dims) {
  return {ElementType::kFloat, dims, contiguous_strides(dims), data.data()};
}

struct Packer {
  int packed = 0;
  const void* operator()(PackCache& cache, const Operand& weights, uint64_t layout = 1) {
    const auto made = cache.get(weights, layout, weights.byte_size(), [&](void* out) {
      ++packed;
      std::memcpy(out, weights.constant, weights.byte_size());
    });
    return made.ok() ? *made : nullptr;
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

TEST(PackCache, SessionsSharePacksOfSharedMemory) {
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
  EXPECT_EQ(pack(third, operand(weights, {8, 8})), first) << "the kernel that uses it keeps it";
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

constexpr StopCheck kAtOnce{[](const void*) { return true; }, nullptr};

// Packs half of the weights and is told to stop.
bool stopped_halfway(PackCache& cache, const Operand& weights) {
  const ThreadScope scope(1, kAtOnce);
  const auto made = cache.get(weights, 1, weights.byte_size(), [&](void* out) {
    std::memset(out, 0xAB, weights.byte_size() / 2);
    EXPECT_TRUE(stop_requested());
  });
  return !made.ok() && made.error().code() == Code::kCancelled;
}

TEST(PackCache, AStoppedPackIsPackedAnew) {
  const std::vector<float> weights(64, 2), more(64, 3);
  PackCache cache;
  Packer pack;
  const auto* first = static_cast<const std::byte*>(pack(cache, operand(more, {8, 8})));
  ASSERT_TRUE(stopped_halfway(cache, operand(weights, {8, 8})));
  const void* made = pack(cache, operand(weights, {8, 8}));
  EXPECT_EQ(std::memcmp(made, weights.data(), 256), 0);
  EXPECT_EQ(made, first + 256) << "where the stopped one was";
  EXPECT_EQ(pack(cache, operand(weights, {8, 8})), made);
  EXPECT_EQ(pack.packed, 2);
}

TEST(PackCache, TheMemoryOfAStoppedPackIsFree) {
  const std::vector<float> weights(1 << 20, 2);
  const auto account = MemoryAccount::make();
  account->begin(0);
  const MemoryScope counted(account);
  PackCache cache;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(stopped_halfway(cache, operand(weights, {1 << 20})));
    EXPECT_EQ(account->live(), 0u);
  }
  Packer pack;
  EXPECT_EQ(static_cast<const float*>(pack(cache, operand(weights, {1 << 20})))[9999], 2);
  EXPECT_GE(account->live(), size_t{4} << 20);
}

TEST(PackCache, APackThatThrewIsPackedAnew) {
  const std::vector<float> weights(64, 2);
  PackCache cache;
  Packer pack;
  const void* first = pack(cache, operand(weights, {64}));
  const auto fails = [](void*) { throw std::runtime_error("no"); };
  EXPECT_THROW(static_cast<void>(cache.get(operand(weights, {8, 8}), 1, 256, fails)), std::runtime_error);
  EXPECT_EQ(pack(cache, operand(weights, {8, 8})), static_cast<const std::byte*>(first) + 256);
}

TEST(PackCache, OtherSessionsDoNotSeeAStoppedPack) {
  const std::vector<float> weights(64, 2);
  const SharedRange range(weights.data(), 256);
  PackCache one, other;
  Packer pack;
  ASSERT_TRUE(stopped_halfway(one, operand(weights, {8, 8})));
  const void* made = pack(other, operand(weights, {8, 8}));
  EXPECT_EQ(std::memcmp(made, weights.data(), 256), 0);
  EXPECT_EQ(pack(one, operand(weights, {8, 8})), made);
  EXPECT_EQ(pack.packed, 1);
}

TEST(PackCache, WaitingForAPackCanBeStopped) {
  const std::vector<float> weights(64, 2), others(64, 3);
  PackCache cache;
  Packer pack;
  const void* there = pack(cache, operand(others, {64}));
  const auto made = cache.get(operand(weights, {8, 8}), 1, 256, [&](void*) {
    std::thread([&] {
      EXPECT_EQ(pack(cache, operand(others, {64})), there) << "what is packed is found without a wait";
      EXPECT_TRUE(stopped_halfway(cache, operand(others, {8, 8})));
    }).join();
  });
  EXPECT_TRUE(made.ok());
}

// The question whether to stop may run a signal handler, which runs the session.
TEST(PackCache, AThreadThatPacksMayPackAgain) {
  const std::vector<float> weights(64, 2), others(64, 3);
  PackCache cache;
  Packer pack;
  const void *same = nullptr, *other = nullptr;
  const auto made = cache.get(operand(weights, {8, 8}), 1, 256, [&](void* out) {
    same = pack(cache, operand(weights, {8, 8}));
    other = pack(cache, operand(others, {8, 8}));
    std::memcpy(out, weights.data(), 256);
  });
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(std::memcmp(*made, weights.data(), 256), 0);
  EXPECT_EQ(std::memcmp(same, weights.data(), 256), 0);
  EXPECT_EQ(std::memcmp(other, others.data(), 256), 0);
}

TEST(PackCache, KnowsWhatItHasPacked) {
  const std::vector<float> weights(64, 2), others(64, 3);
  PackCache cache;
  Packer pack;
  pack(cache, operand(weights, {8, 8}));
  ASSERT_TRUE(stopped_halfway(cache, operand(others, {8, 8})));
  EXPECT_EQ(cache.constants(), std::unordered_set<const void*>{weights.data()});
}

TEST(PackCache, MemoryOfOneSessionIsItsOwn) {
  const std::vector<float> weights(64, 2);
  PackCache one, other;
  Packer pack;
  EXPECT_NE(pack(one, operand(weights, {8, 8})), pack(other, operand(weights, {8, 8})));
}

}  // namespace
}  // namespace treadle
