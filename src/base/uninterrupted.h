#pragma once
// For work whose results are kept, so that it must not be left half done (packed weights).

#include "base/stop.h"

namespace treadle {

// While it lives, nobody stops the work of its thread.
class Uninterrupted {
 public:
  Uninterrupted() : source_(StopSource::exchange(nullptr)), outside_(outside) { outside = source_; }
  ~Uninterrupted() {
    outside = outside_;
    StopSource::exchange(source_);
  }
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;

 private:
  friend class Interruptible;
  static inline thread_local StopSource* outside = nullptr;

  StopSource* const source_;
  StopSource* const outside_;
};

// While it lives, work inside of an Uninterrupted may be stopped all the same: what it leaves half done is not kept.
class Interruptible {
 public:
  Interruptible() : source_(StopSource::current()) {
    if (!source_) StopSource::exchange(Uninterrupted::outside);
  }
  ~Interruptible() { StopSource::exchange(source_); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  StopSource* const source_;
};

}  // namespace treadle
