#pragma once
// Reading a mapped file that has been shortened. The system has no page to give and sends SIGBUS, which would end the
// process. Within watched mappings the missing pages become zeros instead. Code that uses the mapping asks afterwards
// whether that has happened.
//
// The handler is installed when the first mapping is watched, and stays. It takes no lock and allocates nothing. A
// SIGBUS from elsewhere goes to the previous handler, or to the system. A handler that is installed later replaces it,
// and should call it. The environment variable TREADLE_SIGBUS=off turns this off.

#include <cstddef>

namespace treadle::wire {

class WatchedMapping {
 public:
  WatchedMapping() = default;
  // `bytes` bytes from `begin` on, the first byte of a page. Not watched if that is turned off or there is no memory.
  WatchedMapping(const void* begin, size_t bytes);
  ~WatchedMapping();
  WatchedMapping(const WatchedMapping&) = delete;
  WatchedMapping& operator=(const WatchedMapping&) = delete;
  WatchedMapping(WatchedMapping&& other) noexcept;
  WatchedMapping& operator=(WatchedMapping&& other) noexcept;

  // Whether pages were missing, so that zeros were read in their place.
  bool has_holes() const;

 private:
  struct Range* range_ = nullptr;
};

}  // namespace treadle::wire
