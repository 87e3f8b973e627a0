#pragma once
// The number of CPUs that the process may use.

#include <optional>
#include <string>
#include <string_view>

namespace treadle {

// The CPUs of the process's affinity mask, or fewer if a cgroup's quota (v1 or v2) allows less, rounded up; at least 1.
// Read once.
int available_cpus();

// The smallest quota on the path from the process's cgroup to the root, in CPUs, rounded up; 0 if there is none.
// `membership`: contents of /proc/self/cgroup; `mount`: where cgroups are mounted (/sys/fs/cgroup). A container sees
// its own group as the root, whatever `membership` says, so a group that does not exist is looked up at the root.
int cgroup_cpus(std::string_view membership, const std::string& mount);

// Parses a value of OMP_NUM_THREADS: a positive number, or a list with a number for each level of nesting ("4,2"),
// whose first number counts. Nothing for any other text.
std::optional<int> omp_threads(std::string_view text);

}  // namespace treadle
