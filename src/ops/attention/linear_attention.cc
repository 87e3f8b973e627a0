#include "ops/attention/linear_attention.h"

#include <cmath>
#include <cstring>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle::attention {

namespace {

using enum LinearState::Input;
constexpr size_t kInputs = LinearState::kInputs;

Result<LinearRule> read_rule(const ir::Attributes& attributes) {
  const std::string_view rule = attributes.get_string("update_rule", "gated_delta");
  if (rule == "linear") return LinearRule{};
  if (rule == "gated") return LinearRule{true, false};
  if (rule == "delta") return LinearRule{false, true};
  if (rule == "gated_delta") return LinearRule{true, true};
  return error(Code::kInvalidModel, "attribute update_rule is \"{}\", expected linear, gated, delta or gated_delta",
               rule);
}

// ---- Inference

// The width of a head in input i, [batch, length, heads * width].
Result<Dim> head_width(const InferContext& ctx, size_t i, int64_t heads) {
  static constexpr const char* kNames[] = {"query", "key", "value"};
  const Shape *shape = ctx.shape(i), *query = ctx.shape(kQuery);
  if (!shape) return Dim::unknown();
  if (shape->size() != 3 || ((*shape)[2].is_known() && (*shape)[2].value() % heads != 0)) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected [batch, length, {} * width]", kNames[i],
                 to_string(*shape), heads);
  }
  if (query && query->size() == 3 && (differ((*shape)[0], (*query)[0]) || differ((*shape)[1], (*query)[1]))) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected batch and length of the query, {}", kNames[i],
                 to_string(*shape), to_string(*query));
  }
  return floor_div((*shape)[2], Dim(heads));
}

// Decay and beta are given exactly if the rule needs them: [batch, length, one of two widths].
Status check_factor(const InferContext& ctx, size_t i, bool wanted, const Dim& narrow, const Dim& wide) {
  const char* name = i == kDecay ? "decay" : "beta";
  if (ctx.has_input(i) != wanted) {
    return error(Code::kInvalidModel, "{} is {}, expected it to be {}: attribute update_rule is '{}'", name,
                 wanted ? "left out" : "given", wanted ? "given" : "left out",
                 ctx.attributes().get_string("update_rule", "gated_delta"));
  }
  const Shape *shape = ctx.shape(i), *query = ctx.shape(kQuery);
  if (!shape) return {};
  const bool fits = shape->size() == 3 && (!differ((*shape)[2], narrow) || !differ((*shape)[2], wide)) &&
                    (!query || (!differ((*shape)[0], (*query)[0]) && !differ((*shape)[1], (*query)[1])));
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected [batch, length, {} or {}]", name, to_string(*shape),
               narrow.to_string(), wide.to_string());
}

Status infer_linear_attention(InferContext& ctx) {
  const int64_t heads = ctx.attributes().get_int("q_num_heads"), shared = ctx.attributes().get_int("kv_num_heads");
  if (heads < 1 || shared < 1 || heads % shared != 0) {
    return error(Code::kInvalidModel, "there are {} heads of queries, expected a multiple of the heads of keys, {}",
                 heads, shared);
  }
  TREADLE_ASSIGN(const LinearRule rule, read_rule(ctx.attributes()));
  TREADLE_ASSIGN(Dim d_k, head_width(ctx, kQuery, heads));
  TREADLE_ASSIGN(const Dim key, head_width(ctx, kKey, shared));
  TREADLE_ASSIGN(const Dim d_v, head_width(ctx, kValue, shared));
  if (differ(d_k, key)) {
    return error(Code::kInvalidArgument, "query has heads of width {}, expected those of key: {}", d_k.value(),
                 key.value());
  }
  if (!d_k.is_known()) d_k = key;
  TREADLE_TRY(check_factor(ctx, kDecay, rule.gated, Dim(shared), d_k * Dim(shared)));
  TREADLE_TRY(check_factor(ctx, kBeta, rule.delta, Dim(1), Dim(shared)));
  const Shape* query = ctx.shape(kQuery);
  const Dim batch = query ? (*query)[0] : Dim(), length = query ? (*query)[1] : Dim();
  Shape state{batch, Dim(shared), d_k, d_v};
  if (const Shape* past = ctx.shape(kPast)) {
    bool fits = past->size() == 4;
    for (size_t i = 0; fits && i < 4; ++i) fits = !differ((*past)[i], state[i]);
    if (!fits) {
      return error(Code::kInvalidArgument, "past_state has shape {}, expected {}", to_string(*past), to_string(state));
    }
    for (size_t i = 0; i < 4; ++i) {
      if (!state[i].is_known() && !(*past)[i].is_unknown()) state[i] = (*past)[i];
    }
  }
  ctx.set_output(0, ctx.element(kQuery), {state[0], length, state[3] * Dim(heads)});
  if (ctx.outputs.size() > 1) ctx.set_output(1, ctx.element(ctx.has_input(kPast) ? kPast : kQuery), state);
  return {};
}

