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

std::string head_text(const ProfileTimes& times, const TextOptions& options) {
  if (times.runs == 1) return wrapped("", duration_text(times.total_ns) + " a run, of one run", options);
  std::string text = wrapped(
      "",
      fmt::format("{} a run: each node's median of {} runs (whole runs took {} to {})", duration_text(times.total_ns),
                  times.runs, duration_text(times.fastest_ns), duration_text(times.slowest_ns)),
      options);
  if (times.interrupted_runs > 0) {
    text += wrapped("",
                    fmt::format("{} of {} runs were interrupted, for up to {}: left out of the nodes' times",
                                times.interrupted_runs, times.runs, duration_text(times.interrupted_ns)),
                    options);
  }
  return text + wrapped("", "What looking at the clock takes is taken off.", options);
}

// A column of the table in front of the node.
struct Column {
  const char* heading;
  size_t columns;     // of the terminal
  size_t from_width;  // the width of the terminal from which the table has it
  std::string (*text)(const NodeTime& node, double share);
};
constexpr size_t kBarColumns = 8;
constexpr Column kColumns[] = {
    {"share", 6, 0, [](const NodeTime&, double share) { return percent_text(share); }},
    {"time", 8, 0, [](const NodeTime& node, double) { return duration_text(node.ns); }},
    {"fastest", 8, 100, [](const NodeTime& node, double) { return duration_text(node.least_ns); }},
    {"slowest", 8, 100, [](const NodeTime& node, double) { return duration_text(node.most_ns); }},
    {"times", 8, 80, [](const NodeTime& node, double) { return fmt::format("{}", node.count); }},
    {"each", 8, 80,
     [](const NodeTime& node, double) {
       return duration_text(node.ns / static_cast<double>(std::max<int64_t>(node.count, 1)));
     }},
};
constexpr size_t kBarsFrom = 80;  // the width of the terminal from which the table has bars

class Table {
 public:
  Table(double total_ns, const TextOptions& options)
      : total_ns_(std::max(total_ns, 1.0)), options_(options), width_(std::max(options.width, kLeastWidth)) {}

  std::string headings() const {
    std::string text = width_ >= kBarsFrom ? std::string(kBarColumns, ' ') : std::string();
    for (const Column& column : kColumns) {
      if (width_ >= column.from_width) text += fmt::format("{:>{}}", column.heading, column.columns);
    }
    return text + "  node\n";
  }

  std::string line(const NodeTime& node) const {
    const double share = node.ns / total_ns_;
    std::string text = width_ >= kBarsFrom ? bar(share, kBarColumns, options_.utf8) : std::string();
    for (const Column& column : kColumns) {
      if (width_ >= column.from_width) text += fmt::format("{:>{}}", column.text(node, share), column.columns);
    }
    return text + "  " + node_text(node, width_ - std::min(width_, columns_of(text) + 2)) + "\n";
  }

  std::string total() const {
    const std::string text = width_ >= kBarsFrom ? std::string(kBarColumns, ' ') : std::string();
    return text + fmt::format("{:>6}{:>8}  a run\n", percent_text(1), duration_text(total_ns_));
  }

 private:
  // The node in at most so many columns: its operator, its path and its loop, and how its kernel computes.
  std::string node_text(const NodeTime& node, size_t columns) const {
    std::string what = node.is_glue ? "copies, jumps, back edges" : node.op;
    if (!node.method.empty()) what += " by " + node.method;
    what = cut_off(what, std::max<size_t>(columns * 2 / 3, 12), options_.utf8);
    const std::string path = node.is_glue ? node.loop : node.node;
    const size_t left = columns - std::min(columns, columns_of(what) + 1);
    if (path.empty() || left < 4) return what;
    return what + " " + shortened(path, left, options_.utf8);
  }

  double total_ns_;
  TextOptions options_;
  size_t width_;
};

std::string json_of(const NodeTime& node) {
  JsonObject object;
  object.text("node", node.node)
      .text("op", node.op)
      .text("method", node.method)
      .text("loop", node.loop)
      .boolean("is_glue", node.is_glue);
  object.number("ns", node.ns).number("least_ns", node.least_ns).number("most_ns", node.most_ns);
  object.integer("count", node.count);
  return object.str();
}

}  // namespace

std::string table_text(const ProfileTimes& times, const TextOptions& options) {
  const Table table(times.total_ns, options);
  std::string text = head_text(times, options) + "\n" + table.headings();
  for (const NodeTime& node : times.nodes) text += table.line(node);
  return text + table.total();
}

std::string to_text(const Profile& profile, const TextOptions& options) {
  const ProfileTimes times = times_of(profile.runs());
  const std::string text = table_text(times, options);
  const std::string loops = to_text(iterations_of(*times.shown));
  return loops.empty() ? text : text + "\nloops\n" + loops;
}

std::string to_json(const Profile& profile) {
  const ProfileTimes times = times_of(profile.runs());
  std::vector<std::string> items;
  for (const NodeTime& node : times.nodes) items.push_back(json_of(node));
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
