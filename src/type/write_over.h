#pragma once
// Stores a result in a place that the caller provides.

#include "type/any_value.h"

namespace treadle {

// Gives `place` the value. If `place` has a tensor of the same type and sizes with the only reference to its memory,
// the elements are copied there, since a caller may read that memory by its address. Otherwise `place` is replaced.
void write_over(AnyValue& place, AnyValue value);

}  // namespace treadle
