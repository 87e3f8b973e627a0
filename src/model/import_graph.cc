#include <algorithm>
#include <cctype>

#include "base/harmless.h"
#include "base/stack.h"
#include "base/stop.h"
#include "model/gradients.h"
#include "model/importer.h"
#include "model/missing_operators.h"
#include "model/newest_versions.h"
#include "model/node_order.h"
#include "model/text_file.h"
#include "model/types.h"
#include "wire/parse.h"

namespace treadle::model {

namespace {

// Whether a type is known down to the tensors that it holds.
bool is_whole(const Type& type) {
  return type.is_tensor() || (type.child && is_whole(*type.child));
}

// The versions of a domain. Operator sets above `newest` did not exist when this was written. A model may use an
// `implied` domain without importing it; like onnxruntime, the import then takes the newest version.
struct Domain {
  std::string_view name;
  int64_t newest;
  bool refuses_newer, implied;
};
constexpr Domain kDomains[] = {
    {"", kNewestOnnxOpset, true, false},
    {"ai.onnx.ml", kNewestMlOpset, true, true},
    {"ai.onnx.preview.training", 1, true, false},
    {"com.microsoft", 1, false, true},
};

DeclaredTypes declared_types(const wire::GraphProto& graph) {
  return types_of({&graph.outputs, &graph.value_infos});
}

// Names of dense and sparse initializers of a graph.
using InitializerNames = std::unordered_map<std::string_view, const wire::TensorProto*>;
InitializerNames initializer_names(const wire::GraphProto& graph) {
  InitializerNames names;
  for (const wire::TensorProto& tensor : graph.initializers) names.emplace(tensor.name, &tensor);
  for (const wire::SparseTensorProto& tensor : graph.sparse_initializers) {
    names.emplace(tensor.values.name, &tensor.values);
  }
  return names;
}

bool tells_sizes(const Type& type) {
  return type.is_tensor() && type.has_shape &&
         std::any_of(type.shape.begin(), type.shape.end(), [](const Dim& d) { return d.is_known(); });
}

bool defines(const wire::List<wire::NodeProto>& nodes, std::string_view name) {
  for (const wire::NodeProto& node : nodes) {
    for (const std::string_view output : node.outputs) {
      if (output == name) return true;
    }
  }
  return false;
}

std::string_view graph_name(const std::string& path) {
  return path.empty() ? "the graph" : std::string_view(path);
}

}  // namespace

std::string quoted(std::string_view kind, std::string_view name) {
  return fmt::format("{} \"{}\"", kind, name);
}

DeclaredTypes types_of(std::initializer_list<const wire::List<wire::ValueInfoProto>*> lists) {
  DeclaredTypes types;
  size_t count = 0;
  for (const auto* list : lists) count += list->size();
  if (count == 0) return types;
  types.reserve(count);
  for (const auto* list : lists) {
    for (const wire::ValueInfoProto& info : *list) {
      if (info.type) types.emplace(info.name, &*info.type);
    }
  }
  return types;
}

std::string shortened(std::string text) {
  constexpr size_t kEnd = 480;
  if (text.size() <= kLongName) return text;
  const std::string_view all = text;
  return fmt::format("{}...{}#{:x}", all.substr(0, kEnd), all.substr(all.size() - kEnd),
                     std::hash<std::string_view>()(all));
}

std::string NodePaths::make(const wire::NodeProto& node, size_t index) {
  std::string_view name = node.name;
  if (name.starts_with('/')) name.remove_prefix(1);
  if (!is_harmless(name)) name = made_up_.emplace_back(harmless(name));
  if (name.empty()) name = made_up_.emplace_back(fmt::format("{}_{}", node.op_type, index));
  const auto [first, fresh] = used_.emplace(name, 2);
  for (bool taken = !fresh; taken;) {
    std::string candidate = fmt::format("{}#{}", used_.name(first), used_.value(first)++);
    taken = used_.find(candidate) != nullptr;
    if (!taken) {
      name = made_up_.emplace_back(std::move(candidate));
      used_.emplace(name, 2);
    }
  }
  std::string path;
  path.reserve(prefix_.size() + 1 + name.size());
  path += prefix_;
  path += '/';
  path += name;
  return shortened(std::move(path));
}

std::string_view NodePaths::make_any(const wire::NodeProto& node, size_t index, std::string& text) const {
  const bool is_path = prefix_.empty() && node.name.size() > 1 && node.name.size() < kLongName && node.name[0] == '/';
  if (is_path && is_harmless(node.name)) return node.name;
  const std::string own = is_harmless(node.name) ? std::string() : harmless(node.name);
  std::string_view name = own.empty() ? node.name : std::string_view(own);
  if (name.starts_with('/')) name.remove_prefix(1);
  text.assign(prefix_).append(1, '/').append(name.empty() ? node.op_type : name);
  if (name.empty()) text.append(1, '_').append(std::to_string(index));
  if (text.size() > kLongName) text = shortened(std::move(text));
  return text;
}

Importer::Importer(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                   const ImportOptions& options, bool sorts)
    : model_(model),
      options_(options),
      sorts_(sorts),
      file_(file),
      tensors_(file, TensorReader::Folder(options.folder)),
      graph_(std::make_unique<ir::Graph>()) {
  if (options.copy_weights) tensors_.copy_contents();
  for (const auto& [location, given] : options.files) tensors_.give_file(location, given);
}

Result<std::unique_ptr<ir::Graph>> Importer::run() {
  graph_->file = file_->path();
  TREADLE_TRY(check_model());
  if (!options_.for_types) read_metadata();
  TREADLE_TRY(functions_.build(model_, opsets_));
  Status status = import_top();
  if (lacks_operator_) {
    if (std::string all = missing_operators(model_, functions_); !all.empty()) {
      return error(Code::kNotImplemented, "{}", all);
    }
  }
  TREADLE_TRY(std::move(status));
  if (!options_.broken && opsets_.contains("ai.onnx.preview.training")) {
    TREADLE_TRY(attach_gradients(*graph_, options_.max_inlined_nodes));
  }
  return std::move(graph_);
}

Status Importer::check_model() {
  if (!model_.graph) return error(Code::kInvalidModel, "expected an ONNX model, found a file without a graph");
  const int64_t ir = model_.ir_version;
  if (ir < kOldestIrVersion) {
    return error(Code::kInvalidModel, "expected an IR version of {} or more, found {}", kOldestIrVersion, ir);
  }
  if (ir > kNewestIrVersion) {
    return error(Code::kNotImplemented, "IR version {} is newer than {}, the newest that treadle reads", ir,
                 kNewestIrVersion);
  }
  TREADLE_ASSIGN(opsets_, read_opsets(model_.opset_imports));
  if (opsets_.empty()) {
    // Models before IR version 3 have no imports; all their operators have version 1.
    if (ir >= 3) return error(Code::kInvalidModel, "the model imports no operator set");
    opsets_.emplace("", 1);
  }
  for (const Domain& domain : kDomains) {
    const auto it = opsets_.find(domain.name);
    if (it == opsets_.end()) {
      if (!domain.implied || options_.as_onnx) continue;
      opsets_.emplace(domain.name, domain.newest);
      implied_.push_back(domain.name);
    } else if (domain.refuses_newer && it->second > domain.newest) {
      return error(Code::kNotImplemented,
                   "operator set {} of domain \"{}\" is newer than {}, the newest that treadle has", it->second,
                   domain.name.empty() ? "ai.onnx" : domain.name, domain.newest);
    }
  }
  return {};
}

void Importer::read_metadata() {
  ir::Metadata& metadata = graph_->metadata;
  metadata.ir_version = model_.ir_version;
  metadata.producer_name = model_.producer_name;
  metadata.producer_version = model_.producer_version;
  metadata.domain = model_.domain;
  metadata.description = model_.doc_string;
  metadata.graph_name = model_.graph->name;
  metadata.graph_description = model_.graph->doc_string;
  metadata.model_version = model_.model_version;
  for (const auto& entry : model_.metadata_props) metadata.properties.emplace_back(entry.key, entry.value);
  for (const auto& import : model_.opset_imports) metadata.opset_imports.emplace_back(import.domain, import.version);
}

const NameUses::Numbers* Importer::numbers_of(const wire::GraphProto& graph) const {
  if (!options_.name_uses || !options_.name_uses->complete) return nullptr;
  const auto* numbers = options_.name_uses->by_graph.find(&graph);
  return numbers ? numbers->get() : nullptr;
}

Status Importer::import_top() {
  const wire::GraphProto& proto = *model_.graph;
  graph_->top().name = proto.name;
  if (options_.name_uses && options_.name_uses->complete) values_.resize(options_.name_uses->definitions);
  Scope scope(nullptr);
  const NameUses::Numbers* numbers = numbers_of(proto);
  if (!numbers) scope.reserve(proto.inputs.size() + proto.initializers.size() + proto.nodes.size());
  const Environment environment{&opsets_};
  NodePaths paths("");
  const DeclaredTypes types = declared_types(proto);
  ImportTarget target{&graph_->top(), scope, environment, paths, types, numbers};
  TREADLE_TRY(import_inputs(proto, target, &graph_->input_defaults));
  TREADLE_TRY(import_initializers(proto, target));
  TREADLE_TRY(import_nodes(proto.nodes, target));
  return import_outputs(proto, target);
}

Status Importer::import_body(const wire::GraphProto& proto, std::string_view path, ir::Region* region,
                             const Scope* outer, const Environment& environment) {
  if (++depth_ > kMaxImportDepth) {
    return error(Code::kLimit, "bodies and calls are nested more than {} deep", kMaxImportDepth).in(path);
  }
  TREADLE_TRY(check_stack(static_cast<size_t>(depth_)).in(path));
  region->name = shortened(std::string(proto.name));
  Scope scope(outer);
  NodePaths paths(path);
  const DeclaredTypes types = declared_types(proto);
  ImportTarget target{region, scope, environment, paths, types, numbers_of(proto)};
  TREADLE_TRY(import_inputs(proto, target, nullptr));
  TREADLE_TRY(import_initializers(proto, target));
  TREADLE_TRY(import_nodes(proto.nodes, target));
  TREADLE_TRY(import_outputs(proto, target));
  --depth_;
  return {};
}

// Inputs with an initialiser. In the top graph, it is the input's default (stored in `defaults`). In a body, the
// operator decides how many inputs it passes. There such an input, which old exporters wrote, becomes a constant.
Status Importer::import_inputs(const wire::GraphProto& proto, ImportTarget& target, std::vector<Tensor>* defaults) {
  const auto initialized = proto.inputs.empty() ? InitializerNames() : initializer_names(proto);
  for (const wire::ValueInfoProto& info : proto.inputs) {
    const auto it = initialized.find(info.name);
    const bool has_initializer = it != initialized.end();
    if (has_initializer && !defaults) continue;
    Type type;
    if (info.type) {
      auto declared = read_type(*info.type);
      if (!declared.ok()) return std::move(declared).status().in(quoted("input", info.name)).in(target.paths.prefix());
      type = std::move(*declared);
    }
    if (defaults) {
      if (info.name.empty()) return error(Code::kInvalidModel, "a graph input has no name");
      if (has_initializer && !type.is_known()) {
        type = Type::tensor(element_type_from_number(it->second->data_type));
      }
      if (!type.is_known()) return error(Code::kInvalidModel, "input \"{}\" has no type", info.name);
      if (options_.denoted_sizes) TREADLE_TRY(fix_denoted_sizes(info, type));
      if (!is_whole(type)) {
        return error(Code::kInvalidModel, "input \"{}\" has the type {}, which leaves open what it holds", info.name,
                     type.to_string());
      }
      defaults->emplace_back();
    }
    ir::Value* value = graph_->new_value(value_name(info.name, target), std::move(type), target.region);
    target.region->inputs.push_back(value);
    if (!info.name.empty()) TREADLE_TRY(define(info.name, value, target));
  }
  return {};
}

Status Importer::fix_denoted_sizes(const wire::ValueInfoProto& info, Type& type) const {
  if (!type.is_tensor() || !type.has_shape) return {};
  const auto lower = [](std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
  };
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const std::string denotation = lower(info.type->tensor->shape->dims[i].denotation);
    if (denotation.empty()) continue;
    for (ImportOptions::DenotedSize& wanted : *options_.denoted_sizes) {
      if (lower(wanted.denotation) != denotation) continue;
      wanted.found = true;
      if (type.shape[i].is_known() && type.shape[i].value() != wanted.size) {
        return error(Code::kInvalidArgument, "axis {} of input '{}', denoted {}, is {} in the model and cannot be {}",
                     i, info.name, wanted.denotation, type.shape[i].value(), wanted.size);
      }
      type.shape[i] = wanted.size;
    }
  }
  return {};
}

