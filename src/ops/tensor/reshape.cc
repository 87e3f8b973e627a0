// Operators that give the same elements other sizes: their outputs are aliases of input 0.

#include <algorithm>

#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/rank.h"
#include "op/small_contents.h"

namespace treadle {
namespace {

void forward_symbols(InferContext& c, const Shape& output) {
  if (!c.wants_symbols(0) || output.size() > 1) return;
  if (auto values = small_contents(c, 0)) c.set_output_symbols(0, std::move(*values));
}

// The size that -1 stands for: the input's elements over those of the other sizes. Equal sizes on both sides cancel, so
// that symbolic ones need no division.
Result<Dim> deduced_size(const Shape& input, const Shape& target, size_t deduced) {
  Dim rest = 1;
  Shape left;
  if (is_known(input)) {
    left.push_back(element_count(input));
  } else {
    left = input;
  }
  for (size_t i = 0; i < target.size(); ++i) {
    if (i == deduced) continue;
    auto twin = std::find_if(left.begin(), left.end(), [&](const Dim& d) { return same(d, target[i]); });
    if (twin != left.end() && !twin->is_known(0)) {
      left.erase(static_cast<size_t>(twin - left.begin()));
    } else {
      rest = rest * target[i];
    }
  }
  const Dim total = element_count(left);
  if (rest.is_known(0)) {
    return error(Code::kInvalidArgument, "shape is {}, expected no -1 beside a size of 0: any size would fit",
                 to_string(target));
  }
  if (total.is_known() && rest.is_known() && total.value() % rest.value() != 0) {
    return error(
        Code::kInvalidArgument,
        "an input of shape {} has {} elements, expected a multiple of {}: the product of the sizes that shape states",
        to_string(input), element_count(input).to_string(), rest.value());
  }
  return floor_div(total, rest);
}

Status check_count(const Shape& input, const Shape& output) {
  const Dim before = element_count(input), after = element_count(output);
  if (!before.is_known() || !after.is_known() || before.value() == after.value()) return {};
  return error(Code::kInvalidArgument, "an input of shape {} has {} elements and cannot become {}, expected {}",
               to_string(input), before.value(), to_string(output), after.value());
}

// `target` as the model gives it: 0 keeps the input's size (unless allowed as a size), one -1 is deduced.
Result<Shape> reshaped(const Shape* input, Shape target, bool allow_zero) {
  size_t deduced = target.size();
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i].is_known(0) && !allow_zero) {
      if (input && i >= input->size()) {
        return error(Code::kInvalidArgument,
                     "shape holds 0 at position {}, expected an axis of input {} there, whose size is kept", i,
                     to_string(*input));
      }
      target[i] = input ? (*input)[i] : Dim::unknown();
    } else if (target[i].is_known(-1)) {
      if (deduced != target.size())
        return error(Code::kInvalidArgument, "shape holds -1 more than once, expected it at most once");
      deduced = i;
      target[i] = Dim::unknown();
    } else if (target[i].is_known() && target[i].value() < -1) {
      return error(Code::kInvalidArgument, "a shape holds {}, expected -1 or more", target[i].value());
    } else if (target[i].lower_bound().value_or(-1) < 0) {
      target[i] = Dim::unknown();  // may turn out to be -1
    }
  }
  if (!input) return target;
  if (deduced != target.size()) {
    TREADLE_ASSIGN(target[deduced], deduced_size(*input, target, deduced));
  } else {
    // One size that nothing is known of follows from the others all the same.
    const auto unknown = [](const Dim& d) { return d.is_unknown(); };
    if (std::count_if(target.begin(), target.end(), unknown) == 1 && is_known(*input)) {
      const auto i = static_cast<size_t>(std::find_if(target.begin(), target.end(), unknown) - target.begin());
      Dim others = 1;
      for (size_t k = 0; k < target.size(); ++k) {
        if (k != i) others = others * target[k];
      }
      const Dim total = element_count(*input);
      if (others.is_known() && others.value() > 0 && total.value() % others.value() == 0) {
        target[i] = floor_div(total, others);
      }
    }
  }
  TREADLE_TRY(check_count(*input, target));
  return target;
}

Status infer_reshape(InferContext& c) {
  std::optional<Shape> target;
  if (c.version() < 5) {
    const auto shape = c.attributes().get_ints("shape");
    target = Shape(shape.begin(), shape.end());
  } else {
    target = c.dims_value(1);
    if (!target) {
      const Dim length = dimensions_listed(c, 1);
      if (!length.is_known()) return c.set_output(0, c.element(0)), Status();
      target = unknown_shape(static_cast<size_t>(length.value()));
    }
  }
  const bool allow_zero = c.attributes().get_int("allowzero", 0) != 0;
  TREADLE_ASSIGN(Shape output, reshaped(c.shape(0), std::move(*target), allow_zero));
  forward_symbols(c, output);
  c.set_output(0, c.element(0), std::move(output));
  return {};
}

