// Operators on sequences that carry a state from token to token, or turn each token by its position: LinearAttention,
// CausalConvWithState, RotaryEmbedding (ops/attention/).

#include "c/writer.h"
#include "ops/attention/causal_conv.h"
#include "ops/attention/linear_attention.h"
#include "ops/attention/rotary_embedding.h"

namespace treadle::c {

namespace {

using attention::CausalConvState;
using attention::LinearState;
using attention::RotaryState;
using kernels::ElementwiseOp;

constexpr ElementType kFloat = ElementType::kFloat;

template <class State>
const State* state_of(const Call& call, KernelFn run, std::string& why) {
  if (call.call.kernel.run == run) return static_cast<const State*>(call.call.kernel.state);
  why = "its kernel is not the one that C follows";
  return nullptr;
}

std::string or_null(const std::string& pointer) {
  return pointer.empty() ? "NULL" : pointer;
}

std::string linear_function(Functions& f, const attention::LinearRule& rule, const std::string& exponential) {
  const char* name = rule.gated ? rule.delta ? "gated_delta" : "gated" : rule.delta ? "delta" : "linear";
  return f.get(fmt::format("{}_attention", name), [&](Text& text, const std::string& full) {
    text.line("/* The states of all heads go from token to token; each query reads the state of its token. */");
    text.open(
        "static void {}(const float *queries, const float *keys, const float *values{}{}, float *restrict states{}, "
        "float *restrict y, ptrdiff_t batch, ptrdiff_t length, ptrdiff_t heads, ptrdiff_t shared, ptrdiff_t d_k, "
        "ptrdiff_t d_v, float scale)",
        full, rule.gated ? ", const float *decay, ptrdiff_t decays" : "",
        rule.delta ? ", const float *beta, ptrdiff_t betas" : "", rule.delta ? ", float *restrict change" : "");
    text.line("const ptrdiff_t group = heads / shared;");
    text.open("for (ptrdiff_t n = 0; n < batch * shared; ++n)");
    text.line("const ptrdiff_t b = n / shared, h = n % shared;");
    text.line("float *const state = states + n * d_k * d_v;");
    text.open("for (ptrdiff_t i = b * length; i < (b + 1) * length; ++i)");
    text.line("const float *const key = keys + (i * shared + h) * d_k;");
    text.line("const float *const {} = values + (i * shared + h) * d_v;", rule.delta ? "wanted" : "value");
    if (rule.gated) {
      text.line("const int is_single = decays == shared; /* one decay for all rows of a state */");
      text.line("const float *const decay_i = decay + i * decays + (is_single ? h : h * d_k);");
      text.line("float factor = is_single ? {}(*decay_i) : 1;", exponential);
    }
    if (rule.delta) {
      text.line("const float *const value = change;");
      text.line("const float beta_i = beta[i * betas + (betas == 1 ? 0 : h)];");
      text.line("for (ptrdiff_t m = 0; m < d_v; ++m) change[m] = 0;");
    }
    if (rule.gated || rule.delta) {
      text.open("for (ptrdiff_t d = 0; d < d_k; ++d)");
      text.line("float *const row = state + d * d_v;");
      if (rule.gated) {
        text.line("if (!is_single) factor = {}(decay_i[d]);", exponential);
        text.line("for (ptrdiff_t m = 0; m < d_v; ++m) row[m] *= factor;");
      }
      if (rule.delta) {
        text.open("for (ptrdiff_t m = 0; m < d_v; ++m)");
        text.line("const float term = key[d] * row[m];");
        text.line("change[m] = change[m] + term;");
        text.close();
      }
      text.close();
    }
    if (rule.delta) text.line("for (ptrdiff_t m = 0; m < d_v; ++m) change[m] = beta_i * (wanted[m] - change[m]);");
    text.open("for (ptrdiff_t d = 0; d < d_k; ++d)");
    text.line("float *const row = state + d * d_v;");
    text.open("for (ptrdiff_t m = 0; m < d_v; ++m)");
    text.line("const float term = key[d] * value[m];");
    text.line("row[m] = row[m] + term;");
    text.close();
    text.close();
    text.open("for (ptrdiff_t g = i * heads + h * group; g < i * heads + (h + 1) * group; ++g)");
    text.line("const float *const query = queries + g * d_k;");
    text.line("float *const out = y + g * d_v;");
    text.line("for (ptrdiff_t m = 0; m < d_v; ++m) out[m] = 0;");
    text.open("for (ptrdiff_t d = 0; d < d_k; ++d)");
    text.line("const float *const row = state + d * d_v;");
    text.open("for (ptrdiff_t m = 0; m < d_v; ++m)");
    text.line("const float term = query[d] * row[m];");
    text.line("out[m] = out[m] + term;");
    text.close();
    text.close();
    text.line("for (ptrdiff_t m = 0; m < d_v; ++m) out[m] *= scale;");
    text.close();
    text.close();
    text.close();
    text.close();
  });
}

void write_linear_attention(const Call& call, std::string& why) {
  const auto* state = state_of<LinearState>(call, attention::run_linear_attention, why);
  if (!state) return;
  const LinearState& s = *state;
  Writer& w = call.writer;
  Functions& f = w.functions();
  const std::string exponential = s.rule.gated ? f.library("expf") : "";
  if (s.rule.gated && exponential.empty()) {
    why = "the exponentials of decays are the C library's (libm allows it)";
    return;
  }
  Text& text = w.text();
  text.open("");
  const std::string query = operand(call, LinearState::kQuery, kFloat, "queries"),
                    key = operand(call, LinearState::kKey, kFloat, "keys"),
                    value = operand(call, LinearState::kValue, kFloat, "values"),
                    past = operand(call, LinearState::kPast, kFloat, "past"),
                    decay = operand(call, LinearState::kDecay, kFloat, "decays"),
                    beta = operand(call, LinearState::kBeta, kFloat, "betas");
  const std::string y = result(call, 0, kFloat, "sums");
  const int64_t count = s.batch * s.shared * s.d_k * s.d_v;
  const std::string states = s.has_state ? result(call, 1, kFloat, "states") : room(w, kFloat, count);
  if (past.empty()) {
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = 0;", count, states);
  } else {
    text.line("{}", w.copy(states, past, static_cast<size_t>(count) * sizeof(float)));
  }
  text.line("{}({}, {}, {}{}{}, {}{}, {}, {}, {}, {}, {}, {}, {}, {});", linear_function(f, s.rule, exponential), query,
            key, value, s.rule.gated ? fmt::format(", {}, {}", decay, s.decay_width) : "",
            s.rule.delta ? fmt::format(", {}, {}", beta, s.beta_width) : "", states,
            s.rule.delta ? ", " + room(w, kFloat, s.d_v) : "", y, s.batch, s.length, s.heads, s.shared, s.d_k, s.d_v,
            literal(s.scale));
  store_result(call, 0, kFloat, y);
  if (s.has_state) store_result(call, 1, kFloat, states);
  text.close();
}

std::string causal_conv_function(Functions& f, bool swish) {
  const std::string activation = swish ? f.operation(ElementwiseOp::kSwish, kFloat) : "";
  return f.get(swish ? "causal_conv_swish" : "causal_conv", [&](Text& text, const std::string& name) {
    text.line("/* Each channel by its own taps. `row`: room for a channel's past and new steps. */");
    text.open(
        "static void {}(const float *x, const float *weights, const float *bias, const float *past, float *restrict "
        "row, float *restrict y, float *carried, ptrdiff_t batch, ptrdiff_t channels, ptrdiff_t length, ptrdiff_t "
        "taps)",
        name);
    text.open("for (ptrdiff_t n = 0; n < batch * channels; ++n)");
    text.line("const ptrdiff_t c = n % channels;");
    text.line("const float first = bias ? bias[c] : 0;");
    text.line("float *const out = y + n * length;");
    text.line("for (ptrdiff_t i = 0; i < taps - 1; ++i) row[i] = past ? past[n * (taps - 1) + i] : 0;");
    text.line("for (ptrdiff_t i = 0; i < length; ++i) row[taps - 1 + i] = x[n * length + i];");
    text.line("for (ptrdiff_t i = 0; i < length; ++i) out[i] = first;");
    text.open("for (ptrdiff_t j = 0; j < taps; ++j)");
    text.line("const float weight = weights[c * taps + j];");
    text.open("for (ptrdiff_t i = 0; i < length; ++i)");
    text.line("const float term = weight * row[i + j];");
    text.line("out[i] = out[i] + term;");
    text.close();
    text.close();
    if (swish) text.line("for (ptrdiff_t i = 0; i < length; ++i) out[i] = {}(out[i], 1.0f, 0.0f);", activation);
    text.line("if (!carried) continue;");
    text.line("for (ptrdiff_t i = 0; i < taps - 1; ++i) carried[n * (taps - 1) + i] = row[length + i];");
    text.close();
    text.close();
  });
}

void write_causal_conv(const Call& call, std::string& why) {
  const auto* state = state_of<CausalConvState>(call, attention::run_causal_conv, why);
  if (!state) return;
  const CausalConvState& s = *state;
  Writer& w = call.writer;
  Text& text = w.text();
  text.open("");
  const std::string x = operand(call, CausalConvState::kData, kFloat, "steps"),
                    weights = operand(call, CausalConvState::kWeight, kFloat, "weights"),
                    bias = operand(call, CausalConvState::kBias, kFloat, "biases"),
                    past = operand(call, CausalConvState::kPast, kFloat, "past");
  const std::string y = result(call, 0, kFloat, "sums"),
                    carried = s.has_state ? result(call, 1, kFloat, "carried") : std::string();
  text.line("{}({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});", causal_conv_function(w.functions(), s.swish != nullptr),
            x, weights, or_null(bias), or_null(past), room(w, kFloat, static_cast<int64_t>(s.length + s.taps - 1)), y,
            or_null(carried), s.batch, s.channels, s.length, s.taps);
  store_result(call, 0, kFloat, y);
  if (s.has_state) store_result(call, 1, kFloat, carried);
  text.close();
}

std::string turn_function(Functions& f, ElementType type, bool interleaved) {
  return f.get(
      fmt::format("turn_{}{}", interleaved ? "pairs_" : "", suffix(type)), [&](Text& text, const std::string& name) {
        const auto load = [&](const char* element) { return f.converted(type, kFloat, element); };
        const auto store = [&](const char* to, const char* value) {
          text.line("y[{}] = {};", to, f.converted(kFloat, type, value));
        };
        const char *first = interleaved ? "2 * i" : "i", *second = interleaved ? "2 * i + 1" : "half + i";
        text.line("/* One head of one token, by the angles of its position. */");
        text.open(
            "static void {0}(const {1} *x, const {1} *cosines, const {1} *sines, {1} *restrict y, ptrdiff_t half, "
            "ptrdiff_t size)",
            name, stored(type));
        text.open("for (ptrdiff_t i = 0; i < half; ++i)");
        text.line("const float cosine = {}, sine = {};", load("cosines[i]"), load("sines[i]"));
        text.line("const float a = {}, b = {};", load(fmt::format("x[{}]", first).c_str()),
                  load(fmt::format("x[{}]", second).c_str()));
        text.line("const float ca = cosine * a, sb = sine * b, sa = sine * a, cb = cosine * b;");
        store(first, "ca - sb");
        store(second, "sa + cb");
        text.close();
        text.line("for (ptrdiff_t i = 2 * half; i < size; ++i) y[i] = x[i];");
        text.close();
      });
}

void write_rotary(const Call& call, std::string& why) {
  const auto* state = state_of<RotaryState>(call, attention::run_rotary, why);
  if (!state) return;
  const RotaryState& s = *state;
  Writer& w = call.writer;
  Text& text = w.text();
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", s.batch * s.length);
  std::string angle = "i";
  if (s.positions > 0) {
    text.line("int64_t at = {}[i];", call.in(RotaryState::kPositions));
    text.line("if (at < 0) at += {};", s.positions);
    text.line("if (at < 0 || at >= {}) return {};", s.positions, w.error("INDEX_OUT_OF_RANGE"));
    angle = "(ptrdiff_t)at";
  }
  text.open("for (ptrdiff_t h = 0; h < {}; ++h)", s.heads);
  text.line("const ptrdiff_t start = i / {0} * {1} + h * {2} + i % {0} * {3};", s.length, s.heads * s.length * s.size,
            s.head_stride, s.row_stride);
  text.line("{}({} + start, {} + {} * {}, {} + {} * {}, {} + start, {}, {});",
            turn_function(w.functions(), s.type, s.interleaved), call.in(RotaryState::kData),
            call.in(RotaryState::kCos), angle, s.half, call.in(RotaryState::kSin), angle, s.half, call.out(), s.half,
            s.size);
  text.close();
  text.close();
}

constexpr OperatorRow kRows[] = {
    {"LinearAttention", "", write_linear_attention},
    {"CausalConvWithState", "", write_causal_conv},
    {"RotaryEmbedding", "", write_rotary},
};

}  // namespace

std::span<const OperatorRow> state_operators() {
  return kRows;
}

}  // namespace treadle::c
