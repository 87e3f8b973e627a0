#pragma once
// Cast to and from strings.

#include "kernels/convert.h"
#include "type/tensor.h"

namespace treadle {

// One of the two tensors holds strings; `out` is allocated, as large as `in`.
//
// Numbers are printed with as few digits as read back to the same value, floats with a point or an exponent
// ("1.0", "1e-05"), and as "nan", "inf", "-inf"; bools as "True" and "False".
// Read are decimal and scientific notation, "inf", "infinity", "nan" in any case, a leading sign, blanks around; for
// integers a fraction is cut off. kRuntime when a string is none of these.
Status cast_strings(const Tensor& in, Tensor& out, const kernels::CastOptions& options);

}  // namespace treadle
