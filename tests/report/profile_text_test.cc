// The table of a profile at several widths, with made-up times.
#include <gtest/gtest.h>

#include <sstream>

#include "report/profile.h"

namespace treadle::report {
namespace {

ProfileTimes times() {
  ProfileTimes made;
  NodeTime product;
  product.node = "/encoder/layers.0/self_attention/feed_forward/intermediate/dense/MatMul";
  product.op = "MatMul";
  product.method = "implicit-gemm";
  product.loop = "/encoder/Loop";
  product.count = 300;
  product.ns = 6e6;
  product.least_ns = 5.5e6;
  product.most_ns = 9e6;
  NodeTime sum;
  sum.node = "/Add_1";
  sum.op = "Add+Tanh";
  sum.count = 1;
  sum.ns = sum.least_ns = 3e6;
  sum.most_ns = 3.1e6;
  NodeTime glue;
  glue.loop = "/encoder/Loop";
  glue.is_glue = true;
  glue.count = 900;
  glue.ns = 1e6;
  glue.least_ns = 9e5;
  glue.most_ns = 2e6;
  made.nodes = {product, sum, glue};
  made.total_ns = 10e6;
  made.fastest_ns = 9.5e6;
  made.slowest_ns = 12e6;
  made.runs = 10;
  made.interrupted_runs = 2;
  made.interrupted_ns = 4e6;
  return made;
}

TEST(ProfileText, FitsTheTerminal) {
  EXPECT_EQ(table_text(times(), {.width = 100}),
            R"(10 ms a run: each node's median of 10 runs (whole runs took 9.5 ms to 12 ms)
2 of 10 runs were interrupted, for up to 4 ms: left out of the nodes' times
What looking at the clock takes is taken off.

         share    time fastest slowest   times    each  node
████▊     60 %    6 ms  5.5 ms    9 ms     300   20 us  MatMul by implicit-gemm /encod…/dense/MatMul
██▍       30 %    3 ms    3 ms  3.1 ms       1    3 ms  Add+Tanh /Add_1
▊         10 %    1 ms  900 us    2 ms     900 1.11 us  copies, jumps, back edges /encoder/Loop
         100 %   10 ms  a run
)");
  const std::string narrow = table_text(times(), {.width = 60, .utf8 = false});
  EXPECT_NE(narrow.find("\n share    time  node\n  60 %    6 ms  MatMul by implicit-gemm /enco.../MatMul\n"),
            std::string::npos)
      << narrow;
}

TEST(ProfileText, IsNeverWiderThanItsLines) {
  for (const size_t width : {40, 59, 60, 79, 80, 99, 100, 130, 200}) {
    for (const bool utf8 : {true, false}) {
      std::istringstream lines(table_text(times(), {.width = width, .utf8 = utf8}));
      for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), width) << line;
    }
  }
}

}  // namespace
}  // namespace treadle::report
