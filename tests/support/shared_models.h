#pragma once
// Real models, which are beside some checkouts but not in the repository.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/source_dir.h"

namespace treadle {

// The `models` folder beside the repository, or the folder in TREADLE_SHARED; empty if there is none.
inline std::filesystem::path shared_models_dir() {
  const char* shared = std::getenv("TREADLE_SHARED");
  const std::filesystem::path root = shared ? shared : std::string(source_dir()) + "/../shared";
  std::error_code ignored;
  return std::filesystem::is_directory(root / "models", ignored) ? root / "models" : std::filesystem::path();
}

// Model files of at most `max_bytes`, smallest first.
inline std::vector<std::filesystem::path> shared_models(size_t max_bytes = SIZE_MAX) {
  std::vector<std::filesystem::path> models;
  const std::filesystem::path root = shared_models_dir();
  if (root.empty()) return models;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const std::filesystem::path model = entry.path() / "model.onnx";
    if (std::filesystem::exists(model) && std::filesystem::file_size(model) <= max_bytes) models.push_back(model);
  }
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) {
    const auto size_a = std::filesystem::file_size(a), size_b = std::filesystem::file_size(b);
    return size_a != size_b ? size_a < size_b : a < b;
  });
  return models;
}

}  // namespace treadle
