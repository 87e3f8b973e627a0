#include "ir/graph.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <unordered_set>

#include "base/pointer_map.h"

namespace treadle::ir {

Region* Node::region(std::string_view attribute) const {
  for (const auto& r : regions) {
    if (r->attribute == attribute) return r.get();
  }
  return nullptr;
}

bool Region::contains(const Region* inner) const {
  for (; inner; inner = inner->parent_region()) {
    if (inner == this) return true;
  }
  return false;
}

std::vector<Value*> captures(const Region& region) {
  std::vector<Value*> found;
  std::unordered_set<const Value*> seen;
  auto use = [&](Value* v) {
    if (!v || v->is_constant() || region.contains(v->owner)) return;
    if (seen.insert(v).second) found.push_back(v);
  };
  auto visit = [&](auto& self, const Region& r) -> void {
    for (const auto& node : r.nodes) {
      for (Value* v : node->inputs) use(v);
      for (const auto& inner : node->regions) self(self, *inner);
    }
    for (Value* v : r.outputs) use(v);
  };
  visit(visit, region);
  return found;
}

Graph::Graph() : top_(new(arena_) Region) {
  top_->graph = this;
}

namespace {

// Destroys nested bodies one after the other, not recursively: that needs no stack, and no memory.
void end_bodies(Region& top) {
  for (Region* at = &top;;) {
    while (!at->nodes.empty() && (!at->nodes.back() || at->nodes.back()->regions.empty())) at->nodes.pop_back();
    if (!at->nodes.empty()) {
      Node& node = *at->nodes.back();
      if (Region* inner = node.regions.back().get()) {
        node.parent = at;
        inner->parent_node = &node;
        at = inner;
      } else {
        node.regions.pop_back();
      }
    } else if (at == &top) {
      return;
    } else {
      Node& owner = *at->parent_node;
      at = owner.parent;
      owner.regions.pop_back();
    }
  }
}

}  // namespace

Graph::~Graph() {
  end_bodies(*top_);
  top_.reset();
  for (Value* value : values_) value->~Value();
}

Value* Graph::make_value(std::string_view name, Region* owner) {
  Value* value = arena_.make<Value>();
  value->name = Name::borrow(arena_.copy(name));
  value->owner = owner;
  values_.push_back(value);
  return value;
}

Value* Graph::new_value(std::string_view name, Type type, Region* owner) {
  Value* value = make_value(name, owner);
  value->type = std::move(type);
  return value;
}

Value* Graph::new_constant(std::string_view name, Tensor tensor) {
  Value* v = new_value(name, Type::tensor(tensor.type(), to_shape(tensor.dims())), top_.get());
  v->constant = std::move(tensor);
  return v;
}

Region* Graph::new_region(Node* node, std::string attribute) {
  std::unique_ptr<Region> region(new (arena_) Region);
  region->attribute = std::move(attribute);
  region->parent_node = node;
  region->graph = this;
  node->regions.push_back(std::move(region));
  return node->regions.back().get();
}

Value* Graph::add_output(Node* node, std::string_view name) {
  Value* v = make_value(name, node->parent);
  v->producer = node;
  v->output_index = static_cast<uint32_t>(node->outputs.size());
  node->outputs.push_back(v);
  node->output_count = static_cast<uint32_t>(node->outputs.size());
  return v;
}

void Graph::add_absent_output(Node* node) {
  node->outputs.push_back(nullptr);
  node->output_count = static_cast<uint32_t>(node->outputs.size());
}

namespace {

// The place in `map` for the copy of `v`, and whether the entry is new.
std::pair<Value**, bool> entry_of(std::unordered_map<const Value*, Value*>& map, const Value* v) {
  const auto [it, fresh] = map.try_emplace(v, nullptr);
  return {&it->second, fresh};
}
std::pair<Value**, bool> entry_of(PointerMap<Value, Value*>& map, const Value* v) {
  return map.emplace(v);
}

// Copies regions into another graph; `map` goes from values of the old graph to values of the new one.
template <class Map>
struct Cloner {
  Graph& to;
  Map& map;

