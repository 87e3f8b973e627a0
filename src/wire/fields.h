#pragma once
// Whether a number is present in a message, and the fields that the message's struct does not name. With both, a
// message is written back as it was read.
//
// A text needs no wrapper: a std::string_view without data() is absent, one with data() and size 0 is present and
// empty.

#include <string_view>

#include "wire/list.h"

namespace treadle::wire {

// A singular number. Zero if absent.
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
  // `field` points into the file. A field directly behind the last one is joined with it.
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
