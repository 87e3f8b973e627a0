#include "report/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/json.h"
#include "op/op_def.h"

namespace treadle::report {

using plan::OpCode;
using plan::Program;
using run::Profile;

namespace {

bool is_glue(OpCode code) {
  return code != OpCode::kKernel && code != OpCode::kInStrips && code != OpCode::kGuarded && code != OpCode::kCompute &&
         code != OpCode::kRow;
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
    if (trip >= 0) arguments.integer("iteration", trip);
    events_.push_back(event("X", at_ns)
                          .number("dur", microseconds(ns))
                          .text("name", plan::op_names(p_, pc))
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

std::vector<ProfileNode> nodes_of(const Profile& profile) {
  std::map<std::tuple<std::string, std::string, std::string, bool>, ProfileNode> found;
  const Profile::Run& run = profile.median();
  const Program& p = *run.program;
  const std::vector<int> loops = run::innermost_loops(p);
  for (uint32_t pc = 0; pc < p.code.size(); ++pc) {
    const Profile::Sum& sum = run.sums[pc];
    if (sum.count == 0) continue;
    const std::string loop = loops[pc] < 0 ? "" : p.loops[static_cast<size_t>(loops[pc])].node->name;
    const bool glue = is_glue(p.code[pc].code) || !p.node_of[pc];
    const std::string name = glue ? "" : p.node_of[pc]->name, op = glue ? "" : plan::op_names(p, pc);
    ProfileNode& node = found.try_emplace({name, op, loop, glue}, ProfileNode{name, op, loop, glue}).first->second;
    node.count += sum.count;
    node.ns += sum.ns;
  }
  std::vector<ProfileNode> list;
  for (auto& [key, node] : found) list.push_back(std::move(node));
  std::sort(list.begin(), list.end(), [](const ProfileNode& a, const ProfileNode& b) {
    return std::tie(b.ns, a.loop, a.node) < std::tie(a.ns, b.loop, b.node);
  });
  return list;
}

std::string to_text(const Profile& profile) {
  const auto time_text = [](double ns) {
    return fmt::format("{:.2f} {}", ns < 1e6 ? ns / 1e3 : ns / 1e6, ns < 1e6 ? "us" : "ms");
  };
  const std::vector<const Profile::Run*> runs = profile.by_time();
  const double total = profile.median().total_ns;
  std::string text = fmt::format("{} a run", time_text(total));
  if (runs.size() > 1) {
    text += fmt::format(", the median of {} ({} to {})", runs.size(), time_text(runs.front()->total_ns),
                        time_text(runs.back()->total_ns));
  }
  text += "; without what looking at the clock takes\n\n";
  text += fmt::format("{:>7} {:>12} {:>10} {:>12}  {}\n", "share", "us", "times", "ns each", "node");
  for (const ProfileNode& node : nodes_of(profile)) {
    const std::string what = node.is_glue ? "(copies, jumps and back edges)" : fmt::format("{} {}", node.op, node.node);
    const std::string where = node.loop.empty() ? "" : "  in " + node.loop;
    text += fmt::format("{:>6.1f}% {:>12.2f} {:>10} {:>12.0f}  {}{}\n", 100 * node.ns / std::max(total, 1.0),
                        node.ns / 1e3, node.count, node.ns / static_cast<double>(node.count), what, where);
  }
  return text;
}

std::string to_json(const Profile& profile) {
  std::vector<std::string> items;
  for (const ProfileNode& node : nodes_of(profile)) {
    items.push_back(JsonObject()
                        .text("node", node.node)
                        .text("op", node.op)
                        .text("loop", node.loop)
                        .boolean("is_glue", node.is_glue)
                        .integer("count", node.count)
                        .number("ns", node.ns)
                        .str());
  }
  const std::vector<const Profile::Run*> runs = profile.by_time();
  return JsonObject()
      .integer("runs", static_cast<int64_t>(runs.size()))
      .number("total_ns", profile.median().total_ns)
      .number("fastest_ns", runs.front()->total_ns)
      .number("slowest_ns", runs.back()->total_ns)
      .integer("events_left_out", profile.median().left_out)
      .raw("nodes", json_array(items))
      .str();
}

std::string to_trace(const Profile& profile) {
  std::vector<std::string> all{
      R"({"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"treadle"}})",
      R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"run"}})",
  };
  const Profile::Run& run = profile.median();
  const Program& p = *run.program;
  const std::vector<Profile::Event>& events = run.events;
  TraceWriter trace(p, events.empty() ? 0 : events.front().start_ns);
  for (size_t at = 0; at < events.size(); ++at) {
    const Profile::Event& e = events[at];
    const plan::Instruction& in = p.code[e.pc];
    const int64_t end = e.start_ns + e.ns;
    const bool goes_on = at + 1 < events.size() && events[at + 1].pc > e.pc;
    switch (in.code) {
      case OpCode::kLoopBegin:
        trace.begin(p.loops[in.index].node->name, "loop", e.start_ns);
        // Without iterations, the end is next.
        if (!goes_on || events[at + 1].pc != p.loops[in.index].last) trace.begin("iteration 0", "iteration", end);
        break;
      case OpCode::kLoopNext:
      case OpCode::kLoopNextSimple:
        trace.end(end);
        if (!goes_on) trace.begin(fmt::format("iteration {}", e.trip + 1), "iteration", end);
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

}  // namespace treadle::report
