#pragma once
// How a result reaches the place that a caller has for it.

#include "type/any_value.h"

namespace treadle {

// Gives `place` the value. A tensor of the same type and sizes that is there already and that nobody else sees is
// written where it lies, since a caller may read that memory by its address; anything else is replaced.
void write_over(AnyValue& place, AnyValue value);

}  // namespace treadle
