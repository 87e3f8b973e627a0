// MoE: each token passes through a few experts, chosen by its router, which have two or three layers each. Their
// results are added up with the router's weights. MoE is lowered to Experts, which computes in float; quantised experts
// are as well.

#include "ops/nn/experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/gemm.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "ops/costs.h"
#include "ops/fused/calls.h"

namespace treadle::nn {

namespace {

using ir::Value;

enum Input : size_t { kTokens, kRouter, kFirst, kFirstBias, kSecond, kSecondBias, kThird, kThirdBias, kWeights };

enum class Gate : uint8_t { kRelu, kGelu, kSilu, kIdentity, kSwiglu };

Result<Gate> read_gate(const ir::Attributes& attributes) {
  const std::string_view name = attributes.get_string("activation_type");
  constexpr std::pair<const char*, Gate> kGates[] = {{"relu", Gate::kRelu},
                                                     {"gelu", Gate::kGelu},
                                                     {"silu", Gate::kSilu},
                                                     {"identity", Gate::kIdentity},
                                                     {"swiglu", Gate::kSwiglu}};
  for (const auto& [known, gate] : kGates) {
    if (name == known) return gate;
  }
  return error(Code::kInvalidModel,
               "attribute activation_type is '{}', expected 'relu', 'gelu', 'silu', 'swiglu' or 'identity'", name);
}

// ---- Inference

// Checks weights [experts, rows, columns], or a bias [experts, rows].
Status check_layer(const InferContext& ctx, size_t i, std::initializer_list<Dim> expected) {
  const Shape* shape = ctx.shape(i);
  if (!shape) return {};
  bool fits = shape->size() == expected.size();
  for (size_t k = 0; fits && k < shape->size(); ++k) fits = !differ((*shape)[k], expected.begin()[k]);
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} have shape {}, expected {}", ctx.node.version->inputs[i].name,
               to_string(*shape), to_string(Shape(expected)));
}

Status check_layers(const InferContext& ctx, bool fused) {
  const Shape *x = ctx.shape(kTokens), *router = ctx.shape(kRouter), *second = ctx.shape(kSecond);
  const Dim tokens = router ? (*router)[0] : Dim(), experts = router ? (*router)[1] : Dim();
  const Dim size = x ? x->back() : Dim();
  if (second && second->size() != 3) {
    return error(Code::kInvalidArgument, "{} have shape {}, expected three dimensions",
                 ctx.node.version->inputs[kSecond].name, to_string(*second));
  }
  const Dim inner = second ? (*second)[2] : Dim(), first = fused ? inner * Dim(2) : inner;
  TREADLE_TRY(check_layer(ctx, kFirst, {experts, first, size}));
  TREADLE_TRY(check_layer(ctx, kFirstBias, {experts, first}));
  TREADLE_TRY(check_layer(ctx, kSecond, {experts, size, inner}));
  TREADLE_TRY(check_layer(ctx, kSecondBias, {experts, size}));
  TREADLE_TRY(check_layer(ctx, kThird, {experts, inner, size}));
  TREADLE_TRY(check_layer(ctx, kThirdBias, {experts, inner}));
  return check_layer(ctx, kWeights, {tokens, experts});
}

Status infer_experts(InferContext& ctx) {
  TREADLE_TRY(check_routing(ctx));
  TREADLE_ASSIGN(const Gate gate, read_gate(ctx.attributes()));
  const bool fused = gate == Gate::kSwiglu && ctx.attributes().get_int("swiglu_fusion") != 0;
  if (gate == Gate::kSwiglu && fused == ctx.has_input(kThird)) {
    return error(Code::kInvalidModel,
                 "attribute swiglu_fusion of swiglu is {}, expected {} fc3_experts_weights with it",
                 ctx.attributes().get_int("swiglu_fusion"), fused ? "no" : "also");
  }
  if (ctx.has_input(kThirdBias) && !ctx.has_input(kThird)) {
    return error(Code::kInvalidModel, "fc3_experts_bias is given, expected fc3_experts_weights with it");
  }
  TREADLE_TRY(check_layers(ctx, fused));
  return infer_like_input(ctx);
}

struct Layer {
  kernels::GemmPlan plan;
  const std::byte* packed = nullptr;  // for all experts, one after the other; null: B is not packed
  int64_t out = 0, in = 0;
  size_t input = 0;  // number of the node's input; the bias is the next one
};

