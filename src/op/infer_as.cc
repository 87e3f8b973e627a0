#include "op/infer_as.h"

#include "op/registry.h"

namespace treadle {

Status infer_as(InferContext& ctx, std::string_view op, std::span<const size_t> inputs) {
  std::vector<const Type*> types;
  std::vector<const Tensor*> values;
  std::vector<const Shape*> symbols;
  for (const size_t i : inputs) {
    types.push_back(i < ctx.inputs.size() ? ctx.inputs[i] : nullptr);
    values.push_back(i < ctx.values.size() ? ctx.values[i] : nullptr);
    symbols.push_back(i < ctx.symbols.size() ? ctx.symbols[i] : nullptr);
  }
  InferContext inner = ctx;
  inner.inputs = types;
  inner.values = values;
  inner.symbols = symbols;
  return require_op(op).infer(inner);
}

}  // namespace treadle
