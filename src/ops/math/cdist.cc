// CDist: distances between all rows of two matrices, as sums of squared differences or their square roots.

#include <cmath>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/costs.h"

namespace treadle {

namespace {

Result<bool> is_rooted(const ir::Attributes& attributes) {
  const std::string_view metric = attributes.get_string("metric");
  if (metric == "euclidean") return true;
  if (metric == "sqeuclidean") return false;
  return error(Code::kNotImplemented, "attribute metric is '{}', expected 'sqeuclidean' or 'euclidean'", metric);
}

Status infer_cdist(InferContext& ctx) {
  TREADLE_TRY(is_rooted(ctx.attributes()).status());
  const Shape *a = ctx.shape(0), *b = ctx.shape(1);
  for (const Shape* shape : {a, b}) {
    if (!shape || shape->size() == 2) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected [rows,columns]", shape == a ? "A" : "B",
                 to_string(*shape));
  }
  if (a && b && differ((*a)[1], (*b)[1])) {
    return error(Code::kInvalidArgument, "A and B have shapes {} and {}, expected rows of equal lengths", to_string(*a),
                 to_string(*b));
  }
  ctx.set_output(0, ctx.element(0), {a ? (*a)[0] : Dim(), b ? (*b)[0] : Dim()});
  return {};
}

struct Distances {
  int64_t rows = 0, columns = 0, length = 0;
  bool rooted = false;
};

// Scratch has B transposed, so that a step along a row of A adds to the distances from that row to all rows of B.
template <class T>
uint32_t run_cdist(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const Distances*>(state);
  const auto *a = static_cast<const T*>(slots[operands[0]]), *b = static_cast<const T*>(slots[operands[1]]);
  auto *c = static_cast<T*>(slots[operands[2]]), *turned = static_cast<T*>(slots[operands[3]]);
  parallel_for(s.columns, costs::kCdistStepNs * static_cast<double>(s.length), [&](int64_t begin, int64_t end, int) {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t p = 0; p < s.length; ++p) turned[p * s.columns + j] = b[j * s.length + p];
    }
  });
  const double row_ns = costs::kCdistStepNs * static_cast<double>(s.length) * static_cast<double>(s.columns);
  parallel_for(s.rows, row_ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      T* to = c + i * s.columns;
      std::fill_n(to, s.columns, T(0));
      for (int64_t p = 0; p < s.length; ++p) {
        const T x = a[i * s.length + p];
        const T* y = turned + p * s.columns;
        for (int64_t j = 0; j < s.columns; ++j) to[j] += (x - y[j]) * (x - y[j]);
      }
      for (int64_t j = 0; s.rooted && j < s.columns; ++j) to[j] = std::sqrt(to[j]);
    }
  });
  return 0;
}

Status prepare_cdist(PrepareContext& ctx) {
  auto* s = ctx.make_state<Distances>();
  const Dims &a = ctx.inputs[0].dims, &b = ctx.inputs[1].dims;
  s->rows = a[0];
  s->columns = b[0];
  s->length = a[1];
  TREADLE_ASSIGN(s->rooted, is_rooted(ctx.attributes()));
  const ElementType type = ctx.inputs[0].type;
  ctx.cost_ns = costs::kCdistStepNs * static_cast<double>(s->rows * s->columns) * static_cast<double>(s->length);
  ctx.scratch_bytes = static_cast<size_t>(s->columns * s->length) * byte_width(type);
  ctx.set_kernel(type == ElementType::kFloat ? run_cdist<float> : run_cdist<double>, s);
  return {};
}

// Rows of either operand are an axis of the result.
Status distance_axes(AxisContext& c) {
  if (c.runs_along(0) && c.runs_along(1)) return looks_along("all of its rows meet all others");
  const size_t i = c.runs_along(0) ? 0 : 1;
  return c.in(i) == 0 ? c.give(0, static_cast<int64_t>(i)) : looks_along("it adds up along it");
}

Work distance_work(const ir::Node& node) {
  return {.flops = 3 * work::elements_of(node.outputs[0]) * work::size_of(node.inputs[0], 1)};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(CDist, "com.microsoft") {
  op.since(1).in("A", "T").in("B", "T").out("C", "T").attr("metric", "sqeuclidean").type("T", types::kFloats32);
  op.infer(infer_cdist).prepare(prepare_cdist).axes(distance_axes).work(distance_work);
}
