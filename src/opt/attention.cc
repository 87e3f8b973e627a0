// Softmax(scale · A B) V, as exporters write attention, becomes one node, which never has the scores of all rows in
// memory. Only where rows are many: few of them take a moment, and their scores stay in a cache anyway.
#include <cmath>
#include <optional>

#include "op/gemm.h"
#include "op/node.h"
#include "op/operands.h"
#include "op/registry.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

constexpr int64_t kFewestRows = 32;

bool is_product(const ir::Node& node) {
  return (is(node, "MatMul") || is(node, "PermutedMatMul", "treadle")) && !node.attributes.has(kHalfWeights);
}

// Sizes of an input of a product in the order in which they are read; none where one is not known.
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
    const ir::Node* scaling = maker(sums, softmax->inputs[0]);
    float scale = 1;
    const ir::Node* scores = scaling;
    if (scaling && !is_product(*scaling)) {
      const std::optional<Scaled> scaled = take_scale(*scaling);
      if (!scaled) return;
      scale = scaled->factor;
      scores = maker(sums, scaled->value);
    }
    if (scores && is_product(*scores) && fit(*scores, sums)) fuse(sums, *scores, scale);
  }

 private:
  struct Scaled {
    ir::Value* value;
    float factor;
  };

  // The node that makes `v` for one reader beside `node`.
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

  // Mul by a number, or Div by one whose inverse is exact.
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

  void fuse(ir::Node& sums, const ir::Node& scores, float scale) {
    note(remarks_, Change::kFused, *sums.parent, scores, sums.name);
    const auto ints = [](const ir::Node& node, const char* name) {
      const auto given = node.attributes.get_ints(name);
      return std::vector<int64_t>(given.begin(), given.end());
    };
    const std::vector<int64_t> perms[] = {ints(scores, "perm_a"), ints(scores, "perm_b"), ints(sums, "perm_b")};
    constexpr const char* kNames[] = {"perm_a", "perm_b", "perm_v"};
    become(sums, require_op("AttendedValues", "treadle"));
    sums.attributes.set(ir::Attribute::of("scale", scale));
    for (size_t i = 0; i < 3; ++i) {
      if (!perms[i].empty()) sums.attributes.set(ir::Attribute::of(kNames[i], perms[i]));
    }
    ir::Value* values = sums.inputs[1];
    sums.inputs = {scores.inputs[0], scores.inputs[1], values};
    sums.input_count = 3;
  }

  Remarks* remarks_;
  const Uses uses_;
};

}  // namespace

void fuse_attention(ir::Graph& graph, Remarks* remarks) {
  Fusion fusion(graph, remarks);
  ir::for_each_node(graph.top(), [&](ir::Node& node) { fusion.visit(node); });
}

}  // namespace treadle::opt
