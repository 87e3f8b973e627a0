// ConvInteger and QLinearConv (ops/nn/quantized_conv.cc): exact sums of (x - x_zero)(w - w_zero).

#include "c/writer.h"
#include "op/op_def.h"
#include "ops/nn/window.h"

namespace treadle::c {

namespace {

// Input indices; -1: none.
struct Roles {
  int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
};
constexpr Roles kInteger{0, -1, 2, 1, -1, 3, -1, -1, -1};
constexpr Roles kLinear{0, 1, 2, 3, 4, 5, 6, 7, 8};

// saturate(round half to even(sum * scale) + zero), where a NaN and what is out of range become the least number.
std::string requantise_function(Functions& f, ElementType type) {
  const std::string round = f.round_even(ElementType::kFloat);
  const bool is_signed = type == ElementType::kInt8;
  return f.get(fmt::format("requantise_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static {} {}(int32_t sum, float scale, int32_t zero)", stored(type), name);
    text.line("const float scaled = (float)sum * scale, nearest = {}(scaled);", round);
    text.line("const float low = (float)({} - zero), high = (float)({} - zero);", is_signed ? -128 : 0,
              is_signed ? 127 : 255);
    text.line("const float held = nearest > low ? (nearest < high ? nearest : high) : low;");
    text.line("return ({})((int32_t)held + zero);", stored(type));
    text.close();
  });
}

void write_bytes(const Call& call, const Roles& roles, std::string& why) {
  Writer& w = call.writer;
  Text& text = w.text();
  const auto has = [&](int role) { return role >= 0 && call.has_input(static_cast<size_t>(role)); };
  const auto at = [&](int role) { return static_cast<size_t>(role); };
  const Dims x = call.dims(at(roles.x)), weights = call.dims(at(roles.w)), y = call.result_dims();
  const auto shape = nn::conv_shape(call.node.attributes, x, weights, y);
  if (!shape.ok()) {
    why = "its sizes do not fit";
    return;
  }
  const kernels::ConvShape& s = *shape;
  const int64_t filters = s.out_channels / s.groups, channels = s.in_channels / s.groups;
  // One zero point or scale, or one for each output channel.
  const auto parameter = [&](int role, const std::string& otherwise) {
    if (!has(role)) return otherwise;
    int64_t count = 1;
    for (const int64_t size : call.dims(at(role))) count *= size;
    return fmt::format("{}[{}]", call.in(at(role)), count > 1 ? "f" : "0");
  };
  const auto axis = [](int d) { return static_cast<size_t>(d); };
  text.open("for (ptrdiff_t n = 0; n < {}; ++n)", s.batch);
  text.open("for (ptrdiff_t f = 0; f < {}; ++f)", s.out_channels);
  std::string to = fmt::format("n * {} + f", s.out_channels);
  for (int d = 0; d < s.axes; ++d) {
    text.open("for (ptrdiff_t i{0} = 0; i{0} < {1}; ++i{0})", d, s.output[axis(d)]);
    to = fmt::format("({}) * {} + i{}", to, s.output[axis(d)], d);
  }
  text.line("uint32_t sum = 0; /* wraps */");
  text.line("const int32_t x0 = {}, w0 = {};", parameter(roles.x_zero, "0"), parameter(roles.w_zero, "0"));
  text.open("for (ptrdiff_t c = 0; c < {}; ++c)", channels);
  std::string from = s.groups == 1 ? fmt::format("n * {} + c", s.in_channels)
                                   : fmt::format("n * {} + f / {} * {} + c", s.in_channels, filters, channels);
  std::string weight = fmt::format("f * {} + c", channels);
  for (int d = 0; d < s.axes; ++d) {
    const auto i = axis(d);
    text.open("for (ptrdiff_t k{0} = 0; k{0} < {1}; ++k{0})", d, s.kernel[i]);
    text.line("const ptrdiff_t a{0} = i{0} * {1} + k{0} * {2} - {3};", d, s.stride[i], s.dilation[i], s.pad_begin[i]);
    text.line("if (a{0} < 0 || a{0} >= {1}) continue;", d, s.input[i]);
    from = fmt::format("({}) * {} + a{}", from, s.input[i], d);
    weight = fmt::format("({}) * {} + k{}", weight, s.kernel[i], d);
  }
  text.line("sum += (uint32_t)(({}[{}] - x0) * ({}[{}] - w0));", call.in(at(roles.x)), from, call.in(at(roles.w)),
            weight);
  for (int d = 0; d <= s.axes; ++d) text.close();
  if (has(roles.bias)) text.line("sum += (uint32_t){}[f];", call.in(at(roles.bias)));
  if (call.result() == ElementType::kInt32) {
    text.line("{}[{}] = (int32_t)sum;", call.out(), to);
  } else {
    text.line("const float scale = {} * {} / {};", parameter(roles.x_scale, "1"), parameter(roles.w_scale, "1"),
              parameter(roles.y_scale, "1"));
    text.line("{}[{}] = {}((int32_t)sum, scale, {});", call.out(), to,
              requantise_function(w.functions(), call.result()), parameter(roles.y_zero, "0"));
  }
  for (int d = 0; d < s.axes + 2; ++d) text.close();
}

void write_conv_integer(const Call& call, std::string& why) {
  write_bytes(call, kInteger, why);
}
void write_qlinear_conv(const Call& call, std::string& why) {
  write_bytes(call, kLinear, why);
}

constexpr OperatorRow kRows[] = {{"ConvInteger", "", write_conv_integer}, {"QLinearConv", "", write_qlinear_conv}};

}  // namespace

std::span<const OperatorRow> byte_conv_operators() {
  return kRows;
}

}  // namespace treadle::c
