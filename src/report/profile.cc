#include "report/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "op/op_def.h"
#include "report/iterations.h"
#include "report/memory_use.h"

namespace treadle::report {

using plan::OpCode;
using plan::Program;
using run::Profile;

namespace {

double microseconds(int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

// Events of one thread: an event ends before the event around it ends.
class TraceWriter {
 public:
  TraceWriter(const Program& program, int64_t first_ns) : p_(program), first_ns_(first_ns) {}

  void begin(std::string_view name, std::string_view category, int64_t at_ns) {
    events_.push_back(event("B", at_ns).text("name", name).text("cat", category).str());
    ++depth_;
  }
  void end(int64_t at_ns) {
    if (depth_ == 0) return;  // its begin was not recorded
    events_.push_back(event("E", at_ns).str());
    --depth_;
  }
  void end_all(int64_t at_ns) {
    while (depth_ > 0) end(at_ns);
  }
  void node(uint32_t pc, int64_t iteration, int64_t at_ns, int64_t ns) {
    JsonObject arguments;
    if (const auto nodes = plan::nodes_of(p_, pc); nodes.size() > 1) {
      std::vector<std::string> names;
      for (const ir::Node* node : nodes) names.push_back(json_text(node->name));
      arguments.raw("nodes", json_array(names));
    } else {
      arguments.text("node", p_.node_of[pc]->name);
    }
    if (iteration >= 0) arguments.integer("iteration", iteration);
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

namespace {

std::string time_text(double ns) {
  return fmt::format("{:.2f} {}", ns < 1e6 ? ns / 1e3 : ns / 1e6, ns < 1e6 ? "us" : "ms");
}

std::string head_text(const ProfileTimes& times) {
  if (times.runs == 1) return fmt::format("{} a run, of one run\n", time_text(times.total_ns));
  std::string text =
      fmt::format("{} a run: each node's median of {} runs (whole runs took {} to {})\n", time_text(times.total_ns),
                  times.runs, time_text(times.fastest_ns), time_text(times.slowest_ns));
  if (times.interrupted_runs > 0) {
    text += fmt::format("{} of {} runs were interrupted, for up to {}: left out of the nodes' times\n",
                        times.interrupted_runs, times.runs, time_text(times.interrupted_ns));
  }
  return text;
}

// A column of the table, and a member in JSON, about a node's time.
struct Column {
  const char* heading;
  const char* member;  // null: only in the table
  int width, digits;   // in the table; no digits: a whole number
  double in_table;     // the factor between number and table
  double (*of)(const NodeTime& node, double total_ns);
  const char* unit = "";  // follows each number, within the width
};
constexpr Column kColumns[] = {
    {"share", nullptr, 7, 1, 100, [](const NodeTime& n, double total_ns) { return n.ns / std::max(total_ns, 1.0); },
     "%"},
    {"us", "ns", 12, 2, 1e-3, [](const NodeTime& n, double) { return n.ns; }},
    {"fastest us", "least_ns", 12, 2, 1e-3, [](const NodeTime& n, double) { return n.least_ns; }},
    {"slowest us", "most_ns", 12, 2, 1e-3, [](const NodeTime& n, double) { return n.most_ns; }},
    {"times", "count", 10, 0, 1, [](const NodeTime& n, double) { return static_cast<double>(n.count); }},
    {"ns each", nullptr, 12, 0, 1,
     [](const NodeTime& n, double) { return n.ns / static_cast<double>(std::max<int64_t>(n.count, 1)); }},
};

std::string headings() {
  std::string text;
  for (const Column& column : kColumns) text += fmt::format("{:>{}} ", column.heading, column.width);
  return text + " node\n";
}

std::string line_of(const NodeTime& node, double total_ns) {
  std::string text;
  for (const Column& column : kColumns) {
    const double number = column.of(node, total_ns) * column.in_table;
    text += fmt::format("{:>{}} ", fmt::format("{:.{}f}{}", number, column.digits, column.unit), column.width);
  }
  text += node.is_glue ? " (copies, jumps and back edges)" : fmt::format(" {} {}", node.op, node.node);
  if (!node.method.empty()) text += fmt::format(" by {}", node.method);
  return text + (node.loop.empty() ? "" : "  in " + node.loop) + "\n";
}

std::string json_of(const NodeTime& node, double total_ns) {
  JsonObject object;
  object.text("node", node.node)
      .text("op", node.op)
      .text("method", node.method)
      .text("loop", node.loop)
      .boolean("is_glue", node.is_glue);
  for (const Column& column : kColumns) {
    if (!column.member) continue;
    const double number = column.of(node, total_ns);
    if (column.digits > 0) {
      object.number(column.member, number);
    } else {
      object.integer(column.member, static_cast<int64_t>(number));
    }
  }
  return object.str();
}

}  // namespace

std::string to_text(const Profile& profile) {
  const ProfileTimes times = times_of(profile.runs());
  std::string text = head_text(times) + "What looking at the clock takes is taken off.\n\n";
  text += headings();
  for (const NodeTime& node : times.nodes) text += line_of(node, times.total_ns);
  const std::string loops = to_text(iterations_of(*times.shown));
  return loops.empty() ? text : text + "\nloops\n" + loops;
}

std::string to_json(const Profile& profile) {
  const ProfileTimes times = times_of(profile.runs());
  std::vector<std::string> items;
  for (const NodeTime& node : times.nodes) items.push_back(json_of(node, times.total_ns));
  return JsonObject()
      .integer("runs", times.runs)
      .number("total_ns", times.total_ns)
      .number("fastest_ns", times.fastest_ns)
      .number("slowest_ns", times.slowest_ns)
      .integer("interrupted_runs", times.interrupted_runs)
      .number("interrupted_ns", times.interrupted_ns)
      .integer("events_left_out", times.shown->left_out)
      .raw("nodes", json_array(items))
      .raw("loops", loops_json(iterations_of(*times.shown)))
      .raw("memory", to_json(memory_use_of(*times.shown)))
      .str();
}

std::string to_trace(const Profile& profile) {
  std::vector<std::string> all{
      R"({"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"treadle"}})",
      R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"run"}})",
  };
  const Profile::Run& run = *times_of(profile.runs()).shown;
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
        // Without iterations, the end follows directly.
        if (!goes_on || events[at + 1].pc != p.loops[in.index].last) trace.begin("iteration 0", "iteration", end);
        break;
      case OpCode::kLoopNext:
      case OpCode::kLoopNextSimple:
        trace.end(end);
        if (!goes_on) trace.begin(fmt::format("iteration {}", e.iteration + 1), "iteration", end);
        break;
      case OpCode::kLoopEnd:
        trace.end(end);
        break;
      case OpCode::kEnd:
        trace.end_all(end);
        break;
      default:
        if (is_timed_alone(in.code) && p.node_of[e.pc]) trace.node(e.pc, e.iteration, e.start_ns, e.ns);
    }
  }
  if (!events.empty()) trace.end_all(events.back().start_ns + events.back().ns);
  for (std::string& event : trace.take()) all.push_back(std::move(event));
  return JsonObject().text("displayTimeUnit", "ns").raw("traceEvents", json_array(all)).str();
}

}  // namespace treadle::report
