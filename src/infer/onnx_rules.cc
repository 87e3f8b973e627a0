// Each function here covers a difference that onnx's own test collection shows. It changes what the operator's
// inference sees, or replaces it.
#include "infer/onnx_rules.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "op/elementwise.h"
#include "op/op_def.h"

namespace treadle {

namespace {

// A context with hidden inputs.
class Edited {
 public:
  explicit Edited(const InferContext& c)
      : types_(c.inputs.begin(), c.inputs.end()),
        values_(c.values.begin(), c.values.end()),
        symbols_(c.symbols.begin(), c.symbols.end()),
        context_{c.node, types_, values_, symbols_, c.outputs, c.output_symbols, c.output_symbols_known, c.bodies} {}

  // Hides an input as if it were left out.
  Edited& drop(size_t i) {
    if (i < types_.size()) types_[i] = nullptr;
    return hide_contents(i);
  }
  Edited& hide_contents(size_t i) {
    if (i < values_.size()) values_[i] = nullptr;
    if (i < symbols_.size()) symbols_[i] = nullptr;
    return *this;
  }
  Edited& hide_shape(size_t i) {
    if (i < types_.size() && types_[i]) {
      types_[i] = replaced_.emplace_back(std::make_unique<Type>(Type::tensor(types_[i]->element))).get();
    }
    return *this;
  }
  Status infer() { return context_.node.op->infer(context_); }

