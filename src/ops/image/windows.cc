// MaxUnpool and Col2Im, which add windows to images.

#include <algorithm>
#include <cstring>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/rank.h"
#include "op/refused_element.h"
#include "ops/costs.h"
#include "ops/tensor/combine.h"
#include "ops/tensor/copy.h"
#include "ops/tensor/walk.h"

namespace treadle {
namespace {

using tensor_ops::Bytes;

// Attribute `name` with one value per axis (two for pads), or the default for each.
Result<Ints> per_axis(const ir::Attributes& attributes, const char* name, size_t count, int64_t otherwise) {
  const ir::Attribute* a = attributes.find(name);
  if (!a) return Ints(count, otherwise);
  const Ints values(a->as_ints());
  if (values.size() != count) {
    return error(Code::kInvalidModel, "attribute {} has {} elements, expected {}", name, values.size(), count);
  }
  return values;
}

// --- MaxUnpool

// The shape that indices refer to.
Result<Shape> unpooled_shape(const ir::Attributes& attributes, const Shape& x) {
  const auto kernel = attributes.get_ints("kernel_shape");
  const size_t rank = kernel.size();
  if (x.size() != rank + 2) {
    return error(Code::kInvalidArgument,
                 "attribute kernel_shape has {} numbers, expected one for each spatial axis of X {}", rank,
                 to_string(x));
  }
  TREADLE_ASSIGN(const Ints strides, per_axis(attributes, "strides", rank, 1));
  TREADLE_ASSIGN(const Ints pads, per_axis(attributes, "pads", 2 * rank, 0));
  Shape out{x[0], x[1]};
  for (size_t d = 0; d < rank; ++d) {
    const Dim size = (x[d + 2] - 1) * strides[d] - pads[d] - pads[rank + d] + kernel[d];
    if (size.is_known() && size.value() < 0)
      return error(Code::kInvalidArgument, "spatial axis {} of the result would have size {}, expected 0 or more", d,
                   size.value());
    out.push_back(size);
  }
  return out;
}

Status infer_max_unpool(InferContext& c) {
  const Shape *x = c.shape(0), *indices = c.shape(1);
  if (x && indices && is_known(*x) && is_known(*indices) && !same(*x, *indices)) {
    return error(Code::kInvalidArgument, "X has shape {} and its indices {}, expected equal ones", to_string(*x),
                 to_string(*indices));
  }
  if (c.has_input(2)) {
    const auto sizes = c.dims_value(2);
    if (sizes) return c.set_output(0, c.element(0), *sizes), Status();
    if (x) return c.set_output(0, c.element(0), unknown_shape(x->size())), Status();
  }
  if (!x) return c.set_output(0, c.element(0)), Status();
  TREADLE_ASSIGN(Shape out, unpooled_shape(c.attributes(), *x));
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

struct UnpoolState {
  int64_t count = 0;   // elements of X
  int64_t total = 1;   // elements of the shape that indices refer to
  Dims dims, strides;  // of that shape; strides of the output, which may be larger
  size_t out_bytes = 0;
  bool same_shape = true;
  uint32_t output = 0;
};

template <size_t W>
uint32_t run_max_unpool(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const UnpoolState*>(state);
  const auto* x = static_cast<const Bytes<W>*>(slots[operands[0]]);
  const auto* indices = static_cast<const int64_t*>(slots[operands[1]]);
  auto* out = static_cast<Bytes<W>*>(slots[operands[s.output]]);
  if (!fill_in_pieces(out, 0, s.out_bytes)) return fail(KernelError::kStopped);
  return kernel_in_pieces(s.count, costs::kIndexNs, [&](int64_t begin, int64_t end) -> uint32_t {
    for (int64_t k = begin; k < end; ++k) {
      int64_t i = indices[k];
      if (i < 0 || i >= s.total) return refuse_element({"I", k}, i, 0, s.total - 1);
      if (!s.same_shape) {
        int64_t rest = i;
        i = 0;
        for (size_t d = s.dims.size(); d-- > 0; rest /= s.dims[d]) i += rest % s.dims[d] * s.strides[d];
      }
      out[i] = x[k];
    }
    return 0;
  });
}

Status prepare_max_unpool(PrepareContext& c) {
  const Operand &x = c.inputs[0], &out = c.outputs[0];
  auto* s = c.make_state<UnpoolState>();
  TREADLE_ASSIGN(const Shape shape, unpooled_shape(c.attributes(), to_shape(x.dims)));
  s->dims = known_dims(shape);
  s->strides = out.strides;
  s->count = x.element_count();
  s->total = element_count_unchecked(s->dims);
  s->same_shape = s->dims == out.dims;
  s->out_bytes = out.byte_size();
  s->output = static_cast<uint32_t>(c.inputs.size());
  bool fits = out.dims.size() == s->dims.size();
  for (size_t d = 0; fits && d < s->dims.size(); ++d) fits = out.dims[d] >= s->dims[d];
  if (!fits) {
    return error(Code::kInvalidArgument, "output_shape is {}, expected at least {}", to_string(out.dims),
                 to_string(s->dims));
  }
  tensor_ops::with_width(byte_width(x.type), [&](auto w) { c.set_kernel(run_max_unpool<w.value>, s); });
  return {};
}

// --- Col2Im

struct Geometry {
  size_t rank = 0;
  Ints dilations, pads, strides;
};

Result<Geometry> geometry_of(const ir::Attributes& attributes, size_t rank) {
  Geometry g;
  g.rank = rank;
  TREADLE_ASSIGN(g.dilations, per_axis(attributes, "dilations", rank, 1));
  TREADLE_ASSIGN(g.pads, per_axis(attributes, "pads", 2 * rank, 0));
  TREADLE_ASSIGN(g.strides, per_axis(attributes, "strides", rank, 1));
  return g;
}

// The number of positions of the block along each axis of the image. Errors: the input does not have a column for each
// position.
Result<Dims> positions_of(const Geometry& g, const Dims& image, const Dims& block, int64_t columns) {
  if (block.size() != image.size() || image.empty()) {
    return error(Code::kInvalidArgument, "block_shape has {} axes, expected those of the image, {}", block.size(),
                 image.size());
  }
  Dims counts;
  for (size_t d = 0; d < g.rank; ++d) {
    if (block[d] < 1) return error(Code::kInvalidArgument, "block_shape holds {}, expected at least 1", block[d]);
    const __int128 reach = static_cast<__int128>(g.dilations[d]) * (block[d] - 1) + 1;
    const __int128 room = static_cast<__int128>(image[d]) + g.pads[d] + g.pads[g.rank + d] - reach;
    const __int128 count = room < 0 ? 0 : room / g.strides[d] + 1;
    if (count > columns) {
      return error(Code::kInvalidArgument,
                   "input has {} columns, expected one for each position of the block: {} along axis {} of the image",
                   columns, static_cast<double>(count), d);
    }
    counts.push_back(static_cast<int64_t>(count));
  }
  const auto total = element_count(counts);
  if (!total.ok() || *total != columns) {
    return error(Code::kInvalidArgument, "input has {} columns, expected one for each of {} positions of the block",
                 columns, to_string(counts));
  }
  return counts;
}

Status check_block(const InferContext& c, const Shape* x, const std::optional<Shape>& image, const Shape& block) {
  if (!is_known(block)) return {};
  for (const Dim& d : block) {
    if (d.value() < 1) return error(Code::kInvalidArgument, "block_shape holds {}, expected at least 1", d.value());
  }
  if (!element_count(block).is_known()) {
    return error(Code::kInvalidArgument, "block_shape is {}, expected at most 2^63 - 1 elements", to_string(block));
  }
  TREADLE_ASSIGN(const Geometry geometry, geometry_of(c.attributes(), block.size()));
  if (!x || !(*x)[2].is_known() || !image || !is_known(*image)) return {};
  return positions_of(geometry, known_dims(*image), known_dims(block), (*x)[2].value()).status();
}

Status infer_col2im(InferContext& c) {
  const auto image = c.dims_value(1), block = c.dims_value(2);
  const Shape* x = c.shape(0);
  if (x && x->size() != 3) {
    return error(Code::kInvalidArgument, "expected an input of rank 3, found shape {}", to_string(*x));
  }
  if (block) TREADLE_TRY(check_block(c, x, image, *block));
  if (!image) {
    const Dim rank = dimensions_listed(c, 1);
    if (!rank.is_known()) return c.set_output(0, c.element(0)), Status();
    Shape out = unknown_shape(static_cast<size_t>(rank.value()) + 2);
    if (x) out[0] = (*x)[0];
    c.set_output(0, c.element(0), std::move(out));
    return {};
  }
  Shape out{x ? (*x)[0] : Dim(), Dim()};
  if (x && block) {
    const Dim size = element_count(*block), channels = (*x)[1];
    if (size.is_known() && channels.is_known() && (size.value() < 1 || channels.value() % size.value() != 0)) {
      return error(Code::kInvalidArgument, "the input has {} rows, expected a multiple of the size of a block, {}",
                   channels.value(), size.value());
    }
    out[1] = floor_div(channels, size);
  }
  for (const Dim& d : *image) out.push_back(d);
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

struct Col2ImState {
  int64_t planes = 0;  // batches x channels
  int64_t columns = 1, plane = 1;
  size_t width = 0, out_bytes = 0;
  Dims block, counts;  // offsets within a block; positions of the block, also along the last axis
  Dims image, image_strides;
  Geometry geometry;
  tensor_ops::CombineRow add = nullptr;
};

// Adds the columns of one offset within the block to the image, a run along the last axis at a time. False: the work is
// to stop.
bool add_offset(const Col2ImState& s, const int64_t* offset, const char* columns, char* image, StopPoll& stop) {
  const size_t last = s.geometry.rank - 1;
  const auto place = [&](size_t d, int64_t position) {
    return position * s.geometry.strides[d] - s.geometry.pads[d] + offset[d] * s.geometry.dilations[d];
  };
  const int64_t run = s.counts[last], step = s.geometry.strides[last], first = place(last, 0);
  const int64_t size = s.image[last];
  const int64_t begin = first >= 0 ? 0 : std::min(run, (-first + step - 1) / step);
  const int64_t end = first >= size ? begin : std::clamp((size - 1 - first) / step + 1, begin, run);
  int64_t at[tensor_ops::kMaxWalkRank] = {};
  for (int64_t column = 0; column < s.columns; column += run) {
    if (stop.after(costs::kCol2ImRunNs + costs::kCol2ImColumnNs * static_cast<double>(end - begin))) return false;
    int64_t index = 0;
    bool inside = begin < end;
    for (size_t d = 0; d < last; ++d) {
      const int64_t i = place(d, at[d]);
      inside = inside && i >= 0 && i < s.image[d];
      index += i * s.image_strides[d];
    }
    if (inside) {
      char* to = image + static_cast<size_t>(index + first + begin * step) * s.width;
      const char* from = columns + static_cast<size_t>(column + begin) * s.width;
      if (step == 1) {
        s.add(to, from, static_cast<size_t>(end - begin));
      } else {
        for (int64_t i = begin; i < end; ++i, to += static_cast<size_t>(step) * s.width, from += s.width) {
          s.add(to, from, 1);
        }
      }
    }
    for (size_t d = last; d-- > 0;) {
      if (++at[d] < s.counts[d]) break;
      at[d] = 0;
    }
  }
  return true;
}

uint32_t run_col2im(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const Col2ImState*>(state);
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[3]]);
  if (!fill_in_pieces(out, 0, s.out_bytes)) return fail(KernelError::kStopped);
  StopPoll stop;
  const int64_t offsets = element_count_unchecked(s.block);
  for (int64_t p = 0; p < s.planes; ++p, out += static_cast<size_t>(s.plane) * s.width) {
    int64_t offset[tensor_ops::kMaxWalkRank] = {};
    for (int64_t k = 0; k < offsets; ++k, in += static_cast<size_t>(s.columns) * s.width) {
      if (!add_offset(s, offset, in, out, stop)) return fail(KernelError::kStopped);
      for (size_t d = s.geometry.rank; d-- > 0;) {
        if (++offset[d] < s.block[d]) break;
        offset[d] = 0;
      }
    }
  }
  return 0;
}

Status prepare_col2im(PrepareContext& c) {
  const Operand &x = c.inputs[0], &out = c.outputs[0];
  auto* s = c.make_state<Col2ImState>();
  const Ints block = c.int64s(2);
  s->block.assign(block.begin(), block.end());
  s->image.assign(out.dims.begin() + 2, out.dims.end());
  s->image_strides = contiguous_strides(s->image);
  TREADLE_TRY(tensor_ops::check_walk_rank(static_cast<int64_t>(s->image.size())));
  TREADLE_ASSIGN(s->geometry, geometry_of(c.attributes(), s->image.size()));
  TREADLE_ASSIGN(s->counts, positions_of(s->geometry, s->image, s->block, x.dims[2]));
  s->columns = x.dims[2];
  s->planes = out.dims[0] * out.dims[1];
  s->plane = element_count_unchecked(s->image);
  s->width = byte_width(x.type);
  s->out_bytes = out.byte_size();
  TREADLE_TRY(tensor_ops::find_combine_row(tensor_ops::Combine::kAdd, x.type, &s->add));
  c.set_kernel(run_col2im, s);
  return {};
}

Status compute_col2im(ComputeContext&) {
  return error(Code::kInvalidArgument, "strings cannot be added, expected numbers");
}

}  // namespace
}  // namespace treadle

TREADLE_OP(MaxUnpool, "") {
  op.since(9)
      .in("X", "T1")
      .in("I", "T2")
      .in("output_shape", "T2", Arity::kOptional)
      .out("output", "T1")
      .required("kernel_shape", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T1", types::kFloats)
      .type("T2", types::kInt64s);
  op.since(11);
  op.since(22).type("T1", types::kFloatsBf16);
  op.infer(infer_max_unpool)
      .prepare(prepare_max_unpool)
      .shape_inputs({2})
      .can_fail()
      .no_axes("its indices count the elements of all entries");
}

TREADLE_OP(Col2Im, "") {
  op.since(18)
      .in("input", "T")
      .in("image_shape", "tensor(int64)")
      .in("block_shape", "tensor(int64)")
      .out("output", "T")
      .optional("dilations", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T", types::kAllTensorsIr4);
  op.infer(infer_col2im).prepare(prepare_col2im).compute(compute_col2im).shape_inputs({1, 2}).axes(axes::entries);
}
