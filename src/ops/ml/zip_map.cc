// ZipMap: every row of scores becomes a map from class label to score.

#include <algorithm>

#include "base/stop.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/costs.h"

namespace treadle::ml {

namespace {

// The keys of all maps, which share one tensor.
Result<Tensor> read_keys(const ir::NodeInfo& node) {
  const auto strings = node.attributes.get_strings("classlabels_strings");
  const auto integers = node.attributes.get_ints("classlabels_int64s");
  if (strings.empty() == integers.empty()) {
    return error(Code::kInvalidModel, "expected one of the attributes classlabels_strings and classlabels_int64s");
  }
  if (strings.empty()) return Tensor::of_int64(integers);
  TREADLE_ASSIGN(Tensor keys, Tensor::allocate(ElementType::kString, {static_cast<int64_t>(strings.size())}));
  std::copy(strings.begin(), strings.end(), keys.mutable_data<String>());
  return keys;
}

Type map_type(const Tensor& keys) {
  return Type::map(keys.type(), Type::tensor(ElementType::kFloat, Shape()));
}

Status infer_zip_map(InferContext& ctx) {
  const int64_t columns = ctx.node.parsed_as<Tensor>().element_count();
  const Shape* x = ctx.shape(0);
  if (x && ((x->size() != 1 && x->size() != 2) || differ(x->back(), Dim(columns)))) {
    return error(Code::kInvalidArgument, "X has shape {}, expected [N,{}]", to_string(*x), columns);
  }
  ctx.set_output(0, Type::sequence(map_type(ctx.node.parsed_as<Tensor>())));
  return {};
}

Status compute_zip_map(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const Tensor& keys = ctx.node.parsed_as<Tensor>();
  const int64_t columns = keys.element_count();
  if ((x.rank() != 1 && x.rank() != 2) || x.dims().back() != columns) {
    return error(Code::kInvalidArgument, "X has shape {}, expected [N,{}]", to_string(x.dims()), columns);
  }
  TREADLE_ASSIGN(const Tensor scores, x.clone());
  const int64_t rows = x.rank() == 2 ? x.dims()[0] : 1;
  std::vector<AnyValue> maps;
  maps.reserve(static_cast<size_t>(rows));
  StopPoll stop;
  for (int64_t i = 0; i < rows; ++i) {
    if (stop.after(costs::kZipMapNs)) return stopped();
    const float* row = scores.data<float>() + i * columns;
    maps.emplace_back(Map{keys, Tensor::from_buffer(ElementType::kFloat, {columns}, scores.buffer(), row)});
  }
  ctx.outputs[0] = AnyValue(Sequence(map_type(keys), std::move(maps)));
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
  op.parse<ml::read_keys>().infer(ml::infer_zip_map).compute(ml::compute_zip_map).no_axes("it works on maps");
}
