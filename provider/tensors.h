// Conversions between tensors of onnxruntime and of treadle.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host.h"

namespace treadle::provider {

using Handle = std::unique_ptr<treadle_value, void (*)(treadle_value*)>;
inline Handle no_handle() {
  return {nullptr, treadle_value_free};
}

struct Sizes {
  int element = 0;
  std::vector<int64_t> dims{};
};
Sizes sizes_of(const OrtValue* tensor);

std::vector<std::string> texts_of(const OrtValue* tensor, size_t count);

// Elements narrower than a byte are packed in onnxruntime's memory, and take a byte each in treadle's.
bool is_packed(int element);
// Shares onnxruntime's memory; copies texts.
Handle lend(const OrtValue* tensor);
// The memory of an output, for treadle to write to.
Handle lend_writable(OrtValue* tensor, int element, std::span<const int64_t> dims);
// Does nothing if treadle has written there directly.
void copy_to(OrtValue* out, const treadle_value* tensor);

}  // namespace treadle::provider
