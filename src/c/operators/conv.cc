// Conv, ConvTranspose and their fused forms (ops/nn/conv.cc, ops/nn/conv_transpose.cc). The products of an output are
// added in the order of the method that the engine takes for the shape (kernels/isa/conv/method.h).
//
// Most convolutions are products of the filters and a matrix of patches, of some output positions at a time. A patch is
// what the window reads at one position. Its elements have the order in which products are added, with zeros where the
// window reads padding.

#include <algorithm>
#include <cstring>
#include <optional>

#include "c/sums.h"
#include "c/writer.h"
#include "kernels/conv_costs.h"
#include "kernels/conv_folded.h"
#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "op/op_def.h"
#include "ops/nn/window.h"

namespace treadle::c {

namespace {

using kernels::ConvShape;

// kernels/isa/conv/method.h, by the numbers of ConvCost::order.
enum Order : int { kWeights, kTaps, kColumns, kDots, kOutputs };

enum Input : size_t { kX, kW, kB, kAddend };

ComputeType compute_of(ElementType type) {
  return type == ElementType::kDouble ? ComputeType::kF64 : ComputeType::kF32;
}

int64_t product_of(const kernels::Spatial& sizes, int axes) {
  int64_t product = 1;
  for (int i = 0; i < axes; ++i) product *= sizes[static_cast<size_t>(i)];
  return product;
}

// One axis of a window as the functions in C take it. The tap t reads at output position o the element
// (o * stride + t * dilation + start) / spread of the input, if the division leaves no rest and the input has it.
std::string axis_type(Functions& f) {
  return f.get("axis", [](Text& text, const std::string& name) {
    text.line("/* Tap t of a window reads element (o * stride + t * dilation + start) / spread at output o. */");
    text.line("typedef struct {{ ptrdiff_t in, out, kernel, stride, dilation, start, spread; }} {};", name);
  });
}

// f(x, channels, channel_step, step, axes, axis_count, taps, tap_row, channel_row, first, count, width, to): the
// patches of `count` output positions as the columns of `to`, whose rows are `width` apart.
std::string patches_function(Functions& f, ElementType type, bool spreads) {
  const std::string axis = axis_type(f);
  const std::string_view t = stored(type);
  return f.get(fmt::format("{}patches_{}", spreads ? "spread_" : "", suffix(type)), [&](Text& text,
                                                                                        const std::string& name) {
    text.line("/* The element of tap k and channel c at position `first` + i is to[(k * tap_row + c * channel_row) *");
    text.line("   width + i]. Channels of x are channel_step apart, its positions `step`. */");
    text.open(
        "static void {0}(const {1} *restrict x, ptrdiff_t channels, ptrdiff_t channel_step, ptrdiff_t step, "
        "const {2} *axes, int axis_count, ptrdiff_t taps, ptrdiff_t tap_row, ptrdiff_t channel_row, ptrdiff_t first, "
        "ptrdiff_t count, ptrdiff_t width, {1} *restrict to)",
        name, t, axis);
    text.line("const {} last = axes[axis_count - 1];", axis);
    text.open("for (ptrdiff_t tap = 0; tap < taps; ++tap)");
    text.line("ptrdiff_t n;");
    text.open("for (ptrdiff_t i = 0; i < count; i += n)");
    text.line("/* n neighbours in a row of results */");
    text.line("const ptrdiff_t column = (first + i) % last.out;");
    text.line("ptrdiff_t position = (first + i) / last.out, t = tap / last.kernel, base = 0, size = last.in;");
    text.line("int is_inside = 1;");
    text.line("n = last.out - column < count - i ? last.out - column : count - i;");
    text.open("for (int d = axis_count - 2; d >= 0; --d)");
    text.line(
        "ptrdiff_t at = position % axes[d].out * axes[d].stride + t % axes[d].kernel * axes[d].dilation + "
        "axes[d].start;");
    if (spreads) {
      text.line("if (at % axes[d].spread != 0) is_inside = 0;");
      text.line("at /= axes[d].spread;");
    }
    text.line("if (at < 0 || at >= axes[d].in) is_inside = 0;");
    text.line("base += at * size;");
    text.line("size *= axes[d].in;");
    text.line("position /= axes[d].out;");
    text.line("t /= axes[d].kernel;");
    text.close();
    text.line("const ptrdiff_t start = column * last.stride + tap % last.kernel * last.dilation + last.start;");
    if (spreads) {
      text.open("for (ptrdiff_t c = 0; c < channels; ++c)");
      text.line("{} *row = to + (tap * tap_row + c * channel_row) * width + i;", t);
      text.open("for (ptrdiff_t j = 0; j < n; ++j)");
      text.line("const ptrdiff_t at = start + j * last.stride, from = at / last.spread;");
      text.line("const int reads = is_inside && at >= 0 && at % last.spread == 0 && from < last.in;");
      text.line("row[j] = reads ? x[c * channel_step + (base + from) * step] : 0;");
      text.close();
      text.close();
    } else {
      text.line("/* of which those from `low` to `high` read the input */");
      text.line("ptrdiff_t low = n, high = n;");
      text.open("if (is_inside)");
      text.line("low = start >= 0 ? 0 : (last.stride - 1 - start) / last.stride;");
      text.line("high = start >= last.in ? 0 : (last.in - 1 - start) / last.stride + 1;");
      text.line("if (high > n) high = n;");
      text.line("if (low > n) low = n;");
      text.line("if (high < low) high = low;");
      text.close();
      text.open("for (ptrdiff_t c = 0; c < channels; ++c)");
      text.line("{} *row = to + (tap * tap_row + c * channel_row) * width + i;", t);
      text.line("const ptrdiff_t from = c * channel_step + (base + start) * step, apart = last.stride * step;");
      text.line("for (ptrdiff_t j = 0; j < low; ++j) row[j] = 0;");
      text.line("if (apart == 1)");
      text.line("  for (ptrdiff_t j = low; j < high; ++j) row[j] = x[from + j];");
      text.line("else");
      text.line("  for (ptrdiff_t j = low; j < high; ++j) row[j] = x[from + j * apart];");
      text.line("for (ptrdiff_t j = high; j < n; ++j) row[j] = 0;");
      text.close();
    }
    text.close();
    text.close();
    text.close();
  });
}

// f(sums, rows, row, columns, bias, addend, low, high, y, y_row, y_column): what is left to do with sums.
std::string finish_function(Functions& f, ElementType type) {
  const std::string_view t = stored(type);
  return f.get(fmt::format("finish_sums_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.line("/* Adds the bias of each row and the addend, cuts off at `low` and `high`. */");
    text.open(
        "static void {0}(const {1} *sums, ptrdiff_t rows, ptrdiff_t row, ptrdiff_t columns, const {1} *bias, "
        "const {1} *addend, {1} low, {1} high, {1} *y, ptrdiff_t y_row, ptrdiff_t y_column)",
        name, t);
    text.open("for (ptrdiff_t r = 0; r < rows; ++r)");
    text.open("for (ptrdiff_t i = 0; i < columns; ++i)");
    text.line("const ptrdiff_t at = r * y_row + i * y_column;");
    text.line("{} sum = sums[r * row + i];", t);
    text.line("if (bias != NULL) sum += bias[r];");
    text.line("if (addend != NULL) sum += addend[at];");
    text.line("y[at] = sum < low ? low : sum > high ? high : sum;");
    text.close();
    text.close();
    text.close();
  });
}

// f(x, step, channels, y, ...): see the comments that it writes.
std::string planes_function(Functions& f, ElementType type, bool by_columns) {
  const std::string_view t = stored(type);
  const std::string axis = axis_type(f);
  const std::string fused = f.fuses() ? f.multiply_add(type) : "";
  const int lanes = 2 * f.lanes(type);
  return f.get(fmt::format("depthwise_{}{}", by_columns ? "columns_" : "", suffix(type)), [&](Text& text,
                                                                                              const std::string& name) {
    text.line(
        "/* One plane with a filter of its own. `padded` holds the plane with its padding, its rows `pitch` apart,");
    text.line("   and whole vectors behind the last position. */");
    text.open(
        "static void {0}(const {1} *restrict x, const {2} *axes, const {1} *restrict w, const {1} *bias, "
        "const {1} *addend, {1} low, {1} high, {1} *restrict padded, ptrdiff_t pitch, {1} *y)",
        name, t, axis);
    text.line("const {0} down = axes[0], across = axes[1];", axis);
    text.line("/* the input begins at this row and column of the padded plane; cropped if negative */");
    text.line("const ptrdiff_t top = -down.start, left = -across.start;");
    text.line("const ptrdiff_t rows = (down.out - 1) * down.stride + (down.kernel - 1) * down.dilation + 1;");
    text.open("for (ptrdiff_t r = 0; r < rows; ++r)");
    text.line("{} *row = padded + r * pitch;", t);
    text.line("const ptrdiff_t from = r - top;");
    text.line("const int is_inside = from >= 0 && from < down.in;");
    text.line("ptrdiff_t begin = left > 0 ? left : 0, end = left + across.in;");
    text.line("if (end > pitch) end = pitch;");
    text.line("if (!is_inside || end < begin) begin = end = pitch;");
    text.line("for (ptrdiff_t i = 0; i < begin; ++i) row[i] = 0;");
    text.line("for (ptrdiff_t i = begin; i < end; ++i) row[i] = x[from * across.in + i - left];");
    text.line("for (ptrdiff_t i = end; i < pitch; ++i) row[i] = 0;");
    text.close();
    text.open("for (ptrdiff_t r = 0; r < down.out; ++r)");
    text.open("for (ptrdiff_t i = 0; i < across.out; i += {})", lanes);
    text.line("const {} *window = padded + r * down.stride * pitch + i * across.stride;", t);
    text.line("const ptrdiff_t left_over = across.out - i, n = left_over < {0} ? left_over : {0};", lanes);
    text.line("{} s[{}] = {{0}};", t, lanes);
    const auto column = [&] { text.open("for (ptrdiff_t kx = 0; kx < across.kernel; ++kx)"); };
    const auto line = [&] { text.open("for (ptrdiff_t ky = 0; ky < down.kernel; ++ky)"); };
    by_columns ? column() : line();
    by_columns ? line() : column();
    text.line("const {} factor = w[ky * across.kernel + kx];", t);
    text.line("const {} *from = window + ky * down.dilation * pitch + kx * across.dilation;", t);
    const auto add = [&](const char* at) {
      text.open("for (int l = 0; l < {}; ++l)", lanes);
      if (fused.empty()) {
        text.line("const {} wx = factor * from[{}];", t, at);
        text.line("s[l] = s[l] + wx;");
      } else {
        text.line("s[l] = {}(factor, from[{}], s[l]);", fused, at);
      }
      text.close();
    };
    text.open("if (across.stride == 1)");
    add("l");
    text.otherwise();
    add("l * across.stride");
    text.close();
    text.close();
    text.close();
    text.open("for (ptrdiff_t l = 0; l < n; ++l)");
    text.line("const ptrdiff_t at = r * across.out + i + l;");
    text.line("{} sum = s[l];", t);
    text.line("if (bias != NULL) sum += *bias;");
    text.line("if (addend != NULL) sum += addend[at];");
    text.line("y[at] = sum < low ? low : sum > high ? high : sum;");
    text.close();
    text.close();
    text.close();
    text.close();
  });
}

// The same with channels last: [positions, channels], filters [taps, channels].
std::string last_planes_function(Functions& f, ElementType type, bool by_columns) {
  const std::string_view t = stored(type);
  const std::string axis = axis_type(f);
  const std::string fused = f.fuses() ? f.multiply_add(type) : "";
  const int wide = 2 * f.lanes(type);
  const auto some = [&](int lanes) {
    return f.get(fmt::format("depthwise_last_{}{}x_{}", by_columns ? "columns_" : "", lanes, suffix(type)),
                 [&](Text& text, const std::string& name) {
                   text.line("/* {} channels of one position. */", lanes);
                   text.open(
                       "static inline void {0}(const {1} *restrict x, const {1} *restrict w, const {1} *bias, "
                       "const {1} *addend, {1} low, {1} high, {1} *y, ptrdiff_t channels, ptrdiff_t rows, "
                       "ptrdiff_t columns, ptrdiff_t x_down, ptrdiff_t x_across, ptrdiff_t w_down)",
                       name, t);
                   text.line("{} s[{}] = {{0}};", t, lanes);
                   const auto column = [&] { text.open("for (ptrdiff_t kx = 0; kx < columns; ++kx)"); };
                   const auto line = [&] { text.open("for (ptrdiff_t ky = 0; ky < rows; ++ky)"); };
                   by_columns ? column() : line();
                   by_columns ? line() : column();
                   text.line("const {} *from = x + ky * x_down + kx * x_across;", t);
                   text.line("const {} *factors = w + ky * w_down + kx * channels;", t);
                   text.open("for (int l = 0; l < {}; ++l)", lanes);
                   if (fused.empty()) {
                     text.line("const {} wx = factors[l] * from[l];", t);
                     text.line("s[l] = s[l] + wx;");
                   } else {
                     text.line("s[l] = {}(factors[l], from[l], s[l]);", fused);
                   }
                   text.close();
                   text.close();
                   text.close();
                   text.open("for (int l = 0; l < {}; ++l)", lanes);
                   text.line("{} sum = s[l];", t);
                   text.line("if (bias != NULL) sum += bias[l];");
                   text.line("if (addend != NULL) sum += addend[l];");
                   text.line("y[l] = sum < low ? low : sum > high ? high : sum;");
                   text.close();
                   text.close();
                 });
  };
  const std::string parts[] = {some(wide), some(1)};
  return f.get(fmt::format("depthwise_last_{}{}", by_columns ? "columns_" : "", suffix(type)), [&](Text& text,
                                                                                                   const std::string&
                                                                                                       name) {
    text.line("/* Each channel with a filter of its own. x and y: [positions, channels], w: [taps, channels]. */");
    text.open(
        "static void {0}(const {1} *restrict x, const {2} *axes, ptrdiff_t channels, const {1} *restrict w, "
        "const {1} *bias, const {1} *addend, {1} low, {1} high, {1} *y)",
        name, t, axis);
    text.line("const {0} down = axes[0], across = axes[1];", axis);
    text.line("const ptrdiff_t x_down = down.dilation * across.in * channels, x_across = across.dilation * channels;");
    text.line("const ptrdiff_t w_down = across.kernel * channels;");
    text.open("for (ptrdiff_t r = 0; r < down.out; ++r)");
    text.open("for (ptrdiff_t q = 0; q < across.out; ++q)");
    text.line("/* the taps that read the input */");
    text.line("const ptrdiff_t row = r * down.stride + down.start, column = q * across.stride + across.start;");
    text.line("ptrdiff_t top = 0, bottom = down.kernel, left = 0, right = across.kernel, c = 0;");
    text.line("while (top < bottom && row + top * down.dilation < 0) ++top;");
    text.line("while (bottom > top && row + (bottom - 1) * down.dilation >= down.in) --bottom;");
    text.line("while (left < right && column + left * across.dilation < 0) ++left;");
    text.line("while (right > left && column + (right - 1) * across.dilation >= across.in) --right;");
    text.line("const ptrdiff_t from = ((row + top * down.dilation) * across.in + column + left * across.dilation) *");
    text.line("                       channels;");
    text.line("const ptrdiff_t first = top * w_down + left * channels, to = (r * across.out + q) * channels;");
    for (int i = 0; i < 2; ++i) {
      const int lanes = i == 0 ? wide : 1;
      text.open("for (; channels - c >= {0}; c += {0})", lanes);
      text.line(
          "{}(x + from + c, w + first + c, bias == NULL ? NULL : bias + c, addend == NULL ? NULL : addend + to + c, "
          "low, high, y + to + c, channels, bottom - top, right - left, x_down, x_across, w_down);",
          parts[i]);
      text.close();
    }
    text.close();
    text.close();
    text.close();
  });
}

// Adds the products of each tap where they belong, tap by tap.
std::string scatter_function(Functions& f, ElementType type) {
  const std::string_view t = stored(type);
  const std::string axis = axis_type(f);
  return f.get(fmt::format("add_taps_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.line("/* Adds products [taps, positions of the input] where they belong in a plane of results. Here axes are");
    text.line("   those of the convolution that this one transposes: `in` is a size of y. */");
    text.open(
        "static void {0}(const {1} *restrict products, const {2} *axes, int axis_count, ptrdiff_t taps, "
        "ptrdiff_t positions, {1} *restrict y)",
        name, t, axis);
    text.open("for (ptrdiff_t tap = 0; tap < taps; ++tap)");
    text.open("for (ptrdiff_t i = 0; i < positions; ++i)");
    text.line("ptrdiff_t position = i, t = tap, to = 0, size = 1;");
    text.line("int is_inside = 1;");
    text.open("for (int d = axis_count - 1; d >= 0; --d)");
    text.line(
        "const ptrdiff_t at = position % axes[d].out * axes[d].stride + t % axes[d].kernel * axes[d].dilation + "
        "axes[d].start;");
    text.line("if (at < 0 || at >= axes[d].in) is_inside = 0;");
    text.line("to += at * size;");
    text.line("size *= axes[d].in;");
    text.line("position /= axes[d].out;");
    text.line("t /= axes[d].kernel;");
    text.close();
    text.line("if (is_inside) y[to] += products[tap * positions + i];");
    text.close();
    text.close();
    text.close();
  });
}

// f(from, channels, length, alone, factors, width, sums, differences): the sums and differences of mirrored rows of
// each channel. Rows have `width` numbers; `alone`: the first row has no partner. Null: all factors are 1, or no filter
// wants the list.
std::string fold_function(Functions& f, ElementType type) {
  const std::string_view t = stored(type);
  return f.get(fmt::format("fold_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open(
        "static void {0}(const {1} *restrict from, ptrdiff_t channels, ptrdiff_t length, ptrdiff_t alone, "
        "const {1} *factors, ptrdiff_t width, {1} *restrict sums, {1} *restrict differences)",
        name, t);
    text.line("const ptrdiff_t pairs = (length - alone) / 2, folded = length - pairs;");
    text.open("for (ptrdiff_t c = 0; c < channels; ++c, from += length * width)");
    text.open("for (ptrdiff_t i = 0; i < folded; ++i)");
    text.line("const int is_pair = i >= alone && i < alone + pairs;");
    text.line("const {} *const low = from + i * width;", t);
    text.line("const {} *const high = from + (length - 1 - (i - alone)) * width;", t);
    text.line("const {} a = factors != NULL && is_pair ? factors[i - alone] : 1;", t);
    text.line("const {} b = factors != NULL && is_pair ? factors[pairs + i - alone] : 1;", t);
    for (const auto& [list, sign] : {std::pair("sums", "+"), std::pair("differences", "-")}) {
      text.open("for (ptrdiff_t l = 0; {} != NULL && l < width; ++l)", list);
      text.line("const {} x = a * low[l], y = is_pair ? b * high[l] : 0;", t);
      text.line("{}[i * width + l] = is_pair ? x {} y : low[l];", list, sign);
      text.close();
    }
    text.close();
    text.line("if (factors != NULL) factors += 2 * pairs;");
    text.line("if (sums != NULL) sums += folded * width;");
    text.line("if (differences != NULL) differences += folded * width;");
    text.close();
    text.close();
  });
}

class Conv {
 public:
  Conv(const Call& call, const ConvShape& given, kernels::Clamp clamp)
      : call_(call),
        w_(call.writer),
        f_(call.writer.functions()),
        text_(call.writer.text()),
        type_(wide_type(call.type(kX))),
        s_(given),
        clamp_(clamp) {}

