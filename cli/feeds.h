#pragma once
// Values for a model's inputs, from files and texts.

#include <cstdint>
#include <string>
#include <vector>

#include "treadle/treadle.hpp"

namespace cli {

// Each argument is [NAME=]FILE (.npy, .npz, .pb, .wav) or NAME=TEXT with a number or numbers in brackets. A value
// without a name goes to the next input that has none, here or in `feeds`. Errors: UsageError, InputError.
treadle::Feeds read_feeds(const treadle::Session& session, const std::vector<std::string>& arguments,
                          treadle::Feeds feeds = {});

// InputError if an input that a run needs has no value, with its name, its type, and how to give it one.
void require_feeds(const treadle::Session& session, const treadle::Feeds& feeds);

// Writes a number into an element of the given type; false for types without a plain form.
bool store_number(int element, double number, char* at);

// The value with other sizes of the same product.
treadle::Value reshaped(const treadle::Value& value, const std::vector<int64_t>& dims);

}  // namespace cli
