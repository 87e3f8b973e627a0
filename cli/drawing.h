#pragma once
// Inputs drawn at random, such that the model shows what it does.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "treadle/treadle.hpp"

namespace cli {

// Adds values for the inputs that have none, and says which, for people: normal numbers; whole ones from 1 to 9; truth
// values, true where there is one alone. Open sizes are those of `sizes` or of the values that are given, by name; 1
// for batches; and else the first of 16, 64, 256 and 1024 with which a run succeeds, gives something and every loop
// makes an iteration, which is tried on a session of its own. Where there is no such size, other numbers are drawn.
std::string add_random_feeds(const treadle::Session& session, uint64_t seed, std::map<std::string, int64_t> sizes,
                             const std::function<treadle::Session()>& open, treadle::Feeds& feeds);

}  // namespace cli
