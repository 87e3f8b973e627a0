#include "ir/text.h"

#include "api/handles.h"
#include "model/other_formats.h"
#include "wire/parse.h"
#include "wire/serialize.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

// Calls fn(message) with an empty message of the part's kind.
template <class Fn>
Status with_part(treadle_part part, Fn&& fn) {
  switch (part) {
    case TREADLE_MODEL:
      return fn(wire::ModelProto());
    case TREADLE_GRAPH:
      return fn(wire::GraphProto());
    case TREADLE_FUNCTION:
      return fn(wire::FunctionProto());
    case TREADLE_NODE:
      return fn(wire::NodeProto());
  }
  return error(Code::kInvalidArgument, "there is no part {} of a model", static_cast<int>(part));
}

Status give(const std::string& bytes, char** out, size_t* size) {
  TREADLE_TRY(give_text(bytes, out));
  *size = bytes.size();
  return {};
}

}  // namespace

extern "C" {

bool treadle_is_text(const void* bytes, size_t size) {
  return bytes && ir::looks_like_text({static_cast<const char*>(bytes), size});
}

treadle_status* treadle_text_parse(treadle_part part, const char* text, size_t size, char** bytes, size_t* bytes_size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"text", text || size == 0}, {"bytes", bytes}, {"bytes_size", bytes_size}}));
    if (part == TREADLE_MODEL) TREADLE_TRY(model::refuse_other_formats({text, size}));
    return with_part(part, [&]<class Message>(Message) -> Status {
      ir::TextStorage storage;
      TREADLE_ASSIGN(const Message message, ir::parse_text<Message>({text, size}, storage));
      TREADLE_ASSIGN(const std::string serialized, wire::serialize(message));
      return give(serialized, bytes, bytes_size);
    });
  });
}

treadle_status* treadle_text_print(treadle_part part, const void* bytes, size_t size, int64_t max_elements, char** text,
                                   size_t* text_size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"bytes", bytes || size == 0}, {"text", text}, {"text_size", text_size}}));
    // No bytes at all are a valid message without fields.
    if (part == TREADLE_MODEL && size > 0) {
      TREADLE_TRY(model::refuse_other_formats({static_cast<const char*>(bytes), size}));
    }
    return with_part(part, [&]<class Message>(Message message) -> Status {
      Arena arena;
      TREADLE_TRY(wire::merge({static_cast<const char*>(bytes), size}, message, arena));
      return give(ir::print_text(message, {.max_elements = max_elements}), text, text_size);
    });
  });
}

}  // extern "C"
