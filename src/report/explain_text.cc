#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/explain.h"
#include "report/explain_head.h"
#include "report/explain_words.h"

namespace treadle::report {

namespace {

using Tier = LoopReport::Tier;

constexpr size_t kMostLines = 3;  // nodes in a list, unless all are wanted

std::string time_text(double ns) {
  if (ns < 10) return fmt::format("{:.1f} ns", ns);
  if (ns < 10e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 10e6) return fmt::format("{:.0f} us", ns / 1e3);
  return fmt::format("{:.0f} ms", ns / 1e6);
}

std::string state_text(const LoopReport& loop) {
  if (loop.unsized_states == 0) return bytes_text(static_cast<double>(loop.state_bytes));
  const bool all = loop.unsized_states == loop.states;
  return all ? "of sizes that only the run knows"
             : fmt::format("{}, and {} of sizes that only the run knows",
                           bytes_text(static_cast<double>(loop.state_bytes)), loop.unsized_states);
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
  TextWriter(const Explanation& e, const TextOptions& options) : e_(e), options_(options) {}

  std::string write() {
    line("program", fmt::format("{}, {} prepared in the run; {} planned", count_text(e_.instructions, "instruction"),
                                e_.guarded, bytes_text(static_cast<double>(e_.arena_bytes))));
    line("native code", e_.mode == Jit::kOff ? std::string("off")
                                             : fmt::format("{}; kept in {}", name(e_.mode),
                                                           e_.cache.empty() ? "memory only" : e_.cache));
    for (size_t i = 0; i < e_.methods.size();) i = methods_of(i);
    for (const LoopReport& loop : e_.loops) write(loop);
    for (const opt::Remark& map : e_.maps) {
      text_ +=
          "\n" +
          wrapped("", fmt::format("{} ({}) is no loop any more: {}", path(map.loop), map.op, opt::sentence(map.change)),
                  options_);
    }
    return std::move(text_);
  }

 private:
  void line(std::string_view label, std::string_view what) {
    text_ += wrapped(fmt::format("{}{:<12} ", indent_, label), what, options_);
  }

  // A path that leaves room for what is said of it.
  std::string path(std::string_view node) const {
    return shortened(node, std::max<size_t>(24, std::max(options_.width, kLeastWidth) * 2 / 5), options_.utf8);
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
    indent_ = std::string(std::min<size_t>(2 * depth(loop), 10), ' ');
    const std::string iterations =
        loop.iterations < 0 ? "iterations as the run decides" : fmt::format("{} iterations", loop.iterations);
    text_ += "\n" + wrapped(indent_, fmt::format("{} ({}), {}", path(loop.node), loop.op, iterations), options_);
    indent_ += "  ";
    line("tier", tier_text(loop));
    if (!loop.why_not_native.empty()) line("not native", loop.why_not_native);
    if (!loop.native.cache_why.empty()) line("cache", loop.native.cache_why);
    line("carries",
         fmt::format("{} ({}), {}, {}", count_text(loop.states, "state"), state_text(loop),
                     count_text(loop.scan_inputs, "scan input"), count_text(loop.scan_outputs, "scan output")));
    if (!loop.beside.empty()) {
      std::vector<std::string> others;
      for (const std::string& other : loop.beside) others.push_back(path(other));
      line("beside", fmt::format("{}, in strips of {} iterations, where that is measured to be faster",
                                 fmt::join(others, ", "), loop.beside_iterations));
    }
    std::vector<std::string> in_strips;
    for (const NodeRemark& node : loop.in_strips) {
      in_strips.push_back(
          fmt::format("{} ({}): runs for {} iterations at a time", path(node.node), node.op, loop.strip_iterations));
    }
    write_list("in strips", in_strips);
    write_iteration(loop);
    if (options_.all) write_rewrites(loop);
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
  std::string left_out(const std::vector<NodeRemark>& nodes, std::string_view why) const {
    constexpr size_t kMostNamed = 4;
    std::string names;
    for (size_t i = 0; i < std::min(nodes.size(), kMostNamed); ++i) {
      names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", path(nodes[i].node), nodes[i].op);
    }
    if (nodes.size() > kMostNamed) names += fmt::format(" and {} more", nodes.size() - kMostNamed);
    return fmt::format("{} the sizes or iterations of {}: {}", why, count_text(nodes.size(), "node"), names);
  }

  void write_rewrites(const LoopReport& loop) {
    std::vector<std::string> items;
    for (const opt::Remark& entry : loop.rewrites) {
      const std::string into = entry.into.empty() ? "" : fmt::format(" ({})", entry.into);
      items.push_back(fmt::format("{:<9} {} ({}): {}{}", opt::name(entry.change), path(entry.node), entry.op,
                                  sentence(entry.change), into));
    }
    write_list("rewritten", items);
  }

  void write_remarks(std::string_view label, const std::vector<NodeRemark>& remarks) {
    std::vector<std::string> items;
    for (const NodeRemark& remark : remarks) {
      items.push_back(fmt::format("{} ({}): {}", path(remark.node), remark.op, remark.remark));
    }
    write_list(label, items);
  }

  void write_list(std::string_view label, const std::vector<std::string>& items) {
    const size_t shown = options_.all ? items.size() : std::min(items.size(), kMostLines);
    for (size_t i = 0; i < shown; ++i) line(i == 0 ? label : "", items[i]);
    if (shown < items.size()) line("", fmt::format("and {} more", items.size() - shown));
  }

  const Explanation& e_;
  const TextOptions& options_;
  std::string indent_;
  std::string text_;
};

}  // namespace

std::string to_text(const Explanation& explanation, const TextOptions& options) {
  return head_text(explanation, options) + "\n" + TextWriter(explanation, options).write();
}

}  // namespace treadle::report
