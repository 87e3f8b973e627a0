// ZipMap: every row of scores becomes a map from class label to score.

#include <algorithm>

#include "op/op_def.h"

namespace treadle::ml {

namespace {

Result<Tensor> read_keys(const ir::Attributes& attributes) {
  const auto strings = attributes.get_strings("classlabels_strings");
  const auto integers = attributes.get_ints("classlabels_int64s");
  if (strings.empty() == integers.empty()) {
    return error(Code::kInvalidModel, "expected one of the attributes classlabels_strings and classlabels_int64s");
  }
  if (strings.empty()) return Tensor::of_int64(integers);
  TREADLE_ASSIGN(Tensor keys, Tensor::allocate(ElementType::kString, {static_cast<int64_t>(strings.size())}));
  std::copy(strings.begin(), strings.end(), keys.mutable_data<std::string>());
  return keys;
}

Type map_type(const ir::Attributes& attributes) {
  const bool strings = !attributes.get_strings("classlabels_strings").empty();
  return Type::map(strings ? ElementType::kString : ElementType::kInt64, Type::tensor(ElementType::kFloat, Shape()));
}

Status infer_zip_map(InferContext& ctx) {
  ctx.set_output(0, Type::sequence(map_type(ctx.attributes())));
  return {};
}

Status compute_zip_map(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  TREADLE_ASSIGN(const Tensor keys, read_keys(ctx.attributes()));
  const int64_t columns = keys.element_count();
  if ((x.rank() != 1 && x.rank() != 2) || x.dims().back() != columns) {
    return error(Code::kInvalidArgument, "X has shape {}, expected [N,{}]", to_string(x.dims()), columns);
  }
  std::vector<AnyValue> maps;
  const int64_t rows = x.rank() == 2 ? x.dims()[0] : 1;
  for (int64_t i = 0; i < rows; ++i) {
    maps.push_back(
        AnyValue(Map{keys, Tensor::of_float({x.data<float>() + i * columns, static_cast<size_t>(columns)})}));
  }
  ctx.outputs[0] = AnyValue(Sequence(map_type(ctx.attributes()), std::move(maps)));
  return {};
}

}  // namespace

}  // namespace treadle::ml

TREADLE_OP(ZipMap, "ai.onnx.ml") {
  op.since(1)
      .in("X", "tensor(float)")
      .out("Z", "T")
      .optional("classlabels_int64s", ir::AttributeKind::kInts)
      .optional("classlabels_strings", ir::AttributeKind::kStrings)
      .type("T", sequence_maps_of(ElementType::kInt64, ElementType::kFloat) |
                     sequence_maps_of(ElementType::kString, ElementType::kFloat));
  op.infer(ml::infer_zip_map).compute(ml::compute_zip_map);
}
