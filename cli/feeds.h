#pragma once
// Values for a model's inputs, from files and texts.

#include <cstdint>
#include <string>
#include <vector>

#include "treadle/treadle.hpp"

namespace cli {

// Each argument is [NAME=]FILE (.npy, .npz, .pb, .wav) or NAME=TEXT with a number or numbers in brackets. Without a
// name the next input that has none takes the value. Errors: UsageError, InputError.
treadle::Feeds read_feeds(const treadle::Session& session, const std::vector<std::string>& arguments);

// InputError where an input that a run needs has no value: which, of what type, and how to give it one.
void require_feeds(const treadle::Session& session, const treadle::Feeds& feeds);

// A number written into an element of the given type; false for types that have no plain form.
bool store_number(int element, double number, char* at);

// The value under other sizes of equal count.
treadle::Value reshaped(const treadle::Value& value, const std::vector<int64_t>& dims);

}  // namespace cli
