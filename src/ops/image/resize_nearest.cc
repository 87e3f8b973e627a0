#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/convert.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "ops/image/resize.h"

namespace treadle::image_ops {

namespace {

struct NearestState {
  std::vector<AxisTaps> axes;       // trailing axes that do not change are merged into runs
  std::vector<int64_t> in_strides;  // in bytes, by axis
  std::vector<int64_t> out_strides;
  size_t run = 0;                        // bytes
  bool doubles = false;                  // the last axis repeats each element twice
  bool doubles_rows = false;             // and the axis before it each row
  std::vector<std::byte> extrapolation;  // one run of the extrapolation value
  size_t first = 0;                      // the first axis that is resized
  int64_t leading = 1;                   // positions of the axes before `first`; of axis 0 if there are none
  double leading_ns = 0;
  uint32_t output = 0;
};

void fill_runs(const NearestState& s, char* out, size_t bytes) {
  for (size_t i = 0; i < bytes; i += s.run) std::memcpy(out + i, s.extrapolation.data(), s.run);
}

template <class T>
void pick_elements(const AxisTaps& axis, const T* in, T* out) {
  const int64_t* index = axis.indices.data();
  for (int64_t i = 0; i < axis.out; ++i) out[i] = in[index[i]];
}

// Repeats each element of a row twice, in each of the results. The last vector may overlap the one before.
template <class T, class... Rows>
void double_elements(const T* in, int64_t n, Rows*... out) {
  constexpr int64_t kLanes = 16 / static_cast<int64_t>(sizeof(T));
  using Vector [[gnu::vector_size(16)]] = T;
  const auto halves = [&]<int... kLane>(int64_t at, std::integer_sequence<int, kLane...>) {
    Vector v;
    std::memcpy(&v, in + at, sizeof v);
    const Vector low = __builtin_shufflevector(v, v, (kLane / 2)...);
    const Vector high = __builtin_shufflevector(v, v, (kLanes / 2 + kLane / 2)...);
    ((std::memcpy(out + 2 * at, &low, sizeof v), std::memcpy(out + 2 * at + kLanes, &high, sizeof v)), ...);
  };
  if (n < kLanes) {
    for (int64_t i = 0; i < n; ++i) ((out[2 * i] = out[2 * i + 1] = in[i]), ...);
    return;
  }
  for (int64_t i = 0; i < n; i += kLanes) {
    halves(std::min(i, n - kLanes), std::make_integer_sequence<int, static_cast<int>(kLanes)>());
  }
}

// Whether rows consist of single elements, and none of them is outside.
bool is_plain(const NearestState& s, const AxisTaps& axis) {
  return axis.is_outside.empty() && (s.run == 1 || s.run == 2 || s.run == 4 || s.run == 8);
}

// Calls f with a zero of an integer type as wide as an element of a plain row.
template <class F>
void with_element(const NearestState& s, F f) {
  s.run == 1 ? f(uint8_t()) : s.run == 2 ? f(uint16_t()) : s.run == 4 ? f(uint32_t()) : f(uint64_t());
}

void copy_row(const NearestState& s, const AxisTaps& axis, const char* in, char* out) {
  with_element(s, [&]<class T>(T) {
    const auto* from = reinterpret_cast<const T*>(in);
    auto* to = reinterpret_cast<T*>(out);
    s.doubles ? double_elements(from, axis.in, to) : pick_elements(axis, from, to);
  });
}

// Repeats rows [begin, end) of the input.
void double_rows(const NearestState& s, const char* in, char* out, int64_t begin, int64_t end) {
  const size_t last = s.axes.size() - 1;
  with_element(s, [&]<class T>(T) {
    const int64_t n = s.axes[last].in;
    const auto* from = reinterpret_cast<const T*>(in) + begin * n;
    auto* to = reinterpret_cast<T*>(out) + begin * 4 * n;
    for (int64_t i = begin; i < end; ++i, from += n, to += 4 * n) double_elements(from, n, to, to + 2 * n);
  });
}

// Computes elements [begin, end) of an axis of the result.
void copy_nearest(const NearestState& s, size_t axis, const char* in, char* out, int64_t begin, int64_t end,
                  StopPoll& stop) {
  const AxisTaps& a = s.axes[axis];
  const bool innermost = axis + 1 == s.axes.size(), whole = end - begin == a.out;
  if (s.doubles_rows && whole && axis + 2 == s.axes.size()) {
    in_pieces(a.in, static_cast<double>(2 * s.axes[axis + 1].out) * kByteNs * static_cast<double>(s.run), stop,
              [&](int64_t first, int64_t last) { double_rows(s, in, out, first, last); });
    return;
  }
  if (innermost && stop.after(static_cast<double>(end - begin))) return;
  if (innermost && whole && is_plain(s, a)) return copy_row(s, a, in, out);
  const auto bytes = static_cast<size_t>(s.out_strides[axis]);
  out += begin * s.out_strides[axis];
  for (int64_t i = begin; i < end && !stop.after(kByteNs * static_cast<double>(s.run)); ++i, out += bytes) {
    const auto at = static_cast<size_t>(i);
    if (!a.is_outside.empty() && a.is_outside[at]) {
      fill_runs(s, out, bytes);
    } else if (a.is_outside.empty() && i > begin && a.indices[at] == a.indices[at - 1]) {
      std::memcpy(out, out - bytes, bytes);
    } else if (const char* from = in + a.indices[at] * s.in_strides[axis]; innermost) {
      std::memcpy(out, from, s.run);
    } else {
      copy_nearest(s, axis + 1, from, out, 0, s.axes[axis + 1].out, stop);
    }
  }
}

uint32_t run_nearest(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const NearestState*>(state);
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[s.output]]);
  if (s.axes.empty()) {
    return unless_stopped(copy_in_pieces(out, in, s.run));
  }
  // Leading axes that do not change (batch and channels) are walked as one.
  parallel_for(s.leading, s.leading_ns, [&](int64_t begin, int64_t end, int) {
    StopPoll stop;
    if (s.first == 0) return copy_nearest(s, 0, in, out, begin, end, stop);
    for (int64_t i = begin; i < end; ++i) {
      copy_nearest(s, s.first, in + i * s.in_strides[s.first - 1], out + i * s.out_strides[s.first - 1], 0,
                   s.axes[s.first].out, stop);
    }
  });
  return 0;
}

