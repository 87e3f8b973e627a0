// The parts of recurrences behind their products: RnnCell, LstmCell, GruCell, GruGates, GruUpdate (ops/rnn/cells.cc).

#include "c/values.h"
#include "c/writer.h"
#include "kernels/recurrent_cells.h"
#include "op/op_def.h"
#include "ops/rnn/activation.h"

namespace treadle::c {

namespace {

using kernels::ElementwiseOp;

// The functions of cells whose attributes have their defaults (kernels/recurrent_cells.h).
template <class T>
struct Definitions {
  using V = Value<T>;
  static V v(const char* name) { return V::of(name); }

  static std::string tanh_over(Functions& f) {
    return write_function(f, "tanh_over", element_of<T>(), {"a", "divisor"},
                          [] { return std::string(kernels::cells::tanh_over(v("a"), v("divisor")).v); });
  }
  static std::string sigmoid_divisor(Functions& f) {
    return write_function(f, "sigmoid_divisor", element_of<T>(), {"a"},
                          [] { return std::string(kernels::math::sigmoid_divisor(v("a")).v); });
  }
  static std::string lstm_state(Functions& f) {
    return write_function(f, "lstm_state", element_of<T>(), {"forget", "c", "added"},
                          [] { return std::string(kernels::cells::lstm_state(v("forget"), v("c"), v("added")).v); });
  }
  static std::string gru_candidate(Functions& f) {
    return write_function(f, "gru_candidate", element_of<T>(), {"reset", "u", "a"},
                          [] { return std::string(kernels::cells::gru_candidate(v("reset"), v("u"), v("a")).v); });
  }
  static std::string gru_state(Functions& f) {
    return write_function(f, "gru_state", element_of<T>(), {"candidate", "divisor", "h"}, [] {
      return std::string(kernels::cells::gru_state(v("candidate"), v("divisor"), v("h")).v);
    });
  }
  static std::string blend(Functions& f) {
    return write_function(f, "blend", element_of<T>(), {"z", "candidate", "h"},
                          [] { return std::string(kernels::cells::blend(v("z"), v("candidate"), v("h")).v); });
  }
};

class Cell {
 public:
  explicit Cell(const Call& call)
      : call_(call),
        w_(call.writer),
        stored_(call.has_output(0) ? call.result(0) : call.result(1)),
        compute_(wide_type(stored_)),
        activations_(rnn::from_attributes(call.node.attributes)),
        clips_(call.node.attributes.has("clip")),
        clip_(call.node.attributes.get_float("clip")) {
    const Dims dims = call.has_output(0) ? call.result_dims(0) : call.result_dims(1);
    batch_ = dims[0], hidden_ = dims[1];
    constexpr ElementwiseOp kDefaults[] = {ElementwiseOp::kSigmoid, ElementwiseOp::kTanh, ElementwiseOp::kTanh};
    is_default_ = !clips_ && !input_forget();
    for (size_t i = 0; i < activations_.size() && i < 3; ++i) is_default_ &= activations_[i].op == kDefaults[i];
  }

  bool input_forget() const { return call_.node.attributes.get_int("input_forget") != 0; }
  bool is_default() const { return is_default_; }
  bool is_double() const { return compute_ == ElementType::kDouble; }
  Functions& functions() const { return w_.functions(); }
  Text& text() const { return w_.text(); }

