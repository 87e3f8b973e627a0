#include "op/moves.h"

#include <algorithm>

#include "op/elementwise.h"

namespace treadle {

void Moves::copy(size_t input, size_t output, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
                 std::span<const int64_t> out_strides, int64_t in_start, int64_t out_start) {
  if (dims.empty()) {
    outputs[output][static_cast<size_t>(out_start)] = {static_cast<int32_t>(input), in_start, 0};
    return;
  }
  for (int64_t i = 0; i < dims[0]; ++i) {
    copy(input, output, dims.subspan(1), in_strides.subspan(1), out_strides.subspan(1), in_start + i * in_strides[0],
         out_start + i * out_strides[0]);
  }
}

Moves* moves_of(PrepareContext& context) {
  if (!context.form || context.form_only) return nullptr;
  const ElementType type = context.outputs[0].type;
  const auto few = [](const Operand& operand) { return operand.element_count() <= Moves::kMost; };
  for (const Operand& in : context.inputs) {
    if (in.type == type && !few(in)) return nullptr;
  }
  for (const Operand& out : context.outputs) {
    if (!out.present() || !few(out) || out.element_count() == 0) return nullptr;
  }
  auto moves = std::make_shared<Moves>();
  for (const Operand& out : context.outputs) moves->outputs.emplace_back(static_cast<size_t>(out.element_count()));
  context.form->kind = ElementwiseForm::Kind::kMoves;
  context.form->moves = moves;
  return moves.get();
}

void withdraw_moves(PrepareContext& context) {
  *context.form = {};
}

}  // namespace treadle
