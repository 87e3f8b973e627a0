#pragma once
// Memory that a call works in, kept by its thread from one call to the next, so that repeated calls allocate nothing.

#include <pthread.h>

#include <memory>
#include <optional>

namespace treadle {

// One T per thread, which has a clear() that keeps its memory. A call that is made while another of the same thread has
// it (from a callback) makes one of its own.
template <class T>
class ThreadScratch {
 public:
  ThreadScratch() : object_(exchange(nullptr)) {
    if (!object_) object_ = std::make_unique<T>();
  }
  ~ThreadScratch() {
    object_->clear();
    object_ = exchange(std::move(object_));
  }
  ThreadScratch(const ThreadScratch&) = delete;
  ThreadScratch& operator=(const ThreadScratch&) = delete;

  T* operator->() { return object_.get(); }
  T& operator*() { return *object_; }

 private:
  // Puts an object into the thread's place and returns the one from there, or the same where there is no place for it.
  // Not a variable that is thread_local: where there is no memory to note its destructor, the C library ends the
  // process.
  static std::unique_ptr<T> exchange(std::unique_ptr<T> object) {
    static const std::optional<pthread_key_t> key = [] {
      pthread_key_t made{};
      const int failed = pthread_key_create(&made, [](void* kept) { delete static_cast<T*>(kept); });
      return failed ? std::nullopt : std::optional(made);
    }();
    if (!key) return object;
    std::unique_ptr<T> before(static_cast<T*>(pthread_getspecific(*key)));
    if (pthread_setspecific(*key, object.get()) != 0) return object;
    [[maybe_unused]] const T* const kept = object.release();  // by the place
    return before;
  }

  std::unique_ptr<T> object_;
};

}  // namespace treadle
