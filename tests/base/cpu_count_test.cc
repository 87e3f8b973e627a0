#include "base/cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <climits>

#include "support/temp_dir.h"

namespace treadle {
namespace {

TEST(CgroupCpus, RoundsAQuotaOfVersion2Up) {
  TempDir dir;
  dir.write("job/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/job\n", dir.path()), 2);
}

TEST(CgroupCpus, AGroupWithoutAQuotaHasNone) {
  TempDir dir;
  dir.write("job/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/job\n", dir.path()), 0);
  EXPECT_EQ(cgroup_cpus("", dir.path()), 0);
  EXPECT_EQ(cgroup_cpus("nonsense\n1:cpu\n", dir.path()), 0);
}

TEST(CgroupCpus, TheSmallestQuotaOnTheWayUpCounts) {
  TempDir dir;
  dir.write("a/cpu.max", "300000 100000\n");
  dir.write("a/b/cpu.max", "700000 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/a/b\n", dir.path()), 3);
}

TEST(CgroupCpus, AContainerSeesItsGroupAtTheRoot) {
  TempDir dir;
  dir.write("cpu.max", "100000 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/not/to/be/seen/in/here\n", dir.path()), 1);
}

TEST(CgroupCpus, ReadsVersion1) {
  TempDir dir;
  dir.write("cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  dir.write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus("5:memory:/job\n4:cpu,cpuacct:/job\n", dir.path()), 3);
  dir.write("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cgroup_cpus("4:cpu,cpuacct:/job\n", dir.path()), 0);
  EXPECT_EQ(cgroup_cpus("4:cpuset:/job\n", dir.path()), 0);
}

TEST(OmpThreads, ReadsANumberOrTheFirstOfAList) {
  EXPECT_EQ(omp_threads("3"), 3);
  EXPECT_EQ(omp_threads(" 4 , 2,1 "), 4);
  EXPECT_EQ(omp_threads("99999999999"), INT_MAX);
}

TEST(OmpThreads, ReadsNothingElse) {
  for (const char* text : {"", "0", "-2", "two", "2,", ",2", "2 2", "2,x", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(omp_threads(text), std::nullopt) << text;
  }
}

TEST(AvailableCpus, AreNoMoreThanTheAffinityMaskAllows) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  EXPECT_GE(available_cpus(), 1);
  EXPECT_LE(available_cpus(), CPU_COUNT(&mask));
}

}  // namespace
}  // namespace treadle
