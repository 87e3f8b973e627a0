#include "base/memory_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/machine_memory.h"
#include "base/thread_pool.h"
#include "support/temp_dir.h"
#include "type/tensor.h"

namespace treadle {
namespace {

std::shared_ptr<MemoryAccount> account_of(size_t limit, size_t elsewhere = 0) {
  auto account = MemoryAccount::make();
  account->begin(limit, elsewhere);
  return account;
}

TEST(MemoryAccount, CountsTensorsUntilTheyGo) {
  const auto account = account_of(1 << 20);
  Tensor kept;
  {
    const MemoryScope scope(account);
    kept = Tensor::allocate(ElementType::kFloat, {1000}).value();
    EXPECT_EQ(account->live(), 4000);
    const Tensor other = Tensor::allocate(ElementType::kFloat, {100'000}).value();
    EXPECT_EQ(account->live(), 404'000);
  }
  EXPECT_EQ(account->live(), 4000);
  EXPECT_EQ(account->peak(), 404'000);
  kept = {};
  EXPECT_EQ(account->live(), 0);
}

TEST(MemoryAccount, RefusesRequestsBeyondItsLimit) {
  const auto account = account_of(100'000, 50'000);
  const MemoryScope scope(account);
  EXPECT_TRUE(Tensor::allocate(ElementType::kUint8, {50'000}).ok());
  const auto refused = Tensor::allocate(ElementType::kUint8, {50'001});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kLimit);
  EXPECT_EQ(refused.error().message(), "the memory limit of 100000 bytes was reached by a tensor of shape [50001]");
}

// The memory of all accounts is subtracted from the machine's free memory.
TEST(MemoryAccount, WhatGoesIsNoLongerHeldWhateverThePiecesItCameIn) {
  constexpr size_t kFirst = 1 << 20, kStep = 60'000, kSteps = 100, kNear = size_t{1} << 29;
  const auto other = account_of(0);
  const size_t before = other->room();
  {
    const auto account = account_of(0);
    BufferRef grown = MemoryAccount::allocate_growable(account, kFirst);
    ASSERT_TRUE(grown);
    for (size_t i = 1; i <= kSteps; ++i) ASSERT_TRUE(MemoryAccount::grow(*account, *grown.get(), kFirst + i * kStep));
  }
  EXPECT_GT(other->room(), before - std::min(before, kNear));
  for (int i = 0; i < 1000; ++i) {
    const auto account = account_of(0);
    account->add(kNear);
    for (size_t piece = 0; piece < 1024; ++piece) account->subtract(kNear / 1024);
  }
  EXPECT_GT(other->room(), before - std::min(before, kNear));
}

TEST(MemoryAccount, CountsTexts) {
  const auto account = account_of(1 << 20);
  const MemoryScope scope(account);
  Tensor texts = Tensor::allocate(ElementType::kString, {2}).value();
  const size_t empty = account->live();
  texts.mutable_data<String>()[0].assign(100'000, 'x');
  EXPECT_GE(account->live(), empty + 100'000);
  texts.mutable_data<String>()[1] = texts.data<String>()[0];
  EXPECT_GE(account->live(), empty + 200'000);
  EXPECT_THROW(texts.mutable_data<String>()[1].assign(2 << 20, 'y'), MemoryRefused);
  const Status status = within_memory([&]() -> Status {
    CountedVector<int64_t> work(1 << 20);
    return {};
  });
  EXPECT_EQ(status.message(), "the memory limit of 1048576 bytes was reached by what the operator works in");
  texts = {};
  EXPECT_EQ(account->live(), 0);
}

TEST(MemoryAccount, GrowsMemoryInPlace) {
  const auto account = account_of(64 << 20);
  BufferRef memory = MemoryAccount::allocate_growable(account, 1 << 20);
  std::memset(memory->data(), 7, 1 << 20);
  ASSERT_TRUE(MemoryAccount::grow(*account, *memory.get(), 3 << 20));
  EXPECT_EQ(memory->size(), 3 << 20);
  EXPECT_EQ(account->live(), 3 << 20);
  EXPECT_EQ(account->peak(), 3 << 20) << "never was there twice the memory";
  EXPECT_EQ(memory->data()[(1 << 20) - 1], std::byte{7});
  const BufferRef shared = memory;
  EXPECT_FALSE(MemoryAccount::grow(*account, *memory.get(), 4 << 20)) << "the memory is shared";
  EXPECT_FALSE(BufferRef::allocate(1 << 20)->grow(2 << 20));
}

TEST(MemoryAccount, IsLentToThreadsThatHelp) {
  const auto account = account_of(1 << 20);
  const ThreadScope threads(3);
  const MemoryScope scope(account);
  const auto take_much = [] {
    parallel_for(16, 1e6, [](int64_t, int64_t, int) { CountedVector<char> work(2 << 20); });
  };
  EXPECT_THROW(take_much(), MemoryRefused);
  EXPECT_EQ(account->live(), 0);
}

// ---------------------------------------------------------------------------------------------------------------------

// Files as in the system's folders, below a folder.
struct Machine {
  TempDir folder;

  void write(const std::string& path, const std::string& text) const { folder.write(path, text); }
  size_t left() const {
    return machine_memory_left((folder.path() / "proc").string(), (folder.path() / "groups").string());
  }
};

TEST(MachineMemory, IsTheAvailableMemoryOfTheMachine) {
  const Machine machine;
  EXPECT_EQ(machine.left(), SIZE_MAX) << "nothing is known";
  machine.write("proc/meminfo", "MemTotal:  8000 kB\nMemFree: 100 kB\nMemAvailable:    5000 kB\n");
  EXPECT_EQ(machine.left(), size_t{5000} << 10);
}

TEST(MachineMemory, IsLessInAControlGroup) {
  const Machine machine;
  machine.write("proc/meminfo", "MemAvailable: 1000000 kB\n");
  machine.write("proc/self/cgroup", "0::/all/one\n");
  machine.write("groups/all/memory.max", "600000\n");
  machine.write("groups/all/memory.current", "100000\n");
  machine.write("groups/all/one/memory.max", "max\n");
  machine.write("groups/all/one/memory.current", "50000\n");
  EXPECT_EQ(machine.left(), 500'000) << "of the group around";
  machine.write("groups/all/one/memory.max", "200000\n");
  machine.write("groups/all/one/memory.stat", "anon 40000\ninactive_file 10000\n");
  EXPECT_EQ(machine.left(), 160'000) << "files that were read can be given back";
}

TEST(MachineMemory, IsLessInAControlGroupOfTheFirstVersion) {
  const Machine machine;
  machine.write("proc/self/cgroup", "5:devices:/\n4:memory:/box\n0::/\n");
  machine.write("groups/memory/box/memory.limit_in_bytes", "300000\n");
  machine.write("groups/memory/box/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(machine.left(), 200'000);
  machine.write("groups/memory/box/memory.usage_in_bytes", "400000\n");
  EXPECT_EQ(machine.left(), 0);
}

TEST(MachineMemory, BoundsAccountsWithoutALimit) {
  const auto account = account_of(0);
  EXPECT_TRUE(account->fits(1 << 20));
  if (machine_memory_left() == SIZE_MAX) GTEST_SKIP() << "this system does not tell";
  EXPECT_FALSE(account->fits(size_t{1} << 50));
  const MemoryScope scope(account);
  const auto refused = Tensor::allocate(ElementType::kUint8, {int64_t{1} << 50});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kLimit);
  EXPECT_NE(refused.error().message().find("bytes of memory left"), std::string::npos) << refused.error().message();
}

}  // namespace
}  // namespace treadle
