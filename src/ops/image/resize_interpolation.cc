#include <algorithm>
#include <cmath>

#include "kernels/convert.h"
#include "op/parallel.h"
#include "ops/costs.h"
#include "ops/image/resample_pass.h"
#include "ops/image/resize.h"

namespace treadle::image_ops {

namespace {

template <class T>
struct InterpolateState {
  std::vector<ResamplePass<T>> passes;  // over one plane
  kernels::TileConverter widen, narrow;
  bool converts = false;           // elements are not T, or have to be rounded
  int64_t planes = 1;              // leading axes that do not change
  size_t inputs = 0, outputs = 0;  // numbers per plane; a complex element is two
  size_t buffer = 0;               // numbers in each of the two buffers
  bool rounds = false;             // integers: to nearest, ties to even
  double low = 0, high = 0;        // range of an integer type; low == high: no bounds
  T extrapolation{};
  size_t in_bytes = 0, out_bytes = 0;  // bytes of a plane
  double plane_ns = 0;
  std::vector<AxisTaps> axes;  // axes with elements outside; empty if there are none
  uint32_t output = 0, scratch = 0;
};

// Sets output elements that are outside along any axis.
template <class T>
void extrapolate(const InterpolateState<T>& s, size_t axis, T* out, int64_t count, bool outside) {
  if (axis == s.axes.size()) {
    if (outside) std::fill_n(out, count, s.extrapolation);
    return;
  }
  const AxisTaps& a = s.axes[axis];
  const int64_t step = a.out ? count / a.out : 0;
  for (int64_t i = 0; i < a.out; ++i) {
    const bool here = !a.is_outside.empty() && a.is_outside[static_cast<size_t>(i)];
    extrapolate(s, axis + 1, out + i * step, step, outside || here);
  }
}

// Runs all passes from `from` through the buffers to `to`, which may be one of them.
template <class T>
void run_passes(const InterpolateState<T>& s, const T* from, T* const (&buffers)[2], T* to) {
  if (s.passes.empty()) std::copy_n(from, s.inputs, to);
  for (size_t i = 0; i < s.passes.size(); ++i) {
    T* target = i + 1 == s.passes.size() ? to : buffers[i % 2];
    s.passes[i].run(from, target);
    from = target;
  }
  if (!s.axes.empty()) extrapolate(s, 0, to, static_cast<int64_t>(s.outputs), false);
}

template <class T>
void round_and_bound(const InterpolateState<T>& s, T* numbers) {
  if (s.rounds) std::transform(numbers, numbers + s.outputs, numbers, [](T x) { return std::nearbyint(x); });
  if (s.low == s.high) return;
  const auto low = static_cast<T>(s.low), high = static_cast<T>(s.high);
  std::transform(numbers, numbers + s.outputs, numbers, [=](T x) { return std::clamp(x, low, high); });
}

// Resizes one plane, with `scratch` for the buffers.
template <class T>
void interpolate_plane(const InterpolateState<T>& s, const std::byte* in, T* scratch, std::byte* out) {
  T* const buffers[2] = {scratch + s.buffer, scratch + 2 * s.buffer};
  if (!s.converts) return run_passes(s, reinterpret_cast<const T*>(in), buffers, reinterpret_cast<T*>(out));
  kernels::convert(s.widen, in, scratch, s.inputs);
  T* result = buffers[(s.passes.size() + 1) % 2];
  run_passes(s, scratch, buffers, result);
  round_and_bound(s, result);
  kernels::convert(s.narrow, result, out, s.outputs);
}

template <class T>
uint32_t run_interpolate(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const InterpolateState<T>*>(state);
  auto* scratch = static_cast<T*>(slots[operands[s.scratch]]);
  const auto* in = static_cast<const std::byte*>(slots[operands[0]]);
  auto* out = static_cast<std::byte*>(slots[operands[s.output]]);
  parallel_for(s.planes, s.plane_ns, [&](int64_t begin, int64_t end, int worker) {
    T* own = scratch + static_cast<size_t>(worker) * 3 * s.buffer;
    for (int64_t plane = begin; plane < end; ++plane) {
      const auto at = static_cast<size_t>(plane);
      interpolate_plane(s, in + at * s.in_bytes, own, out + at * s.out_bytes);
    }
  });
  return 0;
}

// Integers are rounded. Narrow ones are clamped, since cubic weights may exceed their range.
template <class State>
void set_bounds(State* s, ElementType type) {
  s->rounds = is_integer(type);
  const int bits = static_cast<int>(byte_width(type)) * 8;
  if (!is_integer(type) || bits > 32) return;
  s->low = is_signed_integer(type) ? -std::ldexp(1.0, bits - 1) : 0;
  s->high = std::ldexp(1.0, is_signed_integer(type) ? bits - 1 : bits) - 1;
}

template <class T>
Status prepare(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes, ElementType number_type,
               int64_t parts) {
  constexpr ElementType kWide = std::is_same_v<T, float> ? ElementType::kFloat : ElementType::kDouble;
  auto* s = c.make_state<InterpolateState<T>>();
  size_t leading = 0;
  for (; leading < axes.size() && axes[leading].identity; ++leading) s->planes *= axes[leading].out;
  axes.erase(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(leading));
  Dims dims;
  for (const AxisTaps& axis : axes) dims.push_back(axis.in);
  int64_t largest = element_count_unchecked(dims) * parts;
  s->inputs = static_cast<size_t>(largest);
  for (size_t d : cheapest_order(axes)) {
    auto& pass = s->passes.emplace_back();
    pass.outer = element_count_unchecked(dims.span().first(d));
    pass.inner = element_count_unchecked(dims.span().subspan(d + 1)) * parts;
    pass.in = axes[d].in;
    pass.out = axes[d].out;
    pass.taps = axes[d].taps;
    pass.indices.assign(axes[d].indices.begin(), axes[d].indices.end());
    pass.weights.assign(axes[d].weights.begin(), axes[d].weights.end());
    dims[d] = axes[d].out;
    largest = std::max(largest, element_count_unchecked(dims) * parts);
    s->plane_ns += costs::kResizeTapNs * static_cast<double>(element_count_unchecked(dims) * parts * pass.taps);
  }
  s->outputs = static_cast<size_t>(element_count_unchecked(dims) * parts);
  s->in_bytes = s->inputs * byte_width(number_type);
  s->out_bytes = s->outputs * byte_width(number_type);
  s->buffer = static_cast<size_t>(largest);
  s->converts = number_type != kWide;
  s->widen = kernels::make_converter(number_type, kWide);
  s->narrow = kernels::make_converter(kWide, number_type);
  set_bounds(s, number_type);
  s->extrapolation = static_cast<T>(options.extrapolation);
  s->output = static_cast<uint32_t>(c.inputs.size());
  s->scratch = c.scratch_operand();
  const size_t workers = scratch_parts(s->planes, s->plane_ns, c.threads);
  c.scratch_bytes = std::max<size_t>(workers * 3 * s->buffer * sizeof(T), 64);
  if (std::any_of(axes.begin(), axes.end(), [](const AxisTaps& a) { return !a.is_outside.empty(); })) {
    s->axes = std::move(axes);
  }
  c.set_kernel(run_interpolate<T>, s);
  return {};
}

}  // namespace

// Axes that shrink come first and axes that grow last, inner axes before outer ones. So most elements are computed by
// passes over long rows.
std::vector<size_t> cheapest_order(const std::vector<AxisTaps>& axes) {
  std::vector<size_t> order;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (!axes[d].identity && axes[d].out < axes[d].in) order.push_back(d);
  }
  for (size_t d = axes.size(); d-- > 0;) {
    if (!axes[d].identity && axes[d].out >= axes[d].in) order.push_back(d);
  }
  return order;
}

Status prepare_interpolation(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes) {
  const ElementType type = c.inputs[0].type;
  switch (compute_type(type)) {
    case ComputeType::kNone:
      if (type == ElementType::kComplex64) {
        return prepare<float>(c, options, std::move(axes), ElementType::kFloat, 2);
      }
      return prepare<double>(c, options, std::move(axes), ElementType::kDouble, 2);
    case ComputeType::kF32:
      return prepare<float>(c, options, std::move(axes), type, 1);
    default:
      // Narrow integers are exact in float, others are not.
      if (byte_width(type) <= 2) return prepare<float>(c, options, std::move(axes), type, 1);
      return prepare<double>(c, options, std::move(axes), type, 1);
  }
}

}  // namespace treadle::image_ops
