// Value numbering by scopes: a node is looked up among the nodes that have always run before it, which are the earlier
// nodes of its region and of the regions around it. Two nodes are equal if their operators, versions, attributes and
// inputs are. Small constants are equal inputs if their contents are.
//
// Nodes that can fail are merged too: the remaining node runs first and fails for the same reason.
#include <algorithm>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/name_map.h"
#include "base/pointer_map.h"
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
    const size_t outer = in_scope_.size();
    std::erase_if(region.nodes, [&](const auto& node) {
      for (ir::Value*& v : node->inputs) v = resolve(v);
      for (auto& body : node->regions) walk(*body);
      return !stop_requested() && merge(*node);
    });
    for (ir::Value*& v : region.outputs) v = resolve(v);
    for (; in_scope_.size() > outer; in_scope_.pop_back()) seen_.value(in_scope_.back()) = nullptr;
  }

 private:
  ir::Value* resolve(ir::Value* v) const {
    ir::Value* const* other = replaced_.find(v);
    return other ? *other : v;
  }

  bool merge(ir::Node& node) {
    if (node.op->effects == Effects::kRandom || !node.regions.empty() || node.op->control != Control::kNone) {
      return false;
    }
    if (!describe(node)) return false;
    const uint32_t place = place_of_key();
    const ir::Node*& first = seen_.value(place);
    if (!first) {
      first = &node;
      in_scope_.push_back(place);
      return false;
    }
    if (!provides(*first, node)) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i]) replaced_.emplace(node.outputs[i], first->outputs[i]);
    }
    note(remarks_, Change::kMerged, *node.parent, node, first->name);
    return true;
  }

  uint32_t place_of_key() {
    if (const auto place = seen_.index_of(key_)) return *place;
    return seen_.emplace(keys_.copy(key_), nullptr).first;
  }

  static bool provides(const ir::Node& first, const ir::Node& node) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] && (i >= first.outputs.size() || !first.outputs[i])) return false;
    }
    return true;
  }

  // Writes the node's computation as bytes to key_; false if attributes are too large to compare.
  bool describe(const ir::Node& node) {
    key_.clear();
    auto append = [&](const auto& plain) { key_.append(reinterpret_cast<const char*>(&plain), sizeof(plain)); };
    auto append_list = [&](const auto& list) {
      append(list.size());
      for (const auto& item : list) append(item);
    };
    append(node.op);
    append(node.version);
    append(node.inputs.size());
    for (const ir::Value* v : node.inputs) append(representative(v));
    InlineVector<const ir::Attribute*, 8> attributes;
    for (const ir::Attribute& a : node.attributes.all()) {
      if (a.name != kNamedAs) attributes.push_back(&a);
    }
    std::sort(attributes.begin(), attributes.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
    for (const ir::Attribute* a : attributes) {
      key_ += a->name;
      key_ += '=';
      switch (a->kind) {
        case ir::AttributeKind::kInt:
          append(a->as_int());
          break;
        case ir::AttributeKind::kFloat:
          append(a->as_float());
          break;
        case ir::AttributeKind::kString:
          append(a->as_string().size());
          key_ += a->as_string();
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

  // One value that represents all small constants with the same contents.
  const ir::Value* representative(const ir::Value* v) {
    if (!v || !v->is_constant() || is_string(v->constant.type()) || v->constant.byte_size() > kMaxConstantBytes) {
      return v;
    }
    const auto [same, fresh] = same_.emplace(v, v);
    if (!fresh) return *same;
    const Tensor& t = v->constant;
    std::string contents(1, static_cast<char>(t.type()));
    for (const int64_t d : t.dims()) contents.append(reinterpret_cast<const char*>(&d), sizeof(d));
    contents += '|';
    contents.append(static_cast<const char*>(t.raw()), t.byte_size());
    return *same = constants_.value(constants_.emplace(keys_.copy(contents), v).first);
  }

  Remarks* remarks_;
  Arena keys_;                      // memory of the maps' keys
  std::string key_;                 // of the current node
  NameMap<const ir::Node*> seen_;   // null: the node's scope has ended
  std::vector<uint32_t> in_scope_;  // numbers of the visible nodes, inner scopes last
  PointerMap<ir::Value, ir::Value*> replaced_;
  NameMap<const ir::Value*> constants_;
  PointerMap<ir::Value, const ir::Value*> same_;  // the representative of each constant
};

}  // namespace

void merge_common_nodes(ir::Graph& graph, Remarks* remarks) {
  Merger(remarks).walk(graph.top());
}

}  // namespace treadle::opt
