// The processor's report of its caches.
#include "base/caches.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(Caches, GrowByLevel) {
  const Caches& found = caches();
  EXPECT_GE(found.first, size_t{4} << 10);
  EXPECT_LE(found.first, size_t{1} << 20);
  EXPECT_GT(found.second, found.first);
  EXPECT_GT(found.third, found.first);
}

}  // namespace
}  // namespace treadle
