#pragma once
// Compares a value with the expected one.

#include <optional>
#include <string>

#include "treadle/treadle.hpp"

namespace cli {

// |found - expected| <= absolute + relative * |expected|, element by element. If neither is given: 1e-3 + 1e-3 * the
// largest |expected| of the tensor. Integers, booleans and texts must be equal.
struct Tolerance {
  std::optional<double> relative, absolute;
};

// Empty if the values agree, else the difference. `largest`: the largest difference so far.
std::string compare(const treadle::Value& expected, const treadle::Value& found, const Tolerance& tolerance,
                    double& largest);

}  // namespace cli
