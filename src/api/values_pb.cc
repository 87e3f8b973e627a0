#include "api/handles.h"
#include "model/value_file.h"
#include "wire/mapped_file.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

Status read_into(const std::shared_ptr<wire::MappedFile>& file, const treadle_type* type, treadle_value** out) {
  TREADLE_ASSIGN(AnyValue value, model::read_value(file, type ? *unwrap(type) : Type()));
  *out = new_value(std::move(value));
  return {};
}

}  // namespace

extern "C" {

treadle_status* treadle_value_from_pb(const void* bytes, size_t size, const treadle_type* type, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"bytes", bytes || size == 0}, {"out", out}}));
    return read_into(wire::MappedFile::own(std::string(static_cast<const char*>(bytes), size)), type, out);
  });
}

treadle_status* treadle_value_from_pb_file(const char* path, const treadle_type* type, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"path", path}, {"out", out}}));
    TREADLE_ASSIGN(auto file, wire::MappedFile::open(path));
    return read_into(file, type, out).in(path);
  });
}

treadle_status* treadle_file_read(const char* path, char** bytes, size_t* size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"path", path}, {"bytes", bytes}, {"size", size}}));
    TREADLE_ASSIGN(const auto file, wire::MappedFile::open(path));
    TREADLE_TRY(give_text(file->bytes(), bytes));
    *size = file->bytes().size();
    return {};
  });
}

treadle_status* treadle_value_to_pb(const treadle_value* value, const char* name, char** bytes, size_t* size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"value", value}, {"bytes", bytes}, {"size", size}}));
    TREADLE_ASSIGN(const std::string text, model::write_value(value->value, name ? name : ""));
    TREADLE_TRY(give_text(text, bytes));
    *size = text.size();
    return {};
  });
}

}  // extern "C"
