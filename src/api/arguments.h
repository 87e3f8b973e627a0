#pragma once
// Checks arguments of functions of treadle.h for NULL. A function refuses the call and names the argument.

#include <cstddef>
#include <initializer_list>

#include "base/status.h"

namespace treadle::api {

// An argument, and whether the caller gave it. For an array that may be NULL when empty, a condition in place of a
// pointer.
struct Argument {
  template <class Given>
  Argument(const char* name, const Given& given) : name(name), is_given(static_cast<bool>(given)) {}
  const char* name;  // the name in treadle.h
  bool is_given;
};

// Errors: kInvalidArgument for the first argument that is NULL.
inline Status need(std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (!argument.is_given) return error(Code::kInvalidArgument, "argument '{}' is NULL", argument.name);
  }
  return {};
}

// The same for an array of `count` pointers and for each pointer in it.
template <class Pointer>
Status need_elements(const char* name, Pointer* elements, size_t count) {
  TREADLE_TRY(need({{name, elements || count == 0}}));
  for (size_t i = 0; i < count; ++i) {
    if (!elements[i]) return error(Code::kInvalidArgument, "element {} of argument '{}' is NULL", i, name);
  }
  return {};
}

}  // namespace treadle::api
