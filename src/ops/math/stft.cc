// DFT and STFT. Complex numbers are pairs along the last axis.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernels/convert.h"
#include "op/axis.h"
#include "op/axis_rules.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "ops/costs.h"
#include "ops/math/fourier.h"

namespace treadle {

namespace {

using Complex = Fourier::Complex;

// Transforms of lines: how each line is read, transformed and written.
struct Lines {
  explicit Lines(size_t length) : fourier(length) {}

  Fourier fourier;
  kernels::TileConverter widen, narrow;
  size_t x_count = 0, y_count = 0;  // elements
  int64_t parts_in = 1, parts_out = 2;
  bool inverse = false, mirrored = false;  // mirrored: only the first half of the spectrum is given
  size_t x_at = 0, y_at = 0, line_at = 0, work_at = 0, window_at = 0;  // offsets in scratch

  size_t plan_scratch(size_t window) {
    ScratchLayout scratch;
    x_at = scratch.add(x_count * sizeof(double));
    y_at = scratch.add(y_count * sizeof(double));
    line_at = scratch.add(fourier.length() * sizeof(Complex));
    work_at = scratch.add(fourier.work_size() * sizeof(Complex));
    window_at = scratch.add(window * sizeof(double));
    return std::max<size_t>(scratch.size(), 64);
  }
};

// `step`: distance between elements of the line, in complex numbers.
void read_line(const Lines& s, const double* x, size_t given, size_t step, Complex* line, StopPoll& stop) {
  const auto parts = static_cast<size_t>(s.parts_in);
  const size_t n = s.fourier.length();
  for (size_t k = 0; k < n && !stop.after(costs::kFourierElementNs); ++k) {
    const double* at = x + k * step * parts;
    line[k] = k < given ? Complex(at[0], parts == 2 ? at[1] : 0) : Complex();
  }
  for (size_t k = n / 2 + 1; s.mirrored && k < n; ++k) line[k] = std::conj(line[n - k]);
}

void write_line(const Lines& s, const Complex* line, size_t wanted, size_t step, double* y, StopPoll& stop) {
  const auto parts = static_cast<size_t>(s.parts_out);
  const double scale = s.inverse ? 1 / static_cast<double>(s.fourier.length()) : 1;
  for (size_t k = 0; k < wanted && !stop.after(costs::kFourierElementNs); ++k) {
    y[k * step * parts] = line[k].real() * scale;
    if (parts == 2) y[k * step * parts + 1] = line[k].imag() * scale;
  }
}

// ---- DFT ----

struct DftAttributes {
  bool inverse, onesided;
};
DftAttributes read_dft(const ir::Attributes& a) {
  return {a.get_int("inverse", 0) != 0, a.get_int("onesided", 0) != 0};
}

// The axis: an attribute before version 20, then an input; nullopt if unknown.
template <class Context>
Result<std::optional<size_t>> dft_axis(const Context& ctx, size_t rank) {
  int64_t axis = ctx.attributes().get_int("axis", ctx.version() < 20 ? 1 : -2);
  if (ctx.version() >= 20 && ctx.has_input(2)) {
    const IntList list = int_list(ctx, nullptr, 2);
    if (!list.known()) return std::optional<size_t>();
    if (list.values.size() != 1) {
      return error(Code::kInvalidArgument, "axis has {} elements, expected 1", list.values.size());
    }
    axis = list.values[0];
  }
  TREADLE_ASSIGN(const int64_t at, normalize_axis(axis, static_cast<int64_t>(rank)));
  if (static_cast<size_t>(at) + 1 == rank) {
    return error(Code::kInvalidArgument,
                 "axis is {}, expected another one than the last, which holds real and imaginary parts", axis);
  }
  return std::optional<size_t>(static_cast<size_t>(at));
}

Status infer_dft(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ctx.element(0)), Status();
  if (x->size() < 2)
    return error(Code::kInvalidArgument, "the input has shape {}, expected rank 2 or more", to_string(*x));
  const Dim& parts = x->back();
  if (parts.is_known() && parts.value() != 1 && parts.value() != 2) {
    return error(Code::kInvalidArgument, "the input's last axis has {} elements, expected 1 (real) or 2 (complex)",
                 parts.value());
  }
  const auto [inverse, onesided] = read_dft(ctx.attributes());
  if (onesided && parts.is_known() && parts.value() != (inverse ? 2 : 1)) {
    return error(Code::kInvalidArgument,
                 "the input's last axis has {} elements, expected {} of a onesided {} transform", parts.value(),
                 inverse ? "2 (complex)" : "1 (real)", inverse ? "inverse" : "forward");
  }
  Shape out = *x;
  out.back() = Dim(inverse && onesided ? 1 : 2);
  TREADLE_ASSIGN(const auto axis, dft_axis(ctx, x->size()));
  if (!axis) {
    const bool keeps_sizes = !onesided && !ctx.has_input(1);
    for (size_t i = 0; !keeps_sizes && i + 1 < out.size(); ++i) out[i] = Dim::unknown();
    return ctx.set_output(0, ctx.element(0), std::move(out)), Status();
  }
  Dim length = inverse && onesided ? ((*x)[*axis] - Dim(1)) * Dim(2) : (*x)[*axis];
  if (ctx.has_input(1)) {
    const auto given = ctx.dims_value(1);
    if (given && given->size() != 1)
      return error(Code::kInvalidArgument, "dft_length has {} elements, expected 1", given->size());
    length = given ? (*given)[0] : Dim::unknown();
    if (length.is_known() && length.value() < 1) {
      return error(Code::kInvalidArgument, "dft_length is {}, expected at least 1", length.value());
    }
  }
  if (onesided && !inverse && length.is_known(0)) {
    return error(Code::kInvalidArgument, "axis {} of the input has 0 elements, expected at least 1 to transform",
                 *axis);
  }
  out[*axis] = onesided && !inverse ? floor_div(length, Dim(2)) + Dim(1) : length;
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

struct DftState {
  explicit DftState(size_t length) : lines(length) {}

