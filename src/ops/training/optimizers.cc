// One step of an optimiser: Adagrad, Adam and Momentum. Inputs: the learning rate R, the update count T, and for k
// tensors the values X_1..X_k, their gradients G_1..G_k and one or two accumulators each. Outputs: new values and
// accumulators in the same order.

#include <cmath>

#include "base/thread_pool.h"
#include "kernels/convert.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/costs.h"
#include "ops/training/optimizer_rules.h"

namespace treadle::training {

namespace {

enum Input : size_t { kRate, kUpdates, kFirst };

// ---- What a run decides

struct Update : Coefficients {
  Run<double> run;
  bool first = false;  // the first update
  double updates = 0;
};

void adjust(AdagradRule, Update& u) {
  u.run.rate /= 1 + u.updates * u.decay;
}
void adjust(AdamRule, Update& u) {
  if (!u.first) u.run.rate *= std::sqrt(1 - std::pow(u.beta, u.updates)) / (1 - std::pow(u.alpha, u.updates));
}
template <bool kNesterov>
void adjust(MomentumRule<kNesterov>, Update& u) {
  u.run.share = u.first ? 1 : u.beta;
}

// ---- Walks over tensors

struct Group {
  ElementType type = ElementType::kFloat;
  size_t count = 0;
};

struct OptimizerState {
  Coefficients coefficients;
  ElementType rate_type = ElementType::kFloat;
  InlineVector<Group, 4> groups;
};

template <class Rule, class W>
void update(const Update& u, size_t count, size_t group, size_t groups, void* const* in, void* const* out) {
  const auto input = [&](size_t part) { return static_cast<const W*>(in[part * groups + group]); };
  const auto output = [&](size_t part) { return static_cast<W*>(out[part * groups + group]); };
  constexpr bool kTwo = Rule::kAccumulators == 2;
  const W *x = input(0), *g = input(1), *a = input(2), *b = kTwo ? input(3) : nullptr;
  W *new_x = output(0), *new_a = output(1), *new_b = kTwo ? output(2) : nullptr;
  const Run<W> run{static_cast<W>(u.run.rate), static_cast<W>(u.run.share)};
  parallel_for(static_cast<int64_t>(count), costs::kOptimizerElementNs, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      Slot<W> slot{x[i], g[i], a[i], kTwo ? b[i] : W{}};
      Rule::template step<W>(u, run, slot);
      if (new_x) new_x[i] = slot.x;
      if (new_a) new_a[i] = slot.a;
      if (kTwo && new_b) new_b[i] = slot.b;
    }
  });
}

template <class Rule>
uint32_t run_optimizer(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const OptimizerState*>(state);
  Update u{s.coefficients, {}, false, 0};
  kernels::cast(s.rate_type, ElementType::kDouble, slots[operands[kRate]], &u.run.rate, 1);
  const int64_t updates = *static_cast<const int64_t*>(slots[operands[kUpdates]]);
  u.updates = static_cast<double>(updates);
  u.first = updates <= 0;
  adjust(Rule(), u);
  const size_t groups = s.groups.size(), inputs = kFirst + (2 + Rule::kAccumulators) * groups;
  InlineVector<void*, 16> in, out;
  for (size_t i = kFirst; i < inputs; ++i) in.push_back(slots[operands[i]]);
  for (size_t i = 0; i < (1 + Rule::kAccumulators) * groups; ++i) out.push_back(slots[operands[inputs + i]]);
  for (size_t i = 0; i < groups; ++i) {
    if (s.groups[i].type == ElementType::kDouble) {
      update<Rule, double>(u, s.groups[i].count, i, groups, in.data(), out.data());
    } else {
      update<Rule, float>(u, s.groups[i].count, i, groups, in.data(), out.data());
    }
  }
  return 0;
}

template <class Rule>
Status prepare_rule(PrepareContext& ctx) {
  auto* s = ctx.make_state<OptimizerState>();
  s->coefficients = coefficients_of(ctx.attributes());
  s->rate_type = ctx.inputs[kRate].type;
  const size_t groups = (ctx.inputs.size() - kFirst) / (2 + Rule::kAccumulators);
  for (size_t i = 0; i < groups; ++i) {
    const Operand& x = ctx.inputs[kFirst + i];
    s->groups.push_back({x.type, static_cast<size_t>(x.element_count())});
  }
  ctx.set_kernel(run_optimizer<Rule>, s);
  return {};
}

Status prepare_momentum(PrepareContext& ctx) {
  const bool nesterov = ctx.attributes().get_string("mode") == "nesterov";
  return nesterov ? prepare_rule<MomentumRule<true>>(ctx) : prepare_rule<MomentumRule<false>>(ctx);
}

