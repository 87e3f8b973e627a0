#pragma once
// Lists of numbers that are left uninitialised. A CountedVector would write zeros to all of a long list, and could not
// ask meanwhile whether to stop.

#include <memory>
#include <type_traits>
#include <utility>

#include "base/counted.h"

namespace treadle {

template <class T>
class UnsetAllocator : public CountedAllocator<T> {
  static_assert(std::is_trivial_v<T>);

 public:
  template <class U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };
  UnsetAllocator() = default;
  template <class U>
  UnsetAllocator(const UnsetAllocator<U>&) {}

  // Leaves a number uninitialised.
  void construct(T*) noexcept {}
  template <class... Args>
  void construct(T* at, Args&&... args) {
    std::construct_at(at, std::forward<Args>(args)...);
  }
};

template <class T>
using UnsetVector = std::vector<T, UnsetAllocator<T>>;

}  // namespace treadle
