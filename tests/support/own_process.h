#pragma once
// A test that runs in a process of its own.

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace treadle::test {

// Continues this process as one that only runs the test `name` ("Suite.Test").
[[noreturn]] inline void become_test(const std::string& name) {
  // This process may be one of several that share the tests; the test must not go to another.
  for (const char* share : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(share);
  const std::string filter = "--gtest_filter=" + name;
  execl("/proc/self/exe", "treadle_tests", filter.c_str(), nullptr);
  _exit(99);
}

}  // namespace treadle::test