// ---- Kernel

// The rows of one token for one head of keys.
struct Token {
  const float *key, *value;
  const float* query;  // of the first query head that reads this state; the others follow
  const float* decay;
  int64_t decay_step;  // 0: one number for the whole head
  float beta;
};

// state *= exp(decay), by rows. `retrieved` gets what the key reads from the state.
void decay_and_retrieve(const LinearState& s, const Token& t, float* state, float* retrieved) {
  if (s.rule.delta) std::fill_n(retrieved, s.d_v, 0.0f);
  float factor = s.rule.gated && t.decay_step == 0 ? std::exp(*t.decay) : 1;
  for (int64_t d = 0; d < s.d_k; ++d) {
    float* row = state + d * s.d_v;
    if (s.rule.gated) {
      if (t.decay_step) factor = std::exp(t.decay[d]);
      for (int64_t m = 0; m < s.d_v; ++m) row[m] *= factor;
    }
    if (!s.rule.delta) continue;
    const float key = t.key[d];
    for (int64_t m = 0; m < s.d_v; ++m) retrieved[m] += key * row[m];
  }
}

void add(const LinearState& s, const float* key, const float* value, float* state) {
  for (int64_t d = 0; d < s.d_k; ++d) {
    float* row = state + d * s.d_v;
    for (int64_t m = 0; m < s.d_v; ++m) row[m] += key[d] * value[m];
  }
}

void read(const LinearState& s, const float* query, const float* state, float* out) {
  std::fill_n(out, s.d_v, 0.0f);
  for (int64_t d = 0; d < s.d_k; ++d) {
    const float* row = state + d * s.d_v;
    for (int64_t m = 0; m < s.d_v; ++m) out[m] += query[d] * row[m];
  }
  for (int64_t m = 0; m < s.d_v; ++m) out[m] *= s.scale;
}

void step(const LinearState& s, const Token& t, float* state, float* correction, float* out) {
  decay_and_retrieve(s, t, state, correction);
  const float* value = t.value;
  if (s.rule.delta) {
    for (int64_t m = 0; m < s.d_v; ++m) correction[m] = t.beta * (t.value[m] - correction[m]);
    value = correction;
  }
  add(s, t.key, value, state);
  for (int64_t g = 0; g < s.heads / s.shared; ++g) read(s, t.query + g * s.d_k, state, out + g * s.d_v);
}

}  // namespace

