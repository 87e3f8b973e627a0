#include "session/fingerprint.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_map.h"
#include "op/op_def.h"
#include "op/place.h"

namespace treadle::session {

namespace {

constexpr uint64_t kSeed = 0x2545f4914f6cdd1d;  // the same in every process

// Hashes the parts of an object.
class Key {
 public:
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  Key& add(T plain) {
    bytes_.append(reinterpret_cast<const char*>(&plain), sizeof plain);
    return *this;
  }
  Key& add(std::string_view text) {
    add(text.size());
    bytes_ += text;
    return *this;
  }
  Key& add(const Type& type) {
    add(type.kind).add(type.element).add(type.has_shape).add(type.shape.size());
    for (const Dim& dim : type.shape) add(dim.value_or(-1));  // names of symbols do not count
    return type.child ? add(*type.child) : *this;
  }
  uint64_t number() const { return hash_name(bytes_, kSeed); }

 private:
  std::string bytes_;
};

template <class List, class Add>
void add_list(Key& key, const List& list, Add&& add) {
  key.add(list.size());
  for (const auto& item : list) add(item);
}

void add_contents(Key& key, const Tensor& tensor) {
  constexpr size_t kWhole = 64 << 10, kPiece = 4096, kPieces = 3;
  if (is_string(tensor.type())) {
    for (const String& text : tensor.span<String>()) key.add(std::string_view(text));
    return;
  }
  const std::string_view bytes(static_cast<const char*>(tensor.raw()), tensor.byte_size());
  if (bytes.size() <= kWhole) {
    key.add(hash_name(bytes, kSeed));
    return;
  }
  for (size_t i = 0; i < kPieces; ++i) {
    key.add(hash_name(bytes.substr((bytes.size() - kPiece) * i / (kPieces - 1), kPiece), kSeed));
  }
}

void add_attribute(Key& key, const ir::Attribute& attribute) {
  key.add(attribute.name).add(attribute.kind);
  const auto add = [&](const auto& item) { key.add(item); };
  switch (attribute.kind) {
    case ir::AttributeKind::kFloat:
      return add(attribute.as_float());
    case ir::AttributeKind::kInt:
      return add(attribute.as_int());
    case ir::AttributeKind::kString:
      return add(std::string_view(attribute.as_string()));
    case ir::AttributeKind::kTensor:
      return add(fingerprint(attribute.as_tensor()));
    case ir::AttributeKind::kTypeProto:
      return add(attribute.as_type());
    case ir::AttributeKind::kFloats:
      return add_list(key, attribute.as_floats(), add);
    case ir::AttributeKind::kInts:
      return add_list(key, attribute.as_ints(), add);
    case ir::AttributeKind::kStrings:
      return add_list(key, attribute.as_strings(), [&](const std::string& text) { key.add(std::string_view(text)); });
    case ir::AttributeKind::kTensors:
      return add_list(key, attribute.as_tensors(), [&](const Tensor& tensor) { key.add(fingerprint(tensor)); });
    case ir::AttributeKind::kTypeProtos:
      return add_list(key, std::get<std::vector<Type>>(attribute.value), add);
    default:
      return;  // graphs are bodies of the node; sparse tensors are stored dense
  }
}

void add_attributes(Key& key, const ir::Node& node) {
  std::vector<const ir::Attribute*> attributes;
  for (const ir::Attribute& attribute : node.attributes.all()) {
    if (attribute.name != kNamedAs) attributes.push_back(&attribute);
  }
  std::sort(attributes.begin(), attributes.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const ir::Attribute* attribute : attributes) add_attribute(key, *attribute);
}

// The number of a value is that of the node that makes it. A node's number is made from the numbers of its operands.
class Walk {
 public:
  explicit Walk(bool contents) : contents_(contents) {}

  uint64_t number(const ir::Graph& graph) {
    Key key;
    for (const Tensor& tensor : graph.input_defaults) key.add(tensor.defined() ? constant(tensor) : 0);
    for (const ir::Value* output : graph.top().outputs) key.add(output->type);
    return key.add(region(graph.top(), 0)).number();
  }
  std::vector<std::pair<uint64_t, uint64_t>> take_nodes() {
    std::sort(nodes_.begin(), nodes_.end());
    return std::move(nodes_);
  }

 private:
  uint64_t constant(const Tensor& tensor) const {
    if (contents_) return fingerprint(tensor);
    Key key;
    key.add(tensor.type());
    add_list(key, tensor.dims(), [&](int64_t size) { key.add(size); });
    return key.number();
  }

  void note(const ir::Value& value, uint64_t number) {
    value.note = {walk_, static_cast<uint32_t>(numbers_.size())};
    numbers_.push_back(number);
  }

  uint64_t number_of(const ir::Value* value) {
    if (!value) return 0;
    if (value->note.walk != walk_) note(*value, value->is_constant() ? constant(value->constant) : 0);
    return numbers_[value->note.number];
  }

  // `depth`: how many bodies are around this one; distinguishes its inputs from theirs.
  uint64_t region(const ir::Region& region, size_t depth) {
    for (size_t i = 0; i < region.inputs.size(); ++i) {
      note(*region.inputs[i], Key().add(depth).add(i).add(region.inputs[i]->type).number());
    }
    for (const auto& node : region.nodes) add(*node, depth);
    Key key;
    key.add(std::string_view(region.attribute));
    add_list(key, region.inputs, [&](const ir::Value* input) { key.add(number_of(input)); });
    add_list(key, region.outputs, [&](const ir::Value* output) { key.add(number_of(output)); });
    return key.number();
  }

  void add(const ir::Node& node, size_t depth) {
    Key key;
    key.add(std::string_view(node.op->domain)).add(std::string_view(node.op->name)).add(node.version->since);
    // Two nodes that draw random numbers are never the same.
    if (node.op->effects == Effects::kRandom) key.add(++drawing_);
    add_attributes(key, node);
    size_t inputs = node.inputs.size();
    while (inputs > 0 && !node.inputs[inputs - 1]) --inputs;
    for (size_t i = 0; i < inputs; ++i) key.add(number_of(node.inputs[i]));
    for (const auto& body : node.regions) key.add(region(*body, depth + 1));
    const uint64_t made = key.number();
    if (depth == 0) nodes_.emplace_back(hash_name(node.name, kSeed), made);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i]) note(*node.outputs[i], Key().add(made).add(i).number());
    }
  }

  const bool contents_;
  const uint32_t walk_ = ir::new_walk();
  size_t drawing_ = 0;             // nodes so far that draw random numbers
  std::vector<uint64_t> numbers_;  // by number in Value::Note
  std::vector<std::pair<uint64_t, uint64_t>> nodes_;
};

}  // namespace

uint64_t fingerprint(const Tensor& tensor) {
  Key key;
  key.add(tensor.type());
  add_list(key, tensor.dims(), [&](int64_t size) { key.add(size); });
  add_contents(key, tensor);
  return key.number();
}

uint64_t Fingerprint::node(std::string_view name) const {
  const uint64_t number = hash_name(name, kSeed);
  const auto at = std::lower_bound(nodes.begin(), nodes.end(), std::pair(number, uint64_t{0}));
  return at != nodes.end() && at->first == number ? at->second : 0;
}

Fingerprint fingerprint(const ir::Graph& graph) {
  Walk walk(false);
  const uint64_t number = walk.number(graph);
  return {.graph = number, .weights = Walk(true).number(graph), .nodes = walk.take_nodes()};
}

}  // namespace treadle::session
