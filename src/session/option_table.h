#pragma once
// The options of a session as texts. option_table.cc has one row for each.

#include <string_view>

#include "base/status.h"
#include "session/options.h"

namespace treadle::session {

// Errors: kInvalidArgument for a name that there is not (names those that there are), and for a value that the option
// does not take (says what it takes).
Status set_option(SessionOptions& options, std::string_view name, std::string_view value);

}  // namespace treadle::session
