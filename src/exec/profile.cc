#include "exec/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "check/json.h"
#include "op/op_def.h"

namespace treadle::exec {

namespace {

using plan::OpCode;
using plan::Program;

std::vector<int> innermost_loops(const Program& program) {
  std::vector<int> loops(program.code.size(), -1);
  // Outer loops have smaller numbers. Begin and end of a loop belong to what is around it.
  for (size_t i = 0; i < program.loops.size(); ++i) {
    const plan::Loop& loop = program.loops[i];
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) loops[pc] = static_cast<int>(i);
  }
  return loops;
}

bool is_glue(OpCode code) {
  return code != OpCode::kKernel && code != OpCode::kInBlocks && code != OpCode::kGuarded && code != OpCode::kCompute &&
         code != OpCode::kRow;
}

std::string op_names(const Program& program, uint32_t pc) {
  std::string text;
  for (const ir::Node* node : plan::nodes_of(program, pc)) text += (text.empty() ? "" : "+") + node->op->name;
  return text;
}

double microseconds(int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

// Slices of one thread: what begins ends before what it began in.
class TraceWriter {
 public:
  TraceWriter(const Program& program, int64_t first_ns) : p_(program), first_ns_(first_ns) {}

  void begin(std::string_view name, std::string_view category, int64_t at_ns) {
    events_.push_back(event("B", at_ns).text("name", name).text("cat", category).str());
    ++depth_;
  }
  void end(int64_t at_ns) {
    if (depth_ == 0) return;  // what it ends was not recorded
    events_.push_back(event("E", at_ns).str());
    --depth_;
  }
  void end_all(int64_t at_ns) {
    while (depth_ > 0) end(at_ns);
  }
  void node(uint32_t pc, int64_t trip, int64_t at_ns, int64_t ns) {
    JsonObject arguments;
    if (const auto nodes = plan::nodes_of(p_, pc); nodes.size() > 1) {
      std::vector<std::string> names;
      for (const ir::Node* node : nodes) names.push_back(json_text(node->name));
      arguments.raw("nodes", json_array(names));
    } else {
      arguments.text("node", p_.node_of[pc]->name);
    }
    if (trip >= 0) arguments.integer("trip", trip);
    events_.push_back(event("X", at_ns)
                          .number("dur", microseconds(ns))
                          .text("name", op_names(p_, pc))
                          .text("cat", "node")
                          .raw("args", arguments.str())
                          .str());
  }
  std::vector<std::string> take() { return std::move(events_); }

 private:
  JsonObject event(std::string_view phase, int64_t at_ns) const {
    return JsonObject()
        .text("ph", phase)
        .integer("pid", 1)
        .integer("tid", 1)
        .number("ts", microseconds(at_ns - first_ns_));
  }

  const Program& p_;
  int64_t first_ns_;
  int depth_ = 0;
  std::vector<std::string> events_;
};

}  // namespace

Profile::Profile(size_t runs) {
  constexpr size_t kMaxEvents = size_t{1} << 20, kMaxEventsTogether = size_t{1} << 22;
  max_events_ = std::min(kMaxEvents, kMaxEventsTogether / std::max<size_t>(runs, 1));
  constexpr int kLooks = 64;
  const int64_t begin = clock_ns();
  for (int i = 0; i < kLooks; ++i) clock_ns();
  clock_cost_ns_ = (clock_ns() - begin) / kLooks;
}

void Profile::begin(std::shared_ptr<const Program> program) {
  loop_of_ = innermost_loops(*program);
  Run& run = runs_.emplace_back();
  run.sums.resize(program->code.size());
  run.program = std::move(program);
  open_ = kNothing;
}

void Profile::close(int64_t now) {
  if (open_ == kNothing) return;
  const int64_t ns = std::max<int64_t>(now - open_ns_ - clock_cost_ns_, 0);
  Run& run = runs_.back();
  Sum& sum = run.sums[open_];
  ++sum.count;
  sum.ns += static_cast<double>(ns);
  run.total_ns += static_cast<double>(ns);
  if (run.events.size() < max_events_) {
    run.events.push_back({open_ns_, ns, open_trip_, open_});
  } else {
    ++run.left_out;
  }
}

void Profile::end() {
  close(clock_ns());
  open_ = kNothing;
}

std::vector<const Profile::Run*> Profile::sorted() const {
  std::vector<const Run*> runs;
  for (const Run& run : runs_) runs.push_back(&run);
  std::sort(runs.begin(), runs.end(), [](const Run* a, const Run* b) { return a->total_ns < b->total_ns; });
  return runs;
}

const Profile::Run& Profile::median() const {
  return *sorted()[runs_.size() / 2];
}

std::vector<Profile::Node> Profile::nodes() const {
  std::map<std::tuple<std::string, std::string, std::string, bool>, Node> found;
  const Run& run = median();
  const Program& p = *run.program;
  const std::vector<int> loops = innermost_loops(p);
  for (uint32_t pc = 0; pc < p.code.size(); ++pc) {
    const Sum& sum = run.sums[pc];
    if (sum.count == 0) continue;
    const std::string loop = loops[pc] < 0 ? "" : p.loops[static_cast<size_t>(loops[pc])].node->name;
    const bool glue = is_glue(p.code[pc].code) || !p.node_of[pc];
    const std::string name = glue ? "" : p.node_of[pc]->name, op = glue ? "" : op_names(p, pc);
    Node& node = found.try_emplace({name, op, loop, glue}, Node{name, op, loop, glue}).first->second;
    node.count += sum.count;
    node.ns += sum.ns;
  }
  std::vector<Node> list;
  for (auto& [key, node] : found) list.push_back(std::move(node));
  std::sort(list.begin(), list.end(), [](const Node& a, const Node& b) {
    return std::tie(b.ns, a.loop, a.node) < std::tie(a.ns, b.loop, b.node);
  });
  return list;
}

std::string Profile::to_text() const {
  const auto time_text = [](double ns) {
    return fmt::format("{:.2f} {}", ns < 1e6 ? ns / 1e3 : ns / 1e6, ns < 1e6 ? "us" : "ms");
  };
  const std::vector<const Run*> runs = sorted();
  const double total = median().total_ns;
  std::string text = fmt::format("{} a run", time_text(total));
  if (runs.size() > 1) {
    text += fmt::format(", the median of {} ({} to {})", runs.size(), time_text(runs.front()->total_ns),
                        time_text(runs.back()->total_ns));
  }
  text += "; without what looking at the clock takes\n\n";
  text += fmt::format("{:>7} {:>12} {:>10} {:>12}  {}\n", "share", "us", "times", "ns each", "node");
  for (const Node& node : nodes()) {
    const std::string what = node.is_glue ? "(copies, jumps and back edges)" : fmt::format("{} {}", node.op, node.node);
    const std::string where = node.loop.empty() ? "" : "  in " + node.loop;
    text += fmt::format("{:>6.1f}% {:>12.2f} {:>10} {:>12.0f}  {}{}\n", 100 * node.ns / std::max(total, 1.0),
                        node.ns / 1e3, node.count, node.ns / static_cast<double>(node.count), what, where);
  }
  return text;
}

std::string Profile::to_json() const {
  std::vector<std::string> items;
  for (const Node& node : nodes()) {
    items.push_back(JsonObject()
                        .text("node", node.node)
                        .text("op", node.op)
                        .text("loop", node.loop)
                        .boolean("is_glue", node.is_glue)
                        .integer("count", node.count)
                        .number("ns", node.ns)
                        .str());
  }
  const std::vector<const Run*> runs = sorted();
  return JsonObject()
      .integer("runs", static_cast<int64_t>(runs.size()))
      .number("total_ns", median().total_ns)
      .number("fastest_ns", runs.front()->total_ns)
      .number("slowest_ns", runs.back()->total_ns)
      .integer("events_left_out", median().left_out)
      .raw("nodes", json_array(items))
      .str();
}

std::string Profile::to_trace() const {
  std::vector<std::string> all{
      R"({"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"treadle"}})",
      R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"run"}})",
  };
  const Run& run = median();
  const Program& p = *run.program;
  const std::vector<Event>& events = run.events;
  TraceWriter trace(p, events.empty() ? 0 : events.front().start_ns);
  for (size_t at = 0; at < events.size(); ++at) {
    const Event& e = events[at];
    const plan::Instruction& in = p.code[e.pc];
    const int64_t end = e.start_ns + e.ns;
    const bool goes_on = at + 1 < events.size() && events[at + 1].pc > e.pc;
    switch (in.code) {
      case OpCode::kLoopBegin:
        trace.begin(p.loops[in.index].node->name, "loop", e.start_ns);
        // Without trips, the end is next.
        if (!goes_on || events[at + 1].pc != p.loops[in.index].last) trace.begin("trip 0", "trip", end);
        break;
      case OpCode::kLoopNext:
      case OpCode::kLoopNextSimple:
        trace.end(end);
        if (!goes_on) trace.begin(fmt::format("trip {}", e.trip + 1), "trip", end);
        break;
      case OpCode::kLoopEnd:
        trace.end(end);
        break;
      case OpCode::kEnd:
        trace.end_all(end);
        break;
      default:
        if (!is_glue(in.code) && p.node_of[e.pc]) trace.node(e.pc, e.trip, e.start_ns, e.ns);
    }
  }
  if (!events.empty()) trace.end_all(events.back().start_ns + events.back().ns);
  for (std::string& event : trace.take()) all.push_back(std::move(event));
  return JsonObject().text("displayTimeUnit", "ns").raw("traceEvents", json_array(all)).str();
}

}  // namespace treadle::exec
