#pragma once
// A graph written in a test, node by node, with the builders of lowerings; its program, and its results beside the
// reference interpreter's.

#include <gtest/gtest.h>

#include <random>

#include "infer/inference.h"
#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "op/node.h"
#include "op/registry.h"
#include "plan/verify.h"
#include "reference/interpreter.h"
#include "run/context.h"
#include "session/optimize.h"

namespace treadle::testing_support {

inline Type floats(Shape shape) {
  return Type::tensor(ElementType::kFloat, std::move(shape));
}
inline Type int64s(Shape shape) {
  return Type::tensor(ElementType::kInt64, std::move(shape));
}
inline Type bools(Shape shape) {
  return Type::tensor(ElementType::kBool, std::move(shape));
}

class TestGraph {
 public:
  TestGraph(std::vector<Type> inputs, size_t outputs)
      : types_(std::move(inputs)), info_(make_info(outputs)), context_(info_, pointers(), {}, *graph_) {}

  LowerContext* operator->() { return &context_; }
  ir::Value* in(size_t i) const { return context_.input(i); }
  ir::Graph& graph() { return *graph_; }
  const std::vector<Type>& types() const { return types_; }

  // Begins the body of a Loop over `states`; returns iteration number, condition and the states inside.
  std::vector<ir::Value*> begin_loop(ir::Value* iterations, std::vector<ir::Value*> states, size_t scan_outputs = 0) {
    std::vector<ir::Value*> inputs{iterations, context_.constant(Tensor::scalar<bool>(ElementType::kBool, true))};
    inputs.insert(inputs.end(), states.begin(), states.end());
    loop_ = context_.node("Loop", inputs, states.size() + scan_outputs);
    context_.begin_region(loop_, "body");
    std::vector<ir::Value*> inside{context_.region_input("i", int64s({})), context_.region_input("c", bools({}))};
    for (size_t k = 0; k < states.size(); ++k) {
      inside.push_back(context_.region_input("s" + std::to_string(k), states[k]->type));
    }
    return inside;
  }
  // Begins the body of a Scan; returns states and elements inside. `reverse`: of all scan inputs.
  std::vector<ir::Value*> begin_scan(std::vector<ir::Value*> states, std::vector<ir::Value*> wholes,
                                     size_t scan_outputs = 0, bool reverse = false) {
    std::vector<ir::Value*> inputs = states;
    inputs.insert(inputs.end(), wholes.begin(), wholes.end());
    const auto count = static_cast<int64_t>(wholes.size());
    loop_ = context_.node("Scan", inputs, states.size() + scan_outputs, {ir::Attribute::of("num_scan_inputs", count)});
    loop_->attributes.set(
        ir::Attribute::of("scan_input_directions", std::vector<int64_t>(wholes.size(), reverse ? 1 : 0)));
    context_.begin_region(loop_, "body");
    std::vector<ir::Value*> inside;
    for (const ir::Value* v : states) inside.push_back(context_.region_input("s", v->type));
    for (const ir::Value* v : wholes) {
      Type element = v->type;
      element.shape.erase(0);
      inside.push_back(context_.region_input("x", element));
    }
    return inside;
  }
  std::vector<ir::Value*> end_scan(std::vector<ir::Value*> results) {
    for (ir::Value* v : results) context_.region_output(v);
    context_.end_region();
    return {loop_->outputs.begin(), loop_->outputs.end()};
  }
  // Loops nest: the name of the outer loop while an inner one is written.
  using Loop = ir::Node*;
  Loop loop() const { return loop_; }
  void resume(Loop outer) { loop_ = outer; }
  // Ends the loop; the condition stays true. Returns the loop's outputs.
  std::vector<ir::Value*> end_loop(std::vector<ir::Value*> results) {
    context_.region_output(context_.constant(Tensor::scalar<bool>(ElementType::kBool, true)));
    for (ir::Value* v : results) context_.region_output(v);
    context_.end_region();
    return {loop_->outputs.begin(), loop_->outputs.end()};
  }

 private:
  static ir::NodeInfo make_info(size_t outputs) {
    ir::NodeInfo info;
    info.name = "t";
    info.op = &require_op("Identity");  // nodes are named after the nodes from which they were made
    info.version = &info.op->newest();
    info.output_count = static_cast<uint32_t>(outputs);
    return info;
  }
  std::span<const Type* const> pointers() {
    for (const Type& t : types_) pointers_.push_back(&t);
    return pointers_;
  }

  std::vector<Type> types_;
  std::vector<const Type*> pointers_;
  std::unique_ptr<ir::Graph> graph_ = std::make_unique<ir::Graph>();
  ir::NodeInfo info_;
  LowerContext context_;
  ir::Node* loop_ = nullptr;
};

struct Planned {
  std::shared_ptr<PackCache> packs = std::make_shared<PackCache>();
  std::shared_ptr<const plan::Program> program;

