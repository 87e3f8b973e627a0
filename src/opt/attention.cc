// Softmax(mask(scale · A B)) V, the form in which exporters write attention, becomes one node, which never holds the
// scores of all rows in memory. mask: addends of the scores (Add) and replacements of scores (Where), in any order.
// Only for many rows: few rows are computed quickly, and their scores stay in a cache.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "op/attended_masks.h"
#include "op/gemm.h"
#include "op/node.h"
#include "op/operands.h"
#include "op/registry.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

using Mask = AttendedMask;

// Measured with heads of 32 and 64 floats on one thread: at 16 rows the fused node takes 1.3 to 1.7 times as long as
// three nodes, from 24 rows on as long or less.
constexpr int64_t kFewestRows = 32;
constexpr size_t kMostMasks = 4;

bool is_product(const ir::Node& node) {
  return (is(node, "MatMul") || is(node, "PermutedMatMul", "treadle")) && !node.attributes.has(kHalfWeights);
}

// Sizes of an input of a product in the order in which the product reads them; none if a size is unknown.
std::optional<Dims> sizes_read(const ir::Node& product, size_t i) {
  const Type& type = product.inputs[i]->type;
  if (!type.has_shape || type.element != ElementType::kFloat) return std::nullopt;
  const auto perm = product.attributes.get_ints(i == 0 ? "perm_a" : "perm_b");
  Dims sizes;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const Dim& size = type.shape[perm.empty() ? d : static_cast<size_t>(perm[d])];
    if (!size.is_known()) return std::nullopt;
    sizes.push_back(size.value());
  }
  return sizes;
}

class Fusion {
 public:
  Fusion(ir::Graph& graph, Remarks* remarks) : remarks_(remarks), uses_(graph.top()) {}

  void visit(ir::Node& sums) {
    if (!is_product(sums) || sums.attributes.has("perm_a")) return;
    const ir::Node* softmax = maker(sums, sums.inputs[0]);
    if (!softmax || !is(*softmax, "Softmax") || !along_rows(*softmax)) return;
    Path path;
    if (follow(sums, softmax->inputs[0], path) && fit(*path.scores, sums)) fuse(sums, path);
  }

 private:
  struct Scaled {
    ir::Value* value;
    float factor;
  };
  // The nodes from the softmax back to the product that makes the scores.
  struct Path {
    const ir::Node* scores = nullptr;
    float scale = 1;
    std::vector<const ir::Node*> masks;  // the mask nearest to the softmax first
    std::vector<size_t> places;          // for each mask, the index of the input that has the scores
  };

  bool follow(const ir::Node& sums, const ir::Value* v, Path& path) const {
    const ir::Node* node = maker(sums, v);
    if (!node) return false;
    const std::optional<Scaled> scaled = take_scale(*node);
    if (scaled) node = maker(sums, scaled->value);
    if (node && is_product(*node)) {
      path.scores = node;
      path.scale = scaled ? scaled->factor : 1;
      return true;
    }
    return !scaled && path.masks.size() < kMostMasks && follow_mask(sums, *node, path);
  }

  bool follow_mask(const ir::Node& sums, const ir::Node& mask, Path& path) const {
    if (!is(mask, "Add") && !is(mask, "Where")) return false;
    for (size_t i = is(mask, "Where") ? 1 : 0; i < mask.inputs.size(); ++i) {
      if (!masks(mask, i)) continue;
      path.masks.push_back(&mask);
      path.places.push_back(i);
      if (follow(sums, mask.inputs[i], path)) return true;
      path.masks.pop_back();
      path.places.pop_back();
    }
    return false;
  }

