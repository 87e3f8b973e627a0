// MaxpoolWithMask: a row of a window ends at a position that the mask rules out.

#include <algorithm>
#include <array>
#include <limits>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/registry.h"
#include "ops/nn/window.h"

namespace treadle::nn {

namespace {

// A mask with fewer entries and channels than x is repeated.
Status infer_masked(InferContext& ctx) {
  const Shape *x = ctx.shape(0), *mask = ctx.shape(1);
  if (x && x->size() > 5) {
    return error(Code::kInvalidArgument, "X has shape {}, expected 1 to 3 spatial axes", to_string(*x));
  }
  bool fits = !x || !mask || x->size() == mask->size();
  for (size_t i = 2; fits && x && mask && i < x->size(); ++i) fits = !differ((*x)[i], (*mask)[i]);
  for (size_t i = 0; fits && mask && i < 2 && i < mask->size(); ++i) fits = !(*mask)[i].is_known(0);
  if (!fits) {
    return error(Code::kInvalidArgument, "M has shape {}, expected the spatial axes of X {}", to_string(*mask),
                 x ? to_string(*x) : "?");
  }
  return require_op("MaxPool").infer(ctx);
}

struct MaskedPool {
  int64_t planes = 0, mask_planes = 0;
  int64_t size = 1, out_size = 1;  // of a plane
  double element_ns = 0;
  // Three axes; the first ones may have size 1.
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, pad{};
  bool first_counts = false;  // the mask's first element can rule out its position, too
};

struct Range {
  int64_t begin, end;
};

Range window(const MaskedPool& s, size_t axis, int64_t at) {
  const int64_t begin = at * s.stride[axis] - s.pad[axis];
  return {std::max<int64_t>(begin, 0), std::min(begin + s.kernel[axis], s.in[axis])};
}

// A row of the window ends where the mask is 0.
float masked_maximum(const MaskedPool& s, const float* x, const int32_t* mask, const Range (&w)[3]) {
  float most = std::numeric_limits<float>::lowest();
  for (int64_t i = w[0].begin; i < w[0].end; ++i) {
    for (int64_t j = w[1].begin; j < w[1].end; ++j) {
      const int64_t row = (i * s.in[1] + j) * s.in[2];
      for (int64_t k = row + w[2].begin; k < row + w[2].end; ++k) {
        if (mask[k] == 0 && (k > 0 || s.first_counts)) break;
        if (x[k] > most) most = x[k];
      }
    }
  }
  return most;
}

uint32_t run_masked_pool(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MaskedPool*>(state);
  const auto* x = static_cast<const float*>(slots[operands[0]]);
  const auto* masks = static_cast<const int32_t*>(slots[operands[1]]);
  auto* y = static_cast<float*>(slots[operands[2]]);
  parallel_for(s.planes * s.out_size, s.element_ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t plane = at / s.out_size, o = at % s.out_size;
      const Range w[3] = {window(s, 0, o / s.out[2] / s.out[1]), window(s, 1, o / s.out[2] % s.out[1]),
                          window(s, 2, o % s.out[2])};
      y[at] = masked_maximum(s, x + plane * s.size, masks + plane % s.mask_planes * s.size, w);
    }
  });
  return 0;
}

Status prepare_masked_pool(PrepareContext& ctx) {
  const Dims &x = ctx.inputs[0].dims, &mask = ctx.inputs[1].dims;
  TREADLE_ASSIGN(const kernels::PoolShape whole, pool_shape(ctx.attributes(), x, ctx.outputs[0].dims));
  const kernels::PoolShape shape = kernels::narrowed(whole);
  auto* s = ctx.make_state<MaskedPool>();
  s->planes = x[0] * x[1];
  s->mask_planes = mask[0] * mask[1];
  const auto axes = static_cast<size_t>(shape.axes);
  for (size_t i = 0; i < axes; ++i) {
    const size_t at = 3 - axes + i;
    s->in[at] = shape.input[i];
    s->out[at] = shape.output[i];
    s->kernel[at] = shape.kernel[i];
    s->stride[at] = shape.stride[i];
    s->pad[at] = shape.pad_begin[i];
    s->size *= shape.input[i];
    s->out_size *= shape.output[i];
  }
  s->first_counts = axes == 1;
  s->element_ns = static_cast<double>(s->kernel[0] * s->kernel[1] * s->kernel[2]);
  ctx.cost_ns = s->element_ns * static_cast<double>(s->planes * s->out_size);
  ctx.set_kernel(run_masked_pool, s);
  return {};
}

// Batch entries and channels are independent if the mask has one plane.
Status masked_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  const bool shared = c.size(1, 0).is_known(1) && c.size(1, 1).is_known(1);
  if (c.in(0) > 1 || !shared) return looks_along("its windows or its mask run along it");
  return c.give(0, c.in(0));
}

}  // namespace

}  // namespace treadle::nn

TREADLE_OP(MaxpoolWithMask, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("M", "tensor(int32)")
      .out("Y", "T")
      .attr("auto_pad", "NOTSET")
      .optional("kernel_shape", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .attr("storage_order", 0)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T", types::kFloat32s);
  op.infer(nn::infer_masked).prepare(nn::prepare_masked_pool).axes(nn::masked_axes);
}
