// Nodes that reach from frame to frame: windows of convolutions and pools, pads, cuts, running sums.
//
// A window of `reach` frames (dilation included) that advances by `stride` no longer needs the frames in front of it.
// The frames that later windows need when a block ends stay for the next block; their number, with the pads of the
// beginning, is:
//
//   kept = begin + frames of x - stride * frames of y
//
// Blocks end where this number is always the same. The last block adds the pads of the end. It may be too short for a
// single window, which operators refuse; so it gets one stride of frames more, and its result one frame less.
#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "op/op_def.h"
#include "ops/nn/window.h"
#include "stream/time_walk.h"

namespace treadle::stream {

struct TimeWalk::TimeWindow {
  size_t spatial = 0;  // the spatial axis that is time
  size_t axes = 0;
  int64_t reach = 1, stride = 1;
  std::vector<int64_t> begin, end;  // pads of all spatial axes
  bool zero_pads = false;           // pads are frames of zeros

  int64_t time_begin() const { return begin[spatial]; }
  int64_t time_end() const { return end[spatial]; }
  // Frames that must have come for the next frame of y, if windows skip frames.
  int64_t span() const { return std::max(reach, stride); }
};

namespace {

bool is_pool(const ir::Node& node) {
  return node.op->product == Product::kNone && node.op->over_time == TimeRule::kWindow;
}

size_t weights_of(const ir::Node& node) {
  return node.op->factors[1];
}

// The kernel's size along spatial axis i.
Result<int64_t> kernel_size(const ir::Node& node, const nn::Window& window, size_t i) {
  if (window.has_kernel) return window.kernel[i];
  const ir::Value* w = is_pool(node) ? nullptr : node.inputs[weights_of(node)];
  if (!w || !w->type.has_shape || !w->type.shape[i + 2].is_known()) {
    return error(Code::kInvalidArgument, "the size of its kernel is not known");
  }
  return w->type.shape[i + 2].value();
}

}  // namespace

Result<TimeWalk::TimeWindow> TimeWalk::read_time_window(const ir::Node& node, const Role& x) const {
  const Shape& shape = node.inputs[0]->type.shape;
  TimeWindow time;
  time.axes = shape.size() - 2;
  time.spatial = static_cast<size_t>(x.axis) - 2;
  TREADLE_ASSIGN(const nn::Window window, nn::read_window(node.attributes, time.axes));
  const bool same = window.auto_pad == nn::AutoPad::kSameUpper || window.auto_pad == nn::AutoPad::kSameLower;
  for (size_t i = 0; i < time.axes; ++i) {
    TREADLE_ASSIGN(const int64_t size, kernel_size(node, window, i));
    const int64_t reach = (size - 1) * window.dilation[i] + 1;
    int64_t begin = window.pad_begin[i], end = window.pad_end[i];
    if (same) {
      const bool time_axis = i == time.spatial;
      if (time_axis ? window.stride[i] != 1 : !shape[i + 2].is_known()) {
        return error(Code::kInvalidArgument, "its pads depend on the length of the axis (auto_pad {})",
                     node.attributes.get_string("auto_pad"));
      }
      const int64_t stride = window.stride[i], n = time_axis ? reach : shape[i + 2].value();
      const int64_t total = std::max<int64_t>(0, ((n + stride - 1) / stride - 1) * stride + reach - n);
      begin = window.auto_pad == nn::AutoPad::kSameUpper ? total / 2 : total - total / 2;
      end = total - begin;
    }
    time.begin.push_back(begin);
    time.end.push_back(end);
    if (i != time.spatial) continue;
    time.reach = reach;
    time.stride = window.stride[i];
  }
  if (window.ceil && window.auto_pad != nn::AutoPad::kValid && time.stride > 1) {
    return error(Code::kInvalidArgument, "its last window may reach over the end (ceil_mode)");
  }
  time.zero_pads = !is_pool(node) && is_float(node.inputs[0]->type.element);  // integers have a zero point
  return time;
}

// Sets explicit pads, those of the time axis to `begin` and `end`.
Status TimeWalk::set_pads(ir::Node& node, const TimeWindow& window, int64_t begin, int64_t end) {
  std::vector<int64_t> pads = window.begin;
  pads.insert(pads.end(), window.end.begin(), window.end.end());
  pads[window.spatial] = begin;
  pads[window.axes + window.spatial] = end;
  node.attributes.set(ir::Attribute::of("pads", std::move(pads)));
  node.attributes.set(ir::Attribute::of("auto_pad", std::string("NOTSET")));
  return {};
}

Status TimeWalk::window(ir::Node& node) {
  const Role x = role(node.inputs[0]);
  const Operands all = operands(node);
  const bool windows_run_along = x.timed() && x.axis >= 2;
  if (!windows_run_along) return pass_on(node, all);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] && role(node.inputs[i]).kind != Role::Kind::kFree)
      return refuse(node, "its weights are no constants");
  }
  if (node.outputs.size() > 1 && node.outputs[1]) return refuse(node, "it counts positions from the beginning");
  auto read = read_time_window(node, x);
  if (!read.ok()) return refuse(node, read.error().message());
  const TimeWindow& w = *read;
  const int64_t begin = w.time_begin(), end = w.time_end(), stride = w.stride;
  const int frames = counts_.scaled(x.frames, begin - w.span() + stride, begin + end - w.reach + stride, 1, stride);
  const int64_t tail = (x.tail + end + w.span() - w.reach) / stride;
  if (!w.zero_pads && begin > 0) counts_.need(x.frames, w.span() - 1);
  const int64_t kept = begin + counts_.at_first(x.frames) - stride * counts_.at_first(frames);
  ir::Value* in = with_history(node.inputs[0], x.axis, kept, begin, std::string(node.name) + ":frames");
  if (last_block() && w.zero_pads) {
    in = pad_frames(in, x.axis, 0, end + stride);
    TREADLE_TRY(set_pads(node, w, 0, 0));
  } else {
    TREADLE_TRY(set_pads(node, w, first_block() ? begin : 0, last_block() ? end + stride : 0));
  }
  set_input(node, 0, in);
  set_frames(node.outputs[0], x.axis, frames, tail, x);
  emit();
  // Complete windows that still wait for the frames that their stride skips.
  const int64_t surplus = last_block() ? 1 : kept >= w.reach ? (kept - w.reach) / stride + 1 : 0;
  if (surplus > 0) replace_output(node, slice(node.outputs[0], x.axis, 0, -surplus));
  return {};
}