Status Importer::import_outputs(const wire::GraphProto& proto, ImportTarget& target) {
  for (const wire::ValueInfoProto& info : proto.outputs) {
    ir::Value* const* value = info.name.empty() ? nullptr : find(info.name, target);
    if ((!value || !*value) && options_.broken) {
      TREADLE_ASSIGN(Type type, declared_type(info.name, target));
      target.region->outputs.push_back(
          graph_->new_value(value_name(info.name, target), std::move(type), target.region));
      continue;
    }
    if (!value || !*value) {
      return error(Code::kInvalidModel, "nothing defines the graph's output \"{}\"", info.name)
          .in(target.paths.prefix());
    }
    ir::Value* output = *value;
    const bool is_outer = output->owner != target.region && !output->is_constant();
    if (is_outer && !options_.as_onnx && !options_.broken) {
      // The value is known to have these sizes only within the body; the rows of a loop without iterations take them
      // from here.
      TREADLE_ASSIGN(Type declared, declared_type(info.name, target));
      if (tells_sizes(declared) && !output->type.is_concrete()) {
        const std::string path = fmt::format("{}/{}", target.paths.prefix(), info.name);
        TREADLE_ASSIGN(output, insert_identity(output, path, target));
        output->type = std::move(declared);
      }
    }
    target.region->outputs.push_back(output);
  }
  return {};
}

