// Value numbering by scopes: a node is looked up among those that have run whenever it runs, that is among the ones
// before it in its region and in the regions around it. Two nodes are the same when operator, version, attributes and
// inputs are; small constants count as the same input when their contents are.
//
// Nodes that can fail are merged too: the one that stays runs first and fails for the same reason.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/stop.h"
#include "op/op_def.h"
#include "op/place.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

constexpr size_t kMaxConstantBytes = 64;

class Merger {
 public:
  explicit Merger(Remarks* remarks) : remarks_(remarks) {}

  void walk(ir::Region& region) {
    scopes_.emplace_back();
    std::erase_if(region.nodes, [&](const auto& node) {
      for (ir::Value*& v : node->inputs) v = resolve(v);
      for (auto& body : node->regions) walk(*body);
      return !stop_requested() && merge(*node);
    });
    for (ir::Value*& v : region.outputs) v = resolve(v);
    scopes_.pop_back();
  }

 private:
  ir::Value* resolve(ir::Value* v) const {
    const auto it = replaced_.find(v);
    return it == replaced_.end() ? v : it->second;
  }

  bool merge(ir::Node& node) {
    if (node.op->effects == Effects::kRandom || !node.regions.empty() || node.op->control != Control::kNone) {
      return false;
    }
    std::string key;
    if (!describe(node, key)) return false;
    for (const auto& scope : scopes_) {
      const auto it = scope.find(key);
      if (it == scope.end()) continue;
      if (!provides(*it->second, node)) return false;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i]) replaced_[node.outputs[i]] = it->second->outputs[i];
      }
      note(remarks_, Change::kMerged, *node.parent, node, it->second->name);
      return true;
    }
    scopes_.back().emplace(std::move(key), &node);
    return false;
  }

  static bool provides(const ir::Node& first, const ir::Node& node) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] && (i >= first.outputs.size() || !first.outputs[i])) return false;
    }
    return true;
  }

  // What the node computes, as bytes; false for attributes that are too large to compare.
  bool describe(const ir::Node& node, std::string& key) {
    auto append = [&](const auto& plain) { key.append(reinterpret_cast<const char*>(&plain), sizeof(plain)); };
    auto append_list = [&](const auto& list) {
      append(list.size());
      for (const auto& item : list) append(item);
    };
    append(node.op);
    append(node.version);
    append(node.inputs.size());
    for (const ir::Value* v : node.inputs) append(representative(v));
    std::vector<const ir::Attribute*> attributes;
    for (const ir::Attribute& a : node.attributes.all()) {
      if (a.name != kNamedAs) attributes.push_back(&a);
    }
    std::sort(attributes.begin(), attributes.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
    for (const ir::Attribute* a : attributes) {
      key += a->name;
      key += '=';
      switch (a->kind) {
        case ir::AttributeKind::kInt:
          append(a->as_int());
          break;
        case ir::AttributeKind::kFloat:
          append(a->as_float());
          break;
        case ir::AttributeKind::kString:
          append(a->as_string().size());
          key += a->as_string();
          break;
        case ir::AttributeKind::kInts:
          append_list(a->as_ints());
          break;
        case ir::AttributeKind::kFloats:
          append_list(a->as_floats());
          break;
        default:
          return false;
      }
    }
    return true;
  }

  // One value for all small constants of the same contents.
  const ir::Value* representative(const ir::Value* v) {
    if (!v || !v->is_constant() || is_string(v->constant.type()) || v->constant.byte_size() > kMaxConstantBytes) {
      return v;
    }
    const Tensor& t = v->constant;
    std::string contents(1, static_cast<char>(t.type()));
    for (const int64_t d : t.dims()) contents.append(reinterpret_cast<const char*>(&d), sizeof(d));
    contents += '|';
    contents.append(static_cast<const char*>(t.raw()), t.byte_size());
    return constants_.emplace(std::move(contents), v).first->second;
  }

  Remarks* remarks_;
  std::vector<std::unordered_map<std::string, const ir::Node*>> scopes_;
  std::unordered_map<const ir::Value*, ir::Value*> replaced_;
  std::unordered_map<std::string, const ir::Value*> constants_;
};

}  // namespace

void merge_common_nodes(ir::Graph& graph, Remarks* remarks) {
  Merger(remarks).walk(graph.top());
}

}  // namespace treadle::opt
