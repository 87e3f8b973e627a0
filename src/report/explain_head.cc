#include "report/explain_head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "report/advice.h"
#include "report/explain_words.h"

namespace treadle::report {

namespace {

using Tier = LoopReport::Tier;

constexpr size_t kMostLoops = 6, kMostNodes = 3, kMostAdvice = 3;
constexpr size_t kBarColumns = 8;
constexpr size_t kWide = 80;  // columns from which tables have bars and times

class Head {
 public:
  Head(const Explanation& e, const TextOptions& options)
      : e_(e), options_(options), width_(std::max(options.width, kLeastWidth)) {}

  std::string write() {
    headline();
    if (!e_.loops.empty()) loops();
    if (!e_.nodes.empty()) nodes();
    advice();
    rewrites();
    return std::move(text_);
  }

 private:
  void paragraph(std::string_view text) { text_ += wrapped("", text, options_); }

  // All times are scaled so that their sum is the measured time of a run.
  double scale() const {
    return e_.measured_run_ns > 0 && e_.estimated_run_ns > 0 ? e_.measured_run_ns / e_.estimated_run_ns : 1;
  }
  double share(double ns) const { return e_.estimated_run_ns > 0 ? ns / e_.estimated_run_ns : 0; }

  bool is_complete() const {
    return std::ranges::all_of(e_.loops, [](const LoopReport& loop) { return loop.is_complete; });
  }

  void headline() {
    const std::string run = duration_text(e_.estimated_run_ns * scale());
    std::string text;
    if (e_.measured_run_ns > 0) {
      text = run + " a run" + largest_loop();
    } else if (e_.assumes_iterations) {
      text = fmt::format("{} a run{}, estimated, for {:.0f} iterations of each loop whose number only the run knows",
                         run, largest_loop(), kAssumedIterations);
    } else {
      text = fmt::format("{} {} a run{}, estimated", is_complete() ? "about" : "at least", run, largest_loop());
    }
    paragraph(text + (e_.measured_run_ns > 0 ? "" : "; with inputs, a run is measured"));
    if (e_.loops.empty()) paragraph("No loops.");
  }

  // The outer loop that takes most of a run; null without loops.
  const LoopReport* longest() const {
    const LoopReport* longest = nullptr;
    for (const LoopReport& loop : e_.loops) {
      if (loop.parent < 0 && (!longest || loop.run_ns > longest->run_ns)) longest = &loop;
    }
    return longest;
  }

  std::string largest_loop() const {
    const LoopReport* loop = longest();
    if (!loop || loop->iterations_in_run < 1) return "";
    return fmt::format(": {:.0f} iterations of {} in {}", loop->iterations_in_run, iteration_text(*loop),
                       shortened(loop->node, std::max<size_t>(width_ / 3, 16), options_.utf8));
  }

  std::string iteration_text(const LoopReport& loop) const {
    const double each = loop.iterations_in_run > 0 ? loop.run_ns / loop.iterations_in_run : loop.estimated_ns;
    return duration_text(each * scale());
  }

  // A line of a table: share of the run, its time, and what takes it.
  std::string row(double ns, std::string_view middle, std::string_view what) const {
    std::string line = "  ";
    if (width_ >= kWide) {
      line += fmt::format("{} {:>5}  {:>7}  ", bar(share(ns), kBarColumns, options_.utf8), percent_text(share(ns)),
                          duration_text(ns * scale()));
    } else {
      line += fmt::format("{:>5}  ", percent_text(share(ns)));
    }
    line += middle;
    const size_t used = columns_of(line), left = width_ - std::min(width_, used);
    line += shortened(what, left, options_.utf8);
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }

  void loops() {
    text_ += "\nloops\n";
    std::vector<size_t> order = in_order();
    const size_t shown = options_.all ? order.size() : std::min(order.size(), kMostLoops);
    for (size_t i = 0; i < shown; ++i) text_ += loop_row(e_.loops[order[i]]);
    if (shown < order.size()) text_ += fmt::format("  and {}\n", count_text(order.size() - shown, "more loop"));
    if (e_.outside_ns > 0) text_ += row(e_.outside_ns, fmt::format("{:<27}", "outside of loops"), "");
    text_ += row(e_.estimated_run_ns, fmt::format("{:<27}", "a run"), "");
  }

