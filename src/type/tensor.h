#pragma once
// A tensor in memory: element type, sizes, and a reference to a buffer. Always contiguous and row-major.

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/buffer.h"
#include "base/status.h"
#include "type/element_type.h"
#include "type/shape.h"

namespace treadle {

class Tensor {
 public:
  Tensor() = default;

  // Uninitialised memory (empty strings for kString). Errors: kLimit if the size does not fit or there is no memory.
  static Result<Tensor> allocate(ElementType type, Dims dims);
  // `buffer` must hold at least the tensor's bytes from `data` on. The tensor keeps it alive.
  static Tensor from_buffer(ElementType type, Dims dims, BufferRef buffer, const void* data);
  static Tensor from_buffer(ElementType type, Dims dims, BufferRef buffer) {
    const void* data = buffer ? buffer->data() : nullptr;
    return from_buffer(type, std::move(dims), std::move(buffer), data);
  }
  // `count`: the product of the sizes.
  Tensor(ElementType type, std::span<const int64_t> dims, int64_t count, BufferRef buffer)
      : type_(type), dims_(dims), count_(count), data_(buffer->data()), buffer_(std::move(buffer)) {}
  template <class T>
  static Tensor scalar(ElementType type, T value) {
    Tensor t = allocate(type, {}).value();
    *t.mutable_data<T>() = std::move(value);
    return t;
  }
  static Tensor scalar(std::string_view text);
  static Tensor of_int64(std::span<const int64_t> values);  // 1-D
  static Tensor of_float(std::span<const float> values);    // 1-D

  bool defined() const { return type_ != ElementType::kUndefined; }
  ElementType type() const { return type_; }
  const Dims& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t element_count() const { return count_; }
  size_t byte_size() const { return static_cast<size_t>(count_) * byte_width(type_); }
  const void* raw() const { return data_; }
  void* mutable_raw() { return const_cast<void*>(data_); }
  // Texts are `String`s (base/counted.h).
  template <class T>
  const T* data() const {
    static_assert(!std::is_same_v<T, std::string>);
    return static_cast<const T*>(data_);
  }
  template <class T>
  T* mutable_data() {
    static_assert(!std::is_same_v<T, std::string>);
    return static_cast<T*>(const_cast<void*>(data_));
  }
  template <class T>
  std::span<const T> span() const {
    return {data<T>(), static_cast<size_t>(count_)};
  }
  const BufferRef& buffer() const { return buffer_; }

  // The same data with other sizes of the same product.
  Tensor reshaped(Dims dims) const;
  Result<Tensor> clone() const;
  // Gives this tensor other sizes in its memory, with the same type. The contents become undefined (texts stay valid
  // texts). `count` elements take `bytes`. False, with nothing changed, if there is another reference to the memory, or
  // if it is too small or far too large.
  bool rewrite(std::span<const int64_t> dims, int64_t count, size_t bytes) {
    constexpr size_t kNeverTooLarge = 4096;
    if (!exclusive() || data_ != buffer_->data()) return false;
    const size_t room = buffer_->size();
    if (bytes > room || (room > kNeverTooLarge && room / 4 > bytes)) return false;
    buffer_->seal();
    dims_.assign(dims.begin(), dims.end());
    count_ = count;
    return true;
  }
  // Whether this is the only reference to the memory, and it may be written.
  bool exclusive() const { return buffer_ && buffer_->unique() && buffer_->writable(); }

  // Exchanges the memory of two tensors of one type and the same sizes.
  void exchange_memory(Tensor& other) {
    std::swap(data_, other.data_);
    swap(buffer_, other.buffer_);
  }

  // The elements of an integer or bool tensor of any width, as int64. For axes, shapes, counts.
  InlineVector<int64_t, 8> to_int64s() const;
  int64_t int64_at(int64_t i) const;
  // An element of a float tensor of any width.
  double double_at(int64_t i) const;

 private:
  ElementType type_ = ElementType::kUndefined;
  Dims dims_;
  int64_t count_ = 0;
  const void* data_ = nullptr;
  BufferRef buffer_;
};

// Bitwise equality of type, sizes and contents.
bool identical(const Tensor& a, const Tensor& b);

}  // namespace treadle
