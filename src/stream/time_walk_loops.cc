// Recurrences and loops over time: a block begins with the states in which the block before ended.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "op/loop_view.h"
#include "op/node.h"
#include "op/registry.h"
#include "ops/control/loop.h"
#include "stream/time_walk.h"

namespace treadle::stream {

namespace {

bool is_zeros(const Tensor& t) {
  const auto* bytes = static_cast<const char*>(t.raw());
  return t.type() != ElementType::kString && std::all_of(bytes, bytes + t.byte_size(), [](char b) { return b == 0; });
}

// Whether `v` is zeros of any sizes, in the forms in which exporters write the initial state of a recurrence; null (no
// initial state) counts as zeros.
bool is_zeros(const ir::Value* v) {
  if (v && v->is_constant()) return is_zeros(v->constant);
  if (!v || !v->producer) return !v;
  const ir::Node& node = *v->producer;
  if (node.op->over_time == TimeRule::kFill) {
    const ir::Attribute* value = node.attributes.find("value");
    return !value || is_zeros(value->as_tensor());
  }
  if (node.op->over_time == TimeRule::kPad) return false;  // adds elements of any value
  size_t handed_on = 0, zeros = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i] || !hands_on(node, i)) continue;
    ++handed_on;
    zeros += is_zeros(node.inputs[i]);
  }
  return handed_on > 0 && zeros == handed_on;
}

}  // namespace

void TimeWalk::carry(ir::Node& node, size_t in, size_t out, const Type& type) {
  ir::Value* begin = in < node.inputs.size() ? node.inputs[in] : nullptr;
  const bool by_caller = begin && role(begin).carried;
  ir::Value* end = need_output(node, out, type);
  Role so_far;
  so_far.kind = Role::Kind::kSoFar;
  so_far.carried = by_caller;
  set_role(end, so_far);
  if (by_caller) return;
  const size_t state = add_state(std::string(node.name) + ":state" + (out > 0 ? std::to_string(out) : ""), type);
  if (!first_block()) set_input(node, in, past(state));
  set_next(state, end);
  states_[state].zeros = node.op->name != "Loop" && is_zeros(begin);  // a Loop's state may grow
}

// ---------------------------------------------------------------------------------------------------------------------

Status TimeWalk::recurrence(ir::Node& node) {
  constexpr size_t kWeights = 2, kLengths = 4, kInitial = 5;
  const Role x = role(node.inputs[0]);
  const bool batch_first = node.attributes.get_int("layout") != 0;
  const int64_t time = batch_first ? 1 : 0;
  if (!x.timed() || x.axis != time) return pass_on(node, operands(node));
  const std::string_view direction = node.attributes.get_string("direction", "forward");
  if (direction != "forward") return refuse(node, "its direction is " + std::string(direction));
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] && role(node.inputs[i]).kind != Role::Kind::kFree) {
      return refuse(node, "another of its inputs runs along time");
    }
  }
  if (kLengths < node.inputs.size() && node.inputs[kLengths]) return refuse(node, "its sequences end at given lengths");
  const Type& r = node.inputs[kWeights]->type;
  const Dim batch = node.inputs[0]->type.shape[static_cast<size_t>(1 - time)];
  const Dim hidden = r.has_shape ? r.shape[2] : Dim::unknown();
  Type state = Type::tensor(node.inputs[0]->type.element,
                            batch_first ? Shape{batch, Dim(1), hidden} : Shape{Dim(1), batch, hidden});
  for (size_t i = 1; node.version->output(i); ++i) carry(node, kInitial + i - 1, i, state);
  if (node.outputs[0]) set_frames(node.outputs[0], time, x.frames, x.tail, x);
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

