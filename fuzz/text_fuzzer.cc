// Bytes as ONNX text, and as a model that is printed. What is read prints to a text that reads back the same; so does
// what a binary model says, unknown fields and all.

#include <cstdint>
#include <cstdlib>

#include "ir/text.h"
#include "wire/parse.h"
#include "wire/serialize.h"

namespace {

using namespace treadle;  // NOLINT(google-build-using-namespace)

// Message -> text -> message, in the canonical encoding.
template <class Message>
void print_and_read(const Message& message) {
  auto bytes = wire::serialize(message);
  if (!bytes.ok()) return;
  const std::string text = ir::print_text(message);
  ir::TextStorage storage;
  auto again = ir::parse_text<Message>(text, storage);
  if (!again.ok()) {
    if (again.error().code() == Code::kLimit) return;  // fields in annotations lie deeper
    std::abort();
  }
  // A text says numbers one way; protobuf has several for some. The second text tells whether anything was lost.
  if (*bytes != *wire::serialize(*again) && ir::print_text(*again) != text) std::abort();
}

template <class Message>
void read_text(std::string_view text) {
  ir::TextStorage storage;
  auto message = ir::parse_text<Message>(text, storage);
  if (message.ok()) {
    print_and_read(*message);
  } else if (message.error().place().empty()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (ir::looks_like_text(bytes)) {
    read_text<wire::ModelProto>(bytes);
    read_text<wire::NodeProto>(bytes);
  } else {
    auto model = wire::parse_model(bytes);
    if (model.ok()) print_and_read(*model);
  }
  return 0;
}
