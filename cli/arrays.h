#pragma once
// Conversions between values and numpy's files.

#include <string>
#include <string_view>
#include <vector>

#include "treadle/treadle.hpp"

namespace cli {

// A .npy of numbers, booleans or unicode texts. Errors: InputError, with `name` in front.
treadle::Value read_npy(std::string_view bytes, const std::string& name);
std::string write_npy(const treadle::Value& value);

// Members of a .npz as numpy.savez writes it (stored; compressed ones are refused).
std::vector<std::pair<std::string, treadle::Value>> read_npz(std::string_view bytes, const std::string& name);

}  // namespace cli
