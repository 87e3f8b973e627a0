// Data movement against plain loops over indices.

#include "kernels/move.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_test_util.h"

namespace treadle::kernels::testing {
namespace {

using Ints = std::vector<int64_t>;
using Bytes = std::vector<std::byte>;

Bytes numbered(size_t bytes) {
  Bytes memory(bytes);
  std::mt19937 random(1);
  for (std::byte& b : memory) b = static_cast<std::byte>(random());
  return memory;
}

int64_t product(const Ints& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

// Calls f with every index in row-major order.
template <class F>
void each_index(const Ints& dims, F f) {
  if (product(dims) == 0) return;
  Ints index(dims.size(), 0);
  for (;;) {
    f(index);
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

Ints dense_strides(const Ints& dims) {
  Ints strides(dims.size());
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) strides[d] = stride;
  return strides;
}

int64_t dot(const Ints& a, const Ints& b) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void check_copy(size_t width, const Ints& dims, const Ints& in_strides, const Ints& out_strides, size_t in_first,
                size_t in_elements, size_t out_elements) {
  const Bytes in = numbered(in_elements * width);
  Bytes out(out_elements * width, std::byte{0x5a});
  Bytes expected = out;
  each_index(dims, [&](const Ints& index) {
    const auto from = static_cast<int64_t>(in_first) + dot(index, in_strides);
    std::memcpy(expected.data() + dot(index, out_strides) * static_cast<int64_t>(width),
                in.data() + from * static_cast<int64_t>(width), width);
  });
  CopyPlan plan;
  ASSERT_TRUE(prepare_copy(&plan, width, dims, in_strides, out_strides).ok());
  plan(in.data() + in_first * width, out.data());
  ASSERT_EQ(out, expected) << ::testing::PrintToString(dims) << ::testing::PrintToString(in_strides)
                           << ::testing::PrintToString(out_strides) << " width " << width;
}

TEST(Move, RandomStridedCopies) {
  std::mt19937 random(4);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 4000; ++round) {
    const size_t width = size_t{1} << below(5);
    Ints dims(static_cast<size_t>(below(5)));
    for (int64_t& d : dims) d = 1 + below(below(6) == 0 ? 40 : 5);
    const auto strides = [&](bool input, int64_t* first, int64_t* elements) {
      std::vector<size_t> order(dims.size());
      for (size_t d = 0; d < dims.size(); ++d) order[d] = d;
      if (below(2) == 0) std::shuffle(order.begin(), order.end(), random);
      Ints result(dims.size(), 0);
      int64_t stride = below(4) == 0 ? 3 : 1;
      *first = 0;
      for (size_t k = dims.size(); k-- > 0;) {
        const size_t d = order[k];
        if (input && below(6) == 0) continue;  // broadcast
        result[d] = stride;
        if (input && below(6) == 0) {
          result[d] = -stride;
          *first += stride * (dims[d] - 1);
        }
        stride *= dims[d] + (below(5) == 0 ? 1 : 0);
      }
      *elements = stride + 1;
      return result;
    };
    int64_t in_first, out_first, in_elements, out_elements;
    const Ints in = strides(true, &in_first, &in_elements);
    const Ints out = strides(false, &out_first, &out_elements);
    check_copy(width, dims, in, out, static_cast<size_t>(in_first), static_cast<size_t>(in_elements),
               static_cast<size_t>(out_elements));
  }
}

// A transposition, lines of bytes, single elements and one run, each long enough to be cut more than once.
TEST(Move, WhatTakesLongIsDoneInPieces) {
  check_copy(4, {3, 1600, 1500}, {2'400'000, 1, 1600}, {2'400'000, 1500, 1}, 0, 7'200'000, 7'200'000);
  check_copy(4, {1, 2, 3'500'000}, {0, 1, 2}, {0, 3'500'000, 1}, 0, 7'000'000, 7'000'000);
  check_copy(8, {2, 70'000, 80}, {0, 160, 1}, {5'600'000, 80, 1}, 0, 11'200'000, 11'200'000);
  check_copy(16, {6'000'000}, {1}, {1}, 0, 6'000'000, 6'000'000);
}

class MoveTest : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Isas, MoveTest, ::testing::ValuesIn(usable_isas()),
                         [](const auto& chosen) { return std::string(::treadle::name(chosen.param)); });

TEST_P(MoveTest, Transpositions) {
  for (size_t width : {1, 2, 4, 8, 16}) {
    for (const Ints& dims : {Ints{5, 7}, Ints{64, 48}, Ints{2, 3, 4}, Ints{3, 17, 33}, Ints{2, 3, 4, 5}, Ints{40, 3},
                             Ints{3, 41}, Ints{2, 3, 21}, Ints{16, 20}, Ints{21, 50}}) {
      Ints permutation(dims.size());
      for (size_t d = 0; d < dims.size(); ++d) permutation[d] = static_cast<int64_t>(d);
      do {
        Ints out_dims, in_strides;
        const Ints strides = dense_strides(dims);
        for (int64_t p : permutation) {
          out_dims.push_back(dims[static_cast<size_t>(p)]);
          in_strides.push_back(strides[static_cast<size_t>(p)]);
        }
        const Bytes in = numbered(static_cast<size_t>(product(dims)) * width);
        Bytes out(in.size()), expected(in.size());
        const Ints out_strides = dense_strides(out_dims);
        each_index(out_dims, [&](const Ints& index) {
          std::memcpy(expected.data() + static_cast<size_t>(dot(index, out_strides)) * width,
                      in.data() + static_cast<size_t>(dot(index, in_strides)) * width, width);
        });
        CopyPlan plan;
        ASSERT_TRUE(prepare_transpose(&plan, width, dims, permutation).ok());
        plan(in.data(), out.data());
        ASSERT_EQ(out, expected) << ::testing::PrintToString(dims) << ::testing::PrintToString(permutation);
      } while (std::next_permutation(permutation.begin(), permutation.end()));
    }
  }
}

TEST(Move, EmptyCopiesTouchNothing) {
  CopyPlan plan;
  ASSERT_TRUE(prepare_copy(&plan, 4, Ints{3, 0}, Ints{1, 1}, Ints{1, 1}).ok());
  plan(nullptr, nullptr);
}

TEST(Move, TooManyDimensionsAreRefused) {
  Ints dims(kMaxMoveDims + 1, 2), strides(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) strides[d] = int64_t{1} << (2 * d);
  CopyPlan plan;
  EXPECT_EQ(prepare_copy(&plan, 1, dims, strides, strides).code(), Code::kLimit);
}

TEST(Move, Fill) {
  for (size_t width : {1, 2, 4, 8, 16}) {
    const Bytes value = numbered(width);
    Bytes out(37 * width + 1, std::byte{0x5a});
    fill(width, value.data(), out.data(), 37);
    for (size_t i = 0; i < 37; ++i) ASSERT_EQ(std::memcmp(out.data() + i * width, value.data(), width), 0);
    EXPECT_EQ(out.back(), std::byte{0x5a});
  }
}

TEST(Move, Gather) {
  for (size_t bytes : {1, 2, 4, 8, 12, 100}) {
    const int64_t n = 5;
    const Bytes data = numbered(3 * static_cast<size_t>(n) * bytes);
    const std::vector<int64_t> indices = {0, 4, -1, -5, 2, 2};
    const std::vector<int32_t> narrow(indices.begin(), indices.end());
    Bytes out(3 * indices.size() * bytes), again(out.size());
    ASSERT_EQ(gather(data.data(), 3, n, bytes, indices.data(), indices.size(), out.data(), nullptr), kOk);
    ASSERT_EQ(gather(data.data(), 3, n, bytes, narrow.data(), narrow.size(), again.data(), nullptr), kOk);
    EXPECT_EQ(out, again);
    for (size_t o = 0; o < 3; ++o) {
      for (size_t i = 0; i < indices.size(); ++i) {
        const size_t index = static_cast<size_t>(indices[i] < 0 ? indices[i] + n : indices[i]);
        ASSERT_EQ(
            std::memcmp(out.data() + (o * indices.size() + i) * bytes, data.data() + (o * 5 + index) * bytes, bytes),
            0);
      }
    }
    for (int64_t bad :
         {int64_t{5}, int64_t{-6}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
      const int64_t wrong[] = {0, bad};
      size_t position = 99;
      EXPECT_EQ(gather(data.data(), 1, n, bytes, wrong, 2, out.data(), &position), kIndexOutOfRange);
      EXPECT_EQ(position, 1u);
    }
  }
}

// Padding of one axis after the other, on a copy that has been cropped: index arithmetic one step at a time.
int64_t walk_to(PadMode mode, int64_t i, int64_t n) {
  if (mode == PadMode::kEdge) return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == PadMode::kWrap) {
    while (i < 0) i += n;
    while (i >= n) i -= n;
    return i;
  }
  if (n == 1) return 0;
  while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
  return i;
}

TEST(Move, Pad) {
  std::mt19937 random(6);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 3000; ++round) {
    const size_t width = size_t{1} << below(4);
    const PadMode mode = static_cast<PadMode>(below(4));
    Ints dims(static_cast<size_t>(below(5)));
    Ints before(dims.size()), after(dims.size()), out_dims(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      const bool is_long = d + 1 == dims.size() && below(8) == 0;
      dims[d] = 1 + below(is_long ? 90 : 5);
      if (below(2) == 0) {
        before[d] = below(is_long ? 50 : 8);
        after[d] = below(is_long ? 50 : 8);
      }
      if (below(5) == 0) before[d] = -below(dims[d]);
      out_dims[d] = dims[d] + before[d] + after[d];
    }
    const Bytes in = numbered(static_cast<size_t>(product(dims)) * width);
    const Bytes value(width, std::byte{0x7e});
    Bytes expected;
    each_index(out_dims, [&](const Ints& index) {
      int64_t from = 0;
      bool constant = false;
      const Ints strides = dense_strides(dims);
      for (size_t d = 0; d < dims.size(); ++d) {
        const int64_t crop = std::max<int64_t>(-before[d], 0);
        const int64_t n = dims[d] - crop - std::max<int64_t>(-after[d], 0);
        int64_t i = index[d] - std::max<int64_t>(before[d], 0);
        if (mode == PadMode::kConstant) {
          constant |= i < 0 || i >= n;
        } else {
          i = walk_to(mode, i, n);
        }
        from += (i + crop) * strides[d];
      }
      const std::byte* element = constant ? value.data() : in.data() + static_cast<size_t>(from) * width;
      expected.insert(expected.end(), element, element + width);
    });
    PadPlan plan;
    ASSERT_TRUE(prepare_pad(&plan, mode, width, dims, before, after).ok());
    Bytes out(expected.size());
    plan(in.data(), value.data(), out.data());
    ASSERT_EQ(out, expected) << "mode " << static_cast<int>(mode) << ::testing::PrintToString(dims)
                             << ::testing::PrintToString(before) << ::testing::PrintToString(after);
  }
}

TEST(Move, PadRefusals) {
  PadPlan plan;
  EXPECT_EQ(prepare_pad(&plan, PadMode::kConstant, 4, Ints{3}, Ints{-2}, Ints{-2}).code(), Code::kRuntime);
  EXPECT_EQ(prepare_pad(&plan, PadMode::kReflect, 4, Ints{0}, Ints{1}, Ints{0}).code(), Code::kRuntime);
  ASSERT_TRUE(prepare_pad(&plan, PadMode::kConstant, 4, Ints{0}, Ints{1}, Ints{1}).ok());
  const float value = 3;
  float out[2];
  plan(nullptr, &value, out);
  EXPECT_EQ(out[0] + out[1], 6);
}

// About as long as one piece takes. Times of parts are rounded, so the sum of the parts may seem short.
TEST(Move, CopiesThatTakeAboutOnePiece) {
  for (int64_t n = 1; n <= 300; ++n) {
    std::vector<int32_t> in(static_cast<size_t>(3 * n)), out(in.size(), -1);
    std::iota(in.begin(), in.end(), 0);
    CopyPlan plan;
    ASSERT_TRUE(prepare_copy(&plan, 4, Ints{n, 3}, Ints{1, n}, Ints{3, 1}).ok());
    for (const double ns : {kShortNs, std::nextafter(kShortNs, 1e9), kShortNs * 1.001}) {
      plan.ns = ns;
      plan(in.data(), out.data());
      for (int64_t i = 0; i < 3 * n; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], i / 3 + i % 3 * n) << n;
    }
  }
}

}  // namespace
}  // namespace treadle::kernels::testing
