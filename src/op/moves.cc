#include "op/moves.h"

#include <algorithm>
#include <utility>

#include "op/elementwise.h"
#include "op/op_def.h"

namespace treadle {

void Moves::copy(size_t input, size_t output, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
                 std::span<const int64_t> out_strides, int64_t in_start, int64_t out_start) {
  if (dims.size() > 1) {
    for (int64_t i = 0; i < dims[0]; ++i) {
      copy(input, output, dims.subspan(1), in_strides.subspan(1), out_strides.subspan(1), in_start + i * in_strides[0],
           out_start + i * out_strides[0]);
    }
    return;
  }
  int64_t* out = from[output].data() + out_start;
  const int64_t in = first[input] + in_start;
  if (dims.empty()) {
    *out = in;
    return;
  }
  for (int64_t i = 0; i < dims[0]; ++i) out[i * out_strides[0]] = in + i * in_strides[0];
}

Moves* moves_of(PrepareContext& context) {
  if (!context.form || context.most_moves == 0) return nullptr;
  if (std::ranges::any_of(context.inputs, [](const Operand& in) { return in.is_part; })) return nullptr;
  const auto is_few = [&](const Operand& operand) { return operand.element_count() <= context.most_moves; };
  for (const Operand& out : context.outputs) {
    if (!out.present() || !is_few(out) || out.element_count() == 0) return nullptr;
  }
  auto moves = std::make_shared<Moves>();
  int64_t count = 0;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const Operand& in = context.inputs[i];
    const OpVersion& version = *context.node.version;
    const Formal* formal = version.input(i);
    const bool is_moved = in.present() && formal && formal->type == version.outputs[0].type;
    if (is_moved && !is_few(in)) return nullptr;
    moves->first.push_back(is_moved ? std::exchange(count, count + in.element_count()) : -1);
  }
  for (const Operand& out : context.outputs) moves->from.emplace_back(static_cast<size_t>(out.element_count()), -1);
  context.form->kind = ElementwiseForm::Kind::kMoves;
  context.form->moves = moves;
  return moves.get();
}

void withdraw_moves(PrepareContext& context) {
  *context.form = {};
}

}  // namespace treadle
