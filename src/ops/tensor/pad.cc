#include <algorithm>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/move.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/moves.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {
namespace {

struct PadState {
  kernels::PadPlan plan;
  bool empty = false;  // the result has no elements
  bool has_value = false;
  uint32_t output = 0;
  alignas(16) std::byte value[16] = {};  // where no input gives it
};

uint32_t run_pad(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const PadState*>(state);
  if (s.empty) return 0;
  const void* value = s.has_value ? slots[operands[2]] : s.value;
  s.plan(slots[operands[0]], value, slots[operands[s.output]]);
  return 0;
}

PadState* make_pad_state(PrepareContext& c) {
  auto* s = c.make_state<PadState>();
  s->output = static_cast<uint32_t>(c.inputs.size());
  s->empty = c.outputs[0].element_count() == 0;
  c.set_kernel(run_pad, s);
  return s;
}

constexpr size_t kValueInput = 2;

// Parts of the result along each dimension: before the operand's elements, they, and behind them.
class PadRegions {
 public:
  PadRegions(const kernels::PadPlan& plan, const CopiedRegion& border) : plan_(plan), border_(border) {
    int64_t stride = unit();
    for (int d = plan.rank; d-- > 0; stride *= plan.out_dims[d]) out_strides_[d] = stride;
  }

  // False: elements are repeated more than once around.
  bool find(std::vector<CopiedRegion>& regions) {
    const bool reflects = plan_.mode == kernels::PadMode::kReflect;
    for (int d = 0; d < plan_.rank && (reflects || plan_.mode == kernels::PadMode::kWrap); ++d) {
      if (std::max(plan_.before[d], after(d)) > plan_.in_dims[d] - (reflects ? 1 : 0)) return false;
    }
    regions_ = &regions;
    CopiedRegion whole;
    whole.in_start = plan_.offset / plan_.width;
    add(0, whole);
    return true;
  }

 private:
  // Positions of the result along a dimension, and what they take.
  struct Part {
    int64_t first, count;
    int64_t from, step;  // positions of the operand
  };

  int64_t unit() const { return static_cast<int64_t>(plan_.unit / plan_.width); }
  int64_t after(int d) const { return plan_.out_dims[d] - plan_.before[d] - plan_.in_dims[d]; }

  // What the border before or behind the elements takes; its first position is not known here.
  Part border(int64_t n, int64_t count, bool is_before) const {
    switch (plan_.mode) {
      case kernels::PadMode::kReflect:
        return {0, count, is_before ? count : n - 2, -1};
      case kernels::PadMode::kWrap:
        return {0, count, is_before ? n - count : 0, 1};
      default:
        return {0, count, is_before ? 0 : n - 1, 0};
    }
  }

  // `so_far`: dimensions before d.
  void add(int d, const CopiedRegion& so_far) {
    if (d == plan_.rank) {
      CopiedRegion region = so_far;
      extend(region, unit(), 1, 1);
      return regions_->push_back(std::move(region));
    }
    const int64_t n = plan_.in_dims[d], before = plan_.before[d];
    for (const bool is_before : {true, false}) {
      Part part = border(n, is_before ? before : after(d), is_before);
      part.first = is_before ? 0 : before + n;
      if (part.count == 0) continue;
      plan_.mode == kernels::PadMode::kConstant ? fill(d, so_far, part) : copy(d, so_far, part);
    }
    if (n > 0) copy(d, so_far, {before, n, 0, 1});
  }

  void copy(int d, CopiedRegion region, const Part& part) {
    const int64_t stride = plan_.in_strides[d] / plan_.width;
    region.out_start += part.first * out_strides_[d];
    region.in_start += part.from * stride;
    extend(region, part.count, part.step * stride, out_strides_[d]);
    add(d + 1, region);
  }

  // Whatever the dimensions behind it.
  void fill(int d, CopiedRegion region, const Part& part) {
    region.input = border_.input;
    region.bits = border_.bits;
    region.in_start = 0;
    region.out_start += part.first * out_strides_[d];
    extend(region, part.count * out_strides_[d], 0, 1);
    region.in_strides = Dims(region.dims.size(), 0);
    regions_->push_back(std::move(region));
  }

  static void extend(CopiedRegion& region, int64_t size, int64_t in_stride, int64_t out_stride) {
    region.dims.push_back(size);
    region.in_strides.push_back(in_stride);
    region.out_strides.push_back(out_stride);
  }

