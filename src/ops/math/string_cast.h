#pragma once
// Cast to and from strings.

#include "kernels/convert.h"
#include "type/tensor.h"

namespace treadle {

// One of the two tensors holds strings. `out` is allocated, with as many elements as `in`.
//
// Numbers are printed as in onnxruntime: floats of every width with up to eight digits ("1", "1e-05", "0.33333334"),
// and as "NaN", "INF", "-INF"; bools as "1" and "0". Parsing accepts decimal, scientific and hexadecimal notation
// ("0x1.8p3"), "inf", "infinity" and "nan" in any case, a leading sign, and surrounding spaces. A fraction is cut off
// for integers. Errors: kRuntime for any other string.
Status cast_strings(const Tensor& in, Tensor& out, const kernels::CastOptions& options);

}  // namespace treadle