// Frame k of x is added to the frames k * stride to k * stride + reach - 1. A frame is complete when no later frame of
// x reaches it; the last `kept` frames of x reach into incomplete frames.
Status TimeWalk::conv_transpose(ir::Node& node) {
  const Role x = role(node.inputs[0]);
  if (!x.timed() || x.axis < 2) return pass_on(node, operands(node));
  if (operands(node).length || role(node.inputs[1]).kind != Role::Kind::kFree) {
    return refuse(node, "its weights are no constants");
  }
  const std::string_view auto_pad = node.attributes.get_string("auto_pad", "NOTSET");
  if ((auto_pad != "NOTSET" && !auto_pad.empty() && auto_pad != "VALID") || node.attributes.has("output_shape")) {
    return refuse(node, "its pads depend on the length of the axis");
  }
  auto read = read_time_window(node, x);
  if (!read.ok()) return refuse(node, read.error().message());
  const TimeWindow& w = *read;
  const auto given = node.attributes.get_ints("output_padding");
  std::vector<int64_t> more(given.begin(), given.end());
  more.resize(w.axes);
  const int64_t begin = w.time_begin(), end = w.time_end(), stride = w.stride;
  const int64_t behind = w.reach - stride - end + more[w.spatial];  // frames that come at the end
  if (w.reach < stride || behind < 0) return refuse(node, "it leaves out frames at the end");
  const int frames = counts_.scaled(counts_.scaled(x.frames, 0, 0, stride), -begin, behind - begin);
  const int64_t kept = (w.reach - 1) / stride;
  counts_.need(x.frames, kept);
  ir::Value* in = with_history(node.inputs[0], x.axis, kept, 0, std::string(node.name) + ":frames");
  set_input(node, 0, in);
  TREADLE_TRY(set_pads(node, w, first_block() ? begin : 0, last_block() ? end : 0));
  if (!last_block()) {
    more[w.spatial] = 0;
    node.attributes.set(ir::Attribute::of("output_padding", more));
  }
  set_frames(node.outputs[0], x.axis, frames, stride * x.tail + behind, x);
  emit();
  const int64_t undone = last_block() ? 0 : w.reach - stride;
  const int64_t done_before = first_block() ? 0 : stride * kept;
  if (undone > 0 || done_before > 0) {
    ir::Value* y = slice(node.outputs[0], x.axis, done_before, undone > 0 ? -undone : INT64_MAX);
    replace_output(node, y);
  }
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

// Pads the beginning in the first block and the end in the last one. Negative pads cut.
Status TimeWalk::pad(ir::Node& node) {
  const Role x = role(node.inputs[0]);
  const size_t rank = node.inputs[0]->type.shape.size();
  std::vector<int64_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
  if (const auto given = constant_ints(node, 3)) {
    axes = *given;
    for (int64_t& a : axes) a += a < 0 ? static_cast<int64_t>(rank) : 0;
  } else if (node.inputs.size() > 3 && node.inputs[3]) {
    return refuse(node, "its axes are not known beforehand");
  }
  const auto at = static_cast<size_t>(std::find(axes.begin(), axes.end(), x.axis) - axes.begin());
  if (!x.timed() || at == axes.size()) return pass_on(node, operands(node));
  const auto pads = node.attributes.has("pads") ? constant_axes(node, 1, "pads") : constant_ints(node, 1);
  if (!pads || pads->size() != 2 * axes.size()) return refuse(node, "its pads are not known beforehand");
  const int64_t begin = (*pads)[at], end = (*pads)[axes.size() + at];
  const std::string_view mode = node.attributes.get_string("mode", "constant");
  if (mode == "wrap" && (begin != 0 || end != 0)) return refuse(node, "its pads wrap around");
  if (mode == "reflect" && begin > 0) counts_.need(x.frames, begin + 1);
  const int64_t held = std::max<int64_t>(0, -end - x.tail);
  // The number of frames from which the pads of the end are copied.
  const int64_t seen = end <= 0 || mode == "constant" ? 0 : mode == "edge" ? 1 : end + 1;
  if (seen > 0) counts_.need(x.frames, seen);
  std::vector<int64_t> now = *pads;
  now[at] = first_block() ? begin : 0;
  now[axes.size() + at] = last_block() ? end : 0;
  ir::Value* in = node.inputs[0];
  const int frames = counts_.scaled(x.frames, begin - held, begin + end);
  const bool looks_back = seen > 0;
  if (held > 0) in = hold_back(in, x.axis, held, std::string(node.name) + ":frames");
  ir::Value* whole = looks_back ? with_history(in, x.axis, seen, 0, std::string(node.name) + ":frames") : in;
  set_input(node, 0, looks_back && !last_block() ? in : whole);
  if (node.attributes.has("pads")) {
    node.attributes.set(ir::Attribute::of("pads", std::move(now)));
  } else {
    set_input(node, 1, ints(std::move(now)));
  }
  set_frames(node.outputs[0], x.axis, frames, x.tail + end + held, x);
  emit();
  if (looks_back && last_block()) replace_output(node, slice(node.outputs[0], x.axis, seen, INT64_MAX));
  return {};
}

// Along time: the first block cuts the first frames; the last frames are held back until more come.
Status TimeWalk::slice_node(ir::Node& node) {
  const Role x = role(node.inputs[0]);
  if (!x.timed()) return pass_on(node, operands(node));
  const size_t rank = node.inputs[0]->type.shape.size();
  const bool attributes = node.attributes.has("starts");
  const auto list = [&](size_t input, const char* name) -> std::optional<Shape> {
    if (attributes) {
      Shape values;
      for (const int64_t v : node.attributes.get_ints(name)) values.push_back(v);
      return values;
    }
    return input < node.inputs.size() && node.inputs[input] ? contents(node.inputs[input]) : Shape();
  };
  const auto starts = list(1, "starts"), ends = list(2, "ends"), steps = list(4, "steps");
  auto axes = constant_axes(node, 3);
  if (!starts || !ends || !axes || !steps) return refuse(node, "the part that it cuts out is not known beforehand");
  for (size_t i = 0; axes->size() < starts->size(); ++i) axes->push_back(static_cast<int64_t>(i));
  for (int64_t& a : *axes) a += a < 0 ? static_cast<int64_t>(rank) : 0;
  const auto at = static_cast<size_t>(std::find(axes->begin(), axes->end(), x.axis) - axes->begin());
  if (at == axes->size()) return pass_on(node, operands(node));
  if (at < steps->size() && !(*steps)[at].is_known(1)) return refuse(node, "it leaves out frames");
  const Dim& length = node.inputs[0]->type.shape[static_cast<size_t>(x.axis)];
  const Dim end = (*ends)[at];
  const Dim from_end = end - length;
  const bool to_the_end = end.is_known() && end.value() >= INT32_MAX;
  int64_t cut = 0;
  if (!to_the_end) {
    const bool negative = end.is_known() && end.value() < 0;
    if (!negative && !(from_end.is_known() && from_end.value() <= 0)) return refuse(node, "it ends at a fixed frame");
    cut = negative ? -end.value() : -from_end.value();
  }
  const Dim& start = (*starts)[at];
  if (!start.is_known() || start.value() < 0) return refuse(node, "it begins at the last frames");
  const int64_t held = std::max<int64_t>(0, cut - x.tail);
  const int frames = counts_.scaled(x.frames, -start.value() - held, -start.value() - cut);
  ir::Value* in = node.inputs[0];
  // Cuts along other axes stay in the node; the cut along time is made here.
  in = hold_back(in, x.axis, held, std::string(node.name) + ":frames");
  if (first_block() && start.value() > 0) in = slice(in, x.axis, start.value(), INT64_MAX);
  if (last_block() && cut > 0) in = slice(in, x.axis, 0, -cut);
  std::vector<int64_t> others[4];
  for (size_t i = 0; i < axes->size(); ++i) {
    if (i == at) continue;
    const Dim step = i < steps->size() ? (*steps)[i] : Dim(1);
    if (!(*starts)[i].is_known() || !(*ends)[i].is_known() || !step.is_known()) {
      return refuse(node, "the part that it cuts out is not known beforehand");
    }
    others[0].push_back((*starts)[i].value());
    others[1].push_back((*ends)[i].value());
    others[2].push_back((*axes)[i]);
    others[3].push_back(step.value());
  }
  if (others[0].empty()) {
    in = call("Identity", {in}, node.outputs[0]->type);
  } else {
    in = call("Slice", {in, ints(others[0]), ints(others[1]), ints(others[2]), ints(others[3])}, node.outputs[0]->type);
  }
  set_frames(node.outputs[0], x.axis, frames, x.tail - cut + held, x);
  replace_output(node, in);
  drop();
  return {};
}

// Concatenates constant frames before or behind the frames of the signal.
Status TimeWalk::concat_node(ir::Node& node) {
  const Operands all = operands(node);
  size_t at = SIZE_MAX, timed = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] && role(node.inputs[i]).timed()) {
      at = i;
      ++timed;
    }
  }
  if (timed == 0 || all.length || all.so_far) return pass_on(node, all);
  const Role x = role(node.inputs[at]);
  const auto rank = static_cast<int64_t>(node.inputs[at]->type.shape.size());
  int64_t axis = node.attributes.get_int("axis", 1);
  axis += axis < 0 ? rank : 0;
  if (axis != x.axis) return pass_on(node, all);
  if (timed > 1) return refuse(node, "it puts one signal behind the other");
  int64_t before = 0, behind = 0;
  std::vector<ir::Value*> kept;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i != at) {
      const Type& type = node.inputs[i]->type;
      const Dim frames = type.has_shape ? type.shape[static_cast<size_t>(axis)] : Dim::unknown();
      if (!frames.is_known()) return refuse(node, "it adds frames, nobody knows how many");
      (i < at ? before : behind) += frames.value();
    }
    if (i == at || (i < at ? first_block() : last_block())) kept.push_back(node.inputs[i]);
  }
  node.inputs.clear();
  node.input_count = 0;
  for (ir::Value* v : kept) graph_.add_input(&node, v);
  set_frames(node.outputs[0], axis, counts_.scaled(x.frames, before, before + behind), x.tail + behind, x);
  return {};
}

