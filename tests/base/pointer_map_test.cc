#include "base/pointer_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <unordered_map>

namespace treadle {
namespace {

TEST(PointerMap, BehavesAsAStandardMap) {
  std::vector<int> objects(300);
  PointerMap<int, int> map;
  std::unordered_map<const int*, int> expected;
  std::mt19937 random(7);
  for (int step = 0; step < 20000; ++step) {
    const int* key = &objects[random() % objects.size()];
    switch (random() % 3) {
      case 0:
        EXPECT_EQ(map.emplace(key, step).second, expected.emplace(key, step).second);
        break;
      case 1:
        map.erase(key);
        expected.erase(key);
        break;
      default: {
        const auto it = expected.find(key);
        const int* found = map.find(key);
        ASSERT_EQ(found != nullptr, it != expected.end());
        if (found) {
          EXPECT_EQ(*found, it->second);
        }
      }
    }
    ASSERT_EQ(map.size(), expected.size());
  }
}

TEST(PointerMap, MovesValuesThatCannotBeCopied) {
  std::vector<int> objects(100);
  PointerMap<int, std::unique_ptr<int>> map;
  for (int& object : objects)
    *map.emplace(&object).first = std::make_unique<int>(static_cast<int>(&object - &objects[0]));
  for (size_t i = 0; i < objects.size(); i += 2) map.erase(&objects[i]);
  for (size_t i = 1; i < objects.size(); i += 2) EXPECT_EQ(**map.find(&objects[i]), static_cast<int>(i));
  EXPECT_EQ(map.find(&objects[0]), nullptr);
}

}  // namespace
}  // namespace treadle