Status infer_flatten(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0), unknown_shape(2)), Status();
  const auto rank = static_cast<int64_t>(shape->size());
  int64_t axis = c.attributes().get_int("axis", 1);
  if (axis < -rank || axis > rank || (axis < 0 && c.version() < 11)) {
    return error(Code::kInvalidArgument, "axis is {}, expected {} to {} for rank {}", axis,
                 c.version() < 11 ? 0 : -rank, rank, rank);
  }
  if (axis < 0) axis += rank;
  Dim rows = 1, columns = 1;
  for (int64_t i = 0; i < rank; ++i) {
    Dim& side = i < axis ? rows : columns;
    side = side * (*shape)[static_cast<size_t>(i)];
  }
  c.set_output(0, c.element(0), {rows, columns});
  return {};
}

Result<Shape> squeezed(const Shape& shape, const Ints& axes) {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) {
      out.push_back(shape[i]);
    } else if (shape[i].is_known() && shape[i].value() != 1) {
      return error(Code::kInvalidArgument, "axis {} of shape {} has size {}, expected 1: no other axis can be squeezed",
                   i, to_string(shape), shape[i].value());
    }
  }
  return out;
}

Status infer_squeeze(InferContext& c) {
  const Shape* shape = c.shape(0);
  IntList axes = int_list(c, "axes", 1);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  if (axes.state == IntList::State::kUnknown) {
    const Dim count = dimensions_listed(c, 1);
    if (!count.is_known() || count.value() > static_cast<int64_t>(shape->size())) {
      return c.set_output(0, c.element(0)), Status();
    }
    c.set_output(0, c.element(0), unknown_shape(shape->size() - static_cast<size_t>(count.value())));
    return {};
  }
  if (axes.absent()) {
    for (size_t i = 0; i < shape->size(); ++i) {
      if (!(*shape)[i].is_known()) return c.set_output(0, c.element(0)), Status();
      if ((*shape)[i].value() == 1) axes.values.push_back(static_cast<int64_t>(i));
    }
  }
  TREADLE_ASSIGN(const Ints which, normalize_axes(axes.values, static_cast<int64_t>(shape->size())));
  TREADLE_ASSIGN(Shape out, squeezed(*shape, which));
  forward_symbols(c, out);
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

Status infer_unsqueeze(InferContext& c) {
  const Shape* shape = c.shape(0);
  const IntList axes = int_list(c, "axes", 1);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  if (!axes.known()) {
    const Dim count = dimensions_listed(c, 1);
    if (!count.is_known()) return c.set_output(0, c.element(0)), Status();
    c.set_output(0, c.element(0), unknown_shape(shape->size() + static_cast<size_t>(count.value())));
    return {};
  }
  const size_t rank = shape->size() + axes.values.size();
  TREADLE_ASSIGN(const Ints which, normalize_axes(axes.values, static_cast<int64_t>(rank)));
  Shape out(rank, Dim(1));
  for (size_t i = 0, next = 0; i < rank; ++i) {
    if (std::find(which.begin(), which.end(), static_cast<int64_t>(i)) == which.end()) out[i] = (*shape)[next++];
  }
  forward_symbols(c, out);
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

// --- of any sizes

struct DynamicReshape {
  bool allow_zero = false;
};

uint32_t run_dynamic_reshape(const DynamicReshape& s, DynamicCall& call) {
  const DynamicOperand &in = call.inputs[0], &shape = call.inputs[1];
  if (shape.rank() != 1) return kNotDynamic;
  const auto* target = static_cast<const int64_t*>(shape.data);
  Dims dims;
  int64_t rest = 1, deduced = -1;
  for (int64_t i = 0; i < shape.count; ++i) {
    int64_t size = target[i];
    if (size == 0 && !s.allow_zero) {
      if (i >= in.rank()) return kNotDynamic;
      size = in.size(static_cast<size_t>(i));
    }
    if (size < -1 || (size == -1 && deduced >= 0)) return kNotDynamic;
    if (size == -1) {
      deduced = i;
    } else if (__builtin_mul_overflow(rest, size, &rest)) {
      return kNotDynamic;
    }
    dims.push_back(size);
  }
  if (deduced >= 0) {
    if (rest == 0 || in.count % rest != 0) return kNotDynamic;
    dims[static_cast<size_t>(deduced)] = in.count / rest;
  } else if (rest != in.count) {
    return kNotDynamic;
  }
  return call.share(0, 0, dims) ? 0 : kNotDynamic;
}

DynamicKernel dynamic_reshape(const DynamicContext& c) {
  if (c.node.version->since < 5) return {};
  const DynamicReshape reshape{c.attributes().get_int("allowzero", 0) != 0};
  return dynamic_kernel<DynamicReshape, run_dynamic_reshape>(c, reshape);
}

// Axes as the node has them: an attribute, or the contents of input 1.
struct DynamicAxes {
  Ints given;

  explicit DynamicAxes(const DynamicContext& c) {
    const auto axes = c.attributes().get_ints("axes");
    given.assign(axes.begin(), axes.end());
  }
  // As bits; nullopt where one is not among `rank`, or comes twice.
  std::optional<uint64_t> bits(const DynamicCall& call, int64_t rank) const {
    const bool listed = call.has(1);
    if (listed && call.inputs[1].rank() != 1) return std::nullopt;
    const int64_t count = listed ? call.inputs[1].count : static_cast<int64_t>(given.size());
    uint64_t named = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t axis = listed ? static_cast<const int64_t*>(call.inputs[1].data)[i] : given[static_cast<size_t>(i)];
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= std::min<int64_t>(rank, 64) || named >> axis & 1) return std::nullopt;
      named |= uint64_t{1} << axis;
    }
    return named;
  }
  bool any(const DynamicCall& call) const { return call.has(1) || !given.empty(); }
  int64_t count(const DynamicCall& call) const {
    return call.has(1) ? call.inputs[1].count : static_cast<int64_t>(given.size());
  }
};

