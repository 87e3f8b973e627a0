// Normalisation of rows and channels (ops/norm/, kernels/normalize.cc).

#include <algorithm>

#include "c/sums.h"
#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

using kernels::ElementwiseOp;
using kernels::ReduceOp;

std::string number(ElementType type, double value) {
  return type == ElementType::kDouble ? literal(value) : literal(static_cast<float>(value));
}

// f(x, n, epsilon, squares, mean, inverse): mean and inverse deviation of a row, or with `rms` the inverse of its root
// mean square. `squares`: room for n elements.
std::string moments_function(Functions& f, ElementType type, bool rms) {
  const ElementType compute = wide_type(type);
  const std::string_view t = stored(type), c = stored(compute);
  const std::string sqrt = f.sqrt(ElementType::kDouble), convert = f.convert(type, compute);
  const std::string sum = row_function(f, rms ? ReduceOp::kSumSquare : ReduceOp::kSum, type);
  const std::string centred = rms ? "" : row_function(f, ReduceOp::kSum, compute);
  return f.get(fmt::format("{}_{}", rms ? "root_mean_square" : "moments", suffix(type)), [&](Text& text,
                                                                                             const std::string& name) {
    if (rms) {
      text.open("static {} {}(const {} *x, ptrdiff_t n, double epsilon)", c, name, t);
      text.line("return ({})(1 / {}({}(0, x, n) / (double)n + epsilon));", c, sqrt, sum);
    } else {
      text.line("/* The mean of a row; *inverse becomes the inverse of its deviation. */");
      text.open("static {1} {2}(const {0} *x, ptrdiff_t n, double epsilon, {1} *squares, {1} *inverse)", t, c, name);
      text.line("const {} mean = ({})({}(0, x, n) / (double)n);", c, c, sum);
      text.open("for (ptrdiff_t i = 0; i < n; ++i)");
      text.line("const {} a = {} - mean;", c, convert.empty() ? "x[i]" : convert + "(x[i])");
      text.line("squares[i] = a * a;");
      text.close();
      text.line("*inverse = ({})(1 / {}({}(0, squares, n) / (double)n + epsilon));", c, sqrt, centred);
      text.line("return mean;");
    }
    text.close();
  });
}

// A parameter of rows, repeated to the row's sizes.
std::string repeated(const Call& call, size_t i, const Dims& row) {
  if (!call.has_input(i)) return {};
  Dims dims = call.dims(i);
  if (product(dims, 0, dims.size()) == product(row, 0, row.size())) return call.in(i);
  while (dims.size() > row.size()) dims.erase(0);
  Writer& w = call.writer;
  const ElementType type = call.type(i);
  const std::string name = w.variable(i == 1 ? "scales" : "biases");
  w.text().line("{} *const {} = {};", stored(type), name, room(w, type, product(row, 0, row.size())));
  std::string to, from;
  const size_t missing = row.size() - dims.size();
  for (size_t d = 0; d < row.size(); ++d) {
    w.text().open("for (ptrdiff_t i{0} = 0; i{0} < {1}; ++i{0})", d, row[d]);
    to += fmt::format("{}i{} * {}", to.empty() ? "" : " + ", d, product(row, d + 1, row.size()));
    if (d < missing || dims[d - missing] == 1) continue;
    from += fmt::format("{}i{} * {}", from.empty() ? "" : " + ", d, product(dims, d - missing + 1, dims.size()));
  }
  w.text().line("{}[{}] = {}[{}];", name, to, call.in(i), from.empty() ? "0" : from);
  for (size_t d = 0; d < row.size(); ++d) w.text().close();
  return name;
}

