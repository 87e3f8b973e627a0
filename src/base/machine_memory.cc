#include "base/machine_memory.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

#if defined(__linux__)
#include <unistd.h>
#endif

namespace treadle {

namespace {

constexpr size_t kMostRead = size_t{1} << 14;

// The contents of a small system file; empty if it cannot be read.
std::string contents(const std::string& path) {
  std::string text(kMostRead, '\0');
  size_t read = 0;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    read = std::fread(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  text.resize(read);
  return text;
}

// The number after `key`, which begins a line; with an empty key the first word. None for "max", or without such a
// line.
std::optional<size_t> number(std::string_view text, std::string_view key) {
  while (!text.starts_with(key)) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text.remove_prefix(key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return {};
  return value;
}

// The memory left to one group: its limit less its usage. Usage excludes what the system can reclaim at once (cached
// files).
size_t left_in(const std::string& folder, const char* limit_file, const char* usage_file, const char* reclaimable) {
  const auto limit = number(contents(folder + limit_file), ""), usage = number(contents(folder + usage_file), "");
  if (!limit || !usage) return SIZE_MAX;
  const size_t files = number(contents(folder + "/memory.stat"), reclaimable).value_or(0);
  const size_t used = *usage - std::min(files, *usage);
  return *limit - std::min(used, *limit);
}

// Groups are nested, and each limits all groups inside. In a container, the process's path may begin above the mounted
// folder; then the mounted folder itself is the process's group.
size_t left_in_groups(const std::string& root, std::string_view path, const char* limit_file, const char* usage_file,
                      const char* reclaimable) {
  size_t left = left_in(root, limit_file, usage_file, reclaimable);
  while (path.size() > 1) {
    left = std::min(left, left_in(root + std::string(path), limit_file, usage_file, reclaimable));
    path = path.substr(0, path.rfind('/'));
  }
  return left;
}

}  // namespace

size_t machine_memory_left(const std::string& proc, const std::string& cgroups) {
  size_t left = SIZE_MAX;
  if (const auto kilobytes = number(contents(proc + "/meminfo"), "MemAvailable:")) left = *kilobytes << 10;
  // One line for each hierarchy: "0::/path" in version 2, "4:memory:/path" in version 1.
  const std::string groups = contents(proc + "/self/cgroup");
  for (std::string_view rest = groups; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with("0::")) {
      left =
          std::min(left, left_in_groups(cgroups, line.substr(3), "/memory.max", "/memory.current", "inactive_file "));
    } else if (const size_t at = line.find(":memory:"); at != std::string_view::npos) {
      left = std::min(left, left_in_groups(cgroups + "/memory", line.substr(at + 8), "/memory.limit_in_bytes",
                                           "/memory.usage_in_bytes", "total_inactive_file "));
    }
  }
  return left;
}

size_t machine_memory_left() {
#if defined(__linux__)
  return machine_memory_left("/proc", "/sys/fs/cgroup");
#else
  return SIZE_MAX;
#endif
}

size_t resident_memory() {
#if defined(__linux__)
  // In pages: the whole program, its resident part, and the part of that which is shared with files.
  unsigned long long program = 0, resident = 0, shared = 0;
  if (std::sscanf(contents("/proc/self/statm").c_str(), "%llu %llu %llu", &program, &resident, &shared) != 3) return 0;
  return static_cast<size_t>(resident - std::min(shared, resident)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
#else
  return 0;
#endif
}

}  // namespace treadle
