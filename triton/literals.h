#pragma once
// Values in the texts of parameters of config.pbtxt.

#include <string>
#include <utility>
#include <vector>

#include "treadle/treadle.hpp"

namespace backend {

// Parses "sr=16000,scale=[1,2]" into names and values. Errors: InvalidArgument with the name of `parameter`.
std::vector<std::pair<std::string, std::string>> assignments(const std::string& parameter, const std::string& text);

// Parses "3" or "[1, 2.5]" as a tensor of the input's type. With unknown rank or rank 0, a number is a scalar. Errors:
// InvalidArgument for numbers that do not fit the type.
treadle::Value literal_value(const treadle::Type& type, const std::string& name, const std::string& text);

}  // namespace backend
