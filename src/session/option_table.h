#pragma once
// The options of a session as texts. option_table.cc has one row for each.

#include <string_view>

#include "base/status.h"
#include "session/options.h"

namespace treadle::session {

// Errors: kInvalidArgument for an unknown name, with the valid ones, and for an invalid value, with the valid ones.
Status set_option(SessionOptions& options, std::string_view name, std::string_view value);

}  // namespace treadle::session