struct ExpertState {
  Gate gate = Gate::kRelu;
  bool interleaved = false, normalized = false, has_third = false, has_weights = false;
  float alpha = 1, beta = 0, limit = std::numeric_limits<float>::infinity();
  int64_t tokens = 0, experts = 0, chosen = 0, size = 0, inner = 0;
  Layer first, second, third;
  // Offsets in scratch. A route is a pair (token, choice); the routes of an expert are consecutive in `order`.
  size_t expert_of = 0, weight_of = 0, order = 0, starts = 0, rows = 0, hidden = 0, gates = 0, results = 0;
  size_t workers = 0, worker_bytes = 0, ranking = 0;
  double route_ns = 0;
  uint32_t output = 0, scratch = 0;

  int64_t routes() const { return tokens * chosen; }
};

// ---- Run

struct Scratch {
  int32_t *expert_of, *order, *starts;
  float *weight_of, *ranking, *rows, *hidden, *gates, *results;

  Scratch(const ExpertState& s, std::byte* at) {
    const auto ints = [&](size_t offset) { return reinterpret_cast<int32_t*>(at + offset); };
    const auto floats = [&](size_t offset) { return reinterpret_cast<float*>(at + offset); };
    expert_of = ints(s.expert_of), order = ints(s.order), starts = ints(s.starts);
    weight_of = floats(s.weight_of), ranking = floats(s.ranking), rows = floats(s.rows), hidden = floats(s.hidden);
    gates = floats(s.gates), results = floats(s.results);
  }
};

// The k experts of largest probability; of equal ones those with higher numbers, as in onnxruntime.
void route(const ExpertState& s, const float* scores, const float* weights, Scratch& t, int64_t token) {
  float* probability = t.ranking;
  auto* ranked = reinterpret_cast<int32_t*>(t.ranking + s.experts);
  const float most = *std::max_element(scores, scores + s.experts);
  float sum = 0;
  for (int64_t e = 0; e < s.experts; ++e) sum += probability[e] = std::exp(scores[e] - most);
  for (int64_t e = 0; e < s.experts; ++e) probability[e] /= sum, ranked[e] = static_cast<int32_t>(e);
  std::partial_sort(ranked, ranked + s.chosen, ranked + s.experts, [&](int32_t a, int32_t b) {
    return probability[a] != probability[b] ? probability[a] > probability[b] : a > b;
  });
  float all = 0;
  for (int64_t k = 0; k < s.chosen; ++k) {
    const int32_t e = ranked[k];
    t.expert_of[token * s.chosen + k] = e;
    all += t.weight_of[token * s.chosen + k] = s.has_weights ? weights[e] : probability[e];
  }
  for (int64_t k = 0; s.normalized && k < s.chosen; ++k) t.weight_of[token * s.chosen + k] /= all;
}

// Sorts routes by expert.
void group(const ExpertState& s, Scratch& t) {
  std::fill_n(t.starts, s.experts + 1, 0);
  for (int64_t r = 0; r < s.routes(); ++r) ++t.starts[t.expert_of[r] + 1];
  for (int64_t e = 0; e < s.experts; ++e) t.starts[e + 1] += t.starts[e];
  for (int64_t r = 0; r < s.routes(); ++r) t.order[t.starts[t.expert_of[r]]++] = static_cast<int32_t>(r);
  for (int64_t e = s.experts; e > 0; --e) t.starts[e] = t.starts[e - 1];
  t.starts[0] = 0;
}

float activated(Gate gate, float x) {
  constexpr float kRoot = 0.7978845608f;  // sqrt(2 / pi)
  switch (gate) {
    case Gate::kRelu:
      return std::max(x, 0.0f);
    case Gate::kGelu:
      return 0.5f * x * (1 + std::tanh(kRoot * (x + 0.044715f * x * x * x)));
    case Gate::kSilu:
      return x / (1 + std::exp(-x));
    default:
      return x;
  }
}

float swiglu(const ExpertState& s, float gate, float linear) {
  const float g = std::min(gate, s.limit), l = std::clamp(linear, -s.limit, s.limit);
  return g / (1 + std::exp(-s.alpha * g)) * (l + s.beta);
}

// Applies the activation to a row of the first layer, in place.
void activate(const ExpertState& s, float* row, const float* third) {
  for (int64_t i = 0; i < s.inner; ++i) {
    if (s.gate != Gate::kSwiglu) {
      row[i] = activated(s.gate, row[i]) * (third ? third[i] : 1.0f);
    } else if (third) {
      row[i] = swiglu(s, row[i], third[i]);
    } else if (s.interleaved) {
      row[i] = swiglu(s, row[2 * i], row[2 * i + 1]);
    } else {
      row[i] = swiglu(s, row[i], row[i + s.inner]);
    }
  }
}