// The tensors of a group have one type and shape. Outputs are values, then accumulators.
template <size_t kAccumulators>
Status infer_optimizer(InferContext& ctx) {
  for (size_t i = 0; i < kFirst; ++i) {
    const Shape* shape = ctx.shape(i);
    const Dim count = shape ? element_count(*shape) : Dim();
    if (count.is_known() && count.value() != 1) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected a scalar", i == kRate ? "R" : "T",
                   to_string(*shape));
    }
  }
  constexpr size_t kParts = 2 + kAccumulators;
  if (ctx.inputs.size() < kFirst + kParts || (ctx.inputs.size() - kFirst) % kParts != 0) {
    return error(Code::kInvalidModel, "expected R, T and {} inputs per tensor, found {} inputs", kParts,
                 ctx.inputs.size());
  }
  const size_t groups = (ctx.inputs.size() - kFirst) / kParts;
  if (ctx.outputs.size() > groups * (1 + kAccumulators)) {
    return error(Code::kInvalidModel, "expected at most {} outputs, found {}", groups * (1 + kAccumulators),
                 ctx.outputs.size());
  }
  for (size_t group = 0; group < groups; ++group) {
    Type type;
    size_t first = 0;  // the input that has the type
    for (size_t part = 0; part < kParts; ++part) {
      const size_t at = kFirst + part * groups + group;
      if (!ctx.has_input(at)) continue;
      if (!type.is_known()) {
        type = ctx.input(at);
        first = at;
      }
      const Shape* shape = ctx.shape(at);
      bool fits = ctx.element(at) == type.element && (!shape || !type.has_shape || shape->size() == type.shape.size());
      for (size_t d = 0; fits && shape && type.has_shape && d < shape->size(); ++d) {
        fits = !differ((*shape)[d], type.shape[d]);
      }
      if (!fits) {
        return error(Code::kInvalidArgument,
                     "input {} is {}, expected the type of input {}, {}: both belong to one tensor that is trained", at,
                     ctx.input(at).to_string(), first, type.to_string());
      }
    }
    if (!type.is_known()) continue;
    for (size_t part = 0; part <= kAccumulators; ++part) {
      if (part * groups + group < ctx.outputs.size()) ctx.set_output(part * groups + group, type);
    }
  }
  return {};
}

Status infer_momentum(InferContext& ctx) {
  const std::string_view mode = ctx.attributes().get_string("mode");
  if (mode != "standard" && mode != "nesterov") {
    return error(Code::kInvalidModel, "attribute mode is \"{}\", expected standard or nesterov", mode);
  }
  return infer_optimizer<1>(ctx);
}

}  // namespace

}  // namespace treadle::training

TREADLE_OP(Adagrad, "ai.onnx.preview.training") {
  op.since(1)
      .in("R", "T1")
      .in("T", "T2")
      .in("inputs", "T3", Arity::kVariadicMixed)
      .out("outputs", "T3", Arity::kVariadicMixed)
      .attr("decay_factor", 0.0)
      .attr("epsilon", 1e-06)
      .attr("norm_coefficient", 0.0)
      .type("T1", types::kFloats32)
      .type("T2", types::kInt64s)
      .type("T3", types::kFloats32);
  op.infer(training::infer_optimizer<1>)
      .prepare(training::prepare_rule<training::AdagradRule>)
      .no_axes("it makes a step of a training");
}

TREADLE_OP(Adam, "ai.onnx.preview.training") {
  op.since(1)
      .in("R", "T1")
      .in("T", "T2")
      .in("inputs", "T3", Arity::kVariadicMixed)
      .out("outputs", "T3", Arity::kVariadicMixed)
      .attr("alpha", 0.9)
      .attr("beta", 0.999)
      .attr("epsilon", 1e-06)
      .attr("norm_coefficient", 0.0)
      .attr("norm_coefficient_post", 0.0)
      .type("T1", types::kFloats32)
      .type("T2", types::kInt64s)
      .type("T3", types::kFloats32);
  op.infer(training::infer_optimizer<2>)
      .prepare(training::prepare_rule<training::AdamRule>)
      .no_axes("it makes a step of a training");
}

TREADLE_OP(Momentum, "ai.onnx.preview.training") {
  op.since(1)
      .in("R", "T1")
      .in("T", "T2")
      .in("inputs", "T3", Arity::kVariadicMixed)
      .out("outputs", "T3", Arity::kVariadicMixed)
      .required("alpha", ir::AttributeKind::kFloat)
      .required("beta", ir::AttributeKind::kFloat)
      .required("mode", ir::AttributeKind::kString)
      .required("norm_coefficient", ir::AttributeKind::kFloat)
      .type("T1", types::kFloats32)
      .type("T2", types::kInt64s)
      .type("T3", types::kFloats32);
  op.infer(training::infer_momentum).prepare(training::prepare_momentum).no_axes("it makes a step of a training");
}
