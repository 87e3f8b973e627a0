#pragma once
// Values for a model's inputs, from files or drawn at random.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "treadle/treadle.hpp"

namespace cli {

// Each argument is [NAME=]FILE (.npy, .npz, .pb, .wav) or NAME=TEXT with a number or numbers in brackets. Without a
// name the next input that has none takes the value. Errors: UsageError, InputError.
treadle::Feeds read_feeds(const treadle::Session& session, const std::vector<std::string>& arguments);

// Adds values for the inputs that have none, and says which, for people: normal numbers; whole ones from 1 to 9; truth
// values, true where there is one alone; for open sizes what `sizes` says by name, else 16, and 1 for batches.
std::string add_random_feeds(const treadle::Session& session, uint64_t seed,
                             const std::map<std::string, int64_t>& sizes, treadle::Feeds& feeds);

// InputError where an input that a run needs has no value: which, of what type, and how to give it one.
void require_feeds(const treadle::Session& session, const treadle::Feeds& feeds);

// The value under other sizes of equal count.
treadle::Value reshaped(const treadle::Value& value, const std::vector<int64_t>& dims);

}  // namespace cli