class ExpertRun {
 public:
  ExpertRun(const ExpertState& s, void* const* slots, const uint32_t* operands, std::byte* scratch)
      : s_(s), slots_(slots), operands_(operands), scratch_(scratch), t_(s, scratch) {}

  // Computes all routes of an expert.
  void expert(int64_t e, int worker) const {
    const int64_t begin = t_.starts[e], count = t_.starts[e + 1] - begin;
    if (count == 0) return;
    const auto* tokens = floats(kTokens);
    float *rows = t_.rows + begin * s_.size, *hidden = t_.hidden + begin * s_.first.out;
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(tokens + t_.order[begin + i] / s_.chosen * s_.size, s_.size, rows + i * s_.size);
    }
    layer(s_.first, e, count, rows, hidden, worker);
    float* third = s_.has_third ? t_.gates + begin * s_.third.out : nullptr;
    if (third) layer(s_.third, e, count, rows, third, worker);
    for (int64_t i = 0; i < count; ++i) {
      activate(s_, hidden + i * s_.first.out, third ? third + i * s_.third.out : nullptr);
      // Closes the gaps if rows of the first layer are longer than those that the second layer takes.
      if (s_.first.out != s_.inner) std::copy_n(hidden + i * s_.first.out, s_.inner, hidden + i * s_.inner);
    }
    layer(s_.second, e, count, hidden, rows, worker);
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(rows + i * s_.size, s_.size, t_.results + t_.order[begin + i] * s_.size);
    }
  }

  // Adds up the results of the token's experts, in the order of their numbers.
  void add_up(int64_t token, float* y) const {
    std::fill_n(y, s_.size, 0.0f);
    const int32_t* experts = t_.expert_of + token * s_.chosen;
    for (int64_t done = 0, last = -1; done < s_.chosen; ++done) {
      int64_t next = -1;
      for (int64_t k = 0; k < s_.chosen; ++k) {
        if (experts[k] > last && (next < 0 || experts[k] < experts[next])) next = k;
      }
      last = experts[next];
      const int64_t at = token * s_.chosen + next;
      for (int64_t i = 0; i < s_.size; ++i) y[i] += t_.weight_of[at] * t_.results[at * s_.size + i];
    }
  }

 private:
  const float* floats(size_t input) const { return static_cast<const float*>(slots_[operands_[input]]); }
  void layer(const Layer& layer, int64_t e, int64_t rows, const float* from, float* to, int worker) const {
    const void* weights =
        layer.packed ? static_cast<const void*>(layer.packed + static_cast<size_t>(e) * layer.plan.packed_b_bytes)
                     : floats(layer.input) + e * layer.out * layer.in;
    const float* bias = floats(layer.input + 1);
    if (bias) bias += e * layer.out;
    std::byte* own = scratch_ + s_.workers + static_cast<size_t>(worker) * s_.worker_bytes;
    kernels::run_gemm_rows(layer.plan, rows, from, weights, bias, to, own);
  }

  const ExpertState& s_;
  void* const* slots_;
  const uint32_t* operands_;
  std::byte* scratch_;
  Scratch t_;
};

uint32_t run_experts(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ExpertState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.scratch]]);
  const auto* scores = static_cast<const float*>(slots[operands[kRouter]]);
  const auto* weights = s.has_weights ? static_cast<const float*>(slots[operands[kWeights]]) : nullptr;
  Scratch t(s, scratch);
  for (int64_t i = 0; i < s.tokens; ++i) {
    route(s, scores + i * s.experts, weights ? weights + i * s.experts : nullptr, t, i);
  }
  group(s, t);
  const ExpertRun run(s, slots, operands, scratch);
  const double expert_ns =
      s.route_ns * static_cast<double>(s.routes()) / static_cast<double>(std::max<int64_t>(s.experts, 1));
  parallel_for(s.experts, expert_ns, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t e = begin; e < end; ++e) run.expert(e, worker);
  });
  auto* y = static_cast<float*>(slots[operands[s.output]]);
  const double token_ns = costs::kRowElementNs * static_cast<double>(s.size * s.chosen);
  parallel_for(s.tokens, token_ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) run.add_up(i, y + i * s.size);
  });
  return 0;
}

