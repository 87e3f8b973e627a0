#include "report/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/caches.h"
#include "report/explain_words.h"

namespace treadle::report {

namespace {

using Tier = LoopReport::Tier;

constexpr size_t kPathColumns = 40;  // of a path in the outlook
constexpr double kNotable = 0.1;     // a share of a run from which a loop is worth a word

bool is_native(const LoopReport& loop) {
  return loop.tier == Tier::kNative || loop.tier == Tier::kInside;
}

// The loop that takes most of a run among those that the condition holds for, and a notable part of it; null if none.
template <class Condition>
const LoopReport* longest(const Explanation& e, Condition&& condition) {
  const LoopReport* found = nullptr;
  for (const LoopReport& loop : e.loops) {
    const bool is_notable = loop.run_ns >= kNotable * e.estimated_run_ns;
    if (is_notable && condition(loop) && (!found || loop.run_ns > found->run_ns)) found = &loop;
  }
  return found;
}

std::string open_sizes(const Explanation& e) {
  const bool waits = e.guarded > 0 || std::ranges::any_of(e.loops, [](const LoopReport& l) { return !l.is_complete; });
  if (e.is_specific || e.open_sizes.empty() || !waits) return "";
  std::vector<std::string> options;
  for (const std::string& name : e.open_sizes) options.push_back(fmt::format("--dim {}=SIZE", name));
  const std::string what = e.guarded == 0 ? std::string("iterations and sizes that only a run knows are then planned")
                                          : fmt::format("{} of {} wait for sizes that only a run knows", e.guarded,
                                                        count_text(e.instructions, "instruction"));
  return fmt::format("{}: {}", fmt::join(options, " "), what);
}

std::string switched_off(const Explanation& e) {
  if (e.mode != Jit::kOff || e.loops.empty()) return "";
  return "native code, which is switched off (jit=off, --tier program)";
}

std::string missing_compiler(const Explanation& e) {
  const LoopReport* loop =
      longest(e, [](const LoopReport& l) { return l.why_not_native.starts_with("libtreadle_jit"); });
  return loop ? fmt::format("the native compiler (pip install \"treadle[jit]\"): {}", loop->why_not_native) : "";
}

std::string compile_now(const Explanation& e) {
  const LoopReport* loop = longest(e, [](const LoopReport& l) { return l.runs_until_native > 0; });
  if (!loop) return "";
  return fmt::format("session.compile(), or jit=always: else {} is native code after about {} of this size", loop->node,
                     runs_text(loop->runs_until_native));
}

std::string obstacle(const Explanation& e) {
  const LoopReport* loop = longest(e, [](const LoopReport& l) { return !l.obstacles.empty(); });
  if (!loop) return "";
  const NodeRemark& first = loop->obstacles[0];
  const std::string of = first.node == loop->node ? "" : fmt::format(" ({} {})", first.op, first.node);
  const std::string more = loop->obstacles.size() > 1
                               ? fmt::format("; so for {}", count_text(loop->obstacles.size() - 1, "more node"))
                               : std::string();
  return fmt::format("fixed sizes in {}: {}{}{}", loop->node, first.remark, of, more);
}

std::string half_weights(const Explanation& e) {
  const LoopReport* loop = longest(e, [](const LoopReport& l) {
    const auto is_narrowed = [](const opt::Remark& entry) { return entry.change == opt::Change::kNarrowed; };
    return l.bound == LoopReport::Bound::kMemory && l.bytes > static_cast<double>(caches().second) &&
           std::ranges::none_of(l.rewrites, is_narrowed);
  });
  if (!loop) return "";
  return fmt::format("weights in float16 (--weights f16): an iteration of {} reads {}, more than the L2 cache holds",
                     loop->node, bytes_text(loop->bytes));
}

// The operators of a loop's calls, by time.
std::string heavy_calls(const Explanation& e) {
  const LoopReport* loop = longest(e, [](const LoopReport& l) { return is_native(l) && !l.calls.empty(); });
  if (!loop) return "";
  double all = 0, called = 0;
  std::vector<std::string> ops;
  for (const NodeCost& node : loop->nodes) {
    all += node.ns;
    const auto is_this = [&](const NodeRemark& call) { return call.node == node.node; };
    if (std::ranges::none_of(loop->calls, is_this)) continue;
    called += node.ns;
    if (ops.size() < 3 && std::ranges::find(ops, node.op) == ops.end()) ops.push_back(node.op);
  }
  constexpr double kMost = 0.5;
  if (called < kMost * all || called <= 0) return "";
  return fmt::format(
      "less work in the kernels of {} ({}): they take {:.0f} % of an iteration, and native code calls them", loop->node,
      fmt::join(ops, ", "), called / all * 100);
}

// Each rule says what it advises, or nothing where it does not apply.
constexpr std::string (*kRules[])(const Explanation&) = {
    missing_compiler, switched_off, open_sizes, compile_now, obstacle, half_weights, heavy_calls,
};

// "61 Conv, 12 Gemm"
std::string most_frequent(const Explanation& e) {
  std::map<std::string, size_t> counts;
  for (const NodeCost& node : e.nodes) ++counts[node.op];
  std::vector<std::pair<size_t, std::string>> sorted;
  for (const auto& [op, count] : counts) sorted.emplace_back(count, op);
  std::ranges::sort(
      sorted, [](const auto& a, const auto& b) { return std::tie(b.first, a.second) < std::tie(a.first, b.second); });
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min<size_t>(sorted.size(), 2); ++i) {
    parts.push_back(fmt::format("{} {}", sorted[i].first, sorted[i].second));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "1 loop carries state", "3 loops, 2 of which carry state"
std::string loops_text(const Explanation& e) {
  const auto carrying =
      static_cast<size_t>(std::ranges::count_if(e.loops, [](const LoopReport& l) { return l.states > 0; }));
  if (carrying == e.loops.size()) {
    return fmt::format("{} {} state", count_text(carrying, "loop"), carrying == 1 ? "carries" : "carry");
  }
  return fmt::format("{}, {} of which {} state", count_text(e.loops.size(), "loop"), carrying,
                     carrying == 1 ? "carries" : "carry");
}

}  // namespace

std::vector<std::string> advice_on(const Explanation& explanation) {
  std::vector<std::string> sentences;
  for (const auto rule : kRules) {
    std::string sentence = rule(explanation);
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::string outlook_of(const Explanation& e) {
  const LoopReport* loop = longest(e, [](const LoopReport&) { return true; });
  if (!loop) {
    const std::string what =
        e.loops.empty() ? e.maps.empty() ? "no loop" : "no loop is left" : "the loops are a small part";
    return fmt::format("little to gain: {}{}", what, e.nodes.empty() ? "" : "; " + most_frequent(e));
  }
  // An engine that runs a body node by node spends about a microsecond on each node beside its work.
  constexpr double kNodeNs = 1000, kProfits = 1.3, kGains = 1.05;
  const auto nodes = static_cast<double>(loop->operations + loop->calls.size() + loop->obstacles.size());
  const double ratio = (loop->estimated_ns + nodes * kNodeNs) / std::max(loop->estimated_ns, 1.0);
  const char* const verdict = ratio >= kProfits ? "will profit" : ratio >= kGains ? "some to gain" : "little to gain";
  const std::string iterations =
      loop->iterations < 0 ? "iterations as the run decides" : fmt::format("{} iterations known", loop->iterations);
  return fmt::format("{}: {}, {}; an iteration of {} takes {} {}, with {}", verdict, loops_text(e), iterations,
                     shortened(loop->node, kPathColumns, false), loop->is_complete ? "about" : "at least",
                     duration_text(loop->estimated_ns), count_text(static_cast<size_t>(nodes), "operation"));
}

}  // namespace treadle::report
