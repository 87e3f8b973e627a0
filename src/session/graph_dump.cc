#include "session/graph_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "op/print.h"

namespace treadle::session {

Status check_dump(std::string_view what) {
  return what == kDumpChanges ? Status() : opt::pass_named(what).status();
}

void GraphDump::watch(std::string_view what, opt::PipelineOptions& options) {
  if (what != kDumpChanges) {
    options.after = [this, what](const opt::Pass& pass, const ir::Graph& graph) {
      if (pass.name != what) return;
      std::string text = print(graph);
      const std::lock_guard lock(mutex_);
      graph_ = std::move(text);
    };
    return;
  }
  using Clock = std::chrono::steady_clock;
  struct Before {
    std::string graph;
    Clock::time_point since;
  };
  const auto before = std::make_shared<Before>();
  options.before = [before](const opt::Pass&, const ir::Graph& graph) {
    before->graph = print(graph);
    before->since = Clock::now();
  };
  options.after = [this, before](const opt::Pass& pass, const ir::Graph& graph) {
    const auto taken = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - before->since);
    add({&pass, print(graph) != before->graph, taken.count()});
  };
}

void GraphDump::add(const Work& work) {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::lower_bound(done_, work.pass, {}, &Work::pass);
  if (at == done_.end() || at->pass != work.pass) {
    done_.insert(at, work);
  } else {
    at->changed |= work.changed;
    at->ns += work.ns;
  }
}

std::string GraphDump::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = graph_;
  for (const Work& work : done_) {
    const char* const changed = work.changed ? "changed" : "same";
    text += fmt::format("{:<24} {:<7} {:.1f} us\n", work.pass->name, changed, static_cast<double>(work.ns) / 1e3);
  }
  return text;
}

}  // namespace treadle::session
