#pragma once
// A test that runs in a process of its own.

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace treadle::test {

// This process goes on as one that runs the test `name` ("Suite.Test") alone.
[[noreturn]] inline void become_test(const std::string& name) {
  // This may be one of several processes that share the tests; the test is not to go to another one.
  for (const char* share : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(share);
  const std::string filter = "--gtest_filter=" + name;
  execl("/proc/self/exe", "treadle_tests", filter.c_str(), nullptr);
  _exit(99);
}

}  // namespace treadle::test
