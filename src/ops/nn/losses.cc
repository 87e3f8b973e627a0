// NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss, which is the former behind a LogSoftmax over the classes.

#include "kernels/convert.h"
#include "op/axis.h"
#include "op/axis_rules.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"

namespace treadle::nn {

namespace {

enum Input : size_t { kScores, kLabels, kWeights };

// ---- Inference

Status check_reduction(const ir::Attributes& attributes) {
  const std::string_view reduction = attributes.get_string("reduction", "mean");
  if (reduction == "none" || reduction == "sum" || reduction == "mean") return {};
  return error(Code::kInvalidModel, "attribute reduction is \"{}\", expected none, sum or mean", reduction);
}

// Scores [N,C,d...], labels [N,d...], weights [C]. The two operators name them differently.
Status check_shapes(const InferContext& ctx) {
  const auto named = [&](Input i) { return ctx.node.version->inputs[i].name; };
  const Shape *scores = ctx.shape(kScores), *labels = ctx.shape(kLabels), *weights = ctx.shape(kWeights);
  if (scores && scores->size() < 2) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected [N,C,...]", named(kScores), to_string(*scores));
  }
  if (scores && labels) {
    bool fits = labels->size() + 1 == scores->size();
    for (size_t i = 0; fits && i < labels->size(); ++i) fits = !differ((*labels)[i], (*scores)[i == 0 ? 0 : i + 1]);
    if (!fits) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected that of {}, {}, without its axis 1",
                   named(kLabels), to_string(*labels), named(kScores), to_string(*scores));
    }
  }
  if (!weights) return {};
  if (weights->size() != 1 || (scores && differ((*weights)[0], (*scores)[1]))) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected one element per class of {}, {}", named(kWeights),
                 to_string(*weights), named(kScores), scores ? to_string(*scores) : "[N,C,...]");
  }
  return {};
}

Status infer_loss(InferContext& ctx) {
  TREADLE_TRY(check_reduction(ctx.attributes()));
  TREADLE_TRY(check_shapes(ctx));
  const ElementType type = ctx.element(kScores);
  if (ctx.attributes().get_string("reduction", "mean") != "none") {
    ctx.set_output(0, type, Shape{});
  } else if (const Shape* labels = ctx.shape(kLabels)) {
    ctx.set_output(0, type, *labels);
  } else if (const Shape* scores = ctx.shape(kScores)) {
    Shape shape = *scores;
    shape.erase(1);
    ctx.set_output(0, type, std::move(shape));
  } else {
    ctx.set_output(0, type);
  }
  if (ctx.outputs.size() > 1 && ctx.has_input(kScores)) ctx.set_output(1, ctx.input(kScores));
  return {};
}

// ---- NegativeLogLikelihoodLoss

enum class Reduction : uint8_t { kNone, kSum, kMean };

struct LossState {
  AxisView view;  // of the scores, along the classes
  ElementType type = ElementType::kFloat;
  size_t width = 4;
  Reduction reduction = Reduction::kMean;
  bool has_ignored = false, has_weights = false;
  int64_t ignored = 0;
  kernels::TileConverter label, narrow;
  size_t label_width = 8;
  const char* label_name = nullptr;
  size_t weights = 0;  // offset in scratch, in double
  uint32_t output = 2, scratch = 3;
};

double as_double(const LossState& s, const std::byte* scores, size_t i) {
  double value;
  kernels::cast(s.type, ElementType::kDouble, scores + i * s.width, &value, 1);
  return value;
}

uint32_t run_loss(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const LossState*>(state);
  const auto* scores = static_cast<const std::byte*>(slots[operands[kScores]]);
  const auto* labels = static_cast<const std::byte*>(slots[operands[kLabels]]);
  auto* out = static_cast<std::byte*>(slots[operands[s.output]]);
  const auto [batch, classes, inner] = s.view;
  double* weights = nullptr;
  if (s.has_weights) {
    weights = reinterpret_cast<double*>(static_cast<std::byte*>(slots[operands[s.scratch]]) + s.weights);
    kernels::cast(s.type, ElementType::kDouble, slots[operands[kWeights]], weights, classes);
  }
  double sum = 0, total = 0;
  StopPoll stop;
  for (size_t i = 0; i < batch * inner; ++i) {
    if (stop.after(costs::kLossLabelNs)) return fail(KernelError::kStopped);
    int64_t label;
    kernels::convert(s.label, labels + i * s.label_width, &label, 1);
    double loss = 0;
    if (!s.has_ignored || label != s.ignored) {
      if (label < 0 || label >= static_cast<int64_t>(classes)) {
        return refuse_element({s.label_name, static_cast<int64_t>(i)}, label, 0, static_cast<int64_t>(classes) - 1);
      }
      const auto c = static_cast<size_t>(label);
      const double weight = weights ? weights[c] : 1;
      loss = -weight * as_double(s, scores, (i / inner * classes + c) * inner + i % inner);
      total += weight;
    }
    sum += loss;
    if (s.reduction == Reduction::kNone) kernels::convert(s.narrow, &loss, out + i * s.width, 1);
  }
  if (s.reduction == Reduction::kNone) return 0;
  if (s.reduction == Reduction::kMean) sum /= total;
  kernels::convert(s.narrow, &sum, out, 1);
  return 0;
}

