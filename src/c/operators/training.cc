// Adagrad, Adam and Momentum (ops/training/optimizers.cc): a step of each tensor.

#include "c/values.h"
#include "c/writer.h"
#include "op/op_def.h"
#include "ops/training/optimizer_rules.h"

namespace treadle::c {

namespace {

using training::Coefficients;

enum Input : size_t { kRate, kUpdates, kFirst };

// The step of tensor `group` of `groups`; T: its type.
template <class Rule, class T>
void write_group(const Call& call, const Coefficients& c, size_t group, size_t groups) {
  using V = Value<T>;
  Writer& w = call.writer;
  Text& text = w.text();
  const auto input = [&](size_t part) { return kFirst + part * groups + group; };
  const Dims dims = call.dims(input(0));
  const int64_t count = product(dims, 0, dims.size());
  if (count == 0) return;
  const std::string_view t = stored(element_of<T>());
  constexpr size_t kParts = 2 + Rule::kAccumulators;
  constexpr const char* kNames[] = {"x", "g", "a", "b"};
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", count);
  text.line("const {0} r = ({0})dr, s = ({0})ds;", t);
  text.line("(void)s;");
  for (size_t part = 0; part < kParts; ++part) {
    text.line("const {} {} = {}[i];", t, kNames[part], call.in(input(part)));
  }
  int names = 0;
  const Scope scope(text, w.functions(), names);
  training::Slot<V> slot{V::of("x"), V::of("g"), V::of("a"), V::of("b")};
  Rule::step(c, training::Run<V>{V::of("r"), V::of("s")}, slot);
  const char* results[] = {slot.x.v, slot.a.v, slot.b.v};
  for (size_t part = 0; part + 1 < kParts; ++part) {
    const size_t output = part * groups + group;
    if (call.has_output(output)) {
      text.line("{}[i] = {};", call.out(output), results[part]);
    } else {
      text.line("(void){};", results[part]);
    }
  }
  text.close();
}

// `adjust` writes what becomes of the rate dr and the share ds.
template <class Rule, class Adjust>
void write_step(const Call& call, const Coefficients& c, Adjust&& adjust) {
  Writer& w = call.writer;
  Text& text = w.text();
  text.open("");
  text.line("const double n = (double){}[0];", call.in(kUpdates));
  text.line("double dr = {}, ds = 0;", w.converted(call.type(kRate), ElementType::kDouble, call.in(kRate) + "[0]"));
  text.line("(void)n;");
  adjust();
  const size_t groups = (call.inputs() - kFirst) / (2 + Rule::kAccumulators);
  for (size_t group = 0; group < groups; ++group) {
    if (call.type(kFirst + group) == ElementType::kDouble) {
      write_group<Rule, double>(call, c, group, groups);
    } else {
      write_group<Rule, float>(call, c, group, groups);
    }
  }
  text.close();
}

void write_adagrad(const Call& call, std::string&) {
  const Coefficients c = training::coefficients_of(call.node.attributes);
  Text& text = call.writer.text();
  write_step<training::AdagradRule>(call, c, [&] {
    text.line("const double ad = n * {};", literal(c.decay));
    text.line("dr = dr / (1 + ad);");
  });
}

void write_adam(const Call& call, std::string& why) {
  const Coefficients c = training::coefficients_of(call.node.attributes);
  Writer& w = call.writer;
  const std::string power = w.functions().library("pow"), sqrt = w.functions().sqrt(ElementType::kDouble);
  if (power.empty()) {
    why = "powers of its rates are the C library's (libm allows it)";
    return;
  }
  write_step<training::AdamRule>(call, c, [&] {
    w.text().line("if (n > 0) dr = dr * ({0}(1 - {1}({2}, n)) / (1 - {1}({3}, n)));", sqrt, power, literal(c.beta),
                  literal(c.alpha));
  });
}

template <bool kNesterov>
void write_momentum_as(const Call& call) {
  const Coefficients c = training::coefficients_of(call.node.attributes);
  Text& text = call.writer.text();
  write_step<training::MomentumRule<kNesterov>>(call, c, [&] { text.line("ds = n > 0 ? {} : 1;", literal(c.beta)); });
}

void write_momentum(const Call& call, std::string&) {
  const bool nesterov = call.node.attributes.get_string("mode") == "nesterov";
  nesterov ? write_momentum_as<true>(call) : write_momentum_as<false>(call);
}

constexpr std::string_view kDomain = "ai.onnx.preview.training";
constexpr OperatorRow kRows[] = {
    {"Adagrad", kDomain, write_adagrad}, {"Adam", kDomain, write_adam}, {"Momentum", kDomain, write_momentum}};

}  // namespace

std::span<const OperatorRow> training_operators() {
  return kRows;
}

}  // namespace treadle::c
