#pragma once
// What a message has beside its values: whether a number was there, and the fields that its struct does not name. With
// both, a message that was read is written back as it was.
//
// A text needs no such wrapper: a std::string_view without data() is absent, one of size 0 with data() is there.

#include <string_view>

#include "wire/list.h"

namespace treadle::wire {

// A singular number. Zero when absent.
template <class T>
class Field {
 public:
  constexpr Field() = default;
  constexpr Field(T value) : value_(value), present_(true) {}  // NOLINT(google-explicit-constructor)
  constexpr operator T() const { return value_; }              // NOLINT(google-explicit-constructor)
  constexpr T get() const { return value_; }
  constexpr bool present() const { return present_; }

 private:
  T value_ = 0;
  bool present_ = false;
};

// Fields with tag and value, in the order of the file.
class UnknownFields {
 public:
  bool empty() const { return runs_.empty(); }
  // `field` points into the file; one that follows the last is joined with it.
  void add(Arena& arena, std::string_view field) {
    if (!runs_.empty() && runs_.back().end() == field.begin()) {
      runs_.back() = {runs_.back().data(), runs_.back().size() + field.size()};
    } else {
      runs_.add(arena, field);
    }
  }
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const std::string_view run : runs_) fn(run);
  }

 private:
  List<std::string_view> runs_;
};

}  // namespace treadle::wire