Status prepare_loss(PrepareContext& ctx) {
  auto* s = ctx.make_state<LossState>();
  const Operand& scores = ctx.inputs[kScores];
  const std::string_view reduction = ctx.attributes().get_string("reduction", "mean");
  s->reduction = reduction == "none" ? Reduction::kNone : reduction == "sum" ? Reduction::kSum : Reduction::kMean;
  s->view = view_along(scores.dims, 1);
  s->type = scores.type;
  s->width = byte_width(scores.type);
  s->has_ignored = ctx.attributes().has("ignore_index");
  s->ignored = ctx.attributes().get_int("ignore_index", 0);
  s->has_weights = ctx.has_input(kWeights);
  s->label = kernels::make_converter(ctx.inputs[kLabels].type, ElementType::kInt64);
  s->label_width = byte_width(ctx.inputs[kLabels].type);
  s->label_name = ctx.node.version->inputs[kLabels].name.c_str();
  s->narrow = kernels::make_converter(ElementType::kDouble, scores.type);
  ScratchLayout scratch;
  if (s->has_weights) s->weights = scratch.add(s->view.n * sizeof(double));
  ctx.scratch_bytes = scratch.size();
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  s->scratch = ctx.scratch_operand();
  ctx.set_kernel(run_loss, s);
  return {};
}

// ---- SoftmaxCrossEntropyLoss

Status lower_cross_entropy(LowerContext& ctx) {
  using ir::Attribute;
  ir::Value* log_probabilities = ctx.call("LogSoftmax", {ctx.input(kScores)}, {Attribute::of("axis", 1)});
  std::vector<ir::Value*> inputs{log_probabilities, ctx.input(kLabels)};
  if (ctx.has_input(kWeights)) inputs.push_back(ctx.input(kWeights));
  std::vector<Attribute> attributes{
      Attribute::of("reduction", std::string(ctx.attributes().get_string("reduction", "mean")))};
  if (const Attribute* ignored = ctx.attributes().find("ignore_index")) attributes.push_back(*ignored);
  ctx.set_output(0, ctx.call("NegativeLogLikelihoodLoss", inputs, std::move(attributes)));
  ctx.set_output(1, log_probabilities);
  return {};
}

Status loss_axes(AxisContext& c) {
  if (c.attributes().get_string("reduction", "mean") != "none") return looks_along("it adds up all entries");
  return axes::entries_of<0b011>(c);
}

}  // namespace

}  // namespace treadle::nn

TREADLE_OP(NegativeLogLikelihoodLoss, "") {
  op.since(12)
      .in("input", "T")
      .in("target", "Tind")
      .in("weight", "T", Arity::kOptional)
      .out("loss", "T")
      .optional("ignore_index", ir::AttributeKind::kInt)
      .attr("reduction", "mean")
      .type("T", types::kFloats)
      .type("Tind", types::kIndices);
  op.since(13);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(nn::infer_loss).prepare(nn::prepare_loss).can_fail().axes(nn::loss_axes);
}

TREADLE_OP(SoftmaxCrossEntropyLoss, "") {
  op.since(12)
      .in("scores", "T")
      .in("labels", "Tind")
      .in("weights", "T", Arity::kOptional)
      .out("output", "T")
      .out("log_prob", "T", Arity::kOptional)
      .optional("ignore_index", ir::AttributeKind::kInt)
      .attr("reduction", "mean")
      .type("T", types::kFloats)
      .type("Tind", types::kIndices);
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(nn::infer_loss).lower(nn::lower_cross_entropy).can_fail().axes(nn::loss_axes);
}