// ---- Preparation

Status prepare_layer(PrepareContext& ctx, Layer& layer, size_t input, int64_t rows) {
  const Operand& w = ctx.inputs[input];
  layer.input = input;
  layer.out = w.dims[1];
  layer.in = w.dims[2];
  kernels::GemmShape shape{.m = rows, .n = layer.out, .k = layer.in};
  shape.a_row = layer.in;
  shape.b_row = 1;
  shape.b_col = layer.in;
  shape.c_row = layer.out;
  shape.b_packed = w.constant != nullptr;
  layer.plan = kernels::prepare_gemm(ComputeType::kF32, shape);
  if (!shape.b_packed) return {};
  const uint64_t key = packed_layout(layer.plan, w.type);
  const size_t bytes = layer.plan.packed_b_bytes;
  const auto pack = [&](void* out) {
    const auto* from = static_cast<const float*>(w.constant);
    StopPoll stop;
    for (int64_t e = 0; e < w.dims[0]; ++e) {
      kernels::pack_b(layer.plan, from + e * layer.out * layer.in,
                      static_cast<std::byte*>(out) + static_cast<size_t>(e) * bytes, stop);
    }
  };
  TREADLE_ASSIGN(const void* const packed, ctx.packs.get(w, key, bytes * static_cast<size_t>(w.dims[0]), pack));
  layer.packed = static_cast<const std::byte*>(packed);
  return {};
}

void lay_scratch(PrepareContext& ctx, ExpertState& s) {
  ScratchLayout scratch;
  const auto words = [&](int64_t count) { return scratch.add(static_cast<size_t>(count) * 4); };
  s.expert_of = words(s.routes());
  s.weight_of = words(s.routes());
  s.order = words(s.routes());
  s.starts = words(s.experts + 1);
  s.ranking = words(2 * s.experts);
  s.rows = words(s.routes() * s.size);
  s.hidden = words(s.routes() * s.first.out);
  if (s.has_third) s.gates = words(s.routes() * s.third.out);
  s.results = words(s.routes() * s.size);
  s.workers = scratch.size();
  const size_t most = std::max(
      {s.first.plan.scratch_bytes, s.second.plan.scratch_bytes, s.has_third ? s.third.plan.scratch_bytes : size_t{0}});
  s.worker_bytes = (most + 63) / 64 * 64;
  s.scratch = ctx.scratch_operand();
  ctx.scratch_bytes = scratch.size() + s.worker_bytes * static_cast<size_t>(std::max(ctx.threads, 1));
}

Status prepare_experts(PrepareContext& ctx) {
  auto* s = ctx.make_state<ExpertState>();
  TREADLE_ASSIGN(s->gate, read_gate(ctx.attributes()));
  s->interleaved = ctx.attributes().get_int("swiglu_fusion") == 1;
  s->normalized = ctx.attributes().get_int("normalize_routing_weights") != 0;
  s->alpha = ctx.attributes().get_float("activation_alpha");
  s->beta = ctx.attributes().get_float("activation_beta");
  s->limit = ctx.attributes().get_float("swiglu_limit", s->limit);
  s->has_third = ctx.has_input(kThird);
  s->has_weights = ctx.has_input(kWeights);
  s->tokens = ctx.inputs[kRouter].dims[0];
  s->experts = ctx.inputs[kRouter].dims[1];
  s->chosen = ctx.attributes().get_int("k");
  s->size = ctx.inputs[kTokens].dims.back();
  s->inner = ctx.inputs[kSecond].dims[2];
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  const int64_t rows = std::max<int64_t>(s->routes() / std::max<int64_t>(s->experts, 1), 1);
  TREADLE_TRY(prepare_layer(ctx, s->first, kFirst, rows));
  TREADLE_TRY(prepare_layer(ctx, s->second, kSecond, rows));
  if (s->has_third) TREADLE_TRY(prepare_layer(ctx, s->third, kThird, rows));
  s->route_ns = kernels::kProductNs * static_cast<double>(s->size) * static_cast<double>(s->first.out + s->inner);
  ctx.cost_ns = s->route_ns * static_cast<double>(s->routes());
  lay_scratch(ctx, *s);
  ctx.set_kernel(run_experts, s);
  return {};
}

