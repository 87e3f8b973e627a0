#include "base/shared_range.h"

#include <functional>
#include <map>
#include <mutex>

#include "base/no_fork.h"

namespace treadle {

namespace {

struct Registered {
  const std::byte* begin;
  uint64_t number;
};

class Ranges {
 public:
  // False if another range ends at the same address.
  bool add(const std::byte* begin, const std::byte* end) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    return by_end_.emplace(end, Registered{begin, ++last_}).second;
  }
  void remove(const std::byte* end) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    by_end_.erase(end);
  }
  RangeOffset find(const std::byte* begin, const std::byte* end) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    const auto it = by_end_.lower_bound(end);
    if (it == by_end_.end() || begin < it->second.begin) return {};
    return {it->second.number, static_cast<uint64_t>(begin - it->second.begin)};
  }

 private:
  std::mutex mutex_;
  std::map<const std::byte*, Registered, std::less<>> by_end_;
  uint64_t last_ = 0;
};

Ranges& ranges() {
  static auto* const made = new Ranges;  // never destroyed, as memory may be freed after all static objects
  return *made;
}

}  // namespace

SharedRange::SharedRange(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  if (bytes > 0 && ranges().add(begin, begin + bytes)) end_ = begin + bytes;
}

SharedRange::~SharedRange() {
  if (end_) ranges().remove(end_);
}

RangeOffset range_offset(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  return bytes == 0 ? RangeOffset() : ranges().find(begin, begin + bytes);
}

}  // namespace treadle
