// The memory of a run beside the arena: counted, bounded, and reused.
#include "run/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::run {
namespace {

using testing::HasSubstr;

constexpr size_t kLarge = RunMemory::kLargeBytes;

Dims dims_of_bytes(size_t bytes) {
  return {static_cast<int64_t>(bytes)};
}

TEST(GrowBuffer, KeepsItsContentsAndHandsThemOver) {
  const auto account = MemoryAccount::make();
  GrowBuffer rows;
  ASSERT_TRUE(rows.reserve(4, *account));
  std::memcpy(rows.data(), "abc", 4);
  ASSERT_TRUE(rows.reserve(1 << 20, *account));
  EXPECT_STREQ(reinterpret_cast<const char*>(rows.data()), "abc");
  EXPECT_EQ(account->live(), size_t{1} << 20);
  BufferRef taken = rows.take(4);
  EXPECT_EQ(rows.capacity(), 0u);
  EXPECT_EQ(account->live(), 4u) << "what is more than twice too long is given back";
  EXPECT_STREQ(reinterpret_cast<const char*>(taken->data()), "abc");
  taken = {};
  EXPECT_EQ(account->live(), 0u);
}

TEST(RunMemory, RefusesAnArenaBeyondTheLimit) {
  RunMemory memory;
  const Status status = memory.begin(1000, 1001, 0);
  EXPECT_EQ(status.code(), Code::kLimit);
  EXPECT_THAT(status.to_string(), HasSubstr("1000 bytes is below what the plan needs: 1001 bytes"));
}

TEST(RunMemory, CountsArenaTensorsAndScratchTogether) {
  RunMemory memory;
  ASSERT_TRUE(memory.begin(1000, 400, 0).ok());
  ASSERT_TRUE(memory.scratch(300).ok());
  EXPECT_TRUE(memory.check(300, {300}).ok());
  const Status status = memory.check(301, {301});
  EXPECT_EQ(status.code(), Code::kLimit);
  EXPECT_THAT(status.to_string(), HasSubstr("a tensor of shape [301]"));
}

TEST(RunMemory, ScratchStaysFromRunToRunAndIsCounted) {
  RunMemory memory;
  ASSERT_TRUE(memory.begin(0, 0, 0).ok());
  std::byte* const first = *memory.scratch(500);
  EXPECT_EQ(*memory.scratch(100), first);
  EXPECT_EQ(memory.allocations(), 1);
  memory.end();
  memory.renew_account();
  ASSERT_TRUE(memory.begin(600, 0, 0).ok());
  EXPECT_EQ(*memory.scratch(500), first);
  EXPECT_EQ(memory.allocations(), 0);
  EXPECT_FALSE(memory.check(101, {101}).ok());
}

TEST(RunMemory, LargeMemoryGoesRound) {
  RunMemory memory;
  ASSERT_TRUE(memory.begin(0, 0, 0).ok());
  const void* place = nullptr;
  {
    const Tensor large = *memory.allocate(ElementType::kInt8, dims_of_bytes(2 * kLarge));
    place = large.raw();
    memory.recycle(large);
  }
  EXPECT_NE(memory.allocate(ElementType::kInt8, dims_of_bytes(kLarge - 1))->raw(), place) << "far less is asked for";
  EXPECT_EQ(memory.allocate(ElementType::kInt8, dims_of_bytes(2 * kLarge - 1))->raw(), place);
  EXPECT_EQ(memory.allocations(), 2);
}

TEST(RunMemory, SharedMemoryIsNotReused) {
  RunMemory memory;
  ASSERT_TRUE(memory.begin(0, 0, 0).ok());
  const std::vector<Tensor> held(2, *memory.allocate(ElementType::kInt8, dims_of_bytes(kLarge)));
  memory.recycle(held[0]);
  EXPECT_NE(memory.allocate(ElementType::kInt8, dims_of_bytes(kLarge))->raw(), held[1].raw());
}

TEST(RunMemory, FreesSpareMemoryBeforeItRefuses) {
  RunMemory memory;
  ASSERT_TRUE(memory.begin(3 * kLarge, 0, 0).ok());
  {
    const Tensor large = *memory.allocate(ElementType::kInt8, dims_of_bytes(2 * kLarge));
    memory.recycle(large);
  }
  EXPECT_TRUE(memory.check(2 * kLarge, dims_of_bytes(2 * kLarge)).ok());
}

TEST(RunMemory, RoomToGrowComesCloseToALimitInSteps) {
  RunMemory memory;
  ASSERT_TRUE(memory.begin(1000, 0, 0).ok());
  EXPECT_EQ(memory.with_room_to_grow(400, 0), 800u);
  EXPECT_EQ(memory.with_room_to_grow(800, 0), 900u);
  EXPECT_EQ(memory.with_room_to_grow(1200, 0), 1200u) << "which will be refused";
}

TEST(RunMemory, RowsTakeTheRemainingMemory) {
  RunMemory memory;
  ASSERT_TRUE(memory.begin(1000, 0, 0).ok());
  GrowBuffer rows;
  ASSERT_TRUE(memory.grow(rows, 600, 4000).ok());
  EXPECT_EQ(rows.capacity(), 1000u);
  const Status status = memory.grow(rows, 1001, 2000);
  EXPECT_EQ(status.code(), Code::kLimit);
  EXPECT_THAT(status.to_string(), HasSubstr("a scan output"));
}

}  // namespace
}  // namespace treadle::run
