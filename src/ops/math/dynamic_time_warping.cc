// DynamicTimeWarping: the cheapest path through a matrix of costs from its first to its last element, with steps down,
// right, or both.

#include <limits>

#include "base/counted.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle {

namespace {

Status infer_warping(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (x && x->size() != 2 && (x->size() != 3 || differ((*x)[0], Dim(1)))) {
    return error(Code::kInvalidArgument, "input has shape {}, expected [rows,columns] or [1,rows,columns]",
                 to_string(*x));
  }
  ctx.set_output(0, ElementType::kInt32, {Dim(2), Dim()});
  return {};
}

enum class Step : uint8_t { kBoth, kDown, kRight };

struct Costs {
  const float* data;
  int64_t rows, columns;
};

// The last step of the cheapest path to each element. Among equal paths, the one from the left is taken.
bool find_steps(const Costs& costs, CountedVector<Step>& steps) {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  // Costs of the paths to the elements of the row above, with one element in front, and of this row.
  CountedVector<float> above(static_cast<size_t>(costs.columns) + 1, kNone), row(above);
  above[0] = 0;
  StopPoll stop;
  for (int64_t i = 0; i < costs.rows; ++i) {
    row[0] = kNone;
    for (int64_t j = 0; j < costs.columns; ++j) {
      const auto at = static_cast<size_t>(j);
      const float both = above[at], down = above[at + 1], right = row[at];
      const Step step = both < down && both < right   ? Step::kBoth
                        : down < both && down < right ? Step::kDown
                                                      : Step::kRight;
      const float before = step == Step::kBoth ? both : step == Step::kDown ? down : right;
      row[at + 1] = before + costs.data[i * costs.columns + j];
      steps[static_cast<size_t>(i * costs.columns + j)] = step;
    }
    above.swap(row);
    if (stop.after(costs::kWarpingElementNs * static_cast<double>(costs.columns))) return false;
  }
  return true;
}

Status compute_warping(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const size_t rank = x.dims().size();
  const bool is_empty = x.element_count() == 0;
  const Costs costs{x.data<float>(), is_empty ? 0 : x.dims()[rank - 2], is_empty ? 0 : x.dims()[rank - 1]};
  CountedVector<Step> steps(static_cast<size_t>(x.element_count()));
  if (!find_steps(costs, steps)) return stopped();
  struct Cell {
    int32_t row, column;
  };
  CountedVector<Cell> way;  // from the end
  for (int64_t i = costs.rows - 1, j = costs.columns - 1; i >= 0 && j >= 0;) {
    way.push_back({static_cast<int32_t>(i), static_cast<int32_t>(j)});
    const Step step = steps[static_cast<size_t>(i * costs.columns + j)];
    if (step != Step::kRight) --i;
    if (step != Step::kDown) --j;
  }
  const auto count = static_cast<int64_t>(way.size());
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, ElementType::kInt32, {2, count}));
  auto* to = y->mutable_data<int32_t>();
  for (size_t k = 0; k < way.size(); ++k) {
    to[k] = way[way.size() - 1 - k].row;
    to[way.size() + k] = way[way.size() - 1 - k].column;
  }
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(DynamicTimeWarping, "com.microsoft") {
  op.since(1).in("input", "F").out("output", "I").type("F", types::kFloat32s).type("I", types::kInt32s);
  op.infer(infer_warping).compute(compute_warping).no_axes("its way leads across all positions");
}
