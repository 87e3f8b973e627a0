#include "exec/trip_cost.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "op/loop_view.h"
#include "op/op_def.h"
#include "plan/fusion.h"

namespace treadle::exec {

namespace {

using kernels::ElementwiseOp;

constexpr double kFunctionOperations = 12;  // of exp and its like, per element
constexpr double kLanes = 8;                // that a result has at least: a scalar takes as long as a short vector
constexpr double kReducedOperations = 8;    // of an element that is summed up, compared or sorted

// What results wait for, in additions that wait for each other.
constexpr double kCheapLatency = 0.25, kDivisionLatency = 3, kFunctionLatency = 8;

enum class Cost : uint8_t { kCheap, kArithmetic, kDivision, kFunction };

Cost cost_of(ElementwiseOp op) {
  using enum ElementwiseOp;
  switch (op) {
    case kAbs:
    case kNeg:
    case kSign:
    case kIsNaN:
    case kIsInf:
    case kBitwiseNot:
    case kBitwiseAnd:
    case kBitwiseOr:
    case kBitwiseXor:
    case kShiftLeft:
    case kShiftRight:
    case kWhere:
    case kEqual:
    case kLess:
    case kGreater:
    case kLessOrEqual:
    case kGreaterOrEqual:
    case kAnd:
    case kOr:
    case kXor:
    case kNot:
      return Cost::kCheap;
    case kAdd:
    case kSub:
    case kMul:
    case kMin:
    case kMax:
    case kRelu:
    case kLeakyRelu:
    case kPRelu:
    case kHardSigmoid:
    case kHardSwish:
    case kThresholdedRelu:
    case kThresholdedReluEqual:
    case kShrink:
    case kFloor:
    case kCeil:
    case kRound:
    case kClip:
    case kAffine:
      return Cost::kArithmetic;
    case kDiv:
    case kMod:
    case kFmod:
    case kSoftsign:
    case kSqrt:
    case kReciprocal:
      return Cost::kDivision;
    default:
      return Cost::kFunction;
  }
}

double elements_of(const ir::Value* v) {
  return v && v->type.is_concrete() ? static_cast<double>(element_count_unchecked(known_dims(v->type.shape))) : 0;
}

int64_t last_dim(const ir::Value* v, size_t from_the_end = 1) {
  if (!v || !v->type.is_concrete() || v->type.shape.size() < from_the_end) return 1;
  return v->type.shape[v->type.shape.size() - from_the_end].value();
}

double flops_of(const ir::Node& node) {
  const std::string& op = node.op->name;
  const double result = elements_of(node.outputs[0]);
  if (op == "MatMul" || op == "Gemm") {
    const bool transposed = op == "Gemm" && node.attributes.get_int("transA") != 0;
    return 2 * result * static_cast<double>(last_dim(node.inputs[0], transposed ? 2 : 1));
  }
  if (op == "PermutedMatMul") {
    // Each element of an operand is used once per column of the other.
    return 2 * std::sqrt(elements_of(node.inputs[0]) * elements_of(node.inputs[1]) * result);
  }
  if ((op == "Conv" || op == "FusedConv") && node.inputs[1]->type.is_concrete()) {
    const double filters = static_cast<double>(std::max<int64_t>(node.inputs[1]->type.shape[0].value(), 1));
    return 2 * result * elements_of(node.inputs[1]) / filters;
  }
  return 0;
}

void add(Work& work, Cost cost, double elements) {
  elements = std::ceil(elements / kLanes) * kLanes;
  if (cost == Cost::kFunction) {
    work.functions += elements;
  } else {
    work.operations += cost == Cost::kDivision ? kDivisionLatency * elements : elements;
  }
}

// Functions that a step of a recurrence takes for each element of its state; 0: `op` is something else.
int functions_of_cell(const std::string& op) {
  if (op == "LstmCell") return 5;
  if (op == "GruCell") return 3;
  if (op == "GruGates") return 2;
  return op == "RnnCell" || op == "GruUpdate" ? 1 : 0;
}

bool reduces(const std::string& op) {
  return op.starts_with("Reduce") || op.starts_with("Arg") || op.starts_with("Cum") || op.ends_with("Normalization") ||
         op == "TopK" || op == "Hardmax" || op == "NonZero" || op == "Unique";
}

bool exponentiates(const std::string& op) {
  return op == "Softmax" || op == "LogSoftmax" || op == "ReduceLogSumExp";
}

Cost cost_of(const plan::ElementwiseCode::Step& step) {
  return step.converts ? Cost::kCheap : cost_of(step.op);
}
// Of nodes that are elementwise.
Cost cost_of(const ir::Node& node) {
  const ElementwiseForm form = plan::elementwise_form(node);
  return form.kind == ElementwiseForm::Kind::kOperation ? cost_of(form.op) : Cost::kCheap;
}

double latency_of(const ir::Node& node) {
  if (node.op->alias_input >= 0 || !node.regions.empty()) return 0;
  if (functions_of_cell(node.op->name) > 0) return 2 * kFunctionLatency;
  if (node.op->batch != BatchRule::kElementwise) return kCheapLatency;
  switch (cost_of(node)) {
    case Cost::kCheap:
      return kCheapLatency;
    case Cost::kArithmetic:
      return is_float(node.outputs[0]->type.element) ? 1 : kCheapLatency;
    case Cost::kDivision:
      return kDivisionLatency;
    case Cost::kFunction:
      return kFunctionLatency;
  }
  return 0;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  operations += other.operations;
  functions += other.functions;
  return *this;
}

Work operator*(double times, const Work& work) {
  return {times * work.flops, times * work.operations, times * work.functions};
}

double Work::all() const {
  return flops + operations + kFunctionOperations * functions;
}

double work_ns(const MachineRoof& roof, const Work& work) {
  return (work.flops + work.operations) / roof.flops_per_ns + work.functions * roof.function_ns;
}

Work work_of(const ir::Node& node) {
  Work work;
  if (node.outputs.empty() || !node.outputs[0] || node.op->alias_input >= 0) return work;
  const double result = elements_of(node.outputs[0]);
  const double taken = elements_of(node.inputs.empty() ? nullptr : node.inputs[0]);
  if (const int functions = functions_of_cell(node.op->name)) {
    work.functions = functions * result;
  } else if (exponentiates(node.op->name)) {
    work.functions = taken;
  } else if (node.op->batch == BatchRule::kElementwise && node.outputs[0]->type.is_concrete()) {
    add(work, cost_of(node), result);
  } else if ((work.flops = flops_of(node)) == 0) {
    work.operations = reduces(node.op->name) ? kReducedOperations * taken : result;
  }
  return work;
}

Work work_of(const plan::ElementwiseCode& code) {
  Work work;
  for (const auto& step : code.steps) add(work, cost_of(step), static_cast<double>(code.count));
  return work;
}

double carried_ns(const plan::Loop& loop, const MachineRoof& roof,
                  const std::function<double(const ir::Node&)>& node_ns) {
  const LoopView view(*loop.node);
  const ir::Region& body = view.body();
  std::unordered_map<const ir::Node*, double> takes;
  for (const auto& node : body.nodes) takes[node.get()] = node_ns(*node) + latency_of(*node) * roof.latency_ns;
  double longest = 0;
  for (size_t k = 0; k < loop.states.size(); ++k) {
    std::unordered_map<const ir::Value*, double> since{{view.state(k).before, 0}};
    for (const auto& node : body.nodes) {
      double ready = -1;
      for (const ir::Value* v : node->inputs) {
        if (const auto at = since.find(v); at != since.end()) ready = std::max(ready, at->second);
      }
      if (ready < 0) continue;
      for (const ir::Value* v : node->outputs) since[v] = ready + takes[node.get()];
    }
    const auto at = since.find(view.state(k).after);
    if (at != since.end()) longest = std::max(longest, at->second);
  }
  return longest;
}

}  // namespace treadle::exec
