#include "report/iteration_cost.h"

#include <algorithm>
#include <unordered_map>

#include "op/loop_view.h"

namespace treadle::report {

namespace {

constexpr double kFunctionOperations = 12;  // of exp and its like, per element

}  // namespace

double operations_of(const Work& work) {
  return work.flops + work.operations + kFunctionOperations * work.functions + work.one_by_one;
}

double work_ns(const Roofline& roof, const Work& work) {
  return (work.flops + work.operations) / roof.flops_per_ns + work.functions * roof.function_ns +
         work.one_by_one * roof.latency_ns;
}

Work work_of(const plan::ElementwiseCode& code) {
  Work work;
  for (const auto& step : code.steps) {
    const kernels::Price price = step.converts ? kernels::Price::kBits : kernels::info(step.op).price;
    const ElementType type = byte_width(step.from) > byte_width(step.to) ? step.from : step.to;
    work += treadle::work_of(price, type, static_cast<double>(code.count));
  }
  return work;
}

double carried_ns(const plan::Loop& loop, const Roofline& roof, const std::function<double(const ir::Node&)>& node_ns) {
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

}  // namespace treadle::report
