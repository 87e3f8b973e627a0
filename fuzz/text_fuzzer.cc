// Bytes as ONNX text, and as a model that is printed. What is read prints to a text that reads back the same; so does
// what a binary model says, unknown fields and all.

#include "fuzz/support/found.h"
#include "fuzz/support/model_mutator.h"
#include "fuzz/support/text_mutator.h"
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
    fuzz::found("a text of ours that does not read back: " + again.error().to_string() + "\n" + text);
  }
  // A text says numbers one way; protobuf has several for some. The second text tells whether anything was lost.
  fuzz::expect(*bytes == *wire::serialize(*again) || ir::print_text(*again) == text, "something lost in " + text);
}

template <class Message>
void read_text(std::string_view text) {
  ir::TextStorage storage;
  auto message = ir::parse_text<Message>(text, storage);
  if (message.ok()) {
    print_and_read(*message);
  } else {
    fuzz::expect(!message.error().place().empty(), "an error without a place");
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
    if (model.ok()) print_and_read(**model);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const bool is_text = ir::looks_like_text({reinterpret_cast<const char*>(data), size});
  if (is_text && seed % 3 == 0) return fuzz::mutate_text(data, size, max_size, seed);
  if (is_text && seed % 3 == 1) return LLVMFuzzerMutate(data, size, max_size);
  return fuzz::mutate_model(data, size, max_size, seed, seed % 8 != 0);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2, size_t size2,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  return fuzz::cross_models(data1, size1, data2, size2, out, max_size, seed, seed % 8 != 0);
}
