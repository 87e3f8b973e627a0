#pragma once
// For work whose results are kept and that nobody checks for being half done (native code).

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
