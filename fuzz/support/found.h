#pragma once
// How a target says that something is wrong.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "base/status.h"

namespace treadle::fuzz {

[[noreturn]] inline void found(std::string_view what) {
  fmt::print(stderr, "FOUND: {}\n", what);
  std::abort();
}

inline void expect(bool holds, std::string_view what) {
  if (!holds) found(what);
}

// An error says what is wrong, and is none of ours.
inline void expect_sound(const Status& status) {
  if (status.code() == Code::kInternal) found("an internal error: " + status.to_string());
  expect(status.ok() || !status.message().empty(), "an error without a message");
}

}  // namespace treadle::fuzz
