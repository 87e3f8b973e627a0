#include "base/stop.h"

namespace treadle {

namespace {

thread_local StopSource* current_source = nullptr;

}  // namespace

StopSource* StopSource::current() {
  return current_source;
}

StopSource* StopSource::exchange(StopSource* source) {
  return std::exchange(current_source, source);
}

bool stop_requested() {
  return current_source && current_source->requested();
}

Status stopped() {
  return error(Code::kCancelled, "the work was stopped");
}

}  // namespace treadle
