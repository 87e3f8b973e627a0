#pragma once
// The options of a session as texts: one row for each, with the names that it once had.

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "session/options.h"

namespace treadle::session {

struct Option {
  std::string_view name;
  Status (*set)(SessionOptions& options, std::string_view name, std::string_view value);
  std::string_view old_name = {};  // goes on working
};

// In the order in which errors name them.
std::span<const Option> options();

// Errors: kInvalidArgument for a name that there is not (names those that there are), and for a value that the option
// does not take (says what it takes).
Status set_option(SessionOptions& options, std::string_view name, std::string_view value);

}  // namespace treadle::session