  void write(std::string& why) {
    if (!choose(why)) return;
    filters_ = s_.out_channels / s_.groups;
    channels_ = s_.in_channels / s_.groups;
    in_plane_ = product_of(s_.input, s_.axes);
    out_plane_ = product_of(s_.output, s_.axes);
    kept_taps_ = product_of(kept_, s_.axes);
    if (s_.batch * s_.out_channels * out_plane_ == 0) return;
    text_.open("");
    read_operands();
    if (bank_) {
      by_folds();
    } else if (s_.transposed && order_ == kOutputs) {
      by_outputs();
    } else if (is_depthwise()) {
      s_.x_nhwc ? depthwise_last() : depthwise();
    } else if (is_pointwise()) {
      s_.x_nhwc ? pointwise_last() : pointwise();
    } else {
      by_patches();
    }
    write_result();
    text_.close();
  }

 private:
  // The order of sums, and the taps that count.
  bool choose(std::string& why) {
    const ComputeType type = compute_of(type_);
    const kernels::ScopedIsa isa(f_.isa());
    const kernels::ConvPlan plan = kernels::prepare_conv(type, s_);
    kept_ = s_.kernel;
    if (plan.cuts) first_tap_ = plan.first_tap, kept_ = plan.kept;
    order_ = kWeights;
    for (const kernels::ConvCost& cost : kernels::conv_costs(type, s_)) {
      if (cost.method == plan.method) order_ = static_cast<Order>(cost.order);
    }
    const Tensor* weights = call_.constant(kW);
    if (weights && !plan.cuts && !s_.x_nhwc && !s_.y_nhwc && kernels::may_fold(plan.shape)) {
      if (kernels::pays(kernels::fold_weights(type, plan.shape, wide(*weights).data()), plan.shape)) {
        bank_ = bank_of(*weights);
        return true;
      }
    }
    if (order_ == kColumns && s_.axes > 2) why = "its order of sums is that of two axes";
    return why.empty();
  }

