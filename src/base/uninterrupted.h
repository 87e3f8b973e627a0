#pragma once
// For results that are kept for later and that no code checks for being half made.

#include "base/stop.h"

namespace treadle {

// While it lives, the work of its thread cannot be stopped.
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
