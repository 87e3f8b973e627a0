#include "type/shape.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

// Inference can derive sizes of a tensor that no run can make; estimates count at most the allowed number of elements.
TEST(KnownElementCount, EndsAtTheLargestCount) {
  constexpr int64_t kMost = int64_t{1} << 62, kHuge = int64_t{1} << 40;
  EXPECT_EQ(known_element_count(to_shape({2, 3, 4})), 24);
  EXPECT_EQ(known_element_count(to_shape({})), 1);
  EXPECT_EQ(known_element_count(to_shape({kHuge, 0})), 0);
  EXPECT_EQ(known_element_count(to_shape({kHuge, kHuge})), kMost);
  EXPECT_EQ(known_element_count(to_shape({kHuge, kHuge, 0})), kMost);  // its strides would not fit
}

}  // namespace
}  // namespace treadle
