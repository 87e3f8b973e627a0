#include <cstring>

#include "kernels/convert.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "ops/image/resize.h"

namespace treadle::image_ops {

namespace {

struct NearestState {
  std::vector<AxisTaps> axes;       // the trailing ones that stay as they are, merged into runs
  std::vector<int64_t> in_strides;  // in bytes, by axis
  std::vector<int64_t> out_strides;
  size_t run = 0;                        // bytes
  bool doubles = false;                  // the last axis gives every element twice
  std::vector<std::byte> extrapolation;  // a run of the extrapolation value
  size_t first = 0;                      // axis that is resized first
  int64_t leading = 1;                   // positions of the axes before it; of axis 0 if there are none
  double leading_ns = 0;
  uint32_t output = 0;
};

void fill_runs(const NearestState& s, char* out, size_t bytes) {
  for (size_t i = 0; i < bytes; i += s.run) std::memcpy(out + i, s.extrapolation.data(), s.run);
}

template <class T>
void pick_elements(const AxisTaps& axis, const char* in, char* out) {
  const auto* from = reinterpret_cast<const T*>(in);
  auto* to = reinterpret_cast<T*>(out);
  const int64_t* index = axis.indices.data();
  for (int64_t i = 0; i < axis.out; ++i) to[i] = from[index[i]];
}

template <class T>
void double_elements(const AxisTaps& axis, const char* in, char* out) {
  const auto* from = reinterpret_cast<const T*>(in);
  auto* to = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < axis.in; ++i) to[2 * i] = to[2 * i + 1] = from[i];
}

// A row of single elements; false where it has to be copied run by run.
bool copy_row(const NearestState& s, const AxisTaps& axis, const char* in, char* out) {
  if (!axis.is_outside.empty() || (s.run != 1 && s.run != 2 && s.run != 4 && s.run != 8)) return false;
  const auto copy = [&]<class T>(T) {
    s.doubles ? double_elements<T>(axis, in, out) : pick_elements<T>(axis, in, out);
  };
  s.run == 1 ? copy(uint8_t()) : s.run == 2 ? copy(uint16_t()) : s.run == 4 ? copy(uint32_t()) : copy(uint64_t());
  return true;
}

// Elements [begin, end) of an axis of the result.
void copy_nearest(const NearestState& s, size_t axis, const char* in, char* out, int64_t begin, int64_t end,
                  StopPoll& stop) {
  const AxisTaps& a = s.axes[axis];
  const bool innermost = axis + 1 == s.axes.size();
  if (innermost && stop.after(static_cast<double>(end - begin))) return;
  if (innermost && end - begin == a.out && copy_row(s, a, in, out)) return;
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
  // The leading axes that stay as they are (batch and channels) are walked as one.
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
    const AxisTaps& last = s->axes.back();
    s->doubles = last.out == 2 * last.in;
    for (int64_t i = 0; i < last.out; ++i) s->doubles &= last.indices[static_cast<size_t>(i)] == i / 2;
  }
  c.set_kernel(run_nearest, s);
  return {};
}

}  // namespace treadle::image_ops
