#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/isa/rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

namespace {

// Quotients through doubles, truncated. A quotient that is not whole is farther from the next whole number than doubles
// are rounded. A quotient beyond int32 (the least number by -1) gives the least number, as wrapping does.
template <Form kForm>
uint32_t divide_row(const void* a, const void* b, void* out, size_t n, const ElementwiseParams*) {
  constexpr size_t kLanes = 4;
  if (n == 0) return kOk;
  const auto *x = static_cast<const int32_t*>(a), *y = static_cast<const int32_t*>(b);
  auto* to = static_cast<int32_t*>(out);
  const int32_t first_x = *x, first_y = *y;  // the output may overwrite the scalar
  const auto load = [](const int32_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  uint32_t error = kOk;
  size_t i = 0;
  const auto by_element = [&](size_t end) {
    for (; i < end; ++i) {
      to[i] = functions::Div::integer<int32_t>(kForm == Form::kScalarVector ? first_x : x[i],
                                               kForm == Form::kVectorScalar ? first_y : y[i], error);
    }
  };
  while (i + kLanes <= n) {
    const __m128i dividend = kForm == Form::kScalarVector ? _mm_set1_epi32(first_x) : load(x + i);
    const __m128i divisor = kForm == Form::kVectorScalar ? _mm_set1_epi32(first_y) : load(y + i);
    if (_mm_movemask_epi8(_mm_cmpeq_epi32(divisor, _mm_setzero_si128())) != 0) [[unlikely]] {
      by_element(i + kLanes);
      continue;
    }
    const __m256d quotient = _mm256_div_pd(_mm256_cvtepi32_pd(dividend), _mm256_cvtepi32_pd(divisor));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_cvttpd_epi32(quotient));
    i += kLanes;
  }
  by_element(n);
  return error;
}

}  // namespace

#endif

// Arithmetic wraps, so signed and unsigned integers share rows where the sign makes no difference.
void add_32_bit_rows(KernelTable& table) {
  add_elementwise_rows<uint32_t>(table, ComputeType::kU32);
  add_elementwise_rows<int32_t>(table, ComputeType::kI32);
  for (ElementwiseOp op : {ElementwiseOp::kAdd, ElementwiseOp::kSub, ElementwiseOp::kMul}) {
    auto& types = table.elementwise[static_cast<int>(op)];
    types[static_cast<int>(ComputeType::kI32)] = types[static_cast<int>(ComputeType::kU32)];
  }
#if defined(__AVX2__)
  table.elementwise[static_cast<int>(ElementwiseOp::kDiv)][static_cast<int>(ComputeType::kI32)] = {
      divide_row<Form::kVectorVector>, divide_row<Form::kVectorScalar>, divide_row<Form::kScalarVector>};
#endif
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
