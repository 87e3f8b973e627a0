#include "ops/tensor/combine.h"

#include <algorithm>
#include <complex>
#include <cstdint>

#include "kernels/convert.h"

namespace treadle::tensor_ops {

namespace {

template <class T>
T add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a || b;
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return static_cast<T>(a + b);
}

template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a && b;
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  return static_cast<T>(a * b);
}

// Without branches, so that the compiler makes vectors of them.
template <class T>
T minimum(T a, T b) {
  return ((a != a) | (b >= a)) ? a : b;
}

template <class T>
T maximum(T a, T b) {
  return ((a != a) | (b <= a)) ? a : b;
}

template <class T, T (*kFn)(T, T)>
void combine(void* target, const void* update, size_t n) {
  auto* t = static_cast<T*>(target);
  const auto* u = static_cast<const T*>(update);
  for (size_t i = 0; i < n; ++i) t[i] = kFn(t[i], u[i]);
}

template <ElementType kType, float (*kFn)(float, float)>
void combine_narrow(void* target, const void* update, size_t n) {
  constexpr size_t kChunk = 64;
  float t[kChunk], u[kChunk];
  auto* to = static_cast<uint16_t*>(target);
  const auto* from = static_cast<const uint16_t*>(update);
  for (size_t start = 0; start < n; start += kChunk) {
    const size_t count = std::min(kChunk, n - start);
    kernels::cast(kType, ElementType::kFloat, to + start, t, count);
    kernels::cast(kType, ElementType::kFloat, from + start, u, count);
    for (size_t i = 0; i < count; ++i) t[i] = kFn(t[i], u[i]);
    kernels::cast(ElementType::kFloat, kType, t, to + start, count);
  }
}

template <class T>
CombineRow row_of(Combine how) {
  switch (how) {
    case Combine::kAdd:
      return combine<T, add<T>>;
    case Combine::kMul:
      return combine<T, multiply<T>>;
    case Combine::kMin:
      return combine<T, minimum<T>>;
    case Combine::kMax:
      return combine<T, maximum<T>>;
    case Combine::kReplace:
      break;
  }
  return nullptr;
}

template <class T>
CombineRow complex_row(Combine how) {
  if (how == Combine::kAdd) return combine<T, add<T>>;
  return how == Combine::kMul ? combine<T, multiply<T>> : nullptr;
}

template <ElementType kType>
CombineRow narrow_row(Combine how) {
  switch (how) {
    case Combine::kAdd:
      return combine_narrow<kType, add<float>>;
    case Combine::kMul:
      return combine_narrow<kType, multiply<float>>;
    case Combine::kMin:
      return combine_narrow<kType, minimum<float>>;
    case Combine::kMax:
      return combine_narrow<kType, maximum<float>>;
    case Combine::kReplace:
      break;
  }
  return nullptr;
}

CombineRow row_for(Combine how, ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return row_of<float>(how);
    case ElementType::kDouble:
      return row_of<double>(how);
    case ElementType::kInt8:
      return row_of<int8_t>(how);
    case ElementType::kInt16:
      return row_of<int16_t>(how);
    case ElementType::kInt32:
      return row_of<int32_t>(how);
    case ElementType::kInt64:
      return row_of<int64_t>(how);
    case ElementType::kUint8:
      return row_of<uint8_t>(how);
    case ElementType::kUint16:
      return row_of<uint16_t>(how);
    case ElementType::kUint32:
      return row_of<uint32_t>(how);
    case ElementType::kUint64:
      return row_of<uint64_t>(how);
    case ElementType::kBool:
      return row_of<bool>(how);
    case ElementType::kFloat16:
      return narrow_row<ElementType::kFloat16>(how);
    case ElementType::kBfloat16:
      return narrow_row<ElementType::kBfloat16>(how);
    case ElementType::kComplex64:
      return complex_row<std::complex<float>>(how);
    case ElementType::kComplex128:
      return complex_row<std::complex<double>>(how);
    default:
      return nullptr;
  }
}

constexpr std::string_view kNames[] = {"none", "add", "mul", "min", "max"};

}  // namespace

Result<Combine> combine_from_name(std::string_view name) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    return error(Code::kInvalidModel, "reduction is {}, expected none, add, mul, min or max", name);
  }
  return static_cast<Combine>(found - std::begin(kNames));
}

Status find_combine_row(Combine how, ElementType type, CombineRow* row) {
  *row = row_for(how, type);
  if (*row || how == Combine::kReplace) return {};
  return error(Code::kInvalidArgument, "elements of type {} cannot be combined by {}, expected numbers", name(type),
               kNames[static_cast<size_t>(how)]);
}

}  // namespace treadle::tensor_ops
