#pragma once
// Values as text.

#include <string>

#include "treadle/treadle.hpp"

namespace cli {

// One line: type, sizes, first elements, and the range of numbers.
std::string summary(const treadle::Value& value);
// Type, sizes and all elements.
std::string to_json(const treadle::Value& value);

}  // namespace cli
