// Tensors of onnxruntime and of treadle, from one to the other.
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

// Elements of less than a byte lie packed in onnxruntime's memory, and one to a byte in treadle's.
bool is_packed(int element);
// The memory stays onnxruntime's; texts are copied.
Handle lend(const OrtValue* tensor);
// The memory of an output, for treadle to write.
Handle lend_writable(OrtValue* tensor, int element, std::span<const int64_t> dims);
// Nothing where treadle has written there already.
void copy_to(OrtValue* out, const treadle_value* tensor);

}  // namespace treadle::provider
