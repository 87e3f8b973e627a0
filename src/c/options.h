#pragma once
// Options as texts: "prefix=NAME", "dim=NAME=SIZE", "fma=0", "libm=1", "weights=FILE"; of streams also "samples=N",
// "end=0".

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "c/compile.h"

namespace treadle::c {

struct Asked {
  Options options;
  std::vector<std::pair<std::string, int64_t>> sizes;  // session::GivenSizes
  std::string weights;                                 // the file for constants that are apart; empty: none are
  int64_t samples = 0;                                 // of a push; 0: one hop
  bool ends = true;                                    // whether a stream knows the end of its signal
};
// `of_stream`: whether a stream is to be written. Errors: kInvalidArgument.
Result<Asked> read_options(std::span<const char* const> texts, bool of_stream);

}  // namespace treadle::c