  // The elements of a constant in the compute type.
  std::vector<std::byte> wide(const Tensor& constant) const {
    const auto count = static_cast<size_t>(constant.element_count());
    std::vector<std::byte> elements(count * byte_width(type_));
    kernels::cast(constant.type(), type_, constant.raw(), elements.data(), count);
    return elements;
  }
  std::string_view t() const { return stored(type_); }
  std::string scratch(int64_t elements) {
    return fmt::format("({} *)(void *){}", t(), w_.scratch(static_cast<size_t>(elements) * byte_width(type_)));
  }

  // An operand in the compute type: its own memory, or scratch.
  std::string operand(size_t i, const char* name) {
    if (!call_.has_input(i)) return {};
    if (call_.type(i) == type_) return call_.in(i);
    int64_t count = 1;
    for (const int64_t size : call_.dims(i)) count *= size;
    const std::string wide = w_.variable(name);
    text_.line("{} *const {} = {};", t(), wide, scratch(count));
    text_.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", count, wide,
               w_.converted(call_.type(i), type_, call_.in(i) + "[i]"));
    return wide;
  }

  void read_operands() {
    x_ = operand(kX, "wide_x");
    bias_ = operand(kB, "wide_bias");
    addend_ = operand(kAddend, "wide_addend");
    y_ = call_.out();
    if (call_.result() == type_) return;
    y_ = w_.variable("wide_y");
    text_.line("{} *const {} = {};", t(), y_, scratch(s_.batch * s_.out_channels * out_plane_));
  }
  void write_result() {
    if (call_.result() == type_) return;
    text_.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", s_.batch * s_.out_channels * out_plane_, call_.out(),
               w_.converted(type_, call_.result(), y_ + "[i]"));
  }

  // Where element (filter, tap, channel) of a group's weights lies in the order that the code reads.
  struct Arrangement {
    int64_t filter, tap, channel, group;
    bool backwards = false;  // taps from the last one on
  };
  // The weights in an order: as they are, as a table, or arranged in scratch.
  std::string weights(const Arrangement& to) {
    const int64_t taps = product_of(s_.kernel, s_.axes), per_group = filters_ * channels_ * kept_taps_;
    const int64_t tap_step = 1, filter_step = s_.transposed ? taps : channels_ * taps,
                  channel_step = s_.transposed ? filters_ * taps : taps, group_step = filters_ * channels_ * taps;
    const bool same_steps = (to.tap == tap_step || taps == 1) && (to.filter == filter_step || filters_ == 1) &&
                            (to.channel == channel_step || channels_ == 1);
    if (kept_taps_ == taps && same_steps && !to.backwards) return operand(kW, "wide_weights");
    const std::vector<int64_t> listed = tap_numbers(to.backwards);
    if (const Tensor* constant = call_.constant(kW)) {
      const std::vector<std::byte> from = wide(*constant);
      std::vector<std::byte> arranged(static_cast<size_t>(s_.groups * per_group) * byte_width(type_));
      const size_t width = byte_width(type_);
      for (int64_t g = 0; g < s_.groups; ++g) {
        for (int64_t filter = 0; filter < filters_; ++filter) {
          for (int64_t c = 0; c < channels_; ++c) {
            for (int64_t k = 0; k < kept_taps_; ++k) {
              const int64_t at = g * to.group + filter * to.filter + k * to.tap + c * to.channel;
              const int64_t of =
                  g * group_step + filter * filter_step + c * channel_step + listed[static_cast<size_t>(k)];
              std::memcpy(arranged.data() + static_cast<size_t>(at) * width,
                          from.data() + static_cast<size_t>(of) * width, width);
            }
          }
        }
      }
      return w_.table("weights", type_, arranged.data(), static_cast<size_t>(s_.groups * per_group));
    }
    const std::string from = operand(kW, "wide_weights"), name = w_.variable("arranged");
    const std::vector<int32_t> numbers(listed.begin(), listed.end());
    const std::string table = w_.table("taps", ElementType::kInt32, numbers.data(), numbers.size());
    text_.line("{} *const {} = {};", t(), name, scratch(s_.groups * per_group));
    text_.line("for (ptrdiff_t g = 0; g < {}; ++g)", s_.groups);
    text_.line("  for (ptrdiff_t f = 0; f < {}; ++f)", filters_);
    text_.line("    for (ptrdiff_t c = 0; c < {}; ++c)", channels_);
    text_.line("      for (ptrdiff_t k = 0; k < {}; ++k)", kept_taps_);
    text_.line("        {}[g * {} + f * {} + c * {} + k * {}] = {}[g * {} + f * {} + c * {} + {}[k]];", name, to.group,
               to.filter, to.channel, to.tap, from, group_step, filter_step, channel_step, table);
    return name;
  }
  // The kept taps by their numbers in the filter, in the order in which they are taken.
  std::vector<int64_t> tap_numbers(bool backwards) const {
    std::vector<int64_t> numbers;
    for (int64_t tap = 0; tap < kept_taps_; ++tap) {
      int64_t at = 0, scale = 1, rest = backwards ? kept_taps_ - 1 - tap : tap;
      for (int d = s_.axes - 1; d >= 0; --d) {
        const auto i = static_cast<size_t>(d);
        at += (first_tap_[i] + rest % kept_[i]) * scale;
        scale *= s_.kernel[i];
        rest /= kept_[i];
      }
      numbers.push_back(at);
    }
    return numbers;
  }

  // Declares the table of axes.
  void axes_table(bool backwards) {
    axes_ = w_.variable("axes");
    std::string list;
    const int axes = std::max(s_.axes, 1);
    for (int d = 0; d < axes; ++d) {
      const auto i = static_cast<size_t>(d);
      const int64_t first = first_tap_[i] * s_.dilation[i];
      list += (d > 0 ? ", " : "");
      if (!s_.transposed) {
        list += fmt::format("{{{}, {}, {}, {}, {}, {}, 1}}", s_.input[i], s_.output[i], kept_[i], s_.stride[i],
                            s_.dilation[i], first - s_.pad_begin[i]);
      } else if (order_ == kOutputs) {
        list += fmt::format("{{{}, {}, {}, {}, {}, {}, 1}}", s_.output[i], s_.input[i], kept_[i], s_.stride[i],
                            s_.dilation[i], first - s_.pad_begin[i]);
      } else {
        const int64_t start = s_.pad_begin[i] - first;
        list += fmt::format("{{{}, {}, {}, 1, {}, {}, {}}}", s_.input[i], s_.output[i], kept_[i],
                            backwards ? s_.dilation[i] : -s_.dilation[i],
                            backwards ? start - (kept_[i] - 1) * s_.dilation[i] : start, s_.stride[i]);
      }
    }
    text_.line("static const {} {}[{}] = {{{}}};", axis_type(f_), axes_, axes, list);
  }

  std::string limit(float value) const {
    return type_ == ElementType::kDouble ? literal(static_cast<double>(value)) : literal(value);
  }
  std::string low() const { return limit(clamp_.low); }
  std::string high() const { return limit(clamp_.high); }
  static std::string or_null(const std::string& pointer, const std::string& offset) {
    return pointer.empty() ? "NULL" : offset.empty() ? pointer : pointer + " + " + offset;
  }

  // Loops over images and groups; x_at() and so on are offsets within them.
  void open_groups() {
    if (s_.batch > 1) text_.open("for (ptrdiff_t n = 0; n < {}; ++n)", s_.batch);
    if (s_.groups > 1) text_.open("for (ptrdiff_t g = 0; g < {}; ++g)", s_.groups);
  }
  void close_groups() {
    if (s_.groups > 1) text_.close();
    if (s_.batch > 1) text_.close();
  }
  std::string offset(int64_t image, int64_t group) const {
    std::string at;
    if (s_.batch > 1 && image > 0) at = fmt::format("n * {}", image);
    if (s_.groups > 1 && group > 0) at += fmt::format("{}g * {}", at.empty() ? "" : " + ", group);
    return at;
  }
  std::string plus(const std::string& pointer, const std::string& at) const {
    return at.empty() ? pointer : pointer + " + " + at;
  }
  std::string x_at() const { return offset(s_.in_channels * in_plane_, channels_ * (s_.x_nhwc ? 1 : in_plane_)); }
  std::string y_at() const { return offset(s_.out_channels * out_plane_, filters_ * (s_.y_nhwc ? 1 : out_plane_)); }

  bool is_depthwise() const {
    return channels_ == 1 && filters_ == 1 && s_.groups > 1 && !s_.transposed && s_.axes <= 2 && order_ != kDots &&
           s_.x_nhwc == s_.y_nhwc;
  }
  bool is_pointwise() const {
    if (kept_taps_ != 1 || s_.transposed || s_.x_nhwc != s_.y_nhwc || order_ == kDots) return false;
    for (int d = 0; d < s_.axes; ++d) {
      const auto i = static_cast<size_t>(d);
      if (s_.input[i] != s_.output[i] || s_.stride[i] != 1 || first_tap_[i] * s_.dilation[i] != s_.pad_begin[i]) {
        return false;
      }
    }
    return true;
  }

  // The axes of a window with one or two axes as two.
  void two_axes() {
    if (s_.axes == 2) return axes_table(false);
    axes_ = w_.variable("axes");
    text_.line("static const {} {}[2] = {{{{1, 1, 1, 1, 1, 0, 1}}, {{{}, {}, {}, {}, {}, {}, 1}}}};", axis_type(f_),
               axes_, s_.input[0], s_.output[0], kept_[0], s_.stride[0], s_.dilation[0],
               first_tap_[0] * s_.dilation[0] - s_.pad_begin[0]);
  }

  void depthwise() {
    const std::string w = weights({kept_taps_, 1, kept_taps_, kept_taps_});
    two_axes();
    const size_t last = static_cast<size_t>(s_.axes - 1);
    const int64_t lanes = 2 * f_.lanes(type_), columns = (s_.output[last] + lanes - 1) / lanes * lanes;
    const int64_t pitch = (columns - 1) * s_.stride[last] + (kept_[last] - 1) * s_.dilation[last] + 1;
    const int64_t rows = s_.axes == 2 ? (s_.output[0] - 1) * s_.stride[0] + (kept_[0] - 1) * s_.dilation[0] + 1 : 1;
    const std::string padded = scratch(rows * pitch);
    open_groups();
    text_.line("{}({}, {}, {}, {}, {}, {}, {}, {}, {}, {});", planes_function(f_, type_, order_ == kColumns),
               plus(x_, x_at()), axes_, plus(w, offset(0, kept_taps_)), or_null(bias_, offset(0, 1)),
               or_null(addend_, y_at()), low(), high(), padded, pitch, plus(y_, y_at()));
    close_groups();
  }

  void depthwise_last() {
    const std::string w = weights({1, s_.groups, 1, 1});
    two_axes();
    const int64_t groups = std::exchange(s_.groups, 1);
    open_groups();
    text_.line("{}({}, {}, {}, {}, {}, {}, {}, {}, {});", last_planes_function(f_, type_, order_ == kColumns),
               plus(x_, offset(groups * in_plane_, 0)), axes_, groups, w, or_null(bias_, ""),
               or_null(addend_, offset(groups * out_plane_, 0)), low(), high(),
               plus(y_, offset(groups * out_plane_, 0)));
    close_groups();
    s_.groups = groups;
  }

  void pointwise() {
    const std::string w = weights({channels_, 1, 1, filters_ * channels_});
    open_groups();
    const std::string y = plus(y_, y_at());
    text_.line("{}({}, {}, 1, {}, {}, {}, {}, {}, {}, {});", product_function(f_, type_, filters_),
               plus(w, offset(0, filters_ * channels_)), channels_, plus(x_, x_at()), in_plane_, y, out_plane_,
               filters_, out_plane_, channels_);
    finish(y, out_plane_, y, out_plane_, 1, out_plane_, filters_, offset(0, filters_), y_at());
    close_groups();
  }

  void pointwise_last() {
    const std::string w = weights({1, filters_, filters_, filters_ * channels_});
    open_groups();
    const std::string y = plus(y_, y_at());
    text_.line("{}({}, {}, 1, {}, {}, {}, {}, {}, {}, {});", product_function(f_, type_, out_plane_), plus(x_, x_at()),
               s_.in_channels, plus(w, offset(0, filters_ * channels_)), filters_, y, s_.out_channels, out_plane_,
               filters_, channels_);
    finish_last(y);
    close_groups();
  }

  bool is_finished() const {
    return bias_.empty() && addend_.empty() && clamp_.low == -__builtin_inff() && clamp_.high == __builtin_inff();
  }
  void finish(const std::string& sums, int64_t row, const std::string& y, int64_t y_row, int64_t y_column,
              int64_t columns, int64_t rows, const std::string& bias_at, const std::string& addend_at) {
    if (is_finished() && sums == y) return;
    text_.line("{}({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});", finish_function(f_, type_), sums, rows, row, columns,
               or_null(bias_, bias_at), or_null(addend_, addend_at), low(), high(), y, y_row, y_column);
  }
  // Of results in their place, [positions, channels].
  void finish_last(const std::string& y) {
    if (is_finished()) return;
    text_.open("for (ptrdiff_t i = 0; i < {}; ++i)", out_plane_);
    text_.open("for (ptrdiff_t f = 0; f < {}; ++f)", filters_);
    const std::string at = fmt::format("i * {} + f", s_.out_channels);
    text_.line("{} sum = ({})[{}];", t(), y, at);
    if (!bias_.empty()) text_.line("sum += ({})[f];", plus(bias_, offset(0, filters_)));
    if (!addend_.empty()) text_.line("sum += ({})[{}];", plus(addend_, y_at()), at);
    text_.line("({})[{}] = sum < {} ? {} : sum > {} ? {} : sum;", y, at, low(), low(), high(), high());
    text_.close();
    text_.close();
  }

  void by_patches() {
    const int64_t k = channels_ * kept_taps_;
    const bool taps_first = order_ == kTaps, backwards = s_.transposed && taps_first;
    const int64_t tap_row = taps_first ? channels_ : 1, channel_row = taps_first ? 1 : kept_taps_;
    const std::string w = weights({k, tap_row, channel_row, filters_ * k, backwards});
    axes_table(backwards);
    // A block of patches stays in the second-level cache.
    const int64_t lanes = 2 * f_.lanes(type_);
    int64_t width = std::clamp<int64_t>(32768 / std::max<int64_t>(k, 1) / lanes, 1, 4) * lanes;
    width = std::min(width, (out_plane_ + lanes - 1) / lanes * lanes);
    const std::string patches = w_.variable("patches"), sums = w_.variable("sums");
    text_.line("{} *const {} = {};", t(), patches, scratch(k * width));
    text_.line("{} *const {} = {};", t(), sums, scratch(filters_ * width));
    const bool partial = out_plane_ % width != 0;
    // Columns that no position fills
    if (partial) text_.line("memset({}, 0, {});", patches, static_cast<size_t>(k * width) * byte_width(type_));
    open_groups();
    const bool blocks = out_plane_ > width;
    if (blocks) text_.open("for (ptrdiff_t first = 0; first < {}; first += {})", out_plane_, width);
    const std::string first = blocks ? "first" : "0";
    std::string count = std::to_string(std::min(out_plane_, width));
    if (blocks && partial) {
      text_.line("const ptrdiff_t count = {0} - first < {1} ? {0} - first : {1};", out_plane_, width);
      count = "count";
    }
    const int64_t channel_step = s_.x_nhwc ? 1 : in_plane_, step = s_.x_nhwc ? s_.in_channels : 1;
    text_.line("{}({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});", patches_function(f_, type_, s_.transposed),
               plus(x_, x_at()), channels_, channel_step, step, axes_, std::max(s_.axes, 1), kept_taps_, tap_row,
               channel_row, first, count, width, patches);
    const std::string filters = plus(w, offset(0, filters_ * k));
    if (order_ == kDots) {
      text_.line("for (ptrdiff_t f = 0; f < {}; ++f)", filters_);
      text_.line("  for (ptrdiff_t i = 0; i < {}; ++i)", count);
      text_.line("    {}[f * {} + i] = {}({} + f * {}, 1, {} + i, {}, {});", sums, width, dot_function(f_, type_),
                 filters, k, patches, width, k);
    } else {
      text_.line("{}({}, {}, 1, {}, {}, {}, {}, {}, {}, {});", product_function(f_, type_, filters_), filters, k,
                 patches, width, sums, width, filters_, width, k);
    }
    const int64_t y_row = s_.y_nhwc ? 1 : out_plane_, y_column = s_.y_nhwc ? s_.out_channels : 1;
    std::string at = y_at();
    if (blocks) at += (at.empty() ? "" : " + ") + (y_column == 1 ? first : fmt::format("first * {}", y_column));
    text_.line("{}({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});", finish_function(f_, type_), sums, filters_, width,
               count, or_null(bias_, offset(0, filters_)), or_null(addend_, at), low(), high(), plus(y_, at), y_row,
               y_column);
    if (blocks) text_.close();
    close_groups();
  }

  kernels::Bank bank_of(const Tensor& weights) const {
    const std::vector<std::byte> elements = wide(weights);
    const int64_t taps = product_of(s_.kernel, s_.axes);
    if (type_ == ElementType::kDouble) {
      return kernels::fold_filters(reinterpret_cast<const double*>(elements.data()), s_.out_channels, s_.in_channels,
                                   taps);
    }
    return kernels::fold_filters(reinterpret_cast<const float*>(elements.data()), s_.out_channels, s_.in_channels,
                                 taps);
  }
  std::string numbers(const char* name, std::span<const double> list) {
    if (type_ == ElementType::kDouble) return w_.table(name, type_, list.data(), list.size());
    const std::vector<float> narrow(list.begin(), list.end());
    return w_.table(name, type_, narrow.data(), narrow.size());
  }

  // Filters that fold (kernels/fold.h): patches are split into sums and differences, and each list of these is
  // multiplied with its filters.
  void by_folds() {
    const kernels::Fold& fold = bank_->fold;
    axes_table(false);
    const int64_t lanes = 2 * f_.lanes(type_), width = std::min(2 * lanes, (out_plane_ + lanes - 1) / lanes * lanes);
    std::vector<std::string> lists;
    for (int i = 0; i < fold.list_count; ++i) {
      lists.push_back(w_.variable("list"));
      text_.line("{} *const {} = {};", t(), lists.back(),
                 scratch(fold.lists[static_cast<size_t>(i)].length * fold.channels * width));
    }
    const std::string sums = w_.variable("sums");
    text_.line("{} *const {} = {};", t(), sums, scratch(s_.out_channels * width));
    // Columns that no position fills
    text_.line("memset({}, 0, {});", lists[0],
               static_cast<size_t>(s_.in_channels * kept_taps_ * width) * byte_width(type_));
    open_groups();
    text_.open("for (ptrdiff_t first = 0; first < {}; first += {})", out_plane_, width);
    text_.line("const ptrdiff_t count = {0} - first < {1} ? {0} - first : {1};", out_plane_, width);
    text_.line("{}({}, {}, {}, 1, {}, {}, {}, 1, {}, first, count, {}, {});", patches_function(f_, type_, false),
               plus(x_, x_at()), channels_, in_plane_, axes_, std::max(s_.axes, 1), kept_taps_, kept_taps_, width,
               lists[0]);
    const std::string factors = bank_->factors.empty() ? "" : numbers("factors", bank_->factors);
    for (int i = 0; i < fold.split_count; ++i) {
      const kernels::Fold::Split& split = fold.splits[static_cast<size_t>(i)];
      const auto list = [&](int32_t n) { return n < 0 ? std::string("NULL") : lists[static_cast<size_t>(n)]; };
      text_.line("{}({}, {}, {}, {}, {}, {}, {}, {});", fold_function(f_, type_), list(split.from), fold.channels,
                 fold.lists[static_cast<size_t>(split.from)].length, split.first_alone ? 1 : 0,
                 split.factors < 0 ? "NULL" : fmt::format("{} + {}", factors, split.factors), width, list(split.sums),
                 list(split.differences));
    }
    for (int i = 0; i < fold.list_count; ++i) multiply_list(i, lists[static_cast<size_t>(i)], width, sums);
    const std::string order = w_.table("order", ElementType::kInt32, bank_->order.data(), bank_->order.size());
    text_.open("for (ptrdiff_t f = 0; f < {}; ++f)", s_.out_channels);
    text_.line("const ptrdiff_t k = {}[f];", order);
    const std::string plane = fmt::format("{}k * {} + first", y_at().empty() ? "" : y_at() + " + ", out_plane_);
    text_.line("{}({} + f * {}, 1, {}, count, {}, {}, {}, {}, {}, {}, 1);", finish_function(f_, type_), sums, width,
               width, or_null(bias_, "k"), or_null(addend_, plane), low(), high(), plus(y_, plane), out_plane_);
    text_.close();
    text_.close();
    close_groups();
  }
  // The products of list `i` with its filters, in the rows of these.
  void multiply_list(int i, const std::string& list, int64_t width, const std::string& sums) {
    const kernels::Fold::List& of = bank_->fold.lists[static_cast<size_t>(i)];
    if (of.filters == 0) return;
    const int64_t k = static_cast<int64_t>(of.length) * bank_->fold.channels;
    std::vector<double> filters;
    for (int f = 0; f < of.filters; ++f) {
      const std::vector<double>& filter = bank_->weights[static_cast<size_t>(of.first_filter + f)];
      filters.insert(filters.end(), filter.begin(), filter.end());
    }
    const std::string table = numbers("folded", filters), to = fmt::format("{} + {}", sums, of.first_filter * width);
    if (of.filters <= kernels::kGemmDotColumns) {
      text_.line("for (ptrdiff_t i = 0; i < {}; ++i)", of.filters * width);
      text_.line("  ({})[i] = {}({} + i / {} * {}, 1, {} + i % {}, {}, {});", to, dot_function(f_, type_), table, width,
                 k, list, width, width, k);
    } else {
      text_.line("{}({}, {}, 1, {}, {}, {}, {}, {}, {}, {});", product_function(f_, type_, of.filters), table, k, list,
                 width, to, width, of.filters, width, k);
    }
  }

  // Transposed: the sum over the channels of each tap is added to the result.
  void by_outputs() {
    // [taps, channels] for each filter
    const std::string w = weights({channels_ * kept_taps_, channels_, 1, filters_ * channels_ * kept_taps_});
    axes_table(false);
    const std::string products = w_.variable("products");
    text_.line("{} *const {} = {};", t(), products, scratch(kept_taps_ * in_plane_));
    open_groups();
    text_.open("for (ptrdiff_t f = 0; f < {}; ++f)", filters_);
    const std::string filter =
        plus(w, offset(0, filters_ * channels_ * kept_taps_)) + fmt::format(" + f * {}", channels_ * kept_taps_);
    const std::string x = plus(x_, x_at());
    if (in_plane_ <= kernels::kGemmDotColumns) {
      text_.line("for (ptrdiff_t k = 0; k < {}; ++k)", kept_taps_);
      text_.line("  for (ptrdiff_t i = 0; i < {}; ++i)", in_plane_);
      text_.line("    {}[k * {} + i] = {}({} + k * {}, 1, {} + i, {}, {});", products, in_plane_,
                 dot_function(f_, type_), filter, channels_, x, in_plane_, channels_);
    } else {
      text_.line("{}({}, {}, 1, {}, {}, {}, {}, {}, {}, {});", product_function(f_, type_, kept_taps_), filter,
                 channels_, x, in_plane_, products, in_plane_, kept_taps_, in_plane_, channels_);
    }
    const std::string at = plus(y_at(), "");
    const std::string plane = fmt::format("{}f * {}", at.empty() ? "" : at + " + ", out_plane_);
    text_.line("{} *const plane = {} + {};", t(), y_, plane);
    text_.line("for (ptrdiff_t i = 0; i < {}; ++i) plane[i] = {};", out_plane_,
               bias_.empty() ? "0" : fmt::format("({})[f]", plus(bias_, offset(0, filters_))));
    text_.line("{}({}, {}, {}, {}, {}, plane);", scatter_function(f_, type_), products, axes_, s_.axes, kept_taps_,
               in_plane_);
    text_.close();
    close_groups();
  }

  const Call& call_;
  Writer& w_;
  Functions& f_;
  Text& text_;
  ElementType type_;
  ConvShape s_;
  kernels::Clamp clamp_;
  Order order_ = kWeights;
  kernels::Spatial first_tap_{}, kept_{};
  std::optional<kernels::Bank> bank_;   // the filters, if they are folded
  int64_t filters_ = 1, channels_ = 1;  // of a group
  int64_t in_plane_ = 1, out_plane_ = 1, kept_taps_ = 1;
  std::string x_, bias_, addend_, y_, axes_;
};