  std::string loop_row(const LoopReport& loop) const {
    const std::string times = loop.iterations_in_run < 1
                                  ? std::string("does not run")
                                  : fmt::format("{:.0f} x {}", loop.iterations_in_run, iteration_text(loop));
    const bool is_native = loop.tier == Tier::kNative || loop.tier == Tier::kInside;
    size_t depth = 0;
    for (int at = loop.parent; at >= 0; at = e_.loops[static_cast<size_t>(at)].parent) ++depth;
    return row(loop.run_ns,
               fmt::format("{:<17} {:<8} ", cut_off(times, 17, options_.utf8), is_native ? "native" : "program"),
               fmt::format("{:{}}{} ({})", "", std::min<size_t>(2 * depth, 8), loop.node, loop.op));
  }

  // Outer loops by time, each followed by its inner ones.
  std::vector<size_t> in_order() const {
    std::vector<size_t> order;
    add_inner(-1, order);
    return order;
  }
  void add_inner(int parent, std::vector<size_t>& order) const {
    std::vector<size_t> inner;
    for (size_t i = 0; i < e_.loops.size(); ++i) {
      if (e_.loops[i].parent == parent) inner.push_back(i);
    }
    std::ranges::sort(inner, [&](size_t a, size_t b) {
      return std::pair(-e_.loops[a].run_ns, a) < std::pair(-e_.loops[b].run_ns, b);
    });
    for (const size_t i : inner) {
      order.push_back(i);
      add_inner(static_cast<int>(i), order);
    }
  }

  void nodes() {
    text_ += "\nlargest nodes\n";
    const size_t shown = options_.all ? e_.nodes.size() : std::min(e_.nodes.size(), kMostNodes);
    double rest = 0;
    for (size_t i = 0; i < e_.nodes.size(); ++i) {
      const NodeCost& node = e_.nodes[i];
      if (i >= shown) {
        rest += node.ns;
        continue;
      }
      text_ += row(node.ns, fmt::format("{:<17} ", cut_off(node.op, 17, options_.utf8)), node.node);
    }
    if (shown < e_.nodes.size()) text_ += row(rest, fmt::format("{} others", e_.nodes.size() - shown), "");
  }

  void advice() {
    text_ += "\nwhat would help\n";
    const std::vector<std::string> sentences = advice_on(e_);
    const size_t shown = options_.all ? sentences.size() : std::min(sentences.size(), kMostAdvice);
    for (size_t i = 0; i < shown; ++i) text_ += wrapped("  ", sentences[i], options_);
    if (sentences.empty()) text_ += wrapped("  ", "nothing that explain knows of", options_);
  }

  // As "145 nodes of loops were rewritten (121 folded, 14 fused, 10 elided): --rewritten, or ...".
  void rewrites() {
    std::map<std::string_view, size_t> counts;
    size_t all = 0;
    for (const LoopReport& loop : e_.loops) {
      all += loop.rewrites.size();
      for (const opt::Remark& entry : loop.rewrites) ++counts[opt::name(entry.change)];
    }
    if (all == 0 || options_.all) return;
    std::vector<std::pair<size_t, std::string_view>> sorted;
    for (const auto& [change, count] : counts) sorted.emplace_back(count, change);
    std::ranges::sort(sorted, [](const auto& a, const auto& b) {
      return std::pair(b.first, a.second) < std::pair(a.first, b.second);
    });
    std::vector<std::string> parts;
    for (const auto& [count, change] : sorted) parts.push_back(fmt::format("{} {}", count, change));
    text_ += "\n";
    paragraph(fmt::format("{} in loops: {}. --rewritten, or rewritten=True, lists them.", count_text(all, "rewrite"),
                          fmt::join(parts, ", ")));
  }

  const Explanation& e_;
  const TextOptions& options_;
  const size_t width_;
  std::string text_;
};

}  // namespace

std::string head_text(const Explanation& explanation, const TextOptions& options) {
  return Head(explanation, options).write();
}

}  // namespace treadle::report
