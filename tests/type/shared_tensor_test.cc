#include "type/shared_tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "base/shared_range.h"

namespace treadle {
namespace {

Tensor numbers(Dims dims, float first, ElementType type = ElementType::kFloat) {
  Tensor t = Tensor::allocate(type, std::move(dims)).value();
  float* data = t.mutable_data<float>();
  std::iota(data, data + t.element_count(), first);
  return t;
}

TEST(SharedTensor, EqualTensorsShareMemory) {
  const Tensor a = shared(numbers({64, 8}, 1)), b = shared(numbers({64, 8}, 1));
  EXPECT_EQ(a.raw(), b.raw());
  EXPECT_TRUE(identical(b, numbers({64, 8}, 1)));
  EXPECT_FALSE(b.exclusive());
  EXPECT_EQ(shared(a).raw(), a.raw());
}

TEST(SharedTensor, OthersDoNot) {
  const Tensor a = shared(numbers({64, 8}, 1));
  EXPECT_NE(shared(numbers({64, 8}, 2)).raw(), a.raw());
  EXPECT_NE(shared(numbers({8, 64}, 1)).raw(), a.raw());
  EXPECT_NE(shared(numbers({64, 8}, 1, ElementType::kInt32)).raw(), a.raw());
  Tensor differs_in_the_last = numbers({64, 8}, 1);
  differs_in_the_last.mutable_data<float>()[511] = 0;
  EXPECT_NE(shared(differs_in_the_last).raw(), a.raw());
}

TEST(SharedTensor, LargeTensorsThatDifferBetweenSamplesAreTwo) {
  Tensor a = numbers({100'000}, 0), b = numbers({100'000}, 0);
  b.mutable_data<float>()[50'000] = -1;
  a = shared(a);
  b = shared(b);
  EXPECT_NE(a.raw(), b.raw());
  EXPECT_EQ(b.data<float>()[50'000], -1);
}

TEST(SharedTensor, SmallTensorsAndTextsStayAsTheyAre) {
  const Tensor small = numbers({4}, 1), text = Tensor::allocate(ElementType::kString, {1000}).value();
  EXPECT_EQ(shared(small).raw(), small.raw());
  EXPECT_EQ(shared(small).buffer().get(), small.buffer().get());
  EXPECT_EQ(shared(text).buffer().get(), text.buffer().get());
  EXPECT_FALSE(shared(Tensor()).defined());
}

TEST(SharedTensor, TheMemoryGoesWithTheLastOfThem) {
  static int released = 0;
  std::vector<float> data(1000, 3);
  const auto release = [](void*) { ++released; };
  {
    Tensor first = shared(Tensor::from_buffer(ElementType::kFloat, {1000},
                                              BufferRef::wrap(data.data(), 4000, false, release, &released)));
    Tensor copy = numbers({1000}, 0);
    std::fill_n(copy.mutable_data<float>(), 1000, 3.0f);
    const Tensor second = shared(copy);
    EXPECT_EQ(second.raw(), data.data());
    first = Tensor();
    EXPECT_EQ(released, 0);
    EXPECT_NE(range_offset(data.data(), 4000).range, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(range_offset(data.data(), 4000).range, 0);
}

TEST(SharedTensor, ThreadsGetTheSame) {
  constexpr int kThreads = 4, kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Tensor> got(kThreads);
    std::vector<std::thread> threads;
    for (Tensor& t : got) {
      threads.emplace_back([&t, round] { t = shared(numbers({500}, static_cast<float>(round))); });
    }
    for (auto& thread : threads) thread.join();
    for (const Tensor& t : got) EXPECT_EQ(t.raw(), got[0].raw());
  }
}

TEST(SharedTensor, AnAddressIsCopiedOnce) {
  const std::string source(4000, 'x');
  int copies = 0;
  const auto copy = [&](const std::string& from, Dims dims) {
    return shared_copy(ElementType::kUint8, dims, from,
                       [&]() -> Result<Tensor> {
                         ++copies;
                         TREADLE_ASSIGN(Tensor made, Tensor::allocate(ElementType::kUint8, dims));
                         std::memcpy(made.mutable_raw(), from.data(), from.size());
                         return made;
                       })
        .value();
  };
  const SharedRange range(source.data(), source.size());
  {
    const Tensor one = copy(source, {4000}), two = copy(source, {4000});
    EXPECT_EQ(one.raw(), two.raw());
    EXPECT_EQ(copies, 1);
    EXPECT_EQ(copy(source, {40, 100}).rank(), 2);
    EXPECT_EQ(copies, 2);
  }
  EXPECT_EQ(copy(source, {4000}).data<char>()[3999], 'x');
  EXPECT_EQ(copies, 3) << "the earlier copies were freed";
  const std::string elsewhere(4000, 'x');
  copy(elsewhere, {4000});
  EXPECT_EQ(copies, 4);
}

TEST(SharedRange, OnlyWholeBytesInsideArePlaces) {
  alignas(64) std::byte memory[128];
  uint64_t first = 0;
  {
    const SharedRange range(memory, 64);
    first = range_offset(memory, 64).range;
    EXPECT_NE(first, 0);
    EXPECT_EQ(range_offset(memory + 16, 48).offset, 16);
    EXPECT_EQ(range_offset(memory + 16, 49).range, 0);
    EXPECT_EQ(range_offset(memory + 64, 1).range, 0);
    EXPECT_EQ(range_offset(memory, 0).range, 0);
  }
  const SharedRange again(memory, 64);
  EXPECT_NE(range_offset(memory, 64).range, first);
}

}  // namespace
}  // namespace treadle
