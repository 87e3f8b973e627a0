#pragma once
// How scattered updates meet what is there already.

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "type/element_type.h"

namespace treadle::tensor_ops {

enum class Combine : uint8_t { kReplace, kAdd, kMul, kMin, kMax };

// "none", "add", "mul", "min" or "max".
Result<Combine> combine_from_name(std::string_view name);

// target[i] = target[i] combined with update[i], for n contiguous elements; integers wrap, a NaN wins min and max.
using CombineRow = void (*)(void* target, const void* update, size_t n);

// Null for kReplace. An error when elements of the type cannot be combined so (strings, complex minimum, ...).
Status find_combine_row(Combine how, ElementType type, CombineRow* row);

}  // namespace treadle::tensor_ops
