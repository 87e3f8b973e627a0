#pragma once
// How much memory the machine has left for this process.

#include <cstddef>
#include <string>

namespace treadle {

// Bytes that can still be used before the system begins to end processes: what the machine has available, or less where
// a control group of the process grants less. SIZE_MAX where the system does not tell. Reads a few small files.
size_t machine_memory_left();

// The same from other files, for tests: a folder that has the files of /proc (meminfo, self/cgroup), and one with those
// of /sys/fs/cgroup.
size_t machine_memory_left(const std::string& proc, const std::string& cgroups);

// Bytes of this process that lie in memory and belong to nothing else.
size_t resident_memory();

}  // namespace treadle
