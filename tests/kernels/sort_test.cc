#include "kernels/sort.h"

#include <numeric>
#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "gtest/gtest.h"

namespace treadle::kernels {
namespace {

using Items = std::vector<int64_t>;

// Positions, ordered by `keys`, and by themselves if keys are equal.
auto by_key(const Items& keys) {
  return [&keys](int64_t a, int64_t b) {
    const int64_t x = keys[static_cast<size_t>(a)], y = keys[static_cast<size_t>(b)];
    return x != y ? x < y : a < b;
  };
}

Items numbers(size_t count) {
  Items items(count);
  std::iota(items.begin(), items.end(), int64_t{0});
  return items;
}

// Orders for which quicksort is slow with a bad pivot, and random ones.
std::vector<Items> orders(size_t count) {
  std::mt19937 random(static_cast<uint32_t>(count));
  Items up = numbers(count), down(up.rbegin(), up.rend()), equal(count, 7), few(count), any(count), hills(count);
  for (size_t i = 0; i < count; ++i) {
    few[i] = static_cast<int64_t>(random() % 3);
    any[i] = static_cast<int64_t>(random());
    hills[i] = static_cast<int64_t>(std::min(i, count - i));
  }
  return {up, down, equal, few, any, hills};
}

constexpr size_t kCounts[] = {0, 1, 2, 15, 16, 17, 100, 5000, 300'000};
// The comparison is so slow that even short lists are sorted in parts.
constexpr double kSlowNs = 1e4;

TEST(Sort, AsStdSort) {
  for (const size_t count : kCounts) {
    for (const Items& keys : orders(count)) {
      for (const double compare_ns : {costs::kComparisonNs, kSlowNs}) {
        Items items = numbers(count), expected = items;
        std::sort(expected.begin(), expected.end(), by_key(keys));
        ASSERT_TRUE(sort(items.data(), static_cast<int64_t>(count), by_key(keys), compare_ns));
        ASSERT_EQ(items, expected) << count;
      }
    }
  }
}

TEST(Select, TheFirstOnesInAnyOrder) {
  for (const size_t count : kCounts) {
    for (const Items& keys : orders(count)) {
      for (const size_t k : {size_t{0}, count / 100, count / 2, count}) {
        Items items = numbers(count), expected = items;
        std::sort(expected.begin(), expected.end(), by_key(keys));
        ASSERT_TRUE(select(items.data(), static_cast<int64_t>(count), static_cast<int64_t>(k), by_key(keys), kSlowNs));
        std::sort(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(k), by_key(keys));
        items.resize(k);
        expected.resize(k);
        ASSERT_EQ(items, expected) << count << " " << k;
      }
    }
  }
}

TEST(Sort, StopsWhenItIsTold) {
  for (const Items& keys : orders(1'000'000)) {
    int64_t compared = 0;
    const auto before = [&](int64_t a, int64_t b) {
      ++compared;
      return by_key(keys)(a, b);
    };
    const ThreadScope scope(1, {[](const void*) { return true; }, nullptr});
    Items items = numbers(keys.size());
    EXPECT_FALSE(sort(items.data(), static_cast<int64_t>(items.size()), before));
    EXPECT_FALSE(select(items.data(), static_cast<int64_t>(items.size()), 500'000, before));
    EXPECT_LT(compared, 4 * kStopCheckNs / costs::kComparisonNs);
  }
}

}  // namespace
}  // namespace treadle::kernels