  // Whether the node's other inputs broadcast to input `i`; all sizes must be known.
  static bool masks(const ir::Node& node, size_t i) {
    const Type& type = node.inputs[i]->type;
    if (!type.has_shape || type.element != ElementType::kFloat) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const ir::Value* v) {
      if (v == node.inputs[i]) return true;
      const Type& other = v->type;
      if (!other.has_shape || other.rank() > type.rank()) return false;
      const size_t skipped = type.shape.size() - other.shape.size();
      for (size_t d = 0; d < other.shape.size(); ++d) {
        const Dim &size = other.shape[d], &whole = type.shape[skipped + d];
        if (!size.is_known() || !whole.is_known() || (size.value() != 1 && size.value() != whole.value())) return false;
      }
      return true;
    });
  }

  // The node in the region of `node` that makes `v` for one reader.
  const ir::Node* maker(const ir::Node& node, const ir::Value* v) const {
    const ir::Node* made = v->producer;
    return made && made->parent == node.parent && uses_.once(v) ? made : nullptr;
  }

  static bool along_rows(const ir::Node& softmax) {
    const Type& type = softmax.inputs[0]->type;
    if (!type.has_shape || type.rank() == 0) return false;
    const auto axis = normalize_axis(softmax.attributes.get_int("axis"), type.rank());
    return axis.ok() && axis.value() == type.rank() - 1;
  }

  // A Mul by a number, or a Div by a number whose inverse is exact.
  static std::optional<Scaled> take_scale(const ir::Node& node) {
    const bool divides = is(node, "Div");
    if (!divides && !is(node, "Mul")) return std::nullopt;
    for (size_t i = divides ? 1 : 0; i < 2; ++i) {
      const ir::Value& factor = *node.inputs[i];
      ir::Value* value = node.inputs[1 - i];
      if (!factor.is_constant() || factor.constant.type() != ElementType::kFloat) continue;
      if (factor.constant.element_count() != 1 || factor.constant.rank() > value->type.rank()) continue;
      const float number = *factor.constant.data<float>();
      if (!divides) return Scaled{value, number};
      int exponent = 0;
      if (std::fabs(std::frexp(number, &exponent)) == 0.5f && std::abs(exponent) < 64) return Scaled{value, 1 / number};
    }
    return std::nullopt;
  }

  static bool fit(const ir::Node& scores, const ir::Node& sums) {
    const auto a = sizes_read(scores, 0), b = sizes_read(scores, 1), v = sizes_read(sums, 1);
    if (!a || !b || !v || a->size() < 2 || a->size() != b->size() || a->size() != v->size()) return false;
    const size_t stack = a->size() - 2;
    if (!std::equal(a->begin(), a->begin() + stack, b->begin()) ||
        !std::equal(a->begin(), a->begin() + stack, v->begin())) {
      return false;
    }
    return (*a)[stack] >= kFewestRows && !scores.inputs[1]->is_constant() && !sums.inputs[1]->is_constant();
  }

  void fuse(ir::Node& sums, const Path& path) {
    const ir::Node& scores = *path.scores;
    note(remarks_, Change::kFused, *sums.parent, scores, sums.name);
    const auto ints = [](const ir::Node& node, const char* name) {
      const auto given = node.attributes.get_ints(name);
      return std::vector<int64_t>(given.begin(), given.end());
    };
    const std::vector<int64_t> perms[] = {ints(scores, "perm_a"), ints(scores, "perm_b"), ints(sums, "perm_b")};
    constexpr const char* kNames[] = {"perm_a", "perm_b", "perm_v"};
    become(sums, require_op("AttendedValues", "treadle"));
    sums.attributes.set(ir::Attribute::of("scale", path.scale));
    for (size_t i = 0; i < 3; ++i) {
      if (!perms[i].empty()) sums.attributes.set(ir::Attribute::of(kNames[i], perms[i]));
    }
    ir::Value* values = sums.inputs[1];
    sums.inputs = {scores.inputs[0], scores.inputs[1], values};
    std::vector<int64_t> masks;
    for (size_t m = path.masks.size(); m-- > 0;) {
      const ir::Node& mask = *path.masks[m];
      const size_t place = path.places[m];
      masks.push_back(static_cast<int64_t>(is(mask, "Add") ? Mask::kAdd : place == 1 ? Mask::kKeep : Mask::kReplace));
      for (size_t i = 0; i < mask.inputs.size(); ++i) {
        if (i != place) sums.inputs.push_back(mask.inputs[i]);
      }
    }
    if (!masks.empty()) sums.attributes.set(ir::Attribute::of("masks", std::move(masks)));
    sums.input_count = static_cast<decltype(sums.input_count)>(sums.inputs.size());
  }

  Remarks* remarks_;
  const Uses uses_;
};

}  // namespace

void fuse_attention(ir::Graph& graph, Remarks* remarks) {
  if (!has_node(graph.top(), [](const ir::Node& node) { return is(node, "Softmax"); })) return;
  Fusion fusion(graph, remarks);
  ir::for_each_node(graph.top(), [&](ir::Node& node) { fusion.visit(node); });
}

}  // namespace treadle::opt