void write_rows(const Call& call, bool rms, std::string&) {
  Writer& w = call.writer;
  Functions& f = w.functions();
  Text& text = w.text();
  const Dims x = call.dims(0);
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = call.node.attributes.get_int("axis", -1);
  if (axis < 0) axis += rank;
  const Dims row(x.begin() + axis, x.end());
  const int64_t n = product(row, 0, row.size()), rows = product(x, 0, static_cast<size_t>(axis));
  const ElementType type = call.type(0), scale_type = call.type(1), compute = wide_type(type);
  const double epsilon = static_cast<double>(call.node.attributes.get_float("epsilon", 1e-5F));
  if (rows * n == 0) return;
  text.open("");
  const std::string scale = repeated(call, 1, row), bias = repeated(call, 2, row);
  const std::string squares = rms ? "" : room(w, compute, n);
  text.open("for (ptrdiff_t r = 0; r < {}; ++r)", rows);
  text.line("const {} *const x = {} + r * {};", stored(type), call.in(0), n);
  text.line("{} *const y = {} + r * {};", stored(call.result()), call.out(), n);
  const std::string moments = moments_function(f, type, rms);
  if (rms) {
    text.line("const {} inverse = {}(x, {}, {});", stored(compute), moments, n, literal(epsilon));
  } else {
    text.line("{} inverse;", stored(compute));
    text.line("const {} mean = {}(x, {}, {}, {}, &inverse);", stored(compute), moments, n, literal(epsilon), squares);
  }
  // Parameters of a type narrower than that of the sums: the result is rounded to it after every operation.
  const bool direct = type == compute && scale_type == type;
  const auto rounded = [&](const std::string& a) {
    return direct ? a : w.converted(scale_type, compute, w.converted(compute, scale_type, a));
  };
  const auto read = [&](const std::string& from) { return w.converted(scale_type, compute, from + "[i]"); };
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", n);
  text.line("const {} x_i = {};", stored(compute), w.converted(type, compute, "x[i]"));
  // The kernel takes the mean off a row without one as well: 0.
  text.line("{} a = {} * inverse;", stored(compute), rms ? "x_i" : "(x_i - mean)");
  if (!direct) text.line("a = {};", rounded("a"));
  if (!scale.empty()) text.line("a = {};", rounded("(a * " + read(scale) + ")"));
  if (!bias.empty()) text.line("a = a + {};", read(bias));
  text.line("y[i] = {};", w.converted(compute, scale_type, "a"));
  text.close();
  for (size_t k = rms ? 1 : 0; k < 2; ++k) {
    const size_t output = 1 + k - (rms ? 1 : 0);
    if (!call.has_output(output)) continue;
    text.line("{}[r] = {};", call.out(output), w.converted(compute, call.result(output), k == 0 ? "mean" : "inverse"));
  }
  text.close();
  text.close();
}

void write_layer(const Call& call, std::string& why) {
  write_rows(call, false, why);
}
void write_rms(const Call& call, std::string& why) {
  write_rows(call, true, why);
}

// y = alpha x + beta as kernels/norm/channels.h computes it: rounded twice where channels are neighbours.
std::string affine(Functions& f, ElementType type, int64_t inner, const std::string& x, const std::string& alpha,
                   const std::string& beta) {
  if (inner == 1) {
    const std::string plain =
        f.get(fmt::format("scale_and_shift_{}", suffix(type)), [&](Text& text, const std::string& name) {
          text.open("static inline {0} {1}({0} x, {0} alpha, {0} beta)", stored(type), name);
          text.line("const {} scaled = x * alpha;", stored(type));
          text.line("return scaled + beta;");
          text.close();
        });
    return fmt::format("{}({}, {}, {})", plain, x, alpha, beta);
  }
  return fmt::format("{}({}, {}, {})", f.operation(ElementwiseOp::kAffine, type), x, alpha, beta);
}

