#pragma once
// Options as texts: "prefix=NAME", "dim=NAME=SIZE", "fma=0", "libm=1".

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "c/compile.h"

namespace treadle::c {

// Sets what `option` says in `options` or in `sizes`. Errors: kInvalidArgument.
Status read_option(std::string_view option, Options& options, std::vector<std::pair<std::string, int64_t>>& sizes);

}  // namespace treadle::c
