#pragma once
// Sizes with numbers in the place of symbols.

#include <map>
#include <string>

#include "type/shape.h"

namespace treadle {

// By the name of a symbol.
using SymbolSizes = std::map<std::string, int64_t, std::less<>>;

// Symbols without a number stay.
Dim with_sizes(const Dim& dim, const SymbolSizes& sizes);
Shape with_sizes(const Shape& shape, const SymbolSizes& sizes);

}  // namespace treadle