Status TimeWalk::scan(ir::Node& node) {
  if (node.version->since < 9) return refuse(node, "it is of an old version");
  TREADLE_ASSIGN(const LoopView scan, LoopView::read(node));
  size_t along = 0;
  for (size_t i = 0; i < scan.scan_inputs(); ++i) {
    const LoopView::ScanInput in = scan.scan_input(i);
    const int64_t axis = in.axis + (in.axis < 0 ? in.whole->type.rank() : 0);
    if (!role(in.whole).timed() || role(in.whole).axis != axis) continue;
    if (in.reverse) return refuse(node, "it runs backwards");
    ++along;
  }
  if (along == 0) return pass_on(node, operands(node));
  if (along < scan.scan_inputs()) return refuse(node, "not all that it scans runs along time");
  for (const ScanAxis& out : scan.signature().scan_outputs) {
    if (out.reverse) return refuse(node, "it stacks its rows backwards");
  }
  for (size_t i = 0; i < scan.states(); ++i) {
    if (role(scan.state(i).initial).kind != Role::Kind::kFree)
      return refuse(node, "its first state depends on the signal");
  }
  for (const ir::Value* v : scan.captures()) {
    if (role(v).kind != Role::Kind::kFree) return refuse(node, "its body reads what depends on the signal");
  }
  TREADLE_ASSIGN(const Role joined, join(node));
  for (size_t i = 0; i < scan.states(); ++i) {
    carry(node, scan.signature().state_input(i), i, frames_type(scan.state(i).initial, -1, 0));
  }
  for (size_t i = 0; i < scan.scan_outputs(); ++i) {
    const LoopView::ScanOutput out = scan.scan_output(i);
    if (!out.whole) continue;
    const int64_t axis = out.axis + (out.axis < 0 ? out.whole->type.rank() : 0);
    set_frames(out.whole, axis, joined.frames, joined.tail, joined);
  }
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

// How the body of a Loop reads its signals: frame by frame, by the iteration's number.
struct TimeWalk::LoopReads {
  std::vector<ir::Node*> gathers;
  bool counts = false;  // the number has other uses too
};

namespace {

// Nodes that pass a number on unchanged.
bool passes_number(const ir::Node& node) {
  return node.op->alias_input == 0 || node.op->converts;
}

}  // namespace

Result<TimeWalk::LoopReads> TimeWalk::find_reads(const ir::Node& node) const {
  LoopReads reads;
  const LoopView loop(node);
  ir::Region& body = *node.regions[0];
  std::unordered_set<const ir::Value*> numbers{loop.counter()};
  Status status;
  ir::for_each_node(body, [&](ir::Node& inner) {
    if (passes_number(inner) && numbers.contains(inner.inputs[0])) {
      numbers.insert(inner.outputs[0]);
      return;
    }
    const bool gather = inner.op->over_time == TimeRule::kGather;
    for (size_t i = 0; i < inner.inputs.size(); ++i) {
      const ir::Value* v = inner.inputs[i];
      if (!v) continue;
      if (role(v).timed()) {
        int64_t axis = inner.attributes.get_int("axis");
        axis += axis < 0 ? v->type.rank() : 0;
        const bool reads_frame = gather && i == 0 && axis == role(v).axis && numbers.contains(inner.inputs[1]);
        if (reads_frame) {
          reads.gathers.push_back(&inner);
        } else if (status.ok()) {
          status = refuse(
              node, fmt::format("its body reads '{}' by {}, and only frames that a Gather takes at the iteration's "
                                "number are found in blocks",
                                std::string_view(v->name), label(inner)));
        }
      } else if (numbers.contains(v) && !(gather && i == 1 && role(inner.inputs[0]).timed())) {
        reads.counts = true;
      }
    }
    for (const auto& region : inner.regions) {
      for (const ir::Value* v : region->outputs) reads.counts |= numbers.contains(v);
    }
  });
  TREADLE_TRY(std::move(status));
  for (const ir::Value* v : body.outputs) reads.counts |= numbers.contains(v);
  return reads;
}

// In the body, iterations are numbered from the beginning of the signal, but frames from the beginning of the block.
void TimeWalk::count_on(ir::Node& node, const LoopReads& reads) {
  const Type scalar = Type::tensor(ElementType::kInt64, Shape{});
  const size_t state = add_state(std::string(node.name) + ":iteration", scalar);
  const LoopEditor loop(node);
  ir::Value* iterations = loop.trip_count();
  if (first_block()) return set_next(state, iterations);
  ir::Value* before = past(state);
  if (!last_block()) set_next(state, call("Add", {before, iterations}, scalar));
  ir::Region& body = loop.body();
  // A node outside of the graph, whose result belongs to `region`.
  const auto detached = [&](std::string_view op, std::initializer_list<ir::Value*> inputs, ir::Region& region) {
    make(op, inputs);
    std::unique_ptr<ir::Node> made = std::move(top_.nodes.back());
    top_.nodes.pop_back();
    made->parent = &region;
    graph_.add_output(made.get(), std::string(op) + ":stream", inputs.begin()[0]->type)->owner = &region;
    return made;
  };
  for (ir::Node* gather : reads.gathers) {
    ir::Region& region = *gather->parent;
    const auto at = std::find_if(region.nodes.begin(), region.nodes.end(), [&](auto& n) { return n.get() == gather; });
    ir::Value* index = gather->inputs[1];
    ir::Value* offset = before;
    if (index->type.is_tensor() && index->type.element == ElementType::kInt32) {
      offset = call("Cast", {before}, Type::tensor(ElementType::kInt32, Shape{}),
                    {ir::Attribute::of("to", static_cast<int64_t>(ElementType::kInt32))});
    }
    gather->inputs[1] = (*region.nodes.insert(at, detached("Sub", {index, offset}, region)))->outputs[0];
  }
  // Outside of the graph while other nodes get its result, so that it reads the number itself.
  std::unique_ptr<ir::Node> from_signal = detached("Add", {loop.counter(), before}, body);
  ir::replace_uses(body, {{loop.counter(), from_signal->outputs[0]}});
  body.nodes.insert(body.nodes.begin(), std::move(from_signal));
}

// Makes the condition a state of the loop as well, so that a block after the loop's end runs no iteration.
void TimeWalk::keep_condition(ir::Node& node) {
  LoopEditor loop(node);
  ir::Value* condition = loop.condition();
  if (!condition) {
    condition = graph_.new_constant("true:stream", Tensor::scalar<bool>(ElementType::kBool, true));
  }
  const Type flag = Type::tensor(ElementType::kBool, Shape{});
  const size_t state = add_state(std::string(node.name) + ":goes on", Type::tensor(ElementType::kBool));
  if (!first_block()) condition = past(state);
  loop.set_condition(condition);
  ir::Value* before = graph_.new_value("goes on", flag, &loop.body());
  ir::Value* after = loop.add_state(condition, before, loop.condition_after(), std::string(node.name) + ":goes on");
  set_next(state, after);
  running_.push_back(state);
}

Status TimeWalk::loop(ir::Node& node) {
  const LoopView loop(node);
  ir::Value* iterations = loop.trip_count();
  if (!iterations || role(iterations).kind != Role::Kind::kLength) return pass_on(node, operands(node));
  const auto count = contents(iterations);
  if (!count || count->size() != 1)
    return refuse(node, "its number of iterations follows from the length of the signal");
  const Dim frames = (*count)[0];
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] && role(node.inputs[i]).kind != Role::Kind::kFree) {
      return refuse(node, "its first state depends on the signal");
    }
  }
  bool reads_signal = false;
  for (const ir::Value* v : loop.captures()) {
    const Role& r = role(v);
    if (r.kind == Role::Kind::kFree) continue;
    if (!r.timed()) return refuse(node, "its body reads what depends on the length of the signal");
    if (!same(v->type.shape[static_cast<size_t>(r.axis)], frames)) {
      return refuse(node, "it does not make an iteration for every frame of '" + std::string(v->name) + "'");
    }
    reads_signal = true;
  }
  Role joined;
  ir::Value* like = nullptr;
  if (reads_signal) {
    TREADLE_ASSIGN(joined, join(node));
    for (ir::Value* v : loop.captures()) {
      if (role(v).timed() && !like) like = v;
    }
  } else {
    like = with_length(frames);
    if (!like) return refuse(node, "its number of iterations follows from the length of the signal");
    joined = role(like);
  }
  TREADLE_ASSIGN(const LoopReads reads, find_reads(node));
  set_input(node, 0, as_scalar(length_of(like)));
  if (reads.counts) count_on(node, reads);
  for (size_t i = 0; i < loop.states(); ++i) {
    const auto [initial, before, after, final] = loop.state(i);
    // If the final state has no reader, the body determines whether it keeps its sizes.
    Type type = final ? final->type : before->type;
    if (type.is_tensor() && !identical(type, initial->type)) type = Type::tensor(type.element);
    ir::Value shape_of;
    shape_of.type = std::move(type);
    carry(node, loop.signature().state_input(i), i, frames_type(&shape_of, -1, 0));
  }
  const bool stays = condition_stays_true(loop);
  if (!stays) keep_condition(node);
  joined.may_stop |= !stays;
  const LoopView carried(node);
  for (size_t i = 0; i < carried.scan_outputs(); ++i) {
    if (ir::Value* whole = carried.scan_output(i).whole) set_frames(whole, 0, joined.frames, joined.tail, joined);
  }
  return {};
}

}  // namespace treadle::stream
