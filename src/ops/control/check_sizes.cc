// CheckSizes and CheckResult (internal). If sizes are unknown until the run, planning puts them around the nodes of a
// lowering. Their results have no elements, and no node reads them: they exist to fail. The interpreter prepares their
// kernels, which do nothing, for the sizes at hand (run/dynamic.cc).
//
// CheckSizes asks the inference of the lowered node, which ir::NodeInfo::parsed holds, whether it accepts the sizes at
// hand. Its inputs are the node's inputs of unknown size, with any strides. CheckResult compares a result with the
// sizes that planning relies on: attribute `sizes`, with -1 for any size.
#include "op/resize.h"
#include "op/size_check.h"

namespace treadle {

namespace {

constexpr uint64_t kAllInputs = ~uint64_t{0};

uint32_t do_nothing(const void*, void* const*, const uint32_t*) {
  return 0;
}

void make_nothing(InferContext& ctx) {
  ctx.set_output(0, ElementType::kUint8, {int64_t{0}});
}

Status infer_question(InferContext& ctx) {
  TREADLE_TRY(ctx.node.parsed_as<SizeQuestion>().ask(ctx.inputs));
  make_nothing(ctx);
  return {};
}

// The types of operands for inference.
class OperandTypes {
 public:
  std::span<const Type* const> of(std::span<const Operand> operands) {
    types_.resize(operands.size());
    pointers_.resize(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      types_[i] = Type::tensor(operands[i].type, to_shape(operands[i].dims));
      pointers_[i] = &types_[i];
    }
    return pointers_;
  }

 private:
  std::vector<Type> types_;
  std::vector<const Type*> pointers_;
};

struct Asked {
  const SizeQuestion& question;
  OperandTypes types = {};
};

// Called when a value that grows has new sizes.
bool ask_again(void* state, ResizeContext& ctx) {
  Asked& asked = *static_cast<Asked*>(state);
  return asked.question.ask(asked.types.of(ctx.inputs)).ok();
}

Status prepare_question(PrepareContext& ctx) {
  const auto& question = ctx.node.parsed_as<SizeQuestion>();
  Asked* asked = ctx.make_state<Asked>(question);
  TREADLE_TRY(question.ask(asked->types.of(ctx.inputs)));
  ctx.set_kernel(do_nothing, asked, ask_again);
  return {};
}

Shape stated_sizes(const ir::NodeInfo& node) {
  Shape sizes;
  for (const int64_t size : node.attributes.get_ints("sizes")) sizes.push_back(size < 0 ? Dim() : Dim(size));
  return sizes;
}

Status infer_result(InferContext& ctx) {
  if (const Shape* made = ctx.shape(0)) TREADLE_TRY(check_result(*made, stated_sizes(ctx.node)));
  make_nothing(ctx);
  return {};
}

bool check_again(void* state, ResizeContext& ctx) {
  return check_result(to_shape(ctx.inputs[0].dims), *static_cast<const Shape*>(state)).ok();
}

Status prepare_result(PrepareContext& ctx) {
  const Shape* stated = ctx.make_state<Shape>(stated_sizes(ctx.node));
  TREADLE_TRY(check_result(to_shape(ctx.inputs[0].dims), *stated));
  ctx.set_kernel(do_nothing, stated, check_again);
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(CheckSizes, "treadle") {
  op.since(1)
      .in("of_the_node", "V", Arity::kVariadicMixed)
      .out("nothing", "tensor(uint8)")
      .required("of", ir::AttributeKind::kString)  // the path of the node, which keeps checks of two nodes apart
      .type("V", types::kAllTensorsIr14);
  op.infer(infer_question).prepare(prepare_question).can_fail();
  op.def.strided_inputs = kAllInputs;
  op.no_axes("the node behind it is asked about all sizes at once");
}

TREADLE_OP(CheckResult, "treadle") {
  op.since(1)
      .in("result", "V")
      .out("nothing", "tensor(uint8)")
      .required("sizes", ir::AttributeKind::kInts)
      .type("V", types::kAllTensorsIr14);
  op.infer(infer_result).prepare(prepare_result).can_fail();
  op.def.strided_inputs = kAllInputs;
  op.no_axes("it looks at all sizes at once");
}
