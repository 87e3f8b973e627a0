#include "model/text_file.h"

#include "ir/text.h"
#include "wire/serialize.h"

namespace treadle::model {

namespace {

Result<std::string> binary_of(std::string_view text) {
  ir::TextStorage storage;
  TREADLE_ASSIGN(const auto model, ir::parse_text<wire::ModelProto>(text, storage));
  return wire::serialize(model);
}

}  // namespace

Result<std::shared_ptr<wire::MappedFile>> binary_model(std::shared_ptr<wire::MappedFile> file) {
  if (!ir::looks_like_text(file->bytes())) return file;
  auto binary = binary_of(file->bytes());
  if (binary.ok()) return wire::MappedFile::own(std::move(*binary), file->path());
  const std::string name = file->path().empty() ? "model" : file->path();
  return Status(binary.error().code(), binary.error().message()).in(name + ":" + binary.error().place());
}

}  // namespace treadle::model
