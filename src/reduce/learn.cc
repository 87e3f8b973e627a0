// Learns the types of a model's values. The model need not load: inference goes as far as it gets.

#include "infer/inference.h"
#include "model/annotate.h"
#include "model/import.h"
#include "reduce/candidate.h"
#include "reduce/tensors.h"
#include "reduce/tidy.h"

namespace treadle::reduce {

namespace {

// Adds the inferred types of values to `typed`.
void infer_types(wire::Parsed<wire::ModelProto>& typed, std::string_view bytes, const std::string& folder) {
  const auto file = wire::MappedFile::borrow(bytes);
  model::ImportOptions options;
  std::vector<Status> broken;
  options.broken = &broken;
  options.folder = folder;
  options.for_types = options.unique_paths = true;
  auto graph = model::import_model(*typed, file, options);
  if (!graph.ok()) return;
  Inference inference({.strict = false, .name_unknowns = true});
  if (!inference.infer((*graph)->top()).ok()) return;
  const auto written = model::annotate_types(typed, bytes, **graph);
  static_cast<void>(written.ok());  // the types are in `typed` even where the bytes would be too many
}

void read_types(wire::ModelProto& model, Facts& facts) {
  const auto add = [&](const wire::ValueInfoProto& value) {
    if (value.type) facts.types.emplace(value.name, &*value.type);
  };
  Arena& arena = facts.typed.arena();
  for (const Scope& scope : scopes_of(model)) {
    if (!scope.graph) continue;
    for (const wire::ValueInfoProto& value : scope.graph->inputs) add(value);
    for (const wire::TensorProto& tensor : scope.graph->initializers) {
      facts.types.emplace(tensor.name, arena.make<wire::TypeProto>(type_of(tensor, arena)));
    }
    for (const wire::ValueInfoProto& value : scope.graph->value_infos) add(value);
    for (const wire::ValueInfoProto& value : scope.graph->outputs) add(value);
  }
}

}  // namespace

void learn(wire::ModelProto& model, std::string_view bytes, const std::string& folder, Facts& facts) {
  facts.folder = folder;
  if (auto parsed = wire::parse_model(bytes); parsed.ok()) {
    facts.typed = std::move(*parsed);
    infer_types(facts.typed, bytes, folder);
    read_types(*facts.typed, facts);
  }
  note_unread(model, facts);
}

}  // namespace treadle::reduce
