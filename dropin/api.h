// Functions of the table, by the names of its entries (entries.inc). A function whose entry returns a status throws
// instead: Failure, or exceptions of the standard library. table.cc turns them into a status.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include "abi.h"
#include "treadle/treadle.h"

namespace treadle::dropin {

struct Failure : std::runtime_error {
  Failure(OrtErrorCode code, const std::string& message) : std::runtime_error(message), code(code) {}
  OrtErrorCode code;
};

// Throws if the status is an error of treadle; frees the status.
void check(treadle_status* status);
// Throws INVALID_ARGUMENT.
[[noreturn]] void refuse_argument(const std::string& message);
inline void require(bool holds, const char* message) {
  if (!holds) refuse_argument(message);
}

// The function `name` of a struct that a client has filled in. Throws INVALID_ARGUMENT if it is NULL.
template <class Function>
Function needed_member(const char* name, Function function) {
  if (!function) refuse_argument(std::string(name) + " is NULL");
  return function;
}

// Turns a client's status into a Failure; frees the status.
Failure take_failure(OrtStatus* status);
OrtStatus* make_status(OrtErrorCode code, const std::string& message) noexcept;
// A status for the exception that is being handled.
OrtStatus* status_of_exception() noexcept;

namespace api {

template <class Result>
using Thrown = std::conditional_t<std::is_same_v<Result, OrtStatus*>, void, Result>;

#define TREADLE_DECLARE_ours(name, result, ...) Thrown<result> name(__VA_ARGS__);
#define TREADLE_DECLARE_gives(name, result, ...) result name(__VA_ARGS__);
#define TREADLE_DECLARE_refused(name, result, ...)
#define X(how, ...) TREADLE_DECLARE_##how(__VA_ARGS__)
#include "entries.inc"
#undef X
#undef TREADLE_DECLARE_ours
#undef TREADLE_DECLARE_gives
#undef TREADLE_DECLARE_refused

}  // namespace api

}  // namespace treadle::dropin