// `groups` rows an image, parameters for each of `channels` equal parts.
void write_groups(const Call& call, int64_t groups, int64_t channels) {
  Writer& w = call.writer;
  Functions& f = w.functions();
  Text& text = w.text();
  const Dims x = call.dims(0);
  const int64_t batch = x[0], image = product(x, 1, x.size());
  if (batch * image == 0) return;
  const int64_t n = image / groups, inner = image / channels, rows = batch * groups;
  const ElementType type = call.type(0), compute = wide_type(type);
  const double epsilon = static_cast<double>(call.node.attributes.get_float("epsilon", 1e-5F));
  text.open("");
  const std::string scale = operand(call, 1, compute, "scales"), bias = operand(call, 2, compute, "biases");
  text.open("for (ptrdiff_t r = 0; r < {}; ++r)", rows);
  text.line("const {} *const x = {} + r * {};", stored(type), call.in(0), n);
  text.line("{} *const y = {} + r * {};", stored(type), call.out(), n);
  text.line("{} inverse;", stored(compute));
  text.line("const {} mean = {}(x, {}, {}, {}, &inverse);", stored(compute), moments_function(f, type, false), n,
            literal(epsilon), room(w, compute, n));
  // Parts of a row, or rows of a part
  const std::string_view c = stored(compute);
  const auto element = [&](const std::string& channel) {
    text.line("const {} a = ({} - mean) * inverse;", c, w.converted(type, compute, "x[i]"));
    text.line("y[i] = {};",
              w.converted(compute, type,
                          affine(f, compute, inner, "a", scale + "[" + channel + "]", bias + "[" + channel + "]")));
  };
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", n);
  if (channels == groups) {
    element(fmt::format("r % {}", channels));
  } else {
    element(fmt::format("(r % {} * {} + i) / {}", groups, n, inner));
  }
  text.close();
  text.close();
  text.close();
}

void write_instance(const Call& call, std::string&) {
  const int64_t channels = call.dims(0)[1];
  write_groups(call, channels, channels);
}

void write_group(const Call& call, std::string&) {
  const int64_t groups = call.node.attributes.get_int("num_groups");
  write_groups(call, groups, call.node.version->since < 21 ? groups : call.dims(0)[1]);
}

void write_batch(const Call& call, std::string&) {
  Writer& w = call.writer;
  Functions& f = w.functions();
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const Dims x = call.dims(0);
  const bool trains =
      call.node.version->since >= 14 ? attributes.get_int("training_mode") != 0 : call.node.outputs.size() > 1;
  const bool spatial = attributes.get_int("spatial", 1) != 0;
  const size_t last = x.size() < 2 ? 1 : spatial ? 2 : x.size();
  const int64_t batch = x[0], channels = x.size() < 2 ? 1 : product(x, 1, last),
                inner = product(x, std::min(last, x.size()), x.size());
  if (batch * channels * inner == 0) return;
  const ElementType type = call.type(0), compute = wide_type(type);
  const std::string_view c = stored(compute);
  const double epsilon = static_cast<double>(attributes.get_float("epsilon", 1e-5F)),
               momentum = static_cast<double>(attributes.get_float("momentum", 0.9F));
  text.open("");
  const std::string scale = operand(call, 1, compute, "scales"), bias = operand(call, 2, compute, "biases"),
                    mean = operand(call, 3, compute, "means"), variance = operand(call, 4, compute, "variances");
  text.open("for (ptrdiff_t c = 0; c < {}; ++c)", channels);
  text.line("{} mean = {}[c], variance = {}[c];", c, mean, variance);
  const auto sum = [&](const char* name, const char* term) {
    text.line("double {} = 0;", name);
    text.open("for (ptrdiff_t n = 0; n < {}; ++n)", batch);
    text.open("for (ptrdiff_t i = 0; i < {}; ++i)", inner);
    text.line("const double a = (double){};",
              w.converted(type, compute, fmt::format("{}[(n * {} + c) * {} + i]", call.in(0), channels, inner)));
    text.line("{} += {};", name, term);
    text.close();
    text.close();
    text.line("{} /= {}.0;", name, batch * inner);
  };
  if (trains) {
    text.open("");
    sum("own_mean", "a");
    sum("own_variance", "(a - own_mean) * (a - own_mean)");
    for (size_t k = 0; k < 4; ++k) {
      if (!call.has_output(1 + k)) continue;
      const char *own = k % 2 == 0 ? "own_mean" : "own_variance", *before = k % 2 == 0 ? "mean" : "variance";
      const std::string batch_value = fmt::format("(double)({}){}", c, own);
      const std::string value = k >= 2 ? batch_value
                                       : fmt::format("(double){} * {} + {} * {}", before, literal(momentum),
                                                     batch_value, literal(1 - momentum));
      text.line("{}[c] = {};", call.out(1 + k),
                w.converted(compute, call.result(1 + k), fmt::format("({})({})", c, value)));
    }
    text.line("mean = ({})own_mean;", c);
    text.line("variance = ({})own_variance;", c);
    text.close();
  }
  text.line("const double scale = (double){}[c] / {}((double)variance + {});", scale, f.sqrt(ElementType::kDouble),
            literal(epsilon));
  text.line("const {0} alpha = ({0})scale, beta = ({0})((double){1}[c] - (double)mean * scale);", c, bias);
  text.open("for (ptrdiff_t n = 0; n < {}; ++n)", batch);
  text.line("const {} *const x = {} + (n * {} + c) * {};", stored(type), call.in(0), channels, inner);
  text.line("{} *const y = {} + (n * {} + c) * {};", stored(type), call.out(), channels, inner);
  text.line("for (ptrdiff_t i = 0; i < {}; ++i) y[i] = {};", inner,
            w.converted(compute, type, affine(f, compute, inner, w.converted(type, compute, "x[i]"), "alpha", "beta")));
  text.close();
  text.close();
  text.close();
}

