#include "plan/native.h"

#include <algorithm>
#include <cmath>

#include "kernels/fused.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "plan/fusion.h"

namespace treadle::plan {

namespace {

using Spread = ElementwiseCode::Spread;

bool is_held(const ir::Value* v) {
  return v && v->type.is_concrete() && kernels::FusedBuilder::can_hold(v->type.element);
}

Spread spread_of(const Dims& dims, const Dims& strides) {
  bool dense = true, scalar = true;
  int64_t next = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    dense &= strides[d] == next;
    scalar &= strides[d] == 0;
    next *= dims[d];
  }
  return scalar ? Spread::kScalar : dense ? Spread::kDense : Spread::kOther;
}

// Puts the nodes of one instruction together.
class Describer {
 public:
  Describer(ElementwiseCode& code, const std::unordered_map<const ir::Value*, uint32_t>& slots)
      : code_(code), slots_(slots) {}

  bool add(const ir::Node& node) {
    const ir::Value* result = node.outputs[0];
    if (node.op->alias_input >= 0) {
      base_[result] = resolve(node.inputs[static_cast<size_t>(node.op->alias_input)]);
      return true;
    }
    if (!is_held(result)) return false;
    for (const ir::Value* v : node.inputs) {
      if (v && !is_held(v)) return false;
    }
    const ElementwiseForm form = elementwise_form(node);
    if (form.kind == ElementwiseForm::Kind::kNone) return false;
    const Dims dims = known_dims(result->type.shape);
    ElementwiseCode::Step step;
    step.to = result->type.element;
    step.converts = form.kind == ElementwiseForm::Kind::kConversion;
    step.op = form.op;
    step.params = form.params;
    step.argument_count = step.converts ? 1 : kernels::info(form.op).inputs;
    for (size_t i = 0; i < step.argument_count; ++i) {
      const size_t input = step.converts ? 0 : form.arguments[i];
      if (input >= node.inputs.size() || !node.inputs[input]) return false;
      const ir::Value* v = node.inputs[input];
      step.from = v->type.element;
      if (!argument(v, dims, i == 1 ? form.axis : -1, step.arguments[i])) return false;
    }
    made_[result] = code_.steps.size();
    code_.steps.push_back(step);
    return true;
  }

  // The step that makes what `v` is another name for.
  std::optional<uint16_t> step_of(const ir::Value* v) const {
    const auto it = made_.find(resolve(v));
    if (it == made_.end()) return std::nullopt;
    return static_cast<uint16_t>(it->second);
  }

  // Results of steps are numbered behind the inputs, whose number is known in the end.
  void finish() {
    for (ElementwiseCode::Step& step : code_.steps) {
      for (size_t i = 0; i < step.argument_count; ++i) {
        uint16_t& at = step.arguments[i];
        if (at >= kMade) at = static_cast<uint16_t>(at - kMade + code_.inputs.size());
      }
    }
  }

 private:
  static constexpr uint16_t kMade = 0x8000;

  const ir::Value* resolve(const ir::Value* v) const {
    const auto it = base_.find(v);
    return it == base_.end() ? v : it->second;
  }

  bool argument(const ir::Value* v, const Dims& dims, int64_t axis, uint16_t& at) {
    if (const auto step = step_of(v)) {
      at = static_cast<uint16_t>(kMade + *step);
      return true;
    }
    const auto slot = slots_.find(v);
    if (slot == slots_.end()) return false;
    ElementwiseCode::Input input;
    input.slot = slot->second;
    input.type = v->type.element;
    Dims strides = broadcast_strides(operand_of(*v), dims, axis);
    input.spread = spread_of(dims, strides);
    if (input.spread == Spread::kOther) {
      input.dims = dims;
      input.strides = std::move(strides);
    }
    for (size_t i = 0; i < code_.inputs.size(); ++i) {
      const ElementwiseCode::Input& known = code_.inputs[i];
      if (known.slot == input.slot && known.spread == input.spread && known.dims == input.dims &&
          known.strides == input.strides) {
        at = static_cast<uint16_t>(i);
        return true;
      }
    }
    at = static_cast<uint16_t>(code_.inputs.size());
    code_.inputs.push_back(std::move(input));
    return true;
  }

  ElementwiseCode& code_;
  const std::unordered_map<const ir::Value*, uint32_t>& slots_;
  std::unordered_map<const ir::Value*, size_t> made_;
  std::unordered_map<const ir::Value*, const ir::Value*> base_;
};

}  // namespace