  Value* copy(const Value* v, Region* owner) {
    if (!v) return nullptr;
    const auto [made, fresh] = entry_of(map, v);
    if (fresh) {
      *made = to.new_value(v->name, v->type, v->is_constant() ? &to.top() : owner);
      (*made)->constant = v->constant;
      (*made)->origin = v->origin;
    }
    return *made;
  }

  // A region owns the values that are defined in it, including constants.
  Value* define(const Value* v, Region* owner) {
    Value* made = copy(v, owner);
    if (made) made->owner = owner;
    return made;
  }

  void copy(const Region& from, Region* into) {
    into->attribute = from.attribute;
    into->name = from.name;
    into->output_types = from.output_types;
    for (const Value* v : from.inputs) into->inputs.push_back(define(v, into));
    for (const auto& node : from.nodes) copy(*node, into);
    for (const Value* v : from.outputs) into->outputs.push_back(copy(v, into));
  }

  void copy(const Node& from, Region* into) {
    Node* node = to.new_node(into, from.op, from.version, from.name);
    node->attributes = from.attributes;
    node->parsed = from.parsed;
    for (const Value* v : from.inputs) to.add_input(node, copy(v, into));
    for (const auto& r : from.regions) copy(*r, to.new_region(node, r->attribute));
    for (const Value* v : from.outputs) {
      Value* made = define(v, into);
      if (made) {
        made->producer = node;
        made->output_index = static_cast<uint32_t>(node->outputs.size());
      }
      node->outputs.push_back(made);
    }
    node->output_count = static_cast<uint32_t>(node->outputs.size());
  }
};

}  // namespace

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->metadata = metadata;
  copy->input_defaults = input_defaults;
  copy->file = file;
  copy->reserve_values(values_.size());
  PointerMap<Value, Value*> map;
  Cloner{*copy, map}.copy(*top_, &copy->top());
  return copy;
}

std::vector<Value*> inline_region(const Region& from, Region* into, std::unordered_map<const Value*, Value*>& map) {
  Cloner cloner{*into->graph, map};
  for (const auto& node : from.nodes) cloner.copy(*node, into);
  std::vector<Value*> outputs;
  for (const Value* v : from.outputs) outputs.push_back(cloner.copy(v, into));
  return outputs;
}

std::vector<std::unique_ptr<Node>> Graph::splice(Graph& other, Region* into) {
  for (Value* v : other.values_) {
    if (v->owner == other.top_.get()) v->owner = v->is_constant() ? top_.get() : into;
  }
  values_.insert(values_.end(), other.values_.begin(), other.values_.end());
  other.values_.clear();
  for_each_node(*other.top_, [&](Node& node) {
    if (node.parent == other.top_.get()) node.parent = into;
    for (auto& r : node.regions) r->graph = this;
  });
  std::vector<std::unique_ptr<Node>> nodes = std::move(other.top_->nodes);
  arena_.adopt(std::move(other.arena_));
  return nodes;
}

namespace {
void replace(Value*& v, const std::unordered_map<Value*, Value*>& map) {
  for (auto it = map.find(v); v && it != map.end(); it = map.find(v)) v = it->second;
}
}  // namespace

void replace_uses(Node& node, const std::unordered_map<Value*, Value*>& map) {
  for (Value*& v : node.inputs) replace(v, map);
  for (auto& r : node.regions) replace_uses(*r, map);
}

void replace_uses(Region& region, const std::unordered_map<Value*, Value*>& map) {
  for (auto& node : region.nodes) replace_uses(*node, map);
  for (Value*& v : region.outputs) replace(v, map);
}

void replace_uses(Graph& graph, const std::unordered_map<Value*, Value*>& map) {
  if (!map.empty()) replace_uses(graph.top(), map);
}

uint32_t new_walk() {
  static std::atomic<uint32_t> last{0};
  const uint32_t walk = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return walk != 0 ? walk : new_walk();  // 0 marks values without a note
}

size_t count_nodes(const Region& region) {
  size_t count = 0;
  for_each_node(region, [&](const Node&) { ++count; });
  return count;
}

}  // namespace treadle::ir
