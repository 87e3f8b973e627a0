#pragma once
// Mutations of ONNX text by its tokens.

#include <cstddef>
#include <cstdint>

namespace treadle::fuzz {

// As LLVMFuzzerCustomMutator: words and signs are taken away, doubled, exchanged, or replaced by ones that models use.
size_t mutate_text(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace treadle::fuzz
