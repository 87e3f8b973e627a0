#pragma once
// Handles that only one thread at a time may change. A call from another thread fails with TREADLE_BUSY.

#include "api/handles.h"

namespace treadle::api {

// Holds the `busy` flag of a handle, if it was free.
template <class Handle>
class BusyLock {
 public:
  explicit BusyLock(Handle* handle) : handle_(handle) {
    taken_ = handle_ && !handle_->busy.exchange(true, std::memory_order_acquire);
  }
  ~BusyLock() {
    if (taken_) handle_->busy.store(false, std::memory_order_release);
  }
  BusyLock(const BusyLock&) = delete;
  BusyLock& operator=(const BusyLock&) = delete;
  bool is_refused() const { return handle_ && !taken_; }

 private:
  Handle* handle_;
  bool taken_ = false;
};

// Calls `body` with the contents of the handle, to change them. `name`: the argument's name.
template <class Handle, class Held, class Body>
treadle_status* with_lock(const char* name, Handle* handle, Held Handle::* held, Body&& body) {
  const BusyLock lock(handle);
  if (lock.is_refused()) return busy();
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{name, handle}}));
    return body(handle->*held);
  });
}

}  // namespace treadle::api
