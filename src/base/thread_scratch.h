#pragma once
// Scratch memory of a call that its thread keeps for the next call, so that repeated calls allocate nothing.

#include <pthread.h>

#include <memory>
#include <optional>
#include <utility>

namespace treadle {

// One T per thread; T::clear() keeps its memory. A call within another call on the same thread (from a callback) makes
// a T of its own.
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
  // The object of one thread. A thread-local variable with a destructor would not do: the C library ends the process if
  // it has no memory to register the destructor.
  struct Place {
    T* object = nullptr;
    bool is_emptied_at_the_end = false;
  };

  // Puts an object into the thread's place, and returns the one that was there. Returns `object` itself if the thread
  // has no place.
  static std::unique_ptr<T> exchange(std::unique_ptr<T> object) {
    thread_local constinit Place place;
    if (!place.is_emptied_at_the_end && !empty_at_the_end(place)) return object;
    return std::unique_ptr<T>(std::exchange(place.object, object.release()));
  }

  static bool empty_at_the_end(Place& place) {
    static const std::optional<pthread_key_t> key = [] {
      pthread_key_t made{};
      const int failed = pthread_key_create(&made, [](void* ended) {
        const Place last = std::exchange(*static_cast<Place*>(ended), {});
        delete last.object;
      });
      return failed ? std::nullopt : std::optional(made);
    }();
    return place.is_emptied_at_the_end = key && pthread_setspecific(*key, &place) == 0;
  }

  std::unique_ptr<T> object_;
};

}  // namespace treadle
