// Decides which products keep their weights in float16. The decision is made here, once, so that it depends neither on
// the trip count nor on where a product finally runs: a stream that is pushed one step at a time multiplies by the same
// weights as one long run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/stop.h"
#include "kernels/convert.h"
#include "op/gemm.h"
#include "op/loop_view.h"
#include "ops/costs.h"
#include "opt/passes.h"
#include "opt/uses.h"

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
  float largest = 0;  // largest magnitude of a weight
  float error = 0;    // largest error of a rounded weight
};

// None if float16 cannot hold a weight (it is too large, infinite or NaN), or if it was told to stop.
std::optional<Rounding> rounding_of(const Tensor& weights) {
  constexpr size_t kTile = 1024;
  uint16_t halves[kTile];
  float rounded[kTile];
  Rounding found;
  StopPoll stop;
  const auto* exact = static_cast<const float*>(weights.raw());
  for (auto left = static_cast<size_t>(weights.element_count()); left > 0;) {
    const size_t n = std::min(left, kTile);
    if (stop.after(costs::kRoundedWeightNs * static_cast<double>(n))) return std::nullopt;
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

// Whether the node has constant float weights with too many columns for a product by dots.
bool has_weights(const ir::Node& node) {
  const ir::Value* b = node.inputs.size() > 1 ? node.inputs[1] : nullptr;
  if (!b || !b->is_constant() || b->constant.type() != ElementType::kFloat || b->constant.dims().size() < 2) {
    return false;
  }
  const Dims& dims = b->constant.dims();
  const bool transposed = node.op->name != "MatMul" && node.attributes.get_int("transB") != 0;
  return dims[dims.size() - (transposed ? 2 : 1)] > kernels::kGemmDotColumns;
}

// For each value, the nodes that read it.
using Readers = std::unordered_map<const ir::Value*, std::vector<const ir::Node*>>;

// The loop in the product's own region that reads the product's result, directly or through other nodes; null if there
// is none.
const ir::Node* loop_that_reads(const ir::Node& product, const Readers& readers) {
  std::vector<const ir::Node*> pending{&product};
  std::unordered_set<const ir::Node*> seen;
  for (size_t at = 0; at < pending.size(); ++at) {
    for (const ir::Value* v : pending[at]->outputs) {
      const auto found = readers.find(v);
      if (found == readers.end()) continue;
      for (const ir::Node* reader : found->second) {
        while (reader->parent != product.parent) reader = reader->parent->parent_node;
        if (is_loop(*reader)) return reader;
        if (seen.insert(reader).second) pending.push_back(reader);
      }
    }
  }
  return nullptr;
}

void narrow(ir::Node& node, const Readers& readers, Remarks* remarks) {
  const bool marked = node.attributes.has(kOfRecurrence);
  const ir::Node* around = loop_around(*node.parent);
  node.attributes.erase(kOfRecurrence);
  if ((!around && !marked) || !has_weights(node)) return;
  const auto rounding = rounding_of(node.inputs[1]->constant);
  if (!rounding) return;
  node.attributes.set(ir::Attribute::of(kHalfWeights, int64_t{1}));
  const ir::Node* reads = marked ? loop_that_reads(node, readers) : nullptr;
  const ir::Node* loop = reads ? reads : around;
  if (!loop) return;
  note_of_loop(remarks, Change::kNarrowed, *loop, node,
               fmt::format("off by at most {:.2g}, weights up to {:.2g}", rounding->error, rounding->largest));
}

}  // namespace

void mark_recurrent(ir::Graph& graph, Remarks*) {
  ir::for_each_node(graph.top(), [](ir::Node& node) {
    if (is_recurrent(node)) node.attributes.set(ir::Attribute::of(kOfRecurrence, int64_t{1}));
  });
}

void narrow_weights(ir::Graph& graph, Remarks* remarks) {
  Readers readers;
  for_each_use(graph.top(), [&](const ir::Value* v, const ir::Node* node) {
    if (v && node) readers[v].push_back(node);
  });
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (is_product(node)) narrow(node, readers, remarks);
  });
}

}  // namespace treadle::opt
