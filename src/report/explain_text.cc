#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "report/explain.h"

namespace treadle::report {

namespace {

using Tier = LoopReport::Tier;

constexpr size_t kMaxLines = 24;  // lines of one kind in the text; JSON has all

std::string bytes_text(double bytes) {
  if (bytes < 10 * 1024) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < 10 * 1024 * 1024) return fmt::format("{:.0f} KB", bytes / 1024);
  return fmt::format("{:.0f} MB", bytes / (1024 * 1024));
}

std::string time_text(double ns) {
  if (ns < 10) return fmt::format("{:.1f} ns", ns);
  if (ns < 10e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 10e6) return fmt::format("{:.0f} us", ns / 1e3);
  return fmt::format("{:.0f} ms", ns / 1e6);
}

std::string count_text(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string state_text(const LoopReport& loop) {
  if (loop.unsized_states == 0) return bytes_text(static_cast<double>(loop.state_bytes));
  const bool all = loop.unsized_states == loop.states;
  return all ? "of sizes that only the run knows"
             : fmt::format("{}, and {} of sizes that only the run knows",
                           bytes_text(static_cast<double>(loop.state_bytes)), loop.unsized_states);
}

std::string_view name(Tier tier) {
  switch (tier) {
    case Tier::kProgram:
      return "program";
    case Tier::kChain:
      return "chain";
    case Tier::kNative:
      return "native";
    case Tier::kInside:
      return "inside";
  }
  return "";
}

std::string_view name(LoopReport::Bound bound) {
  switch (bound) {
    case LoopReport::Bound::kArithmetic:
      return "arithmetic";
    case LoopReport::Bound::kMemory:
      return "memory";
    case LoopReport::Bound::kStates:
      return "loop-carried dependencies";
  }
  return "";
}

std::string tier_text(const LoopReport& loop) {
  switch (loop.tier) {
    case Tier::kProgram:
      return "program, instruction by instruction";
    case Tier::kChain:
      return "program, as one instruction";
    case Tier::kNative:
      return fmt::format("native code, {}, {} in {:.2f} ms", bytes_text(static_cast<double>(loop.native.bytes)),
                         loop.native.from_cache ? "from the cache" : "compiled", loop.native.compile_ms);
    case Tier::kInside:
      return "native code, that of the loop around it";
  }
  return "";
}

class TextWriter {
 public:
  explicit TextWriter(const Explanation& e) : e_(e) {}

  std::string write() {
    line("program", fmt::format("{}, {} prepared in the run; {} planned", count_text(e_.instructions, "instruction"),
                                e_.guarded, bytes_text(static_cast<double>(e_.arena_bytes))));
    line("native code", e_.mode == Jit::kOff ? std::string("off")
                                             : fmt::format("{}; kept in {}", name(e_.mode),
                                                           e_.cache.empty() ? "memory only" : e_.cache));
    for (size_t i = 0; i < e_.methods.size();) i = methods_of(i);
    if (!e_.is_specific)
      text_ += "\nFor any sizes that the model allows; sizes of real inputs may let more be planned.\n";
    if (e_.loops.empty()) text_ += "\nNo loops.\n";
    for (const LoopReport& loop : e_.loops) write(loop);
    for (const opt::Remark& map : e_.maps) {
      text_ += fmt::format("\n{} ({}) is no loop any more: {}\n", map.loop, map.op, opt::sentence(map.change));
    }
    return std::move(text_);
  }

 private:
  void line(std::string_view label, std::string_view what) {
    text_ += fmt::format("{}{:<12} {}\n", indent_, label, what);
  }

  // A line about the operator of the entry at `first`; returns the next operator's first entry.
  size_t methods_of(size_t first) {
    const std::string& op = e_.methods[first].op;
    std::string counts;
    size_t i = first;
    for (; i < e_.methods.size() && e_.methods[i].op == op; ++i) {
      counts += fmt::format("{}{} by {}", i > first ? ", " : "", e_.methods[i].count, e_.methods[i].method);
    }
    line(op, counts);
    return i;
  }

  size_t depth(const LoopReport& loop) const {
    size_t depth = 0;
    for (int at = loop.parent; at >= 0; at = e_.loops[static_cast<size_t>(at)].parent) ++depth;
    return depth;
  }

  void write(const LoopReport& loop) {
    indent_ = std::string(2 * depth(loop), ' ');
    const std::string iterations =
        loop.iterations < 0 ? "iterations as the run decides" : fmt::format("{} iterations", loop.iterations);
    text_ += fmt::format("\n{}{} ({}), {}\n", indent_, loop.node, loop.op, iterations);
    indent_ += "  ";
    line("tier", tier_text(loop));
    if (!loop.why_not_native.empty()) line("not native", loop.why_not_native);
    if (!loop.native.cache_why.empty()) line("cache", loop.native.cache_why);
    line("carries",
         fmt::format("{} ({}), {}, {}", count_text(loop.states, "state"), state_text(loop),
                     count_text(loop.scan_inputs, "scan input"), count_text(loop.scan_outputs, "scan output")));
    if (!loop.beside.empty()) {
      line("beside", fmt::format("{}, in strips of {} iterations, where that is measured to be faster",
                                 fmt::join(loop.beside, ", "), loop.beside_iterations));
    }
    for (const NodeRemark& node : loop.in_strips) {
      line(&node == loop.in_strips.data() ? "in strips" : "",
           fmt::format("{} ({}): runs for {} iterations at a time", node.node, node.op, loop.strip_iterations));
    }
    write_iteration(loop);
    write_rewrites(loop);
    write_remarks("calls", loop.calls);
    write_remarks("in the way", loop.obstacles);
    indent_.clear();
  }

  void write_iteration(const LoopReport& loop) {
    line("an iteration",
         fmt::format("{}, {}; touches {}{}", count_text(loop.operations, "operation"),
                     count_text(loop.calls.size(), "kernel call"), bytes_text(loop.bytes),
                     loop.is_complete && loop.unroofed.empty() ? "" : " and values whose sizes only the run knows"));
    const std::string least = loop.is_complete ? "about" : "at least";
    const std::string measured =
        loop.measured_ns > 0 ? fmt::format(", {} of it measured in a run", time_text(loop.measured_ns)) : "";
    const std::string roof = loop.unroofed.empty() && loop.is_complete
                                 ? fmt::format("{} ({})", time_text(loop.roof_ns), name(loop.bound))
                                 : "at least " + time_text(loop.roof_ns);
    line("", fmt::format("{} {}{}; the machine's roof is {}", least, time_text(loop.estimated_ns), measured, roof));
    if (loop.outside > 0) {
      line("", fmt::format("{} of it for {} of the body, run outside of the loop for all iterations at once",
                           time_text(loop.outside_ns), count_text(loop.outside, "node")));
    }
    if (!loop.unsized.empty()) {
      line("", left_out(loop.unsized, "left out, as only the run knows"));
    } else if (!loop.unroofed.empty()) {
      line("", left_out(loop.unroofed, "not in the roof, as only the run knows"));
    }
  }

  // As "left out, as only the run knows the sizes of 3 nodes: /a (Conv), /b (LSTM), /c (LSTM)".
  static std::string left_out(const std::vector<NodeRemark>& nodes, std::string_view why) {
    constexpr size_t kMostNamed = 4;
    std::string names;
    for (size_t i = 0; i < std::min(nodes.size(), kMostNamed); ++i) {
      names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", nodes[i].node, nodes[i].op);
    }
    if (nodes.size() > kMostNamed) names += fmt::format(" and {} more", nodes.size() - kMostNamed);
    return fmt::format("{} the sizes or iterations of {}: {}", why, count_text(nodes.size(), "node"), names);
  }

  void write_rewrites(const LoopReport& loop) {
    size_t shown = 0;
    for (const opt::Remark& entry : loop.rewrites) {
      if (++shown > kMaxLines) break;
      const std::string into = entry.into.empty() ? "" : fmt::format(" ({})", entry.into);
      line(shown == 1 ? "rewritten" : "", fmt::format("{:<9} {} ({}): {}{}", opt::name(entry.change), entry.node,
                                                      entry.op, sentence(entry.change), into));
    }
    write_rest(loop.rewrites.size());
  }

  void write_remarks(std::string_view label, const std::vector<NodeRemark>& remarks) {
    size_t shown = 0;
    for (const NodeRemark& remark : remarks) {
      if (++shown > kMaxLines) break;
      line(shown == 1 ? label : "", fmt::format("{} ({}): {}", remark.node, remark.op, remark.remark));
    }
    write_rest(remarks.size());
  }

  void write_rest(size_t count) {
    if (count > kMaxLines) line("", fmt::format("and {} more", count - kMaxLines));
  }

  const Explanation& e_;
  std::string indent_;
  std::string text_;
};

std::string json_of(const std::vector<NodeRemark>& remarks, std::string_view key) {
  std::vector<std::string> items;
  for (const NodeRemark& r : remarks) {
    items.push_back(JsonObject().text("node", r.node).text("op", r.op).text(key, r.remark).str());
  }
  return json_array(items);
}

std::string json_of(const std::vector<opt::Remark>& entries) {
  std::vector<std::string> items;
  for (const opt::Remark& entry : entries) {
    JsonObject item;
    item.text("change", opt::name(entry.change)).text("node", entry.node).text("op", entry.op);
    if (!entry.into.empty()) item.text("into", entry.into);
    items.push_back(item.str());
  }
  return json_array(items);
}

std::string json_of(const LoopReport& loop) {
  JsonObject json;
  json.text("node", loop.node).text("op", loop.op);
  json.raw("parent", loop.parent < 0 ? "null" : std::to_string(loop.parent));
  json.raw("iterations", loop.iterations < 0 ? "null" : std::to_string(loop.iterations));
  json.integer("states", loop.states).integer("scan_inputs", loop.scan_inputs);
  json.integer("scan_outputs", loop.scan_outputs).integer("state_bytes", loop.state_bytes);
  json.integer("unsized_states", loop.unsized_states);
  std::vector<std::string> beside;
  for (const std::string& other : loop.beside) beside.push_back(JsonObject().text("node", other).str());
  json.raw("beside", json_array(beside)).integer("beside_iterations", loop.beside_iterations);
  json.raw("in_strips", json_of(loop.in_strips, "remark")).integer("strip_iterations", loop.strip_iterations);
  json.raw("rewrites", json_of(loop.rewrites));
  json.text("tier", name(loop.tier));
  json.boolean("compiled", loop.native.compiled).boolean("from_cache", loop.native.from_cache);
  json.number("compile_ms", loop.native.compile_ms).integer("code_bytes", loop.native.bytes);
  json.text("why_not_native", loop.why_not_native).text("cache_problem", loop.native.cache_why);
  json.integer("operations", loop.operations).raw("calls", json_of(loop.calls, "why"));
  json.raw("obstacles", json_of(loop.obstacles, "why"));
  json.number("flops_per_iteration", loop.flops).number("bytes_per_iteration", loop.bytes);
  json.number("traffic_per_iteration", loop.traffic).boolean("is_complete", loop.is_complete);
  json.raw("unsized", json_of(loop.unsized, "remark")).raw("not_in_roof", json_of(loop.unroofed, "remark"));
  json.number("estimated_ns_per_iteration", loop.estimated_ns).number("measured_ns_per_iteration", loop.measured_ns);
  json.number("roof_ns_per_iteration", loop.roof_ns).number("outside_ns_per_iteration", loop.outside_ns);
  const std::string_view bound = loop.bound == LoopReport::Bound::kStates ? "states" : name(loop.bound);
  json.raw("bound_by", loop.unroofed.empty() && loop.is_complete ? json_text(bound) : "null");
  return json.str();
}

}  // namespace

std::string to_text(const Explanation& explanation) {
  return TextWriter(explanation).write();
}

std::string to_json(const Explanation& explanation) {
  const Roofline& roof = measured_roofline();
  std::vector<std::string> levels, loops;
  for (const Roofline::Level& level : roof.levels) {
    levels.push_back(JsonObject().integer("bytes", level.bytes).number("bytes_per_ns", level.bytes_per_ns).str());
  }
  for (const LoopReport& loop : explanation.loops) loops.push_back(json_of(loop));
  const std::string machine = JsonObject()
                                  .number("flops_per_ns", roof.flops_per_ns)
                                  .number("function_ns", roof.function_ns)
                                  .number("latency_ns", roof.latency_ns)
                                  .raw("memory", json_array(levels))
                                  .str();
  std::vector<std::string> methods;
  for (const MethodCount& m : explanation.methods) {
    methods.push_back(
        JsonObject().text("op", m.op).text("method", m.method).integer("count", static_cast<int64_t>(m.count)).str());
  }
  JsonObject json;
  json.text("jit", name(explanation.mode)).text("cache", explanation.cache);
  json.boolean("is_specific", explanation.is_specific).integer("instructions", explanation.instructions);
  json.integer("guarded", explanation.guarded).integer("arena_bytes", explanation.arena_bytes);
  json.raw("methods", json_array(methods))
      .raw("machine", machine)
      .raw("loops", json_array(loops))
      .raw("maps", json_of(explanation.maps));
  return json.str();
}

}  // namespace treadle::report