bool is_last(const Call& call, const char* operand) {
  return call.node.attributes.get_int(operand, 0) != 0;
}

void write_any(const Call& call, bool transposed, std::string& why) {
  const bool x_nhwc = is_last(call, "x_nhwc"), y_nhwc = is_last(call, "y_nhwc");
  const Dims x = x_nhwc ? nn::channels_second(call.dims(kX)) : call.dims(kX);
  const Dims y = y_nhwc ? nn::channels_second(call.result_dims()) : call.result_dims();
  auto shape = transposed ? nn::transposed_shape(call.node.attributes, x, call.dims(kW), y)
                          : nn::conv_shape(call.node.attributes, x, call.dims(kW), y);
  if (!shape.ok()) {
    why = std::move(shape).status().message();
    return;
  }
  shape->x_nhwc = x_nhwc;
  shape->y_nhwc = y_nhwc;
  kernels::Clamp clamp{-__builtin_inff(), __builtin_inff()};
  clamp.low = call.node.attributes.get_float("low", clamp.low);
  clamp.high = call.node.attributes.get_float("high", clamp.high);
  Conv(call, *shape, clamp).write(why);
}

void write_conv(const Call& call, std::string& why) {
  write_any(call, false, why);
}
void write_transposed(const Call& call, std::string& why) {
  write_any(call, true, why);
}

constexpr OperatorRow kRows[] = {
    {"Conv", "", write_conv},
    {"FusedConv", "treadle", write_conv},
    {"ConvTranspose", "", write_transposed},
    {"TransposedConvLast", "treadle", write_transposed},
};

}  // namespace

std::span<const OperatorRow> conv_operators() {
  return kRows;
}

}  // namespace treadle::c
