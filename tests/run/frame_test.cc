// The values of a run: which memory a handle's new value is written to, and when handles are released.
#include "run/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::run {
namespace {

using testing::HasSubstr;

// Slot 1 and 2: handles. Slot 3: four floats in the arena.
struct FrameTest : testing::Test {
  plan::Program program;
  RunMemory memory;
  std::unique_ptr<Frame> frame;

  void SetUp() override {
    program.slots.resize(4);
    program.slots[1].storage = program.slots[2].storage = plan::Storage::kHandle;
    program.slots[3].storage = plan::Storage::kArena;
    program.arena_bytes = 16;
    frame = std::make_unique<Frame>(program, memory);
    ASSERT_TRUE(memory.begin(0, program.arena_bytes, frame->arena_bytes()).ok());
    ASSERT_TRUE(frame->need_arena().ok());
    frame->begin();
  }
  const void* renewed(const Dims& dims) {
    EXPECT_TRUE(frame->renew(1, ElementType::kFloat, dims).ok());
    return frame->address(1);
  }
  // As a dynamic kernel asks for memory.
  const void* rewritten(std::span<const int64_t> dims) { return frame->renew_for(1, ElementType::kFloat, dims); }
};

TEST_F(FrameTest, WritesToTheMemoryOfTheLastValue) {
  const void* const first = renewed({8});
  EXPECT_EQ(renewed({8}), first);
  EXPECT_EQ(renewed({2, 4}), first);
  EXPECT_EQ(memory.allocations(), 1);
}

TEST_F(FrameTest, DoesNotWriteToSharedMemory) {
  const void* const first = renewed({8});
  const AnyValue held = frame->handle(1);
  EXPECT_NE(renewed({8}), first);
}

TEST_F(FrameTest, GivesASmallValueThatGrowsTwiceTheRoom) {
  renewed({8});
  const void* const grown = renewed({9});
  EXPECT_EQ(renewed({18}), grown);
  EXPECT_NE(renewed({19}), grown);
}

TEST_F(FrameTest, KeepsSmallValuesInALoop) {
  const void* const first = renewed({8});
  frame->release({1}, true);
  EXPECT_EQ(renewed({8}), first);
  frame->release({1}, false);
  EXPECT_FALSE(frame->handle(1).is_tensor());
}

TEST_F(FrameTest, LargeValuesGoFromSlotToSlotInALoop) {
  const void* const first = renewed({1 << 15});
  frame->release({1}, true);
  ASSERT_TRUE(frame->renew(2, ElementType::kFloat, {1 << 15}).ok());
  EXPECT_EQ(frame->address(2), first);
}

TEST_F(FrameTest, CopiesPlannedValues) {
  static_cast<float*>(frame->address(3))[2] = 7;
  const AnyValue value = *frame->value_of(3, Type::tensor(ElementType::kFloat, {Dim(4)}));
  EXPECT_NE(value.tensor().raw(), frame->address(3));
  EXPECT_EQ(value.tensor().span<float>()[2], 7);
}

TEST_F(FrameTest, RefusesAValueThatKernelsWereNotPlannedFor) {
  program.slots[1].type = Type::tensor(ElementType::kFloat, {Dim(4)});
  frame = std::make_unique<Frame>(program, memory);
  const Status status = frame->set_handle(1, AnyValue(*Tensor::allocate(ElementType::kFloat, {5})));
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_THAT(status.to_string(), HasSubstr("planned for"));
  const int64_t four[] = {4}, five[] = {5};
  EXPECT_EQ(rewritten(five), nullptr);
  EXPECT_NE(rewritten(four), nullptr);
}

TEST_F(FrameTest, WritesOtherSizesToTheSameMemory) {
  const void* const first = renewed({8});
  const int64_t fewer[] = {2, 3}, more[] = {100};
  EXPECT_EQ(rewritten(fewer), first);
  EXPECT_EQ(frame->handle(1).tensor().dims(), (Dims{2, 3}));
  EXPECT_NE(rewritten(more), nullptr);
  EXPECT_EQ(frame->handle(1).tensor().element_count(), 100);
  const AnyValue held = frame->handle(1);
  EXPECT_NE(rewritten(more), held.tensor().raw());
}

TEST_F(FrameTest, AStateChangesPlacesWithItsSuccessor) {
  const void* const state = renewed({8});
  ASSERT_TRUE(frame->renew(2, ElementType::kFloat, {3}).ok());
  const void* const successor = frame->address(2);
  frame->exchange(1, 2);
  EXPECT_EQ(frame->address(1), successor);
  EXPECT_EQ(frame->address(2), state);
  const AnyValue held = frame->handle(1);  // a reference to the state: its memory is not written to again
  frame->exchange(1, 2);
  EXPECT_FALSE(frame->handle(2).is_tensor());
}

TEST_F(FrameTest, AFlagIsOneBool) {
  bool flag = false;
  ASSERT_TRUE(frame->set_handle(1, AnyValue(Tensor::scalar<bool>(ElementType::kBool, true))).ok());
  ASSERT_TRUE(frame->read_flag(1, "cond", flag).ok());
  EXPECT_TRUE(flag);
  renewed({2});
  const Status status = frame->read_flag(1, "cond", flag);
  EXPECT_EQ(status.code(), Code::kRuntime);
  EXPECT_THAT(status.to_string(), HasSubstr("expected one bool"));
}

TEST_F(FrameTest, EndsWithoutHandles) {
  renewed({8});
  frame->end();
  EXPECT_FALSE(frame->handle(1).is_tensor());
}

}  // namespace
}  // namespace treadle::run