  Lines lines;
  AxisView x, y;  // without the axis of real and imaginary parts
  uint32_t output = 0;
};

uint32_t run_dft(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const DftState*>(state);
  const Lines& l = s.lines;
  auto* scratch = static_cast<std::byte*>(slots[operands[s.output + 1]]);
  auto* x = reinterpret_cast<double*>(scratch + l.x_at);
  auto* y = reinterpret_cast<double*>(scratch + l.y_at);
  auto* line = reinterpret_cast<Complex*>(scratch + l.line_at);
  auto* work = reinterpret_cast<Complex*>(scratch + l.work_at);
  parallel_convert(l.widen, slots[operands[0]], x, l.x_count);
  const auto parts_in = static_cast<size_t>(l.parts_in), parts_out = static_cast<size_t>(l.parts_out);
  StopPoll stop;
  for (size_t o = 0; o < s.x.outer; ++o) {
    for (size_t i = 0; i < s.x.inner; ++i) {
      read_line(l, x + (o * s.x.n * s.x.inner + i) * parts_in, s.x.n, s.x.inner, line, stop);
      if (!l.fourier.run(line, l.inverse, work, stop)) return fail(KernelError::kStopped);
      write_line(l, line, s.y.n, s.y.inner, y + (o * s.y.n * s.y.inner + i) * parts_out, stop);
    }
  }
  parallel_convert(l.narrow, y, slots[operands[s.output]], l.y_count);
  return 0;
}

void set_converters(const PrepareContext& ctx, Lines& lines) {
  const Operand &x = ctx.inputs[0], &y = ctx.outputs[0];
  lines.widen = kernels::make_converter(x.type, ElementType::kDouble);
  lines.narrow = kernels::make_converter(ElementType::kDouble, y.type);
  lines.x_count = static_cast<size_t>(x.element_count());
  lines.y_count = static_cast<size_t>(y.element_count());
}

Status prepare_dft(PrepareContext& ctx) {
  const Operand &x = ctx.inputs[0], &y = ctx.outputs[0];
  const auto [inverse, onesided] = read_dft(ctx.attributes());
  TREADLE_ASSIGN(const auto axis, dft_axis(ctx, x.dims.size()));
  size_t length = static_cast<size_t>(x.dims[*axis]);
  if (inverse && onesided) length = static_cast<size_t>(y.dims[*axis]);
  if (ctx.has_input(1)) length = static_cast<size_t>(ctx.int64s(1)[0]);
  if (length > Fourier::kMostLength) {
    return error(Code::kLimit, "dft_length is {}, expected {} at most", length, Fourier::kMostLength);
  }
  auto* s = ctx.make_state<DftState>(length);
  if (!s->lines.fourier.is_complete()) return stopped();
  const auto at = static_cast<int64_t>(*axis), last = x.rank() - 1;
  const auto without_parts = [&](const Dims& dims) { return Dims(dims.begin(), dims.begin() + last); };
  s->x = view_along(without_parts(x.dims), at);
  s->y = view_along(without_parts(y.dims), at);
  s->lines.parts_in = x.dims.back();
  s->lines.parts_out = y.dims.back();
  s->lines.inverse = inverse;
  s->lines.mirrored = inverse && onesided;
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  set_converters(ctx, s->lines);
  ctx.scratch_bytes = s->lines.plan_scratch(0);
  ctx.set_kernel(run_dft, s);
  return {};
}

// ---- STFT: frames of the signal, windowed, transformed ----

enum StftInput : size_t { kSignal, kStep, kWindow, kFrame };

// The positive number in input i; unknown if its contents are.
Result<Dim> read_size(const InferContext& ctx, size_t i, std::string_view what) {
  const auto given = ctx.dims_value(i);
  if (!given) return Dim::unknown();
  if (given->size() != 1 || ((*given)[0].is_known() && (*given)[0].value() < 1)) {
    return error(Code::kInvalidArgument, "{} is {}, expected one number of at least 1", what, to_string(*given));
  }
  return (*given)[0];
}

// A signal is real if it lacks the last axis, which the specification requires.
bool is_signal(const Shape& x) {
  if (x.size() == 2) return true;
  return x.size() == 3 && (!x[2].is_known() || x[2].value() == 1 || x[2].value() == 2);
}

Status infer_stft(InferContext& ctx) {
  const Shape *x = ctx.shape(kSignal), *window = ctx.shape(kWindow);
  if (!ctx.has_input(kWindow) && !ctx.has_input(kFrame)) {
    return error(Code::kInvalidModel, "expected window or frame_length, found neither");
  }
  if (x && !is_signal(*x)) {
    return error(Code::kInvalidArgument, "the signal has shape {}, expected [N,L], [N,L,1] or [N,L,2]", to_string(*x));
  }
  if (window && window->size() != 1) {
    return error(Code::kInvalidArgument, "the window has shape {}, expected rank 1", to_string(*window));
  }
  TREADLE_ASSIGN(const Dim step, read_size(ctx, kStep, "frame_step"));
  Dim frame = window ? (*window)[0] : Dim::unknown();
  if (ctx.has_input(kFrame)) {
    TREADLE_ASSIGN(const Dim given, read_size(ctx, kFrame, "frame_length"));
    if (given.is_known() && frame.is_known() && given.value() != frame.value()) {
      return error(Code::kInvalidArgument, "frame_length is {}, expected the number of elements of the window, {}",
                   given.value(), frame.value());
    }
    if (!given.is_unknown()) frame = given;
  }
  if (frame.is_known(0)) {
    return error(Code::kInvalidArgument, "a frame has 0 elements, expected at least 1 to transform");
  }
  Dim frames;
  if (x) frames = floor_div((*x)[1] - frame, step) + Dim(1);
  if (frames.is_known() && frames.value() < 1) {
    return error(Code::kInvalidArgument, "frames have {} elements, expected at most those of the signal, {}",
                 frame.to_string(), (*x)[1].to_string());
  }
  const bool onesided = ctx.attributes().get_int("onesided", 1) != 0;
  const Dim bins = onesided ? floor_div(frame, Dim(2)) + Dim(1) : frame;
  ctx.set_output(0, ctx.element(kSignal), {x ? (*x)[0] : Dim::unknown(), frames, bins, Dim(2)});
  return {};
}

struct StftState {
  explicit StftState(size_t length) : lines(length) {}