  // Loops over entries and lanes around `body`.
  template <class Body>
  void lanes(Body&& body) const {
    if (batch_ > 1) text().open("for (ptrdiff_t b = 0; b < {}; ++b)", batch_);
    text().line("{}_INDEPENDENT", functions().upper_prefix());
    text().open("for (ptrdiff_t k = 0; k < {}; ++k)", hidden_);
    body();
    text().close();
    if (batch_ > 1) text().close();
  }
  // const T name = element k of part `part` of `parts` of operand `input`, in the compute type.
  void load(const char* name, size_t input, int64_t part, int64_t parts, bool each_entry = true) const {
    std::string at = "k";
    if (batch_ > 1 && each_entry) at = fmt::format("b * {} + k", parts * hidden_);
    if (part > 0) at += fmt::format(" + {}", part * hidden_);
    text().line("const {} {} = {};", stored(compute_), name,
                w_.converted(call_.type(input), compute_, fmt::format("{}[{}]", call_.in(input), at)));
  }
  void let(const char* name, const std::string& expression) const {
    text().line("const {} {} = {};", stored(compute_), name, expression);
  }
  void store(size_t output, const std::string& value) const {
    if (!call_.has_output(output)) return;
    const std::string at = batch_ > 1 ? fmt::format("b * {} + k", hidden_) : "k";
    text().line("{}[{}] = {};", call_.out(output), at, w_.converted(compute_, stored_, value));
  }
  // Activation i of x, which is clipped before.
  std::string activate(size_t i, std::string x) const {
    const auto& a = activations_[i];
    if (clips_) {
      const std::string limit = is_double() ? literal(static_cast<double>(clip_)) : literal(clip_);
      x = fmt::format("{}({}, -{}, {})", functions().operation(ElementwiseOp::kClip, compute_), x, limit, limit);
    }
    std::string list = x;
    if (Functions::has_parameters(a.op, compute_)) {
      for (const float p : {a.alpha, a.beta})
        list += ", " + (is_double() ? literal(static_cast<double>(p)) : literal(p));
    }
    return fmt::format("{}({})", functions().operation(a.op, compute_), list);
  }
  // f<float> or f<double>
  template <class Float, class Double>
  std::string defined(Float f, Double d) const {
    return is_double() ? d(functions()) : f(functions());
  }
  std::string one() const { return is_double() ? "1.0" : "1.0f"; }
  int64_t hidden() const { return hidden_; }
  int64_t batch() const { return batch_; }