  const kernels::PadPlan& plan_;
  const CopiedRegion& border_;
  int64_t out_strides_[kernels::kMaxMoveDims] = {};
  std::vector<CopiedRegion>* regions_ = nullptr;
};

void say_regions(PrepareContext& c, const PadState& s) {
  if (!c.form || c.most_moves == 0 || s.plan.empty || s.plan.width > sizeof(uint64_t)) return;
  CopiedRegion border;
  border.input = s.has_value ? kValueInput : CopiedRegion::kConstant;
  std::memcpy(&border.bits, s.value, s.plan.width);
  auto regions = std::make_shared<std::vector<CopiedRegion>>();
  if (PadRegions(s.plan, border).find(*regions)) c.form->regions = std::move(regions);
}

void say_padded(PrepareContext& c, const PadState& s) {
  say_regions(c, s);
  Moves* moves = moves_of(c);
  if (!moves) return;
  std::memcpy(&moves->constants[0], s.value, std::min<size_t>(s.plan.width, sizeof(uint64_t)));
  const int64_t value = s.has_value ? moves->first[kValueInput] : -1;
  for (size_t i = 0; i < moves->from[0].size(); ++i) {
    const int64_t from = s.plan.source(static_cast<int64_t>(i));
    moves->from[0][i] = from < 0 ? value : from;
  }
}

// --- Pad

Result<kernels::PadMode> pad_mode(const ir::NodeInfo& node, int version) {
  const std::string_view mode = node.attributes.get_string("mode", "constant");
  if (mode == "constant") return kernels::PadMode::kConstant;
  if (mode == "reflect") return kernels::PadMode::kReflect;
  if (mode == "edge") return kernels::PadMode::kEdge;
  if (mode == "wrap" && version >= 19) return kernels::PadMode::kWrap;
  return error(Code::kInvalidModel, "mode is {}, expected constant, reflect{}", mode,
               version >= 19 ? ", edge or wrap" : " or edge");
}

const char* pads_attribute(int version) {
  return version == 1 ? "paddings" : "pads";
}

Result<Ints> padded_axes(const IntList& axes, int64_t rank) {
  if (axes.known()) return normalize_axes(axes.values, rank);
  Ints all;
  for (int64_t i = 0; i < rank; ++i) all.push_back(i);
  return all;
}

Status check_pad_count(size_t pads, size_t axes) {
  if (pads == 2 * axes) return {};
  return error(Code::kInvalidArgument, "pads has {} elements, expected {}: two for each of {} axes", pads, 2 * axes,
               axes);
}

// Pads wherever they come from, without a copy where they are known.
struct Pads {
  std::span<const int64_t> attribute;
  const Tensor* contents = nullptr;
  std::optional<Shape> symbols;
  bool known = true;

