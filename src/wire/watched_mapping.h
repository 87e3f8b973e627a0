#pragma once
// What becomes of a mapped file that shrinks while it is read: the system has no page to give and sends SIGBUS, which
// would end the process. Within watched mappings the missing pages become zeros instead, and whoever uses the mapping
// asks afterwards whether that has happened.
//
// The handler is installed when the first mapping is watched and stays. It takes no lock and asks for no memory; it
// does nothing with a SIGBUS from elsewhere but hand it to the handler that was there before, or to the system. A
// handler that is installed later takes its place, and should hand on in turn. The environment variable
// TREADLE_SIGBUS=off leaves the signal alone.

#include <cstddef>

namespace treadle::wire {

class WatchedMapping {
 public:
  WatchedMapping() = default;
  // Of `bytes` bytes at `begin`, the first of a page. Not watched where that is turned off or there is no memory.
  WatchedMapping(const void* begin, size_t bytes);
  ~WatchedMapping();
  WatchedMapping(const WatchedMapping&) = delete;
  WatchedMapping& operator=(const WatchedMapping&) = delete;
  WatchedMapping(WatchedMapping&& other) noexcept;
  WatchedMapping& operator=(WatchedMapping&& other) noexcept;

  // Whether pages were missing, so that zeros have been read in their place.
  bool has_holes() const;

 private:
  struct Range* range_ = nullptr;
};

}  // namespace treadle::wire
