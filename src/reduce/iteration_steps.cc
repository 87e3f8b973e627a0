// Trip counts of Loops. The length of a Scan is a size (size_steps.cc).

#include "reduce/step.h"
#include "reduce/tensors.h"
#include "reduce/tidy.h"

namespace treadle::reduce {

namespace {

class Iterations : public Step {
 public:
  const char* name() const override { return "iterations"; }
  size_t ways() const override { return 3; }
  size_t count(wire::ModelProto& model) const override {
    size_t count = 0;
    for (const Scope& scope : scopes_of(model)) {
      for (const wire::NodeProto& node : scope.nodes()) count += is_of_onnx(node, "Loop");
    }
    return count;
  }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t way) const override {
    const Names names(candidate.model);
    FreshNames fresh(names, candidate.arena);
    size_t index = 0;
    bool changed = false;
    for (size_t s = 0; s < names.scopes().size(); ++s) {
      for (wire::NodeProto& node : names.scopes()[s].nodes()) {
        if (!is_of_onnx(node, "Loop")) continue;
        const size_t i = index++;
        if (i < first || i >= last || node.inputs.empty()) continue;
        const std::optional<int64_t> fewer = fewer_than(names, s, node.inputs[0], way);
        const Scope& outermost = names.scopes()[0];
        if (!fewer || !outermost.graph) continue;
        node.inputs[0] = fresh.make("iterations");
        outermost.graph->initializers.add(candidate.arena,
                                          int64s_of({&*fewer, 1}, true, node.inputs[0], candidate.arena));
        changed = true;
      }
    }
    return changed && tidy(candidate);
  }

 private:
  enum Way : uint8_t { kOne, kHalf, kOneFewer };

  // A count that is not constant can become one iteration.
  static std::optional<int64_t> fewer_than(const Names& names, size_t scope, std::string_view count, size_t way) {
    const auto known = count.empty() ? std::nullopt : constant_ints(names, scope, count);
    if (!known || known->size() != 1) return way == kOne ? std::optional<int64_t>(1) : std::nullopt;
    const int64_t now = known->front();
    const int64_t then = way == kOne ? 1 : way == kHalf ? now / 2 : now - 1;
    return then >= 1 && then < now ? std::optional(then) : std::nullopt;
  }
};

}  // namespace

void add_iteration_steps(Steps& steps) {
  steps.push_back(std::make_unique<Iterations>());
}

}  // namespace treadle::reduce