uint32_t run_dynamic_squeeze(const DynamicAxes& s, DynamicCall& call) {
  const DynamicOperand& in = call.inputs[0];
  const auto named = s.bits(call, in.rank());
  if (!named || in.rank() > 64) return kNotDynamic;
  Dims dims;
  for (size_t d = 0; d < in.dims->size(); ++d) {
    const bool goes = s.any(call) ? (*named >> d & 1) != 0 : in.size(d) == 1;
    if (goes && in.size(d) != 1) return kNotDynamic;
    if (!goes) dims.push_back(in.size(d));
  }
  return call.share(0, 0, dims) ? 0 : kNotDynamic;
}

uint32_t run_dynamic_unsqueeze(const DynamicAxes& s, DynamicCall& call) {
  const DynamicOperand& in = call.inputs[0];
  const int64_t rank = in.rank() + s.count(call);
  const auto named = s.bits(call, rank);
  if (!named || rank > 64) return kNotDynamic;
  Dims dims;
  for (size_t d = 0, next = 0; d < static_cast<size_t>(rank); ++d) {
    dims.push_back(*named >> d & 1 ? 1 : in.size(next++));
  }
  return call.share(0, 0, dims) ? 0 : kNotDynamic;
}

template <auto kRun>
DynamicKernel dynamic_axes(const DynamicContext& c) {
  return dynamic_kernel<DynamicAxes, kRun>(c, c);
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Reshape, "") {
  op.since(1)
      .in("data", "T")
      .out("reshaped", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .optional("shape", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(5)
      .in("shape", "tensor(int64)")
      .drop_attr("consumed_inputs")
      .drop_attr("shape")
      .type("T", types::kAllTensors);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(14).attr("allowzero", 0);
  op.since(19).type("T", types::kAllTensorsIr9);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_reshape)
      .prepare(prepare_plain_copy)
      .compute(compute_reshaped)
      .alias(0)
      .dynamic(dynamic_reshape)
      .shape_inputs({1})
      .axes(axes::reshaped)
      .over_time(TimeRule::kReshape);
}

TREADLE_OP(Flatten, "") {
  op.since(1).in("input", "T").out("output", "T").attr("axis", 1).type("T", types::kFloats);
  op.since(9).type("T", types::kAllTensors);
  op.since(11);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_flatten).prepare(prepare_plain_copy).compute(compute_reshaped).alias(0).axes(axes::reshaped);
}

TREADLE_OP(Squeeze, "") {
  op.since(1)
      .in("data", "T")
      .out("squeezed", "T")
      .optional("axes", ir::AttributeKind::kInts)
      .type("T", types::kAllTensors);
  op.since(11);
  op.since(13).in("axes", "tensor(int64)", Arity::kOptional).drop_attr("axes").type("T", types::kAllTensorsIr4);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_squeeze)
      .prepare(prepare_plain_copy)
      .compute(compute_reshaped)
      .alias(0)
      .dynamic(dynamic_axes<run_dynamic_squeeze>)
      .shape_inputs({1})
      .axes(axes::reshaped)
      .over_time(TimeRule::kSqueeze);
}

TREADLE_OP(Unsqueeze, "") {
  op.since(1)
      .in("data", "T")
      .out("expanded", "T")
      .required("axes", ir::AttributeKind::kInts)
      .type("T", types::kAllTensors);
  op.since(11);
  op.since(13).in("axes", "tensor(int64)").drop_attr("axes").type("T", types::kAllTensorsIr4);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_unsqueeze)
      .prepare(prepare_plain_copy)
      .compute(compute_reshaped)
      .alias(0)
      .dynamic(dynamic_axes<run_dynamic_unsqueeze>)
      .shape_inputs({1})
      .axes(axes::reshaped);
}
