#include "costs.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "seeds.h"
#include "types.h"

namespace treadle::provider {

namespace {

// All times are for one thread on a Zen 4 core of some 3.5 GHz (`bench.py provider`, unless a row says otherwise).

// Per claim, and per value that it returns.
constexpr double kClaimNs = 900, kOutputNs = 60;
// Per byte of an output of unknown size, which is copied.
constexpr double kCopiedByteNs = 0.1;
// The cost of a node in onnxruntime beside its kernel, which treadle does not have.
constexpr double kNodeNs = 300;
// Assumed iterations of a loop.
constexpr double kIterations = 100;

using Name = std::pair<std::string_view, std::string_view>;  // domain and operator

// Units of an operator's work.
enum class Work {
  kNode,    // one per node
  kOutput,  // elements of its first output
  kTreeNodes,
  kProducts,  // multiplications of a convolution whose kernel has several positions and at least 8 channels
};

// Nanoseconds that treadle saves per unit; negative: that it takes longer.
struct Rate {
  Name name;
  Work work;
  double ns;
};

constexpr std::string_view kMl = "ai.onnx.ml", kContrib = "com.microsoft";
constexpr Rate kRates[] = {
    {{"", "Conv"}, Work::kProducts, -0.0013},  // 7 % of 3x3 kernels over planes of 8 to 32 rows
    {{kContrib, "FusedConv"}, Work::kProducts, -0.0013},
    {{"", "QLinearConv"}, Work::kProducts, -0.0005},  // `bench.py products8`
    {{kContrib, "QLinearConv"}, Work::kProducts, -0.0005},
    {{"", "Relu"}, Work::kNode, -kNodeNs},   // in onnxruntime, part of the node before it
    {{"", "MaxPool"}, Work::kOutput, -0.3},  // over planes of up to 28 rows
    {{"", "Col2Im"}, Work::kOutput, -0.13},  // `bench.py operators`
    {{kMl, "TreeEnsemble"}, Work::kTreeNodes, 2},
    {{kMl, "TreeEnsembleClassifier"}, Work::kTreeNodes, 2},
    {{kMl, "TreeEnsembleRegressor"}, Work::kTreeNodes, 2},
    {{kMl, "SVMClassifier"}, Work::kNode, 5000},
};

constexpr double kNever = -std::numeric_limits<double>::infinity();

Name operator_of(const Node& node) {
  return {node.domain == "ai.onnx" ? std::string_view() : node.domain, node.type};
}

bool is_known(const Name& name) {
  static const std::set<Name> known = [] {
    std::set<Name> names;
    for (size_t i = 0; i < treadle_operator_count(); ++i) {
      names.emplace(treadle_operator_domain(i), treadle_operator_name(i));
    }
    return names;
  }();
  return known.contains(name);
}

const OrtOpAttr* attribute_of(const Node& node, std::string_view wanted) {
  for (const OrtOpAttr* attribute : list_of(ort().Node_GetNumAttributes, ort().Node_GetAttributes, node.handle)) {
    const char* name = nullptr;
    check(ort().OpAttr_GetName(attribute, &name));
    if (name == wanted) return attribute;
  }
  return nullptr;
}

// Whether a node draws the same random numbers in each session; onnxruntime's differ from treadle's.
bool has_seed(const Node& node) {
  return attribute_of(node, "seed") != nullptr;
}

double tree_nodes_of(const Node& node) {
  const OrtOpAttr* attribute = attribute_of(node, "nodes_featureids");
  size_t bytes = 0;
  // This call fails if there is anything to read, and returns the size.
  if (OrtStatus* status = attribute ? ort().ReadOpAttr(attribute, ORT_OP_ATTR_INTS, nullptr, 0, &bytes) : nullptr) {
    ort().ReleaseStatus(status);
  }
  return static_cast<double>(bytes / sizeof(int64_t));
}

double elements_of_output(const Node& node) {
  return node.outputs.empty() || !node.outputs[0] ? 0 : least_elements_of(type_of(node.outputs[0]));
}

double products_of(const Node& node) {
  constexpr int64_t kManyChannels = 8;
  const size_t weights = node.is("QLinearConv") || node.type == "QLinearConv" ? 3 : 1;
  if (node.inputs.size() <= weights || !node.inputs[weights]) return 0;
  const std::vector<int64_t> dims = dims_of(type_of(node.inputs[weights]));  // channels of the output, channels of the
                                                                             // input, positions
  double positions = 1;
  for (size_t i = 2; i < dims.size(); ++i) positions *= static_cast<double>(dims[i]);
  if (positions <= 1 || dims[1] < kManyChannels) return 0;
  return elements_of_output(node) * static_cast<double>(dims[1]) * positions;
}

double units(const Node& node, Work work) {
  switch (work) {
    case Work::kNode:
      return 1;
    case Work::kOutput:
      return elements_of_output(node);
    case Work::kTreeNodes:
      return tree_nodes_of(node);
    case Work::kProducts:
      return products_of(node);
  }
  return 0;
}

double saved_by_kernel(const Node& node) {
  const auto* const rate = std::ranges::find(kRates, operator_of(node), &Rate::name);
  return rate == std::end(kRates) ? 0 : rate->ns * units(node, rate->work);
}

// The cost of values that cross between a claim and other nodes. Between convolutions and the nodes behind them,
// onnxruntime stores images in an order of its own, which it has to undo for a claim.
double reordering_ns(const Graph& graph, const Claim& claim) {
  constexpr double kReorderNs = 2000, kElementNs = 0.5;
  constexpr size_t kImageRank = 4;
  double found = 0;
  const auto add = [&](const OrtValueInfo* value) {
    if (!value || !can_cross(type_of(value)) || dims_of(type_of(value)).size() != kImageRank) return;
    found += kReorderNs + kElementNs * least_elements_of(type_of(value));
  };
  for (const Node* node : claim.members(graph)) {
    for (const OrtValueInfo* value : node->inputs) {
      const auto producer = graph.producers.find(name_of(value));
      if (producer != graph.producers.end() && !claim.nodes.contains(producer->second)) add(value);
    }
  }
  for (const OrtValueInfo* value : outputs_of(graph, claim)) {
    if (!graph.outputs.contains(name_of(value))) add(value);
  }
  return found;
}

// Bytes of an output; elements are assumed to take 4 bytes.
double bytes_copied(const OrtValueInfo* value) {
  const OrtTypeInfo* type = type_of(value);
  return elements_of(type) > 0 ? 0 : 4 * least_elements_of(type);
}

}  // namespace

double Costs::saved_by(const Graph& graph, const Node& node) const {
  if (!is_known(operator_of(node)) || has_seed(node)) return kNever;
  if (is_recurrent(node)) return saved_by_recurrence(graph, node);
  return kNodeNs + saved_by_kernel(node) + saved_by_bodies(node);
}

double Costs::saved_by(const Graph& graph, const Claim& claim) const {
  double saved = -kClaimNs - reordering_ns(graph, claim);
  for (const size_t node : claim.nodes) saved += saved_by(graph, graph.nodes[node]);
  for (const OrtValueInfo* value : outputs_of(graph, claim)) saved -= kOutputNs + kCopiedByteNs * bytes_copied(value);
  return saved;
}

// A recurrent operator with at least as many weights as the option says saves the cost of a claim.
double Costs::saved_by_recurrence(const Graph& graph, const Node& node) const {
  if (is_single_step(node) && settings_.recurrent_weights > 0) return 0;
  constexpr double kMostOutputs = 3;
  const double weights = static_cast<double>(fixed_weights(graph, node) + 1);
  const double least = static_cast<double>(std::max<int64_t>(settings_.recurrent_weights, 1));
  return (kClaimNs + kMostOutputs * kOutputNs) * weights / least;
}

double Costs::saved_by_bodies(const Node& node) const {
  double saved = 0;
  for (const auto& [name, body] : node.bodies) {
    const Graph graph(body);
    for (const Node& inner : graph.nodes) saved += saved_by(graph, inner);
  }
  return is_loop(node) ? kIterations * saved : saved / 2;  // of an If, only one of two branches runs
}

}  // namespace treadle::provider
