#pragma once
// Models as the C functions take them, a path or, if that is null, bytes; and as they give them.

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "api/arguments.h"
#include "api/handles.h"
#include "wire/mapped_file.h"

namespace treadle::api {

// `bytes` must stay valid as long as the file is read. Errors: those of opening a file, and a NULL `bytes`.
inline Result<std::shared_ptr<wire::MappedFile>> model_file(const char* path, const void* bytes, size_t size) {
  if (path) return wire::MappedFile::open(path);
  TREADLE_TRY(need({{"bytes", bytes || size == 0}}));
  return wire::MappedFile::borrow({static_cast<const char*>(bytes), size});
}

// The folder of a model's external data; empty for a model without a path.
inline std::string folder_of(const char* path) {
  if (!path) return {};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// A serialised model, and a text about it.
inline Status give_model(const std::string& model, const std::string& about, char** out_model, size_t* out_size,
                         char** out_about) {
  char* bytes = nullptr;
  TREADLE_TRY(give_text(model, &bytes));
  if (Status status = give_text(about, out_about); !status.ok()) {
    std::free(bytes);
    return status;
  }
  *out_model = bytes;
  *out_size = model.size();
  return {};
}

}  // namespace treadle::api
