#include "open/edits.h"

#include <array>

#include "model/node_finder.h"
#include "model/tensor_writer.h"
#include "reduce/lists.h"
#include "reduce/tensors.h"

namespace treadle::open {

namespace {

std::string text_of(const SizeOf& size) {
  if (!size.opening) return std::to_string(size.factor);
  return size.factor == 1 ? size.opening->symbol : fmt::format("{}*{}", size.factor, size.opening->symbol);
}

std::string text_of(std::span<const SizeOf> sizes) {
  std::string text;
  for (const SizeOf& size : sizes) text += (text.empty() ? "" : ",") + text_of(size);
  return "[" + text + "]";
}

bool are_numbers(std::span<const SizeOf> sizes) {
  return std::ranges::none_of(sizes, [](const SizeOf& size) { return size.opening != nullptr; });
}

std::vector<int64_t> numbers_of(std::span<const SizeOf> sizes) {
  std::vector<int64_t> numbers;
  for (const SizeOf& size : sizes) numbers.push_back(size.factor);
  return numbers;
}

}  // namespace

std::string Edit::text() const {
  if (kind == Kind::kShape) return fmt::format("{} ({}): shape {} becomes {}", path, op, was, text_of(sizes));
  return fmt::format("{} ({}): input {} is spread to {}", path, op, input, text_of(sizes));
}

std::string Edit::needs() const {
  if (kind == Kind::kShape) return fmt::format("its shape {} has to be {}", was, text_of(sizes));
  return fmt::format("input {} has to be spread to {}", input, text_of(sizes));
}

namespace {

const void* owner_of(const reduce::Scope& scope) {
  return scope.graph ? static_cast<const void*>(scope.graph) : scope.function;
}

std::string first_output(const wire::NodeProto& node) {
  for (const std::string_view name : node.outputs) {
    if (!name.empty()) return std::string(name);
  }
  return {};
}

bool is_in_function(const reduce::Names& names, size_t scope) {
  while (names.scopes()[scope].outer != reduce::kNoScope) scope = names.scopes()[scope].outer;
  return names.scopes()[scope].function != nullptr;
}

}  // namespace

std::vector<std::string> Editor::apply(std::span<const Edit> edits) {
  std::vector<std::optional<Target>> targets;  // found before any change: nodes without names are known by their number
  for (const Edit& edit : edits) targets.push_back(find(edit));
  std::map<std::pair<Target, size_t>, const Edit*> done;
  std::vector<std::string> whys;
  for (size_t i = 0; i < edits.size(); ++i) {
    std::string& why = whys.emplace_back();
    if (!targets[i]) {
      why = "its node is not to be found in the model";
      continue;
    }
    const auto [before, fresh] = done.emplace(std::pair(*targets[i], edits[i].input), &edits[i]);
    if (fresh) {
      const bool again = !done_.insert({*targets[i], edits[i].input, text_of(edits[i].sizes)}).second;
      why = again ? "it does not help" : apply(edits[i], *targets[i]);
    } else if (before->second->sizes != edits[i].sizes) {
      why = "another call of its function needs other sizes";
    }
  }
  return whys;
}

std::optional<Editor::Target> Editor::find(const Edit& edit) const {
  model::NodeFinder finder(model_);
  const wire::NodeProto* node = finder.find(edit.path);
  if (!node || node->op_type != edit.op) return std::nullopt;
  for (const reduce::Scope& scope : reduce::scopes_of(model_)) {
    const wire::List<wire::NodeProto>& nodes = scope.nodes();
    if (!nodes.empty() && node >= nodes.begin() && node < nodes.end()) {
      return Target{owner_of(scope), first_output(*node)};
    }
  }
  return std::nullopt;
}

std::string Editor::apply(const Edit& edit, const Target& target) {
  const reduce::Names names(model_);
  Place place;
  for (size_t s = 0; s < names.scopes().size(); ++s) {
    if (owner_of(names.scopes()[s]) != target.first) continue;
    const wire::List<wire::NodeProto>& nodes = names.scopes()[s].nodes();
    const auto node = std::ranges::find(nodes, target.second, first_output);
    place = {s, static_cast<size_t>(node - nodes.begin())};
  }
  if (is_in_function(names, place.scope) && !are_numbers(edit.sizes)) {
    return "it is in a function, where the sizes of the model's inputs cannot be read";
  }
  std::string why = edit.kind == Edit::Kind::kShape ? set_shape(names, place, edit) : spread(names, place, edit);
  reduce::insert_at(model_.graph->nodes, 0, in_front_, arena_);
  in_front_.clear();
  return why;
}

std::string Editor::set_shape(const reduce::Names& names, Place place, const Edit& edit) {
  wire::List<wire::NodeProto>& nodes = names.scopes()[place.scope].nodes();
  wire::NodeProto& node = nodes[place.node];
  if (wire::AttributeProto* attribute = reduce::find_attribute(node, "shape"); attribute && node.inputs.size() == 1) {
    if (!are_numbers(edit.sizes) || !attribute->ref_attr_name.empty()) return "its sizes are an attribute";
    attribute->ints.clear();
    for (const SizeOf& size : edit.sizes) attribute->ints.add(arena_, size.factor);
    return {};
  }
  if (are_numbers(edit.sizes) && set_in_place(names, place, edit.input, numbers_of(edit.sizes))) return {};
  reduce::FreshNames fresh(names, arena_);
  std::vector<wire::NodeProto> made;
  node.inputs[edit.input] = contents(edit.sizes, fresh, made);
  reduce::insert_at(nodes, place.node, made, arena_);
  return {};
}

// Changes the constant itself if nothing else reads it.
bool Editor::set_in_place(const reduce::Names& names, Place place, size_t input, std::span<const int64_t> numbers) {
  const std::string_view name = names.scopes()[place.scope].nodes()[place.node].inputs[input];
  const reduce::Definition* definition = names.find(place.scope, name);
  if (!definition) return false;
  size_t uses = 0;
  names.for_each_use(
      [&](size_t scope, std::string_view& used) { uses += used == name && names.find(scope, used) == definition; });
  if (uses != 1) return false;
  const reduce::Scope& scope = names.scopes()[definition->scope];
  if (definition->kind == reduce::Definition::kInitializer && scope.graph) {
    for (wire::TensorProto& tensor : scope.graph->initializers) {
      if (tensor.name != name) continue;
      tensor = reduce::int64s_of(numbers, false, name, arena_);
      return true;
    }
  }
  if (definition->kind != reduce::Definition::kNode) return false;
  wire::NodeProto& node = scope.nodes()[definition->node];
  wire::AttributeProto* value = reduce::is_of_onnx(node, "Constant") ? reduce::find_attribute(node, "value") : nullptr;
  if (!value || !value->t) return false;
  value->t = arena_.make<wire::TensorProto>(reduce::int64s_of(numbers, false, value->t->name, arena_));
  return true;
}

std::string Editor::spread(const reduce::Names& names, Place place, const Edit& edit) {
  wire::List<wire::NodeProto>& nodes = names.scopes()[place.scope].nodes();
  reduce::FreshNames fresh(names, arena_);
  std::vector<wire::NodeProto> made;
  std::string_view input = nodes[place.node].inputs[edit.input];
  const std::string_view spread = fresh.make(input);
  if (edit.row.defined()) {
    const Tensor& row = tensors_.emplace_back(edit.row);
    const std::string_view name = fresh.make(input);
    made.push_back(reduce::constant_of(model::write_tensor(row, name, arena_), arena_));
    input = name;
  }
  const std::string_view sizes = contents(edit.sizes, fresh, made);
  made.push_back(node("Expand", {input, sizes}, spread));
  nodes[place.node].inputs[edit.input] = spread;
  declare_state(nodes[place.node], edit);
  reduce::insert_at(nodes, place.node, made, arena_);
  return {};
}

// A state keeps its sizes as far as inference can tell. Where it cannot, since the body does not follow yet, it takes
// them from what the body declares for its input, which has the same number as the node's input.
void Editor::declare_state(wire::NodeProto& node, const Edit& edit) {
  const bool is_loop = reduce::is_of_onnx(node, "Loop") || reduce::is_of_onnx(node, "Scan");
  wire::GraphProto* const body = is_loop ? reduce::graph_attribute(node, "body") : nullptr;
  if (!body || edit.input >= body->inputs.size()) return;
  wire::ValueInfoProto& state = body->inputs[edit.input];
  if (!state.type || !state.type->tensor) return;
  wire::ShapeProto shape;
  for (const SizeOf& size : edit.sizes) {
    wire::Dimension& dim = shape.dims.add(arena_);
    if (size.opening && size.factor == 1) dim.param = arena_.copy(size.opening->symbol);
  }
  state.type->tensor->shape = shape;
}

std::string_view Editor::contents(std::span<const SizeOf> sizes, reduce::FreshNames& fresh,
                                  std::vector<wire::NodeProto>& nodes) {
  if (are_numbers(sizes)) return constant(numbers_of(sizes), fresh, nodes);
  wire::NodeProto list = node("Concat", {}, fresh.make("opened_sizes"));
  wire::AttributeProto& axis = list.attributes.add(arena_);
  axis.name = "axis";
  axis.type = wire::AttributeProto::kInt;
  axis.i = 0;
  for (const SizeOf& size : sizes) {
    std::string_view part = size.opening ? size_of_opening(*size.opening, fresh) : std::string_view();
    if (!size.opening || size.factor != 1) {
      const std::string_view factor = constant(std::array{size.factor}, fresh, nodes);
      if (size.opening) {
        const std::string_view product = fresh.make("opened_size");
        nodes.push_back(node("Mul", {part, factor}, product));
        part = product;
      } else {
        part = factor;
      }
    }
    list.inputs.add(arena_, part);
  }
  nodes.push_back(list);
  return list.outputs[0];
}

std::string_view Editor::size_of_opening(const Opening& opening, reduce::FreshNames& fresh) {
  if (const auto found = sizes_.find(opening.symbol); found != sizes_.end()) return found->second;
  const std::string_view shape = fresh.make(opening.input + "_sizes"), size = fresh.make(opening.symbol + "_size");
  in_front_.push_back(node("Shape", {arena_.copy(opening.input)}, shape));
  const std::string_view axis = constant(std::array{opening.axis}, fresh, in_front_);
  in_front_.push_back(node("Gather", {shape, axis}, size));
  return sizes_.emplace(opening.symbol, size).first->second;
}

std::string_view Editor::constant(std::span<const int64_t> numbers, reduce::FreshNames& fresh,
                                  std::vector<wire::NodeProto>& nodes) {
  const std::string_view name = fresh.make("opened_sizes");
  nodes.push_back(reduce::constant_of(reduce::int64s_of(numbers, false, name, arena_), arena_));
  return name;
}

wire::NodeProto Editor::node(std::string_view op, std::initializer_list<std::string_view> inputs,
                             std::string_view output) {
  wire::NodeProto made;
  made.op_type = op;
  for (const std::string_view input : inputs) made.inputs.add(arena_, input);
  made.outputs.add(arena_, output);
  return made;
}

}  // namespace treadle::open