Status Importer::import_nodes(const wire::List<wire::NodeProto>& nodes, ImportTarget& target) {
  if (!options_.for_types || options_.unique_paths) target.paths.reserve(nodes.size());
  if (target.region->nodes.empty()) {
    target.region->nodes.reserve(nodes.size());
    if (target.region == &graph_->top()) graph_->reserve_values(nodes.size());
  }
  std::vector<uint32_t> order;
  if (sorts_) {
    order = sorted_order(nodes);
    if (options_.warnings && open_calls_ == 0 && !std::is_sorted(order.begin(), order.end())) {
      options_.warnings->push_back(
          fmt::format("the nodes of {} do not each stand behind those that they need: they run in another order than "
                      "the file's",
                      graph_name(target.paths.prefix())));
    }
  }
  std::string text;
  for (size_t k = 0; k < nodes.size(); ++k) {
    const size_t i = order.empty() ? k : order[k];
    const wire::NodeProto& node = nodes[i];
    if (stop_requested()) return stopped();
    std::string_view path;
    if (options_.for_types && !options_.unique_paths) {
      path = target.paths.make_any(node, i, text);
    } else {
      path = text = target.paths.make(node, i);
    }
    const int depth = depth_, open_calls = open_calls_;
    Status status = import_node(node, path, target);
    if (status.ok()) continue;
    const std::string_view later = needed_later(node, nodes, target);
    if (status.place().empty()) status = locate(std::move(status), node, path, later, target);
    if (!later.empty() && !sorts_ && !options_.as_onnx) {
      unsorted_ = true;
      return status;
    }
    if (!options_.broken) return status;
    depth_ = depth;
    open_calls_ = open_calls;
    TREADLE_TRY(import_broken(std::move(status), node, path, target));
  }
  return {};
}

