#pragma once
// Cast to and from strings.

#include "kernels/convert.h"
#include "type/tensor.h"

namespace treadle {

// One of the two tensors holds strings; `out` is allocated, as large as `in`.
//
// Numbers are printed as onnxruntime prints them: floats of every width with up to eight digits ("1", "1e-05",
// "0.33333334"), and as "NaN", "INF", "-INF"; bools as "1" and "0".
// Read are decimal, scientific and hexadecimal notation ("0x1.8p3"), "inf", "infinity", "nan" in any case, a leading
// sign, blanks around; for integers a fraction is cut off. kRuntime when a string is none of these.
Status cast_strings(const Tensor& in, Tensor& out, const kernels::CastOptions& options);

}  // namespace treadle