bool doubles(const AxisTaps& axis) {
  bool same = axis.out == 2 * axis.in;
  for (int64_t i = 0; same && i < axis.out; ++i) same = axis.indices[static_cast<size_t>(i)] == i / 2;
  return same;
}

}  // namespace

Status prepare_nearest(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes) {
  const ElementType type = c.inputs[0].type;
  auto* s = c.make_state<NearestState>();
  s->output = static_cast<uint32_t>(c.inputs.size());
  const size_t width = byte_width(type);
  std::vector<std::byte> value(width);
  if (options.extrapolation != 0 && kernels::can_convert(ElementType::kFloat, type)) {
    kernels::cast(ElementType::kFloat, type, &options.extrapolation, value.data(), 1);
  }
  s->run = width;
  while (!axes.empty() && axes.back().identity) {
    s->run *= static_cast<size_t>(axes.back().out);
    axes.pop_back();
  }
  for (size_t i = 0; i < s->run / width; ++i) {
    s->extrapolation.insert(s->extrapolation.end(), value.begin(), value.end());
  }
  s->axes = std::move(axes);
  s->in_strides.resize(s->axes.size());
  s->out_strides.resize(s->axes.size());
  auto in_stride = static_cast<int64_t>(s->run), out_stride = in_stride;
  for (size_t i = s->axes.size(); i-- > 0;) {
    s->in_strides[i] = in_stride;
    s->out_strides[i] = out_stride;
    in_stride *= s->axes[i].in;
    out_stride *= s->axes[i].out;
  }
  while (s->first < s->axes.size() && s->axes[s->first].identity) s->leading *= s->axes[s->first++].out;
  if (s->first == 0 && !s->axes.empty()) s->leading = s->axes[0].out;
  c.cost_ns = static_cast<double>(c.outputs[0].byte_size()) * (s->run >= 64 ? 0.1 : 0.3);
  s->leading_ns = c.cost_ns / static_cast<double>(std::max<int64_t>(s->leading, 1));
  if (!s->axes.empty()) {
    s->doubles = doubles(s->axes.back());
    s->doubles_rows = s->doubles && s->axes.size() >= 2 && is_plain(*s, s->axes.back()) && doubles(s->axes.end()[-2]) &&
                      s->axes.end()[-2].is_outside.empty();
  }
  c.set_kernel(run_nearest, s);
  return {};
}

}  // namespace treadle::image_ops
