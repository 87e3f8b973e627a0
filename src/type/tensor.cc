#include "type/tensor.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "base/float_formats.h"
#include "base/memory_account.h"
#include "type/make_tensor.h"

namespace treadle {

namespace {

// Errors about smaller tensors say that memory is out, but not for what.
constexpr size_t kWorthNaming = 4096;

// Counted on the thread's MemoryScope, if there is one. Null if memory is refused.
BufferRef allocate_buffer(ElementType type, size_t count, size_t bytes) {
  const MemoryScope* scope = MemoryScope::current();
  if (!is_string(type)) return scope ? MemoryAccount::allocate(scope->account(), bytes) : BufferRef::allocate(bytes);
  BufferRef strings = BufferRef::allocate_strings(count);
  if (!strings || !scope) return strings;
  scope->account()->add(bytes);
  return MemoryAccount::adopt(scope->account(), std::move(strings), bytes);
}

}  // namespace

Result<Tensor> Tensor::allocate(ElementType type, Dims dims) {
  TREADLE_ASSIGN(const int64_t count, treadle::element_count(dims));
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(count), byte_width(type), &bytes) || bytes > (size_t{1} << 62)) {
    return error(Code::kLimit, "a tensor of shape {} does not fit into memory", to_string(dims));
  }
  if (const MemoryScope* scope = MemoryScope::current(); scope && !scope->fits(bytes)) {
    return scope->account()->refusal(bytes, "a tensor of shape " + to_string(dims));
  }
  BufferRef buffer = allocate_buffer(type, static_cast<size_t>(count), bytes);
  if (!buffer && bytes < kWorthNaming) throw std::bad_alloc();
  if (!buffer) return error(Code::kLimit, "no memory for a tensor of shape {} ({} bytes)", to_string(dims), bytes);
  return from_buffer(type, std::move(dims), std::move(buffer));
}

Tensor make_tensor(ElementType type, Dims dims) {
  auto made = Tensor::allocate(type, std::move(dims));
  if (!made.ok()) throw std::bad_alloc();
  return std::move(made).value();
}

Tensor part_of(const Tensor& whole, int64_t begin, int64_t end, bool keeps_axis) {
  Dims dims = whole.dims();
  const int64_t block = dims[0] ? whole.element_count() / dims[0] : 0;
  dims[0] = end - begin;
  if (!keeps_axis) dims.erase(0);
  const auto offset = static_cast<size_t>(begin * block) * byte_width(whole.type());
  return Tensor::from_buffer(whole.type(), dims, whole.buffer(), static_cast<const std::byte*>(whole.raw()) + offset);
}

Tensor Tensor::from_buffer(ElementType type, Dims dims, BufferRef buffer, const void* data) {
  Tensor t;
  t.type_ = type;
  t.count_ = element_count_unchecked(dims);
  t.dims_ = std::move(dims);
  t.data_ = data;
  t.buffer_ = std::move(buffer);
  return t;
}

namespace {
template <class T>
Tensor vector_tensor(ElementType type, std::span<const T> values) {
  Tensor t = make_tensor(type, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.mutable_data<T>());
  return t;
}
}  // namespace

Tensor Tensor::scalar(std::string_view text) {
  Tensor t = allocate(ElementType::kString, {}).value();
  *t.mutable_data<String>() = text;
  return t;
}

Tensor Tensor::of_int64(std::span<const int64_t> values) {
  return vector_tensor(ElementType::kInt64, values);
}

Tensor Tensor::of_float(std::span<const float> values) {
  return vector_tensor(ElementType::kFloat, values);
}

Tensor Tensor::reshaped(Dims dims) const {
  Tensor t = *this;
  t.dims_ = std::move(dims);
  TREADLE_ASSERT(element_count_unchecked(t.dims_) == count_);
  return t;
}

Result<Tensor> Tensor::clone() const {
  TREADLE_ASSIGN(Tensor copy, allocate(type_, dims_));
  if (is_string(type_)) {
    std::copy_n(data<String>(), count_, copy.mutable_data<String>());
  } else if (count_ > 0) {
    std::memcpy(copy.mutable_raw(), data_, byte_size());
  }
  return copy;
}

namespace {

int64_t saturated(double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (std::isnan(value)) return 0;
  if (value >= kEnd) return std::numeric_limits<int64_t>::max();
  return value < -kEnd ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
}

}  // namespace

int64_t Tensor::int64_at(int64_t i) const {
  switch (type_) {
    case ElementType::kInt64:
      return data<int64_t>()[i];
    case ElementType::kUint64:
      return static_cast<int64_t>(data<uint64_t>()[i]);
    case ElementType::kInt32:
      return data<int32_t>()[i];
    case ElementType::kUint32:
      return data<uint32_t>()[i];
    case ElementType::kInt16:
      return data<int16_t>()[i];
    case ElementType::kUint16:
      return data<uint16_t>()[i];
    case ElementType::kInt8:
    case ElementType::kInt4:
    case ElementType::kInt2:
      return data<int8_t>()[i];
    case ElementType::kUint8:
    case ElementType::kUint4:
    case ElementType::kUint2:
    case ElementType::kBool:
      return data<uint8_t>()[i];
    default:
      return is_float(type_) ? saturated(double_at(i)) : 0;
  }
}

double Tensor::double_at(int64_t i) const {
  switch (type_) {
    case ElementType::kFloat:
      return data<float>()[i];
    case ElementType::kDouble:
      return data<double>()[i];
    case ElementType::kFloat16:
      return half_to_float(data<uint16_t>()[i]);
    case ElementType::kBfloat16:
      return bfloat16_to_float(data<uint16_t>()[i]);
    default:
      return is_integer(type_) || type_ == ElementType::kBool ? static_cast<double>(int64_at(i)) : 0.0;
  }
}

InlineVector<int64_t, 8> Tensor::to_int64s() const {
  InlineVector<int64_t, 8> values;
  values.reserve(static_cast<size_t>(count_));
  for (int64_t i = 0; i < count_; ++i) values.push_back(int64_at(i));
  return values;
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type() || !(a.dims() == b.dims())) return false;
  if (a.raw() == b.raw()) return true;
  if (is_string(a.type())) {
    return std::equal(a.data<String>(), a.data<String>() + a.element_count(), b.data<String>());
  }
  return a.element_count() == 0 || std::memcmp(a.raw(), b.raw(), a.byte_size()) == 0;
}

}  // namespace treadle