void add_layers(VersionBuilder& version) {
  version.in("input", "T").in("router_probs", "T");
  version.in("fc1_experts_weights", "T").in("fc1_experts_bias", "T", Arity::kOptional);
  version.in("fc2_experts_weights", "T").in("fc2_experts_bias", "T", Arity::kOptional);
  version.in("fc3_experts_weights", "T", Arity::kOptional).in("fc3_experts_bias", "T", Arity::kOptional);
}

Status lower_moe(LowerContext& ctx) {
  std::array<Value*, kExpertInputs> inputs{};
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i)) inputs[i] = fused::input_as(ctx, i, ElementType::kFloat);
  }
  ctx.set_output(
      0, call_experts(ctx, inputs, ctx.type(0).element, ctx.attributes().get_int("normalize_routing_weights") != 0));
  return {};
}

}  // namespace

Status check_routing(const InferContext& ctx) {
  const ir::Attributes& given = ctx.attributes();
  if (given.get_int("use_sparse_mixer") != 0) {
    return error(Code::kNotImplemented, "attribute use_sparse_mixer is {}: routing with jitter",
                 given.get_int("use_sparse_mixer"));
  }
  const int64_t fusion = given.get_int("swiglu_fusion"), k = given.get_int("k");
  if (fusion < 0 || fusion > 2) {
    return error(Code::kInvalidModel, "attribute swiglu_fusion is {}, expected 0, 1 or 2", fusion);
  }
  const Shape *x = ctx.shape(kTokens), *router = ctx.shape(kRouter);
  if (x && x->size() != 2 && x->size() != 3) {
    return error(Code::kInvalidArgument, "input has shape {}, expected [tokens,size] or [batch,length,size]",
                 to_string(*x));
  }
  const Dim tokens = x ? (x->size() == 3 ? (*x)[0] * (*x)[1] : (*x)[0]) : Dim();
  if (router && (router->size() != 2 || differ((*router)[0], tokens))) {
    return error(Code::kInvalidArgument, "router_probs have shape {}, expected [{},experts]", to_string(*router),
                 tokens.to_string());
  }
  const int64_t most = router && (*router)[1].is_known() ? (*router)[1].value() : std::numeric_limits<int64_t>::max();
  if (k < 1) return error(Code::kInvalidModel, "attribute k is {}, expected 1 or more", k);
  if (k > most) {
    return error(Code::kInvalidModel, "attribute k is {}, expected 1 to {}: the experts that router_probs has", k,
                 most);
  }
  return {};
}

Value* call_experts(LowerContext& ctx, std::span<Value* const> inputs, ElementType type, bool normalized) {
  std::vector<ir::Attribute> attributes{ir::Attribute::of("normalize_routing_weights", int64_t{normalized})};
  for (const ir::Attribute& a : ctx.attributes().all()) {
    for (const char* name : kExpertAttributes) {
      if (a.name == name) attributes.push_back(a);
    }
  }
  return fused::cast(ctx, ctx.call("Experts", inputs, std::move(attributes), "treadle"), ElementType::kFloat, type);
}

void add_expert_attributes(VersionBuilder& version) {
  version.attr("activation_alpha", 1.0)
      .attr("activation_beta", 0.0)
      .attr("activation_type", "relu")
      .attr("k", 1)
      .attr("normalize_routing_weights", 0)
      .attr("swiglu_fusion", 0)
      .optional("swiglu_limit", ir::AttributeKind::kFloat)
      .attr("use_sparse_mixer", 0);
}

// Tokens along a single axis are independent.
Status token_axes(AxisContext& c) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    const bool is_row = i == kTokens || i == kRouter;
    if (is_row != (c.runs_along(i) && c.in(i) == 0))
      return looks_along("its experts or its router do not run along it");
  }
  return c.rank(kTokens) == 2 ? c.give(0, 0) : looks_along("its router counts tokens of several axes");
}

}  // namespace treadle::nn

TREADLE_OP(Experts, "treadle") {
  op.since(1)
      .with(nn::add_layers)
      .in("router_weights", "T", Arity::kOptional)
      .out("output", "T")
      .with(nn::add_expert_attributes)
      .type("T", types::kFloat32s);
  op.infer(nn::infer_experts).prepare(nn::prepare_experts).axes(nn::token_axes);
}

TREADLE_OP(MoE, "com.microsoft") {
  op.since(1).with(nn::add_layers).out("output", "T").with(nn::add_expert_attributes).type("T", types::kFloatsTo32);
  op.infer(nn::infer_experts).lower(nn::lower_moe).axes(nn::token_axes);
}