  Lines lines;
  size_t batch = 1, samples = 0, frames = 0, bins = 0, step = 1;
  bool has_window = false;
  uint32_t output = 0;
};

uint32_t run_stft(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const StftState*>(state);
  const Lines& l = s.lines;
  auto* scratch = static_cast<std::byte*>(slots[operands[s.output + 1]]);
  auto* x = reinterpret_cast<double*>(scratch + l.x_at);
  auto* y = reinterpret_cast<double*>(scratch + l.y_at);
  auto* line = reinterpret_cast<Complex*>(scratch + l.line_at);
  auto* work = reinterpret_cast<Complex*>(scratch + l.work_at);
  auto* window = reinterpret_cast<double*>(scratch + l.window_at);
  const size_t length = l.fourier.length(), parts = static_cast<size_t>(l.parts_in);
  parallel_convert(l.widen, slots[operands[kSignal]], x, l.x_count);
  if (s.has_window) kernels::convert(l.widen, slots[operands[kWindow]], window, length);
  StopPoll stop;
  for (size_t b = 0; b < s.batch; ++b) {
    for (size_t f = 0; f < s.frames; ++f) {
      read_line(l, x + (b * s.samples + f * s.step) * parts, length, 1, line, stop);
      for (size_t k = 0; s.has_window && k < length; ++k) line[k] *= window[k];
      if (!l.fourier.run(line, false, work, stop)) return fail(KernelError::kStopped);
      write_line(l, line, s.bins, 1, y + (b * s.frames + f) * s.bins * 2, stop);
    }
  }
  parallel_convert(l.narrow, y, slots[operands[s.output]], l.y_count);
  return 0;
}

Status prepare_stft(PrepareContext& ctx) {
  const Operand &x = ctx.inputs[kSignal], &y = ctx.outputs[0];
  const bool has_window = ctx.has_input(kWindow);
  const int64_t length = has_window ? ctx.inputs[kWindow].element_count() : ctx.int64s(kFrame)[0];
  auto* s = ctx.make_state<StftState>(static_cast<size_t>(length));
  if (!s->lines.fourier.is_complete()) return stopped();
  s->batch = static_cast<size_t>(x.dims[0]);
  s->samples = static_cast<size_t>(x.dims[1]);
  s->frames = static_cast<size_t>(y.dims[1]);
  s->bins = static_cast<size_t>(y.dims[2]);
  s->step = static_cast<size_t>(ctx.int64s(kStep)[0]);
  s->has_window = has_window;
  s->lines.parts_in = x.rank() == 2 ? 1 : x.dims[2];
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  set_converters(ctx, s->lines);
  ctx.scratch_bytes = s->lines.plan_scratch(has_window ? static_cast<size_t>(length) : 0);
  ctx.set_kernel(run_stft, s);
  return {};
}

std::optional<int64_t> constant_dft_axis(const ir::Node& node, int64_t rank) {
  int64_t axis = node.attributes.get_int("axis", 1);
  if (!node.version->attribute("axis")) {
    axis = -2;
    if (node.inputs.size() > 2 && node.inputs[2]) {
      const auto given = constant_ints(node, 2);
      if (!given || given->size() != 1) return std::nullopt;
      axis = (*given)[0];
    }
  }
  return from_front(axis, rank);
}

Status transformed_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  const auto axis = constant_dft_axis(c.node(), c.rank(0));
  if (!axis) return looks_along("its axis is not known beforehand");
  if (c.in(0) == *axis || c.in(0) == c.rank(0) - 1) return looks_along(fmt::format("it transforms axis {}", c.in(0)));
  return c.give(0, c.in(0));
}

Status widen_dft(WidenContext& c) {
  const auto axis = constant_dft_axis(c.node(), c.rank(0));
  if (!axis) return looks_along("its axis is not known beforehand");
  if (c.node().version->attribute("axis")) {
    c.set(ir::Attribute::of("axis", *axis + 1));
  } else {
    c.set_input(2, Tensor::scalar<int64_t>(ElementType::kInt64, *axis + 1));
  }
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(DFT, "") {
  op.since(17)
      .in("input", "T1")
      .in("dft_length", "T2", Arity::kOptional)
      .out("output", "T1")
      .attr("axis", 1)
      .attr("inverse", 0)
      .attr("onesided", 0)
      .type("T1", types::kFloatsBf16)
      .type("T2", types::kIndices);
  op.since(20).in("axis", "tensor(int64)", Arity::kOptional).drop_attr("axis");
  op.infer(infer_dft).prepare(prepare_dft).shape_inputs({1, 2}).axes(transformed_axes, widen_dft);
}

TREADLE_OP(STFT, "") {
  op.since(17)
      .in("signal", "T1")
      .in("frame_step", "T2")
      .in("window", "T1", Arity::kOptional)
      .in("frame_length", "T2", Arity::kOptional)
      .out("output", "T1")
      .attr("onesided", 1)
      .type("T1", types::kFloatsBf16)
      .type("T2", types::kIndices);
  op.infer(infer_stft).prepare(prepare_stft).shape_inputs({1, 3}).axes(axes::entries);
}
