#pragma once
// A model as the C functions take it: a path or, if that is null, bytes.

#include <memory>

#include "api/arguments.h"
#include "wire/mapped_file.h"

namespace treadle::api {

// `bytes` must stay valid as long as the file is read. Errors: those of opening a file, and a NULL `bytes`.
inline Result<std::shared_ptr<wire::MappedFile>> model_file(const char* path, const void* bytes, size_t size) {
  if (path) return wire::MappedFile::open(path);
  TREADLE_TRY(need({{"bytes", bytes || size == 0}}));
  return wire::MappedFile::borrow({static_cast<const char*>(bytes), size});
}

}  // namespace treadle::api
