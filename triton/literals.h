#pragma once
// Values that parameters of config.pbtxt give as text.

#include <string>
#include <utility>
#include <vector>

#include "treadle/treadle.hpp"

namespace backend {

// "sr=16000,scale=[1,2]" as names and what they are given. Errors: InvalidArgument, which names `parameter`.
std::vector<std::pair<std::string, std::string>> assignments(const std::string& parameter, const std::string& text);

// "3" or "[1, 2.5]" as a tensor of the input's type; of unknown rank or rank 0 a number is a scalar. Errors:
// InvalidArgument for numbers that do not fit the type.
treadle::Value literal_value(const treadle::Type& type, const std::string& name, const std::string& text);

}  // namespace backend