 private:
  std::vector<const Type*> types_;
  std::vector<const Tensor*> values_;
  std::vector<const Shape*> symbols_;
  std::vector<std::unique_ptr<Type>> replaced_;
  InferContext context_;
};

Status element_only(InferContext& c, ElementType element) {
  for (size_t i = 0; i < c.outputs.size(); ++i) c.set_output(i, element);
  return {};
}

Status refuse(std::string_view what) {
  return error(Code::kInvalidModel, "{}", what);
}

// Without attribute kernel_shape, all sizes of the weights' window must be known.
bool lacks_window(const InferContext& c, size_t weights) {
  const Shape* w = c.shape(weights);
  if (c.attributes().has("kernel_shape") || !w) return !w && !c.attributes().has("kernel_shape");
  for (size_t i = 2; i < w->size(); ++i) {
    if (!(*w)[i].is_known()) return true;
  }
  return false;
}

// Does not compare groups with channels.
Status infer_conv_channels_apart(InferContext& c, size_t weights) {
  const Type* given = weights < c.inputs.size() ? c.inputs[weights] : nullptr;
  if (!given || !given->has_shape || given->shape.size() < 2) return c.node.op->infer(c);
  Type apart = *given;
  const Dim channels = std::exchange(apart.shape[0], Dim::unknown());
  apart.shape[1] = Dim::unknown();
  std::vector<const Type*> types(c.inputs.begin(), c.inputs.end());
  types[weights] = &apart;
  InferContext inner{c.node, types, c.values, c.symbols, c.outputs, c.output_symbols, c.output_symbols_known, c.bodies};
  TREADLE_TRY(c.node.op->infer(inner));
  if (c.outputs[0].has_shape && c.outputs[0].shape.size() > 1) c.outputs[0].shape[1] = channels;
  return {};
}

Status infer_conv(InferContext& c) {
  return lacks_window(c, 1) ? element_only(c, c.element(0)) : infer_conv_channels_apart(c, 1);
}

Status infer_qlinear_conv(InferContext& c) {
  return lacks_window(c, 3) ? element_only(c, c.element(7)) : c.node.op->infer(c);
}

Status infer_conv_integer(InferContext& c) {
  return Edited(c).drop(2).drop(3).infer();
}

Status infer_conv_transpose(InferContext& c) {
  const ir::Attributes& a = c.attributes();
  if (a.has("pads") && a.get_string("auto_pad", "NOTSET") != "NOTSET")
    return refuse("both pads and auto_pad are given");
  return lacks_window(c, 1) ? element_only(c, c.element(0)) : c.node.op->infer(c);
}

// Takes sizes from hidden_size, not from the weights.
Status infer_recurrent(InferContext& c) {
  if (!c.attributes().has("hidden_size")) return c.node.op->infer(c);
  Edited edited(c);
  for (size_t i = 1; i < c.inputs.size(); ++i) edited.hide_shape(i);
  return edited.infer();
}

Status infer_if(InferContext& c) {
  return Edited(c).hide_shape(0).infer();
}

// Frames are onesided only if the attribute says so.
Status infer_stft(InferContext& c) {
  const Shape *signal = c.shape(0), *window = c.shape(2);
  const auto step = c.dims_value(1), given = c.dims_value(3);
  Dim frame = window && window->size() == 1 ? (*window)[0] : Dim::unknown();
  if (given && given->size() == 1) frame = (*given)[0];
  if (!signal || signal->size() < 2 || !step || step->size() != 1 || !frame.is_known()) {
    return element_only(c, c.element(0));
  }
  const bool onesided = c.attributes().get_int("onesided", 0) != 0;
  const Dim frames = floor_div((*signal)[1] - frame, (*step)[0]) + Dim(1);
  c.set_output(0, c.element(0), {(*signal)[0], frames, onesided ? floor_div(frame, 2) + Dim(1) : frame, Dim(2)});
  return {};
}

Status infer_dft(InferContext& c) {
  const Shape* x = c.shape(0);
  const bool onesided = c.attributes().get_int("onesided") != 0;
  if (onesided || c.version() < 20 || !c.has_input(2) || c.dims_value(2) || !x || x->empty()) {
    return c.node.op->infer(c);
  }
  Shape out = *x;
  out.back() = 2;
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

Status infer_center_crop_pad(InferContext& c) {
  return c.dims_value(1) ? c.node.op->infer(c) : element_only(c, c.element(0));
}

Status infer_gather_elements(InferContext& c) {
  return c.shape(1) ? c.node.op->infer(c) : element_only(c, c.element(0));
}

Status infer_top_k(InferContext& c) {
  TREADLE_TRY(c.node.op->infer(c));
  if (c.version() < 10 || c.dims_value(1)) return {};
  for (Type& out : c.outputs) {
    for (Dim& d : out.shape) d = Dim::unknown();
  }
  return {};
}

// Treats axes and steps of unknown rank as left out. Without both starts and ends, all sizes are unknown.
Status infer_slice(InferContext& c) {
  if (c.version() < 10) return c.node.op->infer(c);
  if (!c.dims_value(1) || !c.dims_value(2)) {
    Edited edited(c);
    return edited.hide_contents(1).hide_contents(2).hide_contents(3).infer();
  }
  Edited edited(c);
  for (size_t i : {size_t{3}, size_t{4}}) {
    if (c.has_input(i) && !c.dims_value(i) && !c.shape(i)) edited.drop(i);
  }
  TREADLE_TRY(edited.infer());
  if (c.has_input(4) && c.shape(4) && !c.dims_value(4)) {
    for (Dim& d : c.outputs[0].shape) d = Dim::unknown();
  }
  return {};
}

Status require_rank(InferContext& c) {
  if (c.shape(0) && c.shape(0)->empty()) return refuse("the input is a scalar");
  return c.node.op->infer(c);
}

// All terms with an ellipsis must have the same number of axes for it.
Status infer_einsum(InferContext& c) {
  std::string_view equation = c.attributes().get_string("equation");
  equation = equation.substr(0, equation.find("->"));
  int64_t axes = -1;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::string_view term = equation.substr(0, equation.find(','));
    equation.remove_prefix(std::min(equation.size(), term.size() + 1));
    if (!c.shape(i) || term.find("...") == std::string_view::npos) continue;
    const auto letters = std::count_if(term.begin(), term.end(), [](char l) { return l != '.' && l != ' '; });
    const int64_t covered = c.input(i).rank() - letters;
    if (axes >= 0 && covered != axes) return refuse("ellipses stand for unlike numbers of axes");
    axes = covered;
  }
  return c.node.op->infer(c);
}

// Does not compare boxes with scores.
Status infer_non_max_suppression(InferContext& c) {
  return Edited(c).hide_shape(0).hide_shape(1).infer();
}

// Does not compare fmod with the type.
Status infer_mod(InferContext& c) {
  return infer_broadcast(c);
}

Status infer_sum(InferContext& c) {
  TREADLE_TRY(c.node.op->infer(c));
  const auto a = c.dims_value(0), b = c.dims_value(1);
  if (!a || !b || a->size() != b->size() || c.output_symbols.empty()) return {};
  for (size_t i = 0; i < a->size(); ++i) {
    const Dim &x = (*a)[i], &y = (*b)[i];
    if (!x.is_known() || !y.is_known()) continue;
    const std::string& op = c.node.op->name;
    if ((op == "Add" ? x + y : op == "Sub" ? x - y : x * y).is_unknown()) return refuse("contents overflow");
  }
  return {};
}

Status infer_one_hot(InferContext& c) {
  const Tensor* indices = c.value(0);
  if (c.version() < 11 && indices && is_integer(indices->type())) {
    for (int64_t i = 0; i < indices->element_count(); ++i) {
      if (indices->int64_at(i) < 0) return refuse("an index is negative");
    }
  }
  return c.node.op->infer(c);
}

// Multiplies sizes in double precision.
Status infer_resize(InferContext& c) {
  TREADLE_TRY(c.node.op->infer(c));
  const size_t place = c.version() < 11 ? 1 : 2;
  const Tensor* scales = c.value(place);
  const Shape* x = c.shape(0);
  if (!scales || scales->type() != ElementType::kFloat || !x || c.attributes().has("axes") ||
      scales->element_count() != static_cast<int64_t>(x->size())) {
    return {};
  }
  for (size_t i = 0; i < x->size(); ++i) {
    if (!(*x)[i].is_known()) continue;
    const double size = static_cast<double>((*x)[i].value()) * static_cast<double>(scales->data<float>()[i]);
    c.outputs[0].shape[i] = static_cast<int64_t>(std::floor(size));
  }
  return {};
}

// Sums and products of names become unknown, even if they cancel.
Status infer_parts(InferContext& c) {
  TREADLE_TRY(c.node.op->infer(c));
  const Shape* x = c.shape(0);
  if (!x) return {};
  const auto axis = normalize_axis(c.attributes().get_int("axis", 0), static_cast<int64_t>(x->size()));
  if (!axis.ok() || (*x)[static_cast<size_t>(*axis)].is_known()) return {};
  for (Type& out : c.outputs) {
    Dim& size = out.shape[static_cast<size_t>(*axis)];
    if (!size.is_known()) size = Dim::unknown();
  }
  return {};
}

// Unknown axes leave the rank unknown.
template <size_t kAxes>
Status infer_with_axes(InferContext& c) {
  const bool unknown = c.has_input(kAxes) && !c.dims_value(kAxes);
  return unknown ? element_only(c, c.element(0)) : c.node.op->infer(c);
}

// Leaves the graphs that change scores and probabilities as declared.
Status infer_flex_attention(InferContext& c) {
  InferContext inner{c.node, c.inputs, c.values, c.symbols, c.outputs, c.output_symbols, c.output_symbols_known};
  return c.node.op->infer(inner);
}

// The output has the first input's type, even if that is not a string.
Status infer_string_concat(InferContext& c) {
  TREADLE_TRY(c.node.op->infer(c));
  c.outputs[0].element = c.element(0);
  return {};
}

// Lists must have equal lengths; the trees are not checked.
Status infer_tree_ensemble(InferContext& c) {
  const ir::Attributes& a = c.attributes();
  const size_t nodes = a.get_ints("nodes_featureids").size();
  for (const char* list : {"nodes_falseleafs", "nodes_falsenodeids", "nodes_trueleafs", "nodes_truenodeids"}) {
    if (a.get_ints(list).size() != nodes) return refuse("lists of nodes are of unlike lengths");
  }
  for (const char* list : {"nodes_modes", "nodes_splits"}) {
    const ir::Attribute* tensor = a.find(list);
    if (!tensor || tensor->as_tensor().element_count() != static_cast<int64_t>(nodes)) {
      return refuse("lists of nodes are of unlike lengths");
    }
  }
  const ir::Attribute* weights = a.find("leaf_weights");
  if (!weights || weights->as_tensor().element_count() != static_cast<int64_t>(a.get_ints("leaf_targetids").size())) {
    return refuse("lists of leaves are of unlike lengths");
  }
  for (const char* list : {"leaf_weights", "nodes_splits"}) {
    if (c.has_input(0) && a.find(list)->as_tensor().type() != c.element(0)) {
      return refuse("weights and splits have another type than the input");
    }
  }
  const Shape* x = c.shape(0);
  c.set_output(0, c.element(0), {x && !x->empty() ? (*x)[0] : Dim::unknown(), a.get_int("n_targets", 1)});
  return {};
}

using Rule = Status (*)(InferContext&);

const std::unordered_map<std::string_view, Rule>& rules() {
  static const auto* const table = new std::unordered_map<std::string_view, Rule>{
      {"Add", infer_sum},
      {"ArgMax", require_rank},
      {"ArgMin", require_rank},
      {"CenterCropPad", infer_center_crop_pad},
      {"Conv", infer_conv},
      {"ConvInteger", infer_conv_integer},
      {"ConvTranspose", infer_conv_transpose},
      {"DFT", infer_dft},
      {"Einsum", infer_einsum},
      {"FlexAttention", infer_flex_attention},
      {"GRU", infer_recurrent},
      {"GatherElements", infer_gather_elements},
      {"Hardmax", require_rank},
      {"If", infer_if},
      {"LSTM", infer_recurrent},
      {"LogSoftmax", require_rank},
      {"Mod", infer_mod},
      {"Mul", infer_sum},
      {"NonMaxSuppression", infer_non_max_suppression},
      {"OneHot", infer_one_hot},
      {"QLinearConv", infer_qlinear_conv},
      {"RNN", infer_recurrent},
      {"ReduceL1", infer_with_axes<1>},
      {"ReduceL2", infer_with_axes<1>},
      {"ReduceLogSum", infer_with_axes<1>},
      {"ReduceLogSumExp", infer_with_axes<1>},
      {"ReduceMax", infer_with_axes<1>},
      {"ReduceMean", infer_with_axes<1>},
      {"ReduceMin", infer_with_axes<1>},
      {"ReduceProd", infer_with_axes<1>},
      {"ReduceSum", infer_with_axes<1>},
      {"ReduceSumSquare", infer_with_axes<1>},
      {"Resize", infer_resize},
      {"STFT", infer_stft},
      {"Slice", infer_slice},
      {"Softmax", require_rank},
      {"Split", infer_parts},
      {"StringConcat", infer_string_concat},
      {"Sub", infer_sum},
      {"TopK", infer_top_k},
      {"TreeEnsemble", infer_tree_ensemble},
      {"Unsqueeze", infer_with_axes<1>},
  };
  return *table;
}

}  // namespace

Status infer_as_onnx(InferContext& context) {
  const OpDef& op = *context.node.op;
  const bool known = op.domain.empty() || op.domain == "ai.onnx.preview" || op.name == "TreeEnsemble";
  const auto rule = known ? rules().find(op.name) : rules().end();
  return rule == rules().end() ? op.infer(context) : rule->second(context);
}

}  // namespace treadle
