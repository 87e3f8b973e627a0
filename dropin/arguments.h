// Which pointers a function of the table needs, by the types of its parameters alone. A program that leaves one out
// gets an error instead of a crash.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "abi.h"

namespace treadle::dropin {

template <class P>
using Pointee = std::remove_pointer_t<std::remove_cv_t<P>>;
template <class P, class... Handles>
constexpr bool kIsHandleOf = (std::is_same_v<std::remove_const_t<Pointee<P>>, Handles> || ...);

// The object of the function; in later positions, handles that have no default.
template <class P>
constexpr bool is_needed_handle(size_t position) {
  if (!std::is_pointer_v<P>) return false;
  if (position == 0) return std::is_class_v<std::remove_const_t<Pointee<P>>>;
  return kIsHandleOf<P, OrtValue, OrtIoBinding, OrtTensorTypeAndShapeInfo>;
}

// A place to which the function writes a handle, a text, a list or a number. `sized`: a count, or a place for one,
// follows; then it is an array, and NULL may ask for the count.
template <class P>
constexpr bool is_result(bool sized) {
  if (!std::is_pointer_v<P> || std::is_const_v<Pointee<P>>) return false;
  if (std::is_pointer_v<Pointee<P>>) return true;
  return !sized && (std::is_arithmetic_v<Pointee<P>> || std::is_enum_v<Pointee<P>>);
}

// An array of names, values or buffers. One count follows all such arrays, and no element may be missing.
template <class P>
constexpr bool is_list() {
  return std::is_pointer_v<Pointee<P>> && std::is_const_v<Pointee<P>>;
}

// An array, whose count may follow.
template <class P>
constexpr bool is_array() {
  return !std::is_function_v<Pointee<P>> && !std::is_class_v<std::remove_const_t<Pointee<P>>>;
}

// An argument that is NULL, or has an element that is.
struct Missing {
  size_t position = 0;  // from 1 on; 0: nothing is missing
  bool is_element = false;
  size_t element = 0;

  explicit operator bool() const { return position != 0; }
};

// The positions and values of the counts among a function's arguments.
template <class... Parameters>
struct Counts {
  static constexpr size_t kCount = sizeof...(Parameters);
  static constexpr std::array<bool, kCount> kIsCount = {std::is_same_v<Parameters, size_t>...};
  static constexpr std::array<bool, kCount> kIsPlaceOfCount = {std::is_same_v<Parameters, size_t*>...};
  std::array<size_t, kCount> values{};

  explicit Counts(const Parameters&... arguments) {
    size_t i = 0;
    const auto note = [&](const auto& argument) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(argument)>, size_t>) values[i] = argument;
      ++i;
    };
    (note(arguments), ...);
  }
  // Whether argument `at` is an array whose length is the next argument, or is returned there.
  static constexpr bool is_sized(size_t at) { return at + 1 < kCount && (kIsCount[at + 1] || kIsPlaceOfCount[at + 1]); }
  // The argument that counts the elements of argument `at`; kCount: none.
  static constexpr size_t of(size_t at, bool list) {
    size_t count = at + 1;
    while (list && count < kCount && !kIsCount[count]) ++count;
    return count < kCount && kIsCount[count] ? count : kCount;
  }
};

// The first argument, or element of an argument, that is missing. An empty array may be NULL. `kOptional`: bits of
// arguments, counted from 1 on, that may be NULL.
template <unsigned kOptional, class... Parameters>
Missing missing_argument(const Parameters&... arguments) {
  using Of = Counts<Parameters...>;
  const Of counts(arguments...);
  Missing missing;
  size_t at = 0;
  const auto look = [&](const auto& argument) {
    using P = std::remove_cvref_t<decltype(argument)>;
    const size_t here = at++;
    if constexpr (std::is_pointer_v<P>) {
      if (missing) return;
      const size_t counted = Of::of(here, is_list<P>());
      const bool array = counted < Of::kCount;
      const size_t elements = array ? counts.values[counted] : 0;
      const bool needed = is_needed_handle<P>(here) || std::is_same_v<P, const char*> ||
                          (array ? elements > 0 && is_array<P>() : is_result<P>(Of::is_sized(here)));
      const bool optional = kOptional >> (here + 1) & 1;
      if (needed && !optional && !argument) missing = {here + 1};
      if constexpr (is_list<P>()) {
        for (size_t i = 0; argument && i < elements && !missing; ++i) {
          if (!argument[i]) missing = {here + 1, true, i};
        }
      }
    }
  };
  (look(arguments), ...);
  return missing;
}

// "argument 2 (OrtValue*) is NULL". `types`: those of all parameters, separated by commas.
inline std::string say_missing(std::string_view types, const Missing& missing) {
  for (size_t i = 1; i < missing.position; ++i) types.remove_prefix(types.find(',') + 1);
  types = types.substr(0, types.find(','));
  types.remove_prefix(types.find_first_not_of(' '));
  const std::string element = missing.is_element ? "element " + std::to_string(missing.element) + " of " : "";
  return element + "argument " + std::to_string(missing.position) + " (" + std::string(types) + ") is NULL";
}

}  // namespace treadle::dropin
