// Which pointers a function of the table cannot do without, by the types of its parameters alone: a program that leaves
// one out is told so, and does not crash.
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

// What the function is called on; behind it, handles that have no default.
template <class P>
constexpr bool is_needed_handle(size_t position) {
  if (!std::is_pointer_v<P>) return false;
  if (position == 0) return std::is_class_v<std::remove_const_t<Pointee<P>>>;
  return kIsHandleOf<P, OrtValue, OrtIoBinding, OrtTensorTypeAndShapeInfo>;
}

// A place for a handle, a text or a list; behind all other parameters, for a number as well.
template <class P>
constexpr bool is_result(bool last) {
  if (!std::is_pointer_v<P> || std::is_const_v<Pointee<P>>) return false;
  if (std::is_pointer_v<Pointee<P>>) return true;
  return last && (std::is_arithmetic_v<Pointee<P>> || std::is_enum_v<Pointee<P>>);
}

// Of names or values, for which there is one number behind all such lists.
template <class P>
constexpr bool is_list() {
  return std::is_pointer_v<Pointee<P>> && std::is_const_v<Pointee<P>>;
}

// What a number of elements may follow.
template <class P>
constexpr bool is_array() {
  return !std::is_function_v<Pointee<P>> && !std::is_class_v<std::remove_const_t<Pointee<P>>>;
}

// The position, from 1 on, of the first argument that is missing; 0: none is. An array may be missing where it is
// empty. `kOptional`: bits of the arguments, counted likewise, that may be.
template <unsigned kOptional, class... Parameters>
size_t missing_argument(const Parameters&... arguments) {
  constexpr size_t kCount = sizeof...(Parameters);
  constexpr std::array<bool, kCount> kIsCount = {std::is_same_v<Parameters, size_t>...};
  std::array<size_t, kCount> counts{};
  size_t i = 0;
  const auto note = [&](const auto& argument) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(argument)>, size_t>) counts[i] = argument;
    ++i;
  };
  (note(arguments), ...);
  size_t at = 0, missing = 0;
  const auto look = [&](const auto& argument) {
    using P = std::remove_cvref_t<decltype(argument)>;
    if constexpr (std::is_pointer_v<P>) {
      const bool last = at + 1 == kCount;
      size_t count = at + 1;  // the argument that says how many elements there are
      if (is_list<P>()) {
        while (count < kCount && !kIsCount[count]) ++count;
      }
      const bool array = count < kCount && kIsCount[count], filled = array && counts[count] > 0;
      const bool needed = is_needed_handle<P>(at) || std::is_same_v<P, const char*> ||
                          (array ? filled && is_array<P>() : is_result<P>(last));
      const bool optional = kOptional >> (at + 1) & 1;
      if (missing == 0 && needed && !optional && !argument) missing = at + 1;
    }
    ++at;
  };
  (look(arguments), ...);
  return missing;
}

// "argument 2 (OrtValue*) is NULL", where `types` are all of the function's, with commas between them.
inline std::string say_missing(std::string_view types, size_t position) {
  for (size_t i = 1; i < position; ++i) types.remove_prefix(types.find(',') + 1);
  types = types.substr(0, types.find(','));
  types.remove_prefix(types.find_first_not_of(' '));
  return "argument " + std::to_string(position) + " (" + std::string(types) + ") is NULL";
}

}  // namespace treadle::dropin
