#pragma once
// Models as text.

#include <cstdint>
#include <string>

namespace cli {

// `path`: for errors. Tensors with more elements than `max_elements` (negative: any) are printed without their values.
std::string model_text(const std::string& bytes, const std::string& path, int64_t max_elements);
std::string text_to_binary(const std::string& text, const std::string& path);

}  // namespace cli