  // The nodes that instructions run, in order: "Tanh", "fused Mul Add"; glue is left out, loops end with "end".
  std::vector<std::string> listing() const {
    std::vector<std::string> lines;
    for (uint32_t at = 0; at < program->code.size(); ++at) {
      const plan::OpCode code = program->code[at].code;
      const ir::Node* node = program->node_of[at];
      if (const auto nodes = plan::nodes_of(*program, at); nodes.size() > 1) {
        std::string line = "fused";
        for (const ir::Node* member : nodes) line += " " + member->op->name;
        lines.push_back(line);
      } else if (code == plan::OpCode::kLoopEnd) {
        lines.push_back("end");
      } else if (code == plan::OpCode::kKernel || code == plan::OpCode::kRow || code == plan::OpCode::kGuarded ||
                 code == plan::OpCode::kCompute || code == plan::OpCode::kLoopBegin) {
        lines.push_back(node->op->name);
      }
    }
    return lines;
  }
};

// With the kernels of the reference interpreter: vectors of other widths round sums and functions differently.
inline std::unique_ptr<Planned> plan_of(TestGraph& test, bool optimize = true, Isa isa = Isa::kBaseline) {
  const kernels::ScopedIsa scope(isa);
  std::vector<plan::InputSpec> knowledge;
  for (const Type& type : test.types()) knowledge.push_back({type, {}});
  auto planned = std::make_unique<Planned>();
  auto specialized = session::optimize(test.graph(), knowledge, {.optimize = optimize});
  EXPECT_TRUE(specialized.ok()) << specialized.error().to_string();
  if (!specialized.ok()) return planned;
  EXPECT_TRUE(has_all_defaults(specialized->graph->top()));
  auto program = plan::make_program(specialized->graph, planned->packs, {.optimize = optimize});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return planned;
  const Status verified = plan::verify(**program);
  EXPECT_TRUE(verified.ok()) << verified.to_string();
  planned->program = *program;
  return planned;
}

// Small numbers of any type: integers in [low, 4], floats with fractions.
inline AnyValue random_value(const Type& type, std::mt19937& engine, int low = -3) {
  Tensor t = *Tensor::allocate(type.element, known_dims(type.shape));
  std::uniform_real_distribution<double> number(low, 4);
  for (int64_t i = 0; i < t.element_count(); ++i) {
    const double x = is_integer(type.element) ? std::floor(number(engine)) : number(engine);
    kernels::cast(ElementType::kDouble, type.element, &x,
                  static_cast<std::byte*>(t.mutable_raw()) + static_cast<size_t>(i) * byte_width(type.element), 1);
  }
  return AnyValue(std::move(t));
}

// The arguments of a context: its inputs, and the places of its results.
inline std::vector<const AnyValue*> places_of(const std::vector<AnyValue>& values) {
  std::vector<const AnyValue*> places;
  for (const AnyValue& value : values) places.push_back(&value);
  return places;
}
inline std::vector<AnyValue*> places_of(std::vector<AnyValue>& values) {
  std::vector<AnyValue*> places;
  for (AnyValue& value : values) places.push_back(&value);
  return places;
}

// Runs the program and the reference interpreter on random inputs, and expects the same bits, shapes and types.
inline void expect_same_as_reference(TestGraph& test, const Planned& planned,
                                     const std::vector<std::pair<size_t, AnyValue>>& given = {}) {
  ASSERT_TRUE(planned.program);
  const kernels::ScopedIsa scope(Isa::kBaseline);
  std::mt19937 engine(7);
  std::vector<AnyValue> inputs;
  for (const Type& type : test.types()) {
    inputs.push_back(type.is_concrete() ? random_value(type, engine) : AnyValue());
  }
  for (const auto& [i, value] : given) inputs[i] = value;
  const size_t outputs = test.graph().top().outputs.size();
  // Rows of a loop without iterations have the sizes that inference finds.
  Inference inference({.fold = false});
  ASSERT_TRUE(inference.infer(test.graph().top()).ok());
  auto expected = reference::run_graph(test.graph(), inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  std::vector<AnyValue> results(outputs);
  run::Context context(planned.program);
  const Status status = context.run(places_of(std::as_const(inputs)), places_of(results), {});
  ASSERT_TRUE(status.ok()) << status.to_string();
  for (size_t i = 0; i < outputs; ++i) {
    const Tensor& a = (*expected)[i].tensor();
    const Tensor& b = results[i].tensor();
    ASSERT_EQ(a.type(), b.type()) << "output " << i;
    ASSERT_TRUE(a.dims() == b.dims()) << "output " << i;
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.byte_size()), 0) << "output " << i;
  }
}

}  // namespace treadle::testing_support
