#pragma once
// Memory that a call works in, kept by its thread from one call to the next, so that repeated calls allocate nothing.

#include <memory>

namespace treadle {

// One T per thread, which has a clear() that keeps its memory. A call that is made while another of the same thread has
// it (from a callback) makes one of its own.
template <class T>
class ThreadScratch {
 public:
  ThreadScratch() : object_(std::move(kept())) {
    if (!object_) object_ = std::make_unique<T>();
  }
  ~ThreadScratch() {
    object_->clear();
    kept() = std::move(object_);
  }
  ThreadScratch(const ThreadScratch&) = delete;
  ThreadScratch& operator=(const ThreadScratch&) = delete;

  T* operator->() { return object_.get(); }
  T& operator*() { return *object_; }

 private:
  static std::unique_ptr<T>& kept() {
    thread_local std::unique_ptr<T> object;
    return object;
  }

  std::unique_ptr<T> object_;
};

}  // namespace treadle