std::optional<ElementwiseCode> describe_elementwise(const Program& program, uint32_t pc) {
  const Instruction& in = program.code[pc];
  const KernelCall* call = kernel_of(program, pc);
  if (!call || !program.node_of[pc]) return std::nullopt;
  std::vector<const ir::Node*> nodes;
  std::vector<const ir::Value*> inputs, outputs;
  if (call->group) {
    nodes = call->group->nodes;
    inputs = call->group->inputs;
    outputs = call->group->outputs;
  } else {
    const ir::Node& node = *program.node_of[pc];
    if (node.outputs.size() != 1 || !node.op->elementwise) return std::nullopt;
    nodes = {&node};
    inputs.assign(node.inputs.begin(), node.inputs.end());
    outputs.assign(node.outputs.begin(), node.outputs.end());
  }
  std::unordered_map<const ir::Value*, uint32_t> slots;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) slots.emplace(inputs[i], in.operands[i]);
  }
  ElementwiseCode code;
  Describer describer(code, slots);
  for (const ir::Node* node : nodes) {
    if (!node->op->prepare || !node->outputs[0]) return std::nullopt;
    if (!describer.add(*node)) return std::nullopt;
    code.count = element_count_unchecked(known_dims(node->outputs[0]->type.shape));
  }
  describer.finish();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto step = describer.step_of(outputs[i]);
    if (!step) return std::nullopt;
    code.outputs.push_back({*step, in.operands[inputs.size() + i]});
  }
  return code;
}

NativeGain expected_gain(const Program& program, uint32_t index) {
  // Of LLVM at each operation, of the interpreter at each instruction, and of a pass over an element.
  constexpr double kCompileNs = 3e6, kCompileOperationNs = 60e3, kInstructionNs = 2, kElementwiseNs = 4;
  constexpr double kMostCompileNs = 12e6, kFreeOperations = 200;  // then code gets less wide (jit/forms.h)
  constexpr double kElementNs = 0.02, kMostSaved = 0.8;
  constexpr double kVectorBytes = 64, kMostVectors = 10, kTileVectors = 4;  // written out; of longer ones, in a loop
  const Loop& loop = program.loops[index];
  NativeGain gain{kCompileNs, static_cast<double>(loop.weight) * kPollUnitNs, 0};
  double all_operations = 0;
  for (uint32_t pc = loop.first; pc <= loop.last; ++pc) {
    double operations = 1, vectors = 1;
    gain.saved_ns += kInstructionNs;
    const ir::Node* node = program.node_of[pc];
    const bool computes = program.code[pc].code == OpCode::kKernel && node && !node->outputs.empty();
    if (computes && node->outputs[0] && node->op->elementwise) {
      operations = static_cast<double>(nodes_of(program, pc).size());
      const auto count = static_cast<double>(element_count_unchecked(known_dims(node->outputs[0]->type.shape)));
      gain.saved_ns += kElementwiseNs + kElementNs * count * operations;
      const auto width = static_cast<double>(byte_width(node->outputs[0]->type.element));
      vectors = std::max(1.0, std::ceil(count * width / kVectorBytes));
      if (vectors > kMostVectors) vectors = kTileVectors;
    }
    all_operations += operations;
    gain.compile_ns += kCompileOperationNs * operations * vectors;
  }
  const double most = kMostCompileNs + kCompileOperationNs * std::max(0.0, all_operations - kFreeOperations);
  gain.compile_ns = std::min(gain.compile_ns, most);
  gain.saved_ns = std::min(gain.saved_ns, kMostSaved * gain.trip_ns);
  return gain;
}

std::optional<NativeRequest> describe_loop(const Program& program, uint32_t index, std::string& why) {
  const Loop& loop = program.loops[index];
  if (!loop.simple) {
    why = "a state, scan input or scan output has a size that is known only at run time";
    return std::nullopt;
  }
  NativeRequest request;
  request.program = &program;
  request.loop = index;
  for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
    if (auto code = describe_elementwise(program, pc)) {
      request.elementwise.emplace(pc, std::move(*code));
    } else if (auto other = describe_instruction(program, pc)) {
      request.others.emplace(pc, std::move(*other));
    }
  }
  return request;
}

}  // namespace treadle::plan