  explicit Pads(const InferContext& c) {
    if (c.version() < 11) {
      attribute = c.attributes().get_ints(pads_attribute(c.version()));
      return;
    }
    contents = c.value(1);
    if (!contents) {
      symbols = c.dims_value(1);
      known = symbols.has_value();
    }
  }
  size_t size() const {
    if (contents) return static_cast<size_t>(contents->element_count());
    return symbols ? symbols->size() : attribute.size();
  }
  Dim operator[](size_t i) const {
    if (contents) return contents->int64_at(static_cast<int64_t>(i));
    return symbols ? (*symbols)[i] : Dim(attribute[i]);
  }
};

Status infer_pad(InferContext& c) {
  TREADLE_TRY(pad_mode(c.node, c.version()).status());
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  const Pads pads(c);
  const IntList axes_input = int_list(c, nullptr, 3);
  if (!pads.known || axes_input.state == IntList::State::kUnknown) {
    const Dim count = length_of(c, 1), of = c.has_input(3) ? length_of(c, 3) : Dim(static_cast<int64_t>(shape->size()));
    if (c.version() >= 11 && count.is_known() && of.is_known()) {
      TREADLE_TRY(check_pad_count(static_cast<size_t>(count.value()), static_cast<size_t>(of.value())));
    }
    return c.set_output(0, c.element(0), unknown_shape(shape->size())), Status();
  }
  TREADLE_ASSIGN(const Ints axes, padded_axes(axes_input, static_cast<int64_t>(shape->size())));
  TREADLE_TRY(check_pad_count(pads.size(), axes.size()));
  Shape out = *shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& size = out[static_cast<size_t>(axes[i])];
    const Dim before = pads[i], after = pads[axes.size() + i], padded = size + (before + after);
    if (before.is_known() && after.is_known() && padded.is_unknown() && !size.is_unknown()) {
      return error(Code::kLimit, "size {} with pads {} and {} overflows", size.to_string(), before.value(),
                   after.value());
    }
    if (padded.is_known() && padded.value() < 0) {
      return error(Code::kInvalidArgument, "pads take more elements off axis {} than it has, expected at most {}",
                   axes[i], size.to_string());
    }
    size = padded;
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

Status prepare_pad(PrepareContext& c) {
  const Operand& in = c.inputs[0];
  TREADLE_ASSIGN(const kernels::PadMode mode, pad_mode(c.node, c.version()));
  const IntList pads = int_list(c, c.version() < 11 ? pads_attribute(c.version()) : nullptr, 1);
  TREADLE_ASSIGN(const Ints axes, padded_axes(int_list(c, nullptr, 3), in.rank()));
  TREADLE_TRY(check_pad_count(pads.values.size(), axes.size()));
  Dims before(in.dims.size(), 0), after(in.dims.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    before[static_cast<size_t>(axes[i])] = pads.values[i];
    after[static_cast<size_t>(axes[i])] = pads.values[axes.size() + i];
  }
  PadState* s = make_pad_state(c);
  s->has_value = c.version() >= 11 && c.has_input(2);
  if (c.version() < 11) {
    const float value = c.attributes().get_float("value", 0);
    kernels::cast(ElementType::kFloat, in.type, &value, s->value, 1);
  }
  if (s->empty) return {};
  TREADLE_TRY(kernels::prepare_pad(&s->plan, mode, byte_width(in.type), in.dims, before, after));
  say_padded(c, *s);
  return {};
}

// --- CenterCropPad

Result<Ints> cropped_axes(const ir::Attributes& attributes, int64_t rank) {
  if (const ir::Attribute* axes = attributes.find("axes")) return normalize_axes(axes->as_ints(), rank);
  return padded_axes({}, rank);
}

Status infer_center_crop_pad(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  TREADLE_ASSIGN(const Ints axes, cropped_axes(c.attributes(), static_cast<int64_t>(shape->size())));
  const auto target = c.dims_value(1);
  if (target && target->size() != axes.size()) {
    return error(Code::kInvalidArgument, "shape has {} sizes, expected one for each axis: {}", target->size(),
                 axes.size());
  }
  Shape out = *shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    out[static_cast<size_t>(axes[i])] = target ? (*target)[i] : Dim::unknown();
  }
  for (const Dim& d : out) {
    if (d.is_known() && d.value() < 0)
      return error(Code::kInvalidArgument, "shape holds {}, expected sizes of at least 0", d.value());
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

// Cropping and padding put the odd element behind.
Status prepare_center_crop_pad(PrepareContext& c) {
  const Operand &in = c.inputs[0], &out = c.outputs[0];
  Dims before, after;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    const int64_t growth = out.dims[i] - in.dims[i];
    before.push_back(growth / 2);
    after.push_back(growth - growth / 2);
  }
  PadState* s = make_pad_state(c);
  if (s->empty) return {};
  TREADLE_TRY(kernels::prepare_pad(&s->plan, kernels::PadMode::kConstant, byte_width(in.type), in.dims, before, after));
  say_padded(c, *s);
  return {};
}

Status padded_axes(AxisContext& c) {
  return axes::of_kept_size(c, "it pads or crops it");
}

// Attributes before version 11, then an input with as many, and from 18 on perhaps of some axes only.
Status widen_pad(WidenContext& c) {
  if (c.version() < 2) return looks_along("it is of an old version");
  if (c.present(3)) {
    const auto along = constant_axes(c.node(), 3);
    if (!along) return looks_along("its axes are not known beforehand");
    c.set_input(3, axes::ints_like(c.node(), 3, behind_new_axis(*along)));
    return {};
  }
  auto pads = constant_axes(c.node(), 1, "pads");
  if (!pads) return looks_along("its pads are not known beforehand");
  pads->insert(pads->begin() + static_cast<std::ptrdiff_t>(pads->size() / 2), 0);
  pads->insert(pads->begin(), 0);
  if (c.attributes().has("pads")) {
    c.set(ir::Attribute::of("pads", std::move(*pads)));
  } else {
    c.set_input(1, Tensor::of_int64(*pads));
  }
  return {};
}

Status widen_center_crop_pad(WidenContext& c) {
  const auto given = c.attributes().get_ints("axes");
  std::vector<int64_t> along(given.begin(), given.end());
  for (int64_t i = 0; given.empty() && i < c.rank(0); ++i) along.push_back(i);
  c.set(ir::Attribute::of("axes", behind_new_axis(along)));
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Pad, "") {
  op.since(1)
      .in("data", "T")
      .out("output", "T")
      .attr("mode", "constant")
      .required("paddings", ir::AttributeKind::kInts)
      .attr("value", 0.0)
      .type("T", types::kFloats);
  op.since(2).drop_attr("paddings").required("pads", ir::AttributeKind::kInts);
  op.since(11)
      .in("pads", "tensor(int64)")
      .in("constant_value", "T", Arity::kOptional)
      .drop_attr("pads")
      .drop_attr("value")
      .type("T", types::kNumeric);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(18).in("axes", "Tind", Arity::kOptional).type("Tind", types::kIndices);
  op.since(19);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_pad)
      .prepare(prepare_pad)
      .compute(compute_by_position)
      .moves_elements()
      .shape_inputs({1, 3})
      .axes(padded_axes, widen_pad)
      .over_time(TimeRule::kPad);
}

TREADLE_OP(CenterCropPad, "") {
  op.since(18)
      .in("input_data", "T")
      .in("shape", "Tind")
      .out("output_data", "T")
      .optional("axes", ir::AttributeKind::kInts)
      .type("T", types::kAllTensorsIr4)
      .type("Tind", types::kIndices);
  op.infer(infer_center_crop_pad)
      .prepare(prepare_center_crop_pad)
      .compute(compute_by_position)
      .moves_elements()
      .shape_inputs({1})
      .axes(padded_axes, widen_center_crop_pad);
}