 private:
  const Call& call_;
  Writer& w_;
  ElementType stored_, compute_;
  std::vector<rnn::Activation> activations_;
  bool clips_;
  float clip_;
  bool is_default_ = false;
  int64_t batch_ = 1, hidden_ = 1;
};

#define TREADLE_DEFINED(cell, name) (cell).defined(Definitions<float>::name, Definitions<double>::name)

void write_rnn(const Call& call, std::string&) {
  const Cell cell(call);
  cell.lanes([&] {
    cell.load("g", 0, 0, 1);
    cell.store(0, cell.activate(0, "g"));
  });
}

void write_lstm(const Call& call, std::string&) {
  const Cell cell(call);
  const bool peepholes = call.has_input(2), lengths = call.has_input(3);
  cell.lanes([&] {
    cell.load("c", 1, 0, 1);
    if (lengths) {
      const std::string within = call.in(3);
      cell.text().open("if (!{}[{}])", within, cell.batch() > 1 ? "b" : "0");
      cell.store(0, "0");
      cell.store(1, "c");
      cell.text().line("continue;");
      cell.text().close();
    }
    cell.load("gi", 0, 0, 4);
    cell.load("go", 0, 1, 4);
    cell.load("gf", 0, 2, 4);
    cell.load("gc", 0, 3, 4);
    if (cell.is_default() && !peepholes) {
      const std::string over = TREADLE_DEFINED(cell, tanh_over), divisor = TREADLE_DEFINED(cell, sigmoid_divisor);
      cell.let("added", fmt::format("{}(gc, {}(gi))", over, divisor));
      cell.let("state", fmt::format("{}(gf, c, added)", TREADLE_DEFINED(cell, lstm_state)));
      cell.let("h", fmt::format("{}(state, {}(go))", over, divisor));
    } else {
      if (peepholes) {
        cell.load("pi", 2, 0, 3, false);
        cell.load("po", 2, 1, 3, false);
        cell.load("pf", 2, 2, 3, false);
        cell.let("pic", "pi * c");
        cell.let("pfc", "pf * c");
        cell.let("xi", "pic + gi");
        cell.let("xf", "pfc + gf");
      }
      cell.let("input", cell.activate(0, peepholes ? "xi" : "gi"));
      cell.let("candidate", cell.activate(1, "gc"));
      cell.let("forget", cell.input_forget() ? cell.one() + " - input" : cell.activate(0, peepholes ? "xf" : "gf"));
      if (cell.input_forget()) {
        cell.text().line("(void)gf;");
        if (peepholes) cell.text().line("(void)xf;");
      }
      cell.let("kept", "forget * c");
      cell.let("added", "input * candidate");
      cell.let("state", "kept + added");
      if (peepholes) {
        cell.let("poc", "po * state");
        cell.let("xo", "poc + go");
      }
      cell.let("output", cell.activate(0, peepholes ? "xo" : "go"));
      cell.let("shown", cell.activate(2, "state"));
      // The activation of the state is not clipped.
      cell.let("h", "output * shown");
    }
    cell.store(1, "state");
    cell.store(0, "h");
    if (!call.has_output(0)) cell.text().line("(void)h;");
  });
}

void write_gru(const Call& call, std::string&) {
  const Cell cell(call);
  cell.lanes([&] {
    cell.load("xz", 0, 0, 3);
    cell.load("xr", 0, 1, 3);
    cell.load("xh", 0, 2, 3);
    cell.load("uz", 1, 0, 3);
    cell.load("ur", 1, 1, 3);
    cell.load("uh", 1, 2, 3);
    cell.load("h", 2, 0, 1);
    cell.let("gz", "xz + uz");
    cell.let("gr", "xr + ur");
    if (cell.is_default()) {
      cell.let("candidate", fmt::format("{}(gr, uh, xh)", TREADLE_DEFINED(cell, gru_candidate)));
      cell.let("state", fmt::format("{}(candidate, {}(gz), h)", TREADLE_DEFINED(cell, gru_state),
                                    TREADLE_DEFINED(cell, sigmoid_divisor)));
    } else {
      cell.let("z", cell.activate(0, "gz"));
      cell.let("reset", cell.activate(0, "gr"));
      cell.let("ru", "reset * uh");
      cell.let("gh", "ru + xh");
      cell.let("candidate", cell.activate(1, "gh"));
      cell.let("state", fmt::format("{}(z, candidate, h)", TREADLE_DEFINED(cell, blend)));
    }
    cell.store(0, "state");
  });
}

void write_gru_gates(const Call& call, std::string&) {
  const Cell cell(call);
  cell.lanes([&] {
    cell.load("gz", 0, 0, 2);
    cell.load("gr", 0, 1, 2);
    cell.load("h", 1, 0, 1);
    if (cell.is_default()) {
      cell.let("z", fmt::format("{}(gz)", cell.functions().operation(
                                              ElementwiseOp::kSigmoid,
                                              cell.is_double() ? ElementType::kDouble : ElementType::kFloat)));
      cell.let("rh", fmt::format("h / {}(gr)", TREADLE_DEFINED(cell, sigmoid_divisor)));
    } else {
      cell.let("z", cell.activate(0, "gz"));
      cell.let("reset", cell.activate(0, "gr"));
      cell.let("rh", "reset * h");
    }
    cell.store(0, "z");
    cell.store(1, "rh");
  });
}

void write_gru_update(const Call& call, std::string&) {
  const Cell cell(call);
  cell.lanes([&] {
    cell.load("g", 0, 0, 1);
    cell.load("z", 1, 0, 1);
    cell.load("h", 2, 0, 1);
    cell.let("candidate", cell.activate(1, "g"));
    cell.let("state", fmt::format("{}(z, candidate, h)", TREADLE_DEFINED(cell, blend)));
    cell.store(0, "state");
  });
}

constexpr OperatorRow kRows[] = {
    {"RnnCell", "treadle", write_rnn},          {"LstmCell", "treadle", write_lstm},
    {"GruCell", "treadle", write_gru},          {"GruGates", "treadle", write_gru_gates},
    {"GruUpdate", "treadle", write_gru_update},
};

}  // namespace

std::span<const OperatorRow> cell_operators() {
  return kRows;
}

}  // namespace treadle::c
