#pragma once
// Random inputs with which a model runs its loops.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "treadle/treadle.hpp"

namespace cli {

// Adds values for the inputs that have none, and returns their description for people: normal numbers; whole numbers
// from 1 to 9; truth values, of which a single one is true. Open sizes are those of `sizes` or of the given values, by
// name; 1 for batches; otherwise the first of 16, 64, 256 and 1024 with which a run succeeds, gives something, and
// every loop makes an iteration. That is tried on a session from `open`. If there is no such size, other numbers are
// drawn.
std::string add_random_feeds(const treadle::Session& session, uint64_t seed, std::map<std::string, int64_t> sizes,
                             const std::function<treadle::Session()>& open, treadle::Feeds& feeds);

}  // namespace cli
