// Which products keep their weights in float16. What is rounded is decided here, once, so that it depends neither on
// the number of steps nor on where a product runs in the end: a stream that is pushed one step at a time multiplies by
// the same weights as one long run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/convert.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

bool is_recurrent(const ir::Node& node) {
  const std::string& name = node.op->name;
  return node.op->domain.empty() && (name == "RNN" || name == "LSTM" || name == "GRU");
}

bool is_product(const ir::Node& node) {
  const std::string& name = node.op->name;
  return node.op->domain.empty() ? name == "MatMul" || name == "Gemm" : name == "RaggedGemm";
}

struct Rounding {
  float largest = 0;  // weight, in magnitude
  float error = 0;    // of the weight that is rounded furthest
};

// None where float16 does not hold a weight: it is too large, infinite, or no number.
std::optional<Rounding> rounding_of(const Tensor& weights) {
  constexpr size_t kTile = 1024;
  uint16_t halves[kTile];
  float rounded[kTile];
  Rounding found;
  const auto* exact = static_cast<const float*>(weights.raw());
  for (auto left = static_cast<size_t>(weights.element_count()); left > 0;) {
    const size_t n = std::min(left, kTile);
    kernels::cast(ElementType::kFloat, ElementType::kFloat16, exact, halves, n);
    kernels::cast(ElementType::kFloat16, ElementType::kFloat, halves, rounded, n);
    for (size_t i = 0; i < n; ++i) {
      const float error = std::fabs(exact[i] - rounded[i]);
      if (!std::isfinite(error)) return std::nullopt;
      found.error = std::max(found.error, error);
      found.largest = std::max(found.largest, std::fabs(exact[i]));
    }
    exact += n;
    left -= n;
  }
  return found;
}

// Too many columns for a product by dots, constant, and float.
bool has_weights(const ir::Node& node) {
  const ir::Value* b = node.inputs.size() > 1 ? node.inputs[1] : nullptr;
  if (!b || !b->is_constant() || b->constant.type() != ElementType::kFloat || b->constant.dims().size() < 2) {
    return false;
  }
  const Dims& dims = b->constant.dims();
  const bool transposed = node.op->name != "MatMul" && node.attributes.get_int("transB") != 0;
  return dims[dims.size() - (transposed ? 2 : 1)] > kernels::kGemmDotColumns;
}

// The loop that a product of a lowered operator was made for.
const ir::Node* loop_behind(const ir::Region& region, size_t at) {
  for (; at < region.nodes.size(); ++at) {
    if (region.nodes[at]->op->control == Control::kScan) return region.nodes[at].get();
  }
  return nullptr;
}

void narrow(ir::Region& region, Journal* journal) {
  const ir::Node* around = loop_around(region);
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    ir::Node& node = *region.nodes[i];
    for (auto& body : node.regions) narrow(*body, journal);
    if (!is_product(node)) continue;
    const bool marked = node.attributes.has(kHalfWeights);
    node.attributes.erase(kHalfWeights);
    if ((!around && !marked) || !has_weights(node)) continue;
    const auto rounding = rounding_of(node.inputs[1]->constant);
    if (!rounding) continue;
    node.attributes.set(ir::Attribute::of(kHalfWeights, int64_t{1}));
    const ir::Node* loop = marked ? loop_behind(region, i) : around;
    const std::string how =
        fmt::format("off by at most {:.2g}, weights up to {:.2g}", rounding->error, rounding->largest);
    if (loop || around) note_of_loop(journal, Change::kNarrowed, loop ? *loop : *around, node, how);
  }
}

}  // namespace

void mark_recurrent(ir::Graph& graph) {
  ir::for_each_node(graph.top(), [](ir::Node& node) {
    if (is_recurrent(node)) node.attributes.set(ir::Attribute::of(kHalfWeights, int64_t{1}));
  });
}

void narrow_weights(ir::Graph& graph, Journal* journal) {
  narrow(graph.top(), journal);
}

}  // namespace treadle::opt
