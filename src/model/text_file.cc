#include "model/text_file.h"

#include <functional>

#include "ir/text.h"
#include "model/node_finder.h"
#include "model/ort_file.h"
#include "model/other_formats.h"
#include "wire/serialize.h"

namespace treadle::model {

namespace {

Result<std::string> binary_of(std::string_view text) {
  ir::TextStorage storage;
  TREADLE_ASSIGN(const auto model, ir::parse_text<wire::ModelProto>(text, storage));
  return wire::serialize(model);
}

// The node of the last path in a place ("/Loop_0 (Loop-21) body, iteration 3: /Loop_0:body/Add_1 (Add-14)"). Names of
// nodes may contain spaces and brackets.
const wire::NodeProto* last_node(std::string_view place, NodeFinder& finder) {
  const std::string_view paths = place.substr(0, place.rfind(" ("));
  for (size_t slash = paths.rfind('/'); slash != std::string_view::npos; slash = paths.rfind('/', slash - 1)) {
    const bool begins = slash == 0 || paths[slash - 1] == ' ';
    const wire::NodeProto* node = begins ? finder.find(paths.substr(slash)) : nullptr;
    if (node || slash == 0) return node;
  }
  return nullptr;
}

// The initializer of the model's graph in a place; empty if there is none.
std::string_view initializer_at(std::string_view place, const wire::ModelProto& model) {
  constexpr std::string_view kWord = "initializer \"";
  if (!place.starts_with(kWord) || !place.ends_with('"') || !model.graph) return {};
  const std::string_view name = place.substr(kWord.size(), place.size() - kWord.size() - 1);
  for (const wire::TensorProto& tensor : model.graph->initializers) {
    if (tensor.name == name) return tensor.name;
  }
  return {};
}

// The offset in the text of the node's operator or of the initializer's name; npos if there is none.
size_t offset_of_place(std::string_view text, std::string_view place, size_t& length) {
  ir::TextStorage storage;
  auto model = ir::parse_text<wire::ModelProto>(text, storage);
  if (!model.ok()) return std::string_view::npos;
  NodeFinder finder(*model);
  const wire::NodeProto* node = last_node(place, finder);
  const std::string_view part = node ? node->op_type : initializer_at(place, *model);
  const std::less<> before;
  if (!part.data() || before(part.data(), text.data()) || !before(part.data(), text.data() + text.size())) {
    return std::string_view::npos;
  }
  length = part.size();
  return static_cast<size_t>(part.data() - text.data());
}

}  // namespace

Result<std::shared_ptr<wire::MappedFile>> binary_model(std::shared_ptr<wire::MappedFile> file) {
  if (is_ort_file(file->bytes())) {
    auto onnx = onnx_of_ort_file(file->bytes());
    TREADLE_TRY(file->unchanged());
    if (!onnx.ok()) return in_file(std::move(onnx).status(), *file);
    return wire::MappedFile::own(std::move(*onnx), file->path());
  }
  Status status = refuse_other_formats(file->bytes());
  if (!status.ok()) return in_file(std::move(status), *file);
  if (!ir::looks_like_text(file->bytes())) return file;
  auto binary = binary_of(file->bytes());
  if (binary.ok()) return wire::MappedFile::own(std::move(*binary), file->path());
  const std::string name = file->path().empty() ? "model" : file->path();
  return Status(binary.error().code(), binary.error().message()).in(name + ":" + binary.error().place());
}

Status in_file(Status status, const wire::MappedFile& file) {
  if (status.ok()) return status;
  const std::string name = file.path().empty() ? "model" : file.path();
  std::string_view place = status.place();
  if (place.starts_with(name + ": ")) place.remove_prefix(name.size() + 2);
  if (place == name) place = {};
  size_t length = 0;
  const std::string_view text = file.bytes();
  const size_t offset =
      place.empty() || !ir::looks_like_text(text) ? std::string_view::npos : offset_of_place(text, place, length);
  if (offset == std::string_view::npos) {
    const std::string full = place.empty() ? name : fmt::format("{}: {}", name, place);
    return Status(status.code(), status.message()).in(full);
  }
  return Status(status.code(), status.message() + ir::text_excerpt(text, offset, length))
      .in(fmt::format("{}:{}: {}", name, ir::text_position(text, offset), place));
}

}  // namespace treadle::model
