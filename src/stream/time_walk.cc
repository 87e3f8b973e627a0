#include "stream/time_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stop.h"
#include "op/op_def.h"

namespace treadle::stream {

namespace {

constexpr size_t kLongestPath = 6;  // nodes of a path that an error names

}  // namespace

std::string label(const ir::Node& node) {
  return fmt::format("{} '{}'", node.op->name, std::string_view(node.name));
}

TimeWalk::Handler TimeWalk::handler_of(const ir::Node& node) {
  switch (node.op->over_time) {
    case TimeRule::kNone:
      return nullptr;
    case TimeRule::kWindow:
      return &TimeWalk::window;
    case TimeRule::kTransposedWindow:
      return &TimeWalk::conv_transpose;
    case TimeRule::kConcat:
      return &TimeWalk::concat_node;
    case TimeRule::kPad:
      return &TimeWalk::pad;
    case TimeRule::kSlice:
      return &TimeWalk::slice_node;
    case TimeRule::kGather:
      return &TimeWalk::gather;
    case TimeRule::kPrefixSum:
      return &TimeWalk::cum_sum;
    case TimeRule::kRecurrence:
      return &TimeWalk::recurrence;
    case TimeRule::kLoop:
      return &TimeWalk::loop;
    case TimeRule::kScan:
      return &TimeWalk::scan;
    case TimeRule::kReshape:
      return &TimeWalk::reshape;
    case TimeRule::kSqueeze:
      return &TimeWalk::squeeze;
    case TimeRule::kExpand:
      return &TimeWalk::expand;
    case TimeRule::kFill:
      return &TimeWalk::constant_of_shape;
    case TimeRule::kRange:
      return &TimeWalk::range;
    case TimeRule::kSize:
      return &TimeWalk::pass_shape;
  }
  return nullptr;
}

Status TimeWalk::run(const std::vector<TimedInput>& timed, const std::vector<std::string_view>& carried) {
  for (ir::Value* v : top_.inputs) {
    if (std::find(carried.begin(), carried.end(), v->name.view()) != carried.end()) {
      Role role;
      role.carried = true;
      set_role(v, role);
    }
    for (const TimedInput& input : timed) {
      if (v->name != input.name) continue;
      v->type.shape[static_cast<size_t>(input.axis)] = Dim::symbol(kSamplesSymbol);
      if (length_name_.empty() && !input.length.empty()) length_name_ = fmt::format(" ({})", input.length);
      set_frames(v, input.axis, FrameCounts::kSamples, 0, {});
    }
  }
  outputs_ = top_.outputs;
  TREADLE_TRY(inference_.infer(top_));
  std::vector<std::unique_ptr<ir::Node>> nodes = std::move(top_.nodes);
  top_.nodes.clear();
  for (auto& node : nodes) TREADLE_TRY(visit(std::move(node)));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (role(outputs_[i]).kind != Role::Kind::kLength) continue;
    return error(Code::kInvalidArgument, "cannot be streamed because output '{}' follows from the length of the signal",
                 std::string_view(outputs_[i]->name));
  }
  finish_graph(timed);
  return {};
}

Status TimeWalk::visit(std::unique_ptr<ir::Node> node) {
  if (stop_requested()) return stopped();
  ir::replace_uses(*node, replaced_);
  node_ = std::move(node);
  ir::Node& at = *node_;
  const Operands found = operands(at);
  if (found.timed || found.length) {
    const Handler handler = handler_of(at);
    TREADLE_TRY(handler ? (this->*handler)(at) : pass_on(at, found));
  } else {
    Role role;
    role.kind = found.so_far ? Role::Kind::kSoFar : Role::Kind::kFree;
    role.carried = found.carried;
    for (ir::Value* v : at.outputs) {
      if (v) set_role(v, role);
    }
  }
  emit();
  return {};
}

