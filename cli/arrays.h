#pragma once
// Conversions between values and numpy's files and wave files.

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

// PCM of 8, 16, 24 or 32 bits or floats, as float in [-1, 1): [samples], or [channels, samples].
struct Wave {
  treadle::Value samples;
  int rate = 0;
};
Wave read_wav(std::string_view bytes, const std::string& name);

}  // namespace cli