// A name that the node or its bodies use and that a later node defines; empty if there is none.
std::string_view Importer::needed_later(const wire::NodeProto& node, const wire::List<wire::NodeProto>& nodes,
                                        const ImportTarget& target) {
  std::string_view found;
  if (target.numbers) return found;
  for_each_used_name(node, [&](std::string_view name) {
    if (found.empty() && !target.scope.find(name) && defines(nodes, name)) found = name;
  });
  return found;
}

// The error of a node with its place. If a value is merely defined too late (`later`), the error says so.
Status Importer::locate(Status status, const wire::NodeProto& node, std::string_view path, std::string_view later,
                        const ImportTarget& target) const {
  if (!later.empty() && sorts_) {
    status = error(Code::kInvalidModel, "\"{}\" depends on this node's own output: nodes go around in a circle", later);
  } else if (!later.empty()) {
    status = error(Code::kInvalidModel,
                   "\"{}\" is used before the node that defines it: nodes must be sorted topologically", later);
  }
  const std::string_view domain = canonical_domain(node.domain);
  const auto opset = target.environment.opsets->find(domain);
  const OpDef* op = find_op(domain, node.op_type);
  const OpVersion* version = op && opset != target.environment.opsets->end() ? op->version_for(opset->second) : nullptr;
  const std::string full_name = domain.empty() ? std::string(node.op_type) : fmt::format("{}.{}", domain, node.op_type);
  return std::move(status).in(version ? fmt::format("{} ({}-{})", path, full_name, version->since)
                                      : fmt::format("{} ({})", path, full_name));
}

