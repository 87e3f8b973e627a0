// Operators in loops whose steps are better known than they are: the steps join the elementwise groups and reductions
// around them, and native code has no kernel to call.
//
//   Clip(x, low, high)      becomes   Min(Max(x, low), high)
//   ReduceLogSum(x)         becomes   Log(ReduceSum(x))
//   ReduceLogSumExp(x)      becomes   m = ReduceMax(x), 0 where that is infinite;  m + Log(ReduceSum(Exp(x - m)))
//
// Only of types that are computed with as they are stored, so that nothing is rounded in between that was not before.
#include <limits>
#include <numeric>

#include "op/clip_bounds.h"
#include "op/op_def.h"
#include "opt/passes.h"
#include "opt/restater.h"

namespace treadle::opt {

namespace {

class Writer : public Restater {
 public:
  using Restater::Restater;

 private:
  ir::Value* restate(const ir::Node& node, bool in_loop) override {
    if (!in_loop || !node.op->domain.empty()) return nullptr;
    const std::string& op = node.op->name;
    if (op == "Clip") return clip(node);
    if (op == "ReduceLogSum") return log_sum(node, false);
    if (op == "ReduceLogSumExp") return log_sum(node, true);
    return nullptr;
  }

  // A convolution takes Clip in itself: its results have three dimensions at least.
  ir::Value* clip(const ir::Node& node) {
    constexpr size_t kMostDimensions = 2;
    const auto sizes = sizes_of(node.inputs[0]);
    if (!sizes || sizes->size() > kMostDimensions || node.version->since < kClipTakesBoundsSince ||
        !is_stored_as_computed())
      return nullptr;
    const auto larger = [&](const ir::Value* bound) {
      return bound && (!bound->type.is_concrete() || bound->type.shape.size() > sizes->size());
    };
    ir::Value *low = input(1), *high = input(2);
    if (larger(low) || larger(high)) return nullptr;
    ir::Value* x = input(0);
    const double left_out = clip_bound_left_out(element());
    if (!low && left_out != 0) low = number(-left_out);
    if (!high && left_out != 0) high = number(left_out);
    if (low) x = call("Max", {x, low}, tensor(*sizes));
    if (high) x = call("Min", {x, high}, tensor(*sizes));
    return x == input(0) ? nullptr : x;
  }

  bool is_stored_as_computed() const {
    switch (element()) {
      case ElementType::kFloat:
      case ElementType::kDouble:
      case ElementType::kInt32:
      case ElementType::kInt64:
        return true;
      default:
        return false;
    }
  }

  // The axes that are summed over; nullopt where they are not known, or none.
  std::optional<std::vector<int64_t>> axes_of(const ir::Node& node, int64_t rank) const {
    std::vector<int64_t> axes;
    if (const ir::Value* given = input(1)) {
      if (!given->is_constant()) return {};
      const auto* numbers = static_cast<const int64_t*>(given->constant.raw());
      axes.assign(numbers, numbers + given->constant.element_count());
    } else {
      const auto attribute = node.attributes.get_ints("axes");
      axes.assign(attribute.begin(), attribute.end());
    }
    if (axes.empty()) {
      if (node.attributes.get_int("noop_with_empty_axes") != 0) return {};
      axes.resize(static_cast<size_t>(rank));
      std::iota(axes.begin(), axes.end(), 0);
    }
    for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
    return axes;
  }

  ir::Value* log_sum(const ir::Node& node, bool of_exponentials) {
    const auto sizes = sizes_of(node.inputs[0]), result = sizes_of(node.outputs[0]);
    const bool real = element() == ElementType::kFloat || element() == ElementType::kDouble;
    if (!sizes || !result || !real) return nullptr;
    const auto axes = axes_of(node, static_cast<int64_t>(sizes->size()));
    if (!axes) return nullptr;
    ir::Value* x = input(0);
    ir::Value* shift = nullptr;
    if (of_exponentials) {
      shift = finite_or_zero(reduce("ReduceMax", x, *axes, true));
      x = call("Exp", {call("Sub", {x, shift}, tensor(*sizes))}, tensor(*sizes));
    }
    ir::Value* sum = reduce("ReduceSum", x, *axes, true);
    ir::Value* log = call("Log", {sum}, sum->type);
    if (shift) log = call("Add", {log, shift}, sum->type);
    return reshape(log, *result);
  }

  ir::Value* finite_or_zero(ir::Value* v) {
    ir::Value* infinite = call("IsInf", {v}, Type::tensor(ElementType::kBool, v->type.shape));
    return call("Where", {infinite, number(0), v}, v->type);
  }

  ir::Value* number(double x) {  // of floats
    return graph().new_constant("number:written",
                                element() == ElementType::kDouble
                                    ? Tensor::scalar<double>(ElementType::kDouble, x)
                                    : Tensor::scalar<float>(ElementType::kFloat, static_cast<float>(x)));
  }
};

}  // namespace

void write_out_steps(ir::Graph& graph, Journal* journal) {
  Writer(graph, journal).run();
}

}  // namespace treadle::opt
