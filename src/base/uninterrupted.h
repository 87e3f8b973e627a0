#pragma once
// For native code: its results are kept, and no caller checks whether they are half done.

#include "base/stop.h"

namespace treadle {

// While it lives, nobody stops the work of its thread.
class Uninterrupted {
 public:
  Uninterrupted() : source_(StopSource::exchange(nullptr)) {}
  ~Uninterrupted() { StopSource::exchange(source_); }
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;

 private:
  StopSource* const source_;
};

}  // namespace treadle
