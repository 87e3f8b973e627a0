#pragma once
// A choice that holds for the whole process, as an environment variable makes it, and that a test makes otherwise for
// its own thread.

#include <optional>

namespace treadle {

// While an object lives, its thread has the choice `value`; the innermost object counts. Choice::of_process() gives
// the choice of a thread without one.
template <class Choice>
class ScopedChoice {
 public:
  using Value = typename Choice::Value;

  explicit ScopedChoice(Value value) : before_(of_thread_) { of_thread_ = value; }
  ~ScopedChoice() { of_thread_ = before_; }
  ScopedChoice(const ScopedChoice&) = delete;
  ScopedChoice& operator=(const ScopedChoice&) = delete;

  static Value current() { return of_thread_ ? *of_thread_ : Choice::of_process(); }

 private:
  inline static constinit thread_local std::optional<Value> of_thread_;

  std::optional<Value> before_;
};

}  // namespace treadle