TimeWalk::Operands TimeWalk::operands(const ir::Node& node) const {
  Operands found;
  const auto add = [&](const ir::Value* v) {
    if (!v) return;
    const Role& r = role(v);
    found.timed |= r.timed();
    found.length |= r.kind == Role::Kind::kLength;
    found.so_far |= r.kind == Role::Kind::kSoFar;
    found.carried |= r.carried;
  };
  for (const ir::Value* v : node.inputs) add(v);
  for (const auto& body : node.regions) {
    for (const ir::Value* v : ir::captures(*body)) add(v);
  }
  return found;
}

Status TimeWalk::pass_on(ir::Node& node, const Operands& found) {
  if (found.timed && found.length) return refuse(node, "it computes with the length of the signal");
  if (found.timed) return pass_frames(node);
  if (found.so_far) return refuse(node, "it computes with the length of the signal");
  for (ir::Value* v : node.outputs) {
    if (v) set_role(v, length_or_free(v));
  }
  return {};
}

Status TimeWalk::pass_shape(ir::Node& node) {
  for (ir::Value* v : node.outputs) set_role(v, length_or_free(v));
  return {};
}

Status TimeWalk::pass_frames(ir::Node& node) {
  const Operands found = operands(node);
  if (found.so_far) return refuse(node, "it combines frames with a state that comes after all of them");
  if (found.length) return refuse(node, "it computes with the length of the signal");
  TREADLE_ASSIGN(const Role joined, join(node));
  AxisMap axes;
  const auto add = [&](const ir::Value* v) {
    if (v && role(v).timed()) axes[v] = role(v).axis;
  };
  for (const ir::Value* v : node.inputs) add(v);
  for (const auto& body : node.regions) {
    for (const ir::Value* v : ir::captures(*body)) add(v);
  }
  const Status status = carry_axis(node, axes);
  if (!status.ok() && !status.place().empty()) {
    return refuse(node, fmt::format("in its body, at {}: {}", status.place(), status.message()));
  }
  if (!status.ok()) return refuse(node, status.message());
  for (ir::Value* v : node.outputs) {
    if (!v) continue;
    const auto it = axes.find(v);
    if (it == axes.end()) {
      set_role(v, {});
    } else {
      set_frames(v, it->second, joined.frames, joined.tail, joined);
    }
  }
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

const Role& TimeWalk::role(const ir::Value* v) const {
  static const Role kNone;
  const auto it = roles_.find(v);
  return it == roles_.end() ? kNone : it->second;
}

void TimeWalk::set_role(ir::Value* v, Role role) {
  if (role.timed()) timed_.push_back(v);
  roles_[v] = role;
}

void TimeWalk::set_frames(ir::Value* v, int64_t axis, int frames, int64_t tail, const Role& like) {
  Role role = like;
  role.kind = Role::Kind::kTimed;
  role.axis = axis;
  role.frames = frames;
  role.tail = tail;
  set_role(v, role);
}

Role TimeWalk::length_or_free(const ir::Value* v) const {
  Role role;
  const auto known = contents(v);
  const bool free = known && std::none_of(known->begin(), known->end(),
                                          [&](const Dim& d) { return d.is_unknown() || is_samples(d); });
  if (!free) role.kind = Role::Kind::kLength;
  return role;
}

std::optional<Shape> TimeWalk::contents(const ir::Value* v) const {
  const Tensor* t = v->is_constant() ? &v->constant : inference_.constant(v);
  if (t && t->rank() <= 1 && (t->type() == ElementType::kInt64 || t->type() == ElementType::kInt32)) {
    Shape known;
    for (int64_t i = 0; i < t->element_count(); ++i) known.push_back(Dim(t->int64_at(i)));
    return known;
  }
  const Shape* symbols = inference_.symbols(v);
  return symbols ? std::optional<Shape>(*symbols) : std::nullopt;
}

ir::Value* TimeWalk::with_length(const Dim& dim) const {
  for (ir::Value* v : timed_) {
    const Role& r = role(v);
    if (!r.may_stop && same(v->type.shape[static_cast<size_t>(r.axis)], dim)) return current(v);
  }
  return nullptr;
}

// A value with several readers is held back for each of them; a body reads the captured value under its new name.
Result<Role> TimeWalk::join(ir::Node& node) {
  std::vector<ir::Value*> timed;
  const auto add = [&](ir::Value* v) {
    if (v && role(v).timed() && std::find(timed.begin(), timed.end(), v) == timed.end()) timed.push_back(v);
  };
  for (ir::Value* v : node.inputs) add(v);
  for (const auto& body : node.regions) {
    for (ir::Value* v : ir::captures(*body)) add(v);
  }
  Role joined = role(timed[0]);
  std::vector<int> frames;
  for (const ir::Value* v : timed) {
    const Role& r = role(v);
    if (!counts_.same_rate(joined.frames, r.frames)) return refuse(node, "its operands have frames at unlike rates");
    joined.tail = std::max(joined.tail, r.tail);
    joined.may_stop |= r.may_stop;
    joined.carried |= r.carried;
    frames.push_back(r.frames);
  }
  joined.frames = counts_.least(frames);
  if (joined.may_stop && std::any_of(frames.begin(), frames.end(), [&](int f) { return f != frames[0]; })) {
    return refuse(node, "it combines frames of a loop that may stop with others");
  }
  std::unordered_map<ir::Value*, ir::Value*> held;
  for (ir::Value* v : timed) {
    const Role r = role(v);
    const int64_t ahead = counts_.at_first(r.frames) - counts_.at_first(joined.frames);
    if (ahead <= 0) continue;
    held[v] = hold_back(v, r.axis, ahead, std::string(node.name) + ":waiting");
    set_frames(held[v], r.axis, joined.frames, joined.tail, r);
  }
  if (!held.empty()) ir::replace_uses(node, held);
  return joined;
}

Status TimeWalk::refuse(const ir::Node& node, const std::string& why) const {
  std::vector<const ir::Value*> values(node.inputs.begin(), node.inputs.end());
  for (const auto& body : node.regions) {
    for (const ir::Value* v : ir::captures(*body)) values.push_back(v);
  }
  const auto it = std::find_if(values.begin(), values.end(), [&](const ir::Value* v) { return v && role(v).timed(); });
  if (it == values.end()) {
    return error(Code::kInvalidArgument, "cannot be streamed because {} needs the length of the signal{}: {}",
                 label(node), length_name_, why);
  }
  return error(Code::kInvalidArgument, "cannot be streamed because {} needs all of time axis {}{} of '{}': {} ({})",
               label(node), role(*it).axis, length_name_, std::string_view((*it)->name), why, path_to(*it));
}

// The path of the signal to `v`: "x -> Conv 'c1' -> Relu 'r1'".
std::string TimeWalk::path_to(const ir::Value* v) const {
  std::vector<std::string> steps;
  while (v->producer) {
    steps.push_back(label(*v->producer));
    const ir::Value* from = nullptr;
    for (const ir::Value* in : v->producer->inputs) {
      if (in && role(in).timed() && !from) from = in;
    }
    if (!from) break;
    v = from;
  }
  std::string text = fmt::format("'{}'", std::string_view(v->name));
  for (size_t i = steps.size(); i-- > 0;) {
    const bool left_out = steps.size() > kLongestPath && i >= kLongestPath / 2 && i < steps.size() - kLongestPath / 2;
    if (!left_out) {
      text += " -> " + steps[i];
    } else if (i == kLongestPath / 2) {
      text += " -> ...";
    }
  }
  return text;
}

// ---------------------------------------------------------------------------------------------------------------------

std::vector<Streamed::Output> TimeWalk::outputs() const {
  std::vector<Streamed::Output> outputs;
  for (const ir::Value* v : outputs_) {
    const Role& r = role(v);
    outputs.push_back({r.timed(), r.axis, r.may_stop});
  }
  return outputs;
}

bool TimeWalk::begins_with_zeros() const {
  return counts_.first_is_like_others() &&
         std::all_of(states_.begin(), states_.end(), [](const State& s) { return s.zeros; });
}

int64_t TimeWalk::delay() const {
  int64_t delay = 0;
  for (const ir::Value* v : outputs_) {
    if (role(v).timed()) delay = std::max(delay, counts_.delay(role(v).frames));
  }
  return delay;
}

}  // namespace treadle::stream
