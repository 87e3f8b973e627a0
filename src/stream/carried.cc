#include "stream/carried.h"

#include "stream/layout.h"
#include "stream/tensor_slices.h"

namespace treadle {

namespace {

int64_t first_size(const Dim& dim, const Symbols& symbols) {
  if (dim.is_known()) return dim.value();
  const std::string_view symbol = dim.symbol_name();
  for (const auto& [name, size] : symbols) {
    if (!symbol.empty() && name == symbol) return size;
  }
  return 1;
}

}  // namespace

Dims first_dims(const Shape& shape, const Symbols& symbols) {
  Dims dims;
  for (const Dim& dim : shape) dims.push_back(first_size(dim, symbols));
  return dims;
}

Result<AnyValue> first_state(const IoInfo& info, const Shape& sizes, const Symbols& symbols) {
  switch (info.type.kind) {
    case Type::Kind::kSequence:
      return AnyValue(Sequence(*info.type.child));
    case Type::Kind::kOptional:
      return AnyValue(Optional{*info.type.child, nullptr});
    case Type::Kind::kTensor:
      break;
    default:
      return error(Code::kInvalidArgument, "state '{}' ({}) needs a first value", info.name, info.type.to_string());
  }
  if (!info.type.has_shape) {
    return error(Code::kInvalidArgument, "the rank of state '{}' is not known: give its first value", info.name);
  }
  TREADLE_ASSIGN(Tensor tensor, zeros(info.type.element, first_dims(sizes, symbols)));
  return AnyValue(std::move(tensor));
}

Result<Carried> Carried::begin(const StreamLayout& layout) {
  Carried first;
  for (const StreamLayout::State& state : layout.states) {
    first.is_initial.push_back(!state.has_initial && !state.input->has_default);
    first.states.push_back(state.initial);
    if (first.is_initial.back()) {
      TREADLE_ASSIGN(first.states.back(), first_state(*state.input, state.first.shape, {}));
    }
  }
  first.tails.resize(layout.timed.size());
  first.last_dims.resize(layout.outputs.size());
  first.last_values.resize(layout.outputs.size());
  return first;
}

}  // namespace treadle