// Puts the sum so far in front of the block, so that sums are made in the order of a run over the whole signal.
Status TimeWalk::cum_sum(ir::Node& node) {
  const Role x = role(node.inputs[0]);
  auto axis = constant_ints(node, 1);
  if (!x.timed() || !axis || axis->size() != 1) return pass_on(node, operands(node));
  ir::Value* in = node.inputs[0];
  const auto rank = static_cast<int64_t>(in->type.shape.size());
  if (((*axis)[0] < 0 ? (*axis)[0] + rank : (*axis)[0]) != x.axis) return pass_on(node, operands(node));
  if (node.attributes.get_int("reverse") != 0) return refuse(node, "it sums from the end");
  const bool exclusive = node.attributes.get_int("exclusive") != 0;
  const size_t state = add_state(std::string(node.name) + ":sum", frames_type(in, x.axis, 1));
  if (!first_block()) {
    in = concat(past(state), in, x.axis);
    set_input(node, 0, in);
  }
  ir::Value* y = node.outputs[0];
  set_frames(y, x.axis, x.frames, x.tail, x);
  emit();
  ir::Value* total = slice(y, x.axis, -1, INT64_MAX);
  if (exclusive) total = call("Add", {total, slice(in, x.axis, -1, INT64_MAX)}, total->type);
  set_next(state, total);
  if (!first_block()) replace_output(node, slice(y, x.axis, 1, INT64_MAX));
  return {};
}

// The last frame of the signal is the last frame of the newest block.
Status TimeWalk::gather(ir::Node& node) {
  const Role x = role(node.inputs[0]);
  const auto index = constant_ints(node, 1);
  ir::Value* in = node.inputs[0];
  int64_t axis = node.attributes.get_int("axis");
  axis += axis < 0 ? in->type.rank() : 0;
  const bool last = index && index->size() == 1 && (*index)[0] == -1;
  if (!x.timed() || axis != x.axis || !last) return pass_on(node, operands(node));
  if (x.may_stop) return refuse(node, "a loop may stop before there is a last frame");
  set_input(node, 0, with_history(in, axis, 1, 0, std::string(node.name) + ":last"));
  Role so_far;
  so_far.kind = Role::Kind::kSoFar;
  so_far.carried = x.carried;
  set_role(node.outputs[0], so_far);
  return {};
}

}  // namespace treadle::stream