// x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta
void write_lrn(const Call& call, std::string& why) {
  Writer& w = call.writer;
  Functions& f = w.functions();
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const Dims x = call.dims(0);
  const int64_t size = attributes.get_int("size"), before = (size - 1) / 2, after = size - 1 - before;
  const int64_t batch = x[0], channels = x[1], inner = product(x, 2, x.size());
  const double exponent = -static_cast<double>(attributes.get_float("beta", 0.75F));
  const ElementType type = call.type(0), compute = wide_type(type);
  const std::string_view c = stored(compute);
  const std::string power = f.operation(ElementwiseOp::kPow, compute);
  if (power.empty()) why = "powers of its elements are the C library's (libm allows it)";
  if (!why.empty() || batch * channels * inner == 0) return;
  const double scale = static_cast<double>(attributes.get_float("alpha", 1e-4F)) / static_cast<double>(size),
               bias = static_cast<double>(attributes.get_float("bias", 1));
  text.open("for (ptrdiff_t n = 0; n < {}; ++n)", batch);
  text.line("const {} *const x = {} + n * {};", stored(type), call.in(0), channels * inner);
  text.line("{} *const y = {} + n * {};", stored(type), call.out(), channels * inner);
  text.open("for (ptrdiff_t c = 0; c < {}; ++c)", channels);
  text.line("const ptrdiff_t first = c > {0} ? c - {0} : 0, last = c + {1} < {2} ? c + {1} : {2};", before, after,
            channels - 1);
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", inner);
  text.line("{} sum = 0, scaled;", c);
  text.open("for (ptrdiff_t k = first; k <= last; ++k)");
  text.line("const {} a = {};", c, w.converted(type, compute, fmt::format("x[k * {} + i]", inner)));
  text.line("const {} square = a * a;", c);
  text.line("sum = k == first ? square : sum + square;");
  text.close();
  text.line("scaled = {}(sum, {}, {});", f.operation(ElementwiseOp::kAffine, compute), number(compute, scale),
            number(compute, bias));
  const std::string at = fmt::format("c * {} + i", inner);
  text.line("scaled = {}(scaled, {});", power, number(compute, exponent));
  text.line(
      "y[{}] = {};", at,
      w.converted(compute, type, fmt::format("scaled * {}", w.converted(type, compute, fmt::format("x[{}]", at)))));
  text.close();
  text.close();
  text.close();
}

constexpr OperatorRow kRows[] = {
    {"LayerNormalization", "", write_layer},
    {"RMSNormalization", "", write_rms},
    {"BatchNormalization", "", write_batch},
    {"SimplifiedLayerNormalization", "", write_rms},
    {"GroupNormalization", "", write_group},
    {"InstanceNormalization", "", write_instance},
    {"LRN", "", write_lrn},
};

}  // namespace

std::span<const OperatorRow> norm_operators() {
  return kRows;
}

}  // namespace treadle::c