uint32_t run_linear_attention(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const LinearState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.scratch]]);
  const float* in[kInputs] = {};
  for (size_t i = 0; i < kInputs; ++i) {
    if (s.present[i]) in[i] = static_cast<const float*>(s.inputs[i].get(slots[operands[i]], scratch));
  }
  auto* out = static_cast<float*>(s.output.begin(slots[operands[s.outputs]], scratch));
  void* last = s.has_state ? slots[operands[s.outputs + 1]] : nullptr;
  auto* states = static_cast<float*>(last ? s.state.begin(last, scratch) : scratch + s.state_scratch);
  auto* correction = reinterpret_cast<float*>(scratch + s.correction);
  const int64_t group = s.heads / s.shared, size = s.d_k * s.d_v;
  const auto bytes = static_cast<size_t>(s.batch * s.shared * size) * sizeof(float);
  const bool begun = in[kPast] ? copy_in_pieces(states, in[kPast], bytes) : fill_in_pieces(states, 0, bytes);
  if (!begun) return fail(KernelError::kStopped);
  const double step_ns = costs::kLinearAttentionStepNs * static_cast<double>(size * (2 + group));
  StopPoll stop;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.shared; ++h) {
      for (int64_t i = b * s.length; i < (b + 1) * s.length; ++i) {
        Token t{};
        t.key = in[kKey] + (i * s.shared + h) * s.d_k;
        t.value = in[kValue] + (i * s.shared + h) * s.d_v;
        t.query = in[kQuery] + (i * s.heads + h * group) * s.d_k;
        t.decay_step = s.decay_width == s.shared ? 0 : 1;
        if (s.rule.gated) t.decay = in[kDecay] + i * s.decay_width + (t.decay_step ? h * s.d_k : h);
        if (s.rule.delta) t.beta = in[kBeta][i * s.beta_width + (s.beta_width == 1 ? 0 : h)];
        if (stop.after(step_ns)) return fail(KernelError::kStopped);
        step(s, t, states + (b * s.shared + h) * size, correction, out + (i * s.heads + h * group) * s.d_v);
      }
    }
  }
  s.output.finish(slots[operands[s.outputs]], scratch);
  if (last) s.state.finish(last, scratch);
  return 0;
}

namespace {

Status prepare_linear_attention(PrepareContext& ctx) {
  auto* s = ctx.make_state<LinearState>();
  const ir::Attributes& attributes = ctx.attributes();
  const Operand& query = ctx.inputs[kQuery];
  s->batch = query.dims[0];
  s->length = query.dims[1];
  s->heads = attributes.get_int("q_num_heads");
  s->shared = attributes.get_int("kv_num_heads");
  s->d_k = query.dims[2] / s->heads;
  s->d_v = ctx.inputs[kValue].dims[2] / s->shared;
  TREADLE_ASSIGN(s->rule, read_rule(attributes));
  const float scale = attributes.get_float("scale", 0);
  s->scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(std::max<int64_t>(s->d_k, 1)));
  if (ctx.has_input(kDecay)) s->decay_width = ctx.inputs[kDecay].dims[2];
  if (ctx.has_input(kBeta)) s->beta_width = ctx.inputs[kBeta].dims[2];
  ScratchLayout scratch;
  for (size_t i = 0; i < kInputs; ++i) {
    s->present[i] = ctx.has_input(i);
    if (s->present[i]) TREADLE_TRY(s->inputs[i].prepare(ctx.inputs[i], ElementType::kFloat, scratch));
  }
  s->output.prepare(ctx.outputs[0], ElementType::kFloat, scratch);
  s->has_state = ctx.has_output(1);
  if (s->has_state) {
    s->state.prepare(ctx.outputs[1], ElementType::kFloat, scratch);
  } else {
    s->state_scratch = scratch.add(static_cast<size_t>(s->batch * s->shared * s->d_k * s->d_v) * sizeof(float));
  }
  s->correction = scratch.add(static_cast<size_t>(s->d_v) * sizeof(float));
  ctx.scratch_bytes = scratch.size();
  s->outputs = static_cast<uint32_t>(ctx.inputs.size());
  s->scratch = ctx.scratch_operand();
  ctx.set_kernel(run_linear_attention, s);
  return {};
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(LinearAttention, "") {
  op.since(27)
      .in("query", "T")
      .in("key", "T")
      .in("value", "T")
      .in("past_state", "S", Arity::kOptional)
      .in("decay", "T", Arity::kOptional)
      .in("beta", "T", Arity::kOptional)
      .out("output", "T")
      .out("present_state", "S")
      .attr("chunk_size", 64)
      .required("kv_num_heads", ir::AttributeKind::kInt)
      .required("q_num_heads", ir::AttributeKind::kInt)
      .attr("scale", 0.0)
      .attr("update_rule", "gated_delta")
      .type("T", types::kFloatsTo32)
      .type("S", types::kFloatsTo32);
  op.infer(attention::infer_linear_attention)
      .prepare(attention::prepare_linear_attention)
      .axes(axes::entries_of<0b111111>);
}
