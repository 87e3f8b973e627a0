#pragma once
// How much memory the machine has left for this process.

#include <cstddef>
#include <string>

namespace treadle {

// Bytes that can be used before the system begins to end processes: the machine's available memory, or less if a
// control group of the process allows less. SIZE_MAX if the system does not tell. Reads a few small files.
size_t machine_memory_left();

// For tests: reads the given folders in place of /proc (meminfo, self/cgroup) and /sys/fs/cgroup.
size_t machine_memory_left(const std::string& proc, const std::string& cgroups);

// Resident bytes of this process that are not shared with files.
size_t resident_memory();

}  // namespace treadle
