#include "base/cpu_count.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace treadle {

namespace {

std::optional<std::string> read_small_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) return std::nullopt;
  std::string text(1 << 14, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

// Removes a number from the front of `text`. Nothing for "max" and other words.
std::optional<int64_t> take_number(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

int to_cpus(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((*quota - 1) / *period + 1, INT_MAX));
}

// The quota of one group itself: "max 100000" or "150000 100000" in version 2, two files in version 1.
int quota_of(const std::string& folder, bool version2) {
  if (version2) {
    const auto text = read_small_file(folder + "/cpu.max");
    if (!text) return 0;
    std::string_view rest = *text;
    const auto quota = take_number(rest);
    return to_cpus(quota, take_number(rest));
  }
  const auto quota = read_small_file(folder + "/cpu.cfs_quota_us");
  const auto period = read_small_file(folder + "/cpu.cfs_period_us");
  if (!quota || !period) return 0;
  std::string_view quota_text = *quota, period_text = *period;
  return to_cpus(take_number(quota_text), take_number(period_text));
}

int smallest_quota(const std::string& mount, std::string group, bool version2) {
  int smallest = 0;
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    if (const int cpus = quota_of(mount + group, version2)) smallest = smallest ? std::min(smallest, cpus) : cpus;
    if (group.empty()) return smallest;
    const size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
  }
}

// Whether the list, such as "cpu,cpuacct", holds "cpu".
bool names_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    controllers.remove_prefix(comma == std::string_view::npos ? controllers.size() : comma + 1);
  }
  return false;
}

int affinity_cpus() {
#ifdef __linux__
  // A machine with more CPUs than cpu_set_t has room for needs a larger mask.
  for (int room = 1024; room <= 1 << 20; room *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(CPU_ALLOC(static_cast<size_t>(room)),
                                                                [](cpu_set_t* set) { CPU_FREE(set); });
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(room));
    if (mask && sched_getaffinity(0, bytes, mask.get()) == 0) return std::max(CPU_COUNT_S(bytes, mask.get()), 1);
  }
#endif
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

}  // namespace

int cgroup_cpus(std::string_view membership, const std::string& mount) {
  int smallest = 0;
  auto consider = [&](int cpus) {
    if (cpus > 0) smallest = smallest ? std::min(smallest, cpus) : cpus;
  };
  // Lines are "number:controllers:path"; version 2 is number 0 without controllers.
  while (!membership.empty()) {
    const size_t end = membership.find('\n');
    const std::string_view line = membership.substr(0, end);
    membership.remove_prefix(end == std::string_view::npos ? membership.size() : end + 1);
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string group(line.substr(second + 1));
    if (controllers.empty()) {
      consider(smallest_quota(mount, group, true));
      consider(smallest_quota(mount + "/unified", group, true));
    } else if (names_cpu(controllers)) {
      consider(smallest_quota(mount + "/" + std::string(controllers), group, false));
      consider(smallest_quota(mount + "/cpu", group, false));
    }
  }
  return smallest;
}

std::optional<int> omp_threads(std::string_view text) {
  std::optional<int64_t> first;
  for (bool more = true; more;) {
    const auto number = take_number(text);
    if (!number || *number < 1) return std::nullopt;
    if (!first) first = number;
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    more = !text.empty();
    if (more && text.front() != ',') return std::nullopt;
    if (more) text.remove_prefix(1);
  }
  return static_cast<int>(std::min<int64_t>(*first, INT_MAX));
}

int available_cpus() {
  static const int cpus = [] {
    const int allowed = affinity_cpus();
    const auto membership = read_small_file("/proc/self/cgroup");
    const int quota = membership ? cgroup_cpus(*membership, "/sys/fs/cgroup") : 0;
    return quota > 0 ? std::min(allowed, quota) : allowed;
  }();
  return cpus;
}

}  // namespace treadle