Result<Type> Importer::declared_type(std::string_view name, const wire::TypeProto* const* declared,
                                     const ImportTarget& target) {
  if (!declared) return Type();
  auto type = read_type(**declared);
  if (!type.ok()) return std::move(type).status().in(quoted("value", name)).in(target.paths.prefix());
  return type;
}

Status Importer::define(std::string_view name, ir::Value* value, ImportTarget& target) {
  if (target.numbers) {
    if (const uint32_t* number = target.take_number()) values_[*number] = value;
    return {};
  }
  if (target.scope.define(name, value)) return {};
  return error(Code::kInvalidModel, "\"{}\" is defined twice in one graph", name).in(target.paths.prefix());
}

std::string_view Importer::value_name(std::string_view name, const ImportTarget& target, std::string& text) const {
  if (target.environment.function) return text = shortened(fmt::format("{}/{}", target.paths.prefix(), name));
  const bool top = target.region == &graph_->top();
  return top || name.size() <= kLongName ? name : text = shortened(std::string(name));
}

Result<ir::Value*> Importer::resolve(std::string_view name, ImportTarget& target) {
  if (name.empty()) return static_cast<ir::Value*>(nullptr);
  if (ir::Value* const* value = find(name, target)) return *value;
  return error(Code::kInvalidModel, "nothing defines the input \"{}\"", name);
}

namespace {

// Imports a model whose nodes are not sorted. That a name is used too early is noticed in the middle of a node, so the
// import starts again with sorted nodes.
Result<std::unique_ptr<ir::Graph>> import_in_order(const wire::ModelProto& model,
                                                   const std::shared_ptr<wire::MappedFile>& file,
                                                   const ImportOptions& options) {
  const size_t warnings = options.warnings ? options.warnings->size() : 0;
  const size_t broken = options.broken ? options.broken->size() : 0;
  for (const bool sorts : {false, true}) {
    Importer importer(model, file, options, sorts);
    auto graph = importer.run();
    TREADLE_TRY(importer.tensors().unchanged());
    if (sorts || !importer.unsorted()) return graph;
    if (options.warnings) options.warnings->resize(warnings);
    if (options.broken)
      options.broken->erase(options.broken->begin() + static_cast<ptrdiff_t>(broken), options.broken->end());
  }
  return Status();  // not reached
}

}  // namespace

Result<std::unique_ptr<ir::Graph>> import_model(const wire::ModelProto& model,
                                                const std::shared_ptr<wire::MappedFile>& file,
                                                const ImportOptions& options) {
  auto graph = import_in_order(model, file, options);
  if (!graph.ok()) return in_file(std::move(graph).status(), *file);
  if (!options.for_types) file->expect_data_reads();
  return graph;
}

Result<std::unique_ptr<ir::Graph>> import_model(const std::shared_ptr<wire::MappedFile>& file,
                                                const ImportOptions& options) {
  TREADLE_ASSIGN(const auto binary, binary_model(file));
  auto model = wire::parse_model(binary->bytes());
  TREADLE_TRY(binary->unchanged());
  if (!model.ok()) return in_file(std::move(model).status(), *binary);
  auto graph = import_model(**model, binary, options);
  if (!graph.ok()) return in_file(std::move(graph).status(), *file);
  return graph;
}

void fix_input_defaults(ir::Graph& graph) {
  std::unordered_map<ir::Value*, ir::Value*> fixed;
  std::vector<ir::Value*> inputs;
  for (size_t i = 0; i < graph.top().inputs.size(); ++i) {
    ir::Value* input = graph.top().inputs[i];
    if (i < graph.input_defaults.size() && graph.input_defaults[i].defined()) {
      fixed.emplace(input, graph.new_constant(input->name, graph.input_defaults[i]));
    } else {
      inputs.push_back(input);
    }
  }
  ir::replace_uses(graph, fixed);
  graph.input_defaults.assign(inputs.size(), Tensor());
  graph.top().inputs = std::move(inputs);
}

}  // namespace treadle::model
