#pragma once
// How many CPUs the process may use.

#include <optional>
#include <string>
#include <string_view>

namespace treadle {

// The CPUs of the process's affinity mask, or fewer where a cgroup's quota (v1 or v2) allows less, rounded up; at least
// 1. Asked once.
int available_cpus();

// The smallest quota on the way from the process's cgroup to the root, in CPUs, rounded up; 0 where there is none.
// `membership`: contents of /proc/self/cgroup; `mount`: where cgroups are mounted (/sys/fs/cgroup). A container sees
// its own group as the root, whatever `membership` says, so groups that are not there are looked up at the root.
int cgroup_cpus(std::string_view membership, const std::string& mount);

// The number of threads that a text says in the way of OpenMP's variable OMP_NUM_THREADS: a positive number, or a list
// of them by level of nesting ("4,2"), of which the first counts. Nothing for any other text.
std::optional<int> omp_threads(std::string_view text);

}  // namespace treadle
