// Values: handles of treadle, and tensors that treadle's handles cannot represent: texts that a client writes one by
// one, and elements narrower than a byte, which are packed in memory here.
#pragma once

#include <memory>
#include <string_view>

#include "types.h"

namespace treadle::dropin {

using Handle = std::unique_ptr<treadle_value, void (*)(treadle_value*)>;
inline Handle no_handle() {
  return {nullptr, treadle_value_free};
}
inline Handle own(treadle_value* value) {
  return {value, treadle_value_free};
}

// A tensor whose form for clients differs from treadle's.
class Staged {
 public:
  Staged(int element, const int64_t* dims, size_t rank);  // texts, or packed elements in its own memory
  // Packed elements in the client's memory
  Staged(int element, const int64_t* dims, size_t rank, void* memory, size_t bytes);
  explicit Staged(const treadle_value* value);

  static bool stages(int element) { return element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING || per_byte(element) > 1; }
  // Elements per byte.
  static int per_byte(int element);

  const OrtTensorTypeAndShapeInfo& info() const { return info_; }
  std::vector<std::string>& texts();
  void* memory();
  size_t bytes() const { return bytes_; }

  Handle read() const;
  // Takes the contents of `value`, which has the same type and sizes.
  void write(const treadle_value* value);

 private:
  OrtTensorTypeAndShapeInfo info_;
  std::vector<std::string> texts_;
  std::vector<unsigned char> own_;
  unsigned char* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace treadle::dropin

struct OrtValue {
  OrtValue() : handle(treadle::dropin::no_handle()) {}
  explicit OrtValue(treadle::dropin::Handle value);
  explicit OrtValue(std::shared_ptr<treadle::dropin::Staged> value)
      : handle(treadle::dropin::no_handle()), staged(std::move(value)) {}
  // Another handle of the same contents.
  OrtValue share() const;
  // Another handle of the same memory, to which results may be written although there is a first handle.
  OrtValue place();

  bool is_tensor() const;
  bool is_absent() const;
  OrtTensorTypeAndShapeInfo info() const;

  treadle::dropin::Handle handle;
  std::shared_ptr<treadle::dropin::Staged> staged;  // if set, there is no handle
};

namespace treadle::dropin {

// Values for a run. A staged value is converted for each run.
class Feeds {
 public:
  void reserve(size_t count) { values_.reserve(count); }
  void add(const OrtValue* value);
  const treadle_value* const* values() const { return values_.data(); }
  size_t size() const { return values_.size(); }

 private:
  std::vector<const treadle_value*> values_;
  std::vector<Handle> read_;
};

}  // namespace treadle::dropin
