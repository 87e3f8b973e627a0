// Errors, types and values of treadle's C++ interface (treadle.hpp).
#pragma once

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "treadle/treadle.h"

namespace treadle {
inline namespace v1 {

class Error : public std::exception {
 public:
  explicit Error(treadle_status* status)
      : code_(treadle_status_code(status)),
        text_(treadle_status_text(status)),
        message_(treadle_status_message(status)),
        place_(treadle_status_place(status)) {
    treadle_status_free(status);
  }
  treadle_code code() const { return code_; }
  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& message() const { return message_; }
  const std::string& place() const { return place_; }  // file, path through the bodies, iteration, operator

 private:
  treadle_code code_;
  std::string text_, message_, place_;
};

inline void check(treadle_status* status) {
  if (status) throw Error(status);
}

namespace detail {
// The exception that a callback has thrown during this thread's run.
inline std::exception_ptr& thrown() {
  thread_local std::exception_ptr thrown;
  return thrown;
}
// Throws the exception of a callback, or the error of a run.
inline void check_run(treadle_status* status) {
  if (const std::exception_ptr failure = std::exchange(thrown(), nullptr)) {
    treadle_status_free(status);
    std::rethrow_exception(failure);
  }
  check(status);
}

template <class T, void (*free)(T*)>
struct Deleter {
  void operator()(T* handle) const { free(handle); }
};
template <class T, void (*free)(T*)>
using Handle = std::unique_ptr<T, Deleter<T, free>>;

// Takes over a text or bytes that a C function returned.
inline std::string take(char* text) {
  std::string copy = text ? text : "";
  treadle_free(text);
  return copy;
}
template <class Fn, class... Args>
std::string take_bytes(Fn fn, Args... args) {
  char* bytes = nullptr;
  size_t size = 0;
  check(fn(args..., &bytes, &size));
  const std::unique_ptr<char, void (*)(char*)> owned(bytes, [](char* p) { treadle_free(p); });
  return std::string(bytes, size);
}
template <class Fn, class... Args>
std::string take_text(Fn fn, Args... args) {
  char* text = nullptr;
  check(fn(args..., &text));
  const std::unique_ptr<char, void (*)(char*)> owned(text, [](char* p) { treadle_free(p); });
  return text;
}

// The source and the header that `write` gives for the options.
template <class Write>
std::pair<std::string, std::string> take_c(const std::vector<std::string>& options, Write&& write) {
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  std::pair<std::string, std::string> written;
  written.first = take_text([&](char** source) {
    char* header = nullptr;
    treadle_status* const status = write(texts.data(), texts.size(), source, &header);
    if (!status) written.second = take(header);
    return status;
  });
  return written;
}

template <class T>
struct ElementOf;
template <>
struct ElementOf<float> {
  static constexpr int value = 1;
};
template <>
struct ElementOf<uint8_t> {
  static constexpr int value = 2;
};
template <>
struct ElementOf<int8_t> {
  static constexpr int value = 3;
};
template <>
struct ElementOf<uint16_t> {
  static constexpr int value = 4;
};
template <>
struct ElementOf<int16_t> {
  static constexpr int value = 5;
};
template <>
struct ElementOf<int32_t> {
  static constexpr int value = 6;
};
template <>
struct ElementOf<int64_t> {
  static constexpr int value = 7;
};
template <>
struct ElementOf<bool> {
  static constexpr int value = 9;
};
template <>
struct ElementOf<double> {
  static constexpr int value = 11;
};
template <>
struct ElementOf<uint32_t> {
  static constexpr int value = 12;
};
template <>
struct ElementOf<uint64_t> {
  static constexpr int value = 13;
};
}  // namespace detail

inline std::string version() {
  return treadle_version();
}
// The random numbers of operators without a seed attribute follow from `seed` from now on.
inline void set_seed(uint64_t seed) {
  treadle_set_seed(seed);
}
// The name of an element type ("float"); empty when there is no such type. Element types are numbered as in ONNX's
// TensorProto.DataType.
inline std::string element_name(int element) {
  const char* name = treadle_element_name(element);
  return name ? name : "";
}
// Bytes of an element in memory; 0 for strings.
inline size_t element_width(int element) {
  return treadle_element_width(element);
}

// The type of an input or output; a view, valid as long as its session.
class Type {
 public:
  explicit Type(const treadle_type* type) : type_(type) {}
  treadle_kind kind() const { return treadle_type_kind(type_); }
  int element() const { return treadle_type_element(type_); }
  int64_t rank() const { return treadle_type_rank(type_); }                  // -1: unknown
  int64_t dim(int64_t axis) const { return treadle_type_dim(type_, axis); }  // -1: unknown
  std::string symbol(int64_t axis) const { return detail::take(treadle_type_symbol(type_, axis)); }
  Type child() const { return Type(treadle_type_child(type_)); }
  std::string name() const { return detail::take(treadle_type_name(type_)); }  // "tensor(float)"
  std::string text() const { return detail::take(treadle_type_text(type_)); }  // "tensor(float)[N,3]"
  const treadle_type* get() const { return type_; }

 private:
  const treadle_type* type_;
};

// A tensor, sequence, optional or map; empty by default. Copying shares the contents.
class Value {
 public:
  Value() = default;
  explicit Value(treadle_value* handle) : handle_(handle) {}
  Value(Value&&) noexcept = default;
  Value& operator=(Value&&) noexcept = default;
  Value(const Value& other) { *this = other; }
  Value& operator=(const Value& other) {
    treadle_value* copy = nullptr;
    if (other.handle_) check(treadle_value_copy(other.get(), &copy));
    handle_.reset(copy);
    return *this;
  }
  ~Value() = default;

  // An uninitialised tensor.
  static Value tensor(int element, const std::vector<int64_t>& dims) {
    treadle_value* value = nullptr;
    check(treadle_tensor_create(element, dims.data(), dims.size(), &value));
    return Value(value);
  }
  // A tensor with a copy of `data`, which must have as many elements as `dims` say.
  template <class T>
  static Value of(const T* data, const std::vector<int64_t>& dims) {
    Value value = tensor(detail::ElementOf<T>::value, dims);
    if (value.bytes() > 0 && !data) check(treadle_status_create(TREADLE_INVALID_ARGUMENT, "argument 'data' is NULL"));
    if (value.bytes() > 0) std::memcpy(value.mutable_data<T>(), data, value.bytes());
    return value;
  }
  // A tensor over the caller's memory, which must outlive every value that shares it.
  template <class T>
  static Value borrow(T* data, const std::vector<int64_t>& dims) {
    size_t bytes = sizeof(T);
    for (const int64_t d : dims) bytes *= static_cast<size_t>(d);
    treadle_value* value = nullptr;
    check(treadle_tensor_borrow(detail::ElementOf<T>::value, dims.data(), dims.size(), data, bytes, true, nullptr,
                                nullptr, &value));
    return Value(value);
  }
  // A tensor over memory of any element type. `release(context)` is called, from any thread, when no value refers to
  // the memory any more.
  static Value borrow(int element, const std::vector<int64_t>& dims, void* data, size_t bytes, bool writable,
                      void (*release)(void*) = nullptr, void* context = nullptr) {
    treadle_value* value = nullptr;
    check(treadle_tensor_borrow(element, dims.data(), dims.size(), data, bytes, writable, release, context, &value));
    return Value(value);
  }
  static Value texts(const std::vector<std::string>& texts, const std::vector<int64_t>& dims) {
    std::vector<treadle_text> views;
    views.reserve(texts.size());
    for (const std::string& text : texts) views.push_back({text.data(), text.size()});
    treadle_value* value = nullptr;
    check(treadle_tensor_from_texts(dims.data(), dims.size(), views.data(), views.size(), &value));
    return Value(value);
  }
  // Shares the contents of `elements`. `element` is needed when `elements` is empty.
  static Value sequence(const std::vector<Value>& elements, const treadle_type* element = nullptr) {
    std::vector<const treadle_value*> handles;
    handles.reserve(elements.size());
    for (const Value& one : elements) handles.push_back(one.get());
    treadle_value* value = nullptr;
    check(treadle_sequence_create(element, handles.data(), handles.size(), &value));
    return Value(value);
  }
  // An optional that holds `value`; an empty `value` makes an empty optional, which needs `element`.
  static Value optional(const Value& value, const treadle_type* element = nullptr) {
    treadle_value* made = nullptr;
    check(treadle_optional_create(element, value.get(), &made));
    return Value(made);
  }
  // Keys (int64 or string) and values are 1-D tensors of equal length.
  static Value map(const Value& keys, const Value& values) {
    treadle_value* value = nullptr;
    check(treadle_map_create(keys.get(), values.get(), &value));
    return Value(value);
  }
  // Reads a serialised protobuf value, as the files of ONNX's backend tests. Without a type a tensor is expected.
  static Value from_pb(const std::string& bytes, const treadle_type* type = nullptr) {
    treadle_value* value = nullptr;
    check(treadle_value_from_pb(bytes.data(), bytes.size(), type, &value));
    return Value(value);
  }
  static Value from_pb_file(const std::string& path, const treadle_type* type = nullptr) {
    treadle_value* value = nullptr;
    check(treadle_value_from_pb_file(path.c_str(), type, &value));
    return Value(value);
  }
  std::string to_pb(const std::string& name = {}) const {
    return detail::take_bytes(treadle_value_to_pb, get(), name.c_str());
  }
  // A copy with its own memory.
  Value clone() const { return made(treadle_value_clone); }

  treadle_kind kind() const { return treadle_value_kind(get()); }
  std::string type_text() const { return detail::take(treadle_value_type_text(get())); }
  int element() const { return treadle_tensor_element(get()); }
  std::vector<int64_t> dims() const {
    const int64_t* dims = treadle_tensor_dims(get());
    return std::vector<int64_t>(dims, dims + treadle_tensor_rank(get()));
  }
  int64_t count() const { return treadle_tensor_count(get()); }
  size_t bytes() const { return treadle_tensor_bytes(get()); }
  template <class T>
  const T* data() const {
    return static_cast<const T*>(treadle_tensor_data(get()));
  }
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(treadle_tensor_mutable_data(get()));
  }
  // Whether no other value, constant or input shares the memory and the memory may be written.
  bool is_exclusive() const { return treadle_tensor_is_exclusive(get()); }
  // All elements of a numeric tensor, converted to double.
  std::vector<double> to_doubles() const {
    std::vector<double> numbers(static_cast<size_t>(count()));
    check(treadle_tensor_to_doubles(get(), numbers.data()));
    return numbers;
  }
  std::string_view text(int64_t index) const {
    const treadle_text text = treadle_tensor_text(get(), index);
    return {text.data, text.size};
  }

  size_t sequence_size() const { return treadle_sequence_size(get()); }
  Value sequence_at(size_t index) const { return made(treadle_sequence_at, index); }
  bool has_value() const { return treadle_optional_has_value(get()); }
  Value optional_value() const { return made(treadle_optional_get); }
  Value map_keys() const { return made(treadle_map_keys); }
  Value map_values() const { return made(treadle_map_values); }
  // A sequence of maps with equal keys and numeric values (ZipMap's output) as keys [K] and values [N,K]; both are
  // empty for any other value.
  std::pair<Value, Value> sequence_table() const {
    treadle_value *keys = nullptr, *values = nullptr;
    check(treadle_sequence_table(get(), &keys, &values));
    return {Value(keys), Value(values)};
  }

  treadle_value* get() const { return handle_.get(); }
  treadle_value* release() { return handle_.release(); }

 private:
  template <class Fn, class... Args>
  Value made(Fn fn, Args... args) const {
    treadle_value* value = nullptr;
    check(fn(get(), args..., &value));
    return Value(value);
  }
  detail::Handle<treadle_value, treadle_value_free> handle_;
};

}  // namespace v1
}  // namespace treadle
